"""Every artifact that an event names, by field or by role. Never opens one."""

from __future__ import annotations

from collections.abc import Iterator

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
from .declared import files_of, problems_of
from .integrity import Scanned

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
