"""The commands `withhold` and `restore`. Parses words and prints what was done; decides nothing."""

from __future__ import annotations

import pathlib

import click
import msgspec

from ..events.errors import BadInput, GpuSolverError
from .withheld_texts import Withheld
from .withholding import read_withheld, restore, withhold

_FILE = click.Path(path_type=pathlib.Path)


@click.command("withhold")
@click.argument("ledger", type=_FILE)
@click.option("-o", "--output", "target", type=_FILE, required=True, help="The ledger to write.")
@click.option(
    "--list", "beside", type=_FILE, help="What was left out; by default OUTPUT with .withheld.json for its ending."
)
def withhold_command(ledger: pathlib.Path, target: pathlib.Path, beside: pathlib.Path | None) -> None:
    """Write LEDGER without the texts of imported files, for those who may see what was measured and not the texts.

    Events and head stay. The list beside says how every text is made again from the originals, and holds none of their lines.
    """
    beside = beside or target.with_suffix(".withheld.json")
    try:
        if beside.exists() or beside.resolve() == target.resolve():
            raise BadInput(
                f"{beside}: expected a place for the list, found a file, which is not written over. Name another --list."
            )
        made = _written(ledger, target, beside)
    except (GpuSolverError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(
        f"{target}: without {len(made.originals) + len(made.texts)} texts, of {len(made.originals)} imported files; head {made.head}"
    )
    click.echo(f"Check it: gpusolver replay {target} --verify --withheld {beside}")
    click.echo(f"Make it whole: gpusolver restore {target} --list {beside} --from DIR -o FILE, where DIR has the files")


def _written(ledger: pathlib.Path, target: pathlib.Path, beside: pathlib.Path) -> Withheld:
    """The ledger and its list, each under its name once it is whole; the place of the list is tried first."""
    part = beside.with_name(f"{beside.name}.part")
    part.write_bytes(b"")
    try:
        made = withhold(ledger, target)
        part.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1))
        part.rename(beside)
    finally:
        part.unlink(missing_ok=True)
    return made


@click.command("restore")
@click.argument("ledger", type=_FILE)
@click.option("--list", "beside", type=_FILE, required=True, help="What gpusolver withhold has written beside it.")
@click.option(
    "--from", "folder", type=click.Path(path_type=pathlib.Path, exists=True, file_okay=False), required=True,
    help="Folder with the imported files, such as a KernelBench clone; they are known by their digests.",
)  # fmt: skip
@click.option("-o", "--output", "target", type=_FILE, required=True, help="The ledger to write.")
def restore_command(ledger: pathlib.Path, beside: pathlib.Path, folder: pathlib.Path, target: pathlib.Path) -> None:
    """Write LEDGER with the texts that were left out of it, made again from the imported files."""
    try:
        restore(ledger, read_withheld(beside), folder, target)
    except (GpuSolverError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{target}: whole. Check it: gpusolver replay {target} --verify")
