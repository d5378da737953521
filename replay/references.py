"""Every artifact that an event names, by field or by role. Opens launch lists alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import UnsetType

from ..events.model import (
    CountersCompared,
    DeviceCalibrated,
    Event,
    ExaminationRegistered,
    GeneratorAsked,
    HeadToHead,
    KernelExamined,
    KernelGated,
    KernelGenerated,
    NoiseFloorMeasured,
    PairCompared,
    Profiled,
    RunRegistered,
    SourcesSwept,
    StaticRulesSeen,
    TilesSwept,
)
from .artifacts import Launches
from .declared import files_of, problems_of
from .findings import Findings
from .integrity import Scanned
from .shelf import Shelf

Reference = tuple[int, str, str]
FIELDS: dict[type[Event], tuple[str, ...]] = {
    DeviceCalibrated: ("calibration",),
    TilesSwept: ("template", "samples"),
    SourcesSwept: ("samples",),
    KernelGenerated: ("source",),
    KernelGated: ("report", "launches"),
    Profiled: ("samples", "counters", "launches"),
    NoiseFloorMeasured: ("samples",),
    HeadToHead: ("left", "right", "samples"),
    KernelExamined: ("report", "launches", "samples", "counters"),
    PairCompared: ("samples",),
    CountersCompared: ("ours", "theirs"),
    StaticRulesSeen: ("answers",),
}
LISTING = (KernelGated, Profiled, KernelExamined)
"""Events that name a launch list."""


def references(scanned: Scanned) -> Iterator[Reference]:
    """Every artifact named by an event: (seq, field, digest)."""
    fields_of = FIELDS.get
    for items in scanned.streams.values():
        for seq, event in items:
            fields = fields_of(event.__class__)
            if fields is not None:
                for field in fields:
                    digest = getattr(event, field)
                    if digest is not None:
                        yield seq, field, digest
                if isinstance(event, (Profiled, KernelExamined)) and not isinstance(event.extras, UnsetType):
                    for role, digest in event.extras.items():
                        yield seq, f"extras {role}", digest
                if isinstance(event, SourcesSwept):
                    yield from ((seq, "source swept", digest) for digest in event.sources)
            elif isinstance(event, GeneratorAsked):
                yield from _asked(seq, event)
            elif isinstance(event, (RunRegistered, ExaminationRegistered)):
                for problem in problems_of(event):
                    yield from ((seq, f"file {path} of {problem.name}", d) for path, d in files_of(problem).items())
                if isinstance(event, ExaminationRegistered):
                    yield from _sources(seq, event)


def _asked(seq: int, event: GeneratorAsked) -> Iterator[Reference]:
    for exchange in event.exchanges:
        yield seq, "prompt", exchange.prompt
        if exchange.answer is not None:
            yield seq, "answer", exchange.answer
    for digest in event.artifacts:
        yield seq, "artifact", digest


def _sources(seq: int, event: ExaminationRegistered) -> Iterator[Reference]:
    for subject in event.subjects:
        yield seq, f"source of {subject.name}", subject.source
    for pair in event.pairs:
        yield seq, f"left of {pair.name}", pair.left
        yield seq, f"right of {pair.name}", pair.right


def generated(scanned: Scanned) -> set[str]:
    """The sources that templates and files gave, over the whole ledger."""
    events = (event for items in scanned.streams.values() for _, event in items)
    return {e.source for e in events if isinstance(e, KernelGenerated) and e.generator in ("template", "file")}


def check_references(scanned: Scanned, sound: Mapping[str, int], shelf: Shelf | None, findings: Findings) -> set[str]:
    """Every artifact that an event names is there, and (with a shelf) those that launch lists name; the digests so named."""
    used: set[str] = set()
    for seq, field, digest in references(scanned):
        used.add(digest)
        if digest not in sound:
            findings.add(seq, "artifact missing", f"{field} {digest}", "absent, or not what its digest says")
    if shelf is not None:
        used |= _launched(scanned, sound, shelf, findings)
    return used


def _launched(scanned: Scanned, sound: Mapping[str, int], shelf: Shelf, findings: Findings) -> set[str]:
    """Machine code and IR that launch lists name."""
    used: set[str] = set()
    lists: dict[str, int] = {}
    for items in scanned.streams.values():
        for seq, event in items:
            if isinstance(event, LISTING) and event.launches in sound:
                lists.setdefault(event.launches or "", seq)
    for digest, seq in lists.items():
        with findings.derivation(seq, "launches"):
            for kernel in shelf.json(digest, Launches).kernels:
                for part in (kernel.code, kernel.ttir):
                    if part is None:
                        continue
                    used.add(part)
                    if part not in sound:
                        findings.add(seq, "artifact missing", f"{part}, named by launches {digest}", "absent")
    return used
