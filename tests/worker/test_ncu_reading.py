"""Reports as artifacts: made-up ones by a stand-in for NVIDIA's reader, and broken files by the reader itself where it is installed."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

from gpusolver.engine.worker import ncu_reading
from gpusolver.engine.worker.ncu_reading import read_report
from gpusolver.events.errors import BadInput, ToolFailed

from . import fake_report
from .fake_report import Action

BYTES, TIME, HIT = "dram__bytes_read.sum", "gpu__time_duration.sum", "lts__t_sector_hit_rate.pct"
ASKED = (BYTES, HIT, "absent.sum")


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "some.ncu-rep"
    path.write_bytes(b"made up")
    return path


def holds(patch: pytest.MonkeyPatch, *ranges: tuple[Action, ...]) -> None:
    patch.setitem(sys.modules, "ncu_report", fake_report.module(*ranges))


def test_counts_add_up_over_kernels_and_percentages_are_weighed_by_time(
    report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Action("exp", {BYTES: 1000, TIME: 30.0, HIT: 50.0})
    second = Action("add", {BYTES: 24, TIME: 10.0, HIT: 90.0, "profiler__replayer_passes": 40})
    holds(monkeypatch, (first,), (second,))
    counters = json.loads(read_report(report, ASKED)["counters"])
    assert counters == {
        "collector": "ncu",
        "passes": 40,
        "chip": "GH100",
        "cache": "unknown",
        "metrics": {BYTES: 1024.0, HIT: (30 * 50 + 10 * 90) / 40, "absent.sum": None},
        "kernels": ["exp", "add"],
    }


@pytest.mark.parametrize("content", [None, math.nan, math.inf, "n/a"])
def test_what_is_no_number_is_none_and_makes_the_sum_unknown(
    report: Path, monkeypatch: pytest.MonkeyPatch, content: object
) -> None:
    holds(monkeypatch, (Action("exp", {BYTES: 1000, TIME: 1.0}), Action("add", {BYTES: content, TIME: 1.0})))
    assert json.loads(read_report(report, ASKED)["counters"])["metrics"][BYTES] is None


def test_zero_is_zero(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holds(monkeypatch, (Action("exp", {BYTES: 0, TIME: 1.0}),))
    assert json.loads(read_report(report, ASKED)["counters"])["metrics"][BYTES] == 0.0


def test_ncus_own_rules_keep_their_words_and_estimates(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holds(monkeypatch, (Action("exp", {}),))
    (kernel,) = json.loads(read_report(report, ASKED)["ncu_rules"])["kernels"]
    assert kernel["kernel"] == "exp"
    assert kernel["rules"][0] == {
        "id": "SOLBottleneck",
        "name": "Bottleneck",
        "section": "SpeedOfLight",
        "type": "OPTIMIZATION",
        "title": "Latency Issue",
        "message": "made up",
        "speedup_type": "GLOBAL",
        "speedup": 12.5,
    }
    assert kernel["rules"][1]["speedup"] is None and kernel["rules"][1]["type"] is None


def test_a_chip_that_is_not_known_has_no_name(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holds(monkeypatch, (Action("exp", {"device__attribute_compute_capability_major": None}),))
    assert json.loads(read_report(report, ASKED)["counters"])["chip"] == ""


def test_a_report_without_kernels_is_refused(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holds(monkeypatch)
    with pytest.raises(BadInput, match=r"with profiled kernels, found none.*ncu --set full"):
        read_report(report, ASKED)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="found no such file"):
        read_report(tmp_path / "none.ncu-rep", ASKED)


def test_without_a_reader_the_words_say_what_to_install(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolFailed, match="Install ncu-report"):
        read_report(report, ASKED)


@pytest.mark.parametrize("layout", ["tool/extras/python", "nsight-compute-2025.3.1/extras/python"])
def test_the_reader_that_ncu_brings_along_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    """Beside the tool's real path, and beside the toolkit's wrapper of the same name."""
    folder = tmp_path / layout
    folder.mkdir(parents=True)
    (folder / "ncu_report.py").write_text("FOUND = True\n")
    binary = tmp_path / "tool" / "target" / "ncu"
    binary.parent.mkdir(parents=True, exist_ok=True)
    binary.touch(mode=0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ncu").symlink_to(binary)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if not Path(entry, "ncu_report").exists()])
    monkeypatch.delitem(sys.modules, "ncu_report", raising=False)
    found = ncu_reading.reader()
    del sys.modules["ncu_report"]
    assert found.FOUND and found.__file__ == str(folder / "ncu_report.py")


@pytest.mark.torch_cpu
def test_nvidias_reader_meets_a_file_that_is_no_report(tmp_path: Path) -> None:
    pytest.importorskip("ncu_report")
    path = tmp_path / "garbage.ncu-rep"
    for content in (b"", b"garbage" * 1000):
        path.write_bytes(content)
        with pytest.raises(BadInput, match=r"garbage\.ncu-rep: expected an Nsight Compute report"):
            read_report(path, ASKED)
