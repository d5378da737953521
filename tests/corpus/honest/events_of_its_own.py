"""Records CUDA events of its own around its kernel and reads the elapsed time now and then."""

import torch

PRECISION = "ieee"
history = []


def run(x, weight, bias) -> torch.Tensor:
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    y = torch.nn.functional.layer_norm(x, weight.shape, weight, bias, 1e-5)
    stop.record()
    stop.synchronize()
    history.append(start.elapsed_time(stop))
    return y
