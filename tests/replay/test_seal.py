"""Seals and anchors: what a verifier finds where size, root, note, signature or the tail is not what was sealed."""

from __future__ import annotations

import shutil
import sqlite3
from base64 import b64encode
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpusolver.engine.seal import seal
from gpusolver.engine.seal_keys import generate, signature_line
from gpusolver.events.errors import BadInput, ToolFailed
from gpusolver.events.merkle import root
from gpusolver.events.model import Event, LedgerSealed, RunStopped
from gpusolver.events.writer import LedgerWriter
from gpusolver.replay import seal_note
from gpusolver.replay.findings import Finding
from gpusolver.replay.seal import Anchors, trust
from gpusolver.replay.seal_note import Malformed, is_signed, parse_checkpoint, parse_vkey
from gpusolver.replay.verify import verify

from .sealed import VKEY, key, sealed
from .tamper import Line, first, lines, rewrite, unguarded

PAGE = files("gpusolver.replay").joinpath("FORMAT.md").read_text("utf-8").split("## 9. Seals")[1]
NOTE = PAGE.split("```\n")[1]
SUMDB = (
    "This is an example message.\n\n— example.com/foo "
    "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
)
"""The example of c2sp.org/signed-note, and its verifier key."""
SUMDB_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"


def findings(path: Path, anchors: Anchors | None = None, *, deep: bool = False) -> list[tuple[int, str]]:
    return [(finding.seq, finding.kind) for finding in verify(path, deep, anchors=anchors).findings]


# --- the note ----------------------------------------------------------------------------------------------------------------


def test_the_vector_on_the_page(tmp_path: Path) -> None:
    """Root, key and note of section 9: root by the chain's vectors, key and signature by both sides."""
    hashes = [bytes.fromhex(line.split("`")[-2]) for line in _page_vectors()]
    checkpoint = parse_checkpoint(NOTE)
    assert (checkpoint.origin, checkpoint.size, checkpoint.root) == ("example.com/lab", 2, root(hashes))
    assert checkpoint.root.hex() in PAGE and root(hashes[:1]).hex() in PAGE and VKEY in PAGE
    assert is_signed(checkpoint, parse_vkey(VKEY)) is True
    assert key(tmp_path).vkey == VKEY
    assert f"{checkpoint.text}\n{signature_line(key(tmp_path), checkpoint.text)}" == NOTE


def _page_vectors() -> list[str]:
    page = files("gpusolver.replay").joinpath("FORMAT.md").read_text("utf-8")
    return [line for line in page.splitlines() if "hash `" in line and line.startswith(("`{", "Vector 2"))]


def test_the_signed_note_of_the_specification() -> None:
    """The published message, key and signature; it is no checkpoint, for it has one line."""
    with pytest.raises(Malformed, match="three lines"):
        parse_checkpoint(SUMDB)
    text, _, signed = SUMDB.partition("\n\n")
    lines_ = seal_note._signatures(signed)
    note = seal_note.Checkpoint("", 0, b"", f"{text}\n", lines_)
    assert is_signed(note, parse_vkey(SUMDB_KEY)) is True
    assert is_signed(note._replace(text=f"{text}!\n"), parse_vkey(SUMDB_KEY)) is False
    assert is_signed(note, parse_vkey(VKEY)) is None


BODY = "\n".join(NOTE.split("\n")[:3]) + "\n"


@pytest.mark.parametrize(
    "note, words",
    [
        ("", "end in one newline"),
        (BODY[:-1], "end in one newline"),
        (BODY.replace("\n", "\r\n"), "control characters"),
        ("\n" + BODY.split("\n", 1)[1], "three lines"),
        (BODY.replace("\n2\n", "\n02\n"), "decimal digits"),
        (BODY.replace("\n2\n", "\n-2\n"), "decimal digits"),
        (BODY.replace("\n2\n", "\n٢\n"), "decimal digits"),
        (BODY.replace("t8Lp", "t8L"), "base64"),
        (BODY.replace("t8Lp", ""), "32 bytes"),
        (f"{BODY}\n", "signature line"),
        (f"{BODY}\n- example.com/lab AAAAAAAA\n", "signature line"),
        (f"{BODY}\n— example.com/lab AAAA\n", "signature line"),
        (f"{BODY}\n— a+b AAAAAAAA\n", "signature line"),
        (f"{BODY}\n" + "— a AAAAAAAA\n" * 101, "signature lines"),
        ("a" * (1 << 20) + "\n", "characters"),
    ],
)
def test_what_is_no_checkpoint(note: str, words: str) -> None:
    with pytest.raises(Malformed, match=words):
        parse_checkpoint(note)


def test_other_keys_lines_are_passed_over_and_one_bad_line_refuses_all() -> None:
    ours = parse_vkey(VKEY)
    witness = f"— witness.example {b64encode(bytes(68)).decode()}\n"
    assert is_signed(parse_checkpoint(NOTE + witness), ours) is True
    assert is_signed(parse_checkpoint(f"{BODY}\n{witness}"), ours) is None
    bad = f"— example.com/lab {b64encode(ours.key_id + bytes(64)).decode()}\n"
    assert is_signed(parse_checkpoint(NOTE + bad), ours) is False


@pytest.mark.parametrize(
    "text", ["", "x", VKEY[:-4], VKEY.replace("f44d7c6f", "f44d7c60"), VKEY.replace("lab", "l b"), "+" + VKEY]
)
def test_what_is_no_verifier_key(text: str) -> None:
    with pytest.raises(BadInput, match="expected name\\+id\\+base64"):
        parse_vkey(text)


def test_without_cryptography_a_key_is_refused_and_nothing_else(
    ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, anchors = sealed(ledger, tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    with pytest.raises(ToolFailed, match=r"pip install 'gpusolver\[seal\]'"):
        verify(ledger, False, anchors=anchors)
    assert findings(ledger, replace(anchors, vkey=None)) == []


@pytest.mark.parametrize(
    "anchors, words",
    [
        (Anchors(checkpoints=("nothing\n",)), "checkpoint: "),
        (Anchors(file_digest="12"), "64 hex digits"),
        (Anchors(vkey="key"), "verifier key"),
    ],
)
def test_an_anchor_that_is_none_is_bad_input(anchors: Anchors, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        trust(anchors)


# --- a sealed ledger ---------------------------------------------------------------------------------------------------------


def test_a_sealed_ledger_verifies_and_tells_how_far(ledger: Path, tmp_path: Path) -> None:
    """Root and size by the page's own recursion over the stored hashes."""
    done, anchors = sealed(ledger, tmp_path)
    before = [bytes.fromhex(hash_) for hash_ in _hashes(ledger)[:-1]]
    assert (done.size, done.root) == (len(before), root(before).hex())
    report = verify(ledger, deep=True, anchors=anchors)
    assert report.findings == ()
    (view,) = report.seals
    assert (view.seq, view.size, view.root, view.signature) == (
        done.seq,
        done.size,
        done.root,
        "signed by example.com/lab",
    )
    assert (
        f"signature: example.com/lab vouches for the first {done.size} events, not for the 1 after them" in report.notes
    )
    assert (
        f"anchored: the first {done.size} events by a checkpoint kept elsewhere, the 1 after them not" in report.notes
    )
    assert report.root == root([bytes.fromhex(hash_) for hash_ in _hashes(ledger)]).hex()


def _hashes(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return [row[0] for row in db.execute("SELECT hash FROM events ORDER BY seq")]


def test_without_a_key_the_signature_is_said_to_be_unchecked(ledger: Path, tmp_path: Path) -> None:
    _, anchors = sealed(ledger, tmp_path)
    report = verify(ledger, deep=False, anchors=replace(anchors, vkey=None))
    assert report.findings == () and report.seals[0].signature == "signature of example.com/lab not checked: no key"
    assert any(note.startswith("signature not checked: no key") for note in report.notes)
    other = parse_vkey(SUMDB_KEY)
    wrong = verify(ledger, deep=False, anchors=replace(anchors, vkey=SUMDB_KEY))
    assert [(f.seq, f.kind) for f in wrong.findings] == [(0, "signature")]
    assert wrong.seals[0].signature == f"signature of example.com/lab not checked: the key given is {other.name}'s"


def test_an_unsigned_seal_says_that_nobody_vouches(ledger: Path, tmp_path: Path) -> None:
    _, anchors = sealed(ledger, tmp_path, signed=False)
    report = verify(ledger, deep=False, anchors=anchors)
    assert report.findings == () and report.seals[0].signature == "unsigned"
    assert any(note.startswith("sealed, but by no key") for note in report.notes)
    assert findings(ledger, replace(anchors, vkey=VKEY)) == [(0, "signature")]


def test_seals_nest_and_every_checkpoint_stays_true(ledger: Path, tmp_path: Path) -> None:
    """Sealed, continued and sealed again: the older checkpoint anchors the longer ledger, too."""
    one, first_ = sealed(ledger, tmp_path)
    two, second = sealed(ledger, tmp_path, signed=False)
    assert two.size == one.size + 1
    assert findings(ledger, first_) == [] and findings(ledger, second) == []
    both = replace(first_, checkpoints=first_.checkpoints + second.checkpoints)
    assert findings(ledger, both) == []


def test_a_run_goes_on_after_a_seal(tmp_path: Path) -> None:
    """Runs pass the seal over: between two runs it takes nothing from either."""
    from .forge import Forge
    from .world import World

    path, world = tmp_path / "ledger.db", World()
    with LedgerWriter(path) as ledger:
        Forge(ledger, world, repetitions=1, arms=("off", "on")).all()
    _, anchors = sealed(path, tmp_path)
    with LedgerWriter(path) as ledger:
        Forge(ledger, world, repetitions=1, arms=("off", "on"), run="run2").all()
    assert verify(path, deep=True, anchors=anchors).findings == ()


@pytest.fixture
def guarded(ledger: Path, tmp_path: Path) -> tuple[Path, Anchors]:
    """A sealed copy to alter, and its anchors."""
    return ledger, sealed(ledger, tmp_path)[1]


def _seal_line(events: list[Line]) -> Line:
    return first(events, "LedgerSealed")


FORGED: list[tuple[Callable[[list[Line]], object], set[str]]] = [
    (lambda events: _seal_line(events).body.update(size=7), {"seal"}),
    (lambda events: _seal_line(events).body.update(root="0" * 64), {"seal"}),
    (lambda events: _seal_line(events).body.update(note="sealed, trust me"), {"seal", "checkpoint"}),
    (lambda events: _seal_line(events).body.update(note=NOTE), {"seal", "checkpoint"}),
    (lambda events: events.remove(_seal_line(events)), {"checkpoint"}),
    (lambda events: _unsign(_seal_line(events)), {"checkpoint"}),
    (lambda events: _extend(_seal_line(events)), {"seal", "signature", "checkpoint"}),
    (lambda events: setattr(_seal_line(events), "stream", "run1"), {"stream", "order of events", "checkpoint"}),
]


def _unsign(line: Line) -> None:
    line.body["note"] = line.body["note"].partition("\n\n")[0] + "\n"


def _extend(line: Line) -> None:
    """A further line under the three: no longer what was signed."""
    text, _, signed = line.body["note"].partition("\n\n")
    line.body["note"] = f"{text}\nmore\n\n{signed}"


@pytest.mark.parametrize("change, kinds", FORGED)
def test_a_forged_seal(guarded: tuple[Path, Anchors], change: Callable[[list[Line]], object], kinds: set[str]) -> None:
    path, anchors = guarded

    def forge(events: list[Line]) -> None:
        change(events)

    rewrite(path, forge)
    assert {kind for _, kind in findings(path, anchors)} == kinds


def test_another_date_with_every_hash_made_anew(guarded: tuple[Path, Anchors]) -> None:
    """Nothing but the root knows: the seal's own finding names its event, the checkpoint's the place."""
    path, anchors = guarded

    def back_date(events: list[Line]) -> None:
        events[2].at = "2025-01-01T00:00:00.000Z"

    rewrite(path, back_date)
    size = len(lines(path)) - 1
    report = verify(path, deep=True, anchors=anchors)
    assert {(f.seq, f.kind) for f in report.findings} == {(size + 1, "seal"), (size, "checkpoint"), (0, "signature")}
    expected = next(f for f in report.findings if f.kind == "checkpoint").expected
    assert expected == f"root {parse_checkpoint(anchors.checkpoints[0]).root.hex()} of the first {size} events"


def test_a_cut_tail_and_a_seal_made_anew(guarded: tuple[Path, Anchors], tmp_path: Path) -> None:
    """Cut to a clean end, chain untouched, sealed again with another key of the same name: only the outside knows."""
    path, anchors = guarded
    with unguarded(path) as db:
        db.execute("DELETE FROM events WHERE seq > (SELECT max(seq) - 3 FROM events)")
    seal(path, generate(tmp_path / "own", "example.com/lab"), None, tmp_path / "own.checkpoint")
    assert findings(path) == []
    total = len(lines(path))
    report = verify(path, deep=False, anchors=anchors)
    assert [(f.seq, f.kind) for f in report.findings] == [(0, "signature"), (total, "checkpoint")]
    assert report.findings[1].found == f"only {total} events"
    by_key_alone = replace(anchors, checkpoints=())
    assert findings(path, by_key_alone) == [(0, "signature")]


def test_the_seals_own_row_is_anchored_by_the_head_or_the_next_seal(
    guarded: tuple[Path, Anchors], tmp_path: Path
) -> None:
    """A checkpoint covers what comes before its seal; the seal's own date is shown by the head kept beside it."""
    path, anchors = guarded
    head = verify(path, deep=False).head

    def back_date(events: list[Line]) -> None:
        _seal_line(events).at = "2025-01-01T00:00:00.000Z"

    rewrite(path, back_date)
    assert findings(path, anchors) == []
    assert [f.kind for f in verify(path, False, head=head, anchors=anchors).findings] == ["head"]


def test_the_files_digest(guarded: tuple[Path, Anchors]) -> None:
    """A byte that no reader of the database sees is found by the digest alone."""
    path, anchors = guarded
    digest = sha256(path.read_bytes()).hexdigest()
    anchored = replace(anchors, file_digest=digest.upper())
    assert findings(path, anchored) == []
    content = bytearray(path.read_bytes())
    content[92] ^= 1  # "version-valid-for" of the header: a word for SQLite's own bookkeeping
    path.write_bytes(content)
    assert findings(path, anchors) == [] and findings(path, anchored) == [(0, "file digest")]


def test_only_seals_lie_in_their_stream(ledger: Path) -> None:
    with LedgerWriter(ledger) as writer:
        stray: list[Event] = [RunStopped(run="seal", cell=None, reason="done", rule=None)]
        writer.append("seal", 0, stray)
    assert (len(lines(ledger)), "stream") in findings(ledger)


def test_a_hostile_note_neither_raises_nor_steers_the_terminal(ledger: Path) -> None:
    with LedgerWriter(ledger) as writer:
        size = writer.head()[0]
        writer.append("seal", 0, [LedgerSealed(size=size, root="\x1b[2J", note="\x1b[2J\n" * 5)])
    report = verify(ledger, deep=True)
    assert {finding.kind for finding in report.findings} == {"seal"}
    assert all("\x1b" not in finding.found for finding in report.findings if isinstance(finding, Finding))


def test_a_witness_may_have_added_its_line_to_the_copy(guarded: tuple[Path, Anchors]) -> None:
    path, anchors = guarded
    witness = f"— witness.example {b64encode(bytes(68)).decode()}\n"
    cosigned = replace(anchors, checkpoints=(anchors.checkpoints[0] + witness,))
    assert findings(path, cosigned) == []


def test_another_ledgers_checkpoint(guarded: tuple[Path, Anchors], clean: Path, tmp_path: Path) -> None:
    """The same key and origin, another history of the same length."""
    path, _ = guarded
    other = Path(shutil.copy(clean, tmp_path / "other.db"))

    def back_date(events: list[Line]) -> None:
        events[0].at = "2025-01-01T00:00:00.000Z"

    rewrite(other, back_date)
    _, foreign = sealed(other, tmp_path)
    assert "checkpoint" in {kind for _, kind in findings(path, foreign)}
