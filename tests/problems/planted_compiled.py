"""Child process: the machine code of every planted kernel for compute capability 9.0, as facts; prints JSON. Launches nothing.

Usage: TRITON_DISABLE_LINE_INFO=1 python -m tests.problems.planted_compiled. Needs NVRTC's library for the CUDA C++ ones.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from gpusolver.problems.planting import Planted, planted

from .compiled import OPCODE, OPTIONS, Recorder, tool
from .loading import load_file, load_text

POINTERS = {torch.float32: "*fp32", torch.bfloat16: "*bf16"}


def facts(cubin: bytes) -> dict[str, Any]:
    """Registers, stack and shared bytes, and how often each opcode stands in the code; `predicated` counts FFMA under a predicate."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        usage = dict(re.findall(r"\b(REG|STACK|SHARED):(\d+)", tool("cuobjdump", "--dump-resource-usage", file.name)))
        text = tool("nvdisasm", "-c", file.name)
    return {
        "registers": int(usage["REG"]),
        "stack": int(usage["STACK"]),
        "opcodes": Counter(OPCODE.findall(text)),
        "predicated": len(re.findall(r"@!?P\d+ FFMA", text)),
    }


def triton_cubin(module: ModuleType, inputs: tuple[torch.Tensor, ...]) -> bytes:
    """The one kernel that `run` launches on tensors without memory, compiled as the JIT would specialise it."""
    kernels = {name: value for name, value in vars(module).items() if isinstance(value, triton.JITFunction)}
    recorders = {name: Recorder() for name in kernels}
    vars(module).update(recorders)
    module.run(*inputs)
    ((name, (_, args, named)),) = ((name, launch) for name, r in recorders.items() for launch in r.launches)
    options = {option: named.pop(option) for option in OPTIONS if option in named}
    signature, constants, attributes = {}, {}, {}
    for i, parameter in enumerate(kernels[name].params):
        value = {**dict(zip(kernels[name].arg_names, args, strict=False)), **named}[parameter.name]
        if isinstance(value, torch.Tensor):
            signature[parameter.name] = POINTERS[value.dtype]
        else:
            signature[parameter.name] = "constexpr" if parameter.is_constexpr else "i32"
        if parameter.is_constexpr:
            constants[(i,)] = value
        elif isinstance(value, torch.Tensor) or value % 16 == 0:
            attributes[(i,)] = [["tt.divisibility", 16]]
    source = ASTSource(fn=kernels[name], signature=signature, constexprs=constants, attrs=attributes)
    cubin: bytes = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["cubin"]
    return cubin


def examine(kernel: Planted, folder: Path) -> dict[str, Any] | None:
    """Facts of a planted kernel; None where a library's kernels run."""
    if "nvrtc" not in kernel.source and "triton" not in kernel.source:
        return None
    module = load_text(folder, kernel.name.replace("-", "_"), kernel.source)
    if "machine_code" in vars(module):
        return facts(module.machine_code(module.CODE, "sm_90", module.CONFIG))
    inputs = load_file(Path(kernel.problem.reference)).inputs(kernel.problem.shape, None, "meta")
    return facts(triton_cubin(module, inputs))


def main() -> None:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        os.environ["TRITON_CACHE_DIR"] = f"{name}/cache"
        once: dict[tuple[str, str], Any] = {}
        for kernel in planted():
            key = kernel.source, kernel.problem.dtype
            if key not in once:
                once[key] = examine(kernel, Path(name))
            found[kernel.name] = once[key]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
