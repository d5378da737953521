"""What was tried on an incumbent is offered no more by a generator that makes sources itself: made-up kernels, both sides, older policies."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from gpusolver.engine import loop
from gpusolver.engine.generators.base import Asked, Candidate
from gpusolver.engine.recorded import RecordedExecutor
from gpusolver.engine.registration import POLICY, register
from gpusolver.engine.run import Run
from gpusolver.events.errors import BadInput
from gpusolver.events.model import (
    GeneratorAsked,
    KernelGenerated,
    Policy,
    PrescriptionUnserved,
    RoundJudged,
    RunRegistered,
    RunStopped,
    SourcesSwept,
)
from gpusolver.events.writer import LedgerWriter
from gpusolver.problems.contract import load
from gpusolver.projections.cell import CellState
from gpusolver.projections.tried import refused, tried
from gpusolver.replay.state import State
from gpusolver.replay.verify import verify

from ..engine.support import (
    FakeExecutor,
    Kernel,
    assert_verifies,
    cell_events,
    ignore,
    matmul_story,
    metrics,
    only,
    play,
    stored,
)
from .test_chain import Stub, asked_for, chained

START = load("kb_matmul_scalar").start
BOTH = ("enable_tf32", "coalesce")


def source(ns: int, word: str = "") -> str:
    """The scalar kernel as one that takes so long; `word` is how it ends where it does not run or is wrong."""
    return f"{START}# made {ns} {word}\n"


def kernels(text: str) -> Kernel:
    """By the source's last line; the context is the start's, the machine code its own."""
    if "# made " not in text:
        return matmul_story(text)
    ns, _, word = text.rstrip("\n").rpartition("# made ")[2].partition(" ")
    found = Kernel(ns=int(ns), code=text, ttir="tt.load arith.mulf", metrics=metrics(40.0, 0.0))
    return replace(found, errors=(0.5, 0.5)) if word == "wrong" else replace(found, fault=word or None)


def offers(*sources: str) -> Callable[[Asked], Candidate]:
    return lambda asked: Candidate(sources=sources, note="some")


# Under the physical floor; as fast as the start; slower; one that does not compile.
TOO_FAST, EQUAL, SLOW, BROKEN = source(100), source(300_000), source(330_000), source(1, "compile_error")


def test_what_was_judged_or_lost_in_a_sweep_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four, the fastest is ambiguous in round 1, the next is the same in round 2, and the others lost to it there; `coalesce` would
    offer the very same. So two sweeps instead of twelve, and each rule ends unserved."""
    path = tmp_path / "ledger.db"
    stub = Stub("module", BOTH, offers(TOO_FAST, EQUAL, SLOW, BROKEN))
    play(path, FakeExecutor(kernels), asked_for(*chained(monkeypatch, stub), rounds=12))
    events = cell_events(path, "on")
    assert [len(e.sources) for e in only(events, SourcesSwept)] == [4, 3]
    assert [(e.verdict, e.reason) for e in only(events, RoundJudged)] == [
        ("AMBIGUOUS", "below physical floor"),
        ("SAME", "interval within margin"),
    ]
    assert [e.round for e in only(events, PrescriptionUnserved)] == [3, 4]
    assert only(events, RunStopped)[0].reason == "no rule fires"
    told = [(e.outcome, e.sources, e.note) for e in only(events, GeneratorAsked)]
    first = "1 (round 1: AMBIGUOUS, below physical floor)"
    rest = ", ".join(f"{n} (round 2: no faster in the sweep than one that was SAME)" for n in (3, 4))
    assert told[:3] == [
        ("made", 4, "some"),
        ("made", 3, f"some; left out: {first}"),
        ("repeated", 0, f"some; left out: {first}, 2 (round 2: SAME, interval within margin), {rest}"),
    ]
    assert_verifies(path)


def test_the_next_of_the_chain_is_asked_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the kernel that the next one won with, what lost to the start may be tried anew."""
    path = tmp_path / "ledger.db"
    names = chained(monkeypatch, Stub("module", BOTH, offers(SLOW)), Stub("cuda", BOTH, offers(source(200_000))))
    play(path, FakeExecutor(kernels), asked_for(*names, rounds=4))
    events = cell_events(path, "on")
    makers = [(e.generator, e.parent) for e in only(events, KernelGenerated)[1:]]
    won = only(events, RoundJudged)[1].candidate
    start = only(events, RoundJudged)[0].incumbent
    assert makers == [("module", start), ("cuda", start), ("module", won)]
    assert [e.verdict for e in only(events, RoundJudged)] == ["SLOWER", "FASTER", "SLOWER"]
    assert_verifies(path)


def test_the_catalogue_repeats_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its inert flag is what a table that never learns is measured by."""
    path = tmp_path / "ledger.db"
    chained(monkeypatch, Stub("module", (), offers()))
    play(path, FakeExecutor(), replace(asked_for("catalogue", "module", rounds=5), arms=("off",)))
    judged = only(cell_events(path, "off"), RoundJudged)
    assert len(judged) == 5 and {(e.reason, e.candidate) for e in judged} == {("inert", judged[0].candidate)}
    assert_verifies(path)


def test_a_fault_says_nothing_of_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is lost in the gate of round 1 and in the samples of round 2; round 3 is the first that is told anything."""
    path, asked = tmp_path / "ledger.db", []

    def lost_at_first(text: str) -> Kernel:
        asked.append(text)
        return replace(kernels(text), fault="worker_lost") if asked.count(source(200_000)) == 1 else kernels(text)

    names = chained(monkeypatch, Stub("module", BOTH, offers(source(200_000))))
    play(path, FakeExecutor(lost_at_first, {("compare", 2): "worker_lost"}), asked_for(*names, rounds=3))
    assert [(e.verdict, e.reason) for e in only(cell_events(path, "on"), RoundJudged)] == [
        ("AMBIGUOUS", "gate: worker_lost"),
        ("AMBIGUOUS", "worker_lost"),
        ("FASTER", "interval beyond margin"),
    ]
    assert_verifies(path)


def test_a_sweep_of_which_nothing_ran_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.db"
    names = chained(monkeypatch, Stub("module", BOTH, offers(BROKEN, source(2, "run_error"))))
    play(path, FakeExecutor(kernels), asked_for(*names))
    events = cell_events(path, "on")
    assert [e.outcome for e in only(events, GeneratorAsked)] == ["made", "repeated"]
    assert "left out: 1 (round 1: nothing of its sweep ran)" in only(events, GeneratorAsked)[1].note
    assert len(only(events, SourcesSwept)) == 1
    assert_verifies(path)


def test_arms_that_share_leave_out_what_each_has_tried_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another arm tried is taken from it, not left out: five arms, sweeps of the same sources, each measured once."""
    arms, path = ("off", "on", "off+tabu", "on+tabu", "random"), tmp_path / "ledger.db"
    names = chained(monkeypatch, Stub("module", BOTH, offers(TOO_FAST, EQUAL, SLOW, source(200_000, "wrong"))))
    play(path, FakeExecutor(kernels), replace(asked_for(*names, rounds=8), arms=arms, share=True))
    swept = {arm: [e.sources for e in only(cell_events(path, arm), SourcesSwept)] for arm in arms}
    assert {len(each) for each in swept.values()} == {3} and swept["off"] == swept["on"] == swept["on+tabu"]
    paid = [e for arm in arms for e in only(cell_events(path, arm), SourcesSwept) if e.origin_seq is None]
    assert len(paid) == len({e.sources for e in paid}) == 3
    assert_verifies(path)


def test_always_is_the_policy_of_older_ledgers_offers_again_and_its_recording_still_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, again = tmp_path / "ledger.db", tmp_path / "again.db"
    asked = replace(asked_for(*chained(monkeypatch, Stub("module", BOTH, offers(EQUAL, SLOW))), rounds=3), once=False)
    play(path, FakeExecutor(kernels), asked)
    assert [len(e.sources) for e in only(cell_events(path, "on"), SourcesSwept)] == [2, 2, 2]
    executor = RecordedExecutor(path)
    with LedgerWriter(again) as ledger:
        Run(ledger, executor, ignore).start(asked)
    executor.close()
    for ledger_path in (path, again):
        (registered,) = [s.event for s in stored(ledger_path) if isinstance(s.event, RunRegistered)]
        assert registered.policy == POLICY and POLICY.offers is UNSET
        assert_verifies(ledger_path)
    assert [type(e) for e in cell_events(again, "on")] == [type(e) for e in cell_events(path, "on")]


def test_a_recording_is_played_as_it_was_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another word is refused, not passed over."""
    asked = asked_for(*chained(monkeypatch, Stub("module", BOTH, offers(EQUAL, SLOW))), rounds=2)
    for once, said in ((True, "once, found always"), (False, "always, found once")):
        path = tmp_path / f"{once}.db"
        play(path, FakeExecutor(kernels), replace(asked, once=once))
        executor = RecordedExecutor(path)
        with pytest.raises(BadInput, match=f"--offers: expected {said}"):
            executor.check(register("run1", replace(asked, once=not once), executor))
        executor.close()


@pytest.mark.parametrize(
    ("sources", "kinds"), [((EQUAL, SLOW), {"sweep", "generated source"}), ((SLOW,), {"generated source"})]
)
def test_an_engine_that_offers_again_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: tuple[str, ...], kinds: set[str]
) -> None:
    monkeypatch.setattr(loop, "tried", lambda policy, state: refused(state))
    path = tmp_path / "ledger.db"
    play(
        path, FakeExecutor(kernels), asked_for(*chained(monkeypatch, Stub("module", BOTH, offers(*sources))), rounds=3)
    )
    assert {finding.kind for finding in verify(path, True).findings} == kinds


def _changes(seen: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Without those that equal the one before."""
    found: list[frozenset[str]] = []
    for each in seen:
        if not found or found[-1] != each:
            found.append(each)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_both_sides_know_the_same_of_every_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Random offers of kernels that win, lose, tie, fail and are wrong, faults of the device among them."""
    drawn = random.Random(seed)
    words = ("", "", "", "", "compile_error", "wrong")
    pool = [source(ns, drawn.choice(words)) for ns in (100, *range(150_000, 350_000, 20_000), 299_000, 300_000)]
    stubs = [
        Stub(n, BOTH, lambda _: Candidate(sources=tuple(drawn.sample(pool, drawn.randint(1, 5)))))
        for n in ("module", "cuda")
    ]
    ours: list[frozenset[str]] = []
    theirs: list[frozenset[str]] = []
    folded = State.tried

    def engine(policy: Policy, state: CellState) -> dict[str, str]:
        found = tried(policy, state)
        ours.append(frozenset(found))
        return found

    def verifier(state: State) -> frozenset[str]:
        theirs.append(folded(state))
        return theirs[-1]

    monkeypatch.setattr(loop, "tried", engine)
    monkeypatch.setattr(State, "tried", verifier)
    faults = {("gate", drawn.randint(2, 8)): "worker_lost", ("compare", drawn.randint(3, 9)): "timeout"}
    path = tmp_path / "ledger.db"
    play(path, FakeExecutor(kernels, faults), asked_for(*chained(monkeypatch, *stubs), rounds=14))
    assert verify(path, True).findings == ()
    assert _changes(theirs) == _changes(ours) and len(_changes(ours)) > 3
