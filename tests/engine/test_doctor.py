"""What the doctor says of made-up machines, and that no answer of a machine makes it fail."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpusolver.engine.cli_doctor import doctor_command
from gpusolver.engine.doctor import Examined, Line, examine
from gpusolver.engine.surroundings import Answer, Surroundings

MOUNTS = (
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "40 22 0:35 / /home rw shared:2 - nfs4 server:/home rw,vers=4.2\n"
    "41 40 8:2 / /home/ana/my\\040disk rw - xfs /dev/sdb1 rw\n"
)
GPU = "NVIDIA H200, 580.159.04, Enabled, Disabled, 1980, 1980, 41\n"


class MadeUp(Surroundings):
    """A machine by hand: a workstation with everything in place, but for what a test changes."""

    def __init__(self, **changes: object) -> None:
        super().__init__(Path("/work"))
        self.versions: dict[str, str | None] = {
            "click": "8.1.7", "msgspec": "0.19.0", "sqlite-utils": "4.2", "rich": "13.7.0",
            "torch": "2.11.0", "triton": "3.6.0", "nvidia-cuda-cupti": "13.0.85",
            "cryptography": "42.0.8",
        }  # fmt: skip
        self.files: dict[str, str] = {
            "/proc/self/mountinfo": MOUNTS,
            "/proc/driver/nvidia/params": "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n",
            "/proc/self/status": "Name:\tpython\nCapEff:\t000001ffffffffff\n",
        }
        self.answers: dict[str, Answer] = {
            "gpu": Answer(0, GPU),
            "reasons": Answer(0, "0x0000000000000001\n"),
            "ncu": Answer(0, "NVIDIA (R) Nsight Compute\nVersion 2025.3.0.0\n"),
            "torch": Answer(0, "torch 2.11.0 of CUDA 13.0 triton 3.6.0 GPUs 1\n"),
            "trial": Answer(0, ""),
        }
        self.version, self.database, self.free = (3, 12, 3), (3, 51, 3), 50_000_000_000
        self.tools = {"nvidia-smi": "/usr/bin/nvidia-smi", "ncu": "/usr/local/cuda/bin/ncu"}
        self.copies = ["/site/nvidia/cu13/lib/libcupti.so.13"]
        for name, value in changes.items():
            setattr(self, name, value)

    def python(self) -> tuple[int, int, int]:
        return self.version

    def sqlite(self) -> tuple[int, ...]:
        return self.database

    def package(self, name: str) -> str | None:
        return self.versions.get(name)

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def tool(self, name: str) -> str | None:
        return self.tools.get(name)

    def ask(self, command: Sequence[str], limit_s: float) -> Answer:
        asked = " ".join(command)
        key = "reasons" if "reasons" in asked else "gpu" if "nvidia-smi" in asked else "ncu"
        return self.answers[key]

    def ask_python(self, script: str, limit_s: float, *arguments: str) -> Answer:
        return self.answers["torch"]

    def trial(self) -> Answer:
        return self.answers["trial"]

    def free_bytes(self) -> int:
        return self.free

    def cupti(self) -> list[str]:
        return self.copies


def line(found: Examined, name: str) -> Line:
    return next(entry for entry in found.lines if entry.name == name)


def test_a_machine_with_everything_in_place() -> None:
    found = examine(MadeUp())
    assert {entry.state for entry in found.lines} == {"works"}
    assert (found.recorded, found.measured) == (True, True)
    assert "CAP_SYS_ADMIN" in line(found, "counters permission").found


def test_an_auditors_machine_without_a_gpu_is_fit_for_recorded_runs() -> None:
    here = MadeUp(tools={}, copies=[], files={"/proc/self/mountinfo": MOUNTS})
    here.versions |= {"torch": None, "triton": None, "nvidia-cuda-cupti": None}
    found = examine(here)
    assert (found.recorded, found.measured) == (True, False)
    absent = {entry.name for entry in found.lines if entry.state == "absent"}
    assert absent == {"GPU driver", "clocks", "counters permission", "CUPTI", "ncu", "torch and triton"}


@pytest.mark.parametrize(
    ("version", "state"),
    [
        ((3, 36, 0), "broken"),
        ((3, 37, 0), "warning"),
        ((3, 51, 2), "warning"),
        ((3, 51, 3), "works"),
        ((3, 53, 0), "works"),
    ],
)
def test_sqlite_versions(version: tuple[int, ...], state: str) -> None:
    """STRICT tables came with 3.37; the WAL-reset race is in every release up to 3.51.2."""
    found = examine(MadeUp(database=version))
    assert line(found, "SQLite").state == state
    assert found.recorded == (state != "broken")


def test_without_cryptography_nothing_is_signed_and_all_else_works() -> None:
    here = MadeUp()
    here.versions["cryptography"] = None
    found = examine(here)
    assert line(found, "signing").state == "absent" and "gpusolver[seal]" in line(found, "signing").advice
    assert (found.recorded, found.measured) == (True, True)


def test_a_network_file_system_is_named() -> None:
    here = MadeUp()
    here.folder = Path("/home/ana")
    found = line(examine(here), "file system")
    assert found.state == "warning" and "nfs4" in found.found and "local disk" in found.advice


def test_a_file_system_that_is_in_doubt_is_named() -> None:
    here = MadeUp()
    here.files["/proc/self/mountinfo"] = "22 1 0:9 / / rw - 9p none rw\n"
    found = examine(here)
    assert line(found, "file system").state == "warning" and "9p" in line(found, "file system").found
    assert found.recorded


def test_where_no_ledger_can_be_written_recorded_runs_do_not_work() -> None:
    here = MadeUp()
    here.answers["trial"] = Answer(1, "Traceback\nOSError: [Errno 30] Read-only file system\n")
    found = examine(here)
    assert not found.recorded and not found.measured
    assert "Read-only file system" in line(found, "ledger and locks").found


def test_an_old_python_a_missing_package_and_a_full_disk_each_break_it() -> None:
    old, lacking, full = MadeUp(version=(3, 10, 12)), MadeUp(), MadeUp(free=1_000_000)
    lacking.versions["sqlite-utils"] = "3.39"
    for here, name in ((old, "Python"), (lacking, "packages"), (full, "free disk")):
        found = examine(here)
        assert line(found, name).state == "broken" and not found.recorded
    assert line(examine(lacking), "packages").advice == "pip install 'sqlite-utils>=4.2'"


def test_counters_for_administrators_only() -> None:
    here = MadeUp()
    here.files["/proc/self/status"] = "CapEff:\t0000000000000000\n"
    found = examine(here)
    assert line(found, "counters permission").state == "broken" and found.measured
    here.files["/proc/driver/nvidia/params"] = "RmProfilingAdminOnly: 0\n"
    assert line(examine(here), "counters permission").state == "works"


def test_an_old_driver_and_slowed_clocks() -> None:
    here = MadeUp()
    here.answers["gpu"] = Answer(0, GPU.replace("580.159.04", "535.104.05").replace(", 1980, 1980", ", 1155, 1980"))
    here.answers["reasons"] = Answer(0, "0x0000000000000024\n")  # a power cap and heat
    found = examine(here)
    assert line(found, "GPU driver").state == "warning" and "580" in line(found, "GPU driver").advice
    assert line(found, "clocks").found.startswith("SM 1155 of 1980 MHz, 41 C")
    assert "slowed by power cap, thermal" in line(found, "clocks").found


@pytest.mark.parametrize(
    "answer", [Answer(None, "no answer within 120 s"), Answer(-11, ""), Answer(1, "ImportError: libc10\n")]
)
def test_a_torch_that_hangs_or_dies_is_told(answer: Answer) -> None:
    here = MadeUp()
    here.answers["torch"] = answer
    found = examine(here)
    assert line(found, "torch and triton").state == "broken" and found.recorded and not found.measured


class Hostile(MadeUp):
    """A machine on which no question can be asked."""

    def __getattribute__(self, name: str) -> object:
        if not name.startswith("_"):
            raise RuntimeError("no")
        return super().__getattribute__(name)


def test_a_machine_that_answers_nothing_gives_lines_all_the_same() -> None:
    hostile = Hostile.__new__(Hostile)
    found = examine(hostile)
    assert {entry.state for entry in found.lines} == {"unknown"} and len(found.lines) == 13


def test_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial is a real one, and leaves nothing behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Surroundings, "package", lambda self, name: None if name == "torch" else MadeUp().package(name))
    shown = CliRunner().invoke(doctor_command, ["--json"], catch_exceptions=False)
    found = json.loads(shown.output)
    states = {entry["name"]: entry["state"] for entry in found["lines"]}
    assert shown.exit_code == 0 and found["recorded"] is True
    assert states["ledger and locks"] == "works" and states["torch and triton"] == "absent"
    assert list(tmp_path.iterdir()) == []
    words = CliRunner().invoke(doctor_command, [], catch_exceptions=False).output
    assert "recorded runs and verification: work here" in words


def test_a_tool_that_does_not_end_is_given_up() -> None:
    found = Surroundings(Path("/")).ask_python("import time; time.sleep(60)", 0.3)
    assert found == Answer(None, "no answer within 0.3 s")
    assert Surroundings(Path("/")).ask(["/nowhere/at/all"], 1).status == 127
