"""Texts told by the originals that they hold lines of, and made again from these. Reads no ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec

from ..events.artifacts import digest
from ..events.errors import BadInput

FORMAT = "gpusolver-withheld/1"
MOST_LINES = 1_000_000
"""Of a text: a list of a few parts could stand for more lines than there is memory."""
SHORTEST = 20
"""Characters that a line has, white space at its ends aside, before it tells whose it is: many files have `import torch`."""


class Line(msgspec.Struct, frozen=True):
    """A line that holds some of an original's: pieces of its own, and (digest, number) of an original's, without white space at its ends."""

    pieces: tuple[str | tuple[str, int], ...]


Part = str | tuple[str, int, int] | Line
"""A line of its own, or (digest, first, count): so many lines of an original, or of a text that stands before, from there on (from 0)."""
Texts = Mapping[str, bytes]
Pool = Mapping[str, list[str]]
Places = dict[str, tuple[str, int]]


class Withheld(msgspec.Struct, frozen=True, kw_only=True):
    """The file beside a ledger: its head, the originals by digest with the name of a problem made of each, the texts in order."""

    format: str = FORMAT
    head: str
    originals: dict[str, str]
    texts: dict[str, tuple[Part, ...]]


def lines_of(content: bytes) -> list[str]:
    """What 0x0a parts. BadInput for bytes that are no UTF-8, of which no list in JSON could tell."""
    try:
        return content.decode().split("\n")
    except UnicodeDecodeError as error:
        raise BadInput(f"text {digest(content)}: expected UTF-8, found {error}") from None


def described(originals: Mapping[str, str], texts: Texts) -> dict[str, tuple[Part, ...]]:
    """Every text but the originals as parts. A line stands for itself once, wherever it comes first."""
    pool = {name: lines_of(texts[name]) for name in originals}
    places: Places = {}
    for name, lines in pool.items():
        _place(places, name, lines)
    quoted = {line.strip(): place for line, place in places.items() if len(line.strip()) >= SHORTEST}
    found: dict[str, tuple[Part, ...]] = {}
    for name, content in texts.items():
        if name not in originals:
            pool[name] = lines_of(content)
            found[name] = tuple(_quoting(part, quoted) for part in _parts(pool, places, pool[name]))
            _place(places, name, pool[name])
    return found


def made_again(withheld: Withheld, originals: Texts) -> dict[str, bytes]:
    """All texts by digest, the originals among them. BadInput where one is not what its digest says."""
    texts = dict(originals)
    pool = {name: lines_of(content) for name, content in originals.items()}
    for name, parts in withheld.texts.items():
        pool[name] = list(islice((line for part in parts for line in _told(part, pool)), MOST_LINES))
        texts[name] = "\n".join(pool[name]).encode("utf-8", "replace")
        if digest(texts[name]) != name:
            raise BadInput(
                f"text {name}: expected its digest, found {digest(texts[name])} of what was made of its parts"
            )
    return texts


def _place(places: Places, name: str, lines: list[str]) -> None:
    for number, line in enumerate(lines):
        places.setdefault(line, (name, number))


def _parts(pool: Pool, places: Places, lines: list[str]) -> Iterator[str | tuple[str, int, int]]:
    at = 0
    while at < len(lines):
        if lines[at] not in places:
            yield lines[at]
            at += 1
            continue
        name, first = places[lines[at]]
        count = 1
        while lines[at + count : at + count + 1] == pool[name][first + count : first + count + 1] != []:
            count += 1
        yield name, first, count
        at += count


def _quoting(part: str | tuple[str, int, int], quoted: Places) -> Part:
    """The part; a line of its own that holds lines of originals, which other white space may set apart from them, as pieces."""
    if not isinstance(part, str):
        return part
    pieces = tuple(_pieces(part, quoted))
    return part if pieces == (part,) else Line(pieces)


def _pieces(text: str, quoted: Places) -> Iterator[str | tuple[str, int]]:
    held = max((mark for mark in quoted if mark in text), key=len, default="")
    if not held:
        if text:
            yield text
        return
    before, _, after = text.partition(held)
    yield from _pieces(before, quoted)
    yield quoted[held]
    yield from _pieces(after, quoted)


def _told(part: Part, pool: Pool) -> list[str]:
    """The lines that a part stands for; none, or nothing, where it points nowhere."""
    match part:
        case str():
            return [part]
        case Line():
            return ["".join(each if isinstance(each, str) else _stripped(pool, *each) for each in part.pieces)]
        case name, first, count:
            return pool.get(name, [])[first : first + count]


def _stripped(pool: Pool, name: str, number: int) -> str:
    return "".join(pool.get(name, [])[number : number + 1]).strip()
