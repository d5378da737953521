"""Inclusion and consistency proofs checked from their own text and what was kept elsewhere. Never opens a ledger, never raises on a false proof."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Literal

import msgspec

from ..events.errors import UnreadableLedger
from .findings import Finding, Findings
from .merkle import is_consistent, is_included, leaf_hash
from .seal import Anchors, Trust, trust
from .seal_note import Checkpoint, Malformed, is_signed, parse_checkpoint

LARGEST = 1 << 28
_HASH = re.compile(r"[0-9a-f]{64}")


class _Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seq: int
    stream: str
    version: int
    type: str
    recorded_at: str
    payload: str
    prev_hash: str
    hash: str


class _Inclusion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="proof", tag="inclusion"):
    event: _Place
    size: int
    root: str
    path: tuple[str, ...]
    checkpoint: str | None


class _Consistency(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="proof", tag="consistency"):
    from_size: int
    to_size: int
    from_root: str
    to_root: str
    path: tuple[str, ...]
    from_checkpoint: str | None
    to_checkpoint: str | None


class Checked(msgspec.Struct, frozen=True):
    """What a proof says, whether it holds (no findings), and what each of its roots rests on."""

    proof: Literal["inclusion", "consistency"]
    says: str
    findings: tuple[Finding, ...]
    roots: tuple[str, ...]


def check_proof(content: bytes, anchors: Anchors) -> Checked:
    """Check a proof that gpusolver prove printed. UnreadableLedger where it is none; BadInput where an anchor is none."""
    trusted, findings = trust(anchors), Findings()
    try:
        proof: _Inclusion | _Consistency = msgspec.json.decode(content[:LARGEST], type=_Inclusion | _Consistency)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UnreadableLedger(
            f"no proof of FORMAT.md section 9: {error}; expected what gpusolver prove prints"
        ) from error
    if isinstance(proof, _Inclusion):
        says = f"event {proof.event.seq} ({proof.event.type}) is one of the first {proof.size} events"
        _check_inclusion(proof, findings)
        given = [(proof.size, proof.root, proof.checkpoint)]
        kind: Literal["inclusion", "consistency"] = "inclusion"
    else:
        says = f"the first {proof.to_size} events begin with the first {proof.from_size}"
        _check_consistency(proof, findings)
        given = [
            (proof.from_size, proof.from_root, proof.from_checkpoint),
            (proof.to_size, proof.to_root, proof.to_checkpoint),
        ]
        kind = "consistency"
    roots = tuple(_ground(size, root, note, trusted, findings) for size, root, note in given)
    for checkpoint in trusted.checkpoints:
        if checkpoint.size not in [size for size, _, _ in given]:
            findings.add(
                0, "checkpoint", f"a proof about {checkpoint.size} events", f"about {[s for s, _, _ in given]}"
            )
    return Checked(kind, says, tuple(findings.all), roots)


def _check_inclusion(proof: _Inclusion, findings: Findings) -> None:
    event = proof.event
    found = _event_hash(event)
    if not findings.expect(event.seq, "hash", found.hex(), event.hash):
        return
    path, root = _nodes(proof.path), _nodes((proof.root,))
    if path is None or root is None or not is_included(leaf_hash(found), event.seq - 1, proof.size, path, root[0]):
        findings.add(
            event.seq, "proof", f"a path from the event to root {proof.root} of {proof.size} events", "another root"
        )


def _check_consistency(proof: _Consistency, findings: Findings) -> None:
    path, roots = _nodes(proof.path), _nodes((proof.from_root, proof.to_root))
    if path is None or roots is None or not is_consistent(proof.from_size, proof.to_size, roots[0], roots[1], path):
        due = f"a path from root {proof.from_root} of {proof.from_size} events to {proof.to_root} of {proof.to_size}"
        findings.add(0, "proof", due, "other roots")


def _event_hash(event: _Place) -> bytes:
    """The hash of FORMAT.md section 2, from the columns in the proof."""
    texts = [text.encode("utf-8", "surrogateescape") for text in (event.stream, event.type, event.recorded_at)]
    head = f"gpusolver-event-1\n{event.seq}\n{event.version}\n{event.prev_hash}\n".encode("utf-8", "surrogateescape")
    payload = event.payload.encode()
    counted = b"".join(b"%d:%s\n" % (len(text), text) for text in texts)
    return sha256(head + counted + b"%d:%s" % (len(payload), payload)).digest()


def _nodes(texts: tuple[str, ...]) -> list[bytes] | None:
    return [bytes.fromhex(text) for text in texts] if all(map(_HASH.fullmatch, texts)) else None


def _ground(size: int, root: str, note: str | None, trusted: Trust, findings: Findings) -> str:
    """What a root rests on: a checkpoint kept elsewhere, a signature, or nobody's word."""
    grounds: list[str] = []
    outside = [checkpoint for checkpoint in trusted.checkpoints if checkpoint.size == size]
    for checkpoint in outside:
        if findings.expect(0, "checkpoint", checkpoint.root.hex(), root, f"root of {size} events"):
            grounds.append("a checkpoint kept elsewhere")
    inside = _inside(size, root, note, findings)
    if trusted.key is not None:
        grounds += _signed([*outside, *inside], root, trusted, findings)
    return f"root of {size} events: {' and '.join(dict.fromkeys(grounds)) or 'nobody vouches for it here'}"


def _inside(size: int, root: str, note: str | None, findings: Findings) -> list[Checkpoint]:
    """The checkpoint that came along; it must speak of this very root."""
    if note is None:
        return []
    try:
        found = parse_checkpoint(note)
    except Malformed as error:
        findings.add(0, "checkpoint", "a note of FORMAT.md section 9", str(error))
        return []
    agreed = findings.expect(0, "checkpoint", (size, root), (found.size, found.root.hex()), "size, root")
    return [found] if agreed else []


def _signed(checkpoints: list[Checkpoint], root: str, trusted: Trust, findings: Findings) -> list[str]:
    key = trusted.key
    assert key is not None
    held = [(is_signed(checkpoint, key), checkpoint) for checkpoint in checkpoints]
    if any(good is False for good, _ in held):
        findings.add(0, "signature", f"a signature of {key.name} that holds", "one that does not")
    elif any(good and checkpoint.root.hex() == root for good, checkpoint in held):
        return [f"signed by {key.name}"]
    else:
        findings.add(0, "signature", f"a checkpoint of this root signed by {key.name}", "none")
    return []
