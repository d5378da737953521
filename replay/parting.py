"""Why two ledgers parted: what was registered differently, and in each cell the first decision that differs with what fed it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

import msgspec

from ..events.model import RoundJudged, RuleFired, RulePromoted, RuleRetired, RunRegistered
from . import feeds
from .feeds import Half, apart
from .grammar import Round, Script
from .projected import Difference, definition, fields_apart
from .runs import RunEvents
from .side import Side, ended, script

_FOR_PEOPLE = ("environment", "code", "run")
_MOST_FEEDS = 24


class Parting(msgspec.Struct, frozen=True):
    """The first decision of a cell that differs; `seq` on each side is where it stands, 0 where it has none."""

    cell: str
    round: int
    what: str
    left: str | None
    right: str | None
    left_seq: int
    right_seq: int
    fed_by: tuple[Difference, ...]


class Parted(msgspec.Struct, frozen=True):
    """`ground`: differences in what was fixed before measuring; `cells`: how many both have, and where those parted."""

    ground: tuple[Difference, ...]
    cells: int
    partings: tuple[Parting, ...]


def part(left: Side, right: Side) -> Parted:
    """Compare what both ledgers hold of the same runs and cells; a cell that has only got less far has not parted."""
    ours, theirs = left.runs(), right.runs()
    ground, partings, cells = list[Difference](), list[Parting](), 0
    for name in [name for name in ours if name in theirs]:
        one, other = ours[name], theirs[name]
        ground += _ground(one, other)
        for stream in [stream for stream in one.cells if stream in other.cells]:
            cells += 1
            partings += _cell(stream, (left, one), (right, other))
    return Parted(tuple(ground), cells, tuple(partings))


# --- what was registered ----------------------------------------------------------------------------------------------


def _ground(one: RunEvents, other: RunEvents) -> Iterator[Difference]:
    if one.registered is not None and other.registered is not None:
        yield from _registered(one.run, one.registered[1], other.registered[1])
    tables = [{(rule.name, rule.version): rule for rule in run.table()} for run in (one, other)]
    for key in dict.fromkeys([*tables[0], *tables[1]]):
        rules = [table.get(key) for table in tables]
        found = [None if rule is None else definition(rule) for rule in rules]
        if found[0] != found[1]:
            names = fields_apart(found[0] or {}, found[1] or {})
            shown = [None if fields is None else {name: fields[name] for name in names} for fields in found]
            yield from apart(f"{one.run} rule {key[0]} version {key[1]}", *shown)
    devices = [run.devices[0][1] if run.devices else None for run in (one, other)]
    for name in ("device", "chip", "copy_gbps"):
        yield from apart(f"{one.run} {name}", *(getattr(device, name, None) for device in devices))


def _registered(run: str, one: RunRegistered, other: RunRegistered) -> Iterator[Difference]:
    left, right = (msgspec.to_builtins(event) for event in (one, other))
    for name in one.__struct_fields__:
        if name not in _FOR_PEOPLE:
            yield from _inside(f"{run} {name}", left.get(name), right.get(name))


def _inside(path: str, left: Any, right: Any) -> Iterator[Difference]:
    """The differences between two JSON values, each at its own path."""
    if isinstance(left, dict) and isinstance(right, dict):
        for name in dict.fromkeys([*left, *right]):
            yield from _inside(f"{path}.{name}", left.get(name), right.get(name))
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for at, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from _inside(f"{path}[{at}]", one, other)
    else:
        yield from apart(path, left, right)


# --- decisions --------------------------------------------------------------------------------------------------------


def _cell(stream: str, left: tuple[Side, RunEvents], right: tuple[Side, RunEvents]) -> Iterator[Parting]:
    """The first decision that differs, if one does."""
    scripts = [script(run, stream) for _, run in (left, right)]
    rounds = [ended(found) for found in scripts]
    sides = [(left[0], left[1].table()), (right[0], right[1].table())]
    for number, pair in enumerate(zip_longest(*rounds)):
        halves = [Half(*sides[i], rounds[i][:number], pair[i]) for i in (0, 1)]
        if pair[0] is None or pair[1] is None:
            yield from _shorter(stream, number, scripts, halves)
            return
        for what, said, fed_by in _DECISIONS:
            one, other = said(pair[0]), said(pair[1])
            if one[1] != other[1] and not _cut(number, rounds, scripts, one, other):
                fed = tuple(fed_by(*halves))[:_MOST_FEEDS]
                yield Parting(stream, number, what, one[1], other[1], one[0], other[0], fed)
                return
    ends = [_end(found) for found in scripts]
    if None not in ends and ends[0] != ends[1]:
        halves = [Half(*sides[i], rounds[i], None) for i in (0, 1)]
        yield from _stopped(stream, len(rounds[0]), scripts, halves)


def _cut(number: int, rounds: list[list[Round]], scripts: list[Script], one: Said, other: Said) -> bool:
    """Whether the side that has nothing here ends with this round, so that what is lacking may still have come."""
    return any(
        said[1] is None and number == len(found) - 1 and script.stopped is None
        for said, found, script in zip((one, other), rounds, scripts, strict=True)
    )


def _shorter(stream: str, number: int, scripts: list[Script], halves: list[Half]) -> Iterator[Parting]:
    """One side has no such round: it has ended, or has not got so far, which is no parting."""
    if any(half.round is None and found.stopped is not None for half, found in zip(halves, scripts, strict=True)):
        yield from _stopped(stream, number, scripts, halves)


def _stopped(stream: str, number: int, scripts: list[Script], halves: list[Half]) -> Iterator[Parting]:
    said = [
        _end(found) if half.round is None else _fired(half.round)[1]
        for found, half in zip(scripts, halves, strict=True)
    ]
    seqs = [
        half.round.seq if half.round is not None else found.stopped[0] if found.stopped is not None else 0
        for found, half in zip(scripts, halves, strict=True)
    ]
    fed = tuple(_asked_last(scripts, halves))[:_MOST_FEEDS]
    yield Parting(stream, number, "round or end", said[0], said[1], seqs[0], seqs[1], fed)


def _asked_last(scripts: list[Script], halves: list[Half]) -> Iterator[Difference]:
    """The signals of the last incumbents: what the rules were asked about when one side ended."""
    seen = [feeds.standing(half) for half in halves]
    names = dict.fromkeys(name for half in halves for rule in half.table for name in (c.signal for c in rule.clauses))
    for name in names:
        yield from apart(f"signal {name}", seen[0].get(name), seen[1].get(name))
    last = [None if found.last_firing is None else found.last_firing[1].rule for found in scripts]
    yield from apart("stop rule that fired", *last)


def _end(found: Script) -> str | None:
    if found.stopped is None:
        return None
    stopped = found.stopped[1]
    return stopped.reason if stopped.rule is None else f"{stopped.reason} {stopped.rule}"


Said = tuple[int, str | None]


def _fired(round_: Round) -> Said:
    event: RuleFired | None = round_.fired
    return round_.seqs.get("fired", 0), None if event is None else f"{event.rule} version {event.rule_version}"


def _made(round_: Round) -> Said:
    event = round_.generated
    said = None if event is None else f"{event.generator} {event.variant}, source {event.source}"
    return round_.seqs.get("generated", 0), said


def _gated(round_: Round) -> Said:
    return round_.seqs.get("gated", 0), None if round_.gated is None else round_.gated.outcome


def _judged(round_: Round) -> Said:
    event: RoundJudged | None = round_.judged
    return round_.seqs.get("judged", 0), None if event is None else f"{event.verdict}, {event.credit}"


def _evolved(slot: str) -> Callable[[Round], Said]:
    def said(round_: Round) -> Said:
        event: RuleRetired | RulePromoted | None = getattr(round_, slot)
        text = None if event is None else f"{event.rule}, {event.successes} successes, {event.failures} failures"
        return round_.seqs.get(slot, 0), text

    return said


def _nothing_more(_left: Half, _right: Half) -> Iterator[Difference]:
    """Evolution follows from the verdicts, which were the same, and from the registered policy."""
    return iter(())


_DECISIONS: tuple[tuple[str, Callable[[Round], Said], Callable[[Half, Half], Iterator[Difference]]], ...] = (
    ("rule that fires", _fired, feeds.firing),
    ("candidate", _made, feeds.candidate),
    ("gate", _gated, feeds.gate),
    ("verdict", _judged, feeds.verdict),
    ("retirement", _evolved("retired"), _nothing_more),
    ("promotion", _evolved("promoted"), _nothing_more),
)
