"""The command `diff`: words and exit codes (0 the same, 1 differences, 2 unreadable). Never decides.

What the engine makes of a ledger comes as data from the command line's root; nothing of the engine is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
import msgspec

from ..events.errors import BadInput, GpuSolverError
from .cli import unreadable
from .diff import Diff, FirstEvent, diff, diff_projections, position
from .parting import Parted, Parting
from .projected import Difference
from .words import say

Projector = Callable[[str, int | None], object]
"""Path and number of events (None: all) to another program's projections, as JSON values."""


@click.command("diff")
@click.argument("left")
@click.argument("right", required=False)
@click.option("--against-engine", is_flag=True, help="Compare LEFT with what the engine's own projections make of it.")
@click.option("--json", "as_json", is_flag=True, help="Write the differences as JSON.")
@click.pass_context
def diff_command(context: click.Context, left: str, right: str | None, against_engine: bool, as_json: bool) -> None:
    """Compare what LEFT and RIGHT say, and say why they parted; each is a ledger, or LEDGER@N for its first N events.

    Exit code 0: the same; 1: differences; 2: a ledger cannot be read.
    """
    try:
        found = _against_engine(context, left, right) if against_engine else diff(left, _given(right))
    except GpuSolverError as error:
        unreadable(context, error, as_json)
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
    else:
        _print_diff(found)
    context.exit(0 if found.same else 1)


def _given(right: str | None) -> str:
    if right is None:
        raise BadInput("diff: expected two ledgers, or one and --against-engine; found one")
    return right


def _against_engine(context: click.Context, left: str, right: str | None) -> Diff:
    if right is not None:
        raise BadInput(f"diff --against-engine: expected one ledger, found also {right}")
    projector: Projector | None = context.find_root().obj
    if projector is None:
        raise BadInput("diff --against-engine: this command line has no engine; use `gpusolver diff`")
    path, upto = position(left)
    return diff_projections(left, "the engine's projections", projector(str(path), upto))


_MOST = 3


def _print_diff(found: Diff) -> None:
    for side, findings in ((found.left, found.left_findings), (found.right, found.right_findings)):
        if findings:
            # A position may lie within a round, whose other events are then missing; no other command takes one.
            say(
                f"{side} has {len(findings)} findings of its own"
                + (", the first of them:" if len(findings) > _MOST else ":")
            )
            for found_here in findings[:_MOST]:
                say(
                    f"event {found_here.seq}: {found_here.kind}: expected {found_here.expected}; found {found_here.found}",
                    2,
                )
    if found.same:
        say(_SAME_PROJECTIONS if found.parted is None else _SAME)
        return
    if found.first_event is not None:
        _print_first(found.first_event)
    if found.parted is not None:
        _print_parted(found.parted)
    say(f"what they say: {len(found.differences)} differences" if found.differences else "what they say: no difference")
    _print_differences(found.differences, 2)


_SAME = "no difference: the same events, tables, rounds, claims and figures"
_SAME_PROJECTIONS = "no difference: the same tables, confidences, rounds, claims and figures"


def _print_first(first: FirstEvent) -> None:
    say(f"first event that differs: event {first.seq}" + (f", in {', '.join(first.fields)}" if first.fields else ""))
    _print_sides(first.left, first.right, 2)
    _print_fed(first.fed_by, 2)


def _print_parted(parted: Parted) -> None:
    if parted.ground:
        say("what was fixed before measuring differs:")
        _print_differences(parted.ground, 2)
    if not parted.partings:
        say(f"decisions: the same in each of the {parted.cells} cells that both have, as far as both got")
        return
    say(f"decisions: {len(parted.partings)} of the {parted.cells} cells that both have parted")
    for parting in parted.partings:
        _print_parting(parting)


def _print_parting(parting: Parting) -> None:
    say(f"{parting.cell}, round {parting.round}: {parting.what} (events {parting.left_seq} and {parting.right_seq})", 2)
    _print_sides(parting.left, parting.right, 4)
    _print_fed(parting.fed_by, 4)


def _print_fed(fed_by: Iterable[Difference], indent: int) -> None:
    for difference in fed_by:
        say(f"fed by {difference.what}: {_shown(difference.left)} against {_shown(difference.right)}", indent)


def _print_differences(found: Iterable[Difference], indent: int) -> None:
    for difference in found:
        fields = f": {', '.join(difference.fields)}" if difference.fields else ""
        say(difference.what + fields, indent)
        _print_sides(difference.left, difference.right, indent + 2)


def _print_sides(left: str | None, right: str | None, indent: int) -> None:
    say(f"- {_shown(left)}", indent)
    say(f"+ {_shown(right)}", indent)


def _shown(value: str | None) -> str:
    return "(absent)" if value is None else value
