"""The report of `gpusolver ablate`: arms beside the oracle, and who won over the problems. Computes nothing that is not a projection or a statistic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from statistics import fmean

import msgspec
from rich.console import Console

from ..projections.contest import ArmCourse, Contest
from .paired import Paired, holm, paired
from .report import place, plain, table

LEVEL = 0.05
FINAL = "ln(final / best time)"
_MEASURES: tuple[tuple[str, Callable[[ArmCourse], float | None]], ...] = (
    ("wasted rounds", lambda arm: arm.wasted),
    ("rounds to the best", lambda arm: arm.rounds_to_best),
    ("GPU s to the best", lambda arm: arm.gpu_s_to_best),
    (FINAL, lambda arm: log(arm.ratio)),
    ("regret", lambda arm: arm.regret),
)
_ARMS_TITLE = """Arms beside the oracle (times are medians of cold-L2 samples; GPU s are seconds of timed calls)
best = within the margin (or noise floors) of the fastest kernel that any arm of the group found; wasted = rounds without a FASTER
final = last time over the fastest; regret = mean over the budget of ln(time then / fastest); oracle = fewest recorded steps to it"""
_PAIRS_TITLE = """Paired over problems (all of a problem's groups averaged); each is better where it is smaller; GPU s where both got there
interval: 95 % bootstrap of the mean difference; p: two-sided Wilcoxon signed-rank over the problems that differ, Holm over this table
effect: rank-biserial correlation, -1 where the first arm is smaller wherever they differ"""


class Duel(msgspec.Struct, frozen=True, kw_only=True):
    """One measure of two arms over the problems, with the p value adjusted for all duels of the report."""

    measure: str
    ours: str
    theirs: str
    found: Paired
    adjusted: float

    @property
    def winner(self) -> str | None:
        """The arm with the smaller mean, significant or not; None where they are equal."""
        if self.found.difference == 0:
            return None
        return self.ours if self.found.difference < 0 else self.theirs

    @property
    def significant(self) -> bool:
        """Whether the adjusted p is under 5 %."""
        return self.adjusted < LEVEL


def duels(contests: Sequence[Contest], reference: str) -> tuple[Duel, ...]:
    """The reference arm against every other, measure by measure; problems that lack one of the two are left out."""
    by_problem: dict[str, dict[str, list[ArmCourse]]] = {}
    for contest in contests:
        for arm in contest.arms:
            by_problem.setdefault(contest.group.problem, {}).setdefault(arm.arm, []).append(arm)
    others = dict.fromkeys(arm.arm for contest in contests for arm in contest.arms if arm.arm != reference)
    found = []
    for other in others:
        both = [arms for arms in by_problem.values() if reference in arms and other in arms]
        for name, measure in _MEASURES:
            sides = [(_mean(arms[reference], measure), _mean(arms[other], measure)) for arms in both]
            known = [(ours, theirs) for ours, theirs in sides if ours is not None and theirs is not None]
            if known:
                found.append((name, other, paired(*zip(*known, strict=True))))
    adjusted = holm([entry.p for _, _, entry in found])
    return tuple(
        Duel(measure=name, ours=reference, theirs=other, found=entry, adjusted=p)
        for (name, other, entry), p in zip(found, adjusted, strict=True)
    )


def _mean(arms: Sequence[ArmCourse], measure: Callable[[ArmCourse], float | None]) -> float | None:
    """Over a problem's groups; None where one of them has no such value."""
    values = [measure(arm) for arm in arms]
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def print_ablation(contests: Sequence[Contest], reference: str, console: Console) -> None:
    """Both tables, and a line for each duel of arms that says who won."""
    if not contests:
        console.print("no group whose arms have all ended: nothing to compare")
        return
    console.print(_arms(contests))
    found = duels(contests, reference)
    if not found:
        console.print(f"no arm beside {plain(reference)} on one problem: nothing to pair")
        return
    console.print(_pairs(found))
    for other in dict.fromkeys(duel.theirs for duel in found):
        console.print(verdict([duel for duel in found if duel.theirs == other]), markup=False, highlight=False)


def verdict(found: Sequence[Duel]) -> str:
    """Who won between two arms, in which measures, and whether that is significant."""
    ours, theirs, problems = found[0].ours, found[0].theirs, found[0].found.problems
    said = [_said(duel) for duel in found if duel.winner is not None]
    equal = [duel.measure for duel in found if duel.winner is None]
    if equal:
        said.append(f"equal in {', '.join(equal)}")
    sure = {duel.winner for duel in found if duel.significant and duel.winner is not None}
    head = "neither wins significantly" if not sure else f"{' and '.join(sorted(map(str, sure)))} wins significantly"
    if len(sure) > 1:
        head = "each wins significantly in something"
    slower = next(duel.found.worse for duel in found if duel.measure == FINAL)
    said.append(f"{ours} ends with a slower kernel than {theirs}, beyond the noise, on {slower} of them")
    return f"{ours} against {theirs} over {problems} problem{'s' * (problems != 1)}: {head}. " + "; ".join(said)


def _said(duel: Duel) -> str:
    sure = "significant" if duel.significant else "not significant"
    return f"{duel.measure}: {duel.winner} ({sure}, p = {duel.adjusted:.3g})"


def _arms(contests: Sequence[Contest]) -> object:
    right = ("final\nus", "final\n/best", "rounds", "wasted", "inert", "rounds\nto best", "GPU s\nto best", "regret")
    made = table(_ARMS_TITLE, ("problem", "arm"), right)
    for contest in contests:
        oracle = contest.oracle
        for index, arm in enumerate(contest.arms):
            reached = "never" if arm.reached is None else str(arm.reached)
            made.add_row(
                place(contest.group) if index == 0 else "",
                plain(arm.arm),
                f"{arm.time_us:.1f}",
                f"{arm.ratio:.3f}",
                str(arm.rounds),
                str(arm.wasted),
                str(arm.inert),
                reached,
                "-" if arm.gpu_s_to_best is None else f"{arm.gpu_s_to_best:.3g}",
                f"{arm.regret:.3f}",
            )
        steps = (f"{oracle.time_us:.1f}", "", str(oracle.rounds), "0", "0", str(oracle.rounds), f"{oracle.gpu_s:.3g}")
        made.add_row("", "oracle", *steps, "")
    return made


def _pairs(found: Sequence[Duel]) -> object:
    right = ("first", "second", "difference", "interval", "effect", "p", "Holm", "differ")
    made = table(_PAIRS_TITLE, ("measure", "arms"), right)
    for duel in found:
        entry = duel.found
        made.add_row(
            duel.measure,
            plain(f"{duel.ours} - {duel.theirs}"),
            f"{entry.ours:.3g}",
            f"{entry.theirs:.3g}",
            f"{entry.difference:+.3g}",
            f"{entry.lower:+.3g} .. {entry.upper:+.3g}",
            f"{entry.effect:+.2f}",
            f"{entry.p:.3g}",
            f"{duel.adjusted:.3g}",
            f"{entry.differing}/{entry.problems}",
        )
    return made
