"""The `cuda` generator: CUDA C++ from a small library of templates, compiled by NVRTC inside the candidate. Compiles and launches nothing itself."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from ...problems.sources import with_config
from .base import Asked, Candidate
from .operation import Elementwise, Operation, Product, Rows, operation_of

_ROWS = ("fuse", "tile", "coalesce", "vectorize", "less_traffic", "less_of_both", "hide_latency")
_ELEMENTWISE = ("fuse", "coalesce", "vectorize", "less_traffic", "less_of_both")
_PRODUCT = ("coalesce", "tile", "vectorize", "less_traffic", "reduce_registers")
# Fewest warps first, then what a block holds in shared memory.
_TILES = (
    (32, 32, 32, 4, 4),
    (16, 64, 32, 4, 4),
    (16, 64, 64, 8, 4),
    (16, 64, 64, 4, 4),
    (16, 128, 64, 8, 4),
    (8, 128, 128, 8, 8),
)
_TILE_KEYS = ("BLOCK_K", "BLOCK_M", "BLOCK_N", "THREAD_M", "THREAD_N")


class CudaGenerator:
    """Serves float32 problems whose operation is one of the library's: rows, elements, products."""

    name = "cuda"

    def serves(self, asked: Asked) -> bool:
        """By the prescription and what the problem computes, whatever the incumbent is."""
        found = operation_of(asked.problem.eager) if asked.problem.dtype == "float32" else None
        return found is not None and asked.prescription in _prescriptions(found)

    def propose(self, asked: Asked) -> Candidate | None:
        """One source for each configuration of the template."""
        found = operation_of(asked.problem.eager)
        if found is None or not self.serves(asked):
            return None
        text = _filled(found)
        sources = tuple(with_config(text, config) for config in _configs(found))
        return Candidate(
            sources=sources, note=f"{type(found).__name__.lower()} by NVRTC: {len(sources)} configurations"
        )


def _prescriptions(found: Operation) -> tuple[str, ...]:
    match found:
        case Rows():
            return _ROWS
        case Elementwise():
            return _ELEMENTWISE
        case Product():
            return _PRODUCT


def _configs(found: Operation) -> list[dict[str, int]]:
    match found:
        case Rows():
            return [{"OPERATION": found.number, "THREADS": threads} for threads in (64, 128, 256, 512, 1024)]
        case Elementwise():
            return [{"QUADS": quads, "THREADS": threads} for threads in (128, 256, 512) for quads in (1, 2, 4)]
        case Product():
            return [dict(zip(_TILE_KEYS, tile, strict=True)) for tile in _TILES]


def _filled(found: Operation) -> str:
    """The launcher and the template, with the operation's own words in it."""
    match found:
        case Rows():
            return _template("rows").replace("EPS = 1e-05", f"EPS = {found.eps!r}")
        case Elementwise():
            return _template("elementwise").replace("#define ELEMENT x0", f"#define ELEMENT {found.element}")
        case Product():
            return _template("product")


@cache
def _template(name: str) -> str:
    """A template behind the launcher that the planted kernels have too: each candidate stands for itself."""
    launcher = files("gpusolver.problems").joinpath("planted", "launcher.py").read_text(encoding="utf-8")
    kernel = files("gpusolver.engine").joinpath("generators", "templates", f"{name}.py").read_text(encoding="utf-8")
    return launcher + "\n\n" + kernel
