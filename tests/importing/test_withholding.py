"""A ledger without its imported texts: what it still shows, what it says of the rest, and that the originals make it whole. No torch."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from gpusolver.__main__ import main
from gpusolver.engine.registration import RunRequest
from gpusolver.engine.run import Run
from gpusolver.engine.withheld_texts import SHORTEST, Withheld
from gpusolver.engine.withholding import read_withheld
from gpusolver.events.model import Event, HeadToHead, Profiled, RunRegistered
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter
from gpusolver.problems.contract import Problem, load
from gpusolver.problems.imported import materialised

from ..engine.support import FakeExecutor, ignore

NAME = "theirs"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `theirs.py`, and `l.db`, the ledger of a run on it; the start and the candidates have its lines."""
    folder = tmp_path_factory.mktemp("whole")
    ours = Path(load("kb_matmul_scalar").reference).parent
    files = {p.relative_to(ours).as_posix(): p.read_bytes() for p in ours.rglob("*") if p.suffix in (".py", ".toml")}
    files["problem.toml"] = files["problem.toml"].replace(b'name = "kb_matmul_scalar"', b'name = "theirs"')
    files["original.py"] = files["start.py"].replace(b"\n", b"\n# a line of theirs alone\n", 1)
    problem: Problem = materialised(NAME, files)
    (folder / "theirs.py").write_bytes(files["original.py"])
    with LedgerWriter(folder / "l.db") as ledger:
        Run(ledger, FakeExecutor(), ignore).start(RunRequest(problems=(NAME,), imported={NAME: problem}, rounds=8))
    return folder


@pytest.fixture
def public(whole: Path, tmp_path: Path) -> Path:
    said = call("withhold", whole / "l.db", "-o", tmp_path / "p.db")
    assert said.exit_code == 0, said.output
    return tmp_path / "p.db"


def call(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], env={"COLUMNS": "200"})


def checked(ledger: Path, *words: object) -> Result:
    return call("replay", ledger, "--verify", *words)


def listed(public: Path) -> Path:
    return public.with_suffix(".withheld.json")


def artifacts(ledger: Path) -> dict[str, tuple[bytes, str]]:
    with LedgerReader(ledger) as reader:
        return {row.digest: (reader.artifact(row.digest), row.media_type) for row in reader.artifact_rows()}


def test_no_line_of_theirs_is_left_and_every_event_is(whole: Path, public: Path) -> None:
    """Lines of twenty characters or more; shorter ones are anybody's."""
    lines = [line.strip() for line in (whole / "theirs.py").read_text().split("\n")]
    theirs = [line.encode() for line in lines if len(line) >= SHORTEST]
    assert len(theirs) > 10
    left, before = artifacts(public), artifacts(whole / "l.db")
    assert not any(line in content for content, _ in left.values() for line in theirs)
    assert not any(line in listed(public).read_bytes() for line in theirs)
    assert {media for name, (_, media) in before.items() if name not in left} == {"text/x-python"}
    with LedgerReader(whole / "l.db") as one, LedgerReader(public) as other:
        assert list(one.rows()) == list(other.rows())


def test_with_the_list_nothing_is_wrong_and_what_is_open_is_said(public: Path) -> None:
    found = checked(public, "--withheld", listed(public))
    assert found.exit_code == 0, found.output
    assert "findings: none" in found.output and "but for what rests on withheld texts" in found.output
    assert "texts are withheld" in found.output and "gpusolver restore" in found.output


def test_without_the_list_every_text_is_missed(public: Path) -> None:
    found = checked(public)
    assert found.exit_code == 1 and "artifact missing" in found.output


def test_the_original_makes_it_whole_wherever_it_lies(whole: Path, public: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere" / "deeper"
    folder.mkdir(parents=True)
    shutil.copy(whole / "theirs.py", folder / "another_name.py")
    said = call("restore", public, "--list", listed(public), "--from", tmp_path / "elsewhere", "-o", tmp_path / "w.db")
    assert said.exit_code == 0, said.output
    assert artifacts(tmp_path / "w.db") == artifacts(whole / "l.db")
    found = checked(tmp_path / "w.db")
    assert found.exit_code == 0 and "withheld" not in found.output


def test_what_was_measured_is_never_excused(public: Path, tmp_path: Path) -> None:
    """A holder who leaves out samples and puts them on the list is found out."""
    with LedgerReader(public) as reader:
        samples = next(row.event.samples for row in reader.recorded() if isinstance(row.event, Profiled))
        left = [
            (reader.artifact(row.digest), row.media_type) for row in reader.artifact_rows() if row.digest != samples
        ]
        rows = list(reader.recorded())
    forged = rewritten(tmp_path / "f.db", rows, left)
    told = read_withheld(listed(public))
    found = checked(forged, "--withheld", beside(forged, replace(told, texts={**told.texts, samples: ()})))
    assert found.exit_code == 1 and f"samples {samples}" in found.output


def compared(event: Event, comparison: str) -> bool:
    return isinstance(event, HeadToHead) and event.comparison == comparison


def longer(event: Event) -> Event:
    assert isinstance(event, HeadToHead) and event.interval is not None
    return replace(event, interval=replace(event.interval, median=3 * event.interval.median))


def easier(event: Event) -> Event:
    assert isinstance(event, RunRegistered)
    wide = {name: replace(each, rel_l2=0.5) for name, each in event.problems[0].limits.items()}
    return replace(event, problems=(replace(event.problems[0], limits=wide),))


FORGED: dict[str, tuple[Callable[[Event], bool], Callable[[Event], Event], str]] = {
    "an interval": (lambda e: compared(e, "versus:eager_fp32"), longer, "interval: expected versus:eager_fp32"),
    "the winner": (
        lambda e: compared(e, "versus:eager_fp32"),
        lambda e: replace(e, right=LISTED),
        "versus:eager_fp32 right",
    ),
    "the eager form": (
        lambda e: compared(e, "versus:eager_fp32"),
        lambda e: replace(e, left=LISTED),
        "the problem's eager.py",
    ),
    "the start": (lambda e: compared(e, "kernel_part"), lambda e: replace(e, left=LISTED), "kernel_part left"),
    "limits": (lambda e: isinstance(e, RunRegistered), easier, "limits of theirs"),
}
LISTED = "ab" * 32


@pytest.mark.parametrize("what", FORGED)
def test_what_needs_no_text_is_checked_without_the_texts(public: Path, tmp_path: Path, what: str) -> None:
    """The forger has put the digest that he needs on the list as well."""
    chosen, forge, said = FORGED[what]
    with LedgerReader(public) as reader:
        left = [(reader.artifact(row.digest), row.media_type) for row in reader.artifact_rows()]
        rows = list(reader.recorded())
    at = next(i for i, row in enumerate(rows) if chosen(row.event))
    rows[at] = rows[at]._replace(event=forge(rows[at].event))
    forged = rewritten(tmp_path / "f.db", rows, left)
    told = read_withheld(listed(public))
    found = checked(forged, "--withheld", beside(forged, replace(told, texts={**told.texts, LISTED: ()})))
    assert found.exit_code == 1 and said in found.output, found.output


def test_a_list_of_files_that_nothing_was_imported_from_is_refused(public: Path, tmp_path: Path) -> None:
    """Else every source of any ledger could be left out, and nobody could make it whole."""
    told = read_withheld(listed(public))
    for originals in ({}, {LISTED: "theirs"}, {**told.originals, LISTED: "theirs"}):
        other = tmp_path / "other.json"
        other.write_bytes(msgspec.json.encode(replace(told, originals=originals)))
        found = checked(public, "--withheld", other)
        assert found.exit_code == 2 and "expected imported files of this ledger" in found.output


def rewritten(path: Path, rows: list, left: list[tuple[bytes, str]]) -> Path:  # type: ignore[type-arg]
    """A ledger of these events, hashed anew."""
    with LedgerWriter(path) as writer:
        writer.append_many([], left)
        for row in rows:
            writer.append(row.stream, row.version - 1, [row.event])
    return path


def beside(ledger: Path, withheld: Withheld) -> Path:
    """The list, said to be of this ledger."""
    with LedgerReader(ledger) as reader:
        listed(ledger).write_bytes(msgspec.json.encode(replace(withheld, head=reader.head()[1])))
    return listed(ledger)


def test_a_list_of_another_ledger_or_of_nothing_is_refused(public: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(msgspec.json.encode(replace(read_withheld(listed(public)), head="0" * 64)))
    found = checked(public, "--withheld", other)
    assert found.exit_code == 2 and "expected that of the ledger with head" in found.output
    refused = call("restore", public, "--list", other, "--from", tmp_path, "-o", tmp_path / "w.db")
    assert refused.exit_code == 1 and "expected the ledger with head" in refused.output
    other.write_text("[]")
    assert checked(public, "--withheld", other).exit_code == 2
    assert call("restore", public, "--list", other, "--from", tmp_path, "-o", tmp_path / "w.db").exit_code == 1
    assert not (tmp_path / "w.db").exists()


def test_without_the_original_or_with_an_altered_list_nothing_is_written(
    whole: Path, public: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    said = call("restore", public, "--list", listed(public), "--from", tmp_path / "empty", "-o", tmp_path / "w.db")
    assert said.exit_code == 1 and "did not find 1: theirs" in said.output
    told = read_withheld(listed(public))
    name, parts = next(iter(told.texts.items()))
    listed(public).write_bytes(msgspec.json.encode(replace(told, texts={**told.texts, name: (*parts, "more")})))
    said = call("restore", public, "--list", listed(public), "--from", whole, "-o", tmp_path / "w.db")
    assert said.exit_code == 1 and f"text {name}: expected its digest" in said.output
    assert not (tmp_path / "w.db").exists()


def test_what_a_killed_command_left_is_no_hindrance(whole: Path, tmp_path: Path) -> None:
    """It lies under a name of its own, beside the one that was asked for."""
    for name in ("p.db.part", "p.withheld.json.part"):
        (tmp_path / name).write_bytes(b"half")
    assert call("withhold", whole / "l.db", "-o", tmp_path / "p.db").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.db", "p.withheld.json"]


def test_nothing_is_written_over(whole: Path, public: Path) -> None:
    before = public.read_bytes()
    assert "found a file, which is not written over" in call("withhold", whole / "l.db", "-o", public).output
    listed(public).unlink()
    assert "found one, which is not written over" in call("withhold", whole / "l.db", "-o", public).output
    assert public.read_bytes() == before and not listed(public).exists()


@pytest.mark.parametrize("place", ["p.db", "nowhere/l.json"])
def test_where_the_list_cannot_be_no_ledger_is_written(whole: Path, tmp_path: Path, place: str) -> None:
    said = call("withhold", whole / "l.db", "-o", tmp_path / "p.db", "--list", tmp_path / place)
    assert said.exit_code == 1 and list(tmp_path.iterdir()) == []


def test_what_is_withheld_already_is_said_to_be(public: Path, tmp_path: Path) -> None:
    said = call("withhold", public, "-o", tmp_path / "again.db")
    assert said.exit_code == 1 and "withheld already" in said.output
    assert not (tmp_path / "again.db").exists()


def test_a_report_says_how_many_kernels_it_cannot_look_at(public: Path) -> None:
    said = call("report", public)
    assert said.exit_code == 0 and "not looked at: 1 best kernels" in said.output


def test_a_ledger_without_imported_files_has_nothing_to_withhold(tmp_path: Path) -> None:
    with LedgerWriter(tmp_path / "l.db") as ledger:
        Run(ledger, FakeExecutor(), ignore).start(RunRequest(problems=("kb_matmul_scalar",), rounds=2))
    said = call("withhold", tmp_path / "l.db", "-o", tmp_path / "p.db")
    assert said.exit_code == 1 and "imported from files, found none" in said.output
    assert not (tmp_path / "p.db").exists()


def test_a_quotation_elsewhere_is_refused(whole: Path, tmp_path: Path) -> None:
    """A model's prompt quotes the source; it is no source, and leaving it out would leave its spending unexplained."""
    ledger = tmp_path / "l.db"
    shutil.copy(whole / "l.db", ledger)
    with LedgerWriter(ledger) as writer:
        writer.append_many([], [(b"rewrite this:\n# a line of theirs alone\n", "text/plain")])
    said = call("withhold", ledger, "-o", tmp_path / "p.db")
    assert said.exit_code == 1 and "(text/plain) quotes a line" in said.output
    assert not (tmp_path / "p.db").exists()
