"""The vocabulary of the ledger, its codec and its chain; importing this never loads the reader, the writer or SQLite."""

from .artifacts import Artifact, digest
from .chain import GENESIS, event_hash
from .codec import decode, encode
from .errors import BadInput, ConcurrencyConflict, GpuSolverError, ToolFailed, UnreadableLedger
from .model import EVENT_TYPES, AnyEvent, Event, cell_stream, firing_id
from .rows import ArtifactRow, Recorded, Row

__all__ = [
    "EVENT_TYPES",
    "GENESIS",
    "AnyEvent",
    "Artifact",
    "ArtifactRow",
    "BadInput",
    "ConcurrencyConflict",
    "Event",
    "GpuSolverError",
    "Recorded",
    "Row",
    "ToolFailed",
    "UnreadableLedger",
    "cell_stream",
    "decode",
    "digest",
    "encode",
    "event_hash",
    "firing_id",
]
