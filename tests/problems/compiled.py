"""Child process: compiles what a source would launch for a chip that is not there; prints JSON facts. Launches nothing.

Usage: TRITON_DISABLE_LINE_INFO=1 python -m tests.problems.compiled NAME CHIP [all]
`run` gets tensors on torch's `meta` device at the problem's timing shape, and a recorder in the place of each kernel.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from gpusolver.problems.contract import Problem, load
from gpusolver.problems.sources import with_precision

from .loading import candidates, load_file, load_text

TOOLS = Path(str(triton.__file__)).parent / "backends" / "nvidia" / "bin"
OPCODE = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*(?:\.\w+)*)", re.MULTILINE)
OPTIONS = ("num_warps", "num_stages")


class Recorder:
    """Stands in for a kernel: keeps the grid and the arguments of each launch."""

    def __init__(self) -> None:
        self.launches: list[tuple[tuple[int, ...], tuple[Any, ...], dict[str, Any]]] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *args, **named: self.launches.append((grid, args, named))


def compile_launch(kernel: Any, args: tuple[Any, ...], named: dict[str, Any], chip: int) -> Any:
    """Compile as the JIT would specialise: 16-byte aligned pointers, integers by divisibility, 1 as a constant."""
    options = {name: named.pop(name) for name in OPTIONS if name in named}
    bound = {**dict(zip(kernel.arg_names, args, strict=False)), **named}
    signature, constants, attributes = {}, {}, {}
    for i, parameter in enumerate(kernel.params):
        value, kind = bound[parameter.name], "constexpr"
        if isinstance(value, torch.Tensor):
            kind = "*fp32"
        elif isinstance(value, float) and not parameter.is_constexpr:
            kind = "fp32"
        elif isinstance(value, int) and not parameter.is_constexpr and value != 1:
            kind = "i32"
        signature[parameter.name] = kind
        if kind == "constexpr":
            constants[(i,)] = value
        elif kind == "*fp32" or (kind == "i32" and value % 16 == 0):
            attributes[(i,)] = [["tt.divisibility", 16]]
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)
    return triton.compile(source, target=GPUTarget("cuda", chip, 32), options=options)


def facts(compiled: Any, grid: tuple[int, ...]) -> dict[str, Any]:
    """What the compiler says about one kernel: digest, shared bytes, registers, stack, tensor-core and memory opcodes."""
    cubin = compiled.asm["cubin"]
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        usage = tool("cuobjdump", "--dump-resource-usage", file.name)
        opcodes = OPCODE.findall(tool("nvdisasm", "-c", file.name))
    found = dict(re.findall(r"\b(REG|STACK):(\d+)", usage))
    return {
        "grid": grid,
        "digest": hashlib.sha256(cubin).hexdigest(),
        "name": compiled.metadata.name,
        "shared": compiled.metadata.shared,
        "registers": int(found["REG"]),
        "stack": int(found["STACK"]),
        "dot": "tt.dot" in compiled.asm["ttir"],
        # HFMA2.MMA, which only loads a constant, is not among these
        "tensor": sorted({op for op in opcodes if re.match(r"(HMMA|HGMMA)\b", op)}),
        "memory": sorted({op for op in opcodes if op.startswith(("LDG", "STG", "LDGSTS"))}),
    }


def tool(name: str, *arguments: str) -> str:
    path = f"{TOOLS}{os.pathsep}{os.environ['PATH']}"
    child = subprocess.run(
        [str(TOOLS / name), *arguments], env={**os.environ, "PATH": path}, text=True, capture_output=True, check=True
    )
    return child.stdout


def launched(module: ModuleType, inputs: tuple[torch.Tensor, ...], chip: int) -> list[dict[str, Any]]:
    """The facts of every kernel that `module.run` launches, in order; empty for a source without Triton."""
    kernels = {name: value for name, value in vars(module).items() if isinstance(value, triton.JITFunction)}
    recorders = {name: Recorder() for name in kernels}
    vars(module).update(recorders)
    module.run(*inputs)
    return [
        facts(compile_launch(kernels[name], args, dict(named), chip), grid)
        for name, recorder in recorders.items()
        for grid, args, named in recorder.launches
    ]


def examine(problem: Problem, folder: Path, chip: int, every_config: bool) -> dict[str, Any]:
    reference = load_file(Path(problem.reference))
    inputs = reference.inputs(problem.shape, None, "meta")
    found: dict[str, Any] = {}
    for label, text in candidates(problem, every_config).items():
        for precision in ("ieee", "tf32"):
            module = load_text(folder, f"{label}_{precision}", with_precision(text, precision))
            found.setdefault(label, {})[precision] = launched(module, inputs, chip)
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        os.environ["TRITON_CACHE_DIR"] = f"{name}/cache"
        print(json.dumps(examine(load(sys.argv[1]), Path(name), int(sys.argv[2]), "all" in sys.argv[3:])))
