"""Text of the module generator's ways for convolutions: one kernel where each channel has its filter, cheaper equivalents. Builds text, runs nothing."""

from __future__ import annotations

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

CONVOLUTION = """

_CONVOLUTIONS = {_aten.conv1d.default: 1, _aten.conv2d.default: 2, _aten.conv3d.default: 3}


def _convolution(node):
    \"\"\"Image, filters, offset, stride, padding, dilation, groups, dimensions; None where one of them stands in another form.\"\"\"
    image, weight, bias, stride, pad, dilation, groups = (list(node.args) + [None, 1, 0, 1, 1][len(node.args) - 2 :])[:7]
    if node.kwargs or isinstance(pad, str) or len(node.meta["val"].shape) != _CONVOLUTIONS[node.target] + 2:
        return None
    return image, weight, bias, stride, pad, dilation, groups, _CONVOLUTIONS[node.target]
"""

DEPTHWISE = '''

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

POINTWISE = '''

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

FLIPPED = '''

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
