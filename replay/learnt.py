"""What a run says it learnt, as far as its own events show it (FORMAT.md 6.9). Never reads the ledger that it learnt from."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UnsetType
from msgspec.structs import astuple, replace

from ..events.model import Event, EvidenceCarried, Experience, Proposing, Rule, RuleAdmitted, RuleProposed, RuleSeeded
from .findings import Findings
from .matching import highest
from .proposed import admits, narrowed, separates, unexplained
from .runs import RunEvents


def check_learnt(run: RunEvents, findings: Findings) -> None:
    """Order, admissions, shapes and counts of what was learnt; a run that learnt nothing is passed over."""
    registered = None if run.registered is None else run.registered[1]
    if registered is None or isinstance(registered.experience, UnsetType):
        return
    seeded = highest(event.rule for _, event in run.learnt if isinstance(event, RuleSeeded))
    table = sorted(seeded, key=lambda rule: rule.name)
    _check_order(run, findings)
    _check_admissions(run, registered.experience, findings)
    for seq, proposed in run.proposed:
        for due, found in _demands(proposed, table, registered.experience):
            findings.add(seq, "experience", due, found)
    _check_evidence(run, findings)


def _check_order(run: RunEvents, findings: Findings) -> None:
    """The table, then proposals (by parent, then by prescription of new rules), then evidence by rule, version and context."""
    latest: tuple[object, ...] = ()
    for seq, event in run.learnt:
        place = _place(event, latest)
        if latest and (place < latest or (place == latest and isinstance(event, RuleProposed))):
            findings.add(seq, "experience", "table, proposals, evidence, each in the order of the page", event)
        latest = max(latest, place)


def _place(event: Event, latest: tuple[object, ...]) -> tuple[object, ...]:
    match event:
        case RuleProposed():
            return (1, event.parent is None, event.parent or event.rule.prescription or "")
        case EvidenceCarried():
            return (2, event.rule, event.rule_version, astuple(event.context))
        case RuleAdmitted():
            return latest if latest and latest[0] == 1 else (1,)
        case _:
            return (0,)


def _check_admissions(run: RunEvents, experience: Experience, findings: Findings) -> None:
    """A proposal is followed at once by its admission where its shadow test passes, and only there."""
    bounds = experience.proposing
    for (seq, event), (_, following) in zip(run.learnt, [*run.learnt[1:], (0, None)], strict=True):
        if not isinstance(event, RuleProposed):
            continue
        if bounds is None:
            findings.add(seq, "experience", "no proposals, as registered", event.rule.name)
            continue
        due = RuleAdmitted(run=run.run, rule=event.rule.name, rule_version=event.rule.version)
        if (following == due) != admits(event, bounds):
            words = "admitted at once, by its shadow test" if following != due else "not admitted, by its shadow test"
            findings.add(seq, "experience", f"{event.rule.name} version {event.rule.version} {words}", event.shadow)


def _demands(event: RuleProposed, table: list[Rule], experience: Experience) -> Iterator[tuple[str, object]]:
    """What is not so of a proposal: (expected, found)."""
    due = _due(event, table)
    if due is None:
        yield (
            "one clause more by which a rule of the table that is no stop is narrowed, or its prescription served",
            event,
        )
    elif due != event.rule:
        yield f"{due}, as the table gives it", event.rule
    if experience.proposing is not None and not _separated(event, experience.proposing):
        yield "counts that separate, as registered", event.learnt


def _due(event: RuleProposed, table: list[Rule]) -> Rule | None:
    """The rule that the table and the proposal's last clause give; the gain of a new one is not in the events."""
    family = [rule for rule in table if not rule.stop and rule.prescription == event.rule.prescription]
    parent = next((rule for rule in family if rule.name == event.parent), None)
    signals = {clause.signal for rule in table for clause in rule.clauses}
    clause = event.rule.clauses[-1] if event.rule.clauses else None
    if clause is None or clause.signal not in signals or clause.op not in ("<", ">="):
        return None
    if event.parent is not None:
        return None if parent is None else narrowed(parent, clause, table)
    gain = replace(event.rule.gain, form="constant")
    return unexplained(event.rule.prescription or "", clause, family, table, gain) if family else None


def _separated(event: RuleProposed, bounds: Proposing) -> bool:
    """Examples of so many problems are no fewer than these problems."""
    learnt = event.learnt
    spared = event.parent is None or learnt.avoided_failures >= bounds.support
    return separates(learnt, bounds) and learnt.kept_successes >= bounds.support and spared


def _check_evidence(run: RunEvents, findings: Findings) -> None:
    """Evidence is of rules of the table, and names its problems in order."""
    known = {(rule.name, rule.version) for rule in run.table()}
    for seq, event in run.carried:
        if (event.rule, event.rule_version) not in known:
            rule = f"{event.rule} version {event.rule_version}"
            findings.add(seq, "experience", "evidence of a rule of the table, or of an admitted one", rule)
        if any(list(named) != sorted(named) for named in (event.helped, event.failed)):
            findings.add(seq, "experience", "problems in order", (event.helped, event.failed))
