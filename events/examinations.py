"""Kernels examined outside of any loop, and statements of another ledger measured again. Never examines one."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from .base import Event, Tier, Value, Verdict
from .measurements import Interval
from .policy import Statistics
from .registration import Origin, ProblemDeclared
from .rules import ClauseSeen


class SubjectDeclared(Value, frozen=True):
    """A kernel to examine: its problem, contract and source digest, and the rules that must fire on it or stay silent.

    `half` is `calibration` where its signals may have set a threshold, `held-out` where they may not, else empty.
    """

    name: str
    problem: ProblemDeclared
    contract: str
    source: str
    half: str
    fires: tuple[str, ...]
    silent: tuple[str, ...]


class PairDeclared(Value, frozen=True):
    """Two sources to compare `times` times on a subject's inputs, and the verdict that is true of them."""

    name: str
    subject: str
    left: str
    right: str
    times: int
    truth: Verdict


class StatementDeclared(Value, frozen=True):
    """What event `seq` of the origin states, to be reproduced by comparing `pairs` again.

    `stands` is a claim's answer, or the verdict of a comparison or round; `medians` are those stated; `chip` the one it was measured
    on. Of a claim, `identical` repetitions had equal sources (their median is 1.0); other kinds have no bound and no decimals.
    """

    seq: int
    kind: Literal["claim", "comparison", "round"]
    text: str
    pairs: tuple[str, ...]
    medians: tuple[float, ...]
    stands: str
    chip: str
    identical: int
    at_least: float | None
    decimals: int | None


class RuleAnswer(Value, frozen=True):
    """What one rule says of a kernel, whatever the others say; `clauses` are those whose signals are present.

    `reason` is why it is blocked; `predicted_gain` is there where all clauses hold.
    """

    rule: str
    version: int
    answer: Literal["fires", "abstains", "blocked", "silent"]
    clauses: tuple[ClauseSeen, ...]
    missing: tuple[str, ...]
    reason: Literal["guard", "contract", "no_variant"] | None
    predicted_gain: float | None


class CounterRow(Value, frozen=True):
    """One metric as two collectors read it; `bound` is the larger of the relative and the absolute difference allowed."""

    metric: str
    ours: float | None
    theirs: float | None
    bound: float
    within: bool


class ExaminationRegistered(Event, frozen=True, tag=True):
    """Everything that is decided before an examination: subjects, pairs, statistics, code and environment.

    A reproduction also names the ledger that it takes its kernels from (`origin`), and which of its statements are asked again.
    """

    run: str
    seed: int
    purpose: str
    subjects: tuple[SubjectDeclared, ...]
    pairs: tuple[PairDeclared, ...]
    statistics: Statistics
    code: dict[str, str]
    environment: dict[str, str]
    origin: Origin | UnsetType = UNSET
    statements: tuple[StatementDeclared, ...] | UnsetType = UNSET


class KernelExamined(Event, frozen=True, tag=True):
    """One kernel gated, timed against itself and profiled at every tier at hand; without samples its gate did not pass."""

    run: str
    subject: str
    outcome: str
    reason: str
    report: str
    launches: str | None
    samples: str | None
    counters: str | None
    extras: dict[str, str]
    tier: Tier | None
    floor: float | None
    signals: dict[str, float]


class RulesAnswered(Event, frozen=True, tag=True):
    """Every rule of the table on the signals of a subject, in the order of asking."""

    run: str
    subject: str
    answers: tuple[RuleAnswer, ...]


class PairCompared(Event, frozen=True, tag=True):
    """Comparison number `number` (from 1) of a pair, judged like a round: left is the incumbent, right the candidate."""

    run: str
    pair: str
    number: int
    samples: str
    interval: Interval | None
    margin: float
    verdict: Verdict
    reason: str


class CountersCompared(Event, frozen=True, tag=True):
    """A subject's counters as two collectors read them: `ours` in process, `theirs` by Nsight Compute."""

    run: str
    subject: str
    ours: str
    theirs: str
    rows: tuple[CounterRow, ...]


class StaticRulesSeen(Event, frozen=True, tag=True):
    """What Nsight Compute's own rules say of a subject (artifact `ncu_rules`): a static table beside ours, logged, not used."""

    run: str
    subject: str
    answers: str


class StatementReproduced(Event, frozen=True, tag=True):
    """What became of the origin's event `statement`: the medians measured now, and the pairs that could not be measured."""

    run: str
    statement: int
    answer: Literal["confirmed", "not confirmed", "other chip"]
    medians: tuple[float, ...]
    unmeasured: tuple[str, ...]


class ExaminationStated(Event, frozen=True, tag=True):
    """The figures of an examination, each derived from its events."""

    run: str
    figures: dict[str, float]
