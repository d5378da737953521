"""Samples of a pair taken by registered looks: measure some blocks, ask for the verdict, stop or measure more. Decides nothing itself."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from ..events.model import Statistics
from ..profilers import artifacts as shapes
from ..profilers.verdicts import Judgement, is_final
from .executor import Observation
from .samples import joined

Ask = Callable[[int, int], Observation]
"""(blocks, index of the first of them) to samples of that many blocks."""


def sample(ask: Ask, statistics: Statistics, judge: Callable[[shapes.Samples], Judgement]) -> Observation:
    """One observation with the blocks of all looks that were needed; without registered looks, all blocks at once.

    An executor may answer a look with more blocks than it was asked for (a recording knows the outcome): no more are asked for then.
    """
    looks = (statistics.blocks,) if statistics.looks is UNSET else statistics.looks
    seen: Observation | None = None
    have = 0
    for look in looks:
        if look <= have:
            continue
        more = ask(look - have, have)
        if more.status != "ok" or "samples" not in more.artifacts:
            return more
        seen = more if seen is None else _joined(seen, more)
        samples = shapes.decode(shapes.Samples, seen.artifacts["samples"])
        have = len(samples.blocks)
        if is_final(judge(samples)):
            break
    assert seen is not None  # the writer refuses statistics without a look
    return seen


def _joined(first: Observation, more: Observation) -> Observation:
    """Both looks as one observation."""
    whole = joined(*(msgspec.json.decode(part.artifacts["samples"]) for part in (first, more)))
    return replace(first, artifacts={**first.artifacts, "samples": msgspec.json.encode(whole)})
