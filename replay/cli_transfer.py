"""The command `transfer`: words for what a lesson does to problems that it did not see. Never decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, get_args

import click
import msgspec

from ..events.errors import GpuSolverError
from ..events.model import Proposing
from .policy import Played
from .transfer import Effect, Held, Leave, transfer
from .words import printed_table, say


@click.command("transfer")
@click.argument("ledgers", nargs=-1, required=True, metavar="LEDGER...")
@click.option(
    "--leave",
    type=click.Choice(get_args(Leave)),
    default="family",
    show_default=True,
    help="What is left out at a time.",
)
@click.option("--support", default=2, show_default=True, help="Problems that must speak for a proposed clause.")
@click.option(
    "--worth", is_flag=True, help="Ask in the order of worth with a patience of 4, as new runs do, not as registered."
)
@click.option("--json", "as_json", is_flag=True, help="Write every course as JSON.")
def transfer_command(ledgers: tuple[str, ...], leave: str, support: int, worth: bool, as_json: bool) -> None:
    """Play the recorded cells of each LEDGER with and without what the other families (or problems) of all of them teach."""
    policy = Played(evolves=True, patience=4, order="value") if worth else Played(evolves=True)
    bounds = Proposing(support=max(1, support), purity_num=3, purity_den=4)
    try:
        found = transfer(ledgers, cast(Leave, leave), policy, bounds)
    except GpuSolverError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    say(
        f"{', '.join(ledgers)}: cells under the arm on, taught by every other {leave} recorded, beside the same untaught"
    )
    printed_table("cells", [_row(held) for held in found])
    say(summary(found))


def summary(found: Sequence[Held]) -> str:
    """How many cells a lesson helps, hurts, leaves alone, and of how many the record cannot say."""
    counts = ", ".join(f"{effect} {sum(held.effect == effect for held in found)}" for effect in get_args(Effect))
    saved = sum(held.saved for held in found if held.saved is not None)
    admitted = len({rule for held in found for rule in held.admitted})
    return f"{len(found)} cells: {counts}; {saved} wasted rounds saved in all; {admitted} different rules admitted"


def _row(held: Held) -> tuple[str, ...]:
    ends = [
        f"{len(played.played.steps)} rounds, {played.played.end or 'not in the record'}"
        for played in (held.alone, held.taught)
    ]
    ratio = "" if held.ratio is None else f"{held.ratio:.3f}x"
    rules = ", ".join(held.admitted) or "no new rule"
    return held.cell, f"without {held.out}", f"alone: {ends[0]}", f"taught: {ends[1]}", ratio, held.effect, rules
