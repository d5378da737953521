"""Reproductions altered by someone who rebuilds the chain, and the first ledger beside them: what the verifier finds."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gpusolver.engine.executor import Observation, Question
from gpusolver.events.artifacts import digest
from gpusolver.events.model import HeadToHead
from gpusolver.events.reader import LedgerReader
from gpusolver.replay.verify import verify

from ..engine.support import FakeExecutor, only, play, request, stored
from ..engine.test_reproduce import reproduce
from .tamper import Line, first, rewrite, unguarded

Change = Callable[[list[Line]], "list[Line] | None"]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A finished run and its reproduction; not to be altered."""
    folder = tmp_path_factory.mktemp("both")
    play(folder / "first.db", FakeExecutor(), request("off", "on"))
    reproduce(folder / "first.db", folder / "again.db", times=2)
    return folder / "first.db", folder / "again.db"


@pytest.fixture
def again(both: tuple[Path, Path], tmp_path: Path) -> Path:
    return Path(shutil.copy(both[1], tmp_path / "again.db"))


def registered(events: list[Line]) -> dict[str, object]:
    return first(events, "ExaminationRegistered").body  # type: ignore[no-any-return]


def answer_of(kind: str, **fields: object) -> Change:
    """Another value in the answer to the first statement of a kind."""

    def change(events: list[Line]) -> None:
        stated = registered(events)["statements"]
        assert isinstance(stated, list)
        seq = next(statement["seq"] for statement in stated if statement["kind"] == kind)
        first(events, "StatementReproduced", statement=seq).body.update(fields)

    return change


def statement(kind: str, **fields: object) -> Change:
    def change(events: list[Line]) -> None:
        stated = registered(events)["statements"]
        assert isinstance(stated, list)
        next(entry for entry in stated if entry["kind"] == kind).update(fields)

    return change


def without(kind: str) -> Change:
    def change(events: list[Line]) -> list[Line]:
        gone = first(events, kind)
        return [event for event in events if event is not gone]

    return change


def drop_statement(events: list[Line]) -> None:
    """A statement that is inconvenient is not asked: its answer and its figure go too."""
    stated = registered(events)["statements"]
    assert isinstance(stated, list)
    gone = stated.pop(3)
    events.remove(first(events, "StatementReproduced", statement=gone["seq"]))
    first(events, "ExaminationStated").body["figures"]["statements/confirmed"] -= 1.0


def without_origin(events: list[Line]) -> None:
    registered(events).pop("origin")


def wider_limits(events: list[Line]) -> None:
    """What its gate refuses here would pass."""
    subjects = registered(events)["subjects"]
    assert isinstance(subjects, list)
    for subject in subjects:
        subject["problem"]["limits"]["tf32-allowed"]["rel_l2"] = 0.9


def swap_answers(events: list[Line]) -> None:
    one, other = [event for event in events if event.kind == "StatementReproduced"][:2]
    one.body, other.body = other.body, one.body


# What is found in the reproduction alone, by (kind, words of what was expected or found).
ALONE: dict[str, tuple[Change, str, str]] = {
    "an answer": (answer_of("round", answer="not confirmed"), "statement", "confirmed"),
    "another chip": (answer_of("claim", answer="other chip"), "statement", "confirmed"),
    "a median": (answer_of("comparison", medians=[9.0, 9.0]), "statement", "medians"),
    "an excuse": (answer_of("claim", unmeasured=["x"]), "statement", "unmeasured"),
    "a missing answer": (without("StatementReproduced"), "statement", "one answer each"),
    "answers in another order": (swap_answers, "statement", "one answer each"),
    "a figure": (
        lambda e: first(e, "ExaminationStated").body["figures"].update({"statements/confirmed": 99.0}),
        "figures",
        "statements/confirmed",
    ),
    "a bound on a round": (statement("round", at_least=1.0), "registration", "no bound"),
    "a verdict for a claim": (statement("claim", stands="FASTER"), "registration", "stands one of"),
    "no pair": (statement("comparison", pairs=[]), "registration", "at least one"),
    "an unknown pair": (statement("comparison", pairs=["x"]), "registration", "no others"),
    "an event beyond the origin": (statement("round", seq=10**6), "registration", "ascending"),
    "no origin": (without_origin, "registration", "or neither"),
    "no head": (lambda e: registered(e)["origin"].update(head="x"), "registration", "64 hex"),  # type: ignore[attr-defined]
    "a comparison too few": (without("PairCompared"), "missing measurement", "comparison 2"),
    "a side that is no subject": (
        lambda e: registered(e)["pairs"][0].update(left="ab" * 32),  # type: ignore[index]
        "registration",
        "each side one subject",
    ),
}
# What shows only beside the first ledger.
BESIDE: dict[str, tuple[Change, str, str]] = {
    "a head": (lambda e: registered(e)["origin"].update(head="ab" * 32), "origin", "hash of event"),  # type: ignore[attr-defined]
    "fewer events": (lambda e: registered(e)["origin"].update(events=130), "origin", "hash of event 130"),  # type: ignore[attr-defined]
    "a statement left out": (drop_statement, "statement", "left out"),
    "a stated median": (statement("comparison", medians=[1.2]), "statement", "1.2"),
    "a lower bound": (statement("claim", at_least=3.0), "statement", "3.0"),
    "another event": (statement("round", seq=1), "statement", "event 1 of the origin: one that states"),
    "wider limits": (wider_limits, "statement", "sides"),
    "another chip": (statement("round", chip="B200"), "statement", "chip"),
    "pairs of another statement": (
        statement("comparison", pairs=["kb_matmul_scalar/tf32-allowed/b92bd8e95d7c/392d84d45697"]),
        "statement",
        "sides",
    ),
}


@pytest.mark.parametrize("name", ALONE)
def test_what_shows_in_the_reproduction_itself(again: Path, name: str) -> None:
    change, kind, words = ALONE[name]
    rewrite(again, change)
    findings = [f for f in verify(again, True).findings if f.kind == kind]
    assert any(words in f.expected or words in f.found for f in findings), findings


@pytest.mark.parametrize("name", BESIDE)
def test_what_shows_beside_the_first_ledger(both: tuple[Path, Path], again: Path, name: str) -> None:
    change, kind, words = BESIDE[name]
    rewrite(again, change)
    assert not [f for f in verify(again, True).findings if f.kind == kind and words in f.found]
    findings = [f for f in verify(again, True, origin=both[0]).findings if f.kind == kind]
    assert any(words in f.expected or words in f.found for f in findings), findings


def test_claims_behind_the_named_end_of_the_first_ledger_are_told(both: tuple[Path, Path], again: Path) -> None:
    """Whoever names the first ledger as it was just before its claims need not say that they were not confirmed."""
    with LedgerReader(both[0]) as reader:
        rows = list(reader.rows())
    claims = [row.seq for row in rows if row.type == "ClaimStated"]
    last = rows[claims[0] - 2]

    def change(events: list[Line]) -> list[Line]:
        body = registered(events)
        kept = [entry for entry in body["statements"] if entry["seq"] not in claims]  # type: ignore[attr-defined]
        asked = {name for entry in kept for name in entry["pairs"]}
        pairs = [pair for pair in body["pairs"] if pair["name"] in asked]  # type: ignore[attr-defined]
        body.update(statements=kept, pairs=pairs, origin={"head": last.hash, "events": last.seq})
        kind = {"StatementReproduced": lambda e: e.body["statement"] not in claims}
        kind["PairCompared"] = lambda e: e.body["pair"] in asked
        return [event for event in events if kind.get(event.kind, lambda e: True)(event)]

    rewrite(again, change)
    report = verify(again, True, origin=both[0])
    assert not [f for f in report.findings if f.kind in ("statement", "origin", "registration")]
    told = f"exam1: the origin states more behind event {last.seq}, which is not asked: {len(claims)} claims"
    assert told in report.notes


class Copying(FakeExecutor):
    """Answers comparisons of pairs with the samples that another ledger holds of them, once each."""

    def __init__(self, origin: Path) -> None:
        super().__init__()
        finals = only((row.event for row in stored(origin)), HeadToHead)
        with LedgerReader(origin) as reader:
            self._taken = {(e.left, e.right): reader.artifact(e.samples) for e in finals if e.samples is not None}

    def compare(self, question: Question, left: str, right: str, blocks: int, first: int = 0) -> Observation:
        key = (digest(left.encode()), digest(right.encode()))
        if question.purpose == "pair" and key in self._taken:
            return Observation(status="ok", artifacts={"samples": self._taken.pop(key)})
        return super().compare(question, left, right, blocks, first)


def test_samples_taken_from_the_first_ledger_are_found(both: tuple[Path, Path], tmp_path: Path) -> None:
    """Whoever has no GPU could copy what was measured before: the very samples of the first ledger are no measurement."""
    copied = tmp_path / "copied.db"
    reproduce(both[0], copied, Copying(both[0]), times=1)
    assert "samples" not in {f.kind for f in verify(copied, True).findings}
    findings = verify(copied, True, origin=both[0]).findings
    assert any(f.kind == "samples" and "of the origin" in f.found for f in findings), findings


def test_an_altered_first_ledger_is_found(both: tuple[Path, Path], again: Path, tmp_path: Path) -> None:
    """Chained anew it has another head; with its old hashes kept its chain does not hold."""
    rechained = Path(shutil.copy(both[0], tmp_path / "rechained.db"))
    rewrite(rechained, lambda events: first(events, "ClaimStated").body.update(answer="upheld"))
    assert {f.kind for f in verify(again, True, origin=rechained).findings} == {"origin"}
    edited = Path(shutil.copy(both[0], tmp_path / "edited.db"))
    with unguarded(edited) as db:
        db.execute(
            "UPDATE events SET payload = replace(payload, '\"not upheld\"', '\"upheld\"') WHERE type = 'ClaimStated'"
        )
        assert db.execute("SELECT changes()").fetchone() == (2,)
    assert "origin" in {f.kind for f in verify(again, True, origin=edited).findings}


def test_a_ledger_that_names_no_origin_has_none(both: tuple[Path, Path]) -> None:
    assert [(f.kind, f.seq) for f in verify(both[0], True, origin=both[0]).findings] == [("origin", 0)]
