"""The `norms` way: right at awkward sizes and scales against float64, as exact as torch's own, and used where it fits alone."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

ROOT = Path(__file__).parents[2]
LIMIT = 2e-6
"""Of the relative L2 error, a tenth of the least limit that the gate sets."""

on_both = pytest.mark.parametrize(
    "device", [pytest.param("cpu", marks=pytest.mark.torch_cpu), pytest.param("cuda", marks=pytest.mark.gpu)]
)


@functools.cache
def called(device: str) -> list[dict[str, Any]]:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"PARTS_DEVICE": device}
    if device == "cpu":
        environment["TRITON_INTERPRET"] = "1"
    command = [sys.executable, "-m", "tests.generators.norms_called"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@on_both
def test_norms_are_right_at_every_scale_and_the_same_again(device: str) -> None:
    rows = called(device)
    assert len(rows) == 29
    for row in rows:
        for name, (ours, torchs, same) in row["errors"].items():
            assert same and ours < max(LIMIT, 3 * torchs), (row["label"], name, ours, torchs)
        assert row["strided"] < LIMIT, row


@on_both
def test_what_is_no_number_comes_out_where_torch_has_it(device: str) -> None:
    assert [row["label"] for row in called(device) if not row["not_finite"]] == []


@on_both
def test_norms_are_replaced_with_the_steps_beside_them_where_they_fit(device: str) -> None:
    for row in called(device):
        if row["expected"] is None:
            assert "_norm_of" not in row["operators"], row
        else:
            assert row["operators"] == row["expected"], row
