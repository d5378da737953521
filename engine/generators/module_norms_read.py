"""Text of the module generator's way for norms: where a traced graph holds one, written out or as an operator. Builds text, runs nothing."""

from __future__ import annotations

NAMED = r"(?is)(layer_?norm|group_?norm|instance_?norm|rms_?norm|vector_norm|normalize|\bnorm\(|(?=.*\bmean\b)(?=.*(sqrt|\babs\b)))"
"""What a user's text must name."""

READ = '''

import math as _math

_NORMS = {
    _aten.layer_norm.default: [None, None, 1e-5], _aten.rms_norm.default: [None, None],
    _aten.group_norm.default: [None, None, 1e-5], _aten.instance_norm.default: [None, None, None, None, True, 0.1, 1e-5],
}
_QUOTIENTS = (_aten.div.Tensor, _aten.mul.Tensor)
_LARGE = float("inf")
# Operator: (number of the step in _stepped, its limits or factors where the call gives none).
_STEPS = {
    _aten.relu.default: (1, (0.0, _LARGE)), _aten.relu_.default: (1, (0.0, _LARGE)),
    _aten.hardtanh.default: (1, (-1.0, 1.0)), _aten.hardtanh_.default: (1, (-1.0, 1.0)),
    _aten.clamp.default: (1, (-_LARGE, _LARGE)), _aten.sigmoid.default: (2, ()), _aten.silu.default: (3, ()),
    _aten.silu_.default: (3, ()), _aten.leaky_relu.default: (4, (0.01,)), _aten.leaky_relu_.default: (4, (0.01,)),
    _aten.gelu.default: (5, ()), _aten.mul.Tensor: (6, (None,)),
}


def _value(node):
    return node.meta.get("val") if isinstance(node, _torch.fx.Node) else None


def _step(node):
    """An elementwise operator as (number, two numbers); None for any other."""
    number, usual = _STEPS.get(getattr(node, "target", None), (0, ()))
    if not number or node.kwargs or _value(node) is None or len(node.args) > 1 + len(usual):
        return None
    given = list(node.args[1:]) + list(usual[len(node.args) - 1 :])
    given = [usual[place] if one is None else one for place, one in enumerate(given)]
    fits = all(isinstance(one, (int, float)) for one in given)
    return (number, *(float(one) for one in (given + [0.0, 0.0])[:2])) if fits else None


def _shape_of(x, dims):
    """x as (outer, reduced, inner); None where the reduced dimensions do not stand side by side."""
    sizes = list(_value(x).shape)
    dims = sorted(d % len(sizes) for d in dims) if dims else list(range(len(sizes)))
    if not sizes or dims != list(range(dims[0], dims[-1] + 1)):
        return None
    return tuple(_math.prod(part) for part in (sizes[: dims[0]], sizes[dims[0] : dims[-1] + 1], sizes[dims[-1] + 1 :]))


def _operator_read(node):
    """(x, weight, bias, sizes, groups, pixels a channel, moment, divisor) of a norm that is one operator."""
    usual = _NORMS[node.target]
    args = list(node.args) + usual[len(node.args) - (1 if node.target is _aten.instance_norm.default else 2) :]
    x, sizes = args[0], tuple(_value(args[0]).shape)
    if node.target in (_aten.layer_norm.default, _aten.rms_norm.default):
        centred, width = node.target is _aten.layer_norm.default, max(1, _math.prod(args[1]))
        eps = args[4] if centred else args[3] if args[3] is not None else _torch.finfo(_torch.float32).eps
        whole = _math.prod(sizes) // width, width, 1
        return x, args[2], args[3] if centred else None, whole, 1, 1, 0 if centred else 2, (1.0 / width, eps, True, 0.0)
    if node.target is _aten.instance_norm.default:
        if args[3] is not None or args[4] is not None or not args[5] or len(sizes) < 3:
            return None
        groups, weight, bias, eps = sizes[1], args[1], args[2], args[7]
    else:
        groups, weight, bias, eps = args[1:5]
    pixels = _math.prod(sizes[2:])
    width = max(1, sizes[1] // groups * pixels)
    return x, weight, bias, (sizes[0] * groups, width, 1), groups, pixels, 0, (1.0 / width, eps, True, 0.0)


def _powered(node):
    """What is squared (2) or taken without its sign (1)."""
    target, first = getattr(node, "target", None), (list(getattr(node, "args", ())) + [None])[0]
    if target is _aten.abs.default:
        return first, 1
    square = target is _aten.pow.Tensor_Scalar and node.args[1] == 2 or target is _aten.square.default
    return (first, 2) if square or target is _aten.mul.Tensor and node.args[1] is first else (None, 0)


def _divided(x, by, inverse):
    """(dimensions, moment, divisor) where `by` is a norm of x around 0, or its `inverse`; else None."""
    floor, eps, root = 0.0, 0.0, False
    while getattr(by, "target", None) in (_aten.expand_as.default, _aten.expand.default) and not inverse:
        by = by.args[0]
    if getattr(by, "target", None) is _aten.clamp_min.default and not inverse:
        by, floor = by.args
    target = getattr(by, "target", None)
    if target is _aten.linalg_vector_norm.default and not inverse and not by.kwargs:
        order, dims, kept = (list(by.args[1:]) + [2, None, False][len(by.args) - 1 :])[:3]
        whole = dims is None or len(dims) == len(_value(x).shape)
        return (dims, int(order), (1.0, 0.0, order == 2, floor)) if by.args[0] is x and order in (1, 2) and (kept or whole) else None
    if target is (_aten.rsqrt.default if inverse else _aten.sqrt.default):
        by, root = by.args[0], True
        if by.target is _aten.add.Tensor and isinstance(by.args[1], (int, float)) and not by.kwargs:
            by, eps = by.args
    elif inverse:
        return None
    if getattr(by, "target", None) not in (_aten.mean.dim, _aten.sum.dim_IntList) or by.kwargs or len(by.args) < 3 or not by.args[2]:
        return None
    of, moment = _powered(by.args[0])
    sizes = _shape_of(x, by.args[1])
    over = 1.0 / max(1, sizes[1]) if sizes and by.target is _aten.mean.dim else 1.0
    return (by.args[1], moment, (over, float(eps), root, float(floor))) if of is x and sizes else None


def _norm_read(node):
    """As _operator_read, of an operator or of x / norm(x) written out; None where there is none that fits."""
    if node.target in _NORMS:
        found = _operator_read(node)
    else:
        found, first, second = None, *node.args[:2]
        if node.kwargs or not all(_value(one) is not None for one in (first, second)):
            return None
        turns = ((first, second, False),) if node.target is _aten.div.Tensor else ((first, second, True), (second, first, True))
        for x, by, inverse in turns:
            read = _divided(x, by, inverse)
            if read is not None and len(by.users) == 1 and _shape_of(x, read[0]) is not None:
                found = (x, None, None, _shape_of(x, read[0]), 1, 1, *read[1:])
    return found if found is not None and _norm_fits(node, *found[:4]) else None


def _norm_fits(node, x, weight, bias, sizes):
    runs = _value(x).is_cuda or _os.environ.get("TRITON_INTERPRET") == "1"
    same = all(_value(one) is not None for one in (weight, bias) if one is not None)
    values = [_value(one) for one in (x, node, weight, bias) if one is not None]
    plain = same and all(value.dtype == _torch.float32 and value.is_contiguous() for value in values)
    high = sizes[1] if sizes[2] > 1 else 1
    whole = 0 < sizes[0] * sizes[1] * sizes[2] == _value(node).numel() and sizes[1] * sizes[2] < 2**31 - 2**21
    return runs and plain and whole and high <= 512


def _weighted(node, found):
    """A factor for each place of a row becomes the norm's weight; the node that then holds the answer, and what is read."""
    last = next(iter(node.users)) if len(node.users) == 1 else None
    if last is None or last.target is not _aten.mul.Tensor or found[1] is not None or found[3][2] > 1 or found[4] > 1:
        return node, found
    factor = last.args[1] if last.args[0] is node else last.args[0]
    value, sizes = _value(factor), _value(node).shape
    if value is None or value.dim() == 0 or value.numel() != found[3][1] or value.shape != sizes[-value.dim() :]:
        return node, found
    return (last, (found[0], factor, *found[2:])) if _norm_fits(last, found[0], factor, None, found[3]) else (node, found)


def _norms(graph):
    """Norms become a pass for the statistics, where a row is too long to be held, and one that divides, with the steps beside them."""
    for node in [n for n in graph.nodes if n.target in _NORMS or n.target in _QUOTIENTS]:
        found = _norm_read(node) if node.users else None
        if found is None:
            continue
        last, found = _weighted(node, found) if found[2] is None else (node, found)
        x, before, after = found[0], (0, 0.0, 0.0), (0, 0.0, 0.0)
        user = next(iter(last.users)) if len(last.users) == 1 else None
        if _step(user) is not None and user.args[0] is last:
            last, after = user, _step(user)
        if _step(x) is not None and found[3][2] == 1 and len(x.users) == 1 and not x.target._schema.is_mutable:
            plain = _value(x.args[0])
            if plain.is_contiguous() and (plain.dtype, plain.shape) == (_value(x).dtype, _value(x).shape):
                before, x = _step(x), x.args[0]
        with graph.inserting_before(last):
            made = graph.call_function(_norm_of, (x, *found[1:], before, after))
        made.meta["val"] = last.meta["val"]
        last.replace_all_uses_with(made)
        graph.erase_node(last)
    graph.eliminate_dead_code()
'''
