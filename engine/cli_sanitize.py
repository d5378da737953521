"""The command `gpusolver sanitize`: a kernel's gate draws under compute-sanitizer. Parses words and prints; writes no ledger."""

from __future__ import annotations

import pathlib

import click

from ..events.errors import GpuSolverError
from ..problems.contract import load
from .fork_client import ForkClient
from .rules import read_text
from .sanitize import TOOLS, Sanitized, Tool, sanitized
from .worker.protocol import Subject


@click.command("sanitize")
@click.argument("kernel", type=click.Path(path_type=pathlib.Path))
@click.argument("problem")
@click.option(
    "--tool", "tools", type=click.Choice(TOOLS), multiple=True, default=("memcheck",), show_default=True,
    help="May be given several times; each runs all draws.",
)  # fmt: skip
@click.option("--small", is_flag=True, help="The problem's small sizes: the tools slow a kernel many times over.")
@click.option("--seed", type=click.IntRange(-(2**63), 2**63 - 1), default=0, show_default=True)
@click.option("--limit", type=click.FloatRange(1), default=600.0, show_default=True, help="Seconds for one tool.")
def sanitize_command(
    kernel: pathlib.Path, problem: str, tools: tuple[Tool, ...], small: bool, seed: int, limit: float
) -> None:
    """Run KERNEL, a file with run(...), on the gate's draws of PROBLEM under compute-sanitizer. Exit code 1 where it finds anything."""
    try:
        source = read_text(kernel, str(kernel), "a Python file in UTF-8 with run(...)")
        of = load(problem)
        subject = Subject(reference=of.reference, shape=of.small if small else of.shape, seed=seed)
        found = [_one(source, subject, tool, limit) for tool in dict.fromkeys(tools)]
    except GpuSolverError as error:
        raise click.ClickException(str(error)) from error
    if any(each.found for each in found):
        raise SystemExit(1)


def _one(source: str, subject: Subject, tool: Tool, limit_s: float) -> Sanitized:
    client = ForkClient()  # for the environment and the folder of candidates alone: no server is started
    try:
        seen = sanitized(source, subject, tool, client.environment(), limit_s)
    finally:
        client.close()
    if seen.found:
        click.echo(seen.text.rstrip())
    click.echo(f"{tool}: {seen.found or 'nothing'} found in {seen.calls} calls")
    return seen
