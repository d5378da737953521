"""The `module` generator: other ways of calling any torch module, by prescription. Never measures; what is faster, a sweep says."""

from __future__ import annotations

from .base import Asked, Candidate
from .module_text import is_module, precision_of, ways_of, with_ways

Ways = tuple[tuple[str, ...], ...]

_COMPILED: Ways = (("compile",), ("compile_autotune",))
_CONVOLVED: Ways = (("channels_last",), ("channels_last", "compile"))
_BY_ROWS: Ways = (("rows",), *_COMPILED)
_FEWER_PASSES: Ways = (("in_place",), ("folded",), *_BY_ROWS)
# Beside what the incumbent does already. The first of those as fast as the fastest is taken, so the plainest stands first.
WAYS: dict[str, Ways] = {
    "enable_tf32": ((), *_COMPILED),
    "fuse": _FEWER_PASSES,
    "less_traffic": _FEWER_PASSES,
    "less_of_both": _FEWER_PASSES,
    "tile": _BY_ROWS,
    "coalesce": _BY_ROWS,
    "less_arithmetic": _BY_ROWS,
    "fewer_instructions": _BY_ROWS,
    "hide_latency": _BY_ROWS,
    "split_work": _BY_ROWS,
    "cuda_graph": (("cuda_graph",), ("compile", "cuda_graph"), ("reduce_overhead",)),
    "fused_attention": (("fused_attention",), ("fused_attention", "compile")),
}
_OF_LAYOUT = (
    "enable_tf32",
    "fuse",
    "less_traffic",
    "less_of_both",
    "coalesce",
    "less_arithmetic",
    "fewer_instructions",
    "hide_latency",
)
_EXCLUDE = ("compile", "compile_autotune", "reduce_overhead")


class ModuleGenerator:
    """Rewrites the part of a source that calls a module; the module's own text stays as the user wrote it."""

    name = "module"

    def serves(self, asked: Asked) -> bool:
        """Whether the problem is a module, and there is a way for the prescription under the contract."""
        allowed = asked.prescription != "enable_tf32" or asked.contract != "fp32-strict"
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
        note = f"{asked.prescription}: " + "; ".join(" + ".join(ways) or "as it is" for ways in further)
        return Candidate(sources=sources, note=note) if sources else None


def _joined(mine: tuple[str, ...], further: tuple[str, ...]) -> tuple[str, ...]:
    """Both, but for the way of compiling, of which a source has one."""
    kept = tuple(way for way in mine if way not in _EXCLUDE or not set(further) & set(_EXCLUDE))
    return (*kept, *(way for way in further if way not in kept))
