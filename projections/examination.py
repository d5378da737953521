"""A ledger's examinations as folds, and the figures that they state. Never reads an artifact and never looks at a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import replace

from ..events.errors import UnreadableLedger
from ..events.model import (
    CountersCompared,
    DeviceCalibrated,
    Event,
    ExaminationRegistered,
    ExaminationStated,
    KernelExamined,
    PairCompared,
    Rule,
    RulesAnswered,
    RuleSeeded,
    RunStopped,
    StatementReproduced,
    StaticRulesSeen,
    SubjectDeclared,
)
from .runs import EXAMINATION

VERDICTS = ("FASTER", "SLOWER", "SAME", "AMBIGUOUS")
ANSWERS = ("confirmed", "not confirmed", "other chip")
"""What becomes of a statement that is measured again."""


class ExaminationView(msgspec.Struct, frozen=True, kw_only=True):
    """One examination; everything measured is keyed by subject, `pairs` by pair and in the order of their numbers."""

    run: str
    registration: ExaminationRegistered | None = None
    rules: tuple[Rule, ...] = ()
    calibration: DeviceCalibrated | None = None
    examined: dict[str, KernelExamined] = {}
    answers: dict[str, RulesAnswered] = {}
    pairs: dict[str, tuple[PairCompared, ...]] = {}
    counters: dict[str, CountersCompared] = {}
    static: dict[str, StaticRulesSeen] = {}
    reproduced: tuple[StatementReproduced, ...] = ()
    stated: dict[str, float] | None = None
    stopped: str | None = None

    def subject(self, name: str) -> SubjectDeclared:
        """A subject as registered; UnreadableLedger where there is none of the name."""
        for subject in self.registration.subjects if self.registration is not None else ():
            if subject.name == name:
                return subject
        raise UnreadableLedger(
            f"{self.run}: no subject {name!r} is registered: run gpusolver replay --verify on this ledger"
        )


class MatrixRow(msgspec.Struct, frozen=True, kw_only=True):
    """One rule in one half: on how many of its hits it fired, on how many near misses it was silent, and where else it fired."""

    rule: str
    half: str
    hits: int
    fired: int
    near_misses: int
    silent: int
    also_fired_on: tuple[str, ...]


def fold(records: Iterable[tuple[str, Event]]) -> dict[str, ExaminationView]:
    """Examinations by id after the records (stream, event); streams of runs are passed over."""
    views: dict[str, ExaminationView] = {}
    for stream, event in records:
        if stream.startswith(EXAMINATION) and getattr(event, "run", None) == stream:
            views[stream] = _after(views.get(stream) or ExaminationView(run=stream), event)
    return views


def _after(view: ExaminationView, event: Event) -> ExaminationView:
    match event:
        case ExaminationRegistered():
            return replace(view, registration=event)
        case RuleSeeded():
            return replace(view, rules=(*view.rules, event.rule))
        case DeviceCalibrated():
            return replace(view, calibration=event)
        case KernelExamined():
            return replace(view, examined={**view.examined, event.subject: event})
        case RulesAnswered():
            return replace(view, answers={**view.answers, event.subject: event})
        case PairCompared():
            return replace(view, pairs={**view.pairs, event.pair: (*view.pairs.get(event.pair, ()), event)})
        case CountersCompared():
            return replace(view, counters={**view.counters, event.subject: event})
        case StaticRulesSeen():
            return replace(view, static={**view.static, event.subject: event})
        case StatementReproduced():
            return replace(view, reproduced=(*view.reproduced, event))
        case ExaminationStated():
            return replace(view, stated=event.figures)
        case RunStopped():
            return replace(view, stopped=event.reason)
        case _:
            return view


def figures(view: ExaminationView, sampled_ns: Callable[[str], int]) -> dict[str, float]:
    """The figures of replay/FORMAT.md section 7; `sampled_ns` gives the sum of all samples of an artifact, by digest."""
    found: dict[str, float] = {}
    for pair in view.registration.pairs if view.registration is not None else ():
        compared = view.pairs.get(pair.name, ())
        for verdict in VERDICTS:
            found[f"pair/{pair.name}/{verdict}"] = float(sum(entry.verdict == verdict for entry in compared))
        found[f"pair/{pair.name}/sampled_s"] = sum(sampled_ns(entry.samples) for entry in compared) / 1e9
    found |= _matrix_figures(view)
    if view.registration is not None and view.registration.origin:
        for answer in ANSWERS:
            found[f"statements/{answer}"] = float(sum(entry.answer == answer for entry in view.reproduced))
    rows = [row for compared in view.counters.values() for row in compared.rows]
    passed = sum(examined.outcome == "passed" for examined in view.examined.values())
    return found | {
        "counters/compared": float(len(rows)),
        "counters/within": float(sum(row.within for row in rows)),
        "examined/passed": float(passed),
        "examined/refused": float(len(view.examined) - passed),
    }


def _matrix_figures(view: ExaminationView) -> dict[str, float]:
    found: dict[str, float] = {}
    registered = view.registration.subjects if view.registration is not None else ()
    for half in sorted({subject.half for subject in registered if subject.half}):
        rows = [row for row in matrix(view) if row.half == half]
        found[f"matrix/{half}/expected"] = float(sum(row.hits + row.near_misses for row in rows))
        found[f"matrix/{half}/right"] = float(sum(row.fired + row.silent for row in rows))
        answers = [a for subject in _planted(view) if subject.half == half for a in view.answers[subject.name].answers]
        found[f"matrix/{half}/fired_on_missing"] = float(
            sum(answer.answer == "fires" and bool(answer.missing) for answer in answers)
        )
    return found


def matrix(view: ExaminationView) -> tuple[MatrixRow, ...]:
    """The confusion matrix, in the order of the rule table and then of the halves; rules that nothing was planted for are left out."""
    planted = _planted(view)
    halves = sorted({subject.half for subject in planted})
    # A table may hold several versions of a name; the answers are those of the highest, once each.
    names = dict.fromkeys(rule.name for rule in view.rules)
    rows = (_row(view, name, half, [s for s in planted if s.half == half]) for name in names for half in halves)
    return tuple(row for row in rows if row.hits or row.near_misses)


def _planted(view: ExaminationView) -> list[SubjectDeclared]:
    """Subjects of a half that passed their gate."""
    subjects = view.registration.subjects if view.registration is not None else ()
    return [subject for subject in subjects if subject.half and subject.name in view.answers]


def _row(view: ExaminationView, rule: str, half: str, subjects: list[SubjectDeclared]) -> MatrixRow:
    fired = {s.name for s in subjects for a in view.answers[s.name].answers if a.rule == rule and a.answer == "fires"}
    hits = [subject.name for subject in subjects if rule in subject.fires]
    near = [subject.name for subject in subjects if rule in subject.silent]
    return MatrixRow(
        rule=rule,
        half=half,
        hits=len(hits),
        fired=sum(name in fired for name in hits),
        near_misses=len(near),
        silent=sum(name not in fired for name in near),
        also_fired_on=tuple(s.name for s in subjects if s.name in fired and s.name not in (*hits, *near)),
    )
