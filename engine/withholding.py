"""A ledger without the texts of imported files, and made whole again by who has them. Changes no event, and judges nothing.

Every text that holds a line of an imported file is left out; a file beside the ledger says line by line how each is made again
from the originals. Events, and so the head, stay what they were (replay/FORMAT.md 1).
"""

from __future__ import annotations

import glob
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby

import msgspec

from ..events.artifacts import digest, unpack
from ..events.errors import BadInput
from ..events.model import Event, ExaminationRegistered, RunRegistered
from ..events.reader import LedgerReader
from ..events.rows import Recorded
from ..events.writer import Batch, LedgerWriter
from .records import SOURCE
from .withheld_texts import FORMAT, SHORTEST, Withheld, described, lines_of, made_again

Artifact = tuple[bytes, str]
Holds = Callable[[bytes], bool]


def withhold(source: pathlib.Path, target: pathlib.Path) -> Withheld:
    """Write `target` without the texts. BadInput where there are none, where `target` is there, or where what is left would still hold a line."""
    with LedgerReader(source) as reader:
        originals = _originals(reader)
        holds = _finder(source, reader, originals)
        for row in reader.rows():
            if holds(row.payload):
                raise BadInput(
                    f"{source}: event {row.seq} quotes a line of an imported file, and no event can be left out"
                )
        texts, kept = _sorted(reader, originals, holds)
        made = Withheld(head=reader.head()[1], originals=originals, texts=described(originals, texts))
        if holds(msgspec.json.encode(made)):
            raise BadInput(
                f"{source}: expected a list without lines of the imported files, found one in it; nothing is written"
            )
        _write(reader, target, kept)
    return made


def restore(source: pathlib.Path, withheld: Withheld, folder: pathlib.Path, target: pathlib.Path) -> None:
    """Write `target` whole again. BadInput where an original is not in `folder`, and where a text that is made is not what its digest says."""
    with LedgerReader(source) as reader:
        if reader.head()[1] != withheld.head:
            raise BadInput(f"{source}: expected the ledger with head {withheld.head}, found {reader.head()[1]}")
        texts = made_again(withheld, _found(withheld, folder))
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
    """Imported files by digest, with the first problem that was made of each. BadInput where there are none."""
    found: dict[str, str] = {}
    for row in reader.recorded():
        problems = row.event.problems if isinstance(row.event, RunRegistered) else ()
        if isinstance(row.event, ExaminationRegistered):
            problems = tuple(subject.problem for subject in row.event.subjects)
        for problem in problems:
            files = problem.files if isinstance(problem.files, dict) else {}
            if "original.py" in files:
                found.setdefault(files["original.py"], problem.name)
    if not found:
        raise BadInput(
            f"{reader.path}: expected problems that were imported from files, found none. Nothing is withheld."
        )
    return found


def _finder(source: pathlib.Path, reader: LedgerReader, originals: Mapping[str, str]) -> Holds:
    """Whether bytes hold a line of an original, as it stands or as JSON writes it. BadInput where an original is not there."""
    there = {row.digest for row in reader.artifact_rows()}
    if lacking := [name for each, name in originals.items() if each not in there]:
        raise BadInput(
            f"{source}: expected the file of {lacking[0]}, found it withheld already, or lost; gpusolver restore makes it whole"
        )
    lines = {line.strip() for name in originals for line in lines_of(reader.artifact(name))}
    marks = [line for line in lines if len(line) >= SHORTEST]
    wanted = {form for mark in marks for form in (mark.encode(), msgspec.json.encode(mark)[1:-1])}
    return lambda content: any(each in content for each in wanted)


def _sorted(
    reader: LedgerReader, originals: Mapping[str, str], holds: Holds
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


def _found(withheld: Withheld, folder: pathlib.Path) -> dict[str, bytes]:
    """The originals by digest, wherever in the folder they lie and whatever they are called."""
    contents = (path.read_bytes() for path in sorted(folder.rglob("*.py")) if path.is_file())
    found = {digest(content): content for content in contents}
    lacking = [f"{name} (sha256 {each})" for each, name in withheld.originals.items() if each not in found]
    if lacking:
        raise BadInput(
            f"{folder}: expected {len(withheld.originals)} files, did not find {len(lacking)}: {'; '.join(lacking[:3])}"
        )
    return {each: found[each] for each in withheld.originals}


def _write(reader: LedgerReader, target: pathlib.Path, artifacts: Mapping[str, Artifact]) -> None:
    """The same events with these artifacts, under its name once it is whole."""
    if target.exists():
        raise BadInput(f"{target}: expected no file, found one, which is not written over. Name another -o.")
    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)  # of a command that was killed
    try:
        clock = _Clock()
        with LedgerWriter(part, clock=clock) as writer:
            writer.append_many([], list(artifacts.values()))
            for at, rows in groupby(reader.recorded(), key=lambda row: row.recorded_at):
                clock.now = at
                writer.append_many(list(_batches(rows)))
        with LedgerReader(part) as made:
            if made.head() != reader.head():
                raise BadInput(
                    f"{target}: expected the head {reader.head()}, found {made.head()}: events of an older revision cannot be copied"
                )
        part.rename(target)
    finally:
        for left in target.parent.glob(f"{glob.escape(part.name)}*"):
            left.unlink()


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
