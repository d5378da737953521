"""A ledger without the texts of imported files, and made whole again by who has them. Changes no event, and judges nothing.

Every text that holds a line of an imported file is left out; a file beside the ledger says line by line how each is made again
from the originals. Events, and so the head, stay what they were (replay/FORMAT.md 3).
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby

import msgspec

from ..events.artifacts import digest, unpack
from ..events.errors import BadInput, GpuSolverError
from ..events.model import Event, ExaminationRegistered, RunRegistered
from ..events.reader import LedgerReader
from ..events.rows import Recorded
from ..events.writer import Batch, LedgerWriter

FORMAT = "gpusolver-withheld/1"
SHORTEST = 20
"""Characters that a line has, white space at its ends aside, before it tells whose it is: many files have `import torch`."""
SOURCE = "text/x-python"


class Quote(msgspec.Struct, frozen=True):
    """A line that holds one of an original's (`number`, from 0; white space at its ends aside) between two texts of its own."""

    before: str
    digest: str
    number: int
    after: str


Part = str | tuple[str, int, int] | Quote
"""A line of its own, or (digest, first, count): so many lines of an original, or of a text that stands before, from there on (from 0)."""
Artifact = tuple[bytes, str]


class Withheld(msgspec.Struct, frozen=True, kw_only=True):
    """The file beside the ledger: its head, the originals by digest with the name of a problem made of each, the texts in order."""

    format: str = FORMAT
    head: str
    originals: dict[str, str]
    texts: dict[str, tuple[Part, ...]]


def withhold(source: pathlib.Path, target: pathlib.Path) -> Withheld:
    """Write `target` without the texts. BadInput where there are none, where `target` is there, or where what is left would still hold a line."""
    with LedgerReader(source) as reader:
        originals = _originals(reader)
        if not originals:
            raise BadInput(
                f"{source}: expected problems that were imported from files, found none. Nothing is withheld."
            )
        marks = {
            line.strip()
            for name in originals
            for line in _lines(reader.artifact(name))
            if len(line.strip()) >= SHORTEST
        }
        holds = _finder(marks)
        for row in reader.rows():
            if holds(row.payload):
                raise BadInput(
                    f"{source}: event {row.seq} quotes a line of an imported file, and events cannot be left out"
                )
        texts, kept = _sorted(reader, originals, holds)
        made = Withheld(head=reader.head()[1], originals=originals, texts=_described(originals, texts))
        _write(reader, target, kept)
    return made


def restore(source: pathlib.Path, withheld: Withheld, folder: pathlib.Path, target: pathlib.Path) -> None:
    """Write `target` whole again. BadInput where an original is not in `folder`, and where a text that is made is not what its digest says."""
    with LedgerReader(source) as reader:
        if reader.head()[1] != withheld.head:
            raise BadInput(f"{source}: expected the ledger with head {withheld.head}, found {reader.head()[1]}")
        texts = _made_again(withheld, _found(withheld, folder))
        kept = {
            row.digest: (unpack(row.codec, row.content, row.size), row.media_type) for row in reader.artifact_rows()
        }
        _write(reader, target, {**kept, **{name: (content, SOURCE) for name, content in texts.items()}})


def read_withheld(path: pathlib.Path) -> Withheld:
    """The file beside a ledger. BadInput where it is none."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Withheld)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{path}: expected what gpusolver withhold has written, found {error}") from None
    if found.format != FORMAT:
        raise BadInput(f"{path}: expected the format {FORMAT}, found {found.format[:40]!r}")
    return found


def _originals(reader: LedgerReader) -> dict[str, str]:
    """Imported files by digest, with the first problem that was made of each."""
    found: dict[str, str] = {}
    for row in reader.recorded():
        problems = row.event.problems if isinstance(row.event, RunRegistered) else ()
        if isinstance(row.event, ExaminationRegistered):
            problems = tuple(subject.problem for subject in row.event.subjects)
        for problem in problems:
            files = problem.files if isinstance(problem.files, dict) else {}
            if "original.py" in files:
                found.setdefault(files["original.py"], problem.name)
    return found


def _lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "surrogateescape").split("\n")


def _finder(marks: Iterable[str]) -> Callable[[bytes], bool]:
    """Whether bytes hold one of the lines, as it stands or as JSON writes it."""
    wanted = {text for mark in marks for text in (mark.encode("utf-8", "surrogateescape"), _in_json(mark))}
    return lambda content: any(each in content for each in wanted)


def _in_json(text: str) -> bytes:
    return msgspec.json.encode(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))[1:-1]


def _sorted(
    reader: LedgerReader, originals: Mapping[str, str], holds: Callable[[bytes], bool]
) -> tuple[dict[str, bytes], dict[str, Artifact]]:
    """The originals and texts that hold a line, and all other artifacts. BadInput where one that holds a line is no source."""
    texts: dict[str, bytes] = {}
    kept: dict[str, Artifact] = {}
    for row in reader.artifact_rows():
        content = unpack(row.codec, row.content, row.size)
        if row.digest not in originals and not holds(content):
            kept[row.digest] = content, row.media_type
        elif row.media_type == SOURCE:
            texts[row.digest] = content
        else:
            raise BadInput(
                f"artifact {row.digest} ({row.media_type}) quotes a line of an imported file; only sources can be left out"
            )
    return texts, kept


def _described(originals: Mapping[str, str], texts: Mapping[str, bytes]) -> dict[str, tuple[Part, ...]]:
    """Every text but the originals as parts. A line stands for itself once, wherever it comes first."""
    pool = {name: _lines(texts[name]) for name in originals}
    places: dict[str, tuple[str, int]] = {}
    for name, lines in pool.items():
        _place(places, name, lines)
    quoted = {line.strip(): place for line, place in places.items() if len(line.strip()) >= SHORTEST}
    found: dict[str, tuple[Part, ...]] = {}
    for name, content in texts.items():
        if name not in originals:
            pool[name] = _lines(content)
            found[name] = tuple(_quoting(part, quoted) for part in _parts(pool, places, pool[name]))
            _place(places, name, pool[name])
    return found


def _place(places: dict[str, tuple[str, int]], name: str, lines: list[str]) -> None:
    for number, line in enumerate(lines):
        places.setdefault(line, (name, number))


def _parts(pool: Mapping[str, list[str]], places: Mapping[str, tuple[str, int]], lines: list[str]) -> Iterator[Part]:
    at = 0
    while at < len(lines):
        if lines[at] not in places:
            yield lines[at]
            at += 1
            continue
        name, first = places[lines[at]]
        count = 1
        there = pool[name]
        while at + count < len(lines) and first + count < len(there) and lines[at + count] == there[first + count]:
            count += 1
        yield name, first, count
        at += count


def _quoting(part: Part, quoted: Mapping[str, tuple[str, int]]) -> Part:
    """The part; a line of its own that holds one of an original's, which other white space may set apart from it, as a quotation."""
    if not isinstance(part, str):
        return part
    held = max((mark for mark in quoted if mark in part), key=len, default="")
    if not held:
        return part
    before, _, after = part.partition(held)
    return Quote(before, *quoted[held], after)


def _line(part: Part, pool: Mapping[str, list[str]]) -> list[str]:
    """The lines that a part stands for; none where it points nowhere."""
    match part:
        case str():
            return [part]
        case Quote():
            there = pool.get(part.digest, [])[part.number : part.number + 1]
            return [f"{part.before}{line.strip()}{part.after}" for line in there]
        case name, first, count:
            return pool.get(name, [])[first : first + count]


def _found(withheld: Withheld, folder: pathlib.Path) -> dict[str, bytes]:
    """The originals by digest, wherever in the folder they lie and whatever they are called."""
    found = {
        digest(content): content
        for path in sorted(folder.rglob("*.py"))
        if path.is_file()
        for content in (path.read_bytes(),)
    }
    lacking = [f"{name} (sha256 {each})" for each, name in withheld.originals.items() if each not in found]
    if lacking:
        raise BadInput(
            f"{folder}: expected {len(withheld.originals)} files, did not find {len(lacking)}: {'; '.join(lacking[:3])}"
        )
    return {each: found[each] for each in withheld.originals}


def _made_again(withheld: Withheld, originals: Mapping[str, bytes]) -> dict[str, bytes]:
    """All texts by digest, the originals among them."""
    texts = dict(originals)
    pool = {name: _lines(content) for name, content in originals.items()}
    for name, parts in withheld.texts.items():
        lines = [line for part in parts for line in _line(part, pool)]
        content = "\n".join(lines).encode("utf-8", "surrogateescape")
        if digest(content) != name:
            raise BadInput(f"text {name}: expected its digest, found {digest(content)} of what was made of its parts")
        pool[name], texts[name] = lines, content
    return texts


def _write(reader: LedgerReader, target: pathlib.Path, artifacts: Mapping[str, Artifact]) -> None:
    """The same events with these artifacts. Whatever goes wrong, no half a ledger is left."""
    if target.exists():
        raise BadInput(f"{target}: expected no file, found one, which is not written over. Name another -o.")
    try:
        clock = _Clock()
        with LedgerWriter(target, clock=clock) as writer:
            writer.append_many([], list(artifacts.values()))
            for at, rows in groupby(reader.recorded(), key=lambda row: row.recorded_at):
                clock.now = at
                writer.append_many(list(_batches(rows)))
        with LedgerReader(target) as made:
            if made.head() != reader.head():
                raise BadInput(
                    f"{target}: expected the head {reader.head()}, found {made.head()}: events of an older revision cannot be copied"
                )
    except GpuSolverError:
        target.unlink(missing_ok=True)
        raise


def _batches(rows: Iterable[Recorded]) -> Iterator[Batch]:
    """Neighbours of one stream together, in the order of seq."""
    for stream, group in groupby(rows, key=lambda row: row.stream):
        items = list(group)
        events: list[Event] = [row.event for row in items]
        yield stream, items[0].version - 1, events


class _Clock:
    """Says what it is told; artifacts, which have no time, are stored before anything is."""

    now = "-"

    def __call__(self) -> str:
        return self.now
