"""The commands that act: `gpusolver run` and `gpusolver report`. Parses words and shows progress; decides nothing."""

from __future__ import annotations

import pathlib

import click
from click.core import ParameterSource
from msgspec import UNSET
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ..events.errors import BadInput, GpuSolverError
from ..events.reader import LedgerReader
from ..events.writer import LedgerWriter
from .cli_objective import objective_of
from .devices import DEVICES, all_problems, default_recording, open_executor, refuse_packaged
from .executor import Executor
from .generators.registry import DEFAULT
from .generators.registry import NAMES as GENERATORS
from .importing import imported as imported_from
from .registration import REFERENCE_BATCH, STATISTICS, RunRequest, check_request, register
from .run import Run

OWN_FILES = ("module", "catalogue")
_RESTRICTION = (
    "Under pool 'flags' the prescription of fp32_no_tensorcore changes precision flags only, as in the reference experiment: "
    "a rewrite with a TF32 dot would end it in one round (--pool dot shows that). "
    "Arm off+tabu (never repeat an inert prescription) shows what mere memory gives."
)


@click.command("run")
@click.argument("targets", nargs=-1)
@click.option(
    "--problems",
    default=",".join(REFERENCE_BATCH),
    show_default=True,
    help="Names by comma, or 'all'; of a recording, all that it holds.",
)
@click.option("--arms", default="off,on", show_default=True, help="off, on, off+tabu, on+tabu, random.")
@click.option("--rounds", default=12, show_default=True, help="Rounds at most, per cell.")
@click.option("--repetitions", default="", help="A number for all, or problem=number by comma.")
@click.option(
    "--contract", "contracts", default="tf32-allowed", show_default=True, help="Precision contracts by comma."
)
@click.option("--pool", type=click.Choice(["flags", "dot"]), default="flags", show_default=True)
@click.option("--rules", "table", default="seed", show_default=True, help="seed, full, a TOML file, or from:LEDGER.")
@click.option("--propose", is_flag=True, help="With --rules from: also the rules that the ledger suggests.")
@click.option("--share-measurements", "share", is_flag=True, help="An arm may take what another arm measured.")
@click.option(
    "--generators",
    default="",
    show_default="catalogue; module,catalogue for files of yours",
    help=f"The chain, by comma: {', '.join(GENERATORS)}.",
)
@click.option("--device", type=click.Choice(DEVICES), default="auto", show_default=True)
@click.option(
    "--recording", type=click.Path(path_type=pathlib.Path), help="Ledger that --device recorded answers from."
)
@click.option("--ledger", type=click.Path(path_type=pathlib.Path), default=pathlib.Path("ledger.db"), show_default=True)
@click.option(
    "--kernelbench", type=click.Path(path_type=pathlib.Path, exists=True, file_okay=False), help="A KernelBench clone."
)
@click.option("--resume", is_flag=True, help="Go on with the ledger's unfinished run.")
@click.option("--blocks", type=int, show_default=str(STATISTICS.blocks), help="ABBA blocks of a pair at most.")
@click.option("--seed", default=0, show_default=True, help="Registered seed; every input follows from it.")
@click.option(
    "--objective",
    type=click.Choice(["latency", "energy", "thermal"]),
    default="latency",
    show_default=True,
    help="What the loop decides by: time, energy of a call, or rise of temperature at one call rate.",
)
@click.option(
    "--thermal", type=click.Path(path_type=pathlib.Path), help="TOML: calls_per_s, load, bound, idle_w, stages."
)
@click.option(
    "--latency-bound",
    type=click.FloatRange(1, 1000),
    show_default="2; thermal: its file's",
    help="Times the fastest incumbent's time that a frugal kernel may take.",
)
@click.pass_context
def run_command(
    context: click.Context, targets: tuple[str, ...], problems: str, arms: str, rounds: int, repetitions: str,
    contracts: str, pool: str, table: str, propose: bool, share: bool, generators: str, device: str,
    recording: pathlib.Path | None, ledger: pathlib.Path, kernelbench: pathlib.Path | None, resume: bool, blocks: int | None, seed: int,
    objective: str, thermal: pathlib.Path | None, latency_bound: float | None,
) -> None:  # fmt: skip
    """Profile, prescribe, rewrite, prove: the ON/OFF ablation of a batch of problems, recorded in a ledger.

    TARGETS are files to import: my_kernel.py, kernelbench:level1/23, kernelbench:level1,
    kernelbench:level1/first24 (the first by SHA-256 of their path; all with --kernelbench DIR).
    """
    try:
        imported = {} if resume else imported_from(targets, kernelbench, device)
        alone = bool(targets) and context.get_parameter_source("problems") is ParameterSource.DEFAULT
        every = problems == "all" and not resume
        listed = () if alone else all_problems(device, recording) if every else words(problems)
        wanted = objective_of(objective, thermal, latency_bound)
    except GpuSolverError as error:
        raise click.ClickException(str(error)) from error
    chosen = (*listed, *imported)
    request = RunRequest(
        problems=chosen,
        imported=imported,
        arms=words(arms),
        contracts=words(contracts),
        pool=pool,
        rounds=rounds,
        rules=table,
        propose=propose,
        share=share,
        repetitions=repetitions_of(repetitions, chosen),
        blocks=UNSET if blocks is None else blocks,
        seed=seed,
        objective=wanted,
        generators=words(generators) or (OWN_FILES if alone else DEFAULT),
    )
    try:
        play_request(request, device, recording, ledger, resume)
    except GpuSolverError as error:
        raise click.ClickException(str(error)) from error


def play_request(
    request: RunRequest, device: str, recording: pathlib.Path | None, ledger: pathlib.Path, resume: bool
) -> None:
    """Play what was asked for, or with `resume` the ledger's unfinished run; BadInput before anything is written."""
    if resume and not ledger.exists():
        raise BadInput(f"--resume: expected the ledger of an unfinished run, found no file {ledger}")
    if not resume:
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
        _play(ledger, executor, None if resume else request)
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


def words(text: str) -> tuple[str, ...]:
    """The words between commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def repetitions_of(text: str, problems: tuple[str, ...]) -> dict[str, int]:
    """`3` for all problems, or `kb_matmul_scalar=3,matmul=2`."""
    if not text:
        return {}
    try:
        if "=" not in text:
            return dict.fromkeys(problems, int(text))
        return {name: int(number) for name, _, number in (word.partition("=") for word in words(text))}
    except ValueError:
        raise click.ClickException(
            str(BadInput(f"--repetitions: expected a number or problem=number by comma, found {text!r}"))
        ) from None
