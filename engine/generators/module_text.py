"""Sources that call a module in another way: the user's text, then only the parts that a way needs. Builds text, runs nothing."""

from __future__ import annotations

import ast
import re

from ...problems.module_source import MARK, SCOPED, ModuleCall, spec
from ...problems.sources import PRECISION_LINES
from . import module_rewrites
from .module_convolutions import BENCHMARK
from .module_rows import rows_of

WAYS_LINE = "_WAYS = "
# In the order of application: each part wraps what the ones before it define.
ORDER = (
    "channels_last", "folded", *module_rewrites.REWRITES, "fused_attention", "rows", "in_place", "compile", "compile_autotune",
    "reduce_overhead", "cuda_graph", "benchmark",
)  # fmt: skip
_GRAPH_WAYS = ("folded", "fused_attention", "rows", "in_place", *module_rewrites.REWRITES)
_COMPILE_WAYS = {
    "compile": "default",
    "compile_autotune": "max-autotune-no-cudagraphs",
    "reduce_overhead": "reduce-overhead",
}

_CALL = """

def operation(*tensors):
    state = dict(zip(_STATE, tensors[_TENSORS:]))
    with _torch.no_grad():
        return _torch.func.functional_call(_MODEL, state, _arguments(tensors[:_TENSORS]))
"""

_CHANNELS_LAST = '''

def _channels_last(value):
    """Images and filters with the channel as the fastest dimension, which tensor cores read without a transposition of their own."""
    formats = {4: _torch.channels_last, 5: _torch.channels_last_3d}
    return value.contiguous(memory_format=formats[value.dim()]) if value.dim() in formats else value


_by_rows = operation


def operation(*tensors):
    """The answer lies row by row again: whoever reads it need not know."""
    return _by_rows(*[_channels_last(value) for value in tensors]).contiguous()
'''

_TRACED = '''

_aten = _torch.ops.aten
_TRACES = {}
_by_module = operation


def operation(*tensors):
    """The module's operators on tensors of these sizes, traced once and rewritten."""
    key = tuple((value.shape, value.stride(), value.dtype) for value in tensors)
    if key not in _TRACES:
        from torch.fx.experimental.proxy_tensor import make_fx

        with _torch.no_grad():
            traced = make_fx(_by_module, pre_dispatch=True)(*tensors)
        for rewrite in _REWRITES:
            rewrite(traced.graph)
        traced.graph.eliminate_dead_code()
        traced.recompile()
        _TRACES[key] = traced
    with _torch.no_grad():
        return _TRACES[key](*tensors)


def _only(node, user):
    return len(node.users) == 1 and user in node.users
'''

_FOLDED = '''

def _folded(graph):
    """A norm with kept statistics after a convolution becomes part of its filters: one pass over the image less."""
    for norm in [n for n in graph.nodes if n.target is _aten.batch_norm.default]:
        conv, weight, bias, mean, variance, training, _, eps = norm.args[:8]
        plain = getattr(conv, "target", None) in (_aten.conv1d.default, _aten.conv2d.default, _aten.conv3d.default)
        if training or not plain or not _only(conv, norm) or mean is None or variance is None:
            continue
        image, filters, offset = (list(conv.args) + [None])[:3]
        dims = len(filters.meta["val"].shape)
        with graph.inserting_before(norm):
            scale = graph.call_function(_aten.rsqrt.default, (graph.call_function(_aten.add.Scalar, (variance, eps)),))
            if weight is not None:
                scale = graph.call_function(_aten.mul.Tensor, (scale, weight))
            wide = graph.call_function(_aten.view.default, (scale, [-1] + [1] * (dims - 1)))
            scaled = graph.call_function(_aten.mul.Tensor, (filters, wide))
            moved = graph.call_function(_aten.neg.default, (mean,))
            if offset is not None:
                moved = graph.call_function(_aten.add.Tensor, (moved, offset))
            moved = graph.call_function(_aten.mul.Tensor, (moved, scale))
            if bias is not None:
                moved = graph.call_function(_aten.add.Tensor, (moved, bias))
            whole = graph.call_function(conv.target, (image, scaled, moved, *conv.args[3:]), dict(conv.kwargs))
        norm.replace_all_uses_with(whole)
        graph.erase_node(norm)
'''

_IN_PLACE = '''

def _in_place(graph):
    """Elementwise operators write over an operand that nothing else reads, has memory of its own, and is as large as the result."""
    pairs = {
        _aten.relu.default: _aten.relu_.default, _aten.sigmoid.default: _aten.sigmoid_.default,
        _aten.tanh.default: _aten.tanh_.default, _aten.silu.default: _aten.silu_.default,
        _aten.hardtanh.default: _aten.hardtanh_.default, _aten.leaky_relu.default: _aten.leaky_relu_.default,
        _aten.add.Tensor: _aten.add_.Tensor, _aten.mul.Tensor: _aten.mul_.Tensor, _aten.sub.Tensor: _aten.sub_.Tensor,
        _aten.div.Tensor: _aten.div_.Tensor, _aten.clamp.default: _aten.clamp_.default,
    }
    for node in graph.nodes:
        over = node.args[0] if node.args and isinstance(node.args[0], _torch.fx.Node) else None
        if node.target not in pairs or over is None or over.op != "call_function" or not _only(over, node):
            continue
        if node.args.count(over) > 1 or not isinstance(over.target, _torch._ops.OpOverload):
            continue
        own = all(r.alias_info is None for r in over.target._schema.returns) and not over.target.is_view
        # Some operators hand their operand back where there is nothing to do; what was written over itself may be so again.
        own = own and over.target not in (_aten.contiguous.default, _aten.to.dtype, _aten.dropout.default, _aten.reshape.default)
        own = own or over.target in pairs.values()
        before, after = over.meta.get("val"), node.meta.get("val")
        if own and before is not None and (before.shape, before.dtype) == (after.shape, after.dtype):
            node.target = pairs[node.target]
'''

_ATTENTION = '''

def _fused_attention(graph):
    """softmax(q k^T * scale, masked) v becomes the fused operator, which never writes the scores."""
    products = (_aten.matmul.default, _aten.bmm.default)
    for soft in [n for n in graph.nodes if n.target is _aten.softmax.int]:
        if soft.args[1] not in (-1, len(soft.meta["val"].shape) - 1):
            continue
        weights = soft
        while len(weights.users) == 1 and next(iter(weights.users)).target is _aten.dropout.default:
            weights = next(iter(weights.users))
        last = next(iter(weights.users)) if len(weights.users) == 1 else None
        if last is None or last.target not in products or last.args[0] is not weights:
            continue
        scores, scale, keep, added = soft.args[0], 1.0, None, None
        while len(scores.users) == 1 and scores.target not in products:
            if scores.target is _aten.masked_fill.Scalar and scores.args[2] == -float("inf") and keep is None and scale == 1.0:
                keep, scores = scores.args[1], scores.args[0]
            elif scores.target is _aten.mul.Tensor and isinstance(scores.args[1], (int, float)):
                scale, scores = scale * scores.args[1], scores.args[0]
            elif scores.target is _aten.div.Tensor and isinstance(scores.args[1], (int, float)):
                scale, scores = scale / scores.args[1], scores.args[0]
            elif scores.target is _aten.add.Tensor and scale == 1.0 and added is None and keep is None and not scores.kwargs:
                scores, added = scores.args
            else:
                break
        if scores.target not in products or len(scores.users) != 1 or (keep is not None and added is not None):
            continue
        query, key = scores.args
        with graph.inserting_before(last):
            mask = added if keep is None else graph.call_function(_aten.logical_not.default, (keep,))
            key = graph.call_function(_aten.transpose.int, (key, -2, -1))
            fused = graph.call_function(
                _aten.scaled_dot_product_attention.default, (query, key, last.args[1], mask), {"scale": scale}
            )
        last.replace_all_uses_with(fused)
        graph.erase_node(last)
'''

_COMPILED = """

operation = _torch.compile(operation, mode="{mode}", dynamic=False)
"""

_MARKED = '''_shared = operation


def operation(*tensors):
    """Its answer lies in memory that the next call writes over: it is copied out."""
    _torch.compiler.cudagraph_mark_step_begin()
    return _shared(*tensors).clone()
'''

_REPLAYED = '''

_GRAPHS = {}
_launched = operation


def operation(*tensors):
    """All launches as one captured graph for tensors of these sizes; inputs are copied in, the answer is copied out."""
    if not tensors[0].is_cuda or _torch.cuda.is_current_stream_capturing():
        return _launched(*tensors)
    key = tuple((value.shape, value.stride(), value.dtype) for value in tensors)
    if key not in _GRAPHS:
        _GRAPHS[key] = _captured(tensors)
    graph, held, out = _GRAPHS[key]
    _torch._foreach_copy_(held, list(tensors))
    graph.replay()
    return out.clone()


def _captured(tensors):
    held = [_torch.empty_strided(v.shape, v.stride(), dtype=v.dtype, device=v.device) for v in tensors]
    _torch._foreach_copy_(held, list(tensors))
    stream = _torch.cuda.Stream()
    stream.wait_stream(_torch.cuda.current_stream())
    with _torch.cuda.stream(stream):
        for _ in range(3):
            _launched(*held)
    _torch.cuda.current_stream().wait_stream(stream)
    graph = _torch.cuda.CUDAGraph()
    with _torch.cuda.graph(graph):
        out = _launched(*held)
    return graph, held, out
'''

_PARTS = {"folded": _FOLDED, "in_place": _IN_PLACE, "fused_attention": _ATTENTION}


def is_module(source: str) -> bool:
    """Whether a source is a module's file with the part that calls it."""
    return MARK in source and "\n_STATE = (" in source


def ways_of(source: str) -> tuple[str, ...]:
    """The ways that a source calls its module in, beyond the plain one."""
    lines = [line for line in source.split("\n") if line.startswith(WAYS_LINE)]
    return tuple(ast.literal_eval(lines[0].removeprefix(WAYS_LINE))) if lines else ()


def _usable(way: str, user: str) -> bool:
    return bool(rows_of(user)) if way == "rows" else module_rewrites.usable(way, user)


def with_ways(source: str, ways: tuple[str, ...], precision: str) -> str:
    """The same module called in these ways at this precision, whatever the source did before; ways that its text has no use for are left out."""
    user, _, rest = source.partition(MARK)
    ordered = tuple(way for way in ORDER if way in ways and _usable(way, user))
    text = spec(user, _call_of(rest))
    text = re.sub(r'^PRECISION = "\w+"$', f'PRECISION = "{precision}"', text, flags=re.MULTILINE)
    text += f"{WAYS_LINE}({''.join(f'{way!r}, ' for way in ordered).rstrip()})\n" + _CALL
    if "channels_last" in ordered:
        text += _CHANNELS_LAST
    graphs = [way for way in ordered if way in _GRAPH_WAYS]
    if graphs:
        added, names = module_rewrites.rewrites(ordered, user)
        parts = {**_PARTS, "rows": rows_of(user)}
        text += _TRACED + added + "".join(parts[way] for way in graphs if way in parts)
        own = tuple(f"_{way}" for way in graphs if way in parts and way != "folded")
        names = ("_folded",) * ("folded" in graphs) + names + own
        text += f"\n\n_REWRITES = ({''.join(f'{name}, ' for name in names).rstrip()})\n"
    for way in ordered:
        if way in _COMPILE_WAYS:
            text += _COMPILED.format(mode=_COMPILE_WAYS[way]) + (_MARKED if way == "reduce_overhead" else "")
    if "cuda_graph" in ordered:
        text += _REPLAYED
    if "benchmark" in ordered:
        text += BENCHMARK
    return text + SCOPED.format(before="_ready(tensors[0].device)\n    ", call="operation(*tensors)")


def precision_of(source: str) -> str:
    """What the source's precision line states."""
    return next((PRECISION_LINES[line] for line in source.split("\n") if line in PRECISION_LINES), "ieee")


def _call_of(rest: str) -> ModuleCall:
    def read(name: str) -> object:
        found = re.search(rf"^{name} = (.*)$", rest, flags=re.MULTILINE)
        return None if found is None else ast.literal_eval(found.group(1))

    tensors, fixed, state, quiet = (read(name) for name in ("_TENSORS", "_FIXED", "_STATE", "_EVAL"))
    assert isinstance(tensors, int) and isinstance(fixed, dict) and isinstance(state, tuple) and isinstance(quiet, str)
    return ModuleCall(tensors=tensors, fixed=fixed, state=state, eval=quiet)
