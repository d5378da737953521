"""One measuring process a device: the lock that all of them take."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpusolver.engine.local import _device_lock
from gpusolver.events.errors import ToolFailed

HOLD = (
    "import sys, time\nfrom gpusolver.engine.local import _device_lock\n"
    "_device_lock('GPU-1')\nprint('held', flush=True)\ntime.sleep(600)\n"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def test_b143_a_second_process_on_a_device_is_refused_until_the_first_is_gone() -> None:
    """kill -9 of the first frees the device: the system holds the lock, the file is only its name."""
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None and first.stdout.readline() == "held\n"
        with pytest.raises(ToolFailed, match="GPU-1: expected to measure alone, found another gpusolver"):
            _device_lock("GPU-1")
        os.close(_device_lock("GPU-2"))
        first.kill()
        first.wait()
    os.close(_device_lock("GPU-1"))


def test_another_users_lock_file_says_what_to_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError

    os.close(_device_lock("GPU-3"))  # the temporary folder is chosen by now
    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(ToolFailed, match="Remove it, or set TMPDIR"):
        _device_lock("GPU-3")
