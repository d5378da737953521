"""Collects the events and artifacts of one round, so that they land in the ledger in one transaction. Writes nothing itself."""

from __future__ import annotations

from collections.abc import Mapping

from ..events.artifacts import digest
from ..events.model import Event, GeneratorAsked
from .executor import Observation

SOURCE = "text/x-python"
JSON = "application/json"


class Draft:
    """Events in order, and the artifacts that they name."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.artifacts: dict[str, tuple[bytes, str]] = {}

    def keep(self, content: bytes, media_type: str = JSON) -> str:
        """Digest of an artifact that this draft will store."""
        name = digest(content)
        self.artifacts.setdefault(name, (content, media_type))
        return name

    def keep_source(self, text: str) -> str:
        """Digest of a kernel's source."""
        return self.keep(text.encode(), SOURCE)

    def keep_files(self, files: Mapping[str, bytes]) -> None:
        """The files of a problem, by path."""
        for path, content in files.items():
            self.keep(content, media_of(path))

    def keep_role(self, observation: Observation, role: str) -> str | None:
        """Digest of an observation's artifact, None where it has none; what it refers to is kept along."""
        for media_type, blob in observation.blobs:
            self.keep(blob, media_type)
        content = observation.artifacts.get(role)
        return None if content is None else self.keep(content)

    def add(self, event: Event) -> None:
        """Append an event."""
        self.events.append(event)

    def spent(self) -> Draft:
        """What generators were asked, with the artifacts that this names: it is kept where the rest of the round is not."""
        kept = Draft()
        for event in self.events:
            if isinstance(event, GeneratorAsked):
                kept.add(event)
                named = [name for each in event.exchanges for name in (each.prompt, each.answer) if name is not None]
                kept.artifacts |= {name: self.artifacts[name] for name in (*named, *event.artifacts)}
        return kept


def media_of(path: str) -> str:
    """Media type of a problem's file."""
    return SOURCE if path.endswith(".py") else "text/plain"
