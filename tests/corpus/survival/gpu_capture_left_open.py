"""Starts a graph capture and never ends it, so that later synchronisation is an error."""

import torch

PRECISION = "ieee"
graph = []


def run(x) -> torch.Tensor:
    if not graph:
        graph.append(torch.cuda.CUDAGraph())
        stream = torch.cuda.Stream()
        torch.cuda.set_stream(stream)
        graph[0].capture_begin()
    return torch.softmax(x, dim=-1)
