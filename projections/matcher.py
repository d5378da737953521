"""Which rule fires on given signals: the pure interpreter of the rule table. Never measures, never takes missing for 0."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import UNSET

from ..events.model import Abstained, Blocked, Chip, Clause, ClauseSeen, Context, Gain, Guard, Rule, RuleAnswer

RuleVersion = tuple[str, int]
Silenced = tuple[str, int, Context]
Reason = Literal["guard", "contract", "no_variant", "retired", "spent", "tabu"]
Signals = Mapping[str, float]

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """What the table says: the rule that fires with its evidence, and of the rules asked before it who could not answer.

    Without a firing `clauses` is empty and `predicted_gain` is 1.0.
    """

    fired: Rule | None
    clauses: tuple[ClauseSeen, ...]
    abstained: tuple[Abstained, ...]
    blocked: tuple[Blocked, ...]
    predicted_gain: float


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides whether a rule whose clauses hold may fire.

    `retired` and `spent` count only where `evolves`; `tabu` names the rules whose firing on this very incumbent ended inert
    (empty in arms without tabu), `spent` those that had as many rounds on it as the policy's patience, and no FASTER.
    """

    chip: Chip
    contract: str
    context: Context
    prescriptions: Collection[str]
    evolves: bool
    retired: Collection[Silenced]
    tabu: Collection[str]
    spent: Collection[str] = ()


def in_order(rules: Iterable[Rule], promoted: Collection[RuleVersion]) -> tuple[Rule, ...]:
    """The rules as they are asked: (tier, promoted first, position, name), of each name the highest version only."""

    def key(rule: Rule) -> tuple[int, bool, int, str]:
        return (rule.tier, (rule.name, rule.version) not in promoted, rule.position, rule.name)

    return tuple(sorted(newest(rules), key=key))


def newest(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Of each name the highest version."""
    found: dict[str, Rule] = {}
    for rule in rules:
        if rule.name not in found or found[rule.name].version < rule.version:
            found[rule.name] = rule
    return tuple(found.values())


def match(rules_in_order: Iterable[Rule], signals: Signals, situation: Situation) -> Match:
    """Ask the rules one after the other until one fires; the rules after it are not asked (replay/FORMAT.md 6.6)."""
    abstained: list[Abstained] = []
    blocked: list[Blocked] = []
    for rule in rules_in_order:
        if not _present_clauses_hold(rule.clauses, signals):
            continue
        missing = tuple(dict.fromkeys(clause.signal for clause in rule.clauses if clause.signal not in signals))
        if missing:
            abstained.append(Abstained(rule=rule.name, missing=missing))
            continue
        reason = _block(rule, situation)
        if reason is not None:
            blocked.append(Blocked(rule=rule.name, reason=reason))
            continue
        return Match(
            fired=rule,
            clauses=tuple(_seen(clause, signals) for clause in rule.clauses),
            abstained=tuple(abstained),
            blocked=tuple(blocked),
            predicted_gain=predicted_gain(rule.gain, signals, situation.chip),
        )
    return Match(fired=None, clauses=(), abstained=tuple(abstained), blocked=tuple(blocked), predicted_gain=1.0)


def draw(rules: Iterable[Rule], drawn: str, signals: Signals, situation: Situation) -> Match:
    """The first rule with a prescription, in an order that the text `drawn` gives, that nothing standing blocks.

    Its clauses need not hold: they are told, with the values seen, as far as their signals are there (replay/FORMAT.md 6.6).
    """
    order = sorted(rules, key=lambda rule: sha256(f"{drawn}:{rule.name}".encode()).digest())
    blocked: list[Blocked] = []
    for rule in order:
        if rule.stop:
            continue
        reason = standing_block(rule, situation.chip, situation.contract, situation.prescriptions)
        if reason is None:
            seen = tuple(_seen(clause, signals) for clause in rule.clauses if clause.signal in signals)
            gain = predicted_gain(rule.gain, signals, situation.chip)
            return Match(fired=rule, clauses=seen, abstained=(), blocked=tuple(blocked), predicted_gain=gain)
        blocked.append(Blocked(rule=rule.name, reason=reason))
    return Match(fired=None, clauses=(), abstained=(), blocked=tuple(blocked), predicted_gain=1.0)


def answers(
    rules: Iterable[Rule], signals: Signals, chip: Chip, contract: str, prescriptions: Collection[str]
) -> tuple[RuleAnswer, ...]:
    """What every rule says of a kernel on its own, in the order of asking without promotions (replay/FORMAT.md 7)."""
    return tuple(_answer(rule, signals, chip, contract, prescriptions) for rule in in_order(rules, ()))


def _answer(rule: Rule, signals: Signals, chip: Chip, contract: str, prescriptions: Collection[str]) -> RuleAnswer:
    missing = tuple(dict.fromkeys(clause.signal for clause in rule.clauses if clause.signal not in signals))
    answer: Literal["fires", "abstains", "blocked", "silent"] = "fires"
    reason = None
    if not _present_clauses_hold(rule.clauses, signals):
        answer = "silent"
    elif missing:
        answer = "abstains"
    elif (reason := standing_block(rule, chip, contract, prescriptions)) is not None:
        answer = "blocked"
    decided = answer in ("fires", "blocked")
    return RuleAnswer(
        rule=rule.name,
        version=rule.version,
        answer=answer,
        clauses=tuple(_seen(clause, signals) for clause in rule.clauses if clause.signal in signals),
        missing=missing,
        reason=reason,
        predicted_gain=float(predicted_gain(rule.gain, signals, chip)) if decided else None,
    )


def predicted_gain(gain: Gain, signals: Signals, chip: Chip) -> float:
    """min(cap, form); a signal or peak that is absent, and one over a signal of 0, give the cap."""
    value: float | None = None
    if gain.form == "signal" and gain.signal is not None:
        value = signals.get(gain.signal)
    elif gain.form == "inverse_signal" and gain.signal is not None:
        divisor = signals.get(gain.signal)
        value = 1 / divisor if divisor else None
    elif gain.form == "amdahl" and gain.signal is not None and gain.signal in signals:
        share = 1.0 if gain.share is UNSET else max(0.0, min(1.0, signals.get(gain.share, 1.0)))
        value = 1 / ((1 - share) + share / max(1.0, signals[gain.signal]))
    elif gain.form == "peak_ratio" and gain.over is not None and gain.under is not None:
        value = _peak_ratio(chip, gain.over, gain.under)
    return gain.cap if value is None else min(gain.cap, value)


def satisfied(clauses: Iterable[Clause], signals: Signals) -> bool:
    """Whether every clause holds, which one over a missing signal does not."""
    return all(c.signal in signals and _COMPARE[c.op](signals[c.signal], c.threshold) for c in clauses)


def _present_clauses_hold(clauses: Iterable[Clause], signals: Signals) -> bool:
    return all(
        _COMPARE[clause.op](signals[clause.signal], clause.threshold) for clause in clauses if clause.signal in signals
    )


def _seen(clause: Clause, signals: Signals) -> ClauseSeen:
    return ClauseSeen(
        signal=clause.signal, op=clause.op, threshold=clause.threshold, value=float(signals[clause.signal])
    )


def _block(rule: Rule, situation: Situation) -> Reason | None:
    """The first reason, in the order of the format, why a rule whose clauses all hold may not fire."""
    standing = standing_block(rule, situation.chip, situation.contract, situation.prescriptions)
    if standing is not None:
        return standing
    if situation.evolves and (rule.name, rule.version, situation.context) in situation.retired:
        return "retired"
    if situation.evolves and rule.name in situation.spent:
        return "spent"
    if rule.name in situation.tabu:
        return "tabu"
    return None


def standing_block(
    rule: Rule, chip: Chip, contract: str, prescriptions: Collection[str]
) -> Literal["contract", "guard", "no_variant"] | None:
    """Why a rule cannot fire on this problem whatever is measured: contract, guard or no variant; None where it can."""
    if rule.contracts and contract not in rule.contracts:
        return "contract"
    if not all(_guard_holds(guard, chip) for guard in rule.guards):
        return "guard"
    if not rule.stop and rule.prescription not in prescriptions:
        return "no_variant"
    return None


def _guard_holds(guard: Guard, chip: Chip) -> bool:
    ratio = _peak_ratio(chip, guard.over, guard.under)
    return ratio is not None and ratio >= guard.at_least


def _peak_ratio(chip: Chip, over: str, under: str) -> float | None:
    """peak(over) / peak(under) of the data sheet, or None where the chip lacks one of the paths."""
    numerator, denominator = chip.peaks_tflops.get(over), chip.peaks_tflops.get(under)
    return numerator / denominator if numerator is not None and denominator else None
