"""What an examination says of one kernel, as tables: where its time goes, every signal with its evidence, every rule's answer. Computes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ..events.model import ClauseSeen, KernelExamined, RuleAnswer
from ..profilers.inputs import evidence
from ..projections.examination import ExaminationView
from .report import plain

Read = Callable[[str], bytes]
_WORDS = {"fires": "FIRES", "abstains": "abstains", "blocked": "blocked", "silent": "-"}


def print_explanation(view: ExaminationView, subject: str, read: Read, console: Console) -> None:
    """The kernel `subject` of an examination; `read` gives an artifact's bytes by digest."""
    examined = view.examined[subject]
    _print_head(view, examined, console)
    if examined.samples is None:
        console.print(f"the gate refused it: {plain(examined.outcome)} ({plain(examined.reason)})")
        return
    content = {role: _json(read, name) for role, name in _artifacts(examined).items()}
    console.print(_time(examined, content))
    if kernels := _kernels(content):
        console.print(kernels)
    console.print(_signals(examined, content))
    console.print(_rules(view, subject))
    if subject in view.static:
        console.print(_static(_json(read, view.static[subject].answers)))
    _print_state(examined, content, console)


def _artifacts(examined: KernelExamined) -> dict[str, str]:
    named = {"samples": examined.samples, "counters": examined.counters, "launches": examined.launches}
    return {role: name for role, name in named.items() if name is not None} | examined.extras


def _json(read: Read, name: str) -> Any:
    return msgspec.json.decode(read(name))


def _print_head(view: ExaminationView, examined: KernelExamined, console: Console) -> None:
    declared = view.subject(examined.subject)
    chip = view.calibration.chip.name if view.calibration else "unknown chip"
    sizes = ", ".join(f"{name} {size}" for name, size in declared.problem.shape.items())
    console.print(
        f"{examined.subject}: {declared.problem.name} ({sizes}), {declared.contract}, on {chip}; "
        f"source {declared.source[:12]}, tier {examined.tier or 'none'}",
        markup=False,
    )


# --- where the time goes ----------------------------------------------------------------------------------------------


def _time(examined: KernelExamined, content: Mapping[str, Any]) -> Table:
    """Measured time beside what physics and the measured ceilings allow."""
    seen = examined.signals
    table = _table("Where the time goes (cold L2 unless a row says warm)", "what", "us", "of the time", "meaning")
    total = seen["time_us"]
    rows = (
        ("time_us", "measured", "lower median of the samples, CUDA events, L2 flushed before each call"),
        ("span_us", "span of its kernels", "first start to last end, CUPTI activity records: the second clock"),
        ("floor_us", "floor", "bytes that must move at the measured copy rate, or arithmetic at the data sheet's peak"),
        ("ceiling_us", "ceiling", "the same with the measured rates of library products"),
    )
    for name, what, meaning in rows:
        if name in seen:
            table.add_row(what, f"{seen[name]:.1f}", f"{100 * seen[name] / total:.0f} %", meaning)
    if "warm_ratio" in seen:
        warm = total / seen["warm_ratio"]
        table.add_row(
            "warm", f"{warm:.1f}", f"{100 * warm / total:.0f} %", "the same call with its inputs left in the L2"
        )
    if "gap_frac" in seen and "span_us" in seen:
        idle = seen["gap_frac"] * seen["span_us"]
        table.add_row("GPU idle", f"{idle:.1f}", f"{100 * idle / total:.0f} %", "between its kernels")
    return table


def _kernels(content: Mapping[str, Any]) -> Table | None:
    """Time by kernel and by operator, where there is a timeline."""
    timeline = content.get("timeline")
    if timeline is None:
        return None
    spent: dict[str, list[int]] = {}
    for call in timeline["calls"]:
        for start, end, name in call:
            spent.setdefault(name, []).append(end - start)
    total = sum(map(sum, spent.values()))
    table = _table(
        f"Kernels ({len(timeline['calls'])} calls, {timeline['collector']})",
        "kernel",
        "launches a call",
        "us a call",
        "share",
    )
    for name, times in sorted(spent.items(), key=lambda item: -sum(item[1])):
        calls = len(timeline["calls"])
        table.add_row(
            plain(name[:70]),
            f"{len(times) / calls:g}",
            f"{sum(times) / calls / 1000:.1f}",
            f"{100 * sum(times) / total:.0f} %",
        )
    operators: list[tuple[str, int]] = timeline.get("operators") or []
    whole = max(1, sum(ns for _, ns in operators))
    for name, spent_ns in sorted(operators, key=lambda item: -item[1])[:5]:
        table.add_row(f"operator {plain(name[:60])}", "", "", f"{100 * spent_ns / whole:.0f} %")
    return table


# --- signals and rules ------------------------------------------------------------------------------------------------


def _signals(examined: KernelExamined, content: Mapping[str, Any]) -> Table:
    """Each signal, the raw values that it rests on, and the state of the cache in which they were taken."""
    counters = content.get("counters", {})
    metrics = counters.get("metrics", {})
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
            if key in metrics or "__" not in key
        ]
        counted = any(key in metrics for key in inputs)
        cache = counters.get("cache", "") if counted else content["samples"]["cache"] if "samples" in inputs else ""
        table.add_row(name, _number(value), "\n".join(shown), cache)
    return table


def _number(value: float | None) -> str:
    if value is None:
        return "not collectable"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def _rules(view: ExaminationView, subject: str) -> Table:
    """Every rule in the order of asking; the loop would follow the first that fires."""
    answers = view.answers[subject].answers
    first = next((answer.rule for answer in answers if answer.answer == "fires"), None)
    title = f"Rules in the order of asking; the loop would follow: {first or 'none, it would stop'}"
    table = _table(title, "rule", "says", "because", "predicted gain")
    for answer in answers:
        gain = "" if answer.predicted_gain is None else f"{answer.predicted_gain:.2f}x"
        style = "bold" if answer.rule == first else "dim" if answer.answer == "silent" else ""
        table.add_row(answer.rule, _WORDS[answer.answer], _because(answer), gain, style=style)
    return table


def _because(answer: RuleAnswer) -> str:
    words = [_clause(clause) for clause in answer.clauses]
    words += [f"{name} is missing" for name in answer.missing]
    if answer.reason is not None:
        words.append(f"blocked by {answer.reason}")
    return "; ".join(words)


def _clause(clause: ClauseSeen) -> str:
    return f"{clause.signal} {_number(clause.value)} ({clause.op} {clause.threshold:g}?)"


def _static(said: Any) -> Table:
    """Nsight Compute's own words."""
    table = _table("Nsight Compute's own rules (logged, not used)", "kernel", "rule", "says", "estimate")
    for kernel in said["kernels"]:
        for rule in kernel["rules"]:
            estimate = "" if rule.get("speedup") is None else f"{rule['speedup']:.0f} % {rule.get('speedup_type', '')}"
            text = rule.get("title") or rule.get("message", "")[:60]
            table.add_row(plain(kernel["name"][:40]), plain(rule["id"]), plain(text), estimate)
    return table


def _print_state(examined: KernelExamined, content: Mapping[str, Any], console: Console) -> None:
    """How the device was while it measured, and what the measuring cost."""
    samples, counters = content["samples"], content.get("counters", {})
    for when in ("before", "after"):
        if state := samples.get(when):
            console.print(
                f"{when}: " + ", ".join(f"{key} {_number(value)}" for key, value in sorted(state.items())), markup=False
            )
    floor = "no interval" if examined.floor is None else f"{100 * examined.floor:.2f} %"
    console.print(
        f"A/A noise floor {floor} ({len(samples['blocks'])} ABBA blocks); clock {samples['clock']}, cache {samples['cache']}",
        markup=False,
    )
    if counters.get("collector") == "none":
        console.print(f"no counters: {counters.get('refused')}: {counters.get('text')}", markup=False)
    elif counters:
        wall = f" in {counters['wall_s']:.3f} s" if counters.get("wall_s") else ""
        console.print(
            f"counters: {counters['collector']}, {counters['passes']} passes{wall}, cache {counters['cache']}",
            markup=False,
        )


def _table(title: str, *columns: str) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False
    )
    for index, column in enumerate(columns):
        table.add_column(column, no_wrap=index == 0, overflow="fold")
    return table
