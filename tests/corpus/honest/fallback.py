"""Tries a kernel that cannot be launched, catches the exception and falls back to torch."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"


@triton.jit
def broken(x_ptr, y_ptr, BLOCK: tl.constexpr):
    tl.store(y_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + tl.arange(0, BLOCK)))


def run(x) -> torch.Tensor:
    try:
        y = torch.empty(x.shape[0], device=x.device)
        broken[(1,)](x, y, BLOCK=48)  # 48 is no power of two
        raise RuntimeError("not reached")
    except Exception:
        return x.sum(dim=-1)
