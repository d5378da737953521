"""What fed an event of a round, on two sides: the signals, samples, report or text behind it that differ. Never judges which is right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest

import msgspec

from ..events.model import KernelGated, KernelGenerated, RoundJudged, Rule, RuleFired, TilesSwept
from .artifacts import GateReport, Samples, Sweep
from .findings import as_text
from .grammar import Round
from .projected import Difference, value_text
from .side import Side, latest_signals
from .statistic import lower_median


class Half(msgspec.Struct, frozen=True):
    """One side of a comparison: its ledger, the rule table of the run, the cell's earlier rounds and the round at hand."""

    side: Side
    table: tuple[Rule, ...]
    before: list[Round]
    round: Round | None


def apart(what: str, left: object, right: object) -> Iterator[Difference]:
    """One difference, where the values differ."""
    if left != right:
        yield Difference(what, _said(left), _said(right))


def _said(value: object) -> str | None:
    if value is None:
        return None
    return as_text(value_text(value) if isinstance(value, str | int | float | tuple) else value)


def firing(left: Half, right: Half) -> Iterator[Difference]:
    """What the rules were asked about: incumbent, context, the signals that decide between the two answers, what was passed over."""
    one, other = _fired(left), _fired(right)
    yield from apart(
        "incumbent", left.round and left.round.attempted.incumbent, right.round and right.round.attempted.incumbent
    )
    if one is not None and other is not None:
        yield from apart("context", one.context, other.context)
    names = dict.fromkeys([*_asked(left.table, one, other), *_asked(right.table, one, other)])
    yield from _signals(names, left, right)
    if one is not None and other is not None:
        yield from apart("abstained", _abstained(one), _abstained(other))
        yield from apart("blocked", _blocked(one), _blocked(other))


def _fired(half: Half) -> RuleFired | None:
    return None if half.round is None else half.round.fired


def _asked(table: Iterable[Rule], *fired: RuleFired | None) -> Iterator[str]:
    """The signals of the clauses of the rules that fired."""
    names = {(event.rule, event.rule_version) for event in fired if event is not None}
    for rule in table:
        if (rule.name, rule.version) in names:
            yield from (clause.signal for clause in rule.clauses)


def _signals(names: Iterable[str], left: Half, right: Half) -> Iterator[Difference]:
    one, other = _seen(left), _seen(right)
    for name in names:
        yield from apart(f"signal {name}", one.get(name), other.get(name))


def _seen(half: Half) -> dict[str, float]:
    return {} if half.round is None else latest_signals(half.before, half.round.attempted.incumbent)


def standing(half: Half) -> dict[str, float]:
    """The signals of the incumbent after the rounds so far."""
    rounds = [round_ for round_ in half.before if round_.judged is not None]
    source = rounds[-1].judged.next_incumbent if rounds and rounds[-1].judged is not None else None
    start = half.before[0].attempted.incumbent if half.before else None
    return latest_signals(half.before, source or start)


def _abstained(event: RuleFired) -> tuple[str, ...]:
    return tuple(f"{entry.rule} without {' '.join(entry.missing)}" for entry in event.abstained)


def _blocked(event: RuleFired) -> tuple[str, ...]:
    return tuple(f"{entry.rule} by {entry.reason}" for entry in event.blocked)


def sweep(left: Half, right: Half) -> Iterator[Difference]:
    """The template, its configurations and how long each took."""
    one, other = _swept(left), _swept(right)
    if one is None or other is None:
        return
    yield from apart("template", one.template, other.template)
    pairs = zip_longest(_by_config(left.side, one), _by_config(right.side, other), fillvalue=("", None))
    for (config, ns), (config_too, ns_too) in pairs:
        yield from apart(f"configuration {config or config_too}, lower median in ns", ns, ns_too)


def _swept(half: Half) -> TilesSwept | None:
    return None if half.round is None else half.round.swept


def _by_config(side: Side, event: TilesSwept) -> list[tuple[str, int | None]]:
    found = side.artifact(event.samples, Sweep)
    samples = () if found is None else found.samples
    medians = [None if not ns else lower_median(ns) for ns in samples]
    return [(as_text(config), ns) for config, ns in zip(event.configs, medians, strict=False)]


def candidate(left: Half, right: Half) -> Iterator[Difference]:
    """Where the texts come from: parent, generator, variant, and the sweep that chose the tiles."""
    one, other = _generated(left), _generated(right)
    if one is not None and other is not None:
        for name in ("parent", "generator", "variant"):
            yield from apart(name, getattr(one, name), getattr(other, name))
    yield from sweep(left, right)


def _generated(half: Half) -> KernelGenerated | None:
    return None if half.round is None else half.round.generated


def gate(left: Half, right: Half) -> Iterator[Difference]:
    """What the gate measured: its break, its largest errors, and the launches."""
    one, other = _gated(left), _gated(right)
    if one is None or other is None:
        return
    facts, facts_too = _gate_facts(left.side, one), _gate_facts(right.side, other)
    for name in dict.fromkeys([*facts, *facts_too]):
        yield from apart(name, facts.get(name), facts_too.get(name))
    yield from apart("launches", one.launches, other.launches)


def _gated(half: Half) -> KernelGated | None:
    return None if half.round is None else half.round.gated


def _gate_facts(side: Side, event: KernelGated) -> dict[str, object]:
    report = side.artifact(event.report, GateReport)
    if report is None:
        return {"report": event.report}
    errors = {"rel_l2": [d.rel_l2 for d in report.draws], "max_rms": [d.max_rms for d in report.draws]}
    worst = {
        f"largest {name}": max((e for e in found if e is not None), default=None) for name, found in errors.items()
    }
    return {"error": None if report.error is None else report.error.outcome, "seed": report.seed, **worst}


def verdict(left: Half, right: Half) -> Iterator[Difference]:
    """The interval and its margin, and the samples behind them."""
    one, other = _judged(left), _judged(right)
    if one is None or other is None:
        return
    for name in ("reason", "inert", "margin"):
        yield from apart(name, getattr(one, name), getattr(other, name))
    for name in ("lower", "median", "upper", "blocks"):
        yield from apart(f"interval {name}", getattr(one.interval, name, None), getattr(other.interval, name, None))
    yield from samples(left, right)
    if one.reason.startswith("gate") or other.reason.startswith("gate"):
        yield from gate(left, right)


def _judged(half: Half) -> RoundJudged | None:
    return None if half.round is None else half.round.judged


def samples(left: Half, right: Half) -> Iterator[Difference]:
    """Lower medians of both kernels on both sides."""
    for name, medians in _medians(left).items():
        yield from apart(name, medians, _medians(right).get(name))


def _medians(half: Half) -> dict[str, int]:
    profiled = None if half.round is None else half.round.profiled
    return {} if profiled is None else medians(half.side, profiled.samples)


def medians(side: Side, digest: str | None) -> dict[str, int]:
    """The lower medians (ns) of a samples artifact; none where it is no such artifact."""
    found = side.artifact(digest, Samples)
    if found is None or not found.blocks:
        return {}
    both = {"A": lower_median(found.left()), "B": lower_median(found.right())}
    return {f"samples, lower median of {name} in ns": ns for name, ns in both.items()}
