"""`gpusolver export`: the winner byte for byte, with its provenance above it, in a file that needs no gpusolver."""

from __future__ import annotations

import ast
import hashlib
import io
import os
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from gpusolver.__main__ import main
from gpusolver.engine.devices import default_recording
from gpusolver.engine.export import Wanted, exported, find
from gpusolver.engine.registration import RunRequest
from gpusolver.events.model import RoundJudged
from gpusolver.events.reader import LedgerReader
from gpusolver.projections.runs import fold

from .support import FakeExecutor, play

SCALAR = "kb_matmul_scalar"
# On the CPU by Triton's interpreter, in a process in which gpusolver cannot be imported.
_ALONE = """
import sys
sys.modules["gpusolver"] = None
import torch
a, b = (torch.randn(shape, generator=torch.Generator().manual_seed(7)) for shape in ((48, 40), (40, 64)))
import importlib.util
spec = importlib.util.spec_from_file_location("exported", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules["exported"] = module
spec.loader.exec_module(module)
expected = a.double() @ b.double()
print(float((module.run(a, b).double() - expected).norm() / expected.norm()))
"""


def invoke(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["export", *map(str, words)], terminal_width=400)


def body(text: str) -> str:
    """What follows the comments at the top."""
    lines = text.splitlines(keepends=True)
    return "".join(lines[next(i for i, line in enumerate(lines) if not line.startswith("#")) :])


def test_the_winner_byte_for_byte_with_its_provenance(tmp_path: Path) -> None:
    output = tmp_path / "kernel.py"
    done = invoke(default_recording(), SCALAR, "--contract", "tf32-allowed", "--run", "run1", "-o", output)
    assert done.exit_code == 0, done.output
    text = output.read_text()
    with LedgerReader(default_recording()) as reader:
        judged = [
            stored.event
            for stored in reader.recorded(f"run1/{SCALAR}/tf32-allowed/flags/on/1")
            if isinstance(stored.event, RoundJudged) and stored.event.verdict == "FASTER"
        ][-1]
        head = reader.head()[1]
    assert hashlib.sha256(body(text).encode()).hexdigest() == judged.candidate
    assert f"sha256 {judged.candidate}" in text
    assert f"head {head}" in text
    assert f"round {judged.round}, rule {judged.rule}" in text
    assert re.search(r"27\.\d+x over the starting kernel", text)
    assert re.search(r"\d\.\d+x over PyTorch eager in fp32", text)


def test_an_arm_that_found_nothing_gives_the_start_and_says_so(tmp_path: Path) -> None:
    output = tmp_path / "kernel.py"
    done = invoke(
        default_recording(), SCALAR, "--arm", "off", "--run", "run1", "-o", output, "--contract", "tf32-allowed"
    )
    assert done.exit_code == 0, done.output
    assert "verdict     none: this is the starting kernel" in output.read_text()
    assert "over PyTorch" not in output.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing",), "expected a cell of nothing, arm on, repetition 1, found none. The ledger has: "),
        ((SCALAR, "--run", "run2", "--contract", "bf16-allowed"), "contract bf16-allowed, run run2, found none"),
        ((SCALAR, "--arm", "best"), "arm best"),
    ],
)
def test_what_is_not_there_is_refused_and_writes_nothing(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = invoke(default_recording(), *words, "-o", tmp_path / "kernel.py")
    assert done.exit_code == 1
    assert said in done.output
    assert not (tmp_path / "kernel.py").exists()


def test_two_contracts_ask_for_one(tmp_path: Path) -> None:
    asked = RunRequest(problems=(SCALAR,), arms=("on",), contracts=("tf32-allowed", "fp32-strict"), rounds=2)
    play(tmp_path / "l.db", FakeExecutor(), asked)
    done = invoke(tmp_path / "l.db", SCALAR, "-o", tmp_path / "kernel.py")
    assert done.exit_code == 1
    assert "Choose one: --contract tf32-allowed --pool flags; --contract fp32-strict --pool flags" in done.output


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    output = tmp_path / "kernel.py"
    output.write_text("mine")
    done = invoke(default_recording(), SCALAR, "--contract", "tf32-allowed", "-o", output)
    assert done.exit_code == 1
    assert output.read_text() == "mine"
    assert invoke(default_recording(), SCALAR, "--contract", "tf32-allowed", "-o", output, "--force").exit_code == 0
    assert output.read_text() != "mine"


@pytest.mark.parametrize("ending", ["\n", "\r", "\r\n", "\u2028", "\x0c"])
def test_words_of_the_ledger_stay_in_the_comments(monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """A device, a version, a size or a rule with a line break in it is no code, and names no encoding."""
    evil = f"x coding: utf-7{ending}raise SystemExit(3)"
    with LedgerReader(default_recording()) as reader:
        wanted = Wanted(problem=SCALAR, contract="tf32-allowed", run="run1")
        found = find(fold((stored.stream, stored.event) for stored in reader.recorded()), wanted)
        assert found.won is not None and found.view.calibration is not None and found.view.registration is not None
        view = replace(
            found.view, calibration=replace(found.view.calibration, device=evil),
            registration=replace(found.view.registration, environment={"torch": evil}),
        )  # fmt: skip
        forged = replace(found, view=view, won=replace(found.won, rule=evil))
        monkeypatch.setattr("gpusolver.engine.export.find", lambda views, wanted: forged)
        text, source = exported(reader, evil, wanted), reader.artifact(found.source).decode()
    assert text.endswith(source)
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(source))
    assert tokenize.detect_encoding(io.BytesIO(text.encode()).readline)[0] == "utf-8"
    assert text.count("raise SystemExit(3)") >= 4


@pytest.mark.torch_cpu
@pytest.mark.parametrize("contract", ["tf32-allowed", "fp32-strict"])
def test_the_file_runs_where_gpusolver_cannot_be_imported(tmp_path: Path, contract: str) -> None:
    output = tmp_path / "kernel.py"
    assert invoke(default_recording(), SCALAR, "--contract", contract, "-o", output).exit_code == 0
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"TRITON_INTERPRET": "1"}
    command = [sys.executable, "-c", _ALONE, str(output)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout) < 2e-5  # the interpreter multiplies in fp32, whatever the precision line says
