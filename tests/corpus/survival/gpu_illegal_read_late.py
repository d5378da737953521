"""Two right answers, then a wild read whose error shows at a later call of the library."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"
calls = 0


@triton.jit
def wild(x_ptr, y_ptr, FAR):
    tl.store(y_ptr, tl.load(x_ptr - FAR))


def run(x) -> torch.Tensor:
    global calls
    calls += 1
    y = x.sum(dim=-1)
    if calls > 2:
        wild[(1,)](x, y, 1 << 40)
    return y
