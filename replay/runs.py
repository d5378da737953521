"""Streams sorted into runs and cells, and the checks of what was registered before measuring. Never re-derives a round."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
from msgspec import UnsetType

from ..events.model import (
    Cell,
    ClaimStated,
    DeviceCalibrated,
    Event,
    EvidenceCarried,
    HeadToHead,
    Rule,
    RuleAdmitted,
    RuleProposed,
    RuleSeeded,
    RunRegistered,
    RunStopped,
)
from .calibration import Calibration
from .derive_signals import copy_gbps
from .findings import Findings
from .grammar import OF_CELL, OF_EXAM, OF_LEDGER
from .integrity import SEAL_STREAM, Item, Scanned
from .registered import check_registered
from .shelf import Shelf
from .statistic import SPLIT, SPLIT_PRODUCTS

_RUN_STREAM = re.compile(r"run[1-9][0-9]*\Z")
_EXAM_STREAM = re.compile(r"exam[1-9][0-9]*\Z")


class RunEvents(msgspec.Struct):
    """One run's own stream by kind, each event beside its seq, and the streams of its cells."""

    run: str
    registered: tuple[int, RunRegistered] | None = None
    rules: list[tuple[int, Rule]] = []
    proposed: list[tuple[int, RuleProposed]] = []
    carried: list[tuple[int, EvidenceCarried]] = []
    learnt: list[Item] = []
    devices: list[tuple[int, DeviceCalibrated]] = []
    head_to_heads: list[tuple[int, HeadToHead]] = []
    claims: list[tuple[int, ClaimStated]] = []
    stopped: tuple[int, RunStopped] | None = None
    cells: dict[str, list[Item]] = {}
    planned: dict[str, Cell] = {}

    def table(self) -> tuple[Rule, ...]:
        """The registered rule table, with the rules that were admitted to it."""
        return tuple(rule for _, rule in self.rules)

    def carries(self) -> tuple[EvidenceCarried, ...]:
        """What another ledger's trials say of the rules."""
        return tuple(event for _, event in self.carried)


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
            run.learnt.append((seq, event))
            run.rules.append((seq, event.rule))
        case RuleProposed():
            run.learnt.append((seq, event))
            run.proposed.append((seq, event))
        case RuleAdmitted():
            run.learnt.append((seq, event))
            _admit(run, seq, event, findings)
        case EvidenceCarried():
            run.learnt.append((seq, event))
            run.carried.append((seq, event))
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


def _admit(run: RunEvents, seq: int, event: RuleAdmitted, findings: Findings) -> None:
    """An admitted rule is a row of the table from here on."""
    for _, proposed in run.proposed:
        if (proposed.rule.name, proposed.rule.version) == (event.rule, event.rule_version):
            run.rules.append((seq, proposed.rule))
            return
    findings.add(seq, "rule table", "RuleProposed before RuleAdmitted", f"{event.rule} version {event.rule_version}")


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
    check_carried(run, findings)
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


def check_carried(run: RunEvents, findings: Findings) -> None:
    """Proposals and carried evidence: in a run that names an experience alone, before the calibration, each place once."""
    registered = None if run.registered is None else run.registered[1]
    learnt = registered is not None and not isinstance(registered.experience, UnsetType)
    calibrated = run.devices[0][0] if run.devices else None
    places: set[object] = set()
    for seq, event in (*run.proposed, *run.carried):
        if not learnt:
            findings.add(seq, "experience", "a registration that names a ledger to learn from", type(event).__name__)
        if calibrated is not None and seq > calibrated:
            findings.add(seq, "order of events", "what was learnt before DeviceCalibrated", type(event).__name__)
    for seq, carried in run.carried:
        place = (carried.rule, carried.rule_version, carried.context)
        problems = (*carried.helped, *carried.failed)
        sound = place not in places and problems and len(set(problems)) == len(problems)
        if not sound:
            findings.add(seq, "experience", "each rule version and context once, each problem once in it", problems)
        places.add(place)


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
    """The copy ceiling of one calibration against its raw times, and a stated peak of split products against TF32's."""
    peaks = device.chip.peaks_tflops
    if SPLIT in peaks:
        stated = "tf32" in peaks and peaks[SPLIT] == peaks["tf32"] / SPLIT_PRODUCTS
        findings.expect(seq, "calibration", True, stated, f"peak of {SPLIT}: a third of tf32")
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
