"""The command `gpusolver ablate`: a run of several arms and its comparison, or the comparison of runs that a ledger holds. Decides nothing."""

from __future__ import annotations

import pathlib

import click
from msgspec import UNSET
from rich.console import Console

from ..events.errors import BadInput, GpuSolverError
from ..events.reader import LedgerReader
from ..projections.contest import Contest, contests
from ..projections.runs import fold
from .ablation import print_ablation
from .cli import play_request, repetitions_of, words
from .costs import round_seconds
from .devices import DEVICES, all_problems
from .registration import RunRequest

ORACLE = "oracle"


@click.command("ablate")
@click.argument("problems", nargs=-1)
@click.option(
    "--arms", default="off,on,off+tabu,on+tabu,random", show_default=True, help="By comma; the oracle is always shown."
)
@click.option("--against", default="on", show_default=True, help="The arm that is compared with every other.")
@click.option("--rounds", default=12, show_default=True, help="Budget of rounds, per cell.")
@click.option("--repetitions", default="", help="A number for all, or problem=number by comma.")
@click.option("--contract", "contracts", default="tf32-allowed", show_default=True, help="By comma.")
@click.option("--pool", type=click.Choice(["flags", "dot"]), default="flags", show_default=True)
@click.option("--rules", "table", default="seed", show_default=True, help="seed, full, a TOML file, or from:LEDGER.")
@click.option("--propose", is_flag=True, help="With --rules from: also the rules that the ledger suggests.")
@click.option("--share-measurements", "share", is_flag=True, help="An arm may take what another arm measured.")
@click.option("--device", type=click.Choice(DEVICES), default="auto", show_default=True)
@click.option(
    "--recording", type=click.Path(path_type=pathlib.Path), help="Ledger that --device recorded answers from."
)
@click.option("--ledger", type=click.Path(path_type=pathlib.Path), default=pathlib.Path("ledger.db"), show_default=True)
@click.option("--resume", is_flag=True, help="Go on with the ledger's unfinished run.")
@click.option("--seed", default=0, show_default=True, help="Registered seed; inputs and the random arm follow from it.")
def ablate_command(
    problems: tuple[str, ...], arms: str, against: str, rounds: int, repetitions: str, contracts: str, pool: str,
    table: str, propose: bool, share: bool, device: str, recording: pathlib.Path | None, ledger: pathlib.Path, resume: bool, seed: int,
) -> None:  # fmt: skip
    """Play PROBLEMS (names, or all) in several arms and say which arm won; without PROBLEMS, compare what --ledger holds."""
    try:
        if problems or resume:
            chosen = all_problems(device, recording) if problems == ("all",) and not resume else problems
            request = RunRequest(
                problems=chosen,
                arms=tuple(arm for arm in words(arms) if arm != ORACLE),
                contracts=words(contracts),
                pool=pool,
                rounds=rounds,
                rules=table,
                propose=propose,
                share=share,
                repetitions=repetitions_of(repetitions, chosen),
                seed=seed,
            )
            play_request(request, device, recording, ledger, resume)
        elif not ledger.exists():
            raise BadInput(f"expected PROBLEMS to play, or a --ledger to compare; found neither (no file {ledger})")
        print_ablation(contests_of(ledger), against, Console())
    except GpuSolverError as error:
        raise click.ClickException(str(error)) from error


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
