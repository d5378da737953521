"""Generators by name, each imported only when it is asked for. Opens no connection and makes no candidate."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from ...events.errors import BadInput
from .base import Generator

CATALOGUE = "catalogue"
DEFAULT = (CATALOGUE,)
# Name: (module of this folder, its class, what must be installed with it).
_MODULES = {
    "triton": (".triton", "TritonGenerator", "rewrite"),
    "module": (".module", "ModuleGenerator", ""),
    "cuda": (".cuda", "CudaGenerator", ""),
    "llm": (".llm", "LlmGenerator", "llm"),
}
NAMES = (CATALOGUE, *_MODULES)


def check_names(names: Sequence[str]) -> None:
    """BadInput for an empty chain, an unknown generator, and one named twice."""
    if not names:
        raise BadInput(f"--generators: expected some of {', '.join(NAMES)}, found none")
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise BadInput(f"--generators: expected some of {', '.join(NAMES)}; found {', '.join(unknown)}")
    if len(set(names)) != len(names):
        raise BadInput(f"--generators: expected each generator once, found {', '.join(names)}")


def opened(names: Sequence[str]) -> dict[str, Generator]:
    """The generators of a chain beside the catalogue, in its order; BadInput where one cannot be had here."""
    check_names(names)
    return {name: _open(name) for name in names if name != CATALOGUE}


def _open(name: str) -> Generator:
    module, kind, extra = _MODULES[name]
    try:
        made: Generator = getattr(importlib.import_module(module, __package__), kind)()
    except ModuleNotFoundError as error:
        install = f": pip install 'gpusolver[{extra}]'" if extra else ""
        raise BadInput(
            f"--generators: {name} cannot be had here, {error.name} is not installed{install}, or leave it out"
        ) from None
    return made
