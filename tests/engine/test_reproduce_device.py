"""A reproduction with real workers: on the CPU stand-in, which is another chip, and on a GPU. First ledgers are recorded or made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusolver.engine.devices import default_recording
from gpusolver.engine.examination import Examination
from gpusolver.engine.finals import baseline_source
from gpusolver.engine.local import LocalExecutor
from gpusolver.engine.registration import RunRequest, register
from gpusolver.engine.reproduce import reproduction
from gpusolver.events.artifacts import digest
from gpusolver.events.model import DeviceCalibrated, Event, HeadToHead, Interval
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter
from gpusolver.problems.contract import load
from gpusolver.profilers.chips import chip_for
from gpusolver.projections.examination import ExaminationView
from gpusolver.replay.verify import verify

from .support import FakeExecutor, ignore


def stating(path: Path) -> Path:
    """A ledger that states one comparison: PyTorch's own reduction against itself with a comment, as slow as before (made up)."""
    problem = load("kb_reduce")
    eager = baseline_source(problem, "eager_fp32")
    sources = [text.encode() for text in (eager, f"{eager}\n# the same again\n")]
    registered = register("run1", RunRequest(problems=("kb_reduce",)), FakeExecutor())
    chip = chip_for("NVIDIA H200", "9.0")
    device = DeviceCalibrated(run="run1", device="made up", chip=chip, copy_gbps=4000.0, calibration=digest(b"{}"))
    compared = HeadToHead(
        run="run1", problem="kb_reduce", contract="tf32-allowed", pool="flags", repetition=1, comparison="endpoint",
        left=digest(sources[0]), right=digest(sources[1]), samples=digest(b"[]"), outcome="measured",
        interval=Interval(lower=0.999, median=1.0, upper=1.001, blocks=40, rank=12),
    )  # fmt: skip
    events: list[Event] = [registered, device, compared]
    kept = [(text, "text/x-python") for text in sources] + [(b"{}", "application/json"), (b"[]", "application/json")]
    with LedgerWriter(path) as ledger:
        ledger.append("run1", 0, events, kept)
    return path


def reproduced(first: Path, path: Path, device: str, **asked: object) -> ExaminationView:
    executor = LocalExecutor(device)
    try:
        with LedgerReader(first) as reader, LedgerWriter(path) as ledger:
            return Examination(ledger, executor, reproduction(reader, 7, **asked), ignore).play()  # type: ignore[arg-type]
    finally:
        executor.close()


@pytest.mark.torch_cpu
def test_the_stand_in_is_another_chip(tmp_path: Path) -> None:
    path = tmp_path / "again.db"
    view = reproduced(stating(tmp_path / "first.db"), path, "cpu", times=2)
    (found,) = view.reproduced
    assert (found.answer, len(found.medians), found.unmeasured) == ("other chip", 2, ())
    assert all(
        0.3 < median < 3 for median in found.medians
    )  # one function against itself, whatever else the machine does
    report = verify(path, True)
    assert not report.findings and any("it measures no GPU" in note for note in report.notes)


@pytest.mark.gpu
def test_the_recorded_claims_on_a_gpu(tmp_path: Path) -> None:
    """On an H200 every claim of the recording is confirmed; on another card each is answered with its ratio."""
    path = tmp_path / "again.db"
    view = reproduced(default_recording(), path, "cuda", kinds=("claim",), times=1)
    assert view.calibration is not None and view.reproduced
    wanted = "confirmed" if view.calibration.chip.name == "H200" else "other chip"
    assert {found.answer for found in view.reproduced} == {wanted}
    assert not verify(path, True, origin=default_recording()).findings
