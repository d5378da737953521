"""The tables of an examination for people: pairs, confusion matrix, two collectors, cost. Decides nothing."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from ..events.errors import UnreadableLedger
from ..events.model import StatementReproduced
from ..projections.examination import ANSWERS, ExaminationView, matrix
from ..projections.reproduction import sides
from .qualification import AGAIN
from .report import plain, table

Read = Callable[[str], bytes]
VERDICTS = ("FASTER", "SLOWER", "SAME", "AMBIGUOUS")


def print_statement(view: ExaminationView, read: Read, console: Console) -> None:
    """Everything that an examination states, by suite; tables without rows are left out."""
    registration = view.registration
    if registration is None:
        console.print("no ExaminationRegistered: gpusolver replay says what is wrong")
        return
    device = plain(view.calibration.device) if view.calibration else "unknown device"
    console.print(f"{plain(registration.purpose)}: {len(registration.subjects)} kernels, measured on {device}")
    for part in (_pairs(view), _subjects(view, read), _matrix(view), collectors(view)):
        if part is not None:
            console.print(part)
    if gates := gate_seconds(view, read):
        for text, seconds in zip(
            ("whole gate", "the gate but for the candidate's own loading and first call"),
            zip(*gates, strict=True),
            strict=True,
        ):
            console.print(f"gates passed: {len(gates)}; {text}: {_spread(list(seconds))}", highlight=False)
    print_reproduction(view, console)
    if refused := [e for e in view.examined.values() if e.samples is None]:
        why = (f"{e.subject} ({e.reason if e.outcome == 'passed' else e.outcome})" for e in refused)
        console.print("refused by the gate or not timed: " + ", ".join(map(plain, why)))
    if view.stopped is None:
        console.print("unfinished: the same command goes on where it was cut off")


def print_reproduction(view: ExaminationView, console: Console) -> None:
    """What became of each statement of the origin; nothing for other examinations."""
    registration = view.registration
    if registration is None or not registration.origin or not registration.statements:
        return
    answers = {found.statement: found for found in view.reproduced}
    made = table(
        f"Statements of the ledger with head {registration.origin.head[:12]} ({registration.origin.events} events), measured again",
        ("statement",),
        ("states", "median there", "medians here", "answer"),
    )
    for stated in registration.statements:
        found = answers.get(stated.seq)
        stands = stated.stands if stated.at_least is None else f"{stated.stands} (at least {stated.at_least:g})"
        made.add_row(
            plain(f"{stated.seq} {stated.kind}: {stated.text}"),
            plain(stands),
            _ratios(stated.medians),
            "-" if found is None else _ratios(found.medians),
            "not yet" if found is None else _answered(found, stated.chip, view),
        )
    console.print(made)
    counts = {answer: sum(found.answer == answer for found in view.reproduced) for answer in ANSWERS}
    console.print("; ".join(f"{answer}: {number}" for answer, number in counts.items()))


def _ratios(medians: tuple[float, ...]) -> str:
    """The one median, or the smallest and the largest."""
    if not medians:
        return "none"
    low, high = min(medians), max(medians)
    return f"{low:.3f}x" if low == high else f"{low:.3f}x to {high:.3f}x"


def _answered(found: StatementReproduced, chip: str, view: ExaminationView) -> str:
    words: list[str] = [found.answer]
    if found.answer == "other chip":
        here = "unknown" if view.calibration is None else view.calibration.chip.name
        words.append(f"{plain(chip)} there, {plain(here)} here")
    refused = {
        f"{examined.outcome}" if examined.outcome != "passed" else examined.reason
        for name in found.unmeasured
        for examined in sides(view, name)
        if examined.samples is None
    }
    return ", ".join((*words, *sorted(map(plain, refused))))


def _pairs(view: ExaminationView) -> Table | None:
    """Verdicts by pair, what is true of the pair, and what the comparisons cost."""
    if view.registration is None or not view.registration.pairs:
        return None
    made = table(
        "Comparisons of registered pairs (ABBA, cold L2)",
        ("pair",),
        ("us", "truth", *VERDICTS, "median ratio", "GPU s each"),
    )
    for pair in view.registration.pairs:
        found = view.pairs.get(pair.name, ())
        medians = [entry.interval.median for entry in found if entry.interval is not None]
        spent = (view.stated or {}).get(f"pair/{pair.name}/sampled_s")
        examined = view.examined.get(pair.subject)
        made.add_row(
            plain(pair.name),
            f"{examined.signals['time_us']:.1f}" if examined is not None and "time_us" in examined.signals else "-",
            pair.truth,
            *(str(sum(entry.verdict == verdict for entry in found)) for verdict in VERDICTS),
            f"{statistics.median(medians):.4f}" if medians else "-",
            f"{spent / len(found):.4f}" if spent is not None and found else "-",
        )
    return made


def _subjects(view: ExaminationView, read: Read) -> Table | None:
    """Time, floor and counters of every subject, where there are few."""
    if len(view.examined) > 20:
        return None
    made = table("Kernels", ("kernel",), ("us", "A/A floor", "ceiling us", "passes", "counters s", "tier"))
    for examined in view.examined.values():
        if examined.samples is None:
            continue
        counters = {} if examined.counters is None else _object(read, examined.counters)
        made.add_row(
            plain(examined.subject),
            _decimals(examined.signals.get("time_us"), 1),
            "-" if examined.floor is None else f"{100 * examined.floor:.2f} %",
            _decimals(examined.signals.get("ceiling_us"), 1),
            plain(str(counters.get("passes", "-"))),
            _decimals(counters.get("wall_s"), 3),
            plain(examined.tier or "-"),
        )
    return made if made.row_count else None


def gate_seconds(view: ExaminationView, read: Read) -> list[tuple[float, float]]:
    """Seconds of each passed gate, and those of them that the candidate's loading and first call did not take; none in ledgers of before these were kept."""
    found = []
    for examined in view.examined.values():
        report = _object(read, examined.report) if examined.outcome == "passed" else {}
        spent, first = report.get("spent_ns"), report.get("first_ns")
        if type(spent) is int and type(first) is int and 0 <= first <= spent < 1 << 63:
            found.append((spent / 1e9, (spent - first) / 1e9))
    return found


def _spread(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    nine = ordered[int(0.9 * (len(ordered) - 1))]
    return f"median {statistics.median(ordered):.2f} s, mean {statistics.mean(ordered):.2f} s, nine of ten in {nine:.2f} s or less"


def _object(read: Read, name: str) -> dict[str, Any]:
    """An artifact's content; empty where the ledger does not hold what it names, which gpusolver replay says better."""
    try:
        found = msgspec.json.decode(read(name))
    except (UnreadableLedger, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _decimals(value: object, places: int) -> str:
    return f"{value:.{places}f}" if isinstance(value, float) else "-"


def _matrix(view: ExaminationView) -> Table | None:
    """Hits on which each rule fired, near misses on which it stayed silent, by half."""
    found = matrix(view)
    if not found:
        return None
    halves = sorted({row.half for row in found})
    columns = [f"{plain(half)}\n{kind}" for half in halves for kind in ("hits", "near misses")]
    made = table(
        "Planted kernels: the rule fired on its hits, and was silent on its near misses",
        ("rule",),
        (*columns, "also fired on"),
    )
    for rule in dict.fromkeys(row.rule for row in found):
        cells, strangers = [], set[str]()
        for half in halves:
            row = next((row for row in found if (row.rule, row.half) == (rule, half)), None)
            cells += ["-", "-"] if row is None else [f"{row.fired} of {row.hits}", f"{row.silent} of {row.near_misses}"]
            strangers |= set() if row is None else set(row.also_fired_on)
        made.add_row(plain(rule), *cells, str(len(strangers)))
    return made


def collectors(view: ExaminationView) -> Table | None:
    """Our counters beside Nsight Compute's: rows within bounds, and every row that is not, with what either collector read
    otherwise when it counted the same kernel again.
    """
    if not view.counters:
        return None
    made = table(
        "Counters in process and by Nsight Compute",
        ("kernel", "metric"),
        ("ours", "ncu", "bound", "within", "ours again", "ncu again"),
    )
    for name, compared in view.counters.items():
        made.add_row(
            plain(name), "all", "", "", "", f"{sum(row.within for row in compared.rows)} of {len(compared.rows)}"
        )
        again = view.counters.get(f"{name}{AGAIN}")
        second = {} if again is None else {row.metric: (number(row.ours), number(row.theirs)) for row in again.rows}
        for row in compared.rows:
            if not row.within:
                read = (number(row.ours), number(row.theirs), number(row.bound), "no")
                made.add_row("", plain(row.metric), *read, *second.get(row.metric, ("", "")))
    return made


def number(value: float | None, absent: str = "none") -> str:
    """Four digits, or a whole number with its thousands; `absent` for None, which is not 0."""
    if value is None:
        return absent
    if abs(value) > 1e300:  # an integer of a forged artifact may have any number of digits
        return "out of range"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
