"""Kernels with one bottleneck planted, and their near misses with that one thing mended. Never imports torch or runs a source."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec

from ..events.errors import BadInput
from ..events.model import Limits
from .contract import CONTRACTS, Family, Problem, Variant, digest
from .sources import Precision, strict_twin, with_config, with_precision

Kind = Literal["hit", "near"]
Half = Literal["calibration", "held-out"]
_HALVES: dict[Half, str] = {"calibration": "a", "held-out": "b"}


class _Closed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Planted(_Closed, frozen=True):
    """One kernel at one size. The rule fires on a `hit` and does not on a `near` one; thresholds may be set on the half `calibration`.

    `name` is `<rule>-<kind>-<a or b>`; `source` is whole, as the worker takes it; `why` says by which physics.
    """

    name: str
    rule: str
    kind: Kind
    half: Half
    problem: Problem
    contract: str
    source: str
    why: str


class _Kernel(_Closed, frozen=True):
    """A source file: whether the CUDA launcher stands before it, and its CONFIG where a subject says nothing else."""

    file: str
    cuda: bool
    config: dict[str, int]


class _Operation(_Closed, frozen=True):
    """What a kernel computes; `flops` and `min_bytes` are formulas over the sizes."""

    reference: str
    family: Family
    dtype: Literal["float32", "bfloat16"]
    flops: str
    min_bytes: str
    small: dict[str, int]
    limits: dict[str, Limits]


class _Side(_Closed, frozen=True):
    """A hit or a near miss: its kernel and what sets it apart from the kernel's own CONFIG, in both sizes and in one."""

    kernel: str
    a: dict[str, int]
    b: dict[str, int]
    why: str
    config: dict[str, int] = {}
    config_b: dict[str, int] = {}
    precision: Precision = "ieee"
    weight: float = 1.0


class _Pair(_Closed, frozen=True):
    rule: str
    operation: str
    contract: Literal["fp32-strict", "tf32-allowed", "bf16-allowed"]
    hit: _Side
    near: _Side


class _Toml(_Closed, frozen=True):
    """planted.toml."""

    prescriptions: tuple[str, ...]
    unplanted: dict[str, str]
    kernel: dict[str, _Kernel]
    operation: dict[str, _Operation]
    pair: tuple[_Pair, ...]


@cache
def planted() -> tuple[Planted, ...]:
    """Every hit and near miss at both sizes, pair by pair; raises BadInput, naming the subject, where planted.toml is unusable."""
    table = _table()
    sides: tuple[tuple[Kind, str], ...] = (("hit", "a"), ("hit", "b"), ("near", "a"), ("near", "b"))
    return tuple(_planted(table, pair, kind, size) for pair in table.pair for kind, size in sides)


def unplanted() -> dict[str, str]:
    """Rules without a planted kernel, and why none can be planted."""
    return dict(_table().unplanted)


def evaluate(formula: str, sizes: Mapping[str, int]) -> int:
    """A formula of sizes, whole numbers, `+`, `-`, `*`, `//` and `**`, in exact integers; BadInput on anything else."""
    try:
        return _value(ast.parse(formula, mode="eval").body, sizes)
    except (SyntaxError, ZeroDivisionError) as error:
        raise BadInput(f"formula {formula!r}: {error}; expected sizes, whole numbers and + - * // **") from None


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(number)) if type(number) is int:
            return number
        case ast.Name(id=size) if size in sizes:
            return sizes[size]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _value(left, sizes) + _value(right, sizes)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _value(left, sizes) - _value(right, sizes)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _value(left, sizes) * _value(right, sizes)
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            return _value(left, sizes) // _value(right, sizes)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))) if 0 <= power <= 8:
            return int(_value(left, sizes) ** power)
    raise BadInput(f"formula: {ast.unparse(node)!r}; expected one of {sorted(sizes)}, whole numbers and + - * // **")


def _folder() -> Path:
    return Path(str(files(__package__))) / "planted"


@cache
def _table() -> _Toml:
    path = _folder() / "planted.toml"
    try:
        return msgspec.toml.decode(path.read_bytes(), type=_Toml)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {error}; see problems/README.md for its fields") from None


def _planted(table: _Toml, pair: _Pair, kind: Kind, size: str) -> Planted:
    side = pair.hit if kind == "hit" else pair.near
    name = f"{pair.rule}-{kind}-{size}"
    try:
        source = _source(table.kernel[side.kernel], side, size)
        problem = _problem(table, table.operation[pair.operation], name, side, size, source)
    except KeyError as error:
        raise BadInput(f"planted.toml: {name}: no kernel or operation {error}; add it or correct the name") from None
    except BadInput as error:
        raise BadInput(f"planted.toml: {name}: {error}") from None
    half = next(half for half, letter in _HALVES.items() if letter == size)
    return Planted(
        name=name,
        rule=pair.rule,
        kind=kind,
        half=half,
        problem=problem,
        contract=pair.contract,
        source=source,
        why=side.why,
    )


def _source(kernel: _Kernel, side: _Side, size: str) -> str:
    """The launcher, where the kernel is CUDA C++, and the kernel's file, with its configuration and precision set."""
    changed = {**side.config, **(side.config_b if size == "b" else {})}
    unknown = sorted(set(changed) - set(kernel.config))
    if unknown:
        raise BadInput(f"kernel {kernel.file}: no {', '.join(unknown)} in its config; expected {sorted(kernel.config)}")
    text = _text(kernel.file)
    if kernel.cuda:
        text = _text("launcher.py") + "\n\n" + text
    return with_precision(with_config(text, {**kernel.config, **changed}), side.precision)


@cache
def _text(file: str) -> str:
    return (_folder() / file).read_text(encoding="utf-8")


@cache
def _digest() -> str:
    return digest(_folder())


def _problem(table: _Toml, operation: _Operation, name: str, side: _Side, size: str, source: str) -> Problem:
    """The operation at one size; every prescription is offered, so that no rule is blocked for want of a variant."""
    shape = side.a if size == "a" else side.b
    if set(operation.limits) != set(CONTRACTS) or shape.keys() != operation.small.keys():
        raise BadInput(
            f"expected limits for {CONTRACTS} and sizes {sorted(operation.small)}, found sizes {sorted(shape)}"
        )
    strict = strict_twin(source)
    return Problem(
        name=name,
        reference=str(_folder() / "references" / operation.reference),
        digest=_digest(),
        family=operation.family,
        dtype=operation.dtype,
        weight=side.weight,
        flops=evaluate(operation.flops, shape),
        min_bytes=evaluate(operation.min_bytes, shape),
        shape=shape,
        small=operation.small,
        limits=operation.limits,
        start=strict,
        eager=strict,
        variants=tuple(_offer(prescription) for prescription in table.prescriptions),
    )


def _offer(prescription: str) -> Variant:
    return Variant(prescription=prescription, pool="any", kind="flag", file=None, source=None, configs=())
