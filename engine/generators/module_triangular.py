"""Text of the module generator's ways for products of triangular and diagonal matrices, which leave out blocks of zeros. Builds text, runs nothing."""

from __future__ import annotations

NAMED = r"\btri[lu]|\bdiag"
"""What a user's text must name."""

FOUND = '''

_PRODUCTS = (_aten.matmul.default, _aten.mm.default)
_LOWER, _UPPER = (_aten.tril.default, _aten.tril_.default), (_aten.triu.default, _aten.triu_.default)


def _side(node):
    """1 for what torch.tril gave, -1 for torch.triu, 0 for anything else."""
    if getattr(node, "target", None) not in (*_LOWER, *_UPPER) or (len(node.args) > 1 and node.args[1]):
        return 0
    return 1 if node.target in _LOWER else -1


def _matrix(node):
    value = node.meta.get("val") if isinstance(node, _torch.fx.Node) else None
    return value is not None and value.dim() == 2 and value.dtype == _torch.float32 and 0 < value.numel() < 2**31


def _skipping(graph, product):
    """Products of which a triangle is asked for, or an operand is one, become `product`, which leaves out zeros."""
    for node in [n for n in graph.nodes if n.target in _PRODUCTS]:
        if not all(_matrix(operand) for operand in (*node.args[:2], node)):
            continue
        sides, last = [_side(operand) for operand in node.args[:2]], next(iter(node.users), None)
        kept = _side(last) if len(node.users) == 1 else 0
        # A product of two of one side is of that side.
        side = kept or (sides[0] if sides[0] == sides[1] else 0)
        if side == 0 and not any(sides):
            continue
        after = last if kept else node
        with graph.inserting_before(after):
            made = graph.call_function(product, (*node.args[:2], side, sides[0]))
        made.meta["val"] = after.meta["val"]
        after.replace_all_uses_with(made)
        graph.erase_node(after)
        if kept:
            graph.erase_node(node)


def _diagonal(graph):
    """diag(v) @ m and m @ diag(v) scale rows and columns: no product, and no matrix of zeros."""
    for node in [n for n in graph.nodes if n.target in _PRODUCTS]:
        for place, operand in enumerate(node.args[:2]):
            plain = getattr(operand, "target", None) is _aten.diag.default and not any(operand.args[1:])
            if not plain or len(operand.args[0].meta["val"].shape) != 1 or not _matrix(node.args[1 - place]):
                continue
            with graph.inserting_before(node):
                scale = graph.call_function(_aten.unsqueeze.default, (operand.args[0], 1 if place == 0 else 0))
                made = graph.call_function(_aten.mul.Tensor, (scale, node.args[1 - place]))
            made.meta["val"] = node.meta["val"]
            node.replace_all_uses_with(made)
            graph.erase_node(node)
            break
'''

REACH = '''

import triton
import triton.language as tl


@triton.jit
def _reach_kernel(x, found, rows, cols, row_stride, col_stride, PER: tl.constexpr, TILE: tl.constexpr):
    tile, across = tl.program_id(0), tl.program_id(1)
    at, over = tile * TILE + tl.arange(0, TILE), across * TILE + tl.arange(0, TILE)
    there = (at[:, None] < rows) & (over[None, :] < cols)
    value = tl.load(x + at[:, None].to(tl.int64) * row_stride + over[None, :].to(tl.int64) * col_stride, mask=there, other=0.0)
    if tl.max(tl.max((value != 0).to(tl.int32), axis=1), axis=0) > 0:
        tl.atomic_max(found + 2 * (tile // PER), across + 1)
        tl.atomic_max(found + 2 * (tile // PER) + 1, tl.num_programs(1) - across)


def _reach(x, rows, tile):
    """For each block of `rows` rows: one more than the last tile of columns that is not all zeros, and the tiles from the first such on."""
    found = _torch.zeros((-(-x.shape[0] // rows), 2), dtype=_torch.int32, device=x.device)
    grid = (-(-x.shape[0] // tile), -(-x.shape[1] // tile))
    _reach_kernel[grid](x, found, *x.shape, *x.stride(), rows // tile, tile, num_warps=4)
    return found
'''

ROWS = '''

def _by_block_rows(a, b, side, left_side):
    """The product by blocks of rows, each over what of it can be other than 0; the first factor's own zeros are found on the device."""
    rows, inner, cols = a.shape[0], a.shape[1], b.shape[1]
    step = max(128, -(-rows // 8 // 128) * 128)
    out = _torch.zeros((rows, cols), dtype=a.dtype, device=a.device)
    known = None
    if left_side == 0 and a.is_cuda and not _torch.cuda.is_current_stream_capturing():
        known = _reach(a, step, 128).tolist()
    for block, top in enumerate(range(0, rows, step)):
        below = min(top + step, rows)
        left = min(top, cols) if side < 0 else 0
        right = min(below, cols) if side > 0 else cols
        first = min(top, inner) if left_side < 0 else 0
        last = min(below, inner) if left_side > 0 else inner
        if known is not None:
            last, first = min(inner, 128 * known[block][0]), 128 * (-(-inner // 128) - known[block][1])
        if right > left and last > first:
            _torch.mm(a[top:below, first:last], b[first:last, left:right], out=out[top:below, left:right])
        if side and top < cols:
            square = out[top:below, top:below]
            square.tril_() if side > 0 else square.triu_()
    return out


def _triangular(graph):
    _diagonal(graph)
    _skipping(graph, _by_block_rows)
'''

BLOCKS = '''

@triton.jit
def _tiles_kernel(
    a, b, y, reach_a, reach_b, rows, inner, cols,
    SIDE: tl.constexpr, HOW: tl.constexpr, EVEN: tl.constexpr, TILE: tl.constexpr, STEP: tl.constexpr,
):
    tiles = tl.cdiv(inner, TILE)
    # The longest sums of a lower triangle are the last rows', of an upper one the first rows': they start first.
    down = tl.num_programs(0) - 1 - tl.program_id(0) if SIDE >= 0 else tl.program_id(0)
    across = tl.program_id(1)
    first = tiles - tl.minimum(tl.load(reach_a + 2 * down + 1), tl.load(reach_b + 2 * across + 1))
    last = tl.minimum(tl.load(reach_a + 2 * down), tl.load(reach_b + 2 * across))
    if SIDE > 0:
        last = tl.where(across > down, first, last)
    if SIDE < 0:
        last = tl.where(across < down, first, last)
    at, over = down * TILE + tl.arange(0, TILE), across * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(first * TILE, last * TILE, STEP):
        along = start + tl.arange(0, STEP)
        if EVEN:
            x = tl.load(a + at[:, None] * inner + along[None, :])
            z = tl.load(b + along[:, None] * cols + over[None, :])
        else:
            x_there = (at[:, None] < rows) & (along[None, :] < inner)
            z_there = (along[:, None] < inner) & (over[None, :] < cols)
            x = tl.load(a + at[:, None] * inner + along[None, :], mask=x_there, other=0.0)
            z = tl.load(b + along[:, None] * cols + over[None, :], mask=z_there, other=0.0)
        total = tl.dot(x, z, total, input_precision=HOW)
    if SIDE > 0:
        total = tl.where(at[:, None] >= over[None, :], total, 0.0)
    if SIDE < 0:
        total = tl.where(at[:, None] <= over[None, :], total, 0.0)
    tl.store(y + at[:, None] * cols + over[None, :], total, mask=(at[:, None] < rows) & (over[None, :] < cols))


def _by_tiles(a, b, side, left_side):
    """The product by tiles, each summed over the tiles in which both factors are other than 0, as found on the device."""
    a, b = a.contiguous(), b.contiguous()
    tile = 128 if max(a.shape[0], b.shape[1]) >= 1024 else 32
    out = _torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype, device=a.device)
    grid = (-(-a.shape[0] // tile), -(-b.shape[1] // tile))
    even = a.shape[0] % tile == a.shape[1] % tile == b.shape[1] % tile == 0
    _tiles_kernel[grid](
        a, b, out, _reach(a, tile, tile), _reach(b.t(), tile, tile), *a.shape, b.shape[1], side, PRECISION, even, tile,
        16 if PRECISION == "ieee" else 32, num_warps=8 if tile == 128 else 4, num_stages=3,
    )
    return out


def _triangular_tiles(graph):
    _diagonal(graph)
    _skipping(graph, _by_tiles)
'''
