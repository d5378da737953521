"""What a ledger says, folded as recorded: rule tables with their evidence, rounds, claims. Never re-derives and never judges."""

from __future__ import annotations

from sys import intern

import msgspec

from ..events.model import RoundJudged, Rule
from .evolution import Evidence
from .finals import ClaimView
from .grammar import Script
from .matching import ordered


class RuleRow(msgspec.Struct, frozen=True):
    """One rule's evidence in one cell."""

    cell: str
    rule: str
    version: int
    fired: int
    successes: int
    failures: int
    confidence: float
    retired: tuple[str, ...]
    promoted: bool


class RoundRow(msgspec.Struct, frozen=True):
    """One judged round, as recorded."""

    cell: str
    round: int
    attempt: int
    rule: str
    verdict: str
    reason: str
    credit: str
    lower: float | None
    median: float | None
    upper: float | None
    next_incumbent: str


class RunView(msgspec.Struct, frozen=True):
    """One run: what was registered of its origin, and its folds."""

    run: str
    executor: str
    origin: str | None
    cells: int
    stopped: str | None
    rules: tuple[RuleRow, ...]
    rounds: tuple[RoundRow, ...]
    ends: dict[str, str]
    claims: tuple[ClaimView, ...]
    table: tuple[Rule, ...] = ()
    unlisted: int = 0


def fold_cell(stream: str, script: Script, table: tuple[Rule, ...]) -> tuple[list[RuleRow], list[RoundRow]]:
    """A cell's rules by tier, promotion and position, and its rounds."""
    evidence, rounds = Evidence(), list[RoundRow]()
    fired: dict[tuple[str, int], int] = {}
    silenced: dict[tuple[str, int], list[str]] = {}
    for round_ in script.rounds:
        if round_.fired is None or round_.judged is None:
            continue
        judged = round_.judged
        key = (judged.rule, judged.rule_version)
        fired[key] = fired.get(key, 0) + 1
        evidence.credit(key, round_.fired.context, judged.credit, judged.firing)
        rounds.append(_row(stream, judged))
        if round_.retired is not None:
            where = round_.retired.context
            context = f"{where.chip}/{where.contract}/{where.language}/{where.family}/{where.structure}"
            silenced.setdefault((round_.retired.rule, round_.retired.rule_version), []).append(context)
        if round_.promoted is not None:
            evidence.promoted.add((round_.promoted.rule, round_.promoted.rule_version))
    rules = [
        _rule(stream, (rule.name, rule.version), evidence, fired, silenced)
        for rule in ordered(table, frozenset(evidence.promoted))
    ]
    return rules, rounds


def _rule(
    stream: str,
    key: tuple[str, int],
    evidence: Evidence,
    fired: dict[tuple[str, int], int],
    silenced: dict[tuple[str, int], list[str]],
) -> RuleRow:
    tally = evidence.tally(key)
    return RuleRow(
        cell=stream,
        rule=key[0],
        version=key[1],
        fired=fired.get(key, 0),
        successes=tally.successes,
        failures=tally.failures,
        confidence=tally.confidence,
        retired=tuple(silenced.get(key, ())),
        promoted=key in evidence.promoted,
    )


def _row(stream: str, judged: RoundJudged) -> RoundRow:
    found = judged.interval
    return RoundRow(
        cell=stream,
        round=judged.round,
        attempt=judged.attempt,
        # Decoding makes each text anew; a report of many rounds holds each once.
        rule=intern(judged.rule),
        verdict=intern(judged.verdict),
        reason=intern(judged.reason),
        credit=intern(judged.credit),
        lower=None if found is None else found.lower,
        median=None if found is None else found.median,
        upper=None if found is None else found.upper,
        next_incumbent=intern(judged.next_incumbent),
    )
