"""Texts that a ledger's holder keeps back, by the list that lies beside it (FORMAT.md 1). Excuses the absence of sources alone, and says so."""

from __future__ import annotations

import os
import pathlib
import re

import msgspec

from ..events.errors import BadInput
from .findings import Finding

FORMAT = "gpusolver-withheld/1"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SOURCES = re.compile(
    r"(left|right|source|source swept|template|file \S+\.py of \S+|(source|left|right) of .+) [0-9a-f]{64}"
)
_DERIVED = re.compile(r"[^:]+(:[a-z0-9_ ]+)?: [0-9a-f]{64}")


class _Listed(msgspec.Struct, frozen=True):
    format: str
    head: str
    originals: dict[str, str]
    texts: dict[str, list[msgspec.Raw]]


class Withheld(msgspec.Struct, frozen=True):
    """The head of the ledger that a list is of, the imported files that it names, and the digests of all that was left out."""

    head: str
    originals: frozenset[str]
    digests: frozenset[str]


def read_list(path: str | os.PathLike[str]) -> Withheld:
    """The list beside a ledger. BadInput where it is none."""
    try:
        found = msgspec.json.decode(pathlib.Path(path).read_bytes(), type=_Listed)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{os.fspath(path)}: expected a list of withheld texts, found {error}") from None
    if found.format != FORMAT:
        raise BadInput(f"{os.fspath(path)}: expected the format {FORMAT}, found {found.format[:40]!r}")
    return Withheld(found.head, frozenset(found.originals), frozenset((*found.originals, *found.texts)))


def fits(withheld: Withheld, head: str, originals: set[str]) -> None:
    """BadInput where the list is of another ledger, or names files that no problem of this one was imported from, or none."""
    if withheld.head != head:
        raise BadInput(
            f"the list of withheld texts: expected that of the ledger with head {head}, found that of {withheld.head}"
        )
    if not withheld.originals or withheld.originals - originals:
        raise BadInput(
            f"the list of withheld texts: expected imported files of this ledger, found {len(withheld.originals - originals)} that are none of "
            f"its {len(originals)}, of {len(withheld.originals)}"
        )


def excuse(findings: tuple[Finding, ...], withheld: Withheld) -> tuple[tuple[Finding, ...], str]:
    """The findings that are left, and a note on those that are not: what rests on a listed text, and on nothing else that is absent."""
    left = tuple(finding for finding in findings if not _excused(finding, withheld))
    places = len(findings) - len(left)
    return left, (
        f"{len(withheld.digests)} texts are withheld, by the list that was given: what rests on them is not checked ({places} places: that "
        "they are there, precision and strict twins of compared sources, which comparisons were due, what a rewriting gave, digests of "
        "problems); whoever has the imported files makes the ledger whole with gpusolver restore"
    )


def _excused(finding: Finding, withheld: Withheld) -> bool:
    """Whether an absent artifact is a listed text, named as a source. What was measured is never excused, whatever the list says."""
    if finding.kind != "artifact missing" or not (
        _SOURCES.fullmatch(finding.expected) or _DERIVED.fullmatch(finding.expected)
    ):
        return False
    return _DIGEST.findall(finding.expected)[-1] in withheld.digests
