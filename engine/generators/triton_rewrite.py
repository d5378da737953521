"""Rewrites of a Triton source by libcst: integers turned, grids swizzled, precision of dots set. Comments and strings stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import libcst as cst
import libcst.matchers as m

from ...events.errors import BadInput
from ...problems.sources import Precision, with_precision
from .triton_source import Knob, Reading, kernel_of, read

_ROW, _COLUMN = "swizzled_row", "swizzled_column"


def turned(
    reading: Reading, values: Mapping[int, int], group: int | None = None, kernels: frozenset[str] = frozenset()
) -> str:
    """The source with knobs (by their place in `reading.knobs`) at other values and, with `group`, the grids of `kernels` (of those
    that `plain_grids` gives) walked in groups of so many rows.
    """
    tree = reading.module.visit(_Turn(reading, values))
    if group is not None and kernels:
        tree = tree.visit(_Swizzle(reading, group, kernels))
    return tree.code


def plain_grids(reading: Reading) -> frozenset[str]:
    """The kernels that walk a grid of two dimensions in plain order, so that the order can be changed."""
    return frozenset(name for name, kernel in reading.kernels.items() if _plain_grid(kernel, reading))


def has_dot(reading: Reading) -> bool:
    """Whether a kernel multiplies matrices by tl.dot."""
    return any(_dots(kernel, reading) for kernel in reading.kernels.values())


def with_dots(source: str, precision: Precision) -> str | None:
    """The source with its precision line and the literal precision of every tl.dot set; for `ieee` a dot that states none is given
    one, since Triton's own choice is TF32. None where there is no dot.
    """
    reading = read(source)
    if reading is None or not has_dot(reading):
        return None
    text = reading.module.visit(_Dots(reading, precision)).code
    try:
        return with_precision(text, precision)
    except BadInput:
        return text  # no precision line: the dots alone say it


class _Turn(cst.CSTTransformer):
    """Sets integers where they stand, and adds the keywords that launches lack."""

    def __init__(self, reading: Reading, values: Mapping[int, int]) -> None:
        super().__init__()
        self._numbers: dict[int, int] = {}
        self._added: dict[int, list[tuple[str, int]]] = {}
        for place, value in values.items():
            self._take(reading.knobs[place], value)

    def _take(self, knob: Knob, value: int) -> None:
        if knob.node is not None:
            self._numbers[id(knob.node)] = value
        elif value != knob.value:
            for launch in knob.launches:
                self._added.setdefault(id(launch), []).append((knob.name, value))

    def leave_Integer(self, original_node: cst.Integer, updated_node: cst.Integer) -> cst.BaseExpression:
        """The number, if it is turned."""
        value = self._numbers.get(id(original_node))
        return updated_node if value is None else updated_node.with_changes(value=str(value))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """The launch, with what it lacks."""
        for name, value in self._added.get(id(original_node), []):
            updated_node = _with_keyword(updated_node, name, cst.Integer(str(value)))
        return updated_node


def _with_keyword(call: cst.Call, name: str, value: cst.BaseExpression) -> cst.Call:
    """The call with one keyword more, before anything that it unpacks; how its last argument ends stays."""
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    made = cst.Arg(value, keyword=cst.Name(name), equal=equal)
    plain = [argument for argument in call.args if argument.star != "**"]
    starred = [argument for argument in call.args if argument.star == "**"]
    if starred:
        return call.with_changes(args=(*plain, made.with_changes(comma=_COMMA), *starred))
    if not plain:
        return call.with_changes(args=(made,))
    last = plain[-1]
    ended = made.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    before = last.with_changes(comma=_COMMA, whitespace_after_arg=cst.SimpleWhitespace(""))
    return call.with_changes(args=(*plain[:-1], before, ended))


_COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


# --- grids ------------------------------------------------------------------------------------------------------------


def _language(reading: Reading, word: str) -> m.OneOf[m.Attribute]:
    """`tl.<word>` under every name that triton.language has in the source."""
    named = [m.Attribute(value=m.Name(name), attr=m.Name(word)) for name in sorted(reading.language)]
    named.append(m.Attribute(value=m.Attribute(value=m.Name("triton"), attr=m.Name("language")), attr=m.Name(word)))
    return m.OneOf(*named)


def _axis(call: cst.CSTNode, reading: Reading) -> int | None:
    """The axis of `tl.program_id(axis)`, a literal; -1 for one that is none; None for any other call."""
    if not isinstance(call, cst.Call) or not m.matches(call.func, _language(reading, "program_id")):
        return None
    fits = len(call.args) == 1 and (call.args[0].keyword is None or call.args[0].keyword.value == "axis")
    value = call.args[0].value if fits else None
    return value.evaluated_value if isinstance(value, cst.Integer) else -1


def _plain_grid(kernel: cst.FunctionDef, reading: Reading) -> bool:
    """Both axes are read, by literals, in a body of its own; no other jitted function of the source could read them besides."""
    axes = [axis for call in m.findall(kernel, m.Call()) if (axis := _axis(call, reading)) is not None]
    called = [
        c.func.value
        for c in m.findall(kernel, m.Call(func=m.Name()))
        if isinstance(c, cst.Call) and isinstance(c.func, cst.Name)
    ]
    hidden = any(_reads_grid(reading.kernels[name], reading) for name in called if name in reading.kernels)
    names = {node.value for node in m.findall(kernel, m.Name()) if isinstance(node, cst.Name)}
    launched = kernel.name.value in {kernel_of(launch) for launch in reading.launches}
    walked = bool({_ROW, _COLUMN, "swizzle2d", "num_programs"} & names)
    return launched and bool(reading.language) and {0, 1} <= set(axes) and -1 not in axes and not hidden and not walked


def _reads_grid(kernel: cst.FunctionDef, reading: Reading) -> bool:
    return any(_axis(call, reading) is not None for call in m.findall(kernel, m.Call()))


class _Swizzle(cst.CSTTransformer):
    """Axis 0 counts fastest on the device, so it is the column of the matrix whose order is changed. Any bijection is as right as another."""

    def __init__(self, reading: Reading, group: int, kernels: frozenset[str]) -> None:
        super().__init__()
        self._reading, self._group, self._kernels = reading, group, kernels
        self._inside: list[bool] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """Note whether this one is rewritten."""
        self._inside.append(node.name.value in self._kernels)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.BaseStatement:
        """The new order, computed before anything else in the kernel."""
        if not self._inside.pop() or not isinstance(updated_node.body, cst.IndentedBlock):
            return updated_node
        tl = min(self._reading.language)
        sizes = f"{tl}.num_programs(1), {tl}.num_programs(0)"
        line = f"{_ROW}, {_COLUMN} = {tl}.swizzle2d({tl}.program_id(1), {tl}.program_id(0), {sizes}, {self._group})"
        first = cst.parse_statement(line + "\n")
        body = list(updated_node.body.body)
        after = 1 if body and m.matches(body[0], m.SimpleStatementLine(body=[m.Expr(value=m.SimpleString())])) else 0
        block = updated_node.body.with_changes(body=(*body[:after], first, *body[after:]))
        return updated_node.with_changes(body=block)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """What the kernel takes for its place."""
        axis = _axis(original_node, self._reading) if any(self._inside) else None
        return cst.Name(_ROW if axis == 1 else _COLUMN) if axis in (0, 1) else updated_node


# --- precision --------------------------------------------------------------------------------------------------------


def _dots(kernel: cst.FunctionDef, reading: Reading) -> list[cst.CSTNode]:
    return list(m.findall(kernel, m.Call(func=_language(reading, "dot"))))


class _Dots(cst.CSTTransformer):
    """Sets what a tl.dot says of its precision by a literal; what it takes from a name is left to that name."""

    def __init__(self, reading: Reading, precision: Precision) -> None:
        super().__init__()
        self._reading, self._precision = reading, precision

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """The dot, at the precision asked for."""
        if not m.matches(original_node.func, _language(self._reading, "dot")):
            return updated_node
        said = cst.SimpleString(f'"{self._precision}"')
        stated = False
        arguments = []
        for place, argument in enumerate(updated_node.args):
            name = "" if argument.keyword is None else argument.keyword.value
            if name == "allow_tf32":
                stated = True
                if m.matches(argument.value, m.Name("True") | m.Name("False")):
                    changed: dict[str, cst.CSTNode] = {"value": cst.Name(str(self._precision == "tf32"))}
                    if self._precision == "tf32x3":  # which that keyword cannot say
                        changed = {"keyword": cst.Name("input_precision"), "value": said}
                    argument = argument.with_changes(**changed)
            elif name == "input_precision" or (not name and place == 3):
                stated = True
                plain = isinstance(argument.value, cst.SimpleString) and argument.value.evaluated_value in get_args(
                    Precision
                )
                argument = argument.with_changes(value=said) if plain else argument
            arguments.append(argument)
        call = updated_node.with_changes(args=arguments)
        return call if stated or self._precision == "tf32" else _with_keyword(call, "input_precision", said)
