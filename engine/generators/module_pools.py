"""Text of the module generator's ways for pooling: one kernel a pool, and norms of the batch after their average. Builds text, runs nothing."""

from __future__ import annotations

POOLING = '''

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

NORMS_LATER = '''

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
