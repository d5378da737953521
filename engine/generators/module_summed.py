"""Text of the module generator's way for a mean or sum over what a convolution gives: the image is summed first. Builds text, runs nothing."""

from __future__ import annotations

NAMED = r"(?is)(?=.*conv)(?=.*(\bmean\b|\bsum\b|adaptive_?avg_?pool))"
"""What a user's text must name."""

SUMMED = '''

_LINEAR = {
    _aten.conv1d.default: False, _aten.conv2d.default: False, _aten.conv3d.default: False,
    _aten.conv_transpose1d.default: True, _aten.conv_transpose2d.input: True, _aten.conv_transpose3d.input: True,
}
_SUMS = {_aten.mean.dim: True, _aten.sum.dim_IntList: False}
_TO_ONE = {_aten.adaptive_avg_pool1d.default: 1, _aten.adaptive_avg_pool2d.default: 2, _aten.adaptive_avg_pool3d.default: 3}


def _sums_by_tap(image, dim, taps, ranges):
    """Sums over one dimension for each tap's range of it, channel by channel: the whole sum less the few rows that a tap never meets."""
    whole, size, found = image.sum(dim, keepdim=True), image.shape[dim], []
    for first, last in ranges:
        if last - first < size // 2:
            part = image.narrow(dim, first, max(0, last - first)).sum(dim, keepdim=True)
        else:
            part = whole
            if first > 0:
                part = part - image.narrow(dim, 0, first).sum(dim, keepdim=True)
            if last < size:
                part = part - image.narrow(dim, last, size - last).sum(dim, keepdim=True)
        found.append(part)
    return _torch.stack(found, 2).flatten(1, 2)


def _sum_of(image, weight, bias, stride, pad, beyond, dilation, groups, transposed, sizes, dims, mean):
    """The mean or sum over `dims` of what a convolution gives, by one in fewer dimensions of sums of the image."""
    count, stride, pad, beyond, dilation = 1, list(stride), list(pad), list(beyond), list(dilation)
    for dim in dims:
        at, taps, given, out = dim - 2, weight.shape[dim], image.shape[dim], sizes[dim]
        s, p, d = stride[at], pad[at], dilation[at]
        if transposed:
            ranges = [(-((k * d - p) // s), (out - 1 + p - k * d) // s + 1) for k in range(taps)]
        else:
            ranges = [(k * d - p, out + k * d - p) for k in range(taps)]
        ranges = [(min(given, max(0, first)), min(given, max(0, last))) for first, last in ranges]
        image = _sums_by_tap(image, dim, taps, ranges)
        moved = weight.movedim(dim, 1 if transposed else 2)
        weight = (moved.flatten(0, 1) if transposed else moved.flatten(1, 2)).unsqueeze(dim)
        stride[at], pad[at], beyond[at], dilation[at], count = 1, 0, 0, 1, count * out
    left = [dim for dim in range(2, image.dim()) if dim not in dims] or [2]
    gone = [dim for dim in range(2, image.dim()) if dim not in left]
    for dim in reversed(gone):
        image, weight = image.squeeze(dim), weight.squeeze(dim)
    kept = [[values[dim - 2] for dim in left] for values in (stride, pad, beyond, dilation)]
    name = f"conv{'_transpose' if transposed else ''}{len(left)}d"
    more = (kept[2], groups, kept[3]) if transposed else (kept[3], groups)
    made = getattr(_torch, name)(image, weight, None, kept[0], kept[1], *more)
    made = made / count if mean else made
    if bias is not None:
        made = made + (bias if mean else bias * count).view(-1, *[1] * len(left))
    for dim in gone:
        made = made.unsqueeze(dim)
    return made


def _reduced(node):
    """What is reduced over spatial dimensions: (operand, dimensions, kept as size 1, mean); None for another operator."""
    operand = node.args[0] if node.args and isinstance(node.args[0], _torch.fx.Node) else None
    value = operand.meta.get("val") if operand is not None else None
    if node.target in _TO_ONE and value is not None and set(node.args[1]) == {1}:
        return operand, list(range(value.dim() - _TO_ONE[node.target], value.dim())), True, True
    if node.target not in _SUMS or value is None or set(node.kwargs) or len(node.args) < 2 or not node.args[1]:
        return None
    dims = sorted(dim % value.dim() for dim in node.args[1])
    return operand, dims, len(node.args) > 2 and bool(node.args[2]), _SUMS[node.target]


def _summed(graph):
    """A mean over places of a convolution's result is a convolution of the image's sums: as many products fewer as places are summed."""
    for node in list(graph.nodes):
        read = _reduced(node)
        if read is None:
            continue
        conv, dims, keep, mean = read
        scale, below = None, conv
        if conv.target in (_aten.mul.Tensor, _aten.div.Tensor) and isinstance(conv.args[1], (int, float)):
            scale, below = conv, conv.args[0]
        if getattr(below, "target", None) not in _LINEAR or below.kwargs or len(below.users) != 1 or len(conv.users) != 1:
            continue
        transposed, out = _LINEAR[below.target], below.meta["val"]
        spatial = out.dim() - 2
        defaults = [None, 1, 0, 0, 1, 1] if transposed else [None, 1, 0, 1, 1]
        given = list(below.args) + defaults[len(below.args) - 2 :]
        image, weight, bias, stride, pad = given[:5]
        beyond, groups, dilation = given[5:] if transposed else (0, given[6], given[5])
        if out.dtype != _torch.float32 or len(weight.meta["val"].shape) != out.dim() or min(dims) < 2:
            continue
        stride, pad, beyond, dilation = [
            [value] * spatial if isinstance(value, int) else list(value) * (spatial if len(value) == 1 else 1)
            for value in (stride, pad, beyond, dilation)
        ]
        if not transposed and any(stride[dim - 2] != 1 for dim in dims):
            continue
        with graph.inserting_before(node):
            made = graph.call_function(
                _sum_of,
                (image, weight, bias, stride, pad, beyond, dilation, groups, transposed, tuple(out.shape), dims, mean),
            )
            if scale is not None:
                made = graph.call_function(scale.target, (made, scale.args[1]))
            if not keep:
                for dim in reversed(dims):
                    made = graph.call_function(_aten.squeeze.dim, (made, dim))
        made.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(made)
        graph.erase_node(node)
        graph.eliminate_dead_code()
'''
