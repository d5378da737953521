"""What a ledger's judged rounds say of a rule table: trials, and what they carry into another run. Never reads a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from ..events.model import (
    Context,
    Event,
    EvidenceCarried,
    Profiled,
    RoundJudged,
    Rule,
    RuleAdmitted,
    RuleFired,
    RuleProposed,
    RuleSeeded,
)
from .matcher import newest, satisfied

Records = Iterable[tuple[str, Event]]


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One judged round that counted: the rule that fired, the incumbent's signals when it did, and what came of it.

    `ratio` is the median of its interval, None without one.
    """

    problem: str
    rule: str
    version: int
    prescription: str | None
    context: Context
    incumbent: str
    signals: Mapping[str, float]
    success: bool
    ratio: float | None


def tables(records: Records) -> dict[str, tuple[Rule, ...]]:
    """The rule table of every run, in the order of the runs, of each name the highest version."""
    found: dict[str, list[Rule]] = {}
    proposed: dict[tuple[str, str, int], Rule] = {}
    for _, event in records:
        match event:
            case RuleSeeded():
                found.setdefault(event.run, []).append(event.rule)
            case RuleProposed():
                proposed[(event.run, event.rule.name, event.rule.version)] = event.rule
            case RuleAdmitted():
                found.setdefault(event.run, []).append(proposed[(event.run, event.rule, event.rule_version)])
            case _:
                pass
    return {run: newest(rules) for run, rules in found.items() if run.startswith("run")}


def trials(records: Records, table: Iterable[Rule]) -> tuple[Trial, ...]:
    """The trials of the table's rules, in recorded order: those of a rule that only shares a name with one of the table are none."""
    records = list(records)
    known = {(rule.name, rule.version): _bare(rule) for rule in table}
    same = {
        (run, rule.name, rule.version)
        for run, rules in tables(records).items()
        for rule in rules
        if known.get((rule.name, rule.version)) == _bare(rule)
    }
    signals: dict[tuple[str, str], dict[str, float]] = {}
    fired: dict[str, tuple[RuleFired, dict[str, float]]] = {}
    found = []
    for stream, event in records:
        match event:
            case Profiled():
                signals[(stream, event.source)] = event.signals
            case RuleFired():
                fired[event.firing] = event, signals.get((stream, event.incumbent), {})
            case RoundJudged() if event.credit != "neutral":
                firing, seen = fired[event.firing]
                if (stream.partition("/")[0], event.rule, event.rule_version) in same:
                    found.append(_trial(firing, seen, event))
            case _:
                pass
    return tuple(found)


def matching(rule: Rule, seen: Iterable[Trial]) -> tuple[Trial, ...]:
    """The trials at which the rule's clauses held, as trials of that rule."""
    return tuple(
        replace(trial, rule=rule.name, version=rule.version) for trial in seen if satisfied(rule.clauses, trial.signals)
    )


def inherited(proposal: RuleProposed, seen: Iterable[Trial]) -> tuple[Trial, ...]:
    """What an admitted rule begins with: the trials of the version that it narrows, of a new rule those with its prescription, at
    which its clauses held.
    """
    rule = proposal.rule
    if proposal.parent is None:
        return matching(rule, (trial for trial in seen if trial.prescription == rule.prescription))
    before = (proposal.parent, rule.version - 1)
    return matching(rule, (trial for trial in seen if (trial.rule, trial.version) == before))


def carried(run: str, table: Iterable[Rule], seen: Iterable[Trial]) -> tuple[EvidenceCarried, ...]:
    """By rule version and context: one problem is one trial, and has helped where the rule helped it once.

    Rounds of the arm `random` count where the rule would have fired by its clauses too.
    """
    seen = list(seen)
    problems: dict[tuple[str, int, Context], dict[str, bool]] = {}
    for rule in table:
        own = (trial for trial in seen if (trial.rule, trial.version) == (rule.name, rule.version))
        for trial in matching(rule, own):
            place = problems.setdefault((rule.name, rule.version, trial.context), {})
            place[trial.problem] = place.get(trial.problem, False) or trial.success
    return tuple(
        EvidenceCarried(
            run=run,
            rule=rule,
            rule_version=version,
            context=context,
            helped=tuple(sorted(name for name, helped in found.items() if helped)),
            failed=tuple(sorted(name for name, helped in found.items() if not helped)),
        )
        for (rule, version, context), found in sorted(problems.items(), key=_place)
    )


def _place(entry: tuple[tuple[str, int, Context], object]) -> tuple[str, int, tuple[str, ...]]:
    (rule, version, context), _ = entry
    return rule, version, msgspec.structs.astuple(context)


def _bare(rule: Rule) -> Rule:
    """What a rule does, without where it stands and where it is from."""
    return replace(rule, position=0, origin="", rationale="")


def _trial(firing: RuleFired, signals: Mapping[str, float], judged: RoundJudged) -> Trial:
    return Trial(
        problem=firing.cell.problem,
        rule=judged.rule,
        version=judged.rule_version,
        prescription=firing.prescription,
        context=firing.context,
        incumbent=judged.incumbent,
        signals=signals,
        success=judged.credit == "success",
        ratio=None if judged.interval is None else judged.interval.median,
    )
