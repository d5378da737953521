"""`keygen`, `seal`, `prove` and `check-proof` from the command line: files, modes, refusals, and proofs that others can check."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpusolver.__main__ import main
from gpusolver.engine.devices import default_recording
from gpusolver.engine.seal_keys import generate, load
from gpusolver.events.errors import BadInput
from gpusolver.events.lock import WriterLock
from gpusolver.events.reader import LedgerReader
from tests.events.examples import fill
from tests.replay.tamper import unguarded

SIZE = 21


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Events in one stream: no run, but a chain."""
    return fill(tmp_path / "ledger.db", SIZE)


def invoke(*words: object, given: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], input=given)


def refused(result: Result, *expected: str) -> None:
    """One message in words, no traceback."""
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit), result.output
    for words in expected:
        assert words in result.output, result.output


def keygen(path: Path = Path("key"), *more: str) -> str:
    done = invoke("keygen", path, *more)
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


def proof(*words: object) -> dict[str, Any]:
    done = invoke("prove", *words)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# --- keys --------------------------------------------------------------------------------------------------------------------


def test_a_key_is_its_owners_alone_and_its_vkey_is_all_that_is_printed() -> None:
    before = os.umask(0)
    try:
        vkey = keygen(Path("key"), "--name", "example.com/lab")
    finally:
        os.umask(before)
    assert stat.S_IMODE(Path("key").stat().st_mode) == 0o600
    assert vkey.startswith("example.com/lab+") and load(Path("key")).vkey == vkey
    assert Path("key").read_text().startswith("PRIVATE+KEY+example.com/lab+")


def test_a_key_is_never_overwritten() -> None:
    keygen()
    before = Path("key").read_bytes()
    refused(invoke("keygen", "key"), "exists already", "never overwritten")
    assert Path("key").read_bytes() == before


@pytest.mark.parametrize("name", ["", "two words", "a+b", "é", "x" * 201])
def test_names_that_a_signed_note_cannot_hold(name: str) -> None:
    refused(invoke("keygen", "key", "--name", name), "key name", "printable ASCII")
    assert not Path("key").exists()


def test_a_key_that_others_may_read_is_refused(ledger: Path) -> None:
    keygen()
    Path("key").chmod(0o640)
    refused(invoke("seal", ledger, "--key", "key"), "mode 640", "chmod 600 key")


@pytest.mark.parametrize("text", ["", "PRIVATE+KEY+a+00000000+AAAA", "example.com/lab+f44d7c6f+AQOh"])
def test_what_is_no_key(text: str) -> None:
    Path("key").touch(0o600)
    Path("key").write_text(text)
    with pytest.raises(BadInput, match="is no Ed25519 key"):
        load(Path("key"))


def test_a_key_under_another_name_is_refused(tmp_path: Path) -> None:
    """The id follows from name and key, so that a renamed key is noticed."""
    generate(Path("key"), "one")
    Path("key").write_text(Path("key").read_text().replace("+one+", "+two+"))
    with pytest.raises(BadInput, match="expected the id"):
        load(Path("key"))


def test_without_cryptography_the_extra_is_named_and_unsigned_seals_are_made(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    refused(invoke("keygen", "key"), "pip install 'gpusolver[seal]'")
    assert "not signed, root only" in invoke("seal", ledger).output


# --- sealing -----------------------------------------------------------------------------------------------------------------


def test_seal_prints_what_to_keep_and_the_printed_check_passes(ledger: Path) -> None:
    """Head and digest are those of the file as it lies there; the last line is the command."""
    vkey = keygen()
    done = invoke("seal", ledger, "--key", "key")
    assert done.exit_code == 0, done.output
    digest = sha256(ledger.read_bytes()).hexdigest()
    with LedgerReader(ledger) as reader:
        seq, head = reader.head()
    assert seq == SIZE + 1
    note = Path(f"{ledger}.{SIZE}.checkpoint").read_text()
    assert note.split("\n")[:2] == ["gpusolver", str(SIZE)] and note.split("\n")[4].startswith("— gpusolver ")
    for words in (f"the first {SIZE} events", head, digest, vkey, "signed by gpusolver"):
        assert words in done.output
    command = done.output.strip().splitlines()[-1].split()
    assert command[:2] == ["gpusolver", "replay"] and {"--checkpoint", "--vkey", "--head", "--file-digest"} <= set(
        command
    )
    told = json.loads(invoke(*[word for word in command[1:] if word != "--verify"], "--json").output)
    assert told["seals"][0]["signature"] == "signed by gpusolver"
    kinds = {finding["kind"] for finding in told["findings"]}
    assert not kinds & {"seal", "signature", "checkpoint", "head", "file digest"}


def test_an_unsigned_seal_is_three_lines_and_says_so(ledger: Path) -> None:
    done = invoke("seal", ledger, "--origin", "example.com/unsigned", "-o", "kept")
    assert "not signed, root only" in done.output
    lines = Path("kept").read_text().split("\n")
    assert lines[:2] == ["example.com/unsigned", str(SIZE)] and len(lines) == 4 and lines[3] == ""


def test_a_checkpoint_is_never_overwritten_and_then_nothing_is_sealed(ledger: Path) -> None:
    Path("kept").write_text("another")
    refused(invoke("seal", ledger, "-o", "kept"), "exists already", "never overwritten")
    assert Path("kept").read_text() == "another"
    with LedgerReader(ledger) as reader:
        assert reader.head()[0] == SIZE


def test_what_cannot_be_sealed(ledger: Path, tmp_path: Path) -> None:
    """No file, no events, a broken chain, another writer at work, a packaged recording: a word each, and no file left behind."""
    refused(invoke("seal", "none.db"), "found no file")
    assert not Path("none.db").exists()
    refused(invoke("seal", fill(tmp_path / "empty.db", 0)), "has no events")
    with_lock = WriterLock(ledger)
    refused(invoke("seal", ledger), "writer")
    with_lock.release()
    refused(invoke("seal", default_recording()), "never written into")
    with unguarded(ledger) as db:
        db.execute("UPDATE events SET recorded_at = '2025-01-01T00:00:00.000Z' WHERE seq = 3")
    refused(invoke("seal", ledger), "event 3 does not continue the chain")
    assert sorted(path.name for path in tmp_path.glob("*.checkpoint")) == []


# --- proofs ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def twice(ledger: Path) -> tuple[Path, str]:
    """Sealed at 21 by a key and at 22 by none."""
    vkey = keygen()
    assert invoke("seal", ledger, "--key", "key", "-o", "first").exit_code == 0
    assert invoke("seal", ledger, "-o", "second").exit_code == 0
    return ledger, vkey


@pytest.mark.parametrize("seq", [1, 2, 16, 17, SIZE])
def test_an_inclusion_proof_holds_by_the_signed_seal(twice: tuple[Path, str], seq: int) -> None:
    ledger, vkey = twice
    found = proof(ledger, "--event", seq)
    assert (found["proof"], found["event"]["seq"], found["size"]) == ("inclusion", seq, SIZE)
    shown = invoke("check-proof", "-", "--vkey", vkey, "--checkpoint", "first", given=json.dumps(found))
    assert shown.exit_code == 0, shown.output
    assert "holds" in shown.output and "a checkpoint kept elsewhere and signed by gpusolver" in shown.output


@pytest.mark.parametrize("old, new", [(1, 2), (7, 22), (16, 21), (21, 22), (22, 22)])
def test_a_consistency_proof_holds(twice: tuple[Path, str], old: int, new: int) -> None:
    found = proof(twice[0], "--from", old, "--to", new)
    assert (found["from_size"], found["to_size"]) == (old, new)
    shown = invoke("check-proof", "-", given=json.dumps(found))
    assert shown.exit_code == 0, shown.output
    assert f"root of {new} events: nobody vouches for it here" in shown.output


def test_sizes_are_those_of_seals_where_none_are_given(twice: tuple[Path, str]) -> None:
    ledger, _ = twice
    assert proof(ledger, "--event", SIZE + 1)["size"] == SIZE + 1  # only the unsigned seal covers the first one's event
    assert proof(ledger, "--event", SIZE + 2)["size"] == SIZE + 2  # no seal covers the last: all there are
    assert proof(ledger, "--from", 4)["to_size"] == SIZE
    both = proof(ledger, "--from", SIZE)
    assert (both["to_size"], both["from_checkpoint"], both["to_checkpoint"]) == (
        SIZE + 1,
        Path("first").read_text(),
        Path("second").read_text(),
    )


ALTERED: list[tuple[dict[str, Any], str]] = [
    ({"root": "0" * 64}, "proof"),
    ({"size": 16}, "proof"),
    ({"size": SIZE + 1}, "checkpoint"),  # of the same shape: a path alone does not tell these sizes apart
    ({"path": []}, "proof"),
    ({"path": ["zz"] * 5}, "proof"),
    ({"checkpoint": None}, "signature"),
    ({"checkpoint": "sealed"}, "checkpoint"),
    ({"event": {"recorded_at": "2025-01-01T00:00:00.000Z"}}, "hash"),
    ({"event": {"payload": "{}"}}, "hash"),
    ({"event": {"seq": 4}}, "hash"),
]


@pytest.mark.parametrize("change, kind", ALTERED)
def test_an_altered_proof_does_not_hold(twice: tuple[Path, str], change: dict[str, Any], kind: str) -> None:
    ledger, vkey = twice
    found = proof(ledger, "--event", 5)
    altered = found | change | {"event": found["event"] | change.get("event", {})}
    shown = invoke("check-proof", "-", "--vkey", vkey, "--json", given=json.dumps(altered))
    assert shown.exit_code == 1, shown.output
    assert kind in {finding["kind"] for finding in json.loads(shown.output)["findings"]}


def test_a_proof_against_another_ledgers_checkpoint(twice: tuple[Path, str], tmp_path: Path) -> None:
    ledger, _ = twice
    other = Path(shutil.copy(ledger, tmp_path / "other.db"))
    with unguarded(other) as db:
        db.execute("DELETE FROM events WHERE seq > 20")
    assert invoke("seal", other, "-o", "third").exit_code == 0
    found = proof(ledger, "--event", 5, "--size", 20)
    assert invoke("check-proof", "-", "--checkpoint", "third", given=json.dumps(found)).exit_code == 0
    shown = invoke("check-proof", "-", "--checkpoint", "first", given=json.dumps(found))
    assert shown.exit_code == 1 and "expected a proof about 21 events" in shown.output


@pytest.mark.parametrize("content", ["", "[]", '{"proof":"faith"}', '{"proof":"inclusion"}', "[" * 100_000])
def test_what_is_no_proof_is_exit_2(content: str) -> None:
    shown = invoke("check-proof", "-", given=content)
    assert shown.exit_code == 2 and "no proof of FORMAT.md section 9" in shown.output


@pytest.mark.parametrize(
    "words, expected",
    [
        ([], "expected --event SEQ"),
        (["--event", 1, "--from", 2], "expected --event SEQ"),
        (["--event", 1, "--to", 2], "expected --event SEQ"),
        (["--from", 1, "--size", 2], "expected --event SEQ"),
        (["--event", 0], "expected an event from 1"),
        (["--event", 99], "expected an event from 1 to 23, found 99"),
        (["--event", 5, "--size", 4], "expected an event from 1 to 4, found 5"),
        (["--event", 5, "--size", 24], "expected a size from 1 to 23"),
        (["--from", 0], "0 < old <= new"),
        (["--from", 9, "--to", 8], "0 < old <= new"),
    ],
)
def test_what_cannot_be_proved(twice: tuple[Path, str], words: list[object], expected: str) -> None:
    refused(invoke("prove", twice[0], *words), expected)


def test_a_ledger_whose_chain_is_broken_proves_nothing(twice: tuple[Path, str]) -> None:
    ledger, _ = twice
    with unguarded(ledger) as db:
        db.execute("UPDATE events SET stream = 'x' WHERE seq = 9")
    refused(invoke("prove", ledger, "--event", 3), "event 9 does not continue the chain")
