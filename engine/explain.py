"""What an examination says of one kernel, as tables: where its time goes, every signal with its evidence, every rule's answer. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ..events.errors import BadInput
from ..events.model import ClauseSeen, KernelExamined, RuleAnswer
from ..profilers import artifacts as shapes
from ..profilers.inputs import evidence, is_metric
from ..projections.examination import ExaminationView
from .report import legible, plain
from .statement import collectors, number

Read = Callable[[str], bytes]
_WORDS = {"fires": "FIRES", "abstains": "abstains", "blocked": "blocked", "silent": "-"}


def print_explanation(view: ExaminationView, subject: str, read: Read, console: Console) -> None:
    """The kernel `subject` of an examination; `read` gives an artifact's bytes by digest.

    BadInput or UnreadableLedger where the ledger does not hold what its events name.
    """
    examined = view.examined[subject]
    _print_head(view, examined, console)
    if examined.samples is None:
        console.print(f"the gate refused it: {plain(examined.outcome)} ({plain(examined.reason)})")
        return
    seen = _Content(
        samples=shapes.decode(shapes.Samples, read(examined.samples)),
        state=shapes.decode(State, read(examined.samples)),
        counters=None if examined.counters is None else shapes.decode(shapes.Counters, read(examined.counters)),
        timeline=shapes.decode(shapes.Timeline, read(examined.extras["timeline"]))
        if "timeline" in examined.extras
        else None,
    )
    console.print(_time(examined, seen.samples.clock))
    if seen.timeline is not None:
        console.print(_kernels(seen.timeline))
    console.print(_signals(examined, seen))
    console.print(_rules(view.answers[subject].answers if subject in view.answers else ()))
    if compared := collectors(view):
        console.print(compared)
    if subject in view.static:
        _print_static(read(view.static[subject].answers), console)
    _print_state(examined, seen, console)
    if examined.counters is not None and seen.counters is not None and seen.counters.collector == "none":
        _print_refusal(read(examined.counters), console)


class _Content(msgspec.Struct, frozen=True, kw_only=True):
    """The artifacts of a kernel that passed its gate."""

    samples: shapes.Samples
    state: State
    counters: shapes.Counters | None
    timeline: shapes.Timeline | None


class _SaidOfKernel(msgspec.Struct, frozen=True):
    """Nsight Compute's rules on one kernel, as engine/worker/ncu_reading.py writes them."""

    kernel: str
    rules: tuple[_SaidByRule, ...]


class _SaidByRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule's message; `speedup` is an estimate in %."""

    id: str | None
    title: str | None = None
    message: str | None = None
    speedup_type: str | None = None
    speedup: float | None = None


class _Said(shapes.Artifact, frozen=True):
    """The artifact `ncu_rules`."""

    kernels: tuple[_SaidOfKernel, ...]


class State(shapes.Artifact, frozen=True):
    """The device around the samples, with every fact about it that is for people."""

    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


class Refusal(shapes.Artifact, frozen=True):
    """Why a counters artifact holds none."""

    refused: Any = "unknown"
    text: Any = ""


def _print_head(view: ExaminationView, examined: KernelExamined, console: Console) -> None:
    declared = view.subject(examined.subject)
    chip = view.calibration.chip.name if view.calibration else "unknown chip"
    sizes = ", ".join(f"{name} {size}" for name, size in declared.problem.shape.items())
    told = (
        f"{examined.subject}: {declared.problem.name} ({sizes}), {declared.contract}, on {chip}; "
        f"source {declared.source[:12]}, tier {examined.tier or 'none'}"
    )
    console.print(legible(told), markup=False)


# --- where the time goes ----------------------------------------------------------------------------------------------


def _time(examined: KernelExamined, clock: str) -> Table:
    """Measured time beside what physics and the measured ceilings allow."""
    seen = examined.signals
    table = _table("Where the time goes (cold L2 unless a row says warm)", "what", "us", "of the time", "meaning")
    total = seen.get("time_us", 0.0)
    # The stand-in's times must not pass for a GPU's.
    by = "CUDA events, L2 flushed before each call" if clock == "cuda_event" else "by the CPU's clock: measures no GPU"
    rows = (
        ("time_us", "measured", f"lower median of the samples, {by}"),
        ("span_us", "span of its kernels", "first start to last end, CUPTI activity records: the second clock"),
        ("floor_us", "floor", "bytes that must move at the measured copy rate, or arithmetic at the data sheet's peak"),
        ("ceiling_us", "ceiling", "the same with the measured rates of library products"),
    )
    for name, what, meaning in rows:
        if name in seen:
            table.add_row(what, f"{seen[name]:.1f}", _percent(seen[name], total), meaning)
    if seen.get("warm_ratio"):
        warm = total / seen["warm_ratio"]
        table.add_row("warm", f"{warm:.1f}", _percent(warm, total), "the same call with its inputs left in the L2")
    if "gap_frac" in seen and "span_us" in seen:
        idle = seen["gap_frac"] * seen["span_us"]
        table.add_row("GPU idle", f"{idle:.1f}", _percent(idle, total), "between its kernels")
    return table


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def _kernels(timeline: shapes.Timeline) -> Table:
    """Time by kernel and by operator."""
    calls = len(timeline.calls)
    spent: dict[str, list[int]] = {}
    for call in timeline.calls:
        for start, end, name in call:
            spent.setdefault(name, []).append(end - start)
    total = sum(map(sum, spent.values()))
    table = _table(
        f"Kernels ({calls} calls, {timeline.collector})", "kernel", "launches a call", "us a call", "share"
    )  # fmt: skip
    for name, times in sorted(spent.items(), key=lambda item: -sum(item[1])):
        each = f"{len(times) / calls:g}", f"{sum(times) / calls / 1000:.1f}", _percent(sum(times), total)
        table.add_row(plain(name[:70]), *each)
    operators = timeline.operators or ()
    whole = sum(ns for _, ns in operators)
    for name, ns in sorted(operators, key=lambda item: -item[1])[:5]:
        table.add_row(f"operator {plain(name[:60])}", "", "", _percent(ns, whole))
    return table


# --- signals and rules ------------------------------------------------------------------------------------------------


def _signals(examined: KernelExamined, seen: _Content) -> Table:
    """Each signal, the raw values that it rests on, and the state of the cache in which they were taken."""
    metrics = seen.counters.metrics if seen.counters is not None else {}
    table = _table(
        "Signals (absent is not 0: a signal that is not listed could not be measured)",
        "signal",
        "value",
        "rests on",
        "cache",
    )
    for name, value in examined.signals.items():
        inputs = evidence(name)
        shown = [
            f"{key} = {_number(metrics[key])}" if key in metrics else key
            for key in inputs
            if key in metrics or not is_metric(key)
        ]
        counted = seen.counters is not None and any(key in metrics for key in inputs)
        source = seen.counters if counted else seen.samples if "samples" in inputs else None
        table.add_row(
            plain(name), _number(value), "\n".join(map(plain, shown)), "" if source is None else plain(source.cache)
        )
    return table


def _number(value: float | None) -> str:
    return number(value, "not collectable")


def _rules(answers: tuple[RuleAnswer, ...]) -> Table:
    """Every rule in the order of asking; the loop would follow the first that fires."""
    first = next((answer.rule for answer in answers if answer.answer == "fires"), None)
    title = f"Rules in the order of asking; the loop would follow: {plain(first or 'none, it would stop')}"
    table = _table(title, "rule", "says", "because", "predicted gain")
    for answer in answers:
        gain = "" if answer.predicted_gain is None else f"{answer.predicted_gain:.2f}x"
        style = "bold" if answer.rule == first else "dim" if answer.answer == "silent" else ""
        table.add_row(plain(answer.rule), _WORDS[answer.answer], plain(_because(answer)), gain, style=style)
    return table


def _because(answer: RuleAnswer) -> str:
    words = [_clause(clause) for clause in answer.clauses]
    words += [f"{name} is missing" for name in answer.missing]
    if answer.reason is not None:
        words.append(f"blocked by {answer.reason}")
    return "; ".join(words)


def _clause(clause: ClauseSeen) -> str:
    return f"{clause.signal} {_number(clause.value)} ({clause.op} {clause.threshold:g}?)"


def _print_static(raw: bytes, console: Console) -> None:
    """Nsight Compute's own words, of which the format says only that they are JSON."""
    try:
        said = shapes.decode(_Said, raw)
    except (BadInput, RecursionError):
        console.print("Nsight Compute's own rules: recorded in a form that is not known here")
        return
    table = _table("Nsight Compute's own rules (logged, not used)", "kernel", "rule", "says", "estimate")
    for kernel in said.kernels:
        for rule in kernel.rules:
            estimate = "" if rule.speedup is None else f"{rule.speedup:.0f} % {rule.speedup_type or ''}"
            text = rule.title or (rule.message or "")[:60]
            table.add_row(*map(plain, (kernel.kernel[:40], rule.id or "", text, estimate)))
    console.print(table)


def _print_state(examined: KernelExamined, seen: _Content, console: Console) -> None:
    """How the device was while it measured, and what the measuring cost."""

    def told(text: str) -> None:
        console.print(legible(text), markup=False)

    samples, counters = seen.samples, seen.counters
    for when, state in (("before", seen.state.before), ("after", seen.state.after)):
        if state:
            told(f"{when}: " + ", ".join(f"{key} {_fact(value)}" for key, value in sorted(state.items())))
    floor = "no interval" if examined.floor is None else f"{100 * examined.floor:.2f} %"
    told(
        f"A/A noise floor {floor} ({len(samples.blocks)} ABBA blocks); clock {samples.clock}, cache {samples.cache}"
    )  # fmt: skip
    if counters is not None and counters.collector != "none":
        wall = "" if counters.wall_s is None else f" in {counters.wall_s:.3f} s"
        told(f"counters: {counters.collector}, {counters.passes} passes{wall}, cache {counters.cache}")


def _fact(value: object) -> str:
    return number(value, "not read") if value is None or isinstance(value, (int, float)) else str(value)


def _print_refusal(raw: bytes, console: Console) -> None:
    """Why there are no counters, where the artifact says so."""
    why = shapes.decode(Refusal, raw)
    console.print(legible(f"no counters: {why.refused}: {why.text}"), markup=False)


def _table(title: str, *columns: str) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False
    )
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
