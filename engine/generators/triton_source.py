"""A Triton source as libcst reads it: its kernels, launches and the integers that may be turned. Never imports or runs the source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import libcst as cst
import libcst.matchers as m
import msgspec

Kind = Literal["tile", "warps", "stages", "group"]
_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("warps", re.compile(r"(num_)?warps\Z", re.IGNORECASE)),
    ("stages", re.compile(r"(num_)?stages\Z", re.IGNORECASE)),
    ("group", re.compile(r"group\w*\Z", re.IGNORECASE)),
    ("tile", re.compile(r"(block|tile|rows|cols|[xyzr]?block)\w*\Z", re.IGNORECASE)),
)
DEFAULT_WARPS, DEFAULT_STAGES = 4, 3
"""What Triton launches with where a launch says nothing."""


class Knob(msgspec.Struct, frozen=True, kw_only=True):
    """An integer of the source that sets a kernel's shape. `node` is where it stands; None: each of `launches` gets the keyword."""

    name: str
    kind: Kind
    value: int
    node: cst.Integer | None = None
    launches: tuple[cst.Call, ...] = ()


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """`kernels` are the jitted functions by name, `language` the names that triton.language goes by in the source."""

    module: cst.Module
    language: frozenset[str]
    kernels: dict[str, cst.FunctionDef]
    launches: tuple[cst.Call, ...]
    knobs: tuple[Knob, ...]


def read(source: str) -> Reading | None:
    """The reading of a source with at least one Triton kernel that it launches; None for any other, and for what is no Python."""
    try:
        module = cst.parse_module(source)
    except (cst.ParserSyntaxError, RecursionError, ValueError):
        return None
    functions = [f for f in m.findall(module, m.FunctionDef()) if isinstance(f, cst.FunctionDef)]
    kernels = {f.name.value: f for f in functions if _decorated(f, "jit")}
    tuned = {name for name, f in kernels.items() if _decorated(f, "autotune") or _decorated(f, "heuristics")}
    calls = [c for c in m.findall(module, m.Call(func=m.Subscript(value=m.Name()))) if isinstance(c, cst.Call)]
    launches = tuple(c for c in calls if kernel_of(c) in kernels)
    if not launches:
        return None
    turned = tuple(c for c in launches if kernel_of(c) not in tuned)
    hosts = [f for f in functions if f.name.value not in kernels]
    knobs = (*_module_knobs(module), *(knob for host in hosts for knob in _host_knobs(host, turned)))
    return Reading(
        module=module,
        language=_language(module),
        kernels=kernels,
        launches=launches,
        knobs=(*knobs, *_absent(turned, knobs, module)),
    )


def kernel_of(launch: cst.Call) -> str:
    """The name of the kernel that a call `kernel[grid](...)` launches; "" for any other call."""
    func = launch.func
    return func.value.value if isinstance(func, cst.Subscript) and isinstance(func.value, cst.Name) else ""


def kind_of(name: str) -> Kind | None:
    """What a name sets, by the words that Triton's own kernels use."""
    return next((kind for kind, pattern in _KINDS if pattern.match(name)), None)


def _decorated(function: cst.FunctionDef, word: str) -> bool:
    """By `@triton.<word>`, `@<word>` or either with arguments."""
    named = m.Name(word) | m.Attribute(value=m.Name("triton"), attr=m.Name(word))
    return any(m.matches(d.decorator, named | m.Call(func=named)) for d in function.decorators)


def _language(module: cst.Module) -> frozenset[str]:
    """Names bound to triton.language by the module's imports."""
    found = set[str]()
    for node in m.findall(module, m.Import() | m.ImportFrom()):
        if isinstance(node, cst.Import):
            for alias in node.names:
                if alias.evaluated_name == "triton.language" and alias.evaluated_alias:
                    found.add(alias.evaluated_alias)
        elif isinstance(node, cst.ImportFrom) and m.matches(node, m.ImportFrom(module=m.Name("triton"))):
            names = () if isinstance(node.names, cst.ImportStar) else node.names
            found |= {a.evaluated_alias or a.evaluated_name for a in names if a.evaluated_name == "language"}
    return frozenset(found)


def _assigned(statement: cst.CSTNode) -> tuple[str, cst.BaseExpression] | None:
    """(name, value) of `name = value`, alone on its line; None for any other statement."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    only = statement.body[0]
    if not isinstance(only, cst.Assign) or len(only.targets) != 1 or not isinstance(only.targets[0].target, cst.Name):
        return None
    return only.targets[0].target.value, only.value


def _module_knobs(module: cst.Module) -> Iterator[Knob]:
    """Integers of the module's constants and of its dictionaries of constants, of names that are assigned once."""
    found = [pair for statement in module.body if (pair := _assigned(statement)) is not None]
    for name, value in found:
        if [other for other, _ in found].count(name) != 1:
            continue
        if isinstance(value, cst.Integer) and _used(module, name):
            yield from _knob(name, value)
        if isinstance(value, cst.Dict):
            for element in value.elements:
                if isinstance(element, cst.DictElement) and isinstance(element.key, cst.SimpleString):
                    yield from _knob(str(element.key.evaluated_value), element.value)


def _used(module: cst.Module, name: str) -> bool:
    return len(m.findall(module, m.Name(name))) > 1


def _host_knobs(host: cst.FunctionDef, launches: tuple[cst.Call, ...]) -> Iterator[Knob]:
    """In a function that launches: its own constants, and literals of a launch that stand nowhere else in it."""
    inside = {id(node) for node in m.findall(host, m.Call())}
    own = [launch for launch in launches if id(launch) in inside]
    if not own:
        return
    body = host.body.body if isinstance(host.body, cst.IndentedBlock) else ()
    assigned = [pair for statement in body if (pair := _assigned(statement)) is not None]
    for name, value in assigned:
        if [other for other, _ in assigned].count(name) == 1:
            yield from _knob(name, value)
    literals = [node.value for node in m.findall(host, m.Integer()) if isinstance(node, cst.Integer)]
    for launch in own:
        for argument in launch.args:
            name = "" if argument.keyword is None else argument.keyword.value
            alone = isinstance(argument.value, cst.Integer) and literals.count(argument.value.value) == 1
            if alone or kind_of(name) in ("warps", "stages"):
                yield from _knob(name, argument.value)


def _knob(name: str, value: cst.BaseExpression) -> Iterator[Knob]:
    kind = kind_of(name)
    if kind is None or not isinstance(value, cst.Integer):
        return
    number = value.evaluated_value
    whole = number >= 1 and (kind in ("stages", "group") or number & (number - 1) == 0)
    if whole:
        yield Knob(name=name, kind=kind, value=number, node=value)


def _absent(launches: tuple[cst.Call, ...], knobs: tuple[Knob, ...], module: cst.Module) -> Iterator[Knob]:
    """Warps and stages that no launch states, so that the keyword can be added to all of them."""
    for name, kind, value in (("num_warps", "warps", DEFAULT_WARPS), ("num_stages", "stages", DEFAULT_STAGES)):
        silent = tuple(c for c in launches if not _states(c, name, module))
        if silent and len(silent) == len(launches) and not any(knob.kind == kind for knob in knobs):
            yield Knob(name=name, kind=kind, value=value, launches=silent)  # type: ignore[arg-type]


def _states(launch: cst.Call, name: str, module: cst.Module) -> bool:
    """Whether a launch has the keyword, or unpacks something that may: any but a module's dictionary without it."""
    for argument in launch.args:
        if argument.keyword is not None and argument.keyword.value == name:
            return True
        if argument.star == "**" and not _lacks(argument.value, name, module):
            return True
    return False


def _lacks(unpacked: cst.BaseExpression, name: str, module: cst.Module) -> bool:
    if not isinstance(unpacked, cst.Name):
        return False
    for statement in module.body:
        pair = _assigned(statement)
        if pair is not None and pair[0] == unpacked.value and isinstance(pair[1], cst.Dict):
            keys = [e.key for e in pair[1].elements if isinstance(e, cst.DictElement)]
            plain = len(keys) == len(pair[1].elements) and all(isinstance(key, cst.SimpleString) for key in keys)
            return plain and name not in [key.evaluated_value for key in keys if isinstance(key, cst.SimpleString)]
    return False
