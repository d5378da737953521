"""Tables for people: arms, signals, head-to-heads and claims of a run. Computes nothing that is not a projection."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET, UnsetType
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..events.model import HeadToHead
from ..projections.ablation import AblationRow, ArmRow, best_kernels, rows
from ..projections.prediction import PredictionRow, predicted
from ..projections.runs import Group, RunView, group_of
from ..projections.spending import SpendingRow, spending

_SIGNALS = {
    "time_us": "time\nus",
    "floor_us": "floor\nus",
    "useful_bw_frac": "bytes\n/copy",
    "traffic_excess": "moved\n/min",
    "load_eff": "load\neff",
    "occupancy": "occu-\npancy",
    "registers": "regs",
    "tensor_inst": "tensor\ninst",
    "tensor_frac": "tensor\nbusy",
}
_PERCENT = ("useful_bw_frac", "load_eff", "occupancy", "tensor_frac")
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
_ARMS_TITLE = """Arms (median of cold-L2 samples, us)
failed = rounds that counted against their rule; - rule = retired"""
_SIGNALS_TITLE = """Signals, cold L2 (- where a kernel has no such signal, which is not 0)
bytes/copy = bytes that must move, over the measured copy ceiling
(a kernel that only reads can beat a copy, and so its floor)
moved/min = DRAM bytes over bytes that must move
tensor inst = real tensor instructions, load-immediates excluded"""
_GAINS_TITLE = """Head to head: median of left/right over ABBA pairs, cold L2
above 1 the right one is faster; winner = last kernel of ON
twin = the same kernel held to IEEE fp32: start/twin is the kernel's
part of the gain, twin/winner the precision's"""
_PREDICTIONS_TITLE = """Predicted gain beside the measured one (medians, rounds with an interval)
measured/predicted = 1 would be a rule that knows its worth"""
_VERSUS_TITLE = """PyTorch over the winner of ON
above 1 the winner is faster"""


_LESS = {"energy": "draws less energy a call", "thermal": "heats less"}


def better(view: RunView) -> str:
    """What a ratio above 1 says of the right one, by the objective that the run registered."""
    objective = UNSET if view.registration is None else view.registration.statistics.objective
    return "is faster" if isinstance(objective, UnsetType) else _LESS[objective.by]


def by_latency(view: RunView) -> bool:
    """Whether the run's verdicts, and so its ratios, are about time."""
    return view.registration is None or view.registration.statistics.objective is UNSET


def _named(title: str, view: RunView) -> str:
    if by_latency(view):
        return title
    return title.replace("cold L2", "warm calls").replace("is faster", better(view))


def print_report(view: RunView, console: Console) -> None:
    """The run's tables; none for a run without registration."""
    if view.registration is None:
        return
    found = rows(view)
    console.print(_arms(found))
    for cell, why in unfit(view).items():
        console.print(f"{cell}: start unfit, {why}")
    console.print(_signals(view))
    for title, columns in ((_GAINS_TITLE, _GAINS), (_VERSUS_TITLE, _VERSUS)):
        if any(columns.keys() & row.head_to_heads.keys() for row in found):
            console.print(_ratios(found, _named(title, view), columns))
    if view.claims:
        console.print(_claims(view))
    if predictions := predicted(view):
        console.print(_predictions(predictions))
    if asked := spending(view):
        console.print(_spending(asked))
    for best in best_kernels(view) if by_latency(view) else ():
        where = f"{best.problem} {best.contract}: {best.time_us:.1f} us, source {best.source[:12]}, arm {best.cell.arm} #{best.cell.repetition}"
        console.print(f"best kernel of {plain(where)}")


def unfit(view: RunView) -> dict[str, str]:
    """Why the start of a cell does not count, once for all its arms and repetitions."""
    return {place(group_of(s.cell)): plain(s.unfit) for s in view.cells.values() if s.unfit}


def print_ground(view: RunView, console: Console) -> None:
    """Where the measurements come from: said before anything else."""
    registration = view.registration
    if registration is None:
        console.print("no RunRegistered: these events belong to no run; gpusolver replay says what is wrong")
        return
    device = plain(registration.environment.get("device", "unknown device"))
    objective = registration.statistics.objective
    if not isinstance(objective, UnsetType):
        told = f"verdicts by {objective.by}: FASTER, and a ratio above 1, says that the candidate {better(view)}"
        console.print(
            f"{told}, in at most {objective.bound:g} times the time of the cell's fastest incumbent", markup=False
        )
    if registration.origin is None:
        note = ": times of the CPU stand-in measure no GPU" if registration.environment.get("uuid") is None else ""
        console.print(f"measured on: {device}{note}", markup=False)
        return
    console.print(
        f"recorded measurements of {device}: nothing is measured here. "
        f"Recording: {registration.origin.events} events, head {plain(registration.origin.head[:16])}",
        markup=False,
    )


def table(title: str, left: Iterable[str], right: Iterable[str]) -> Table:
    """An empty table: text columns on the left, numbers on the right; a narrow terminal folds what it cannot hold, none is cut."""
    made = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=0, pad_edge=False)
    for head in left:
        made.add_column(head, overflow="fold")
    for head in right:
        made.add_column(head, justify="right", overflow="fold")
    return made


def _arms(found: tuple[AblationRow, ...]) -> Table:
    made = table(_ARMS_TITLE, ("problem", "arm"), ("start", "end", "rounds", "failed"))
    made.add_column("stopped by", no_wrap=True)
    for row in found:
        for index, arm in enumerate(row.arms):
            made.add_row(place(row.group) if index == 0 else "", plain(arm.arm), *_arm(arm))
            for rule in arm.retired:
                made.add_row(*[""] * 6, f"- {plain(rule)}", style="dim")
    return made


def plain(text: str) -> str:
    """A ledger's text as text: no control characters, and nothing that the terminal library would read as markup."""
    return escape(legible(text))


def legible(text: str) -> str:
    """Anyone's text without what could steer a terminal; for where markup is not read."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def place(group: Group) -> str:
    """Problem, with what differs from the default beside it."""
    contract = "" if group.contract == "tf32-allowed" else f" {group.contract}"
    pool = "" if group.pool == "flags" else f" pool {group.pool}"
    return plain(f"{group.problem}{contract}{pool}{f' #{group.repetition}' if group.repetition > 1 else ''}")


def _arm(arm: ArmRow) -> tuple[str, ...]:
    times = ("-" if value is None else f"{value:.1f}" for value in (arm.start_us, arm.end_us))
    return (*times, str(arm.rounds), str(arm.misfires), plain(arm.stop_rule or arm.stop or "unfinished"))


def _signals(view: RunView) -> Table:
    """The start and ON's last kernel, first repetition: where the time went, before and after."""
    made = table(_SIGNALS_TITLE, ("kernel",), _SIGNALS.values())
    for state in view.cells.values():
        if state.cell.arm != "on" or state.cell.repetition != 1:
            continue
        kernels = {state.start: place(group_of(state.cell))}
        kernels.setdefault(state.incumbent, "  winner")
        for source, name in kernels.items():
            seen = state.signals.get(source or "", {})
            made.add_row(name, *(_signal(key, seen.get(key)) for key in _SIGNALS))
    return made


def _signal(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name in _PERCENT:
        return f"{100 * value:.0f}%"
    return f"{value:.1f}" if name in ("time_us", "floor_us", "traffic_excess") else f"{value:.0f}"


def _ratios(found: tuple[AblationRow, ...], title: str, columns: dict[str, str]) -> Table:
    made = table(title, ("problem",), columns.values())
    for row in found:
        if row.head_to_heads:
            made.add_row(place(row.group), *(_ratio(row.head_to_heads.get(key)) for key in columns))
    return made


def _ratio(entry: HeadToHead | None) -> str:
    if entry is None:
        return "-"
    if entry.outcome == "identical":
        return "same"
    return plain(entry.outcome) if entry.interval is None else f"{entry.interval.median:.2f}x"


def _predictions(found: tuple[PredictionRow, ...]) -> Table:
    """By rule: what it promised beside what its candidates measured."""
    made = table(_PREDICTIONS_TITLE, ("rule",), ("rounds", "predicted", "measured", "measured/predicted"))
    for row in found:
        made.add_row(
            plain(row.rule), str(row.rounds), f"{row.predicted:.2f}x", f"{row.measured:.2f}x", f"{row.ratio:.2f}"
        )
    return made


def _spending(found: tuple[SpendingRow, ...]) -> Table:
    """By generator beside the catalogue: what it was asked, and what a model behind it cost (- where it does not say)."""
    columns = ("asked", "made", "requests", "prompt\ntokens", "answer\ntokens", "USD", "s")
    made = table("Generators beside the catalogue", ("generator",), columns)
    for row in found:
        tokens = ("-" if count is None else str(count) for count in (row.prompt_tokens, row.completion_tokens))
        cost = "-" if row.cost_usd is None else f"{row.cost_usd:.4f}"
        counts = (str(row.asked), str(row.made), str(row.requests))
        made.add_row(plain(row.generator), *counts, *tokens, cost, f"{row.took_s:.1f}")
    return made


def _claims(view: RunView) -> Table:
    assert view.registration is not None
    recorded = view.registration.origin is not None
    ground = "answered from a recording, not pre-registered" if recorded else "registered before the first measurement"
    made = table(f"Claims, {ground}", (), ())
    made.add_column("claim")
    for name in ("bound", "medians", "answer"):
        made.add_column(name)
    registered = {claim.claim: claim for claim in view.registration.claims}
    for stated in view.claims:
        claim = registered.get(stated.claim)
        if claim is None:
            made.add_row(plain(stated.claim), "-", "-", "never registered")
            continue
        medians = ", ".join(f"{median:.3f}" for median in stated.medians) or "-"
        made.add_row(plain(claim.text), f"{claim.at_least:g}", medians, stated.answer)
    return made
