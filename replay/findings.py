"""What the verifier reports: findings with a closed list of kinds, and their collector. Never raises on what it is given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, get_args

import msgspec

Kind = Literal[
    "head",
    "checkpoint",
    "signature",
    "seal",
    "proof",
    "file digest",
    "schema object",
    "index",
    "column type",
    "time",
    "sequence",
    "version",
    "stream",
    "previous hash",
    "hash",
    "payload type",
    "payload not understood",
    "payload encoding",
    "event kind not understood",
    "artifact digest",
    "artifact size",
    "artifact missing",
    "media type",
    "registration",
    "rule table",
    "experience",
    "calibration",
    "order of events",
    "missing cell",
    "missing measurement",
    "cell not planned",
    "round",
    "seed",
    "match",
    "context",
    "predicted gain",
    "sweep",
    "generated source",
    "gate",
    "profile",
    "signals",
    "noise floor",
    "samples",
    "extras",
    "origin",
    "looks",
    "verdict",
    "interval",
    "margin",
    "credit",
    "incumbent",
    "retire",
    "promote",
    "stop",
    "head to head",
    "claim",
    "answers",
    "pair",
    "counters compared",
    "statement",
    "figures",
    "derivation failed",
]
KINDS: tuple[str, ...] = get_args(Kind)
MERIT: frozenset[Kind] = frozenset(
    {
        "calibration", "seed", "match", "context", "predicted gain", "sweep", "generated source", "gate", "profile", "signals",
        "noise floor", "looks", "verdict", "interval", "margin", "credit", "incumbent", "retire", "promote", "stop", "head to head",
        "claim", "answers", "pair", "counters compared", "statement", "figures", "derivation failed",
    }
)  # fmt: skip
"""What is said does not follow from what was measured. All other kinds are of provenance: what was recorded, when, and whether all of it is there."""
_LONGEST = 300


class Finding(msgspec.Struct, frozen=True):
    """One disagreement: the event's `seq` (0 = the file as a whole), its kind, and both sides as text."""

    seq: int
    kind: Kind
    expected: str
    found: str


class MissingArtifact(Exception):
    """An artifact that a derivation needs is absent or is not what its digest says; becomes a finding."""


class Findings:
    """Collects findings in the order met."""

    def __init__(self) -> None:
        self.all: list[Finding] = []

    def add(self, seq: int, kind: Kind, expected: object, found: object) -> None:
        """Report one disagreement; both sides are shortened to a readable text."""
        self.all.append(Finding(seq, kind, as_text(expected), as_text(found)))

    def differences(self, seq: int, kind: Kind, expected: Mapping[str, float], found: Mapping[str, float]) -> None:
        """Report every name whose values differ, or that one side lacks."""
        if expected != found:
            for name in sorted(expected.keys() | found.keys()):
                self.expect(seq, kind, expected.get(name, "absent"), found.get(name, "absent"), name)

    def expect(self, seq: int, kind: Kind, expected: object, found: object, what: str = "") -> bool:
        """Report where `found` is not `expected`; true if they agree. `what` names the compared field."""
        if expected == found:
            return True
        prefix = f"{what} " if what else ""
        self.add(seq, kind, prefix + as_text(expected), prefix + as_text(found))
        return False

    @contextmanager
    def derivation(self, seq: int, what: str) -> Iterator[None]:
        """Turn whatever goes wrong inside into a finding: hostile content may break any step, and must not stop the rest."""
        try:
            yield
        except MissingArtifact as missing:
            self.add(seq, "artifact missing", f"{what}: {missing}", "absent, or not what its digest says")
        except Exception as error:  # noqa: BLE001 - hostile content may raise anything, and none of it may end the verification
            self.add(seq, "derivation failed", f"{what} re-derived", f"{type(error).__name__}: {error}")


def as_text(value: object) -> str:
    """Any value as at most 300 characters of text."""
    try:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    except Exception:  # noqa: BLE001 - a finding must be written, whatever it is about
        text = f"a value of type {type(value).__name__} that cannot be written as JSON"
    return printable(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)")


def encodable(text: str) -> str:
    """The text with what UTF-8 cannot hold (undecodable bytes of a file's name) escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def printable(text: str) -> str:
    """The text with everything but printable ASCII escaped: a ledger's content must not steer a terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isascii() and c.isprintable() else ascii(c)[1:-1] for c in text)
