"""Independence put to the test: every small mutation planted in the policy of either side alone must be noticed by the other.

Mutations are made in the source's syntax tree (another comparison, a number one off, `and` for `or`, `not` left out, + for -) and put
into the functions that are in use. They are noticed where a ledger that the writing side makes is not clean to the verifier.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from gpusolver.events.model import Context, Credit, EvidenceCarried, Guard, Policy
from gpusolver.projections import cell, confidence, matcher
from gpusolver.projections import evolution as deciding
from gpusolver.replay import evolution, matching
from gpusolver.replay.verify import verify

from ..projections.support import A100, H200, cell_of, context_of, plan_of
from .forge import forge
from .test_differential import STOP_SOONER
from .world import POLISH, RULES, World

_GUARDED = replace(RULES[-1], guards=(Guard(over="tf32", under="fp32", at_least=100.0),), position=0, name="guarded")
LEDGERS: tuple[dict[str, Any], ...] = (
    {"arms": ("on", "off+tabu"), "repetitions": 1},
    {"arms": ("on", "on+tabu"), "repetitions": 1, "rules": (POLISH, *RULES), "max_rounds": 7},
    {"arms": ("off",), "repetitions": 1, "rules": (STOP_SOONER, *RULES[1:])},
    {"arms": ("on", "off"), "repetitions": 1, "contract": "fp32-strict", "rules": (_GUARDED, *RULES)},
    {"arms": ("on",), "repetitions": 1, "world": World(seed=3, jitter=30_000)},
)
"""Retirements, promotions, tabu, stop rules, guards, contracts and neutral rounds among them."""

POLICIES = tuple(
    Policy(credible_num=num, credible_den=den) for num, den in ((51, 100), (3, 4), (7, 8), (19, 20), (31, 32))
)
"""Some of them are reached exactly: 7/8 by two straight failures, 31/32 by four."""

EQUIVALENT = {
    # Without a failure (success) the probability is 1 / 2^n at most, which no registered credibility (over 1/2) lets through.
    "retires: return failures >= 0 and _credible(above, n, policy)",
    "promotes: return successes >= 0 and _credible(up_to, n, policy)",
    "retire_due: return failures >= 0 and policy.credible_den * above >= policy.credible_num << n",
    "promote_due: return successes >= 0 and policy.credible_den * below >= policy.credible_num << n",
    # C(n, n + 1) is 0.
    "retires: above = sum((comb(n, k) for k in range(successes + 1, n + 2)))",
    "retire_due: above = sum((comb(n, k) for k in range(successes + 1, n + 2)))",
    # A registered table has each version of a name once.
    "in_order: if rule.name not in newest or newest[rule.name].version <= rule.version:",
    "ordered: if rule.name not in highest or highest[rule.name].version <= rule.version:",
}  # fmt: skip
"""Mutations that change nothing, each with its reason."""


class Mutant(NamedTuple):
    """A mutation: the function and the line as it becomes, and all functions' code with it."""

    where: str
    code: dict[str, types.CodeType]


_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_SIGNS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
}  # fmt: skip


def mutations(node: ast.AST) -> Iterator[tuple[Callable[[], None], Callable[[], None]]]:
    """(plant, take back) of each mutation of one node."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        yield _swap(node.ops, 0, _COMPARISONS[type(node.ops[0])]())
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        yield _set(node, "op", _SIGNS[type(node.op)]())
    if isinstance(node, ast.BoolOp):
        yield _set(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield _set(node, "op", ast.UAdd())
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield _set(node, "value", node.value + 1)


def _set(node: ast.AST, name: str, value: object) -> tuple[Callable[[], None], Callable[[], None]]:
    before = getattr(node, name)
    return lambda: setattr(node, name, value), lambda: setattr(node, name, before)


def _swap(held: list[Any], at: int, value: object) -> tuple[Callable[[], None], Callable[[], None]]:
    before = held[at]
    return lambda: held.__setitem__(at, value), lambda: held.__setitem__(at, before)


def mutants(module: types.ModuleType, *names: str) -> list[Mutant]:
    """Every mutant of the named functions (`Class.method` too) of a module."""
    path = inspect.getsourcefile(module)
    assert path is not None
    tree = ast.parse(Path(path).read_text("utf-8"))
    found = []
    for name, function in _functions(tree):
        for line, node in _by_line(function) if name in names else ():
            for plant, take_back in mutations(node):
                plant()
                words = f"{name}: {ast.unparse(line).splitlines()[0]}"
                code = dict(_codes(compile(ast.fix_missing_locations(tree), path, "exec")))
                take_back()
                found.append(Mutant(words, code))
    assert len({name for name, _ in _functions(tree)} & set(names)) == len(names), "a function has another name now"
    return found


def _by_line(part: ast.AST, line: ast.stmt | None = None) -> Iterator[tuple[ast.stmt, ast.AST]]:
    """Every node beside the innermost statement that it is in."""
    for node in ast.iter_child_nodes(part):
        inner = node if isinstance(node, ast.stmt) else line
        if inner is not None:
            yield inner, node
        yield from _by_line(node, inner)


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{part.name}", part) for part in node.body if isinstance(part, ast.FunctionDef))


def _codes(code: types.CodeType, prefix: str = "") -> Iterator[tuple[str, types.CodeType]]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield f"{prefix}{constant.co_name}", constant
            yield from _codes(constant, f"{prefix}{constant.co_name}.")


@contextmanager
def planted(module: types.ModuleType, mutant: Mutant) -> Iterator[None]:
    """The module's functions with the mutant's code, wherever they were imported to."""
    functions = list(_living(module))
    before = [function.__code__ for _, function in functions]
    for name, function in functions:
        function.__code__ = mutant.code[name]
    try:
        yield
    finally:
        for (_, function), code in zip(functions, before, strict=True):
            function.__code__ = code


def _living(module: types.ModuleType) -> Iterator[tuple[str, types.FunctionType]]:
    for name, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not value.__closure__:
            yield name, value
        elif inspect.isclass(value) and value.__module__ == module.__name__:
            for part, inner in vars(value).items():
                plain = inner.fget if isinstance(inner, property) else inner
                if inspect.isfunction(plain) and plain.__qualname__ == f"{name}.{part}" and not plain.__closure__:
                    yield f"{name}.{part}", plain


def noticed(folder: Path) -> bool:
    """Whether the sides decide otherwise, or a ledger is not clean; a side that its own mutation breaks off is noticed, too."""
    try:
        return (
            _decide_apart()
            or _weigh_apart()
            or any(
                verify(forge(folder / f"{number}.db", **options), True).findings
                for number, options in enumerate(LEDGERS)
            )
        )
    except Exception:  # noqa: BLE001 - a mutant may raise anything
        return True


def _decide_apart() -> bool:
    return any(
        (confidence.retires(s, f, policy), confidence.promotes(s, f, policy))
        != (evolution.retire_due(s, f, policy), evolution.promote_due(s, f, policy))
        for policy, s, f in product(POLICIES, range(7), range(7))
    )


def _weigh_apart() -> bool:
    """What was carried into a run and what the cell saw itself, of a rule with either, both or none, in a context and over all."""
    here, there = context_of(H200), context_of(A100)
    carried = tuple(
        EvidenceCarried(run="run1", rule=name, rule_version=1, context=context, helped=helped, failed=failed)
        for name, context, helped, failed in (
            ("carried", here, ("a", "b"), ("c",)), ("carried", there, ("a",), ("b", "c", "d", "e")), ("both", here, (), ("a",)),
        )
    )  # fmt: skip
    seen: list[tuple[str, Context, Credit]] = [
        ("both", here, "success"),
        ("both", here, "failure"),
        ("both", there, "failure"),
        ("own", here, "success"),
    ]
    verifying = evolution.Evidence(carried)
    for number, (name, context, credit) in enumerate(seen):
        verifying.credit((name, 1), context, credit, str(number))
    credited = tuple(
        cell.Credited(rule=name, rule_version=1, context=context, firing=str(number), credit=credit)
        for number, (name, context, credit) in enumerate(seen)
    )
    plan = replace(plan_of(cell_of("toy", "on")), carried=carried)
    state = replace(cell.CellState(cell=plan.cell), credited=credited)
    for name, place in product(("carried", "both", "own", "none"), (None, here, there)):
        tally = verifying.tally((name, 1), place)
        if (tally.successes, tally.failures, tally.firings) != deciding.weighed(plan, state, name, 1, place):
            return True
    return False


POLICY = {
    "writing": (
        (confidence, ("confidence", "retires", "promotes", "_credible")),
        (deciding, ("decide", "_retirement", "_promotion", "evidence", "weighed", "_carried")),
        (matcher, ("in_order", "match", "_block")),
    ),
    "verifying": (
        (evolution, ("Tally.confidence", "Evidence.credit", "Evidence.tally", "Evidence._carried", "Evidence.retirement", "Evidence.promotion",
                     "retire_due", "promote_due")),
        (matching, ("ordered", "match", "_obstacle")),
    ),
}  # fmt: skip
CASES = [
    pytest.param(module, mutant, id=f"{side}-{index}-{mutant.where}")
    for side, parts in POLICY.items()
    for module, names in parts
    for index, mutant in enumerate(mutants(module, *names))
    if mutant.where not in EQUIVALENT
]


def test_without_a_mutation_every_ledger_is_clean(tmp_path: Path) -> None:
    assert not noticed(tmp_path)


@pytest.mark.parametrize(("module", "mutant"), CASES)
def test_a_mutation_is_noticed(tmp_path: Path, module: types.ModuleType, mutant: Mutant) -> None:
    with planted(module, mutant):
        assert noticed(tmp_path), mutant.where
