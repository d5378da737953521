"""The command `check-proof`: words and exit codes (0 it holds, 1 it does not, 2 no proof). Never decides."""

from __future__ import annotations

import os
from typing import BinaryIO

import click
import msgspec

from ..events.errors import GpuSolverError
from .findings import encodable, printable
from .seal import Anchors, read_note
from .seal_proof import LARGEST, check_proof
from .words import say


@click.command("check-proof")
@click.argument("proof", type=click.File("rb"))
@click.option(
    "--checkpoint", "checkpoints", metavar="FILE", multiple=True, help="A checkpoint kept elsewhere; repeatable."
)
@click.option(
    "--vkey", metavar="KEY", help="The sealer's verifier key, from its holder: the roots must be signed by it."
)
@click.option("--json", "as_json", is_flag=True, help="Write the outcome as JSON.")
@click.pass_context
def check_proof_command(
    context: click.Context, proof: BinaryIO, checkpoints: tuple[str, ...], vkey: str | None, as_json: bool
) -> None:
    """Check PROOF, a file (or -) that gpusolver prove printed, without the ledger.

    Exit code 0: it holds; 1: it does not; 2: it is no proof. What its roots rest on is printed: by itself a proof vouches for nothing.
    """
    try:
        notes = tuple(map(read_note, checkpoints))
        checked = check_proof(proof.read(LARGEST), Anchors(checkpoints=notes, vkey=vkey))
    except (GpuSolverError, OSError) as error:
        if as_json:
            click.echo(msgspec.json.encode({"error": encodable(str(error))}).decode())
        else:
            click.echo(
                f"gpusolver: {printable(os.fspath(getattr(proof, 'name', '-')))}: {printable(str(error))}", err=True
            )
        context.exit(2)
    if as_json:
        click.echo(msgspec.json.encode(checked).decode())
    else:
        say(f"{checked.proof}: {checked.says}: {'DOES NOT HOLD' if checked.findings else 'holds'}")
        for root in checked.roots:
            say(root, 2)
        for finding in checked.findings:
            say(f"{finding.kind}: expected {finding.expected}; found {finding.found}", 2)
    context.exit(1 if checked.findings else 0)
