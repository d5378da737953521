"""A shelf that hands out artifacts by digest, as bytes, text or a shape. Never one whose bytes have another digest, and never writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from .findings import MissingArtifact

LARGEST_JSON = 8 << 20
_KEPT = 1 << 16
T = TypeVar("T")


class Shelf:
    """Artifacts by digest; only those whose bytes were found to have their digest are handed out. `sound`: their sizes."""

    def __init__(self, read: Callable[[str], bytes], sound: Mapping[str, int]) -> None:
        self._read = read
        self._sound = sound
        self._decoded: dict[tuple[str, type], Any] = {}
        self._refused: dict[tuple[str, type], str] = {}
        self._dots: dict[str, bool] = {}
        self._raw: dict[str, bytes] = {}

    def __contains__(self, digest: str) -> bool:
        return digest in self._sound

    def raw(self, digest: str) -> bytes:
        """The uncompressed bytes. Raises MissingArtifact."""
        if digest not in self._sound:
            raise MissingArtifact(digest)
        found = self._raw.get(digest)
        if found is None:
            found = self._read(digest)
            if len(found) <= _KEPT:  # sources, which every round of a cell asks for
                self._raw[digest] = found
        return found

    def text(self, digest: str) -> str:
        """A source or template as text."""
        return self.raw(digest).decode()

    def json(self, digest: str, shape: type[T]) -> T:
        """A JSON artifact as `shape`; unknown keys are facts for people and are skipped. Raises ValueError for other content."""
        key = (digest, shape)
        if key in self._refused:
            raise ValueError(self._refused[key])
        if key not in self._decoded:
            try:
                self._decoded[key] = self._decode(digest, shape)
            except (ValueError, RecursionError) as error:
                # Kept, so that one large artifact named by every event costs its time once.
                self._refused[key] = str(error)
                raise
        found: T = self._decoded[key]
        return found

    def _decode(self, digest: str, shape: type[T]) -> T:
        if self._sound.get(digest, 0) > LARGEST_JSON:
            raise ValueError(f"{self._sound[digest]} bytes of JSON, at most {LARGEST_JSON} are read")
        raw = self.raw(digest)
        json.loads(raw.decode(), object_pairs_hook=_each_key_once)
        return msgspec.json.decode(raw, type=shape)

    def forget(self) -> None:
        """Let go of what was decoded: what a run named is seldom named by the next one."""
        for known in (self._decoded, self._refused, self._dots, self._raw):
            known.clear()

    def has_dot(self, ttir: str) -> bool:
        """Whether this Triton IR multiplies matrices."""
        if ttir not in self._dots:
            self._dots[ttir] = b"tt.dot" in self.raw(ttir)
        return self._dots[ttir]


def _each_key_once(pairs: list[tuple[str, Any]]) -> None:
    """Readers differ in which of two equal keys they take, so there must be none."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError(f"expected each key once, found {[key for key, _ in pairs][:20]}")
