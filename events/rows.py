"""Rows of a ledger as values, so that pure code can name them. Never reads one."""

from __future__ import annotations

from typing import NamedTuple

from .model import Event


class Row(NamedTuple):
    """One stored event, undecoded. Undecodable bytes in a text stay as surrogate escapes, so that nothing is lost.

    `ill` names the columns whose storage class is not the published one (a hostile or damaged file); such a cell holds
    its bytes as text where it has any, else 0, "" or b"". An honest row has none.
    """

    seq: int
    stream: str
    version: int
    type: str
    recorded_at: str
    payload: bytes
    prev_hash: str
    hash: str
    ill: tuple[str, ...] = ()


class ArtifactRow(NamedTuple):
    """One stored artifact, still packed; `ill` as in `Row`."""

    digest: str
    media_type: str
    size: int
    codec: str
    content: bytes
    ill: tuple[str, ...] = ()


class Recorded(NamedTuple):
    """One event with its place in the ledger. Order by `seq` only: `recorded_at` (UTC) may go backwards."""

    seq: int
    stream: str
    version: int
    type: str
    recorded_at: str
    event: Event
