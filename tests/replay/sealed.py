"""Ledgers sealed with a key made up for the tests, and what a verifier keeps of them elsewhere."""

from __future__ import annotations

from pathlib import Path

from gpusolver.engine.seal import Sealed, seal
from gpusolver.engine.seal_keys import SigningKey, load
from gpusolver.replay.seal import Anchors

PRIVATE = "PRIVATE+KEY+example.com/lab+f44d7c6f+AQABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
"""The key of FORMAT.md section 9: private bytes 00, 01, ... 1f, as sumdb's note package writes it."""

VKEY = "example.com/lab+f44d7c6f+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"


def key(folder: Path) -> SigningKey:
    """The key from a file of its own."""
    path = folder / "key"
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(f"{PRIVATE}\n", "utf-8")
    return load(path)


def sealed(path: Path, folder: Path, *, signed: bool = True) -> tuple[Sealed, Anchors]:
    """Seal the ledger; (seal, checkpoint and verifier key as anchors)."""
    done = seal(path, key(folder) if signed else None, None, folder / f"{path.name}.checkpoint")
    note = done.checkpoint.read_text("utf-8")
    done.checkpoint.unlink()
    return done, Anchors(checkpoints=(note,), vkey=VKEY if signed else None)
