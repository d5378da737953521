"""Checkpoints as C2SP signed notes, verifier keys, and Ed25519 signatures checked. Never signs, and trusts no key by itself."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from hashlib import sha256
from typing import Any, NamedTuple

from ..events.errors import BadInput, ToolFailed

LONGEST_NOTE = 1 << 20
MOST_SIGNATURES = 100
_ED25519 = b"\x01"
_NAME = re.compile(r"[!-*,-~]{1,200}")  # printable ASCII without space and plus
_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")
_LINE = re.compile(r"— (\S+) (\S+)")


class Malformed(ValueError):
    """A text that is no checkpoint, or no key; the words say where."""


class Signature(NamedTuple):
    """One signature line: whose it says it is, the key's first four hash bytes, the signature, and the line itself."""

    name: str
    key_id: bytes
    signature: bytes
    line: str


class Checkpoint(NamedTuple):
    """A tree head that somebody vouches for: `text` is what is signed; without `signatures` nobody does."""

    origin: str
    size: int
    root: bytes
    text: str
    signatures: tuple[Signature, ...]


class VerifierKey(NamedTuple):
    """An Ed25519 public key under a name."""

    name: str
    key_id: bytes
    public: bytes


def parse_checkpoint(note: str) -> Checkpoint:
    """A checkpoint from a signed note, or from the three lines alone where nobody signed. Raises Malformed."""
    if len(note) > LONGEST_NOTE:
        raise Malformed(f"expected at most {LONGEST_NOTE} characters, found {len(note)}")
    if any(c < " " and c != "\n" for c in note) or not note.endswith("\n"):
        raise Malformed("expected lines that end in one newline each, without control characters")
    body, blank, signed = note.rpartition("\n\n")
    text = f"{body}\n" if blank else signed
    lines = text.split("\n")[:-1]
    if len(lines) < 3 or "" in lines:
        raise Malformed(f"expected origin, size and root on three lines, found {len(lines)}")
    return Checkpoint(lines[0], _size(lines[1]), _root(lines[2]), text, _signatures(signed) if blank else ())


def _size(line: str) -> int:
    if not _SIZE.fullmatch(line):
        raise Malformed(f"expected a size in decimal digits, found {line[:40]!r}")
    return int(line)


def _root(line: str) -> bytes:
    root = _base64(line)
    if len(root) != 32:
        raise Malformed(f"expected a root of 32 bytes, found {len(root)}")
    return root


def _base64(text: str) -> bytes:
    try:
        found = b64decode(text.encode(), validate=True)
    except (NotBase64, ValueError) as error:
        raise Malformed(f"expected base64, found {text[:40]!r} ({error})") from error
    return found


def _signatures(block: str) -> tuple[Signature, ...]:
    lines = block.split("\n")[:-1]
    if not 1 <= len(lines) <= MOST_SIGNATURES:
        raise Malformed(f"expected 1 to {MOST_SIGNATURES} signature lines, found {len(lines)}")
    return tuple(map(_signature, lines))


def _signature(line: str) -> Signature:
    found = _LINE.fullmatch(line)
    raw = _base64(found[2]) if found else b""
    if found is None or len(raw) < 5 or "+" in found[1]:
        raise Malformed(f"expected a signature line '— name base64', found {line[:60]!r}")
    return Signature(found[1], raw[:4], raw[4:], line)


def parse_vkey(text: str) -> VerifierKey:
    """A verifier key `name+id+base64` of Ed25519. Raises BadInput; ToolFailed where no signature can be checked here."""
    name, _, rest = text.strip().partition("+")
    key_id, _, encoded = rest.partition("+")
    try:
        raw = _base64(encoded)
    except Malformed:
        raw = b""
    due = sha256(name.encode() + b"\n" + raw).digest()[:4]
    if not _NAME.fullmatch(name) or raw[:1] != _ED25519 or len(raw) != 33 or due.hex() != key_id:
        raise BadInput(
            f"verifier key {text[:120]!r}: expected name+id+base64 of an Ed25519 key, as gpusolver keygen prints it, with the "
            "id that follows from name and key; copy it again, whole"
        )
    _ed25519()
    return VerifierKey(name, due, raw[1:])


def is_signed(checkpoint: Checkpoint, key: VerifierKey) -> bool | None:
    """Whether the key's signature holds; None where none of the lines is that key's. One bad line of the key refuses all."""
    ours = [s for s in checkpoint.signatures if (s.name, s.key_id) == (key.name, key.key_id)]
    return all(_holds(key, s.signature, checkpoint.text) for s in ours) if ours else None


def _holds(key: VerifierKey, signature: bytes, text: str) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        _ed25519().from_public_bytes(key.public).verify(signature, text.encode("utf-8", "surrogateescape"))
    except (InvalidSignature, ValueError):
        return False
    return True


def _ed25519() -> Any:
    """The class of public keys; imported only where a key is given, so that an auditor's core does without it."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise ToolFailed(
            "checking a signature needs the package cryptography, which is not installed: pip install 'gpusolver[seal]', or "
            "leave --vkey out (then no signature is checked, and the report says so)"
        ) from error
    return Ed25519PublicKey
