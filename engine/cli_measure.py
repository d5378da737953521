"""The commands that measure without a loop: `gpusolver explain` and `gpusolver qualify`. Parses words and shows progress; decides nothing."""

from __future__ import annotations

import pathlib
import tempfile

import click
from msgspec.structs import replace
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ..events.errors import BadInput, GpuSolverError
from ..events.reader import LedgerReader
from ..events.writer import LedgerWriter
from ..problems.contract import CONTRACTS, load
from ..projections.examination import ExaminationView, fold
from .devices import DEVICES, default_examination, measures, open_executor
from .examination import Examination, ExaminationRequest
from .examining import Subject
from .executor import Executor
from .explain import print_explanation
from .qualification import SUITES, request
from .rules import rules
from .statement import print_statement


@click.command("explain")
@click.argument("problem")
@click.option(
    "--source",
    type=click.Path(path_type=pathlib.Path),
    help="A kernel of yours for this problem: Python with run(...).",
)
@click.option("--contract", type=click.Choice(CONTRACTS), default="tf32-allowed", show_default=True)
@click.option("--rules", "table", default="full", show_default=True, help="Rule table: seed, full, or a TOML file.")
@click.option("--device", type=click.Choice(DEVICES), default="auto", show_default=True)
@click.option(
    "--recording",
    type=click.Path(path_type=pathlib.Path),
    help="Ledger whose examination to print instead of measuring.",
)
@click.option("--ledger", type=click.Path(path_type=pathlib.Path), help="Keep the examination in this ledger.")
@click.option(
    "--timeline", type=click.Path(path_type=pathlib.Path), help="SQLite export of nsys, instead of our own timeline."
)
@click.option(
    "--ncu-report",
    type=click.Path(path_type=pathlib.Path),
    help="A report file of ncu on this kernel, to compare with.",
)
@click.option("--ncu", is_flag=True, help="Run Nsight Compute beside (10 to 20 s).")
@click.option("--energy", is_flag=True, help="Energy per call and temperature (7 s).")
def explain_command(
    problem: str, source: pathlib.Path | None, contract: str, table: str, device: str, recording: pathlib.Path | None,
    ledger: pathlib.Path | None, timeline: pathlib.Path | None, ncu_report: pathlib.Path | None, ncu: bool, energy: bool,
) -> None:  # fmt: skip
    """Where the time of PROBLEM's starting kernel (or of --source) goes, which rules fire on it, and why."""
    try:
        if not measures(device, recording):
            given = [
                word
                for word, value in (("--source", source), ("--timeline", timeline), ("--ncu-report", ncu_report))
                if value
            ]
            _explain_recorded(recording or default_examination(), problem, given)
            return
        subject = _subject(problem, source, contract, timeline)
        asked = ExaminationRequest(
            purpose=f"explain {problem}",
            subjects=(subject,),
            rules=rules(table),
            roles=("timeline", "warm", "compiled", "kernels", *(("energy",) if energy else ())),
            ncu=(subject.name,) if ncu else (),
            reports={} if ncu_report is None else {subject.name: ncu_report},
        )
        with tempfile.TemporaryDirectory(prefix="gpusolver-explain-") as folder:
            path = ledger or pathlib.Path(folder, "ledger.db")
            view = _play(path, open_executor(device, None), asked)
            with LedgerReader(path) as reader:
                print_explanation(view, subject.name, reader.artifact, _wide())
        if ledger:
            click.echo(f"ledger: {ledger}. Check it: gpusolver replay {ledger} --verify")
    except GpuSolverError as error:
        raise click.ClickException(str(error)) from error


@click.command("qualify")
@click.option("--suite", "suites", default=",".join(SUITES), show_default=True, help="Suites by comma.")
@click.option(
    "--half", type=click.Choice(["", "calibration", "held-out"]), default="", help="One half of the planted kernels."
)
@click.option("--times", default=120, show_default=True, help="Comparisons per pair.")
@click.option("--device", type=click.Choice(["auto", "cuda", "cpu"]), default="auto", show_default=True)
@click.option(
    "--ledger", type=click.Path(path_type=pathlib.Path), default=pathlib.Path("qualification.db"), show_default=True
)
@click.option("--ncu", is_flag=True, help="Nsight Compute's own rules on the planted hits too (2 s each).")
@click.option("--seed", default=0, show_default=True)
def qualify_command(
    suites: str, half: str, times: int, device: str, ledger: pathlib.Path, ncu: bool, seed: int
) -> None:
    """Put the measurement itself to the test on this GPU: identical arms, a known slowdown, planted bottlenecks, a second collector."""
    try:
        if not measures(device, None):
            raise BadInput(
                f"qualify measures this machine's GPU, and found none. gpusolver report {default_examination()} shows a recorded one."
            )
        asked = [request(word.strip(), half, times, ncu, seed) for word in suites.split(",") if word.strip()]
        if not asked:
            raise BadInput(f"--suite: expected some of {', '.join(SUITES)}; found none")
        executor = open_executor(device, None)
        try:
            views = [_examine(ledger, executor, each) for each in asked]
        finally:
            executor.close()
        with LedgerReader(ledger) as reader:
            for view in views:
                print_statement(view, reader.artifact, _wide())
    except GpuSolverError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"ledger: {ledger}. Check it: gpusolver replay {ledger} --verify")


def _subject(problem: str, source: pathlib.Path | None, contract: str, timeline: pathlib.Path | None) -> Subject:
    known = load(problem)
    text = known.start if source is None else _text(source)
    subject = Subject(name=problem if source is None else source.name, problem=known, contract=contract, source=text)
    if timeline is None:
        return subject
    from .worker.nsys_export import read_export

    return replace(subject, given={"timeline": read_export(timeline)})


def _text(path: pathlib.Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--source {path}: expected a Python file in UTF-8 with run(...), found {error}") from None


def _explain_recorded(path: pathlib.Path, problem: str, given: list[str]) -> None:
    """Print what a recorded examination says of the problem's starting kernel."""
    if given:
        raise BadInput(
            f"{given[0]} needs a GPU to measure on, and none is used here. Use --device cuda on a machine that has one."
        )
    load(problem)
    with LedgerReader(path) as reader:
        views = fold((stored.stream, stored.event) for stored in reader.recorded()).values()
        found = [view for view in views if problem in view.answers]
        if not found:
            known = sorted({name for view in views for name in view.answers})
            raise BadInput(f"{path}: expected an examination of {problem}, found {', '.join(known) or 'none at all'}")
        console, view = _wide(), found[-1]
        device = view.calibration.device if view.calibration else "unknown device"
        console.print(f"recorded examination on {device}: nothing is measured here ({path.parent.name})", markup=False)
        print_explanation(view, problem, reader.artifact, console)


def _play(path: pathlib.Path, executor: Executor, asked: ExaminationRequest) -> ExaminationView:
    try:
        return _examine(path, executor, asked)
    finally:
        executor.close()


def _examine(path: pathlib.Path, executor: Executor, asked: ExaminationRequest) -> ExaminationView:
    console = Console()
    console.print(f"{asked.purpose}: measuring on {executor.facts().get('device', 'unknown device')}", markup=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with LedgerWriter(path) as ledger, Progress(*columns, console=console) as progress:
        task = progress.add_task("measured", total=1)

        def watch(done: int, total: int, text: str) -> None:
            progress.update(task, completed=done, total=max(1, total))
            if text:
                progress.console.print(f"  {text}", highlight=False, markup=False)

        return Examination(ledger, executor, asked, watch).play()


def _wide() -> Console:
    """Tables as wide as they need where the output is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=160)
