"""A global workspace is overwritten in full on every call, and the result is copied out of it."""

import torch

PRECISION = "ieee"
workspace = {}


def run(x) -> torch.Tensor:
    key = tuple(x.shape), x.device
    if key not in workspace:
        workspace[key] = torch.empty_like(x), torch.empty(x.shape[0], 1, device=x.device)
    e, total = workspace[key]
    torch.sub(x, x.amax(dim=-1, keepdim=True), out=e)
    e.exp_()
    torch.sum(e, dim=-1, keepdim=True, out=total)
    return e / total
