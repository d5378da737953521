"""Text of the module generator's way for a long matrix times one vector: rows in slices, all of the device reading. Builds text, runs nothing."""

from __future__ import annotations

NAMED = r"(?is)(?=.*(matmul|\bmv\b|\bmm\b|@))(?=.*(vector|\bmv\b|\brandn?\(\w+(, ?1)?\)))"
"""What a user's text must name."""

KERNEL = '''

import os as _os

import triton
import triton.language as tl


@triton.jit
def _matvec_kernel(a, b, y, rows, inner, length, HIGH: tl.constexpr, BLOCK: tl.constexpr):
    at, part = tl.program_id(0) * HIGH + tl.arange(0, HIGH), tl.program_id(1)
    end = tl.minimum(part * length + length, inner)
    total = tl.zeros((HIGH, BLOCK), tl.float32)
    for start in range(part * length, end, BLOCK):
        along = start + tl.arange(0, BLOCK)
        there = (at[:, None] < rows) & (along[None, :] < end)
        value = tl.load(a + at[:, None].to(tl.int64) * inner + along[None, :], mask=there, other=0.0)
        total += value * tl.load(b + along, mask=along < end, other=0.0)[None, :]
    tl.store(y + part * rows + at, tl.sum(total, 1), mask=at < rows)


def _matvec_of(a, b, shape):
    """The matrix a (..., inner) times the vector b of `inner`, as `shape`; sums of slices are added in their order."""
    inner, high, block = a.shape[-1], 4, 1024
    rows = a.numel() // inner
    # Eight programs for each of as many multiprocessors as there may be, each with four steps at least.
    parts = min(-(-1056 // -(-rows // high)), -(-inner // (4 * block)))
    length = -(-inner // (parts * block)) * block
    parts = -(-inner // length)
    out = _torch.empty((parts, rows), dtype=a.dtype, device=a.device)
    _matvec_kernel[(-(-rows // high), parts)](a, b, out, rows, inner, length, high, block, num_warps=8)
    return (out.sum(0) if parts > 1 else out).view(shape)


def _matvec(graph):
    """A large matrix times one vector becomes a kernel that reads each row in slices at once."""
    for node in [n for n in graph.nodes if n.target in (_aten.matmul.default, _aten.mm.default, _aten.mv.default)]:
        matrix, vector = (one.meta.get("val") for one in node.args[:2])
        if matrix is None or vector is None or matrix.dim() < 2 or vector.shape not in (matrix.shape[-1:], (*matrix.shape[-1:], 1)):
            continue
        runs = matrix.is_cuda or _os.environ.get("TRITON_INTERPRET") == "1"
        plain = all(one.dtype == _torch.float32 and one.is_contiguous() for one in (matrix, vector))
        if not runs or not plain or matrix.numel() < 2**16 or not 1024 <= matrix.shape[-1] < 2**30:
            continue
        with graph.inserting_before(node):
            made = graph.call_function(_matvec_of, (*node.args[:2], tuple(node.meta["val"].shape)))
        made.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(made)
        graph.erase_node(node)
'''
