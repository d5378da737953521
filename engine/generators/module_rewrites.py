"""The table of the module generator's ways that rewrite the traced graph: what each needs named, and the parts of its text. Runs nothing."""

from __future__ import annotations

import re

from . import module_convolutions as convolutions
from . import module_images as images
from . import module_matvec as matvec
from . import module_norms as norms
from . import module_norms_read as norms_read
from . import module_pools as pools
from . import module_summed as summed
from . import module_triangular as triangular

_HEAD = "\n\nimport operator as _operator\n"
# Way: (what the user's text must name, parts in the order of the file, rewrites in the order of application).
_POOLS = (
    ("(?is)(?=.*batch_?norm)(?=.*avg_?pool)", (pools.POOLING, pools.NORMS_LATER), ("_norms_later",)),
    ("[Pp]ool", (pools.POOLING,), ("_pooling",)),
    (r"(?s)(?=.*\bgroups\b)(?=.*[Cc]onv[123]d)", (convolutions.CONVOLUTION, convolutions.DEPTHWISE), ("_depthwise",)),
)
_TEXTS = {
    "summed": (summed.NAMED, summed.SUMMED),
    "flipped": ("[Cc]onv_?[Tt]ranspose", convolutions.FLIPPED),
    "pointwise": (
        r"[Cc]onv[123]d\([^\n]*(kernel_size ?= ?\(?1\b|, ?1 ?[,)])",
        convolutions.CONVOLUTION,
        convolutions.POINTWISE,
    ),
    "norms": (norms_read.NAMED, norms.KERNELS, norms.CALLS, norms_read.READ),
    "matvec": (matvec.NAMED, matvec.KERNEL),
    "triangular": (triangular.NAMED, triangular.FOUND, triangular.REACH, triangular.ROWS),
    "triangular_tiles": (triangular.NAMED, triangular.FOUND, triangular.REACH, triangular.BLOCKS),
}
REWRITES = ("triangular", "triangular_tiles", "summed", "flipped", "pools", "pointwise", "norms", "matvec")


def usable(way: str, user: str) -> bool:
    """Whether the user's text names anything that a way of the table could change; True for any other way."""
    if way == "benchmark":
        return re.search("[Cc]onv", user) is not None
    if way == "pools":
        return any(re.search(named, user) for named, _, _ in _POOLS)
    return way not in _TEXTS or re.search(_TEXTS[way][0], user) is not None


def rewrites(ways: tuple[str, ...], user: str) -> tuple[str, tuple[str, ...]]:
    """Text and names of the functions that change the traced graph for the ways of the table, in their order."""
    parts: list[str] = []
    names: list[str] = []
    for way in (way for way in REWRITES if way in ways):
        if way == "pools":
            kept = [entry for entry in _POOLS if re.search(entry[0], user)]
            parts += [images.TRITON, *(part for _, texts, _ in kept for part in texts)]
            names += [name for _, _, found in kept for name in found]
        else:
            parts += _TEXTS[way][1:]
            names.append(f"_{way}")
    return ("" if not parts else "".join(dict.fromkeys((_HEAD, images.THREE, *parts)))), tuple(names)
