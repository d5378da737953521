"""A recorded ledger as an index of its measurements, by cell and by what was asked. Reads; measures and decides nothing."""

from __future__ import annotations

import pathlib
from collections import defaultdict

import msgspec

from ..events.artifacts import digest
from ..events.errors import BadInput
from ..events.model import (
    Cell,
    DeviceCalibrated,
    Event,
    HeadToHead,
    KernelGated,
    NoiseFloorMeasured,
    Origin,
    Profiled,
    RoundJudged,
    RunRegistered,
    SourcesSwept,
    TilesSwept,
)
from ..events.reader import LedgerReader

FAULTS = ("worker_lost", "timeout", "request_failed", "context_lost")
Key = tuple[str, ...]


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded measurement: where it stands, `ok` or the fault that it ended in, and its artifacts' digests by role."""

    seq: int
    status: str
    digests: dict[str, str]


class Recording:
    """The measurements of a ledger. A cell that several runs planned is answered from the first of them alone."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path, self.reader = path, LedgerReader(path)
        self.registrations: dict[str, RunRegistered] = {}
        self.calibrations: dict[str, Recorded] = {}
        self.home: dict[Cell, str] = {}
        self._index: dict[tuple[Cell, Key], list[Recorded]] = defaultdict(list)
        for stored in self.reader.recorded():
            self._take(stored.seq, stored.stream.partition("/")[0], stored.event)
        if not self.home or not self.calibrations:
            raise BadInput(f"{path}: expected a ledger with measurements, found none. Record one with --device cuda.")
        events, head = self.reader.head()
        self.origin = Origin(head=head, events=events)

    def answers(self, cell: Cell, key: Key) -> list[Recorded]:
        """What the cell measured under a key, in order."""
        return self._index.get((cell, key), [])

    def _take(self, seq: int, run: str, event: Event) -> None:
        if isinstance(event, RunRegistered):
            self.registrations[run] = event
            for cell in event.plan:
                self.home.setdefault(cell, run)
        if isinstance(event, DeviceCalibrated):
            self.calibrations[run] = Recorded(seq=seq, status="ok", digests={"calibration": event.calibration})
        measured = cell_of(event)
        if measured is not None and self.home.get(measured) == run:
            for key, digests in keys_of(event):
                self._index[(measured, key)].append(Recorded(seq=seq, status=_status(event), digests=digests))


def cell_of(event: Event) -> Cell | None:
    """The cell that an event was measured for; a head-to-head belongs to its repetition's `on` cell."""
    if isinstance(event, HeadToHead):
        at = {"contract": event.contract, "pool": event.pool, "repetition": event.repetition}
        return Cell(problem=event.problem, arm="on", **at)  # type: ignore[arg-type]
    cell = getattr(event, "cell", None)
    return cell if isinstance(cell, Cell) else None


def compare_key(purpose: str, left: str, right: str) -> Key:
    """Key of a pair's samples; `left` and `right` are source digests."""
    return ("compare", purpose, left, right)


def extra_key(role: str, source: str) -> Key:
    """Key of an extra measurement; `source` is a digest."""
    return ("extra", role, source)


def sweep_key(template: str, configs: tuple[dict[str, int], ...]) -> Key:
    """Key of a sweep: the template's digest and the very configurations."""
    return ("sweep", template, digest(msgspec.json.encode(configs, order="deterministic")))


def sources_key(sources: tuple[str, ...]) -> Key:
    """Key of a sweep over whole sources, by their digests."""
    return ("sweep", *sources)


def keys_of(event: Event) -> list[tuple[Key, dict[str, str]]]:
    """The keys under which an event's measurements can be asked for, and their artifacts."""
    match event:
        case KernelGated():
            launches = {} if event.launches is None else {"launches": event.launches}
            return [(("gate", event.source), {"report": event.report, **launches})]
        case TilesSwept():
            return [(sweep_key(event.template, event.configs), {"sweep": event.samples})]
        case SourcesSwept():
            return [(sources_key(event.sources), {"sweep": event.samples})]
        case Profiled():
            counters = {"counters": event.counters} if event.counters else {}
            samples = (compare_key("profile", event.against, event.source), {"samples": event.samples})
            named = {} if event.extras is msgspec.UNSET else event.extras
            extras = [(extra_key(role, event.source), {role: value}) for role, value in sorted(named.items())]
            return [samples, (("count", event.source), counters), *extras]
        case NoiseFloorMeasured() if event.round > 0:  # round 0's is its profile
            return [(compare_key("floor", event.source, event.source), {"samples": event.samples})]
        case HeadToHead() if event.outcome != "identical":
            samples_of = {"samples": event.samples} if event.samples else {}
            return [(compare_key(f"final:{event.comparison}", event.left, event.right), samples_of)]
        case RoundJudged() if event.reason in FAULTS:
            return [(compare_key("profile", event.incumbent, event.candidate), {})]
        case _:
            return []


def _status(event: Event) -> str:
    """`ok`, or the fault that a measurement ended in: it is answered as recorded, too."""
    if isinstance(event, RoundJudged):
        return event.reason
    return event.outcome if isinstance(event, HeadToHead) and event.samples is None else "ok"
