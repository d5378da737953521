"""The command `gpusolver objective`: the kernels of a ledger by latency, energy and heat. Chooses among what was measured; decides no round."""

from __future__ import annotations

import pathlib
from importlib.resources import files
from typing import cast, get_args

import click
import msgspec
from msgspec import UNSET, UnsetType
from rich.console import Console

from ..events.errors import BadInput, GpuSolverError
from ..events.model import Heat
from ..events.model import Objective as Registered
from ..events.model import Stage as RegisteredStage
from ..events.reader import LedgerReader
from ..projections.objectives import Choice, Objective, Thermal, choices
from ..projections.runs import fold
from .report import place, table
from .rules import read_text

LEAST, MOST, MOST_STAGES = 1e-6, 1e7, 16
"""What replay/FORMAT.md lets a run register: between these a rise loses no digits."""
LATENCY_BOUND = 2.0
"""How many times the time of the fastest incumbent a frugal kernel may take, where nothing else is said: as in thermal.toml."""
_TITLE = """Kernels with a measured energy, fastest first: cold latency, energy and power of warm calls, peak rise over the ambient
at one call rate (- : too slow for the rate or the latency bound); * = best by that measure"""
_COLUMNS: tuple[tuple[Objective, str, str], ...] = (
    ("latency", "time_us", "latency\nus"),
    ("energy", "millijoules", "energy\nmJ"),
    ("thermal", "rise_k", "rise\nK"),
)


@click.command("objective")
@click.argument("ledger", type=click.Path(path_type=pathlib.Path))
@click.option("--objective", type=click.Choice(get_args(Objective)), default="latency", show_default=True)
@click.option("--thermal", "path", type=click.Path(path_type=pathlib.Path), help="TOML: load, bound, idle_w, stages.")
def objective_command(ledger: pathlib.Path, objective: str, path: pathlib.Path | None) -> None:
    """Name the best measured kernel of each problem of LEDGER by an objective, and say where objectives disagree."""
    console = Console()
    try:
        thermal = thermal_of(path)
        with LedgerReader(ledger) as reader:
            records = [(stored.stream, stored.event) for stored in reader.recorded()]
    except GpuSolverError as error:
        raise click.ClickException(str(error)) from error
    found = [choice for view in fold(records).values() for choice in choices(view, thermal)]
    if not found:
        console.print(
            "no kernel with a measured energy: its extra is measured where a live rule asks for its signals (a run by energy or heat has "
            "those of pairs: gpusolver report)"
        )
        return
    console.print(_kernels(found))
    for choice in found:
        best = choice.best.get(cast(Objective, objective), "none")
        console.print(f"{place(choice.group)}: best by {objective}: source {best[:12]}")
    console.print(disagreement(found))


def thermal_of(path: pathlib.Path | None) -> Thermal:
    """The parameters of a file, or of the packaged example; BadInput on anything else."""
    if path is None:
        text = files("gpusolver.engine").joinpath("thermal.toml").read_text(encoding="utf-8")
    else:
        text = read_text(path, f"--thermal {path}", "a TOML file in UTF-8")
    try:
        return msgspec.toml.decode(text, type=Thermal)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadInput(f"--thermal {path}: expected load, bound, idle_w and stages; found {error}") from error


def objective_of(word: str, path: pathlib.Path | None, bound: float | None) -> Registered | UnsetType:
    """What a run that decides by `word` registers; BadInput where its parameters are not given, or given for another objective."""
    if word != "thermal" and path is not None:
        raise BadInput(f"--thermal {path}: belongs to --objective thermal, found --objective {word}")
    if word == "latency":
        if bound is not None:
            raise BadInput(f"--latency-bound {bound:g}: belongs to --objective energy or thermal, found latency")
        return UNSET
    if word == "energy":
        return Registered(by="energy", bound=LATENCY_BOUND if bound is None else bound)
    if path is None:
        raise BadInput(
            "--objective thermal: expected --thermal FILE with calls_per_s, load, bound, idle_w and stages of your device; the packaged "
            "thermal.toml is an example of its form"
        )
    given = thermal_of(path)
    if given.calls_per_s is None:
        raise BadInput(
            f"--thermal {path}: expected calls_per_s, the fixed rate that kernels are compared at; found none"
        )
    numbers = (given.calls_per_s, *(x for stage in given.stages for x in (stage.k_per_w, stage.tau_s)))
    if not all(LEAST <= x <= MOST for x in numbers) or given.idle_w > MOST or len(given.stages) > MOST_STAGES:
        raise BadInput(
            f"--thermal {path}: expected calls_per_s, k_per_w and tau_s from {LEAST:g} to {MOST:g}, idle_w to {MOST:g}, and at most "
            f"{MOST_STAGES} stages; found {given}"
        )
    stages = tuple(RegisteredStage(k_per_w=stage.k_per_w, tau_s=stage.tau_s) for stage in given.stages)
    heat = Heat(calls_per_s=given.calls_per_s, idle_w=given.idle_w, stages=stages)
    return Registered(by="thermal", bound=given.bound if bound is None else bound, heat=heat)


def disagreement(found: list[Choice]) -> str:
    """On how many groups two objectives pick different kernels."""
    apart = sum(len(set(choice.best.values())) > 1 for choice in found)
    alone = sum(len(choice.kernels) == 1 for choice in found)
    said = (
        f"two objectives pick different kernels in {apart} of {len(found)} groups"
        if apart
        else "no two objectives differ"
    )
    return f"{said}; {alone} of {len(found)} have one kernel to choose from"


def _kernels(found: list[Choice]) -> object:
    made = table(_TITLE, ("problem", "source"), [*(head for _, _, head in _COLUMNS), "power\nW"])
    for choice in found:
        for index, kernel in enumerate(choice.kernels):
            values = [
                _value(getattr(kernel, field), choice.best.get(objective) == kernel.source)
                for objective, field, _ in _COLUMNS
            ]
            label = place(choice.group) if index == 0 else ""
            made.add_row(label, kernel.source[:12], *values, f"{kernel.power_w:.0f}")
    return made


def _value(value: float | None, best: bool) -> str:
    return "-" if value is None else f"{value:.4g}{' *' if best else ''}"
