"""The command `gpusolver doctor`: what works here, what does not, what to do. Changes nothing; decides nothing."""

from __future__ import annotations

import textwrap

import click
import msgspec

from .doctor import Examined, Line, examine
from .surroundings import Surroundings


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Write every line as JSON.")
@click.pass_context
def doctor_command(context: click.Context, as_json: bool) -> None:
    """Look at this machine: what works, what does not, and what to do about it. Reads settings, and sets none.

    Exit code 0: a recorded run and a verification work here; 1: they do not.
    """
    found = examine(Surroundings())
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
    else:
        _print(found)
    context.exit(0 if found.recorded else 1)


def _print(found: Examined) -> None:
    for line in found.lines:
        _print_line(line)
    click.echo()
    click.echo(f"recorded runs and verification: {'work here' if found.recorded else 'DO NOT WORK HERE, see above'}")
    click.echo(f"measuring on this machine: {'works' if found.measured else 'does not work, see above'}")


def _print_line(line: Line) -> None:
    click.echo(f"{line.state:8} {line.name}: {_legible(line.found)}")
    if line.advice:
        click.echo(textwrap.fill(_legible(line.advice), 118, initial_indent=" " * 9, subsequent_indent=" " * 9))


def _legible(text: str) -> str:
    """What tools and paths say must not steer a terminal."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)
