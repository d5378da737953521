"""Collects the events and artifacts of one round, so that they land in the ledger in one transaction. Writes nothing itself."""

from __future__ import annotations

from ..events.artifacts import digest
from ..events.model import Event
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

    def keep_role(self, observation: Observation, role: str) -> str | None:
        """Digest of an observation's artifact, None where it has none; what it refers to is kept along."""
        for media_type, blob in observation.blobs:
            self.keep(blob, media_type)
        content = observation.artifacts.get(role)
        return None if content is None else self.keep(content)

    def add(self, event: Event) -> None:
        """Append an event."""
        self.events.append(event)
