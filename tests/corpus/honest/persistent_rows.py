"""A persistent kernel: a fixed number of programs walk over all rows."""

import torch
import triton
import triton.language as tl

PRECISION = "ieee"


@triton.jit
def sum_persistent(x_ptr, y_ptr, M, N, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), M, PROGRAMS):
        acc = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, N, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            acc += tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
        tl.store(y_ptr + row, tl.sum(acc, axis=0))


def run(x) -> torch.Tensor:
    m, n = x.shape
    programs = torch.cuda.get_device_properties(x.device).multi_processor_count * 4 if x.is_cuda else 4
    y = torch.empty(m, device=x.device)
    sum_persistent[(programs,)](x, y, m, n, PROGRAMS=programs, BLOCK=1024 if x.is_cuda else 32)
    return y
