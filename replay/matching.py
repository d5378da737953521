"""The rule matcher of FORMAT.md 6.6, three-valued and in the stated order. Never decides on a missing signal."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec
from msgspec import UnsetType

from ..events.model import Abstained, Blocked, Chip, Clause, ClauseSeen, Context, Gain, Rule

COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
RuleKey = tuple[str, int]
Standing = Literal["guard", "contract", "no_variant"]
Obstacle = Literal["guard", "contract", "no_variant", "retired", "spent", "tabu"]


class Question(msgspec.Struct, frozen=True):
    """What the rules are asked about: the incumbent's signals and everything that may block a rule in this cell."""

    signals: Mapping[str, float]
    chip: Chip
    context: Context
    prescriptions: tuple[str, ...]
    promoted: frozenset[RuleKey]
    retired: frozenset[tuple[RuleKey, Context]]
    tabu: frozenset[str]
    spent: frozenset[str] = frozenset()


class Decision(msgspec.Struct, frozen=True):
    """The rule that fires (None: none does), with what it saw, and the rules passed over before it."""

    rule: Rule | None
    clauses: tuple[ClauseSeen, ...] = ()
    abstained: tuple[Abstained, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    gain: float | None = None


def ordered(table: Iterable[Rule], promoted: frozenset[RuleKey]) -> list[Rule]:
    """Each name once, in its highest version, in the order of asking by position."""
    return sorted(highest(table), key=lambda r: (r.tier, (r.name, r.version) not in promoted, r.position, r.name))


def highest(table: Iterable[Rule]) -> list[Rule]:
    """Each name once, in its highest version."""
    found: dict[str, Rule] = {}
    for rule in table:
        if rule.name not in found or found[rule.name].version < rule.version:
            found[rule.name] = rule
    return list(found.values())


def match(table: Iterable[Rule], asked: Question) -> Decision:
    """Ask the rules in order of position until one fires."""
    return first(ordered(table, asked.promoted), asked)


def first(order: Iterable[Rule], asked: Question) -> Decision:
    """Ask these rules, each name once, one after the other until one fires."""
    abstained: list[Abstained] = []
    blocked: list[Blocked] = []
    for rule in order:
        missing = tuple(dict.fromkeys(c.signal for c in rule.clauses if c.signal not in asked.signals))
        if any(not holds(c, asked.signals) for c in rule.clauses if c.signal in asked.signals):
            continue
        if missing:
            abstained.append(Abstained(rule=rule.name, missing=missing))
            continue
        reason = _obstacle(rule, asked)
        if reason is None:
            clauses = tuple(seen(c, asked.signals[c.signal]) for c in rule.clauses)
            return Decision(
                rule, clauses, tuple(abstained), tuple(blocked), predicted_gain(rule.gain, asked.signals, asked.chip)
            )
        blocked.append(Blocked(rule=rule.name, reason=reason))
    return Decision(None, (), tuple(abstained), tuple(blocked))


def drawn(table: Iterable[Rule], place: str, asked: Question) -> Decision:
    """The arm `random`: prescriptions in the order of the digests of place and name, the first that is at hand; no clause is asked."""
    prescribing = {hashlib.sha256(f"{place}:{r.name}".encode()).hexdigest(): r for r in table if not r.stop}
    blocked: list[Blocked] = []
    for _, rule in sorted(prescribing.items()):
        reason = guarded(rule, asked.chip, asked.context.contract, asked.prescriptions)
        if reason is not None:
            blocked.append(Blocked(rule=rule.name, reason=reason))
            continue
        told = tuple(seen(c, asked.signals[c.signal]) for c in rule.clauses if c.signal in asked.signals)
        return Decision(rule, told, (), tuple(blocked), predicted_gain(rule.gain, asked.signals, asked.chip))
    return Decision(None, (), (), tuple(blocked))


def holds(clause: Clause, signals: Mapping[str, float]) -> bool:
    """Whether a clause over a present signal is true."""
    return COMPARE[clause.op](signals[clause.signal], clause.threshold)


def seen(clause: Clause, value: float) -> ClauseSeen:
    """A clause beside the value of its signal."""
    return ClauseSeen(signal=clause.signal, op=clause.op, threshold=clause.threshold, value=value)


def _obstacle(rule: Rule, asked: Question) -> Obstacle | None:
    reason = guarded(rule, asked.chip, asked.context.contract, asked.prescriptions)
    if reason is not None:
        return reason
    if ((rule.name, rule.version), asked.context) in asked.retired:
        return "retired"
    if rule.name in asked.spent:
        return "spent"
    return "tabu" if rule.name in asked.tabu else None


def guarded(rule: Rule, chip: Chip, contract: str, prescriptions: tuple[str, ...]) -> Standing | None:
    """The first obstacle that the rule meets on this chip under this contract, whatever happened before."""
    if rule.contracts and contract not in rule.contracts:
        return "contract"
    for guard in rule.guards:
        ratio = peak_ratio(chip, guard.over, guard.under)
        if ratio is None or ratio < guard.at_least:
            return "guard"
    return "no_variant" if not rule.stop and rule.prescription not in prescriptions else None


def peak_ratio(chip: Chip, over: str | None, under: str | None) -> float | None:
    """peak(over) / peak(under) of the data sheet; None where the chip lacks either path."""
    high, low = chip.peaks_tflops.get(over or ""), chip.peaks_tflops.get(under or "")
    return None if high is None or low is None or low == 0 else high / low


def predicted_gain(gain: Gain, signals: Mapping[str, float], chip: Chip) -> float:
    """The gain that the rule promises here."""
    value = signals.get(gain.signal) if gain.signal is not None else None
    form: float | None = None
    if gain.form == "signal":
        form = value
    elif gain.form == "inverse_signal":
        form = None if value is None or value == 0 else 1 / value
    elif gain.form == "peak_ratio":
        form = peak_ratio(chip, gain.over, gain.under)
    elif gain.form == "amdahl" and value is not None:
        form = amdahl(value, _share(gain, signals))
    return gain.cap if form is None else min(gain.cap, form)


def amdahl(factor: float, share: float) -> float:
    """Speed-up of the whole where `share` of its time becomes `factor` times faster, which is at least 1."""
    return 1 / ((1 - share) + share / max(1, factor))


def _share(gain: Gain, signals: Mapping[str, float]) -> float:
    found = None if isinstance(gain.share, UnsetType) else signals.get(gain.share)
    return 1 if found is None else min(1, max(0, found))
