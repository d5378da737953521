"""What a ledger states, and what comparing its kernels again says of that: both sides, which share no code, value for value."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gpusolver.engine.devices import default_recording
from gpusolver.engine.registration import STATISTICS
from gpusolver.events.model import (
    DeviceCalibrated,
    ExaminationRegistered,
    Interval,
    Origin,
    PairCompared,
    StatementDeclared,
    Verdict,
)
from gpusolver.events.reader import LedgerReader
from gpusolver.profilers.chips import chip_for
from gpusolver.projections import reproduction
from gpusolver.projections.examination import ExaminationView
from gpusolver.replay import reproduced
from gpusolver.replay.origin import First, Stated, mark

from .forge import forge
from .test_differential import RUNS

RATIO = st.floats(0.2, 5.0)
VERDICTS: tuple[Verdict, ...] = ("FASTER", "SLOWER", "SAME", "AMBIGUOUS")
CHIPS = {"H200": chip_for("NVIDIA H200", "9.0"), "B200": chip_for("NVIDIA B200", "10.0")}


def interval(median: float) -> Interval:
    return Interval(lower=median * 0.99, median=median, upper=median * 1.01, blocks=20, rank=6)


@st.composite
def reproductions(draw: st.DrawFn) -> ExaminationView:
    """Statements of all kinds over three pairs, each compared up to three times, some without an interval."""
    compared = {
        name: tuple(
            PairCompared(
                run="exam1", pair=name, number=number, samples="ab" * 32, margin=0.01, reason="",
                interval=draw(st.none() | RATIO.map(interval)), verdict=draw(st.sampled_from(VERDICTS)),
            )
            for number in range(1, draw(st.integers(0, 3)) + 1)
        )
        for name in ("a", "b", "c")
    }  # fmt: skip
    statements = tuple(draw(_statement(seq)) for seq in range(1, draw(st.integers(1, 6)) + 1))
    registered = ExaminationRegistered(
        run="exam1", seed=1, purpose="made up", subjects=(), pairs=(), statistics=STATISTICS, code={}, environment={},
        origin=Origin(head="cd" * 32, events=9), statements=statements,
    )  # fmt: skip
    device = DeviceCalibrated(
        run="exam1",
        device="made up",
        chip=CHIPS[draw(st.sampled_from(sorted(CHIPS)))],
        copy_gbps=1.0,
        calibration="ef" * 32,
    )
    pairs = {name: entries for name, entries in compared.items() if entries}
    return ExaminationView(run="exam1", registration=registered, calibration=device, pairs=pairs)


def _statement(seq: int) -> st.SearchStrategy[StatementDeclared]:
    bare = StatementDeclared(
        seq=seq, kind="round", text="", pairs=("a",), medians=(1.5,), stands="FASTER", chip="H200", identical=0,
        at_least=None, decimals=None,
    )  # fmt: skip
    one = st.builds(
        lambda kind, pair, stands: replace(bare, kind=kind, pairs=(pair,), stands=stands),
        st.sampled_from(("round", "comparison")), st.sampled_from("abc"), st.sampled_from(VERDICTS[:3]),
    )  # fmt: skip
    claim = st.builds(
        lambda pairs, stands, identical, at_least, decimals: replace(
            bare, kind="claim", pairs=tuple(pairs), stands=stands, identical=identical, at_least=at_least, decimals=decimals
        ),
        st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True), st.sampled_from(("upheld", "not upheld")),
        st.integers(0, 2), RATIO, st.integers(0, 6),
    )  # fmt: skip
    return one | claim


@settings(max_examples=400, deadline=None)
@given(reproductions())
def test_answers(view: ExaminationView) -> None:
    assert view.registration is not None and view.calibration is not None
    chip = view.calibration.chip.name
    due = [
        reproduced.answer("exam1", statement, chip, view.pairs)
        for statement in reproduced.statements_of(view.registration)
    ]
    assert list(reproduction.answers(view)) == due


def written(path: Path) -> dict[int, Stated]:
    """What the writing side makes of a ledger's statements, in the verifier's words."""
    with LedgerReader(path) as reader:
        found = reproduction.statements((row.seq, row.stream, row.event) for row in reader.recorded())
    sides = {name: (mark(p.problem), p.contract, p.left, p.right) for name, p in found.pairs.items()}
    return {
        s.seq: Stated(
            s.kind,
            s.stands,
            tuple(sides[name] for name in s.pairs),
            s.medians,
            s.chip,
            s.identical,
            s.at_least,
            s.decimals,
        )
        for s in found.stated
    }


def test_statements_of_the_recording() -> None:
    """The five claims, 66 comparisons that decide and 23 rounds that were FASTER of the H200 ledger."""
    found = First(default_recording()).statements
    assert written(default_recording()) == found
    kinds = [statement.kind for statement in found.values()]
    assert {kind: kinds.count(kind) for kind in kinds} == {"claim": 5, "comparison": 66, "round": 23}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(RUNS)
def test_statements_of_generated_runs(options: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = forge(Path(folder) / "ledger.db", **options)  # type: ignore[arg-type]
        assert written(path) == First(path).statements


@pytest.mark.parametrize(
    ("lower", "upper", "verdict"),
    [
        (1.0101, 1.2, "FASTER"),
        (1.01, 1.2, "AMBIGUOUS"),
        (0.8, 0.99, "SLOWER"),
        (0.995, 1.005, "SAME"),
        (0.9, 1.1, "AMBIGUOUS"),
    ],
)
def test_a_verdict_by_the_margin_alone(lower: float, upper: float, verdict: Verdict) -> None:
    """1.01 is not beyond a margin of 1 %; 1 / 1.01 is 0.990099, and 0.99 is beyond it."""
    assert reproduction.verdict_of(replace(interval(1.0), lower=lower, upper=upper), 0.01) == verdict
