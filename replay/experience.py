"""What a run says it learnt from another ledger, derived again from that ledger (FORMAT.md 6.9). Never trusts a count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import UnsetType
from msgspec.structs import astuple

from ..events.model import (
    Context,
    Event,
    EvidenceCarried,
    Experience,
    Proposing,
    Rule,
    RuleAdmitted,
    RuleProposed,
    RuleSeeded,
)
from .findings import Finding, Findings
from .matching import COMPARE, RuleKey, highest
from .objective import by_time
from .proposed import Trial, derive
from .runs import RunEvents
from .side import Side, ended, script

LEARNT = (RuleSeeded, RuleProposed, RuleAdmitted, EvidenceCarried)


def check_experience(ledger: str, given: Sequence[str]) -> tuple[list[Finding], list[str]]:
    """Findings on every run of the ledger that learnt from another, and notes on those whose ledger was not to be had.

    `given` are the paths of such ledgers; the ledger itself is looked at first, whose own earlier runs may be meant.
    """
    findings, notes = Findings(), list[str]()
    with Side(Path(ledger), None) as side:
        if not any(row.type == "RunRegistered" and b'"experience"' in row.payload for row in side.rows()):
            return [], []
        runs = side.runs()
        heads = {row.seq: row.hash for row in side.rows()}
    for name, run in runs.items():
        if run.registered is None or isinstance(run.registered[1].experience, UnsetType):
            continue
        seq, registered = run.registered
        learnt = run.registered[1].experience
        assert not isinstance(learnt, UnsetType)
        own = learnt.events < seq and heads.get(learnt.events) == learnt.head
        source = ledger if own else _named(learnt, given)
        if source is None:
            notes.append(f"{name}: the ledger that it learnt from was not read; name it with --experience")
            continue
        if source != ledger:
            notes.append(
                f"{name}: learnt from another ledger, whose own events were taken as they stand: verify it, too"
            )
        with findings.derivation(seq, "experience"), Side(Path(source), learnt.events) as other:
            _check(run, registered.seed, learnt, other, findings)
    return findings.all, notes


def _named(learnt: Experience, given: Sequence[str]) -> str | None:
    """Of the ledgers given the one with that head, else the first: that it is another one is then a finding."""
    for path in given:
        with Side(Path(path), learnt.events) as other:
            if [row.hash for row in other.rows() if row.seq == learnt.events] == [learnt.head]:
                return path
    return given[0] if given else None


def _check(run: RunEvents, seed: int, learnt: Experience, other: Side, findings: Findings) -> None:
    assert run.registered is not None
    last = [(row.seq, row.hash) for row in other.rows()][-1:]
    if not findings.expect(run.registered[0], "experience", [(learnt.events, learnt.head)], last, "last event read"):
        return
    for name, one in other.runs().items():
        if one.registered is not None and not by_time(one.registered[1].statistics):
            findings.add(
                run.registered[0], "experience", "a ledger whose verdicts are by latency", f"objective of {name}"
            )
    due = list(_due(run.run, seed, learnt, other))
    found = [(seq, event) for seq, event in run.learnt if isinstance(event, LEARNT)]
    for place, event in enumerate(due):
        seq, have = found[place] if place < len(found) else (run.registered[0], None)
        if not findings.expect(seq, "experience", event, have, f"number {place + 1} of what was learnt"):
            return
    for seq, event in found[len(due) :]:
        findings.add(seq, "experience", f"{len(due)} events of what was learnt", type(event).__name__)


def _due(name: str, seed: int, learnt: Experience, other: Side) -> Iterator[Event]:
    """The table, the proposals with their admissions, the evidence: in this order."""
    runs = other.runs()
    table = highest(runs[max(runs, key=_number)].table())
    yield from (RuleSeeded(run=name, rule=rule) for rule in table)
    yield from lesson(name, seed, learnt.proposing, table, trials_of(runs, table))


def trials_of(runs: Mapping[str, RunEvents], table: list[Rule]) -> list[Trial]:
    """The trials of a table's rules in all runs, by seq."""
    return sorted((trial for run in runs.values() for trial in _trials(run, table)), key=lambda trial: trial.seq)


def lesson(
    name: str, seed: int, bounds: Proposing | None, table: list[Rule], trials: list[Trial]
) -> Iterator[RuleProposed | RuleAdmitted | EvidenceCarried]:
    """What the trials teach a run `name`: proposals, each followed by its admission, then evidence."""
    rules, counted = [*table], [*trials]
    for proposal, passes in () if bounds is None else derive(name, seed, bounds, table, trials):
        yield proposal
        if passes:
            rule = proposal.rule
            yield RuleAdmitted(run=name, rule=rule.name, rule_version=rule.version)
            rules.append(rule)
            counted += [msgspec.structs.replace(t, key=(rule.name, rule.version)) for t in trials if _of(proposal, t)]
    yield from _carried(name, rules, counted)


def _number(run: str) -> int:
    return int(run.removeprefix("run"))


def _of(proposal: RuleProposed, trial: Trial) -> bool:
    if proposal.parent is None:
        return trial.prescription == proposal.rule.prescription
    return trial.key == (proposal.parent, proposal.rule.version - 1)


def _trials(run: RunEvents, table: list[Rule]) -> Iterator[Trial]:
    """Counted rounds of rules that do in this run what they do in the table."""
    wanted = {(rule.name, rule.version): _deed(rule) for rule in table}
    same = {(r.name, r.version) for r in highest(run.table()) if wanted.get((r.name, r.version)) == _deed(r)}
    for stream in run.cells:
        known: dict[str, dict[str, float]] = {}
        for round_ in ended(script(run, stream)):
            fired, judged = round_.fired, round_.judged
            if fired is not None and judged is not None and judged.credit != "neutral":
                key = (judged.rule, judged.rule_version)
                if key in same:
                    yield Trial(
                        seq=round_.seqs["judged"],
                        problem=fired.cell.problem,
                        key=key,
                        prescription=fired.prescription,
                        context=fired.context,
                        incumbent=judged.incumbent,
                        signals=known.get(judged.incumbent, {}),
                        success=judged.credit == "success",
                        ratio=None if judged.interval is None else judged.interval.median,
                    )
            if round_.profiled is not None:
                known[round_.profiled.source] = round_.profiled.signals


def _deed(rule: Rule) -> tuple[object, ...]:
    """All of a rule but its position, origin and rationale."""
    fields = msgspec.structs.asdict(rule)
    return tuple(value for name, value in fields.items() if name not in ("position", "origin", "rationale"))


def _carried(run: str, rules: list[Rule], trials: list[Trial]) -> Iterator[EvidenceCarried]:
    by_key = {(rule.name, rule.version): rule for rule in rules}
    outcomes: dict[tuple[RuleKey, Context], dict[str, list[bool]]] = {}
    for trial in trials:
        rule = by_key.get(trial.key)
        held = rule is not None and all(
            c.signal in trial.signals and COMPARE[c.op](trial.signals[c.signal], c.threshold) for c in rule.clauses
        )
        if held:
            problems = outcomes.setdefault((trial.key, trial.context), {})
            problems.setdefault(trial.problem, []).append(trial.success)
    for (key, context), problems in sorted(outcomes.items(), key=lambda item: (item[0][0], astuple(item[0][1]))):
        yield EvidenceCarried(
            run=run,
            rule=key[0],
            rule_version=key[1],
            context=context,
            helped=tuple(sorted(problem for problem, won in problems.items() if any(won))),
            failed=tuple(sorted(problem for problem, won in problems.items() if not any(won))),
        )
