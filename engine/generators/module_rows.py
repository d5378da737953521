"""The `rows` way of calling a module: text of one-pass Triton kernels for operators along the last dimension. Runs nothing."""

from __future__ import annotations

from . import module_columns

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
def _softmax_kernel(x, y, width, LOGGED: tl.constexpr, SQUASHED: tl.constexpr, BLOCK: tl.constexpr):
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
        if SQUASHED:
            out = 1.0 / (1.0 + tl.exp(-out))
        tl.store(y + row + at, out, mask=at < width)


def _softmax_rows(value, dim, logged, squashed=False):
    if not _fits(value, dim):
        return _softmax_across(value, dim, logged, squashed)
    out, width = _torch.empty_like(value), value.shape[-1]
    _softmax_kernel[(value.numel() // width,)](
        value, out, width, LOGGED=logged, SQUASHED=squashed, BLOCK=_chunk(width), num_warps=8
    )
    return out
"""

_CUMSUM = '''

@triton.jit
def _cumsum_kernel(x, factor, y, width, MULTIPLIED: tl.constexpr, LATER: tl.constexpr, BACK: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * width
    lanes = tl.arange(0, BLOCK)
    carry = 0.0
    for number in range(0, width, BLOCK):
        at = (width - 1) // BLOCK * BLOCK - number + lanes if BACK else number + lanes
        # One later: what is read lies off its alignment by one, what is written does not.
        there = (at >= LATER) & (at < width)
        v = tl.load(x + row + at - LATER, mask=there, other=0.0)
        if MULTIPLIED:
            v = v * tl.load(factor + row + at - LATER, mask=there, other=0).to(tl.float32)
        tl.store(y + row + at, tl.cumsum(v, 0, reverse=BACK) + carry, mask=at < width)
        carry += tl.sum(v, 0)


def _cumsum_rows(value, dim, factor=None, later=False, back=False):
    """Cumulative sums of value * factor; `later`: of what stands before each position; `back`: from the last position on."""
    if not _fits(value, dim) or factor is not None and not factor.is_contiguous():
        value = value if factor is None else value * factor
        if later:
            sums = _torch.cumsum(value.narrow(dim, 0, value.shape[dim] - 1), dim)
            return _torch.cat((_torch.zeros_like(value.narrow(dim, 0, 1)), sums), dim)
        return _torch.cumsum(value.flip(dim), dim).flip(dim) if back else _torch.cumsum(value, dim)
    out, width = _torch.empty_like(value), value.shape[-1]
    _cumsum_kernel[(value.numel() // width,)](
        value, value if factor is None else factor, out, width,
        MULTIPLIED=factor is not None, LATER=int(later), BACK=back, BLOCK=_chunk(width), num_warps=8,
    )
    return out


def _turns(node, dim):
    """Whether a node turns one dimension round."""
    if getattr(node, "target", None) is not _aten.flip.default:
        return False
    return [d % len(node.meta["val"].shape) for d in node.args[1]] == [dim]


def _all_but_last(node, dim):
    """What a node takes all of but the last position from; None for another operator."""
    if getattr(node, "target", None) not in (_aten.narrow.default, _aten.slice.Tensor) or len(node.args) != 4:
        return None
    whole, _, start, _ = node.args
    sizes, kept = whole.meta["val"].shape, node.meta["val"].shape
    apart = [d for d in range(len(sizes)) if sizes[d] != kept[d]]
    return whole if start in (0, None) and apart == [dim] and sizes[dim] - kept[dim] == 1 else None


def _after_a_zero(node, sums, dim):
    """Whether a node sets one zero before the sums."""
    if getattr(node, "target", None) is not _aten.cat.default or len(node.args) < 2 or len(node.args[0]) != 2:
        return False
    zeros, at = node.args[0][0], node.args[1] % len(sums.meta["val"].shape)
    none = getattr(zeros, "target", None) in (_aten.zeros_like.default, _aten.zeros.default)
    return none and node.args[0][1] is sums and at == dim and zeros.meta["val"].shape[dim] == 1


def _cumulative(graph):
    """Sums of a product, sums from the end (turned, summed, turned back) and sums without the own position become one kernel each."""
    for node in [n for n in graph.nodes if n.target is _aten.cumsum.default]:
        value, dim = node.args[0], node.args[1] % max(1, len(node.meta["val"].shape))
        last, user = node, next(iter(node.users)) if len(node.users) == 1 else None
        back = _turns(value, dim) and _turns(user, dim)
        later = not back and _all_but_last(value, dim) is not None and _after_a_zero(user, node, dim)
        if node.kwargs or node.meta["val"].dtype != _torch.float32:
            continue
        if back or later:
            value, last = value.args[0], user
        factor, pair = None, value.args if value.target is _aten.mul.Tensor and len(value.users) == 1 else ()
        if len(pair) == 2 and all(isinstance(one, _torch.fx.Node) for one in pair):
            first, second = sorted(pair, key=lambda one: one.meta["val"].dtype != _torch.float32)
            kinds = first.meta["val"].dtype, second.meta["val"].dtype
            same = first.meta["val"].shape == second.meta["val"].shape
            if same and kinds in ((_torch.float32, _torch.float32), (_torch.float32, _torch.bool)):
                value, factor = first, second
        if last is node and factor is None or last.meta["val"].dtype != _torch.float32:
            continue
        with graph.inserting_before(last):
            made = graph.call_function(_cumsum_rows, (value, dim, factor, later, back))
        made.meta["val"] = last.meta["val"]
        last.replace_all_uses_with(made)
        graph.erase_node(last)
    graph.eliminate_dead_code()
'''

_REWRITE = '''

def _rows(graph):
    """Operators along rows become kernels that read a row in chunks and hold what they carry in registers."""
    for prepare in _PREPARED:
        prepare(graph)
    for node in list(graph.nodes):
        found = _ROWS.get(node.target) if node.op == "call_function" else None
        if found is None or len(node.args) > 2 and node.args[2] is not None or node.kwargs.get("dtype") is not None:
            continue
        kernel, *further = found
        with graph.inserting_before(node):
            made = graph.call_function(kernel, (*node.args[:2], *further))
        made.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(made)
        graph.erase_node(node)
'''

_SOFT_ENTRIES = "_aten.softmax.int: (_softmax_rows, False), _aten.log_softmax.int: (_softmax_rows, True), "
_SUM_ENTRIES = "_aten.cumsum.default: (_cumsum_rows,), "


def rows_of(user: str) -> str:
    """The kernels that a user's text can use and the rewrite that puts them in; "" where it names none of their operators."""
    soft = (_SOFTMAX + module_columns.SOFTMAX, _SOFT_ENTRIES, "_squashed, ", "softmax")
    kept = [part for part in (soft, (_CUMSUM, _SUM_ENTRIES, "_cumulative, ", "cumsum")) if part[3] in user.lower()]
    if not kept:
        return ""
    texts, entries, prepared, _ = ("".join(found) for found in zip(*kept, strict=True))
    return f"{_COMMON}{texts}\n\n_ROWS = {{{entries.rstrip(' ,')}}}\n_PREPARED = ({prepared.rstrip()})\n{_REWRITE}"
