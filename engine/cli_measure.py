"""The commands that measure without a loop: `gpusolver explain` and `gpusolver qualify`. Parses words and shows progress; decides nothing."""

from __future__ import annotations

import pathlib
import tempfile

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ..events.errors import BadInput, GpuSolverError
from ..events.model import Rule
from ..events.reader import LedgerReader
from ..events.writer import LedgerWriter
from ..problems.contract import CONTRACTS, load
from ..profilers.metrics import plan
from ..projections.examination import ExaminationView, fold
from .devices import DEVICES, default_examination, measures, open_executor, refuse_packaged
from .examination import Examination, ExaminationRequest
from .examining import Subject
from .executor import Executor, Observation
from .explain import print_explanation
from .qualification import SUITES, request
from .report import legible
from .rules import read_text, rules
from .stated import stated
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
        if recording is not None and device in ("cuda", "cpu"):
            raise BadInput(f"--recording belongs to --device recorded; found --device {device}")
        if not measures(device, recording):
            _refuse_given(recording)
            _explain_recorded(recording or default_examination(), problem)
            return
        if ledger is not None:
            refuse_packaged(ledger)
        if ncu and ncu_report is not None:
            raise BadInput(
                "--ncu and --ncu-report: expected one of them, for one kernel is cross-checked once; found both"
            )
        subject, table_rules = _subject(problem, source, contract, timeline), rules(table)
        asked = ExaminationRequest(
            purpose=f"explain {problem}",
            subjects=(subject,),
            rules=table_rules,
            roles=("timeline", "warm", "compiled", "kernels", *(("energy",) if energy else ())),
            ncu=(subject.name,) if ncu else (),
            reports={} if ncu_report is None else {subject.name: _report(ncu_report, table_rules)},
        )
        _explain_measured(asked, device, ledger)
    except GpuSolverError as error:
        raise worded(error) from error


@click.command("qualify")
@click.option("--suite", "suites", default=",".join(SUITES), show_default=True, help="Suites by comma.")
@click.option(
    "--half", type=click.Choice(["", "calibration", "held-out"]), default="", help="One half of the planted kernels."
)
@click.option("--times", type=click.IntRange(1, 100_000), default=120, show_default=True, help="Comparisons per pair.")
@click.option("--device", type=click.Choice(["auto", "cuda", "cpu"]), default="auto", show_default=True)
@click.option(
    "--ledger", type=click.Path(path_type=pathlib.Path), default=pathlib.Path("qualification.db"), show_default=True
)
@click.option("--ncu", is_flag=True, help="Nsight Compute's own rules on the planted hits too (2 s each).")
@click.option(
    "--corpus",
    type=click.Path(path_type=pathlib.Path, exists=True, file_okay=False),
    help="Folder of candidates for the suite gate; --times says how many hostile ones.",
)
@click.option("--gate-limit", type=click.FloatRange(1, 600), help="Seconds after which a gate ends a candidate.")
@click.option("--seed", type=click.IntRange(-(2**63), 2**63 - 1), default=0, show_default=True)
def qualify_command(
    suites: str,
    half: str,
    times: int,
    device: str,
    ledger: pathlib.Path,
    ncu: bool,
    corpus: pathlib.Path | None,
    gate_limit: float | None,
    seed: int,
) -> None:
    """Put the measurement itself to the test on this GPU: identical arms, a known slowdown, planted bottlenecks, a second collector."""
    try:
        if not measures(device, None):
            raise BadInput(
                "qualify measures this machine's GPU, and found none. Use it on a machine with an NVIDIA GPU and torch, or "
                "print what another machine recorded with gpusolver report LEDGER."
            )
        refuse_packaged(ledger)
        words = dict.fromkeys(word.strip() for word in suites.split(",") if word.strip())
        on = "cpu" if device == "cpu" else "cuda"
        asked = [request(word, half, times, ncu, seed, corpus, on) for word in words]
        if not asked:
            raise BadInput(f"--suite: expected some of {', '.join(SUITES)}; found none")
        if half and "planted" not in words:
            raise BadInput(f"--half belongs to the suite planted; found --suite {suites}")
        executor = open_executor(device, None, {"gate": gate_limit} if gate_limit else None)
        try:
            views = _qualify(ledger, executor, asked)
        finally:
            executor.close()
        with LedgerReader(ledger) as reader:
            for view in views:
                print_statement(view, reader.artifact, wide())
    except GpuSolverError as error:
        raise worded(error) from error
    click.echo(f"ledger: {ledger}. Check it: gpusolver replay {ledger} --verify")


def _qualify(path: pathlib.Path, executor: Executor, asked: list[ExaminationRequest]) -> list[ExaminationView]:
    """Every suite once more; those that this command had finished here before it was cut off are not measured again."""
    with LedgerWriter(path) as ledger:
        earlier = [Examination(ledger, executor, each, lambda *_: None).earlier() for each in asked]
        rounds = min(map(len, earlier))
        views = []
        for each, found in zip(asked, earlier, strict=True):
            if len(found) > rounds:
                click.echo(f"{each.purpose}: in {path} already, as {found[-1].run}")
            views.append(found[-1] if len(found) > rounds else examine(ledger, executor, each))
        return views


def _subject(problem: str, source: pathlib.Path | None, contract: str, timeline: pathlib.Path | None) -> Subject:
    known = load(problem)
    given = {}
    if timeline is not None:
        from .worker.nsys_export import read_export

        given["timeline"] = read_export(timeline)
    if source is None:
        return Subject(name=problem, problem=known, contract=contract, source=known.start, given=given)
    text = read_text(source, f"--source {source}", "a Python file in UTF-8 with run(...)")
    # Bytes of a file's name that are no UTF-8 fit into no event.
    name = source.name.encode("utf-8", "backslashreplace").decode()
    return Subject(name=name, problem=known, contract=contract, source=text, given=given)


def _explain_measured(asked: ExaminationRequest, device: str, ledger: pathlib.Path | None) -> None:
    """Examine the one kernel, in the ledger that is to be kept or in one that is not, and print it."""
    with tempfile.TemporaryDirectory(prefix="gpusolver-explain-") as folder:
        path = ledger or pathlib.Path(folder, "ledger.db")
        executor = open_executor(device, None)
        try:
            with LedgerWriter(path) as writer:
                view = examine(writer, executor, asked)
        finally:
            executor.close()
        with LedgerReader(path) as reader:
            print_explanation(view, asked.subjects[0].name, reader.artifact, wide())
    if ledger:
        click.echo(legible(f"ledger: {ledger}. Check it: gpusolver replay {ledger} --verify"))


def _report(path: pathlib.Path, table: tuple[Rule, ...]) -> Observation:
    """What an ncu report file holds of one kernel."""
    from .worker.ncu_reading import read_report

    return Observation(status="ok", artifacts=read_report(path, plan(table).metrics))


def _refuse_given(recording: pathlib.Path | None) -> None:
    """BadInput for words that only a measurement could obey: a recorded answer that ignored them would mislead."""
    for option in stated(click.get_current_context()):
        if option.name not in ("problem", "device", "recording"):
            where = "--recording answers from a ledger" if recording else "none is used here"
            raise BadInput(
                f"{option.opts[0]} needs a GPU to measure on, and {where}. Use --device cuda on a machine that has one, "
                f"or leave {option.opts[0]} out."
            )


def _explain_recorded(path: pathlib.Path, problem: str) -> None:
    """Print what a recorded examination says of the problem's starting kernel."""
    load(problem)
    if path == default_examination() and not path.exists():
        raise BadInput(
            f"no GPU is used here, and this installation holds no recorded examination ({path}). "
            "Use --device cuda on a machine with a GPU, or name an examination's ledger with --recording."
        )
    with LedgerReader(path) as reader:
        views = fold((stored.stream, stored.event) for stored in reader.recorded()).values()
        found = [view for view in views if problem in view.examined]
        if not found:
            known = sorted({name for view in views for name in view.examined})
            raise BadInput(f"{path}: expected an examination of {problem}, found {', '.join(known) or 'none at all'}")
        console, view = wide(), found[-1]
        device = view.calibration.device if view.calibration else "unknown device"
        told = f"recorded examination on {device}: nothing is measured here ({path.parent.name})"
        console.print(legible(told), markup=False)
        print_explanation(view, problem, reader.artifact, console)


def examine(ledger: LedgerWriter, executor: Executor, asked: ExaminationRequest) -> ExaminationView:
    """Play an examination with its progress on the terminal."""
    console = Console()
    told = f"{asked.purpose}: measuring on {executor.facts().get('device', 'unknown device')}"
    console.print(legible(told), markup=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("measured", total=1)

        def watch(done: int, total: int, text: str) -> None:
            progress.update(task, completed=done, total=max(1, total))
            if text:
                progress.console.print(f"  {legible(text)}", highlight=False, markup=False)

        return Examination(ledger, executor, asked, watch).play()


def worded(error: GpuSolverError) -> click.ClickException:
    """The error as it is told: a file's name, or what a kernel said, may not steer the terminal."""
    return click.ClickException("\n".join(map(legible, str(error).splitlines())))


def wide() -> Console:
    """Tables as wide as they need where the output is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=160)
