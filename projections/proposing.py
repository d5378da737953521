"""Rules that recorded outcomes suggest, and their shadow test: one more clause, or a rule for gains that none explains. Never runs a rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from ..events.model import Clause, Gain, Proposing, Rule, RuleAdmitted, RuleProposed, Separation
from .experience import Trial, matching
from .matcher import newest, satisfied

ORIGIN = "proposed"
_RATIONALE = "Proposed from recorded outcomes, which are in the ledger that the registration names."


class _Example(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel of one problem: the signals at its first trial, and whether any of its trials succeeded."""

    problem: str
    signals: dict[str, float]
    success: bool


def proposals(
    run: str, seed: int, bounds: Proposing, table: Iterable[Rule], seen: Sequence[Trial]
) -> Iterator[tuple[RuleProposed, bool]]:
    """Every proposal, with whether its shadow test admits it: narrowed rules by name, then new ones by prescription."""
    rules = sorted(newest(table), key=lambda rule: rule.name)
    vocabulary = sorted({clause.signal for rule in rules for clause in rule.clauses})
    for rule in (rule for rule in rules if not rule.stop):
        own = matching(rule, (t for t in seen if (t.rule, t.version) == (rule.name, rule.version)))
        learn, shadow = _halves(seed, own)
        clause = _best(_examples(learn), vocabulary, bounds, avoid=bounds.support)
        if clause is not None:
            made = _narrowed(rule, clause, rules)
            found = _proposal(run, made, rule.name, clause, learn, shadow)
            yield found, found.shadow.lost_successes == 0 and found.shadow.avoided_failures > 0
    for prescription in sorted(
        {rule.prescription for rule in rules if rule.prescription is not None and not rule.stop}
    ):
        yield from _unexplained(run, seed, bounds, prescription, rules, vocabulary, seen)


def admitted(found: RuleProposed) -> RuleAdmitted:
    """The event that lets a proposed rule fire."""
    return RuleAdmitted(run=found.run, rule=found.rule.name, rule_version=found.rule.version)


def _unexplained(
    run: str,
    seed: int,
    bounds: Proposing,
    prescription: str,
    rules: Sequence[Rule],
    vocabulary: Sequence[str],
    seen: Sequence[Trial],
) -> Iterator[tuple[RuleProposed, bool]]:
    """A rule for rounds with this prescription at which no rule that prescribes it held."""
    family = [rule for rule in rules if rule.prescription == prescription]
    open_ = [
        trial
        for trial in seen
        if trial.prescription == prescription and not any(satisfied(rule.clauses, trial.signals) for rule in family)
    ]
    learn, shadow = _halves(seed, open_)
    clause = _best(_examples(learn), vocabulary, bounds, avoid=0)
    if clause is None:
        return
    found = _proposal(run, _new(prescription, clause, family, rules, learn), None, clause, learn, shadow)
    kept = found.shadow.kept_successes
    pure = bounds.purity_den * kept >= bounds.purity_num * (kept + found.shadow.kept_failures)
    yield found, kept > 0 and pure


def _halves(seed: int, seen: Iterable[Trial]) -> tuple[list[Trial], list[Trial]]:
    """Problems are dealt to the half that is learnt from (even) or the other by the last bit of a digest."""
    learn: list[Trial] = []
    shadow: list[Trial] = []
    for trial in seen:
        odd = sha256(f"{seed}:{trial.problem}".encode()).digest()[-1] & 1
        (shadow if odd else learn).append(trial)
    return learn, shadow


def _examples(seen: Iterable[Trial]) -> list[_Example]:
    found: dict[tuple[str, str], _Example] = {}
    for trial in seen:
        key = trial.problem, trial.incumbent
        first = found.get(key)
        signals = dict(trial.signals) if first is None else first.signals
        success = trial.success or (first is not None and first.success)
        found[key] = _Example(problem=trial.problem, signals=signals, success=success)
    return list(found.values())


def _best(examples: Sequence[_Example], vocabulary: Sequence[str], bounds: Proposing, avoid: int) -> Clause | None:
    """The clause with the largest kept successes * failures - kept failures * successes within the bounds, or None.

    Equals: more kept successes, then the smaller (signal, comparison, threshold). Thresholds are values seen; a signal that some
    example lacks is left out. `avoid`: problems whose failures it must avoid.
    """
    successes = sum(example.success for example in examples)
    best: tuple[tuple[int, int, str, str, float], Clause] | None = None
    for clause in _clauses(examples, vocabulary):
        kept = [example for example in examples if satisfied((clause,), example.signals)]
        good = sum(example.success for example in kept)
        score = good * (len(examples) - successes) - (len(kept) - good) * successes
        speaking = {example.problem for example in kept if example.success}
        avoided = {e.problem for e in examples if not e.success and not satisfied((clause,), e.signals)}
        pure = bounds.purity_den * good >= bounds.purity_num * len(kept)
        if score <= 0 or len(speaking) < bounds.support or len(avoided) < avoid or not pure:
            continue
        key = (-score, -good, clause.signal, clause.op, clause.threshold)
        if best is None or key < best[0]:
            best = key, clause
    return None if best is None else best[1]


def _clauses(examples: Sequence[_Example], vocabulary: Sequence[str]) -> Iterator[Clause]:
    for signal in vocabulary:
        if examples and all(signal in example.signals for example in examples):
            for threshold in sorted({example.signals[signal] for example in examples})[1:]:
                yield Clause(signal=signal, op="<", threshold=threshold)
                yield Clause(signal=signal, op=">=", threshold=threshold)


def _proposal(
    run: str, rule: Rule, parent: str | None, clause: Clause, learn: Iterable[Trial], shadow: Iterable[Trial]
) -> RuleProposed:
    learnt = [(example.signals, example.success) for example in _examples(learn)]
    rounds = [(dict(trial.signals), trial.success) for trial in shadow]
    return RuleProposed(
        run=run, rule=rule, parent=parent, learnt=_separation(clause, learnt), shadow=_separation(clause, rounds)
    )


def _separation(clause: Clause, seen: Sequence[tuple[dict[str, float], bool]]) -> Separation:
    counts = {(kept, success): 0 for kept in (True, False) for success in (True, False)}
    for signals, success in seen:
        counts[satisfied((clause,), signals), success] += 1
    return Separation(
        kept_successes=counts[True, True],
        kept_failures=counts[True, False],
        lost_successes=counts[False, True],
        avoided_failures=counts[False, False],
    )


def _narrowed(rule: Rule, clause: Clause, rules: Sequence[Rule]) -> Rule:
    return replace(
        rule,
        version=rule.version + 1,
        clauses=(*rule.clauses, clause),
        metrics=_metrics(rule, clause, rules),
        origin=ORIGIN,
        rationale=_RATIONALE,
    )


def _new(
    prescription: str, clause: Clause, family: Sequence[Rule], rules: Sequence[Rule], learn: Sequence[Trial]
) -> Rule:
    """As the first rule by name that prescribes the same, in the last tier of those; its gain is the lower median of what was won."""
    name = f"unexplained_{prescription}"
    won = sorted(trial.ratio for trial in learn if trial.success and trial.ratio is not None)
    return replace(
        family[0],
        name=name,
        version=1 + max((rule.version for rule in rules if rule.name == name), default=0),
        tier=max(rule.tier for rule in family),
        position=1 + max(rule.position for rule in rules),
        clauses=(clause,),
        gain=Gain(form="constant", cap=won[(len(won) - 1) // 2] if won else 1.0),
        metrics=_metrics(family[0], clause, rules),
        origin=ORIGIN,
        rationale=_RATIONALE,
    )


def _metrics(rule: Rule, clause: Clause, rules: Sequence[Rule]) -> tuple[str, ...]:
    """The rule's, and those of the first other rule by name that asks for the clause's signal."""
    asks = [other for other in rules if clause.signal in {c.signal for c in other.clauses}]
    more = asks[0].metrics if asks else ()
    return tuple(dict.fromkeys((*rule.metrics, *more)))
