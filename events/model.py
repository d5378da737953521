"""The vocabulary of the ledger: every event and the values inside it. Never reads a file, a clock or a database.

An event's tag (`type`) is written into the payload and is the row's `type` column. Absent and zero are different things:
a signal that could not be measured is absent from its mapping. All numbers are finite. Units stand in the names.
A field that came later is UNSET by default and then left out of the bytes, so that older payloads still re-encode as they are.
"""

from __future__ import annotations

from .base import Event, Tier, Value, Verdict
from .candidates import Exchange, GeneratorAsked, KernelGated, KernelGenerated, SourcesSwept, TilesSwept
from .evolution import EvidenceCarried, RuleAdmitted, RulePromoted, RuleProposed, RuleRetired, Separation
from .examinations import (
    CounterRow,
    CountersCompared,
    ExaminationRegistered,
    ExaminationStated,
    KernelExamined,
    PairCompared,
    PairDeclared,
    RuleAnswer,
    RulesAnswered,
    StatementDeclared,
    StatementReproduced,
    StaticRulesSeen,
    SubjectDeclared,
)
from .finals import ClaimStated, HeadToHead, LedgerSealed, RunStopped
from .measurements import Chip, DeviceCalibrated, Interval, NoiseFloorMeasured, Profiled
from .policy import Bounds, Heat, Objective, Policy, Proposing, Stage, Statistics
from .registration import (
    Cell,
    ClaimRegistered,
    Experience,
    Limits,
    Origin,
    ProblemDeclared,
    RuleSeeded,
    RunRegistered,
    cell_stream,
    firing_id,
)
from .rounds import Credit, PrescriptionUnserved, RoundAttempted, RoundInterrupted, RoundJudged, RuleFired
from .rules import Abstained, Blocked, Clause, ClauseSeen, Context, Gain, Guard, Operator, Rule

__all__ = [
    "EVENT_TYPES",
    "Abstained",
    "AnyEvent",
    "Blocked",
    "Bounds",
    "Cell",
    "Chip",
    "ClaimRegistered",
    "ClaimStated",
    "Clause",
    "ClauseSeen",
    "Context",
    "CounterRow",
    "CountersCompared",
    "Credit",
    "DeviceCalibrated",
    "Event",
    "EvidenceCarried",
    "ExaminationRegistered",
    "ExaminationStated",
    "Exchange",
    "Experience",
    "Gain",
    "GeneratorAsked",
    "Guard",
    "HeadToHead",
    "Heat",
    "Interval",
    "KernelExamined",
    "KernelGated",
    "KernelGenerated",
    "LedgerSealed",
    "Limits",
    "NoiseFloorMeasured",
    "Objective",
    "Operator",
    "Origin",
    "PairCompared",
    "PairDeclared",
    "Policy",
    "PrescriptionUnserved",
    "ProblemDeclared",
    "Profiled",
    "Proposing",
    "RoundAttempted",
    "RoundInterrupted",
    "RoundJudged",
    "Rule",
    "RuleAdmitted",
    "RuleAnswer",
    "RuleFired",
    "RulePromoted",
    "RuleProposed",
    "RuleRetired",
    "RuleSeeded",
    "RulesAnswered",
    "RunRegistered",
    "RunStopped",
    "Separation",
    "SourcesSwept",
    "Stage",
    "StatementDeclared",
    "StatementReproduced",
    "StaticRulesSeen",
    "Statistics",
    "SubjectDeclared",
    "Tier",
    "TilesSwept",
    "Value",
    "Verdict",
    "cell_stream",
    "firing_id",
]

AnyEvent = (
    RunRegistered
    | RuleSeeded
    | DeviceCalibrated
    | RoundAttempted
    | RoundInterrupted
    | RuleFired
    | GeneratorAsked
    | PrescriptionUnserved
    | TilesSwept
    | SourcesSwept
    | KernelGenerated
    | KernelGated
    | Profiled
    | NoiseFloorMeasured
    | RoundJudged
    | RuleRetired
    | RulePromoted
    | RuleProposed
    | RuleAdmitted
    | EvidenceCarried
    | RunStopped
    | HeadToHead
    | ClaimStated
    | LedgerSealed
    | ExaminationRegistered
    | KernelExamined
    | RulesAnswered
    | PairCompared
    | CountersCompared
    | StaticRulesSeen
    | StatementReproduced
    | ExaminationStated
)
EVENT_TYPES: dict[str, type[Event]] = {kind.__name__: kind for kind in AnyEvent.__args__}
