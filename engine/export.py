"""The winner of a cell as a source file of its own, with its provenance in comments above it. Changes nothing in the source, measures nothing."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import UNSET, UnsetType

from ..events.errors import BadInput
from ..events.model import Cell, ProblemDeclared, RoundJudged, cell_stream
from ..events.reader import LedgerReader
from ..projections.cell import CellState
from ..projections.claims import median_and_lower
from ..projections.runs import RunView, cell_state, fold, group_of

_DENOMINATORS = {
    "total": "the starting kernel",
    "kernel_part": "the starting kernel, with this one held to IEEE fp32",
    "precision_part": "this kernel held to IEEE fp32",
    "endpoint": "the last kernel of arm off",
    "versus:eager_fp32": "PyTorch eager in fp32",
    "versus:compile_fp32": "torch.compile in fp32",
    "versus:eager_tf32": "PyTorch eager in TF32",
    "versus:compile_tf32": "torch.compile in TF32",
}


_WORDS = {"": "speed-up    ", ", by energy": "less energy ", ", by thermal": "less heat   "}


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which cell's winner: what is None or empty is chosen where only one is left, `run` by the last that has the problem."""

    problem: str
    contract: str = ""
    arm: str = "on"
    pool: str = ""
    repetition: int = 1
    run: str = ""


class Winner(msgspec.Struct, frozen=True, kw_only=True):
    """A cell's last incumbent, and the events that speak for it."""

    view: RunView
    cell: Cell
    state: CellState
    source: str
    won: RoundJudged | None


def exported(reader: LedgerReader, ledger: str, wanted: Wanted) -> str:
    """The file's text: comments, then the source byte for byte. BadInput where the ledger has no such winner, or more than one."""
    winner = find(fold((stored.stream, stored.event) for stored in reader.recorded()), wanted)
    body = reader.artifact(winner.source).decode()
    head, events = reader.head()[1], reader.head()[0]
    told = (*_provenance(winner, ledger, head, events), *_usage(body))
    lines = [f"# {_one_line(line)}".rstrip() for line in told]
    return "\n".join(lines) + "\n" + body


def _one_line(text: str) -> str:
    """Names in a ledger are a stranger's: a line break in one would end the comment and begin code."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def find(views: dict[str, RunView], wanted: Wanted) -> Winner:
    """The winner that is asked for. BadInput says what there is instead."""
    having = [v for name, v in views.items() if wanted.run in ("", name) and _cells(v, wanted)]
    if not having:
        there = sorted(
            {f"{c.problem} ({c.contract}, pool {c.pool}, arm {c.arm})" for v in views.values() for c in _planned(v)}
        )
        raise BadInput(
            f"export: expected a cell of {_words(wanted)}, found none. The ledger has: {'; '.join(there) or 'no run'}"
        )
    cells = _cells(having[-1], wanted)
    if len(cells) > 1:
        found = "; ".join(f"--contract {c.contract} --pool {c.pool}" for c in cells)
        raise BadInput(f"export: {having[-1].run} has {len(cells)} cells of {_words(wanted)}. Choose one: {found}")
    state = cell_state(having[-1], cells[0])
    if state.incumbent is None or state.start not in state.signals:
        raise BadInput(
            f"export: {cell_stream(having[-1].run, cells[0])} holds no kernel that was measured: its start was not fit, or its "
            "first round was cut off. gpusolver report LEDGER says why."
        )
    won = [judged for judged in state.rounds if judged.verdict == "FASTER" and judged.candidate == state.incumbent]
    return Winner(view=having[-1], cell=cells[0], state=state, source=state.incumbent, won=won[-1] if won else None)


def _planned(view: RunView) -> tuple[Cell, ...]:
    return () if view.registration is None else view.registration.plan


def _cells(view: RunView, wanted: Wanted) -> list[Cell]:
    return [
        cell
        for cell in _planned(view)
        if (cell.problem, cell.arm, cell.repetition) == (wanted.problem, wanted.arm, wanted.repetition)
        and wanted.contract in ("", cell.contract)
        and wanted.pool in ("", cell.pool)
    ]


def _words(wanted: Wanted) -> str:
    asked = [("contract", wanted.contract), ("pool", wanted.pool), ("run", wanted.run)]
    more = "".join(f", {name} {value}" for name, value in asked if value)
    return f"{wanted.problem}, arm {wanted.arm}, repetition {wanted.repetition}{more}"


def _provenance(winner: Winner, ledger: str, head: str, events: int) -> Iterator[str]:
    view, cell = winner.view, winner.cell
    assert view.registration is not None
    problem = next(p for p in view.registration.problems if p.name == cell.problem)
    device = view.calibration.device if view.calibration else "unknown"
    # Python reads an encoding out of the first two lines, so neither holds a word of the ledger's.
    yield "Exported by gpusolver. Runs without it: `run(*inputs)` below."
    yield ""
    yield f"ledger      {ledger}, {events} events, head {head}"
    yield f"cell        {cell_stream(view.run, cell)}; {_stopped(winner)}"
    yield f"device      {device}; " + ", ".join(f"{k} {v}" for k, v in sorted(_versions(view).items()))
    yield f"source      sha256 {winner.source}: everything below these comments"
    yield f"problem     digest {problem.digest}; sizes {_sizes(problem)}"
    limits = problem.limits[cell.contract]
    yield f"contract    {cell.contract}: relative L2 error at most {limits.rel_l2:g}, largest at most {limits.max_rms:g} of the RMS"
    yield from _verdict(winner)
    yield from _ratios(winner)
    yield f"check       gpusolver replay {ledger} --verify --head {head}"


def _usage(body: str) -> Iterator[str]:
    """How a module's file is called: its state is an argument."""
    if "\n_STATE = (" in body:
        yield "call        state = {**dict(model.named_parameters()), **dict(model.named_buffers())} of your Model, on the inputs' device;"
        yield "            run(*get_inputs(), *[state[name].detach() for name in _STATE]), arguments that are no tensors left out"


def _stopped(winner: Winner) -> str:
    stopped = winner.state.stopped
    return f"{len(winner.state.rounds)} rounds, " + (
        "unfinished" if stopped is None else f"stopped: {stopped.reason}{f' ({stopped.rule})' if stopped.rule else ''}"
    )


def _versions(view: RunView) -> dict[str, str]:
    assert view.registration is not None
    return {
        k: v
        for k, v in view.registration.environment.items()
        if k in ("torch", "triton", "cuda", "driver", "gpusolver")
    }


def _sizes(problem: ProblemDeclared) -> str:
    return ", ".join(f"{name} {size}" for name, size in problem.shape.items())


def _verdict(winner: Winner) -> Iterator[str]:
    judged = winner.won
    if judged is None or judged.interval is None:
        yield "verdict     none: this is the starting kernel, and nothing better was found"
        return
    seen = judged.interval
    yield (
        f"verdict     round {judged.round}, rule {judged.rule}: {judged.verdict}, {seen.median:.3f}x the incumbent of that round "
        f"(interval {seen.lower:.3f} to {seen.upper:.3f}, {seen.blocks} blocks{_by(winner)})"
    )


def _by(winner: Winner) -> str:
    """What the ratios are about, where it is not time."""
    registered = winner.view.registration
    objective = UNSET if registered is None else registered.statistics.objective
    return "" if isinstance(objective, UnsetType) else f", by {objective.by}"


def _ratios(winner: Winner) -> Iterator[str]:
    """Head-to-heads that have this kernel on their right: those are measured for arm `on`."""
    group = group_of(winner.cell)
    for seen in winner.view.head_to_heads:
        ratio = median_and_lower(seen)
        same = (seen.problem, seen.contract, seen.pool, seen.repetition) == (
            group.problem, group.contract, group.pool, group.repetition,
        )  # fmt: skip
        if not same or ratio is None or seen.comparison not in _DENOMINATORS:
            continue
        if seen.right == winner.source:
            yield f"{_WORDS[_by(winner)]}{ratio[0]:.3f}x over {_DENOMINATORS[seen.comparison]} (at least {ratio[1]:.3f}x)"
