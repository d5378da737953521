"""`run --objective`: one loop, one pool of made-up kernels, another winner by latency than by energy or heat; and who refuses such a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from gpusolver.__main__ import main
from gpusolver.engine import cli
from gpusolver.engine.recorded import RecordedExecutor
from gpusolver.engine.registration import POLICY, STATISTICS
from gpusolver.engine.run import Run
from gpusolver.events.errors import BadInput
from gpusolver.events.model import HeadToHead, NoiseFloorMeasured, Objective, RoundJudged, RunRegistered
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter
from gpusolver.replay.verify import verify

from .metered import ENERGY, THERMAL, MeteredExecutor, frugal_story, watts
from .support import TF32_LINE, Kernel, assert_verifies, cell_events, ignore, only, play, request, stored, verdicts

BY = {"latency": UNSET, "energy": ENERGY, "thermal": THERMAL}


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same request by each objective; not to be altered."""
    folder = tmp_path_factory.mktemp("objectives")
    for name, objective in BY.items():
        play(folder / f"{name}.db", MeteredExecutor(), replace(request("off", "on", rounds=9), objective=objective))
    return {name: folder / f"{name}.db" for name in BY}


def winner(path: Path, arm: str = "on") -> str:
    """The source of the arm's last incumbent."""
    last = only(cell_events(path, arm), RoundJudged)[-1].next_incumbent
    with LedgerReader(path) as reader:
        return reader.artifact(last).decode()


def registered(path: Path) -> RunRegistered:
    return only((r.event for r in stored(path)), RunRegistered)[0]


def test_latency_and_energy_pick_different_kernels(ledgers: dict[str, Path]) -> None:
    """By time the tiles in TF32 (55 us) win; by energy the scalar kernel in TF32 does: 40 mJ a call in 330 us beside 60 mJ in 300."""
    fast, frugal = winner(ledgers["latency"]), winner(ledgers["energy"])
    assert "tl.dot(" in fast and TF32_LINE in fast.split("\n")
    assert "tl.dot(" not in frugal and TF32_LINE in frugal.split("\n")


def test_what_each_verdict_was(ledgers: dict[str, Path]) -> None:
    beyond = "interval beyond margin"
    by_latency, by_energy = (verdicts(cell_events(ledgers[by], "on")) for by in ("latency", "energy"))
    assert by_latency[0] == ("fp32_no_tensorcore", "SLOWER", beyond)  # 330 us against 300
    assert by_energy[0] == ("fp32_no_tensorcore", "FASTER", beyond)  # 39.6 mJ against 60
    assert ("uncoalesced", "FASTER", beyond) in by_latency  # 82 us
    assert ("uncoalesced", "SLOWER", beyond) in by_energy  # 74 mJ


@pytest.mark.parametrize("by", BY)
def test_a_stranger_derives_the_same(ledgers: dict[str, Path], by: str) -> None:
    assert_verifies(ledgers[by])


def test_the_interval_is_one_of_energies(ledgers: dict[str, Path]) -> None:
    """60,000 mJ over 39,600 mJ, each for a thousand calls, is 1.515; a thousandth of noise either way. Of times it would be 0.91."""
    won = next(e for e in only(cell_events(ledgers["energy"], "on"), RoundJudged) if e.verdict == "FASTER")
    assert won.interval is not None
    assert won.interval.median == pytest.approx(60_000 / 39_600, rel=2e-3)
    floors = only(cell_events(ledgers["energy"], "on"), NoiseFloorMeasured)
    assert all(floor.floor < 2e-3 for floor in floors)
    ends = [e for e in only((r.event for r in stored(ledgers["energy"])), HeadToHead) if e.comparison == "total"]
    assert [e.interval.median for e in ends if e.interval] == [pytest.approx(60_000 / 39_600, rel=2e-3)]


def test_heat_at_one_rate(ledgers: dict[str, Path]) -> None:
    """500 us a period, far under the time constant of 2 s, so a rise is 0.05 K/W times the mean power: scalar 200 W for 300 of 500 us
    beside 75 W is 150 W, in TF32 120 W for 330 of 500 is 104.7 W: 1.43. Tiles 900 W for 82 of 500 us: 210 W, which is worse.
    """
    rounds = only(cell_events(ledgers["thermal"], "on"), RoundJudged)
    won = next(e for e in rounds if e.verdict == "FASTER")
    assert won.rule == "fp32_no_tensorcore" and won.interval is not None
    assert won.interval.median == pytest.approx(150.0 / 104.7, rel=3e-3)
    assert ("uncoalesced", "SLOWER") in {(e.rule, e.verdict) for e in rounds}


def test_what_is_registered(ledgers: dict[str, Path]) -> None:
    """Without an objective what ever was; with one fewer blocks, no worth (it is time for time), and no claims (they are speeds)."""
    plain, frugal = registered(ledgers["latency"]), registered(ledgers["energy"])
    assert (plain.statistics, plain.policy) == (STATISTICS, POLICY)
    assert b'"objective"' not in (r := _payload(ledgers["latency"])) and b'"claims":[{' in r
    assert frugal.statistics == replace(STATISTICS, blocks=20, looks=(10, 20), objective=ENERGY)
    assert (frugal.policy, frugal.claims) == (replace(POLICY, order=UNSET), ())


def _payload(path: Path) -> bytes:
    with LedgerReader(path) as reader:
        return next(row.payload for row in reader.rows() if row.type == "RunRegistered")


def test_a_slower_kernel_within_the_bound_only(tmp_path: Path) -> None:
    """330 us are 1.1 times the start's 300: over a bound of 1.05 the frugal kernel does not win."""
    path = tmp_path / "tight.db"
    play(path, MeteredExecutor(), replace(request("on", rounds=9), objective=replace(ENERGY, bound=1.05)))
    seen = verdicts(cell_events(path, "on"))
    assert ("fp32_no_tensorcore", "AMBIGUOUS", "over the latency bound") in seen
    assert "FASTER" not in {verdict for _, verdict, _ in seen}
    assert_verifies(path)


@pytest.mark.parametrize(("ns", "won"), [(344_000, True), (346_500, False)])
def test_frugal_kernels_do_not_drift_away_from_the_fastest(tmp_path: Path, ns: int, won: bool) -> None:
    """Bound 1.15: 330 us after 300 us win, and then tiles of 346.5 us, which is 1.05 times 330 but 1.155 times 300, do not."""

    def slow_tiles(text: str) -> Kernel:
        return replace(frugal_story(text), ns=ns) if "tl.dot(" in text else frugal_story(text)

    path = tmp_path / "drift.db"
    executor = MeteredExecutor(slow_tiles, lambda text: 50 if "tl.dot(" in text else watts(text))
    play(path, executor, replace(request("on", rounds=9), objective=replace(ENERGY, bound=1.15)))
    seen = verdicts(cell_events(path, "on"))
    assert seen[0] == ("fp32_no_tensorcore", "FASTER", "interval beyond margin")
    due = ("FASTER", "interval beyond margin") if won else ("AMBIGUOUS", "over the latency bound")
    assert ("uncoalesced", *due) in seen
    assert_verifies(path)


def test_a_kernel_that_cannot_keep_up_with_the_rate(tmp_path: Path) -> None:
    """3,200 calls a second leave 312.5 us: 330 us are too long, however cool."""
    assert not isinstance(THERMAL.heat, UnsetType)
    path = tmp_path / "rate.db"
    hurried = replace(THERMAL, heat=replace(THERMAL.heat, calls_per_s=3200.0))
    play(path, MeteredExecutor(), replace(request("on", rounds=9), objective=hurried))
    assert ("fp32_no_tensorcore", "AMBIGUOUS", "too slow for the call rate") in verdicts(cell_events(path, "on"))
    assert_verifies(path)


def test_a_meter_that_gives_nothing_decides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "dark.db"
    executor = MeteredExecutor(without=lambda text: "tl.dot(" in text)
    play(path, executor, replace(request("on", rounds=9), objective=ENERGY))
    assert ("uncoalesced", "AMBIGUOUS", "no energies") in verdicts(cell_events(path, "on"))
    assert_verifies(path)


def test_arms_may_share_energies(tmp_path: Path) -> None:
    path, executor = tmp_path / "shared.db", MeteredExecutor()
    play(path, executor, replace(request("off", "on", rounds=6), objective=ENERGY, share=True))
    assert any(getattr(e, "origin_seq", None) for e in cell_events(path, "on"))
    assert_verifies(path)


def test_a_recording_answers_by_its_own_objective(ledgers: dict[str, Path], tmp_path: Path) -> None:
    again = tmp_path / "again.db"
    executor = RecordedExecutor(ledgers["energy"])
    try:
        with pytest.raises(BadInput, match="--objective: expected that of the recording"):
            _play_recorded(tmp_path / "other.db", executor, THERMAL)
        _play_recorded(again, executor, ENERGY)
    finally:
        executor.close()
    assert winner(again) == winner(ledgers["energy"])
    assert not verify(again, True, origin=ledgers["energy"]).findings


def test_from_the_words_to_the_verifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`run --objective energy`, then `replay --verify`: both say what was decided by."""
    monkeypatch.setattr(cli, "open_executor", lambda *_: MeteredExecutor())
    monkeypatch.chdir(tmp_path)
    runner = CliRunner(env={"COLUMNS": "400"})
    words = ["--problems", "kb_matmul_scalar", "--rounds", "4", "--objective", "energy", "--latency-bound", "1.5"]
    played = runner.invoke(main, ["run", *words, "--ledger", "frugal.db"])
    assert played.exit_code == 0, played.output
    assert "verdicts by energy" in played.output and "in at most 1.5 times the time" in played.output
    assert registered(tmp_path / "frugal.db").statistics.objective == Objective(by="energy", bound=1.5)
    replayed = runner.invoke(main, ["replay", "frugal.db", "--verify"])
    assert replayed.exit_code == 0, replayed.output
    assert "findings: none" in replayed.output and "run1: verdicts by energy" in replayed.output


def _play_recorded(path: Path, executor: RecordedExecutor, objective: Objective) -> None:
    with LedgerWriter(path) as ledger:
        Run(ledger, executor, ignore).start(replace(request("off", "on", rounds=9), objective=objective))
