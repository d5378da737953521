"""The command `gpusolver reproduce`: another ledger's kernels measured again here. Parses words and shows progress; decides nothing."""

from __future__ import annotations

import pathlib

import click

from ..events.errors import BadInput, GpuSolverError
from ..events.reader import LedgerReader
from ..events.writer import LedgerWriter
from ..projections.examination import ExaminationView
from ..projections.reproduction import KINDS
from .cli_measure import examine, wide, worded
from .devices import measures, open_executor, refuse_packaged
from .report import legible
from .reproduce import TIMES, begun, reproduction
from .statement import print_reproduction


@click.command("reproduce")
@click.argument("first", metavar="LEDGER", type=click.Path(path_type=pathlib.Path))
@click.option("--ledger", type=click.Path(path_type=pathlib.Path), default=pathlib.Path("reproduction.db"), show_default=True,
              help="What is measured here goes into this ledger; an unfinished one goes on.")  # fmt: skip
@click.option("--only", "kinds", default=",".join(KINDS), show_default=True, help="Which statements, by comma.")
@click.option("--times", type=click.IntRange(1, 1000), default=TIMES, show_default=True, help="Comparisons per pair.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Of the inputs; a random one by default.")
@click.option("--device", type=click.Choice(["auto", "cuda", "cpu"]), default="auto", show_default=True)
@click.pass_context
def reproduce_command(
    context: click.Context, first: pathlib.Path, ledger: pathlib.Path, kinds: str, times: int, seed: int | None, device: str
) -> None:  # fmt: skip
    """Gate and time the kernels of LEDGER again on this machine, and say which of its statements hold here.

    Exit code 0: none was refuted (confirmed, or another chip); 1: at least one was not confirmed; 2: it cannot be done here.
    """
    try:
        view = _reproduced(first, ledger, _kinds(kinds), times, seed, device)
    except GpuSolverError as error:
        worded(error).show()
        context.exit(2)
    click.echo(legible(f"ledger: {ledger}. Check both: gpusolver replay {first} --verify"))
    click.echo(legible(f"gpusolver replay {ledger} --verify --origin {first}"))
    context.exit(1 if any(found.answer == "not confirmed" for found in view.reproduced) else 0)


def _reproduced(
    first: pathlib.Path, ledger: pathlib.Path, kinds: tuple[str, ...], times: int, seed: int | None, device: str
) -> ExaminationView:
    if not measures(device, None):
        raise BadInput(
            "reproduce measures on this machine's GPU, and found none (or no torch for it). Use it on a machine with an NVIDIA "
            "GPU; --device cpu plays it on the stand-in, whose times measure no GPU."
        )
    refuse_packaged(ledger)
    if ledger.resolve() == first.resolve():
        raise BadInput(f"--ledger {ledger}: expected another file than the ledger that is reproduced")
    with LedgerReader(first) as origin:
        reproduction(origin, 0, kinds, times)  # what cannot be asked is refused before a file is made
        executor = open_executor(device, None)
        try:
            with LedgerWriter(ledger) as writer:
                chosen, position = begun(writer, origin)
                request = reproduction(origin, chosen if seed is None else seed, kinds, times, position)
                view = examine(writer, executor, request)
        finally:
            executor.close()
    print_reproduction(view, wide())
    return view


def _kinds(words: str) -> tuple[str, ...]:
    named = tuple(dict.fromkeys(word.strip() for word in words.split(",") if word.strip()))
    if not named or not set(named) <= set(KINDS):
        raise BadInput(f"--only: expected some of {', '.join(KINDS)}; found {words!r}")
    return named
