"""The command `gpusolver ablate`: a run of several arms and its comparison, or the comparison of runs that a ledger holds. Decides nothing."""

from __future__ import annotations

import pathlib
from typing import Any

import click
from msgspec import UNSET
from msgspec.structs import replace
from rich.console import Console

from ..events.errors import BadInput, GpuSolverError
from ..events.reader import LedgerReader
from ..projections.cell_plan import arm_policy
from ..projections.contest import Contest, contests
from ..projections.runs import fold
from .ablation import print_ablation
from .cli import play_request
from .costs import round_seconds
from .requesting import run_options, words_said
from .requesting import words as words_of

ORACLE = "oracle"


@click.command("ablate")
@run_options(
    arms="off,on,off+tabu,on+tabu,random",
    problems="none: compare what --ledger holds",
    comparisons="none",
    offers="always",
)
@click.option("--against", default="on", show_default=True, help="The arm that is compared with every other.")
@click.option(
    "--also",
    type=click.Path(path_type=pathlib.Path, exists=True, dir_okay=False),
    multiple=True,
    help="A further ledger whose problems are compared too; may be given several times.",
)
def ablate_command(against: str, also: tuple[pathlib.Path, ...], **words: Any) -> None:
    """Play problems in several arms and say which arm won, beside the oracle; without any, compare what --ledger holds.

    It reads the rounds alone, so by default nothing is compared after them: --comparisons all, or some, if you want speed-ups too.
    And by default a generator may offer a source again and again: an arm without memory is to have none.

    TARGETS are those of `gpusolver run`: names of packaged problems, all, my_kernel.py, kernelbench:level1/first24.
    """
    try:
        asked = words_said(words)
        if asked.objective != "latency":
            raise BadInput(
                f"--objective {asked.objective}: expected latency, for arms are compared by time. Use gpusolver run, and gpusolver report."
            )
        arm_policy(against)
        if asked.named or asked.resume:
            play_request(replace(asked, arms=_without_oracle(asked.arms)))
        elif not asked.ledger.exists():
            raise BadInput(
                f"expected problems to play, or a --ledger to compare; found neither (no file {asked.ledger})"
            )
        found = [contest for ledger in dict.fromkeys((asked.ledger, *also)) for contest in contests_of(ledger)]
        print_ablation(found, against, Console())
    except GpuSolverError as error:
        raise click.ClickException(str(error)) from error


def _without_oracle(arms: str) -> str:
    """The arms to play: the oracle is seen in hindsight, and always shown."""
    return ",".join(arm for arm in words_of(arms) if arm != ORACLE)


def contests_of(ledger: pathlib.Path) -> tuple[Contest, ...]:
    """Every contest of every run of a ledger, with what its rounds took."""
    with LedgerReader(ledger) as reader:
        records = [(stored.stream, stored.event) for stored in reader.recorded()]
        found: list[Contest] = []
        for run, view in fold(records).items():
            if view.registration is not None and view.registration.statistics.objective is not UNSET:
                raise BadInput(
                    f"{ledger}: expected runs whose verdicts are by latency, found an objective in {run}. Arms are compared by time: "
                    "gpusolver report has their head-to-heads."
                )
            own = [event for stream, event in records if stream.startswith(f"{run}/")]
            found += contests(view, round_seconds(run, own, reader.artifact))
    return tuple(found)
