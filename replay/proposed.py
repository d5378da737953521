"""The proposals that a ledger's trials give and their shadow test (FORMAT.md 6.9), derived again. Never admits by itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import msgspec

from ..events.model import Clause, Context, Gain, Proposing, Rule, RuleProposed, Separation
from .matching import COMPARE, RuleKey

Point = tuple[str, Mapping[str, float], bool]
"""Problem, signals, success."""


class Trial(msgspec.Struct, frozen=True):
    """One judged round that counted, with the incumbent's signals when its rule fired."""

    seq: int
    problem: str
    key: RuleKey
    prescription: str | None
    context: Context
    incumbent: str
    signals: Mapping[str, float]
    success: bool
    ratio: float | None


def derive(
    run: str, seed: int, bounds: Proposing, table: list[Rule], trials: list[Trial]
) -> Iterator[tuple[RuleProposed, bool]]:
    """Every proposal in the order of the page, and whether it is admitted."""
    named = sorted(table, key=lambda rule: rule.name)
    signals = sorted({clause.signal for rule in named for clause in rule.clauses})
    acting = [rule for rule in named if not rule.stop]
    for rule in acting:
        own = [t for t in trials if t.key == (rule.name, rule.version) and _all(rule.clauses, t.signals)]
        taught, tested = _dealt(seed, own)
        clause = _clause(_points(taught), signals, bounds, bounds.support)
        if clause is not None:
            made = narrowed(rule, clause, named)
            shadow = _split(clause, [(t.problem, t.signals, t.success) for t in tested])
            learnt = _split(clause, _points(taught))
            proposal = RuleProposed(run=run, rule=made, parent=rule.name, learnt=learnt, shadow=shadow)
            yield proposal, admits(proposal, bounds)
    for wanted in sorted({rule.prescription or "" for rule in acting}):
        family = [rule for rule in acting if rule.prescription == wanted]
        left = [t for t in trials if t.prescription == wanted and not any(_all(r.clauses, t.signals) for r in family)]
        taught, tested = _dealt(seed, left)
        clause = _clause(_points(taught), signals, bounds, 0)
        if clause is not None:
            made = unexplained(wanted, clause, family, named, _gain(taught))
            shadow = _split(clause, [(t.problem, t.signals, t.success) for t in tested])
            learnt = _split(clause, _points(taught))
            proposal = RuleProposed(run=run, rule=made, parent=None, learnt=learnt, shadow=shadow)
            yield proposal, admits(proposal, bounds)


def admits(proposal: RuleProposed, bounds: Proposing) -> bool:
    """Whether a proposal's shadow test lets it fire: a narrowed rule loses no gain and spares a round, a new one gains."""
    shadow = proposal.shadow
    if proposal.parent is not None:
        return not shadow.lost_successes and shadow.avoided_failures >= 1
    return shadow.kept_successes >= 1 and _pure(
        shadow.kept_successes, shadow.kept_successes + shadow.kept_failures, bounds
    )


def separates(learnt: Separation, bounds: Proposing) -> bool:
    """Whether examples so divided bear out a clause: more of those inside are successes than of all, and as pure as asked."""
    good, bad = learnt.kept_successes + learnt.lost_successes, learnt.kept_failures + learnt.avoided_failures
    inside = learnt.kept_successes + learnt.kept_failures
    return learnt.kept_successes * bad > learnt.kept_failures * good and _pure(learnt.kept_successes, inside, bounds)


def _all(clauses: tuple[Clause, ...], signals: Mapping[str, float]) -> bool:
    for clause in clauses:
        if clause.signal not in signals or not COMPARE[clause.op](signals[clause.signal], clause.threshold):
            return False
    return True


def _dealt(seed: int, trials: list[Trial]) -> tuple[list[Trial], list[Trial]]:
    """Problems with an even digest teach, the others test."""
    even = {
        t.problem for t in trials if int(hashlib.sha256(f"{seed}:{t.problem}".encode()).hexdigest()[-1], 16) % 2 == 0
    }
    return [t for t in trials if t.problem in even], [t for t in trials if t.problem not in even]


def _points(trials: list[Trial]) -> list[Point]:
    """One for each kernel of a problem: its signals at first, and whether it was ever a success."""
    firsts: dict[tuple[str, str], Trial] = {}
    won: set[tuple[str, str]] = set()
    for trial in trials:
        place = (trial.problem, trial.incumbent)
        firsts.setdefault(place, trial)
        if trial.success:
            won.add(place)
    return [(place[0], trial.signals, place in won) for place, trial in firsts.items()]


def _clause(points: list[Point], signals: list[str], bounds: Proposing, avoided: int) -> Clause | None:
    good = sum(1 for _, _, success in points if success)
    bad = len(points) - good
    ranked: list[tuple[int, int, str, str, float]] = []
    for signal in signals:
        if any(signal not in seen for _, seen, _ in points):
            continue
        values = sorted({seen[signal] for _, seen, _ in points})
        for op in ("<", ">="):
            for threshold in values[1:]:
                inside = [p for p in points if COMPARE[op](p[1][signal], threshold)]
                outside = [p for p in points if not COMPARE[op](p[1][signal], threshold)]
                hits = sum(1 for p in inside if p[2])
                score = hits * bad - (len(inside) - hits) * good
                enough = len({p[0] for p in inside if p[2]}) >= bounds.support
                spared = len({p[0] for p in outside if not p[2]}) >= avoided
                if score > 0 and enough and spared and _pure(hits, len(inside), bounds):
                    ranked.append((-score, -hits, signal, op, threshold))
    if not ranked:
        return None
    _, _, signal, comparison, threshold = min(ranked)
    return Clause(signal=signal, op="<" if comparison == "<" else ">=", threshold=threshold)


def _pure(hits: int, inside: int, bounds: Proposing) -> bool:
    return hits * bounds.purity_den >= inside * bounds.purity_num


def _split(clause: Clause, points: list[Point]) -> Separation:
    inside = [success for _, seen, success in points if _all((clause,), seen)]
    outside = [success for _, seen, success in points if not _all((clause,), seen)]
    return Separation(
        kept_successes=inside.count(True),
        kept_failures=inside.count(False),
        lost_successes=outside.count(True),
        avoided_failures=outside.count(False),
    )


def narrowed(rule: Rule, clause: Clause, named: list[Rule]) -> Rule:
    """The next version of a rule, with one clause more; `named` is the table by name."""
    clauses = (*rule.clauses, clause)
    return msgspec.structs.replace(rule, version=rule.version + 1, clauses=clauses, **_made(rule, clause, named))


def unexplained(wanted: str, clause: Clause, family: list[Rule], named: list[Rule], gain: Gain) -> Rule:
    """A new rule for the prescription `wanted`, which the rules of `family` have; both lists are by name."""
    name = f"unexplained_{wanted}"
    return msgspec.structs.replace(
        family[0],
        name=name,
        version=max([0, *(rule.version for rule in named if rule.name == name)]) + 1,
        tier=max(rule.tier for rule in family),
        position=max(rule.position for rule in named) + 1,
        clauses=(clause,),
        gain=gain,
        **_made(family[0], clause, named),
    )


def _gain(taught: list[Trial]) -> Gain:
    ratios = sorted(t.ratio for t in taught if t.success and t.ratio is not None)
    return Gain(form="constant", cap=ratios[(len(ratios) - 1) // 2] if ratios else 1.0)


def _made(rule: Rule, clause: Clause, named: list[Rule]) -> dict[str, object]:
    """Metrics with those of the first rule that asks for the clause's signal; whence the rule is."""
    asking = next((other.metrics for other in named if any(c.signal == clause.signal for c in other.clauses)), ())
    return {
        "metrics": tuple(dict.fromkeys([*rule.metrics, *asking])),
        "origin": "proposed",
        "rationale": "Proposed from recorded outcomes, which are in the ledger that the registration names.",
    }
