"""One ncu run over several calls: command line, grouping by range, and statuses, by a made-up ncu and reader. No GPU is measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import pytest

from gpusolver.engine.worker import ncu_batch
from gpusolver.engine.worker.protocol import Count, Reply, Subject

from . import fake_report
from .fake_report import Action

BYTES, TIME = "dram__bytes_read.sum", "gpu__time_duration.sum"
SUBJECT = Subject(reference="reference.py", shape={"n": 4}, seed=1)
FAKE = """#!/bin/sh
printf '%s\\n' "$@" > "$RECORD"
for word in "$@"; do case "$word" in --export=*) [ -n "$EMPTY" ] || echo made up > "${word#--export=}";; esac; done
for word in "$@"; do last="$word"; done
cp "$last" "$RECORD.requests"
echo "$SAYS"
exit "$CODE"
"""


class Fake:
    """A made-up ncu on PATH that says `says` and ends with `code`; with `empty` it writes no report."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.record = folder / "record"
        (folder / "ncu").write_text(FAKE)
        (folder / "ncu").chmod(0o755)
        patch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        patch.setattr(ncu_batch, "supported", lambda chip, metrics: [name for name in metrics if name != "unknown.sum"])
        self.environment = {"RECORD": str(self.record), "PATH": f"{folder}:/usr/bin:/bin", "GPU": "yes"}
        self.says("")

    def says(self, text: str, code: int = 0, empty: str = "") -> None:
        self.environment |= {"SAYS": text, "CODE": str(code), "EMPTY": empty}

    def collect(self, sources: int, *metrics: str) -> list[Reply]:
        asked = [Count(subject=SUBJECT, source=f"source {number}", metrics=()) for number in range(sources)]
        return ncu_batch.collect(asked, metrics, "GH100", 20.0, self.environment, command=("python", "program"))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    return Fake(tmp_path, monkeypatch)


def test_kernels_go_to_the_entry_in_whose_range_they_ran(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Range 10 is not taken for range 1; the entry without kernels is a status, and no other entry suffers."""
    actions = (
        Action("a", {BYTES: 1, TIME: 1.0}, ("gpusolver:0",)),
        Action("b", {BYTES: 2, TIME: 1.0}, ("outer", "gpusolver:0")),
        Action("c", {BYTES: 4, TIME: 1.0}, ("gpusolver:10",)),
        Action("d", {BYTES: 8, TIME: 1.0}, None),
    )
    monkeypatch.setitem(sys.modules, "ncu_report", fake_report.module(actions))
    fake.says("ValueError: on purpose")
    found = fake.collect(11, BYTES, "unknown.sum")
    assert [reply.status for reply in found] == ["ok", *["ncu_failed"] * 9, "ok"]
    assert "gpusolver:1" in found[1].text and "on purpose" in found[1].text
    first, last = (json.loads(found[at].artifacts["counters"]) for at in (0, 10))
    assert first["metrics"] == {BYTES: 3.0, "unknown.sum": None} and first["kernels"] == ["a", "b"]
    assert last["metrics"][BYTES] == 4.0
    assert (first["collector"], first["passes"], first["chip"], first["cache"]) == ("ncu", 38, "GH100", "cold")
    assert [k["kernel"] for k in json.loads(found[0].artifacts["ncu_rules"])["kernels"]] == ["a", "b"]


def test_one_ncu_runs_all_requests_with_every_section_and_no_metric_that_it_does_not_know(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ncu_report", fake_report.module((Action("a", {}, ("gpusolver:0",)),)))
    fake.collect(2, BYTES, "unknown.sum")
    argv = fake.record.read_text().splitlines()
    for option in ("--set=full", "--nvtx", "--import-source=no", "--profile-from-start=off", "--clock-control=none"):
        assert option in argv
    asked = argv[argv.index("--metrics") + 1].split(",")
    assert asked[0] == BYTES and TIME in asked and "unknown.sum" not in asked and len(set(asked)) == len(asked)
    assert argv[-3:-1] == ["python", "program"]
    requests = msgspec.msgpack.decode(Path(f"{fake.record}.requests").read_bytes(), type=list[Count])
    assert [request.source for request in requests] == ["source 0", "source 1"]


@pytest.mark.parametrize(
    ("text", "code", "empty", "status", "words"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM", 1, "", "ncu_permission", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("==WARNING== No kernels were profiled.", 0, "", "ncu_failed", "no kernels were profiled"),
        ("==ERROR== The driver is not compatible.", 11, "", "ncu_failed", "ended with 11"),
        ("all is well", 0, "yes", "ncu_failed", "wrote no report"),
    ],
)
def test_a_run_that_gives_nothing_is_a_status_of_every_entry(
    fake: Fake, text: str, code: int, empty: str, status: str, words: str
) -> None:
    fake.says(text, code, empty)
    found = fake.collect(2, BYTES)
    assert [reply.status for reply in found] == [status, status]
    assert all(words in reply.text and not reply.artifacts for reply in found)


def test_without_ncu_the_words_say_what_to_install(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    (found,) = fake.collect(1, BYTES)
    assert found.status == "ncu_library" and "install Nsight Compute" in found.text
