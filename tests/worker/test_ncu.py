"""The ncu fallback: command line, refusals, and a whole run of a made-up ncu on PATH. No GPU is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusolver.engine.worker import ncu
from gpusolver.engine.worker.cupti_library import CountersUnavailable

BYTES, TIME = "dram__bytes_read.sum", "gpu__time_duration.sum"
MADE_UP_CSV = f"""\
"ID","Kernel Name","CC","{BYTES}","{TIME}"
"","","","byte","ns"
"0","k","9.0","1,024","30"
"1","k","9.0","32","10"
"""
FAKE = """#!/bin/sh
log="${1#--log-file=}"
printf '%s\\n' "$@" > "$RECORD"
printf '%s\\n' "$LC_ALL" "$TMPDIR" >> "$RECORD"
echo 'the program prints "0",1'
cat "$ANSWER" > "$log"
[ -z "$NAP" ] || sleep "$NAP"
exit "$CODE"
"""


def test_command_line() -> None:
    assert ncu.arguments(["python", "w.py"], [BYTES, TIME]) == [
        "ncu",
        "--target-processes=all",
        "--profile-from-start=off",
        "--replay-mode=kernel",
        "--cache-control=all",
        "--clock-control=none",
        "--csv",
        "--page=raw",
        "--print-units=base",
        "--metrics",
        f"{BYTES},{TIME}",
        "python",
        "w.py",
    ]


@pytest.mark.parametrize(
    ("text", "code", "reason", "message"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - no permission", 1, "permission", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("==WARNING== No kernels were profiled.", 0, "failed", "cudaProfilerStart"),
        ("==ERROR== Failed to find metric regex:^x", 1, "unsupported", "does not know a metric"),
        (
            "==ERROR== The driver is not compatible.",
            11,
            "failed",
            "ended with 11: ==ERROR== The driver is not compatible",
        ),
    ],
)
def test_b52_b54_b56_refusals(text: str, code: int, reason: str, message: str) -> None:
    with pytest.raises(CountersUnavailable, match=message) as caught:
        ncu.profile(text, code, [BYTES], "GH100")
    assert caught.value.reason == reason


class Fake:
    """A made-up ncu on PATH that logs `text` and ends with `code`."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.record, self._answer, self._patch = folder / "record", folder / "answer", patch
        (folder / "ncu").write_text(FAKE)
        (folder / "ncu").chmod(0o755)
        patch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        patch.setenv("RECORD", str(self.record))
        patch.setenv("ANSWER", str(self._answer))
        patch.setattr(ncu, "supported", lambda chip, metrics: [name for name in metrics if name != "unknown.sum"])
        self.says("")

    def says(self, text: str, code: int = 0, nap: str = "") -> None:
        self._answer.write_text(text)
        self._patch.setenv("CODE", str(code))
        self._patch.setenv("NAP", nap)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    return Fake(tmp_path, monkeypatch)


def test_counters_are_summed_over_kernels_and_missing_is_none(fake: Fake) -> None:
    fake.says(MADE_UP_CSV)
    found = ncu.collect(["program"], [BYTES, "unknown.sum"], "GH100", timeout_s=20)
    assert found.counters == {
        "collector": "ncu",
        "passes": 1,
        "chip": "GH100",
        "cache": "cold",
        "metrics": {BYTES: 1056.0, "unknown.sum": None},
    }
    assert found.kernels == 2
    assert found.text.startswith('the program prints "0",1\n') and found.text.endswith(MADE_UP_CSV)


def test_locale_own_folder_and_known_metrics_reach_ncu(fake: Fake) -> None:
    fake.says(MADE_UP_CSV)
    ncu.collect(["program"], [BYTES, "unknown.sum"], "GH100", timeout_s=20)
    *argv, locale, folder = fake.record.read_text().splitlines()
    asked = argv[argv.index("--metrics") + 1].split(",")
    assert asked[:2] == [BYTES, TIME] and "unknown.sum" not in asked
    assert locale == "C" and "gpusolver-ncu-" in folder and not Path(folder).exists()


def test_a_run_that_hangs_is_ended(fake: Fake) -> None:
    fake.says(MADE_UP_CSV, nap="30")
    with pytest.raises(CountersUnavailable, match=r"did not end within 0\.5 s"):
        ncu.collect(["program"], [BYTES], "GH100", timeout_s=0.5)


def test_without_ncu_the_message_says_what_to_install(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(CountersUnavailable, match="install Nsight Compute") as caught:
        ncu.collect(["program"], [BYTES], "GH100", timeout_s=1)
    assert caught.value.reason == "library"
