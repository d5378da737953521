"""What `replay --policy` prints: each cell beside its record, in words or JSON. Never decides."""

from __future__ import annotations

from collections.abc import Iterable

import click
import msgspec

from ..events.reader import LedgerReader
from .counterfactual import play
from .courses import CellPlayed, Course, Step
from .findings import Findings, encodable
from .integrity import scan
from .policy import policy
from .runs import sort_out
from .shelf import Shelf
from .whole_file import check_artifacts
from .words import say


class RunPlayed(msgspec.Struct, frozen=True):
    """One run under the policy."""

    run: str
    cells: tuple[CellPlayed, ...]


class Counterfactual(msgspec.Struct, frozen=True):
    """A ledger under a policy; `findings`: how many a verification has of it, which are no part of the play."""

    path: str
    policy: str
    findings: int
    runs: tuple[RunPlayed, ...]


def counterfactual(path: str, name: str, findings: int) -> Counterfactual:
    """Play every run of a ledger under the policy `name`. Raises BadInput and UnreadableLedger."""
    chosen = policy(name)
    with LedgerReader(path) as reader:
        untold = Findings()  # the verification has told them
        runs = sort_out(scan(reader.rows(), untold, spelling=False), untold)
        shelf = Shelf(reader.artifact, check_artifacts(reader.artifact_rows(), untold)[0])
        played = tuple(RunPlayed(run.run, tuple(play(run, chosen, shelf))) for run in runs)
    return Counterfactual(encodable(path), encodable(name), findings, played)


def print_counterfactual(found: Counterfactual) -> None:
    """Run by run and cell by cell."""
    say(f"{found.path} under policy {found.policy}: the recorded measurements, other decisions")
    if found.findings:
        say(f"the ledger has {found.findings} findings of its own: what is played here rests on what they question")
    for run in found.runs:
        click.echo()
        say(f"{run.run}: {_summary(run.cells)}")
        for cell in run.cells:
            _print_cell(cell)
    if not any(run.cells for run in found.runs):
        say("no cell to play: the ledger holds no run, or none that has begun")


def _summary(cells: Iterable[CellPlayed]) -> str:
    cells = list(cells)
    parted = [cell for cell in cells if cell.parted is not None]
    saved = sum(max(0, cell.saved or 0) for cell in cells)
    lost = -sum(min(0, cell.saved or 0) for cell in cells)
    unknown = sum(cell.saved is None for cell in cells)
    return f"{len(cells)} cells, {len(parted)} part from the record; {saved} rounds saved, {lost} lost" + (
        f"; not known of {unknown}" if unknown else ""
    )


def _print_cell(cell: CellPlayed) -> None:
    if cell.fault is not None:
        say(f"{cell.cell}: cannot be played: {cell.fault}", 2)
        return
    if cell.parted is None:
        say(f"{cell.cell}: as recorded, {_rounds(len(cell.played.steps))}, {cell.played.end or 'no end'}", 2)
    else:
        say(
            f"{cell.cell}: parts at round {cell.parted}: {_at(cell, cell.recorded)} in the record, {_at(cell, cell.played)} here",
            2,
        )
        say(f"recorded  {_course(cell.recorded)}", 4)
        say(f"policy    {_course(cell.played)}{_saved(cell.saved)}", 4)
    if cell.unused:
        say(f"recorded rounds not come to: {', '.join(map(str, cell.unused))}", 4)
    for steps in _borrowed(cell):
        say(
            f"{_span(step.round for step in steps)} as measured in {steps[0].of}, {_span(step.of_round for step in steps)}",
            4,
        )
    if cell.unanswered is not None:
        asked = cell.unanswered
        say(
            f"no measurement from round {asked.round} on: {asked.rule} would ask for {asked.prescription} on kernel "
            f"{asked.incumbent[:12]}, which no cell of its problem, contract and pool measured (so often)",
            4,
        )


def _borrowed(cell: CellPlayed) -> list[list[Step]]:
    """The rounds that other cells answer, those in a row from one cell together."""
    found: list[list[Step]] = []
    for step in cell.played.steps:
        last = found[-1][-1] if found else None
        if step.of == cell.cell:
            continue
        if last is not None and (last.of, last.round + 1, last.of_round + 1) == (step.of, step.round, step.of_round):
            found[-1].append(step)
        else:
            found.append([step])
    return found


def _span(numbers: Iterable[int]) -> str:
    first, *more = numbers
    return f"rounds {first} to {more[-1]}" if more else f"round {first}"


def _at(cell: CellPlayed, course: Course) -> str:
    """What stands at the parting: a rule, or the end."""
    number = cell.parted or 0
    if number <= len(course.steps):
        return course.steps[number - 1].rule
    if course is cell.played and cell.unanswered is not None:
        return cell.unanswered.rule
    return f"the end ({course.end or 'unfinished'})"


def _course(course: Course) -> str:
    time = (
        ""
        if course.time_us is None
        else f", last kernel {course.incumbent[:12]} ({course.time_us:.1f} us) of round {course.reached}"
    )
    return f"{_rounds(len(course.steps))}, {course.end or 'no end known'}{time}"


def _rounds(number: int) -> str:
    return f"{number} round{'s' * (number != 1)}"


def _saved(saved: int | None) -> str:
    if saved is None:
        return ""
    if saved == 0:
        return ": as many rounds"
    return f": {_rounds(saved)} saved" if saved > 0 else f": {_rounds(-saved)} lost"
