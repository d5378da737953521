"""The commands `keygen`, `seal` and `prove`. Parses words and prints what was done; decides nothing."""

from __future__ import annotations

import pathlib
from hashlib import file_digest

import click
import msgspec

from ..events.errors import BadInput, GpuSolverError
from .devices import refuse_packaged
from .seal import prove_event, prove_growth, seal
from .seal_keys import generate, load


@click.command("keygen")
@click.argument("path", type=click.Path(path_type=pathlib.Path))
@click.option("--name", default="gpusolver", show_default=True, help="Whose key it is, such as example.com/ledgers.")
def keygen_command(path: pathlib.Path, name: str) -> None:
    """Make an Ed25519 key to seal ledgers with: the private key in PATH, the verifier key on the output."""
    try:
        key = generate(path, name)
    except GpuSolverError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"private key: {path} (mode 600; whoever has it can sign in your name)", err=True)
    click.echo("verifier key, for others, by another way than the ledger:", err=True)
    click.echo(key.vkey)


@click.command("seal")
@click.argument("ledger", type=click.Path(path_type=pathlib.Path))
@click.option("--key", "key_file", type=click.Path(path_type=pathlib.Path), help="Private key of gpusolver keygen.")
@click.option("--origin", help="Name of this log in the checkpoint; the key's name by default.")
@click.option(
    "-o", "--checkpoint", type=click.Path(path_type=pathlib.Path), help="File for the checkpoint; LEDGER.<size>.checkpoint by default."
)  # fmt: skip
def seal_command(
    ledger: pathlib.Path, key_file: pathlib.Path | None, origin: str | None, checkpoint: pathlib.Path | None
) -> None:
    """Seal all events of LEDGER: append their tree's root, signed with --key, and export it as a checkpoint.

    What is kept elsewhere (checkpoint, head, the file's SHA-256) later shows whether anything was changed or cut off.
    """
    try:
        refuse_packaged(ledger)
        key = None if key_file is None else load(key_file)
        sealed = seal(ledger, key, origin, checkpoint)
        with ledger.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
    except GpuSolverError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"sealed: the first {sealed.size} events, root {sealed.root}, by event {sealed.seq}")
    if key is None:
        click.echo("not signed, root only: whoever can write the file can write another root (--key FILE signs)")
    else:
        click.echo(f"signed by {key.name}; verifier key {key.vkey}")
    click.echo(f"checkpoint: {sealed.checkpoint}")
    click.echo(f"head: {sealed.head}")
    click.echo(f"file SHA-256: {digest} (until the next append)")
    click.echo("Keep these four elsewhere. Check them:")
    vkey = "" if key is None else f" --vkey {key.vkey}"
    click.echo(
        f"gpusolver replay {ledger} --verify --checkpoint {sealed.checkpoint}{vkey} --head {sealed.head} --file-digest {digest}"
    )


@click.command("prove")
@click.argument("ledger", type=click.Path(path_type=pathlib.Path))
@click.option("--event", "seq", type=int, help="Prove that this event is in the ledger.")
@click.option("--size", type=int, help="... among so many; by default those of the last seal that covers it.")
@click.option("--from", "old", type=int, help="Prove that the ledger only grew since it had so many events.")
@click.option("--to", "new", type=int, help="... up to so many; by default those of the last seal after them.")
def prove_command(ledger: pathlib.Path, seq: int | None, size: int | None, old: int | None, new: int | None) -> None:
    """Print a proof as JSON: one event is included, or one state of LEDGER continues another (gpusolver check-proof)."""
    try:
        if (seq is None) == (old is None) or (seq is None and size is not None) or (old is None and new is not None):
            raise BadInput(
                "prove: expected --event SEQ [--size N], or --from SIZE [--to SIZE]; found neither, or parts of both"
            )
        if seq is not None:
            proof: msgspec.Struct = prove_event(ledger, seq, size)
        else:
            assert old is not None  # by the check above
            proof = prove_growth(ledger, old, new)
    except GpuSolverError as error:
        raise click.ClickException(str(error)) from error
    click.echo(msgspec.json.format(msgspec.json.encode(proof), indent=2).decode())
