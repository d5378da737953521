"""Text of the `rows` way for softmax along a dimension that is not the last: all of it for neighbouring places at once. Runs nothing."""

from __future__ import annotations

SOFTMAX = '''

@triton.jit
def _softmax_across_kernel(
    x, y, high, wide, LOGGED: tl.constexpr, SQUASHED: tl.constexpr, HIGH: tl.constexpr, WIDE: tl.constexpr
):
    across = tl.cdiv(wide, WIDE)
    program = tl.program_id(0)
    down, over = tl.arange(0, HIGH), program % across * WIDE + tl.arange(0, WIDE)
    there = (down[:, None] < high) & (over[None, :] < wide)
    at = (program // across).to(tl.int64) * high * wide + down[:, None] * wide + over[None, :]
    v = tl.load(x + at, mask=there, other=-float("inf"))
    apart = v - tl.max(v, 0)[None, :]
    power = tl.exp(apart)
    total = tl.sum(power, 0)[None, :]
    out = apart - tl.log(total) if LOGGED else power / total
    if SQUASHED:
        out = 1.0 / (1.0 + tl.exp(-out))
    tl.store(y + at, out, mask=there)


def _softmax_across(value, dim, logged, squashed):
    """Along any dimension; torch's own where the tensor is not float32 without gaps or the dimension is long."""
    high, runs = value.shape[dim] if value.dim() else 0, value.is_cuda or _os.environ.get("TRITON_INTERPRET") == "1"
    plain = value.dtype == _torch.float32 and value.is_contiguous() and 0 < value.numel() < 2**31
    if not runs or not plain or high > 512:
        out = (_torch.log_softmax if logged else _torch.softmax)(value, dim)
        return _torch.sigmoid(out) if squashed else out
    out, wide = _torch.empty_like(value), 1
    for size in value.shape[dim % value.dim() + 1 :]:
        wide *= size
    tall = triton.next_power_of_2(high)
    block = min(triton.next_power_of_2(wide), max(16, 8192 // tall))
    grid = (value.numel() // (high * wide) * -(-wide // block),)
    warps = 8 if tall * block > 2048 else 4
    _softmax_across_kernel[grid](value, out, high, wide, logged, squashed, tall, block, num_warps=warps)
    return out


def _squashed(graph):
    """A sigmoid of a softmax is taken where the softmax is written."""
    for node in [n for n in graph.nodes if n.target is _aten.softmax.int]:
        user = next(iter(node.users)) if len(node.users) == 1 else None
        if getattr(user, "target", None) is not _aten.sigmoid.default or len(node.args) > 2 or node.kwargs:
            continue
        with graph.inserting_before(user):
            made = graph.call_function(_softmax_rows, (*node.args, False, True))
        made.meta["val"] = user.meta["val"]
        user.replace_all_uses_with(made)
        graph.erase_node(user)
        graph.erase_node(node)
'''
