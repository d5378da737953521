"""What follows from an examination's events (FORMAT.md section 7): answers, counter rows, figures. Never measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

import msgspec

from ..events.model import (
    Chip,
    CounterRow,
    KernelExamined,
    PairDeclared,
    Rule,
    RuleAnswer,
    RulesAnswered,
    SubjectDeclared,
    Verdict,
)
from .artifacts import Counters
from .matching import guarded, holds, ordered, predicted_gain, seen

VERDICTS: tuple[str, ...] = get_args(Verdict)
SHARE_OF_BYTES, SHARE_OF_COUNTS, SHARE_OF_RATES, LEAST_BYTES = 0.03, 0.01, 0.03, 1_000_000.0


def answers(
    table: Iterable[Rule],
    signals: Mapping[str, float],
    chip: Chip,
    contract: str,
    prescriptions: tuple[str, ...],
) -> tuple[RuleAnswer, ...]:
    """What every rule says of a kernel, in the order of asking with nothing promoted."""
    return tuple(_answer(rule, signals, chip, contract, prescriptions) for rule in ordered(table, frozenset()))


def _answer(
    rule: Rule, signals: Mapping[str, float], chip: Chip, contract: str, prescriptions: tuple[str, ...]
) -> RuleAnswer:
    present = [clause for clause in rule.clauses if clause.signal in signals]
    missing = tuple(dict.fromkeys(clause.signal for clause in rule.clauses if clause.signal not in signals))
    refuted = any(not holds(clause, signals) for clause in present)
    matched = not refuted and not missing
    reason = guarded(rule, chip, contract, prescriptions) if matched else None
    return RuleAnswer(
        rule=rule.name,
        version=rule.version,
        answer="silent" if refuted else "abstains" if missing else "fires" if reason is None else "blocked",
        clauses=tuple(seen(clause, signals[clause.signal]) for clause in present),
        missing=missing,
        reason=reason,
        predicted_gain=predicted_gain(rule.gain, signals, chip) if matched else None,
    )


def counter_rows(ours: Counters, theirs: Counters) -> tuple[CounterRow, ...]:
    """The metrics that both list, in order of name, and whether they agree."""
    both = sorted(ours.metrics.keys() & theirs.metrics.keys())
    return tuple(_row(name, ours.metrics[name], theirs.metrics[name]) for name in both)


def _row(metric: str, one: float | None, other: float | None) -> CounterRow:
    a, b = None if one is None else float(one), None if other is None else float(other)
    bound = 0.0 if b is None else _bound(metric, abs(b))
    within = a is None and b is None if a is None or b is None else abs(a - b) <= bound
    return CounterRow(metric=metric, ours=a, theirs=b, bound=bound, within=within)


def _bound(metric: str, size: float) -> float:
    if metric.endswith(".sum"):
        return max(SHARE_OF_BYTES * size, LEAST_BYTES) if "bytes" in metric else SHARE_OF_COUNTS * size
    return SHARE_OF_RATES * size


class Matrix(msgspec.Struct, frozen=True):
    """One half's expected answers beside those given: `fired` of the rules that must fire, `silent` of those that must not."""

    half: str
    must_fire: int
    fired: int
    must_be_silent: int
    silent: int
    fired_on_missing: int
    wrong: tuple[str, ...]

    @property
    def expected(self) -> int:
        """All expected answers."""
        return self.must_fire + self.must_be_silent

    @property
    def right(self) -> int:
        """Those given as expected."""
        return self.fired + self.silent


def matrix(half: str, subjects: Iterable[SubjectDeclared], given: Mapping[str, RulesAnswered]) -> Matrix:
    """The confusion matrix of a half, over its subjects that were answered for."""
    must_fire = fired = must_be_silent = silent = on_missing = 0
    wrong: list[str] = []
    for subject in subjects:
        if subject.half != half or subject.name not in given:
            continue
        fires = {a.rule for a in given[subject.name].answers if a.answer == "fires"}
        on_missing += sum(1 for a in given[subject.name].answers if a.answer == "fires" and a.missing)
        must_fire, must_be_silent = must_fire + len(subject.fires), must_be_silent + len(subject.silent)
        fired += sum(1 for rule in subject.fires if rule in fires)
        silent += sum(1 for rule in subject.silent if rule not in fires)
        wrong += [f"{subject.name}: {rule} does not fire" for rule in subject.fires if rule not in fires]
        wrong += [f"{subject.name}: {rule} fires" for rule in subject.silent if rule in fires]
    return Matrix(half, must_fire, fired, must_be_silent, silent, on_missing, tuple(wrong))


class Pair(msgspec.Struct):
    """A registered pair and what its comparisons came to."""

    declared: PairDeclared
    verdicts: list[str] = []
    sampled_ns: int = 0

    @property
    def name(self) -> str:
        """The pair's name."""
        return self.declared.name

    def counts(self) -> dict[str, int]:
        """Comparisons by verdict, all four of them."""
        return {verdict: self.verdicts.count(verdict) for verdict in VERDICTS}


def figures(
    pairs: Iterable[Pair], matrices: Iterable[Matrix], rows: Iterable[CounterRow], examined: Iterable[KernelExamined]
) -> dict[str, float]:
    """Every figure of an examination, as binary64."""
    found: dict[str, float] = {}
    for pair in pairs:
        found |= {f"pair/{pair.name}/{verdict}": count for verdict, count in pair.counts().items()}
        found[f"pair/{pair.name}/sampled_s"] = pair.sampled_ns / 10**9
    for half in matrices:
        found[f"matrix/{half.half}/expected"] = half.expected
        found[f"matrix/{half.half}/right"] = half.right
        found[f"matrix/{half.half}/fired_on_missing"] = half.fired_on_missing
    within = [row.within for row in rows]
    outcomes = [event.outcome == "passed" for event in examined]
    found |= {"counters/compared": len(within), "counters/within": sum(within)}
    found |= {"examined/passed": sum(outcomes), "examined/refused": len(outcomes) - sum(outcomes)}
    return {name: float(value) for name, value in found.items()}
