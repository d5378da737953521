"""Streams sorted into runs and cells, and the checks of what was registered before measuring. Never re-derives a round."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from ..events.model import (
    Cell,
    ClaimStated,
    DeviceCalibrated,
    Event,
    HeadToHead,
    Rule,
    RuleSeeded,
    RunRegistered,
    RunStopped,
)
from .artifacts import Shelf
from .calibration import Calibration
from .derive_signals import copy_gbps
from .findings import Findings
from .grammar import OF_CELL, OF_EXAM, OF_LEDGER
from .integrity import SEAL_STREAM, Item, Scanned
from .registered import check_registered

_RUN_STREAM = re.compile(r"run[1-9][0-9]*\Z")
_EXAM_STREAM = re.compile(r"exam[1-9][0-9]*\Z")


class RunEvents(msgspec.Struct):
    """One run's own stream by kind, each event beside its seq, and the streams of its cells."""

    run: str
    registered: tuple[int, RunRegistered] | None = None
    rules: list[tuple[int, Rule]] = []
    devices: list[tuple[int, DeviceCalibrated]] = []
    head_to_heads: list[tuple[int, HeadToHead]] = []
    claims: list[tuple[int, ClaimStated]] = []
    stopped: tuple[int, RunStopped] | None = None
    cells: dict[str, list[Item]] = {}
    planned: dict[str, Cell] = {}

    def table(self) -> tuple[Rule, ...]:
        """The registered rule table."""
        return tuple(rule for _, rule in self.rules)


def stream_of(run: str, cell: Cell) -> str:
    """The stream that a cell's events lie in."""
    return f"{run}/{cell.problem}/{cell.contract}/{cell.pool}/{cell.arm}/{cell.repetition}"


def is_examination(stream: str) -> bool:
    """Whether a stream is that of an examination."""
    return _EXAM_STREAM.match(stream) is not None


def sort_out(scanned: Scanned, findings: Findings) -> list[RunEvents]:
    """The runs among the streams; whatever lies in a stream that it does not belong to is reported."""
    runs: dict[str, RunEvents] = {}
    for stream, items in scanned.streams.items():
        if not items or is_examination(stream) or stream == SEAL_STREAM:
            continue
        name, slash, _ = stream.partition("/")
        if not _RUN_STREAM.match(name):
            findings.add(items[0][0], "stream", "run<i>, run<i>/<cell>, exam<i> or seal", stream)
            continue
        run = runs.setdefault(name, RunEvents(name))
        if slash:
            run.cells[stream] = items
        else:
            _take_run(run, items, findings)
    return list(runs.values())


def _take_run(run: RunEvents, items: list[Item], findings: Findings) -> None:
    for seq, event in items:
        if getattr(event, "run", run.run) != run.run:
            findings.add(seq, "stream", f"run {run.run}", getattr(event, "run", None))
        if run.stopped is not None:
            findings.add(seq, "order of events", f"nothing after the end of {run.run}", type(event).__name__)
        if run.registered is None and not isinstance(event, RunRegistered):
            findings.add(seq, "order of events", "RunRegistered first", type(event).__name__)
        _take(run, seq, event, findings)


def _take(run: RunEvents, seq: int, event: Event, findings: Findings) -> None:
    match event:
        case RunRegistered():
            if run.registered is not None:
                findings.add(seq, "order of events", "one RunRegistered in a run", "another")
            else:
                run.registered = (seq, event)
                run.planned = {stream_of(run.run, cell): cell for cell in event.plan}
        case RuleSeeded():
            run.rules.append((seq, event.rule))
        case DeviceCalibrated():
            run.devices.append((seq, event))
        case HeadToHead():
            run.head_to_heads.append((seq, event))
        case ClaimStated():
            run.claims.append((seq, event))
        case RunStopped(cell=None):
            run.stopped = (seq, event)
        case _ if isinstance(event, (*OF_CELL, *OF_EXAM, *OF_LEDGER)):
            findings.add(seq, "stream", "events of a run", f"{type(event).__name__} in {run.run}")
        case _:
            findings.add(seq, "event kind not understood", "an event type of FORMAT.md", type(event).__name__)


def check_numbers(kind: str, registered: Iterable[tuple[int, str]], findings: Findings) -> None:
    """run1, run2, ... (exam1, exam2, ...) in the order of their registrations, given as (seq, name)."""
    for i, (seq, name) in enumerate(sorted(registered), start=1):
        findings.expect(seq, "registration", f"{kind}{i}", name, "stream of the registration")


def check_registration(run: RunEvents, findings: Findings) -> None:
    """What must be decided before the first sample is there, before it, and makes sense."""
    if run.registered is None:
        findings.add(_first(run), "registration", f"RunRegistered of {run.run}", "absent")
        return
    seq, registered = run.registered
    began = min((items[0][0] for items in run.cells.values()), default=None)
    check_registered(seq, registered, findings)
    for at, _ in run.devices[1:]:
        findings.add(at, "calibration", "one DeviceCalibrated in a run", "another")
    check_versions(run.rules, findings)
    for at, rule in run.rules:
        if began is not None and at > began:
            findings.add(at, "rule table", "every rule seeded before the first round", f"{rule.name} after it")
    if began is not None and began < seq:
        findings.add(began, "registration", f"registration of {run.run} before its first round", f"at {seq}")
    if began is not None and not any(at < began for at, _ in run.devices):
        findings.add(began, "calibration", "DeviceCalibrated before the first round", "absent")
    for stream, items in run.cells.items():
        if stream not in run.planned:
            findings.add(items[0][0], "cell not planned", "a cell of the registered plan", stream)


def check_versions(rules: list[tuple[int, Rule]], findings: Findings) -> None:
    """No version of a rule is seeded twice."""
    seen: set[tuple[str, int]] = set()
    for at, rule in rules:
        if (rule.name, rule.version) in seen:
            findings.add(at, "rule table", "each rule version once", f"{rule.name} version {rule.version} again")
        seen.add((rule.name, rule.version))


def _first(run: RunEvents) -> int:
    return min((items[0][0] for items in run.cells.values()), default=0)


def check_calibrations(run: RunEvents, shelf: Shelf, findings: Findings) -> None:
    """The copy ceiling against its raw times."""
    for seq, device in run.devices:
        check_calibration(seq, device, shelf, findings)


def check_calibration(seq: int, device: DeviceCalibrated, shelf: Shelf, findings: Findings) -> None:
    """The copy ceiling of one calibration against its raw times."""
    with findings.derivation(seq, "calibration"):
        due = copy_gbps(shelf.json(device.calibration, Calibration))
        findings.expect(seq, "calibration", due, device.copy_gbps, "copy_gbps")


def check_cell_fields(run: RunEvents, stream: str, findings: Findings) -> None:
    """Every event of a cell's stream names that cell."""
    cell = run.planned[stream]
    for seq, event in run.cells[stream]:
        named = getattr(event, "cell", None)
        if named != cell:
            findings.add(seq, "stream", cell, named)
