"""What an import drags along, seen in a fresh process: the import linter reads source, this looks at sys.modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gpusolver

ROOT = Path(gpusolver.__file__).parent.parent
WORLD = ("sqlite3", "_sqlite3", "subprocess", "socket", "torch", "triton", "cuda", "click", "rich", "sqlite_utils")
PURE_EVENTS = (
    "",
    ".model",
    ".base",
    ".rules",
    ".policy",
    ".registration",
    ".measurements",
    ".candidates",
    ".rounds",
    ".evolution",
    ".finals",
    ".examinations",
    ".errors",
    ".rows",
    ".codec",
    ".chain",
    ".merkle",
    ".upcast",
    ".artifacts",
    ".cells",
    ".clock",
)
DECISIONS = ("gpusolver.engine", "gpusolver.projections", "gpusolver.profilers", "gpusolver.problems")
WRITING = tuple(f"gpusolver.events.{name}" for name in ("writer", "opening", "lock", "failures", "merkle"))


def modules_of(room: str) -> list[str]:
    """Every module of a room, the package first."""
    found = [path.relative_to(ROOT / room).with_suffix("").parts for path in sorted((ROOT / room).rglob("*.py"))]
    names = [".".join(("gpusolver", room, *(parts[:-1] if parts[-1] == "__init__" else parts))) for parts in found]
    return sorted(names)


def loaded_by(module: str) -> set[str]:
    """Names in sys.modules after a fresh interpreter has imported `module`, less those it starts with."""
    script = f"import sys; before = set(sys.modules); import {module}; print('\\n'.join(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def among(loaded: set[str], forbidden: tuple[str, ...]) -> list[str]:
    return sorted(name for name in loaded if any(name == root or name.startswith(f"{root}.") for root in forbidden))


PURE = [
    *(f"gpusolver.events{name}" for name in PURE_EVENTS),
    *modules_of("projections"),
    *modules_of("profilers"),
]


@pytest.mark.parametrize("module", PURE)
def test_a_pure_module_loads_nothing_of_the_world(module: str) -> None:
    assert among(loaded_by(module), WORLD) == []


@pytest.mark.parametrize("module", modules_of("replay"))
def test_the_verifier_loads_no_decision_code_and_no_writer(module: str) -> None:
    assert among(loaded_by(module), DECISIONS + WRITING) == []


def test_reading_loads_no_writer() -> None:
    loaded = loaded_by("gpusolver.events.reader")
    assert "sqlite3" in loaded  # so this test can see what it looks for
    assert among(loaded, WRITING) == []


def test_every_module_of_events_is_either_pure_or_named_as_touching_files() -> None:
    reading = {f"gpusolver.events.{name}" for name in ("schema", "files", "reader", "journal", "mounts")}
    touching = {*reading, *WRITING}
    assert set(modules_of("events")) == {f"gpusolver.events{name}" for name in PURE_EVENTS} | touching


_COLLECT_WITHOUT = """
import sys
import pytest

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "triton", "cuda", "pynvml", "numpy", "scipy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
sys.exit(pytest.main(["--collect-only", "-q", "-q", "-p", "no:cacheprovider", "-m", "", "tests"]))
"""


def test_every_test_file_is_collected_without_torch() -> None:
    """The README's test command runs where the `gpu` extra was never installed: one import at a file's head stops it all."""
    argv = [sys.executable, "-c", _COLLECT_WITHOUT]
    shown = subprocess.run(argv, check=False, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert shown.returncode == 0, shown.stdout[-3000:] + shown.stderr[-1000:]
    assert "tests/gpu/test_preload.py" in shown.stdout
