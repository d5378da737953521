"""What a launch list says of a kernel: whether two are the same machine work, and the context of evidence. Never compares times."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..events.model import Chip, Context
from .artifacts import Launches


def is_inert(candidate: Launches, incumbent: Launches) -> bool:
    """Whether both calls launch the same code in the same order and the same way; false whenever that cannot be known."""
    mine, theirs = _work(candidate), _work(incumbent)
    return mine is not None and mine == theirs


def language(launches: Launches) -> str:
    """`triton` if any launch is Triton's, else `library`."""
    return "triton" if any(kernel.language == "triton" for kernel in launches.kernels) else "library"


def structure(launches: Launches, ttir_texts: Iterable[str]) -> str:
    """`dot` or `no_dot` by the Triton IR texts of the launches; `library` where no launch is Triton's."""
    if language(launches) == "library":
        return "library"
    return "dot" if any("tt.dot" in text for text in ttir_texts) else "no_dot"


def context(chip: Chip, contract: str, family: str, launches: Launches, ttir_texts: Iterable[str]) -> Context:
    """The context in which evidence on this incumbent counts; `ttir_texts` are the contents of its `ttir` artifacts."""
    return Context(
        chip=chip.name,
        contract=contract,
        language=language(launches),
        family=family,
        structure=structure(launches, ttir_texts),
    )


def _work(launches: Launches) -> list[bytes] | None:
    if not launches.complete or not launches.kernels or any(kernel.code is None for kernel in launches.kernels):
        return None
    # Compared as JSON: 1, 1.0 and true are equal in Python, and different arguments of a kernel; names have no order.
    return [
        msgspec.json.encode((k.code, k.grid, k.block, k.shared, k.scalars), order="deterministic")
        for k in launches.kernels
    ]
