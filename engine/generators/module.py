"""The `module` generator: other ways of calling any torch module, by prescription. Never measures; what is faster, a sweep says."""

from __future__ import annotations

from ...problems.contract import WITHOUT_PRODUCTS
from .base import Asked, Candidate
from .module_text import is_module, precision_of, ways_of, with_ways

Ways = tuple[tuple[str, ...], ...]

_COMPILED: Ways = (("compile",),)
# Searching is slow: only where other tiles are what is prescribed.
_SEARCHED: Ways = (*_COMPILED, ("compile_autotune",))
# Compiling costs seconds a source, so few of these do.
_CONVOLVED: Ways = (
    ("benchmark",), ("channels_last",), ("benchmark", "channels_last"), ("benchmark", "flipped"),
    ("benchmark", "flipped", "channels_last"), ("benchmark", "pools"), ("benchmark", "summed"),
    ("benchmark", "channels_last", "compile"),
)  # fmt: skip
# Operators replaced by others; a way that the module's text has no use for is left out of the source, and equal sources are one.
_REPLACED: Ways = (
    ("rows",), ("norms",), ("matvec",), ("pools",), ("flipped",), ("pointwise",), ("summed",), ("pools", "pointwise"),
    ("flipped", "norms"), ("triangular",), ("triangular_tiles",),
)  # fmt: skip
_FEWER_PASSES: Ways = (("in_place",), ("folded",), *_REPLACED, *_COMPILED)
# Beside what the incumbent does already. The first of those as fast as the fastest is taken, so the plainest stands first.
WAYS: dict[str, Ways] = {
    "enable_tf32": ((), *_REPLACED, *_COMPILED),
    "fuse": _FEWER_PASSES,
    "less_traffic": _FEWER_PASSES,
    "less_of_both": _FEWER_PASSES,
    "tile": (*_REPLACED, *_SEARCHED),
    "coalesce": (*_REPLACED, *_COMPILED),
    "less_arithmetic": (*_REPLACED, *_COMPILED),
    "fewer_instructions": (*_REPLACED, *_COMPILED),
    "hide_latency": (*_REPLACED, *_COMPILED),
    # What a replaced operator may answer, where it is one of a few kernels inside which the cause lies.
    "vectorize": _REPLACED,
    "coalesce_stores": _REPLACED,
    "constant_indices": _REPLACED,
    "remove_stall": _REPLACED,
    "instruction_parallelism": _REPLACED,
    "independent_chains": _REPLACED,
    "split_work": _REPLACED,
    "wgmma": _REPLACED,
    "cuda_graph": (("cuda_graph",), ("compile", "cuda_graph"), ("reduce_overhead",)),
    "fused_attention": (("fused_attention",), ("fused_attention", "compile")),
}
_OF_LAYOUT = (
    "enable_tf32",
    "wgmma",
    "tile",
    "fuse",
    "less_traffic",
    "less_of_both",
    "coalesce",
    "less_arithmetic",
    "fewer_instructions",
    "hide_latency",
)
# Of each of these a source has one at most.
_ALTERNATIVES = (("compile", "compile_autotune", "reduce_overhead"), ("triangular", "triangular_tiles"))


class ModuleGenerator:
    """Rewrites the part of a source that calls a module; the module's own text stays as the user wrote it."""

    name = "module"

    def serves(self, asked: Asked) -> bool:
        """Whether the problem is a module, and there is a way for the prescription under the contract; TF32 only where something is multiplied."""
        multiplies = asked.problem.family not in WITHOUT_PRODUCTS
        allowed = asked.prescription != "enable_tf32" or (asked.contract != "fp32-strict" and multiplies)
        return allowed and asked.prescription in WAYS and is_module(asked.problem.start)

    def propose(self, asked: Asked) -> Candidate | None:
        """The incumbent's ways and each further one; None for a source of another generator, or where it does all of them already."""
        if not is_module(asked.source):
            return None
        precision = "tf32" if asked.prescription == "enable_tf32" else precision_of(asked.source)
        if asked.contract == "fp32-strict":
            precision = "ieee"
        mine = ways_of(asked.source)
        further = WAYS[asked.prescription]
        if asked.prescription in _OF_LAYOUT and asked.problem.family in ("conv", "network"):
            further = (*further, *_CONVOLVED)
        made = (with_ways(asked.source, _joined(mine, ways), precision) for ways in further)
        sources = tuple(source for source in dict.fromkeys(made) if source != asked.source)
        note = f"{asked.prescription}: " + "; ".join(" + ".join(ways_of(source)) or "as it is" for source in sources)
        return Candidate(sources=sources, note=note) if sources else None


def _joined(mine: tuple[str, ...], further: tuple[str, ...]) -> tuple[str, ...]:
    """Both, but for alternatives to what is further, of which a source has one."""
    replaced = {way for group in _ALTERNATIVES if set(group) & set(further) for way in group}
    kept = tuple(way for way in mine if way not in replaced)
    return (*kept, *(way for way in further if way not in kept))
