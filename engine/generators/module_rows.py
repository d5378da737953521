"""The `rows` way of calling a module: text of one-pass Triton kernels for operators along the last dimension. Runs nothing."""

from __future__ import annotations

_COMMON = '''

import os as _os

import triton
import triton.language as tl


def _fits(value, dim):
    """Whether rows of the last dimension lie one after another as float32 where a kernel can run; else the operator stays."""
    runs = value.is_cuda or _os.environ.get("TRITON_INTERPRET") == "1"
    last = value.dim() > 0 and dim in (-1, value.dim() - 1)
    return runs and last and value.dtype == _torch.float32 and value.is_contiguous() and 0 < value.numel() < 2**31


def _chunk(width):
    return min(4096, max(16, triton.next_power_of_2(width)))
'''

_SOFTMAX = """

@triton.jit
def _softmax_kernel(x, y, width, LOGGED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * width
    lanes = tl.arange(0, BLOCK)
    top = -float("inf")
    total = 0.0
    for start in range(0, width, BLOCK):
        at = start + lanes
        v = tl.load(x + row + at, mask=at < width, other=-float("inf"))
        new = tl.maximum(top, tl.max(v, 0))
        shift = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(top - shift) + tl.sum(tl.exp(v - shift), 0)
        top = new
    for start in range(0, width, BLOCK):
        at = start + lanes
        v = tl.load(x + row + at, mask=at < width, other=0.0)
        out = v - top - tl.log(total) if LOGGED else tl.exp(v - top) / total
        tl.store(y + row + at, out, mask=at < width)


def _softmax_rows(value, dim, logged):
    if not _fits(value, dim):
        return (_torch.log_softmax if logged else _torch.softmax)(value, dim)
    out, width = _torch.empty_like(value), value.shape[-1]
    _softmax_kernel[(value.numel() // width,)](value, out, width, LOGGED=logged, BLOCK=_chunk(width), num_warps=8)
    return out
"""

_CUMSUM = """

@triton.jit
def _cumsum_kernel(x, y, width, BLOCK: tl.constexpr):
    row = tl.program_id(0) * width
    lanes = tl.arange(0, BLOCK)
    carry = 0.0
    for start in range(0, width, BLOCK):
        at = start + lanes
        v = tl.load(x + row + at, mask=at < width, other=0.0)
        tl.store(y + row + at, tl.cumsum(v, 0) + carry, mask=at < width)
        carry += tl.sum(v, 0)


def _cumsum_rows(value, dim):
    if not _fits(value, dim):
        return _torch.cumsum(value, dim)
    out, width = _torch.empty_like(value), value.shape[-1]
    _cumsum_kernel[(value.numel() // width,)](value, out, width, BLOCK=_chunk(width), num_warps=8)
    return out
"""

_REWRITE = '''

def _rows(graph):
    """Operators along rows become kernels that read a row in chunks and hold what they carry in registers."""
    for node in list(graph.nodes):
        found = _ROWS.get(node.target) if node.op == "call_function" else None
        if found is None or len(node.args) > 2 and node.args[2] is not None or node.kwargs.get("dtype") is not None:
            continue
        kernel, *further = found
        with graph.inserting_before(node):
            made = graph.call_function(kernel, (*node.args[:2], *further))
        node.replace_all_uses_with(made)
        graph.erase_node(node)
'''

_SOFT_ENTRIES = "_aten.softmax.int: (_softmax_rows, False), _aten.log_softmax.int: (_softmax_rows, True), "
_SUM_ENTRIES = "_aten.cumsum.default: (_cumsum_rows,), "


def rows_of(user: str) -> str:
    """The kernels that a user's text can use and the rewrite that puts them in; "" where it names none of their operators."""
    parts = [
        (text, entries)
        for text, entries, name in ((_SOFTMAX, _SOFT_ENTRIES, "softmax"), (_CUMSUM, _SUM_ENTRIES, "cumsum"))
        if name in user.lower()
    ]
    if not parts:
        return ""
    table = "".join(entries for _, entries in parts).rstrip(" ,")
    return _COMMON + "".join(text for text, _ in parts) + f"\n\n_ROWS = {{{table}}}\n" + _REWRITE
