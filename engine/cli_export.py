"""The command `gpusolver export`: the winner of a ledger as a file that runs without gpusolver. Measures nothing."""

from __future__ import annotations

import pathlib

import click

from ..events.errors import BadInput, GpuSolverError
from ..events.reader import LedgerReader
from ..problems.contract import CONTRACTS
from .export import Wanted, exported


@click.command("export")
@click.argument("ledger", type=click.Path(path_type=pathlib.Path))
@click.argument("problem")
@click.option("-o", "--output", type=click.Path(path_type=pathlib.Path), required=True, help="The file to write.")
@click.option("--contract", type=click.Choice(CONTRACTS), help="Needed where the run has the problem under several.")
@click.option("--arm", default="on", show_default=True)
@click.option("--pool", type=click.Choice(["flags", "dot"]))
@click.option("--repetition", default=1, show_default=True)
@click.option("--run", "run", default="", help="run1, run2, ...; else the last one that has the problem.")
@click.option("--force", is_flag=True, help="Write over an existing file.")
def export_command(
    ledger: pathlib.Path, problem: str, output: pathlib.Path, contract: str | None, arm: str, pool: str | None,
    repetition: int, run: str, force: bool,
) -> None:  # fmt: skip
    """Write the winner of PROBLEM in LEDGER to a file that runs without gpusolver; where it is from stands above it."""
    wanted = Wanted(problem=problem, contract=contract or "", arm=arm, pool=pool or "", repetition=repetition, run=run)
    try:
        if output.exists() and not force:
            raise BadInput(f"-o {output}: expected a new file, found one there. Name another, or add --force.")
        with LedgerReader(ledger) as reader:
            text = exported(reader, ledger.name, wanted)
        try:
            output.write_text(text, encoding="utf-8", newline="")
        except OSError as error:
            raise BadInput(f"-o {output}: cannot be written: {error.strerror}") from None
    except GpuSolverError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{output}: {text.splitlines()[0].removeprefix('# ')}")
