"""Text of the module generator's ways for convolutions and pooling: one kernel an operator, cheaper equivalents. Builds text, runs nothing."""

from __future__ import annotations

import re

from . import module_matvec as matvec
from . import module_norms as norms
from . import module_norms_read as norms_read
from . import module_summed as summed
from . import module_triangular as triangular

BENCHMARK = '''

_as_first_guessed = operation


def operation(*tensors):
    """cudnn times its algorithms at the first call for sizes, and keeps the fastest for this process."""
    before = _torch.backends.cudnn.benchmark
    _torch.backends.cudnn.benchmark = True
    try:
        return _as_first_guessed(*tensors)
    finally:
        _torch.backends.cudnn.benchmark = before
'''

_THREE = """

def _three(value, dims, default):
    \"\"\"An argument of a convolution or pool as depth, height and width.\"\"\"
    value = [value] if isinstance(value, int) else list(value)
    value = value * dims if len(value) == 1 else value
    return tuple([default] * (3 - dims) + value) if value else None


def _sizes(value, dims):
    return tuple([1] * (3 - dims) + [int(size) for size in value.shape[-dims:]])
"""

_TRITON = """

import triton
import triton.language as tl


def _planes(node):
    \"\"\"Whether a node's value is float32 images, rows without gaps, that 32-bit offsets in a plane reach.\"\"\"
    value = node.meta.get("val") if isinstance(node, _torch.fx.Node) else None
    kept = value is not None and value.dtype == _torch.float32 and value.is_contiguous() and value.numel() > 0
    return kept and value[:1, :1].numel() < 2**30


def _grid(planes, lanes):
    # One element a thread: neighbours then read neighbours in every load, which a wide store would spread over four lines.
    block = min(256, max(32, 1 << (lanes - 1).bit_length()))
    blocks = -(-lanes // block)
    return planes * blocks, block, blocks, block // 32
"""

_POOLING = '''

@triton.jit
def _pool_kernel(
    x, y,
    ID: tl.constexpr, IH: tl.constexpr, IW: tl.constexpr, OD: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr,
    KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
    PD: tl.constexpr, PH: tl.constexpr, PW: tl.constexpr, DD: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr,
    LARGEST: tl.constexpr, PADDED: tl.constexpr, DIVISOR: tl.constexpr, BLOCKS: tl.constexpr, BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    plane = (program // BLOCKS).to(tl.int64)
    at = (program % BLOCKS) * BLOCK + tl.arange(0, BLOCK)
    inside = at < OD * OH * OW
    left = at % OW * SW - PW
    top = at // OW % OH * SH - PH
    front = at // (OW * OH) * SD - PD
    source = x + plane * (ID * IH * IW) + (front * (IH * IW) + top * IW + left)
    found = tl.full((BLOCK,), float("-inf") if LARGEST else 0.0, tl.float32)
    counted = tl.zeros((BLOCK,), tl.float32)
    for kd in tl.static_range(KD):
        for kh in tl.static_range(KH):
            for kw in tl.static_range(KW):
                there = inside
                if PADDED:
                    d, h, w = front + kd * DD, top + kh * DH, left + kw * DW
                    there = there & (d >= 0) & (d < ID) & (h >= 0) & (h < IH) & (w >= 0) & (w < IW)
                offset = kd * DD * (IH * IW) + kh * DH * IW + kw * DW
                if LARGEST:
                    value = tl.load(source + offset, mask=there, other=float("-inf"))
                    found = tl.maximum(found, value, propagate_nan=tl.PropagateNan.ALL)
                else:
                    found += tl.load(source + offset, mask=there, other=0.0)
                    if DIVISOR == 0:
                        counted += there.to(tl.float32)
    if not LARGEST:
        if DIVISOR == 0:
            found = found / tl.where(inside, counted, 1.0)
        else:
            found = found * (1.0 / DIVISOR)
    tl.store(y + plane * (OD * OH * OW) + at, found, mask=inside)


def _pool(x, shape, window, stride, pad, dilation, largest, padded, divisor):
    x = x.contiguous()
    y = _torch.empty(shape, dtype=x.dtype, device=x.device)
    given, out = _sizes(x, x.dim() - 2), _sizes(y, x.dim() - 2)
    programs, block, blocks, warps = _grid(x.shape[0] * x.shape[1], out[0] * out[1] * out[2])
    _pool_kernel[(programs,)](
        x, y, *given, *out, *window, *stride, *pad, *dilation, largest, padded, divisor, blocks, block, num_warps=warps
    )
    return y


_MOST = {
    _aten.max_pool1d.default: 1, _aten.max_pool2d.default: 2, _aten.max_pool3d.default: 3,
    _aten.max_pool1d_with_indices.default: 1, _aten.max_pool2d_with_indices.default: 2,
    _aten.max_pool3d_with_indices.default: 3,
}
_MEANS = {_aten.avg_pool1d.default: 1, _aten.avg_pool2d.default: 2, _aten.avg_pool3d.default: 3}


def _pooling(graph):
    """Pools become one kernel each that reads rows in their order; positions of the largest are left to torch."""
    for node in [n for n in graph.nodes if n.target in _MOST or n.target in _MEANS]:
        largest, dims = node.target in _MOST, _MOST.get(node.target) or _MEANS.get(node.target)
        paired = largest and "with_indices" in str(node.target)
        firsts = [user for user in node.users if user.target is _operator.getitem and user.args[1] == 0]
        if node.kwargs or not _planes(node.args[0]) or len(node.args[0].meta["val"].shape) != dims + 2:
            continue
        if paired and len(firsts) != len(node.users):
            continue
        given = node.args[0].meta["val"]
        out = node.meta["val"][0] if paired else node.meta["val"]
        names = ("window", "stride", "pad", "dilation", "ceil") if largest else ("window", "stride", "pad", "ceil", "counted", "divisor")
        named = dict(zip(names, node.args[1:]))
        window = _three(named["window"], dims, 1)
        stride = _three(named.get("stride") or named["window"], dims, 1)
        pad, dilation = _three(named.get("pad", 0), dims, 0), _three(named.get("dilation", 1), dims, 1)
        ceil = named.get("ceil", False)
        if window[0] * window[1] * window[2] > 128 or (ceil and not largest) or out.numel() == 0 or not out.is_contiguous():
            continue
        padded = bool(any(pad) or ceil)
        divisor = named.get("divisor") or window[0] * window[1] * window[2]
        if any(pad) and not named.get("counted", True) and not named.get("divisor"):
            divisor = 0
        with graph.inserting_before(node):
            made = graph.call_function(
                _pool, (node.args[0], tuple(out.shape), window, stride, pad, dilation, largest, padded, divisor)
            )
        made.meta["val"] = out
        for user in firsts if paired else [node]:
            user.replace_all_uses_with(made)
            graph.erase_node(user)
        if paired:
            graph.erase_node(node)
'''

_NORMS_LATER = '''

def _statistics(x, eps):
    """Mean and reciprocal deviation of each channel."""
    if x.is_cuda:
        return _torch.batch_norm_stats(x, eps)
    variance, mean = _torch.var_mean(x, [0, *range(2, x.dim())], correction=0)
    return mean, (variance + eps).rsqrt()


def _normed(x, statistics, weight, bias):
    wide = [-1] + [1] * (x.dim() - 2)
    scale = statistics[1] if weight is None else statistics[1] * weight
    out = (x - statistics[0].view(wide)) * scale.view(wide)
    return out if bias is None else out + bias.view(wide)


def _whole_windows(node, apart=False):
    """Whether an average is over windows inside the image alone; `apart`: that share no pixel and leave none between."""
    window, stride, pad, ceil, _, divisor = (list(node.args[1:]) + [[], 0, False, True, None][len(node.args) - 2 :])[:6]
    pad = [pad] if isinstance(pad, int) else pad
    same = not stride or list(stride) == list(window)
    return not any(pad) and not ceil and divisor is None and not node.kwargs and (same or not apart)


def _norms_later(graph):
    """An average of what a norm of the batch gives is the norm of the average: fewer pixels to norm. Two averages become one."""
    gone = set()
    # Twice, since a norm moved behind a second average leaves two in a row.
    for pool in 2 * [n for n in graph.nodes if n.target in _MEANS]:
        if pool in gone:
            continue
        norm = pool.args[0]
        if not _whole_windows(pool) or not isinstance(norm, _torch.fx.Node) or not _only(norm, pool) or not _planes(norm):
            continue
        if norm.target in _MEANS and _whole_windows(pool, apart=True) and _whole_windows(norm, apart=True):
            dims = _MEANS[norm.target]
            windows = [_three(node.args[1], dims, 1)[3 - dims :] for node in (pool, norm)]
            pool.args = (norm.args[0], [a * b for a, b in zip(*windows)])
            graph.erase_node(norm)
            gone.add(norm)
            norm = pool.args[0]
            if not isinstance(norm, _torch.fx.Node) or not _only(norm, pool) or not _planes(norm):
                continue
        if norm.target is _aten.batch_norm.default:
            x, weight, bias, mean, variance, training, _, eps = norm.args[:8]
            if not training or mean is not None or variance is not None or not _planes(x):
                continue
            with graph.inserting_before(norm):
                found = graph.call_function(_statistics, (x, eps))
            found.meta["val"] = None
        elif norm.target is _normed:
            x, found, weight, bias = norm.args
        else:
            continue
        pool.args = (x, *pool.args[1:])
        with graph.inserting_after(pool):
            later = graph.call_function(_normed, (pool, found, weight, bias))
        later.meta["val"] = pool.meta["val"]
        pool.replace_all_uses_with(later, delete_user_cb=lambda user: user is not later)
        graph.erase_node(norm)
'''

_DEPTHWISE = '''

@triton.jit
def _depthwise_kernel(
    x, weight, bias, y, channels,
    ID: tl.constexpr, IH: tl.constexpr, IW: tl.constexpr, OD: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr,
    KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
    PD: tl.constexpr, PH: tl.constexpr, PW: tl.constexpr, DD: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr,
    BIASED: tl.constexpr, ROWS: tl.constexpr, BLOCKS: tl.constexpr, BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    plane = program // BLOCKS
    channel = plane % channels
    plane = plane.to(tl.int64)
    # A thread has ROWS rows of one column, so that what it reads of a row serves each of them.
    strips: tl.constexpr = (OH + ROWS - 1) // ROWS
    at = (program % BLOCKS) * BLOCK + tl.arange(0, BLOCK)
    inside = at < OD * strips * OW
    column, row, depth = at % OW, at // OW % strips * ROWS, at // (OW * strips)
    left, top, front = column * SW - PW, row * SH - PH, depth * SD - PD
    source = x + plane * (ID * IH * IW) + (front * (IH * IW) + top * IW + left)
    taps = weight + channel * (KD * KH * KW)
    first = tl.zeros((BLOCK,), tl.float32)
    if BIASED:
        first += tl.load(bias + channel)
    second, third, fourth = first, first, first
    for kd in tl.static_range(KD):
        for r in tl.static_range((ROWS - 1) * SH + (KH - 1) * DH + 1):
            there = inside
            if PD > 0:
                there = there & (front + kd * DD >= 0) & (front + kd * DD < ID)
            if PH > 0 or OH % ROWS != 0:
                there = there & (top + r >= 0) & (top + r < IH)
            for kw in tl.static_range(KW):
                within = there
                if PW > 0:
                    within = there & (left + kw * DW >= 0) & (left + kw * DW < IW)
                value = tl.load(source + (kd * DD * (IH * IW) + r * IW + kw * DW), mask=within, other=0.0)
                if r % DH == 0 and r // DH < KH:
                    first += value * tl.load(taps + (kd * KH + r // DH) * KW + kw)
                if ROWS > 1 and r >= SH and (r - SH) % DH == 0 and (r - SH) // DH < KH:
                    second += value * tl.load(taps + (kd * KH + (r - SH) // DH) * KW + kw)
                if ROWS > 2 and r >= 2 * SH and (r - 2 * SH) % DH == 0 and (r - 2 * SH) // DH < KH:
                    third += value * tl.load(taps + (kd * KH + (r - 2 * SH) // DH) * KW + kw)
                if ROWS > 2 and r >= 3 * SH and (r - 3 * SH) % DH == 0 and (r - 3 * SH) // DH < KH:
                    fourth += value * tl.load(taps + (kd * KH + (r - 3 * SH) // DH) * KW + kw)
    target = y + plane * (OD * OH * OW) + (depth * (OH * OW) + row * OW + column)
    tl.store(target, first, mask=inside)
    if ROWS > 1:
        tl.store(target + OW, second, mask=inside & (row + 1 < OH))
    if ROWS > 2:
        tl.store(target + 2 * OW, third, mask=inside & (row + 2 < OH))
        tl.store(target + 3 * OW, fourth, mask=inside & (row + 3 < OH))


def _depthwise_of(x, weight, bias, shape, stride, pad, dilation):
    x, weight = x.contiguous(), weight.contiguous()
    y = _torch.empty(shape, dtype=x.dtype, device=x.device)
    dims = x.dim() - 2
    given, out, window = _sizes(x, dims), _sizes(y, dims), _sizes(weight, dims)
    rows = 1 if window[1] == 1 or out[1] < 2 else 2 if out[1] < 4 else 4
    programs, block, blocks, warps = _grid(x.shape[0] * x.shape[1], out[0] * -(-out[1] // rows) * out[2])
    _depthwise_kernel[(programs,)](
        x, weight, weight if bias is None else bias.contiguous(), y, x.shape[1], *given, *out, *window, *stride, *pad,
        *dilation, bias is not None, rows, blocks, block, num_warps=warps,
    )
    return y


def _depthwise(graph):
    """A convolution with one filter a channel becomes one kernel that reads rows in their order."""
    for node in [n for n in graph.nodes if n.target in _CONVOLUTIONS]:
        read = _convolution(node)
        if read is None:
            continue
        image, weight, bias, stride, pad, dilation, groups, dims = read
        given, filters, out = image.meta["val"], weight.meta["val"], node.meta["val"]
        fits = _planes(image) and groups == given.shape[1] == filters.shape[0] and groups > 1 and out.numel() > 0
        if not fits or filters[0].numel() > 128 or filters.dtype != _torch.float32 or out.dtype != _torch.float32:
            continue
        three = _three(stride, dims, 1), _three(pad, dims, 0), _three(dilation, dims, 1)
        with graph.inserting_before(node):
            made = graph.call_function(_depthwise_of, (image, weight, bias, tuple(out.shape), *three))
        made.meta["val"] = _torch.empty_like(out, memory_format=_torch.contiguous_format)
        node.replace_all_uses_with(made)
        graph.erase_node(node)
'''

_CONVOLUTION = """

_CONVOLUTIONS = {_aten.conv1d.default: 1, _aten.conv2d.default: 2, _aten.conv3d.default: 3}


def _convolution(node):
    \"\"\"Image, filters, offset, stride, padding, dilation, groups, dimensions; None where one of them stands in another form.\"\"\"
    image, weight, bias, stride, pad, dilation, groups = (list(node.args) + [None, 1, 0, 1, 1][len(node.args) - 2 :])[:7]
    if node.kwargs or isinstance(pad, str) or len(node.meta["val"].shape) != _CONVOLUTIONS[node.target] + 2:
        return None
    return image, weight, bias, stride, pad, dilation, groups, _CONVOLUTIONS[node.target]
"""

_POINTWISE = '''

def _as_product(image, weight, bias):
    rows = image.flatten(2)
    filters = weight.flatten(1).expand(image.shape[0], -1, -1)
    if bias is None:
        out = _torch.bmm(filters, rows)
    else:
        out = _torch.baddbmm(bias.view(1, -1, 1), filters, rows)
    return out.view(image.shape[0], weight.shape[0], *image.shape[2:])


def _pointwise(graph):
    """A convolution of one pixel by one is a product of its filters and the image as a matrix."""
    for node in [n for n in graph.nodes if n.target in _CONVOLUTIONS]:
        read = _convolution(node)
        if read is None:
            continue
        image, weight, bias, stride, pad, dilation, groups, dims = read
        plain = _three(stride, dims, 1) == (1, 1, 1) and _three(pad, dims, 0) == (0, 0, 0) and groups == 1
        if not plain or weight.meta["val"][0, 0].numel() != 1 or not image.meta["val"].is_contiguous():
            continue
        with graph.inserting_before(node):
            made = graph.call_function(_as_product, (image, weight, bias))
        made.meta["val"] = _torch.empty_like(node.meta["val"], memory_format=_torch.contiguous_format)
        node.replace_all_uses_with(made)
        graph.erase_node(node)
'''

_FLIPPED = '''

_TRANSPOSED = {
    _aten.conv_transpose1d.default: _aten.conv1d.default, _aten.conv_transpose2d.input: _aten.conv2d.default,
    _aten.conv_transpose3d.input: _aten.conv3d.default,
}


def _turned(weight, groups):
    """Filters (in, out / groups, ...) of a transposed convolution as those (out, in / groups, ...) of a plain one, mirrored."""
    per, sizes = weight.shape[1], weight.shape[2:]
    split = weight.reshape(groups, weight.shape[0] // groups, per, *sizes).transpose(1, 2)
    return split.flip(list(range(3, split.dim()))).reshape(groups * per, weight.shape[0] // groups, *sizes)


def _flipped(graph):
    """A transposed convolution of stride 1 is a plain one with mirrored filters, for which there are more algorithms."""
    for node in [n for n in graph.nodes if n.target in _TRANSPOSED]:
        read = list(node.args) + [None, 1, 0, 0, 1, 1][len(node.args) - 2 :]
        image, weight, bias, stride, pad, beyond, groups, dilation = read
        dims = len(weight.meta["val"].shape) - 2
        stride, pad = _three(stride, dims, 1), _three(pad, dims, 0)[3 - dims :]
        dilation, beyond = _three(dilation, dims, 1)[3 - dims :], _three(beyond, dims, 0)
        around = [d * (k - 1) - p for d, k, p in zip(dilation, weight.meta["val"].shape[2:], pad)]
        if node.kwargs or stride != (1, 1, 1) or any(beyond) or min(around) < 0 or len(node.meta["val"].shape) != dims + 2:
            continue
        with graph.inserting_before(node):
            turned = graph.call_function(_turned, (weight, groups))
            made = graph.call_function(
                _TRANSPOSED[node.target], (image, turned, bias, [1] * dims, around, list(dilation), groups)
            )
        turned.meta["val"], made.meta["val"] = _turned(weight.meta["val"], groups), node.meta["val"]
        node.replace_all_uses_with(made)
        graph.erase_node(node)
'''

_HEAD = "\n\nimport operator as _operator\n"
# Way: (what the user's text must name, parts in the order of the file, rewrites in the order of application).
_POOLS = (
    ("(?is)(?=.*batch_?norm)(?=.*avg_?pool)", (_POOLING, _NORMS_LATER), ("_norms_later",)),
    ("[Pp]ool", (_POOLING,), ("_pooling",)),
    (r"(?s)(?=.*\bgroups\b)(?=.*[Cc]onv[123]d)", (_CONVOLUTION, _DEPTHWISE), ("_depthwise",)),
)
_TEXTS = {
    "summed": (summed.NAMED, summed.SUMMED),
    "flipped": ("[Cc]onv_?[Tt]ranspose", _FLIPPED),
    "pointwise": (r"[Cc]onv[123]d\([^\n]*(kernel_size ?= ?\(?1\b|, ?1 ?[,)])", _CONVOLUTION, _POINTWISE),
    "norms": (norms_read.NAMED, norms.KERNELS, norms.CALLS, norms_read.READ),
    "matvec": (matvec.NAMED, matvec.KERNEL),
    "triangular": (triangular.NAMED, triangular.FOUND, triangular.REACH, triangular.ROWS),
    "triangular_tiles": (triangular.NAMED, triangular.FOUND, triangular.REACH, triangular.BLOCKS),
}
REWRITES = ("triangular", "triangular_tiles", "summed", "flipped", "pools", "pointwise", "norms", "matvec")


def usable(way: str, user: str) -> bool:
    """Whether the user's text names anything that a way of this file could change; True for a way of another file."""
    if way == "benchmark":
        return re.search("[Cc]onv", user) is not None
    if way == "pools":
        return any(re.search(named, user) for named, _, _ in _POOLS)
    return way not in _TEXTS or re.search(_TEXTS[way][0], user) is not None


def rewrites(ways: tuple[str, ...], user: str) -> tuple[str, tuple[str, ...]]:
    """Text and names of the functions that change the traced graph for the ways of this file, in their order."""
    parts: list[str] = []
    names: list[str] = []
    for way in (way for way in REWRITES if way in ways):
        if way == "pools":
            kept = [entry for entry in _POOLS if re.search(entry[0], user)]
            parts += [_TRITON, *(part for _, texts, _ in kept for part in texts)]
            names += [name for _, _, found in kept for name in found]
        else:
            parts += _TEXTS[way][1:]
            names.append(f"_{way}")
    return ("" if not parts else "".join(dict.fromkeys((_HEAD, _THREE, *parts)))), tuple(names)
