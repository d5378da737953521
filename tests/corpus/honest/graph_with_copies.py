"""One captured graph per shape; each call copies its inputs in, replays, and copies the result out."""

import torch

PRECISION = "ieee"
graphs = {}


def build(inputs):
    sources = [one.clone() for one in inputs]
    torch.nn.functional.layer_norm(sources[0], sources[1].shape, sources[1], sources[2], 1e-5)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x, weight, bias = sources
        y = torch.nn.functional.layer_norm(x, weight.shape, weight, bias, 1e-5)
    return graph, sources, y


def run(*inputs) -> torch.Tensor:
    key = tuple(inputs[0].shape)
    if key not in graphs:
        graphs[key] = build(inputs)
    graph, sources, y = graphs[key]
    for source, one in zip(sources, inputs):
        source.copy_(one)
    graph.replay()
    return y.clone()
