"""The whole numbers that a source file names at its top level: read and replaced as text. Never runs the file."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

import msgspec


class Knob(msgspec.Struct, frozen=True, kw_only=True):
    """One whole number of a top-level assignment: `name` (with its position, in a tuple), and where its text stands (byte offsets)."""

    name: str
    value: int
    start: int
    end: int


def knobs(text: str) -> tuple[Knob, ...]:
    """Every whole number above 1 that the top level assigns, alone, as a product or sum of numbers, or in a tuple, in order."""
    lines = [len(line) for line in text.encode().split(b"\n")]
    starts = [0]
    for length in lines:
        starts.append(starts[-1] + length + 1)
    found: list[Knob] = []
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign) and (names := _names(statement.targets)):
            for name, node in _numbers(names, statement.value):
                value = _value(node)
                if value is not None and value > 1 and node.end_lineno is not None and node.end_col_offset is not None:
                    start = starts[node.lineno - 1] + node.col_offset
                    end = starts[node.end_lineno - 1] + node.end_col_offset
                    found.append(Knob(name=name, value=value, start=start, end=end))
    return tuple(found)


def with_values(text: str, values: Mapping[Knob, int]) -> str:
    """The text with some of its numbers replaced; the knobs must be those of this text."""
    raw = text.encode()
    for knob in sorted(values, key=lambda each: each.start, reverse=True):
        raw = raw[: knob.start] + str(values[knob]).encode() + raw[knob.end :]
    return raw.decode()


def _names(targets: list[ast.expr]) -> list[str]:
    """The names of `a = b = ...`, or of `a, b = ...`."""
    if len(targets) == 1 and isinstance(targets[0], ast.Tuple):
        return [each.id if isinstance(each, ast.Name) else "" for each in targets[0].elts]
    return [".".join(each.id for each in targets if isinstance(each, ast.Name))]


def _numbers(names: list[str], value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(value, (ast.Tuple, ast.List)):
        one_each = len(names) == len(value.elts) and len(names) > 1
        for index, node in enumerate(value.elts):
            yield names[index] if one_each else f"{names[0]}_{index}", node
    else:
        yield names[0], value


def _value(node: ast.expr) -> int | None:
    """The number that an expression of numbers alone gives; None for any other expression."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.BinOp(left=left, op=ast.Mult() | ast.Add() | ast.Pow() as op, right=right):
            one, other = _value(left), _value(right)
            if one is None or other is None:
                return None
            if isinstance(op, ast.Pow):
                return one**other if 0 <= other < 64 else None
            return one * other if isinstance(op, ast.Mult) else one + other
        case _:
            return None
