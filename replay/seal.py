"""Seals of a ledger and anchors from outside, against the tree over its events (FORMAT.md section 9). Never signs."""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Iterable, Sequence
from hashlib import file_digest
from pathlib import Path

import msgspec

from ..events.errors import BadInput, UnreadableLedger
from ..events.model import LedgerSealed
from .findings import Findings, printable
from .integrity import SEAL_STREAM, Item, Scanned
from .seal_note import Checkpoint, Malformed, VerifierKey, is_signed, parse_checkpoint, parse_vkey

_HEX = re.compile(r"[0-9a-f]{64}")


class Anchors(msgspec.Struct, frozen=True, kw_only=True):
    """What a verifier holds that the ledger's keeper cannot change: texts of checkpoints, a verifier key, the file's SHA-256."""

    checkpoints: tuple[str, ...] = ()
    vkey: str | None = None
    file_digest: str | None = None


class SealView(msgspec.Struct, frozen=True):
    """One seal as recorded, and in `signature` what became of its signature here."""

    seq: int
    size: int
    root: str
    origin: str
    signature: str


class Trust(msgspec.Struct, frozen=True):
    """Anchors read: checkpoints and key are what they should be, or BadInput was raised."""

    checkpoints: tuple[Checkpoint, ...]
    key: VerifierKey | None
    file_digest: str | None

    def sizes(self) -> Iterable[int]:
        """The sizes at which the tree's head is asked for."""
        return (checkpoint.size for checkpoint in self.checkpoints)


def trust(anchors: Anchors) -> Trust:
    """Read what was given from outside. BadInput names what is no checkpoint, key or digest; ToolFailed lacks Ed25519."""
    digest = anchors.file_digest
    if digest is not None and not _HEX.fullmatch(digest := digest.strip().lower()):
        raise BadInput(
            f"--file-digest: expected 64 hex digits, as sha256sum prints them; found {printable(digest[:80])}"
        )
    key = None if anchors.vkey is None else parse_vkey(anchors.vkey)
    return Trust(tuple(map(_given, anchors.checkpoints)), key, digest)


def read_note(path: str | os.PathLike[str]) -> str:
    """The text of a checkpoint file; its bytes are kept, whatever they are."""
    try:
        return Path(path).read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise BadInput(f"{os.fspath(path)} cannot be read: {error.strerror}; expected a checkpoint file") from error


def _given(text: str) -> Checkpoint:
    try:
        return parse_checkpoint(text)
    except Malformed as error:
        raise BadInput(
            f"checkpoint: {printable(str(error))}; name a file that gpusolver seal wrote, or a signed note of C2SP form"
        ) from error


def check_file(path: str | os.PathLike[str], trusted: Trust, findings: Findings) -> None:
    """The file's own bytes against a digest kept elsewhere: what no reader of the database sees is in it too."""
    if trusted.file_digest is None:
        return
    try:
        with open(path, "rb") as file:
            found = file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UnreadableLedger(f"{os.fspath(path)} cannot be read: {error.strerror}") from error
    if not hmac.compare_digest(found, trusted.file_digest):
        findings.add(0, "file digest", trusted.file_digest, found)


class Sealing:
    """A ledger's seals and the checkpoints given, checked once; `views` and `notes` tell what stands."""

    def __init__(self, scanned: Scanned, trusted: Trust, findings: Findings) -> None:
        self._scanned, self._trusted, self._findings = scanned, trusted, findings
        self._seals: dict[int, tuple[int, Checkpoint]] = {}  # by size: (seq, what its note says)
        self._signed = 0  # how far a good signature reaches
        self.views: list[SealView] = []
        items: Sequence[Item] = scanned.streams.get(SEAL_STREAM, ())
        for seq, event in items:
            if isinstance(event, LedgerSealed):
                self._check(seq, event)
            else:
                findings.add(seq, "stream", f"LedgerSealed alone in stream {SEAL_STREAM}", type(event).__name__)
        for checkpoint in trusted.checkpoints:
            self._check_given(checkpoint)
        if trusted.key is not None and not self._signed:
            findings.add(0, "signature", f"a seal or checkpoint signed by {trusted.key.name}", "none")

    def _check(self, seq: int, event: LedgerSealed) -> None:
        """Size, root and note of a seal all say what the events before it give."""
        size, root = seq - 1, self._root(seq - 1)
        self._findings.expect(seq, "seal", size, event.size, "size")
        self._findings.expect(seq, "seal", root, event.root, "root")
        try:
            checkpoint = parse_checkpoint(event.note)
        except Malformed as error:
            self._findings.add(seq, "seal", "a note of FORMAT.md section 9", str(error))
            self.views.append(SealView(seq, event.size, event.root, "", "no note"))
            return
        stated = (checkpoint.size, checkpoint.root.hex())
        self._findings.expect(seq, "seal", (size, root), stated, "size, root of the note")
        self._findings.expect(seq, "seal", 3, checkpoint.text.count("\n"), "lines of the note before its signatures")
        self._seals[size] = (seq, checkpoint)
        signature = self._signature(seq, checkpoint, stated == (size, root))
        self.views.append(SealView(seq, event.size, event.root, checkpoint.origin, signature))

    def _root(self, size: int) -> str:
        """The tree's head over the first events, recomputed; words where no row stands at that place."""
        root = self._scanned.heads.at.get(size)
        return "none, for the rows are not numbered one by one" if root is None else root.hex()

    def _signature(self, seq: int, checkpoint: Checkpoint, is_true: bool) -> str:
        """What the signature is worth here; one by the trusted key must hold."""
        names = ", ".join(signature.name for signature in checkpoint.signatures)
        key = self._trusted.key
        if not names:
            return "unsigned"
        if key is None:
            return f"signature of {names} not checked: no key"
        held = is_signed(checkpoint, key)
        if held is None:
            return f"signature of {names} not checked: the key given is {key.name}'s"
        if not held:
            self._findings.add(seq, "signature", f"a signature of {key.name} that holds", "one that does not")
            return f"signature of {key.name} does not hold"
        if is_true:
            self._signed = max(self._signed, checkpoint.size)
        return f"signed by {key.name}"

    def _check_given(self, checkpoint: Checkpoint) -> None:
        """The first events give the root, and the seal that the checkpoint was copied from is still there."""
        findings, size, total = self._findings, checkpoint.size, self._scanned.heads.size
        due = f"root {checkpoint.root.hex()} of the first {size} events"
        found = f"root {self._root(size)} of the first {size} events" if size <= total else f"only {total} events"
        agreed = findings.expect(min(size, total), "checkpoint", due, found)
        self._signature(0, checkpoint, agreed)
        if size > total:
            return
        seq, sealed = self._seals.get(size, (0, None))
        if sealed is None:
            findings.add(
                0, "checkpoint", f"LedgerSealed of {size} events, which the checkpoint was copied from", "absent"
            )
            return
        findings.expect(seq, "checkpoint", checkpoint.text, sealed.text, "note")
        ours, theirs = _lines(sealed), _lines(checkpoint)
        if not ours <= theirs or (theirs and not ours):  # witnesses may have added lines to the file, not to the ledger
            findings.add(seq, "checkpoint", f"signatures of the checkpoint: {sorted(theirs)}", sorted(ours))

    def notes(self, has_head: bool) -> list[str]:
        """How far signature and anchors reach, and what they leave open."""
        return [*self._on_signature(), *self._on_anchor(has_head)]

    def _on_signature(self) -> list[str]:
        key, total = self._trusted.key, self._scanned.heads.size
        if key is not None:
            after = total - self._signed
            return [
                f"signature: {key.name} vouches for the first {self._signed} events, not for the {after} after them"
            ]
        if any(checkpoint.signatures for _, checkpoint in self._seals.values()):
            return ["signature not checked: no key (--vkey KEY, from its holder and not from the ledger)"]
        if self._seals:
            return ["sealed, but by no key: whoever can write the file can write another root"]
        return ["no signature: who wrote the ledger, and when, is not shown by it"]

    def _on_anchor(self, has_head: bool) -> list[str]:
        if has_head or self._trusted.file_digest is not None:
            return []
        if not self._trusted.checkpoints:
            return ["tail not anchored: compare the head with one kept elsewhere"]
        reached = max(self._trusted.sizes())
        after = self._scanned.heads.size - reached
        return [
            f"anchored: the first {reached} events by a checkpoint kept elsewhere, the {max(after, 0)} after them not"
        ]


def _lines(checkpoint: Checkpoint) -> set[str]:
    return {signature.line for signature in checkpoint.signatures}
