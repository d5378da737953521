"""Tables for people: the ablation, the head-to-heads and the claims of a run. Computes nothing that is not a projection."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ..events.model import HeadToHead
from ..projections.ablation import AblationRow, ArmRow, rows
from ..projections.runs import Group, RunView

_GAINS = {
    "total": "start\n/winner",
    "kernel_part": "start\n/twin",
    "precision_part": "twin\n/winner",
    "endpoint": "OFF\n/ON",
    "endpoint_kernel": "OFF twin\n/ON twin",
    "tabu": "OFF+tabu\n/ON",
}
_VERSUS = {
    "versus:eager_fp32": "eager\nfp32",
    "versus:eager_tf32": "eager\nTF32",
    "versus:compile_fp32": "compile\nfp32",
    "versus:compile_tf32": "compile\nTF32",
}
_GAINS_TITLE = """Head to head: median of left/right over ABBA pairs, cold L2; above 1 the right one is faster.
winner = last kernel of ON, twin = the same kernel held to IEEE fp32:
start/twin is the kernel's part of the gain, twin/winner the precision's."""
_VERSUS_TITLE = "PyTorch over the winner of ON; above 1 the winner is faster"


def print_report(view: RunView, console: Console) -> None:
    """The run's tables."""
    found = rows(view)
    console.print(_arms(found))
    console.print(_ratios(found, _GAINS_TITLE, _GAINS))
    console.print(_ratios(found, _VERSUS_TITLE, _VERSUS))
    if view.claims:
        console.print(_claims(view))


def print_ground(view: RunView, console: Console) -> None:
    """Where the measurements come from: said before anything else."""
    registration = view.registration
    assert registration is not None
    device = registration.environment.get("device", "unknown device")
    if registration.origin is None:
        console.print(f"measured on: {device}")
        return
    console.print(
        f"[bold]recorded measurements[/bold] of {device}: nothing is measured here. "
        f"Recording: {registration.origin.events} events, head {registration.origin.head[:16]}"
    )


def _arms(found: tuple[AblationRow, ...]) -> Table:
    table = _table("Arms (median of cold-L2 samples, us)")
    right = ("start", "end", "rounds", "misfires")
    for name in ("problem", "arm", *right, "retired", "stop"):
        table.add_column(name, justify="right" if name in right else "left", no_wrap=name not in ("stop", "retired"))
    for row in found:
        for index, arm in enumerate(row.arms):
            table.add_row(_place(row.group) if index == 0 else "", arm.arm, *_arm(arm))
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _place(group: Group) -> str:
    """Problem, with what differs from the default beside it."""
    contract = "" if group.contract == "tf32-allowed" else f" {group.contract}"
    pool = "" if group.pool == "flags" else f" pool {group.pool}"
    return f"{group.problem}{contract}{pool}{f' #{group.repetition}' if group.repetition > 1 else ''}"


def _arm(arm: ArmRow) -> tuple[str, ...]:
    return (
        _us(arm.start_us),
        _us(arm.end_us),
        str(arm.rounds),
        str(arm.misfires),
        ", ".join(arm.retired) or "-",
        arm.stop_rule or arm.stop or "unfinished",
    )


def _ratios(found: tuple[AblationRow, ...], title: str, columns: dict[str, str]) -> Table:
    table = _table(title)
    table.add_column("problem", no_wrap=True)
    for head in columns.values():
        table.add_column(head, justify="right", no_wrap=True)
    for row in found:
        if row.head_to_heads:
            table.add_row(_place(row.group), *(_ratio(row.head_to_heads.get(key)) for key in columns))
    return table


def _claims(view: RunView) -> Table:
    assert view.registration is not None
    table = _table("Claims, registered before the first measurement")
    for name in ("claim", "bound", "medians by repetition", "answer"):
        table.add_column(name)
    registered = {claim.claim: claim for claim in view.registration.claims}
    for stated in view.claims:
        claim = registered[stated.claim]
        medians = ", ".join(f"{median:.3f}" for median in stated.medians) or "-"
        table.add_row(claim.text, f"{claim.at_least:.{claim.decimals}f}", medians, stated.answer)
    return table


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _ratio(entry: HeadToHead | None) -> str:
    if entry is None:
        return "-"
    if entry.outcome == "identical":
        return "same"
    return entry.outcome if entry.interval is None else f"{entry.interval.median:.2f}x"
