"""Child process: planted sources on the CPU at small sizes, against float64; prints JSON. Judges nothing.

Usage: TRITON_INTERPRET=1 python -m tests.problems.planted_on_cpu. Triton is interpreted, CUDA C++ emulated, torch runs as it is.
One source of each (kernel, configuration) runs; numbers that only set a size of the machine are made small.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch

from gpusolver.problems.planting import Planted, planted
from gpusolver.problems.sources import config_of, strict_twin, with_config

from .emulated import launcher
from .interpreted import errors, trivial
from .loading import load_file, load_text

SMALLER = {"GRID": 3, "TABLE": 1024, "TABLE_HOST": 0, "HOST_WAIT": 0, "HEAVY_STEPS": 301}


def small_config(config: dict[str, int]) -> dict[str, int]:
    """At most these values, so that a few threads are enough and no device is asked for."""
    return {name: min(value, SMALLER.get(name, value)) for name, value in config.items()}


def waits(config: dict[str, int]) -> bool:
    """Whether the kernel's threads wait for each other: the tiled transpose, sums by block, and the steps with a barrier."""
    return config.get("MODE", 0) in (1, 2) or (config.get("OP") == 5 and config["BARRIER"] == 1)


def examine(kernel: Planted, folder: Path, number: int) -> dict[str, Any]:
    config = small_config(config_of(kernel.source))
    module = load_text(folder, f"planted_{number}", with_config(strict_twin(kernel.source), config))
    if "launch" in vars(module):
        place = folder / str(number)
        place.mkdir()
        vars(module)["launch"] = launcher(place, config, waits(config))
    reference = load_file(Path(kernel.problem.reference))
    inputs = reference.inputs(kernel.problem.small, torch.Generator().manual_seed(7), "cpu")
    if "triton" in kernel.source:
        inputs = tuple(x.float() for x in inputs)  # the interpreter multiplies bfloat16 as if it were integers
    kept = [x.clone() for x in inputs]
    expected, answer = reference.reference(*inputs), module.run(*inputs)
    return {
        "name": kernel.name,
        "operation": Path(kernel.problem.reference).stem,
        "dtype": str(answer.dtype).removeprefix("torch."),
        "same_shape": answer.shape == expected.shape,
        "sizes_declared": set(expected.shape) <= {1, *kernel.problem.small.values()},
        "inputs_kept": all(torch.equal(x, y) for x, y in zip(inputs, kept, strict=True)),
        "reference_dtype": str(expected.dtype),
        **errors(answer, expected),
        "trivial": trivial(inputs, expected),
    }


def main() -> None:
    seen: dict[str, Planted] = {}
    for kernel in planted():
        text = strict_twin(kernel.source)
        seen.setdefault(with_config(text, small_config(config_of(text))), kernel)
    with tempfile.TemporaryDirectory() as name:
        print(json.dumps([examine(kernel, Path(name), number) for number, kernel in enumerate(seen.values())]))


if __name__ == "__main__":
    main()
