"""Why the last candidate for a kernel was not kept, in words for whoever makes the next one. Never decides anything."""

from __future__ import annotations

from typing import Protocol

from ...events.model import KernelGated, RoundJudged
from ...events.rows import Recorded

_LONGEST = 20_000


class Told(Protocol):
    """The reading side of a ledger."""

    def events(self, stream: str | None = None) -> list[Recorded]:
        """The stream's events in order."""
        ...

    def artifact(self, digest: str) -> bytes:
        """An artifact's bytes."""
        ...


def last_failure(ledger: Told, stream: str, incumbent: str) -> str:
    """The verdict on the last candidate of this incumbent and, where its gate refused it, what the gate said and its source; else ""."""
    events = [stored.event for stored in ledger.events(stream)]
    judged = next((e for e in reversed(events) if isinstance(e, RoundJudged)), None)
    if judged is None or judged.incumbent != incumbent or judged.verdict == "FASTER":
        return ""
    ratio = "" if judged.interval is None else f", ratio {judged.interval.median:.3f}, above 1 is better"
    words = f"{judged.rule}: {judged.verdict} ({judged.reason}{ratio})"
    gates = [e for e in events if isinstance(e, KernelGated) and e.source == judged.candidate]
    if not judged.reason.startswith("gate: ") or not gates:
        return words
    source = ledger.artifact(judged.candidate).decode()
    return f"{words}\n{gates[-1].reason[:_LONGEST]}\n\nThe candidate that failed:\n{source[:_LONGEST]}"
