"""Takes 95 percent of the free GPU memory, keeps it and raises."""

import torch

PRECISION = "ieee"
kept = []


def run(x) -> torch.Tensor:
    free, total = torch.cuda.mem_get_info()
    kept.append(torch.empty(int(free * 0.95), dtype=torch.uint8, device=x.device))
    raise RuntimeError("the memory stays here")
