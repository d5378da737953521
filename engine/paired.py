"""Two arms over the same problems: is the difference more than chance, and how large is it. Never decides a verdict of a ledger."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import msgspec

from ..events.errors import BadInput

_SEED = 20260101
_EXACT = 20_000
"""Up to so many sign patterns (14 differing problems) are counted one by one; beyond, so many are drawn from a fixed seed."""


class Paired(msgspec.Struct, frozen=True, kw_only=True):
    """One measure of two arms by problem: `difference` = mean of (ours - theirs), with a 95 % bootstrap interval of that mean.

    `p` is that of the two-sided Wilcoxon signed-rank test over the `differing` problems (1 where none differs), `effect` the
    matched-pairs rank-biserial correlation: the share of the rank sum that favours `theirs` under `ours` minus the other, so that
    -1 says that ours is smaller wherever they differ. `worse` counts the problems on which ours is larger.
    """

    problems: int
    differing: int
    worse: int
    ours: float
    theirs: float
    difference: float
    lower: float
    upper: float
    p: float
    effect: float


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Paired:
    """Compare two arms; entries at one index are one problem. BadInput where scipy is lacking."""
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    lower, upper = _bootstrap(differences)
    ranks = _signed_ranks([d for d in differences if d])
    total = sum(abs(rank) for rank in ranks)
    return Paired(
        problems=len(differences),
        differing=len(ranks),
        worse=sum(rank > 0 for rank in ranks),
        ours=fmean(ours),
        theirs=fmean(theirs),
        difference=fmean(differences),
        lower=lower,
        upper=upper,
        p=_wilcoxon([d for d in differences if d]),
        effect=sum(ranks) / total if total else 0.0,
    )


def holm(found: Sequence[float]) -> list[float]:
    """p values adjusted for so many tests (Holm 1979), in the order given."""
    order = sorted(range(len(found)), key=lambda index: found[index])
    adjusted, largest = [0.0] * len(found), 0.0
    for place, index in enumerate(order):
        largest = max(largest, min(1.0, (len(found) - place) * found[index]))
        adjusted[index] = largest
    return adjusted


def _signed_ranks(differences: Sequence[float]) -> list[float]:
    ranks = _scipy().rankdata([abs(d) for d in differences]) if differences else []
    return [float(rank) if d > 0 else -float(rank) for rank, d in zip(ranks, differences, strict=True)]


def _wilcoxon(differences: Sequence[float]) -> float:
    """Ties keep their mean ranks, so the distribution is that of these ranks under every pattern of signs, not a table's."""
    if len(differences) < 2:
        return 1.0  # either sign of one difference is as far from its middle as the other
    stats = _scipy()
    method = stats.PermutationMethod(n_resamples=_EXACT, rng=_SEED)
    return float(stats.wilcoxon(differences, method=method).pvalue)


def _bootstrap(differences: Sequence[float]) -> tuple[float, float]:
    if len(set(differences)) < 2:
        return differences[0], differences[0]
    found = _scipy().bootstrap((differences,), fmean_axis, n_resamples=_EXACT, method="percentile", rng=_SEED)
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def fmean_axis(values: Any, axis: int) -> Any:
    """The mean along an axis, as scipy's bootstrap asks for it."""
    return values.mean(axis=axis)


def _scipy() -> Any:
    try:
        return importlib.import_module("scipy.stats")
    except ImportError as error:
        raise BadInput(
            f"statistics over problems: expected scipy, found {error}. Install it: pip install 'gpusolver[stats]'"
        ) from error
