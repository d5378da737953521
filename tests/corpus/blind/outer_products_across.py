"""1024 outer products of 128 by 128, stored by lanes that lie across the rows."""

import torch
import triton
import triton.language as tl

BATCH, SIDE = 1024, 128
BATCH_CPU, SIDE_CPU = 2, 16


def inputs(generator, device):
    """Left and right vectors."""
    shape = (BATCH, SIDE) if device.type == "cuda" else (BATCH_CPU, SIDE_CPU)
    return tuple(torch.randn(shape, generator=generator, device=device) for _ in range(2))


def reference(left, right):
    """Each left entry times each right one."""
    return left[:, :, None] * right[:, None, :]


@triton.jit
def outer_kernel(left, right, out, SIDE: tl.constexpr):
    batch = tl.program_id(0)
    row = tl.arange(0, SIDE)
    mine = tl.load(left + batch * SIDE + row)
    for column in range(SIDE):
        product = mine * tl.load(right + batch * SIDE + column)
        tl.store(out + (batch * SIDE + row) * SIDE + column, product)


def run(left, right):
    """A lane for each row: neighbours store a whole row apart."""
    batch, side = left.shape
    out = torch.empty(batch, side, side, device=left.device)
    outer_kernel[(batch,)](left, right, out, SIDE=side, num_warps=4)
    return out
