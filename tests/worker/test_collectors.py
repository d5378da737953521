"""What every source of counters owes its reader, whatever collects them. The values are made up, no GPU is measured."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpusolver.engine.executor import Observation
from gpusolver.engine.measuring import no_counters
from gpusolver.engine.worker import ncu
from gpusolver.engine.worker.cupti_library import Cupti
from gpusolver.engine.worker.cupti_range import each_kernel, whole_call
from gpusolver.engine.worker.cupti_session import KERNEL, USER, Session, Setup
from gpusolver.engine.worker.ncu_reading import artifacts, launches
from gpusolver.profilers import artifacts as shapes

from . import fake_report
from .fake_cupti import FakeCupti
from .fake_report import Action

THERE, ZERO, MISSING, NAN = "dram__bytes_read.sum", "zero.sum", "known__to_ncu_only.sum", "l1tex__ratio.pct"
ASKED = (THERE, ZERO, MISSING, NAN)
Collect = Callable[[Path, pytest.MonkeyPatch], dict[str, Any]]


def idle() -> None:
    """Stands for a call, a flush and a wait."""


def setup(mode: Any) -> Setup:
    fake = FakeCupti()
    fake.values[b"zero.sum"] = 0.0
    return Setup(Session(cupti=Cupti(fake, "fake")), ASKED, mode)


def user_range(folder: Path, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    return whole_call(setup(USER), idle, idle, idle)


def kernel_replay(folder: Path, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    found = each_kernel(setup(KERNEL), idle, idle)
    (row,) = found.pop("kernels")
    return {**found, "metrics": row}


def ncu_csv(folder: Path, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    text = (
        f'"ID","Kernel Name","CC","{THERE}","{ZERO}","{NAN}"\n"","","","byte","","%"\n"0","k","9.0","4,096","0","nan"\n'
    )
    return dict(ncu.profile(text, 0, ASKED, "GH100").counters)


def ncu_report(folder: Path, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    patch.setitem(
        sys.modules, "ncu_report", fake_report.module((Action("k", {THERE: 4096, ZERO: 0, NAN: float("nan")}),))
    )
    path = folder / "a.ncu-rep"
    path.write_bytes(b"made up")
    found: dict[str, Any] = json.loads(artifacts(launches(path, ASKED), ASKED, "cold")["counters"])
    return found


@pytest.mark.parametrize("collect", [user_range, kernel_replay, ncu_csv, ncu_report])
def test_a_collector_names_all_that_was_asked_and_makes_nothing_up(
    collect: Collect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = shapes.decode(shapes.Counters, msgspec.json.encode(collect(tmp_path, monkeypatch)))
    assert found.metrics == {THERE: 4096, ZERO: 0, MISSING: None, NAN: None}
    assert tuple(found.metrics) == ASKED
    assert found.passes >= 1
    assert found.chip == "GH100"
    assert found.cache in ("cold", "warm")
    assert found.collector in ("cupti_user_range", "cupti_kernel_replay", "ncu")


def test_no_collector_at_all_lists_nothing_and_says_why() -> None:
    raw = no_counters(Observation(status="counters_permission", text="ERR_NVGPUCTRPERM"))
    found = shapes.decode(shapes.Counters, raw)
    assert (found.collector, found.passes, found.metrics, found.cache) == ("none", 0, {}, "unknown")
    assert json.loads(raw)["refused"] == "counters_permission" and "ERR_NVGPUCTRPERM" in json.loads(raw)["text"]
