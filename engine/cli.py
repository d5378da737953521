"""The commands that act: `gpusolver run` and `gpusolver report`. Parses words and shows progress; decides nothing."""

from __future__ import annotations

import pathlib
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ..events.errors import BadInput, GpuSolverError
from ..events.reader import LedgerReader
from ..events.writer import LedgerWriter
from .devices import default_recording, open_executor, refuse_packaged
from .executor import Executor
from .registration import REFERENCE_BATCH, RunRequest, check_request, register
from .requesting import Words, request_of, run_options, words_said
from .run import Run

_RESTRICTION = (
    "Under pool 'flags' the prescription of fp32_no_tensorcore changes precision flags only, as in the reference experiment: "
    "a rewrite with a TF32 dot would end it in one round (--pool dot shows that). "
    "Arm off+tabu (never repeat an inert prescription) shows what mere memory gives."
)


@click.command("run")
@run_options(arms="off,on", problems=",".join(REFERENCE_BATCH), comparisons="all", offers="once")
def run_command(**words: Any) -> None:
    """Profile, prescribe, rewrite, prove: the ON/OFF ablation of a batch of problems, recorded in a ledger.

    TARGETS are names of packaged problems, and files to import: my_kernel.py, kernelbench:level1/23, kernelbench:level1,
    kernelbench:level1/first24 (the first by SHA-256 of their path; all with --kernelbench DIR).
    """
    try:
        play_request(words_said(words), REFERENCE_BATCH)
    except GpuSolverError as error:
        raise click.ClickException(str(error)) from error


def play_request(asked: Words, otherwise: tuple[str, ...] = ()) -> None:
    """Play what was asked for, or with `resume` the ledger's unfinished run; BadInput before anything is written."""
    device, recording, ledger, resume = asked.device, asked.recording, asked.ledger, asked.resume
    request = None if resume else request_of(asked, otherwise)
    if resume and not ledger.exists():
        raise BadInput(f"--resume: expected the ledger of an unfinished run, found no file {ledger}")
    if request is not None:
        check_request(request)
    refuse_packaged(ledger)
    executor = open_executor(device, recording)
    source = recording or default_recording()
    if executor.origin is not None and ledger.resolve() == source.resolve():
        executor.close()
        raise BadInput(
            f"--ledger {ledger}: expected another file than the recording {source}, which is never written into."
        )
    try:
        _play(ledger, executor, request)
    finally:
        executor.close()


@click.command("report")
@click.argument("ledger", type=click.Path(path_type=pathlib.Path))
def report_command(ledger: pathlib.Path) -> None:
    """Print the tables of every run and examination in a ledger, from its events alone."""
    from ..projections.examination import fold as fold_examinations
    from ..projections.runs import fold
    from .remarks import print_remarks
    from .report import plain, print_ground, print_report
    from .report_speedups import print_speedups
    from .statement import print_statement

    console = Console()
    try:
        with LedgerReader(ledger) as reader:
            records = [(stored.stream, stored.event) for stored in reader.recorded()]
            for run, view in fold(records).items():
                console.rule(plain(run))
                print_ground(view, console)
                print_report(view, console)
                print_speedups(view, console)
                print_remarks(view, reader.artifact, console)
            for exam, examination in fold_examinations(records).items():
                console.rule(plain(exam))
                print_statement(examination, reader.artifact, console)
    except GpuSolverError as error:
        raise click.ClickException(str(error)) from error


def _play(path: pathlib.Path, executor: Executor, request: RunRequest | None) -> None:
    from .remarks import print_remarks
    from .report import print_ground, print_report
    from .report_speedups import print_speedups

    console = Console()
    device = executor.facts().get("device", "unknown device")
    where = "recorded measurements of" if executor.origin else "measuring on"
    console.print(f"{where} {device}; ledger {path}", markup=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    if request is not None:  # what cannot be answered is refused before there is a file
        executor.check(register("run1", request, executor))
    with LedgerWriter(path) as ledger, Progress(*columns, console=console) as progress:
        task = progress.add_task("cells", total=1)

        def watch(done: int, total: int, text: str) -> None:
            progress.update(task, completed=done, total=total)
            progress.console.print(f"  {text}", highlight=False, markup=False)

        run = Run(ledger, executor, watch)
        view = run.resume() if request is None else run.start(request)
        progress.update(task, completed=progress.tasks[0].total or 1)
    print_ground(view, console)
    print_report(view, console)
    print_speedups(view, console)
    with LedgerReader(path) as reader:
        print_remarks(view, reader.artifact, console)
    console.print(_RESTRICTION)
    console.print(f"ledger: {path}. Check it: gpusolver replay {path} --verify", markup=False)
