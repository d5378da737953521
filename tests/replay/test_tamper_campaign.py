"""The tamper campaign: a byte flipped at every offset, and random structured edits, sealed and anchored against unsealed.

A sample runs by default. The whole of it, with its tables:
    pytest tests/replay/test_tamper_campaign.py -m campaign -s
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from gpusolver.engine.seal_keys import SigningKey, generate
from gpusolver.events.errors import UnreadableLedger
from gpusolver.events.writer import LedgerWriter
from gpusolver.replay.seal import Anchors
from gpusolver.replay.verify import verify

from . import forgeries
from .byte_flips import Tally, flip_each
from .forge import Forge, forge
from .forgeries import EDITS, Book, Edit
from .sealed import sealed
from .world import World

SAMPLE, EDITS_AT_ALL = 280, 10_000
FOUND_UNSEALED = ("swap_artifacts", "replace_schema", "duplicate", "move_stream")
"""Edits that every verification finds: digests, schema texts and the order of a stream name them."""


class Ground(NamedTuple):
    """One history twice: as it is, and sealed; what is kept of the seal elsewhere; a forger's own key of the same name."""

    folder: Path
    unsealed: Path
    sealed: Path
    anchors: Anchors
    own: SigningKey


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Anchors]:
    """A small sealed ledger and every anchor of it."""
    folder = tmp_path_factory.mktemp("flips")
    path = forge(folder / "ledger.db", arms=("on",), repetitions=1, max_rounds=1)
    anchors = sealed(path, folder)[1]
    return path, replace(anchors, file_digest=hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """Two runs, of which an evolving arm retires a rule."""
    folder = tmp_path_factory.mktemp("edits")
    paths = folder / "unsealed.db", folder / "sealed.db"
    for path in paths:
        with LedgerWriter(path, clock=lambda: "2026-01-01T00:00:00.000Z") as ledger:
            world = World()
            Forge(ledger, world, repetitions=1).all()
            Forge(ledger, world, repetitions=1, arms=("off", "on"), run="run2").all()
    anchors = sealed(paths[1], folder)[1]
    own = generate(folder / "own", "example.com/lab")
    return Ground(folder, *paths, anchors, own)


# --- (a) bytes ---------------------------------------------------------------------------------------------------------------


def check_flips(tally: Tally) -> None:
    """Every flip that altered what the file holds has a finding other than the digest's; the digest names all."""
    print(
        f"\n{tally.flips} flips: {tally.altered} altered what the file holds, {tally.altered - len(tally.missed)} of them found "
        f"without the file's digest; by the digest {tally.flips - len(tally.unseen_by_digest)}"
    )
    print("  ".join(f"{kind} {number}" for kind, number in tally.kinds.most_common(12)))
    assert tally.missed == [] and tally.unseen_by_digest == []
    assert 0 < tally.altered < tally.flips


def test_a_byte_here_and_there(small: tuple[Path, Anchors]) -> None:
    path, anchors = small
    offsets = random.Random(1).sample(range(path.stat().st_size), SAMPLE)
    check_flips(flip_each(path, offsets, anchors, mask=0))


def test_cells_that_no_schema_text_shows(small: tuple[Path, Anchors]) -> None:
    """The word `trigger` kept as a blob, or a trigger listed under another table: SQL and names read the same."""
    path, anchors = small
    content = path.read_bytes()
    at = content.index(b"triggerevents_no_deleteevents") - 4  # the record's header: one serial type for each cell
    for offset in (at, content.index(b"events_no_deleteevents") + len("events_no_delete")):
        tally = flip_each(path, [offset], anchors, mask=1)
        assert tally.kinds["schema object"] + tally.kinds["unreadable"] == 1


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_every_byte(small: tuple[Path, Anchors]) -> None:
    path, anchors = small
    check_flips(flip_each(path, range(path.stat().st_size), anchors, mask=0))


# --- (b) structured edits ----------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """One edit made on the sealed ledger, looked at with the anchors and without, and on the unsealed one."""

    edit: str
    seal: str
    anchored: set[str]
    alone: set[str]
    unsealed: set[str]


def findings(path: Path, anchors: Anchors | None) -> set[str]:
    try:
        return {finding.kind for finding in verify(path, deep=True, anchors=anchors).findings}
    except UnreadableLedger:
        return {"unreadable"}


def edits(ground: Ground, count: int) -> Iterator[Outcome]:
    """`count` edits that change something, one kind after the other, each made alike on both ledgers."""
    original, with_seal = forgeries.read(ground.unsealed), forgeries.read(ground.sealed)
    last = len(original.rows)
    assert [row.hash for row in with_seal.rows[:last]] == [row.hash for row in original.rows]
    made = turn = 0
    while made < count:
        edit = EDITS[made % len(EDITS)]
        turn += 1
        plain, guarded = _edited(edit, turn, original, last), _edited(edit, turn, with_seal, last)
        if not _differs(plain, original):
            continue
        made += 1
        seal = forgeries.reseal(random.Random(turn), guarded, ground.own)
        paths = ground.folder / "plain.db", ground.folder / "guarded.db"
        forgeries.write(plain, ground.unsealed, paths[0])
        forgeries.write(guarded, ground.sealed, paths[1])
        anchored, alone = findings(paths[1], ground.anchors), findings(paths[1], None)
        yield Outcome(edit.__name__, seal, anchored, alone, findings(paths[0], None))


def _edited(edit: Edit, turn: int, book: Book, last: int) -> Book:
    copied = forgeries.forked(book)
    edit(random.Random(turn), copied, last)
    return copied


def _differs(book: Book, original: Book) -> bool:
    told = [(row.stream, row.kind, row.at, row.payload) for row in book.rows]
    replaced = any(content != original.artifacts[digest] for digest, content in book.replaced.items())
    return bool(book.schema) or replaced or told != [(r.stream, r.kind, r.at, r.payload) for r in original.rows]


def check_edits(outcomes: list[Outcome]) -> dict[str, tuple[int, int]]:
    """Sealed and anchored, all are found; the table says what is found otherwise. (made, found unsealed) by edit."""
    print(f"\n{'edit':<18}{'made':>7}{'sealed, anchored':>18}{'sealed, no anchor':>19}{'unsealed':>10}  found")
    rows = {name: [o for o in outcomes if o.edit == name] for name in dict.fromkeys(o.edit for o in outcomes)}
    for name, those in [*rows.items(), ("in all", outcomes)]:
        found = [sum(bool(kinds[i]) for kinds in those) for i in (2, 3, 4)]
        print(f"{name:<18}{len(those):>7}{found[0]:>18}{found[1]:>19}{found[2]:>10}")
    for choice, number in Counter(outcome.seal for outcome in outcomes).items():
        alone = sum(bool(outcome.alone) for outcome in outcomes if outcome.seal == choice)
        print(f"the forger's seal: {choice} {number}, found without an anchor {alone}")
    assert [outcome for outcome in outcomes if not outcome.anchored] == []
    return {name: (len(those), sum(bool(outcome.unsealed) for outcome in those)) for name, those in rows.items()}


def test_some_edits(ground: Ground) -> None:
    """A few of each kind; the kinds that need no seal are found without one, too."""
    told = check_edits(list(edits(ground, 4 * len(EDITS))))
    assert set(told) == {edit.__name__ for edit in EDITS}
    for name in FOUND_UNSEALED:
        assert told[name][0] == told[name][1], name


@pytest.mark.campaign
@pytest.mark.timeout(7200)
def test_ten_thousand_edits(ground: Ground) -> None:
    """Without a seal a clean cut, a dropped run, another date, and a time that decides nothing are not shown by anything."""
    told = check_edits(list(edits(ground, EDITS_AT_ALL)))
    for name, (number, plain) in told.items():
        assert plain == number or name not in FOUND_UNSEALED, name
    for name in ("drop_tail", "drop_run", "back_date", "alter_sample", "alter_payload"):
        number, plain = told[name]
        assert plain < number, name
