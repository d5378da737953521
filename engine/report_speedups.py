"""The table of speed-ups over PyTorch eager, problem by problem and in sum. Computes nothing that is not a projection."""

from __future__ import annotations

from rich.console import Console

from ..projections.ablation import rows
from ..projections.runs import RunView
from ..projections.speedups import Speedup, Summary, left_out, speedups, summaries
from .report import by_latency, place, plain, table

_TITLE = """Speed-up over PyTorch eager fp32 (medians, cold L2; all measured against one winner in this run)
best = largest of eager and the baselines; a run with the contract fp32-strict has no TF32"""


def print_speedups(view: RunView, console: Console) -> None:
    """Nothing for a run of one problem: its head-to-heads say as much; nor for one whose ratios are about energy or heat."""
    found = speedups(rows(view)) if by_latency(view) else ()
    if len({each.group.problem for each in found}) < 2:
        return
    names = list(dict.fromkeys(name for each in found for name in each.baselines))
    made = table(_TITLE, ("problem",), ("winner", *names, "best", "winner\n/best"))
    for each in found:
        made.add_row(place(each.group), *_row(each, names))
    console.print(made)
    for summary in summaries(found):
        console.print(plain(_line(summary)), highlight=False)
    for each in found:
        if each.wrong:
            said = f"{each.group.problem} {each.group.contract}: without {', '.join(each.wrong)} (answers were wrong while timed)"
            console.print(plain(said), highlight=False)
    if lacking := left_out(rows(view)):
        named = ", ".join(f"{group.problem} {group.contract}" for group in lacking)
        console.print(
            plain(f"in none of these: {named} (no winner, or a comparison that was not measured)"), highlight=False
        )


def _row(each: Speedup, names: list[str]) -> list[str]:
    others = [f"{each.baselines[name]:.2f}x" if name in each.baselines else "-" for name in names]
    loses = " slower" if each.loses else ""
    return [f"{each.winner:.2f}x{loses}", *others, f"{each.best:.2f}x", f"{each.winner / each.best:.2f}"]


def _line(summary: Summary) -> str:
    rivals = "; ".join(f"{name} {mean:.2f}x, {middle:.2f}x" for name, (mean, middle) in summary.rivals.items())
    lost = f"{len(summary.losses)} slower than eager" + (f": {', '.join(summary.losses)}" if summary.losses else "")
    where = " ".join(filter(None, (summary.kind, summary.contract)))
    mean, middle = summary.winner
    return f"{where}, {summary.rows} rows, geometric mean and median over eager fp32: winner {mean:.2f}x, {middle:.2f}x; {rivals}; {lost}"
