"""Does what was learnt on other problems help? Recorded cells played twice, with and without it. Never invents an outcome."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

from ..events.model import Proposing, Rule, RuleAdmitted, RuleProposed, RunRegistered
from ..events.reader import LedgerReader
from .counterfactual import Taught, play_cell, scripts_of
from .courses import CellPlayed, Course
from .experience import lesson, trials_of
from .findings import Findings
from .integrity import scan
from .matching import highest
from .objective import by_time
from .policy import Played
from .proposed import Trial
from .runs import RunEvents, sort_out
from .shelf import Shelf
from .whole_file import check_artifacts

Leave = Literal["family", "problem"]
Effect = Literal["helps", "hurts", "nothing", "not known"]


class Held(msgspec.Struct, frozen=True):
    """One cell that the lesson did not see: `out` names what was left out, `admitted` the rules that were added to its table.

    `saved` is the number of rounds without a FASTER that the lesson saves (below 0: costs), `ratio` the last time without it over
    the last time with it; both None where the record cannot answer one of the two courses.
    """

    cell: str
    out: str
    admitted: tuple[str, ...]
    carried: int
    alone: CellPlayed
    taught: CellPlayed
    saved: int | None
    ratio: float | None
    effect: Effect


class _Opened(msgspec.Struct, frozen=True):
    """The runs of one ledger that judge by time, and its artifacts; `name` is put before its cells where there are other ledgers."""

    runs: dict[str, RunEvents]
    shelf: Shelf
    name: str

    def registered(self) -> Iterator[RunRegistered]:
        return (run.registered[1] for run in self.runs.values() if run.registered)


def transfer(paths: Sequence[str], leave: Leave, policy: Played, bounds: Proposing | None) -> tuple[Held, ...]:
    """Every group's cell of the arm `on` (or its first arm), taught by the trials of all other families or problems of the ledgers.

    Raises UnreadableLedger.
    """
    named = dict.fromkeys(paths)
    with contextlib.ExitStack() as stack:
        every = [_opened(stack.enter_context(LedgerReader(path)), f"{path}:" * (len(named) > 1)) for path in named]
        families = {p.name: p.family for opened in every for run in opened.registered() for p in run.problems}

        def group(problem: str) -> str:
            return families.get(problem, problem) if leave == "family" else problem

        return tuple(
            held
            for opened in every
            for run in opened.runs.values()
            for held in _held(run, opened, every, group, policy, bounds)
        )


def _opened(reader: LedgerReader, name: str) -> _Opened:
    untold = Findings()  # a verification tells them
    every = sort_out(scan(reader.rows(), untold, spelling=False), untold)
    # What draws less teaches nothing about what is faster.
    runs = {run.run: run for run in every if run.registered is None or by_time(run.registered[1].statistics)}
    shelf = Shelf(reader.artifact, check_artifacts(reader.artifact_rows(), untold)[0])
    return _Opened(runs, shelf, name)


def _trials(every: Sequence[_Opened], table: list[Rule]) -> list[Trial]:
    """Of all ledgers, in the order in which they were named: as if the next began where the last one ended."""
    found: list[Trial] = []
    for opened in every:
        begins = found[-1].seq if found else 0
        found += [msgspec.structs.replace(t, seq=t.seq + begins) for t in trials_of(opened.runs, table)]
    return found


def _held(
    run: RunEvents,
    opened: _Opened,
    every: Sequence[_Opened],
    group: Callable[[str], str],
    policy: Played,
    bounds: Proposing | None,
) -> Iterator[Held]:
    if run.registered is None:
        return
    shelf, table, registered = opened.shelf, run.table(), run.registered[1]
    trials = _trials(every, highest(table))
    scripts = scripts_of(run)
    for stream in _chosen(run, list(scripts)):
        out = group(run.planned[stream].problem)
        taught, admitted = _taught(run, registered.seed, bounds, table, [t for t in trials if group(t.problem) != out])
        alone = play_cell(run, stream, scripts, policy, shelf, Taught(table, ()))
        with_it = play_cell(run, stream, scripts, policy, shelf, taught)
        saved, ratio, effect = _compared(alone, with_it, registered.statistics.margin)
        yield Held(opened.name + stream, out, admitted, len(taught.carried), alone, with_it, saved, ratio, effect)


def _chosen(run: RunEvents, streams: list[str]) -> list[str]:
    """One cell of each group: the arm `on` where it was played."""
    found: dict[tuple[str, str, str, int], str] = {}
    for stream in streams:
        cell = run.planned[stream]
        place = (cell.problem, cell.contract, cell.pool, cell.repetition)
        if cell.arm == "on" or place not in found:
            found[place] = stream
    return list(found.values())


def _taught(
    run: RunEvents, seed: int, bounds: Proposing | None, table: tuple[Rule, ...], trials: list[Trial]
) -> tuple[Taught, tuple[str, ...]]:
    proposed: dict[tuple[str, int], Rule] = {}
    rules, carried = [*table], []
    for event in lesson(run.run, seed, bounds, highest(table), trials):
        if isinstance(event, RuleProposed):
            proposed[event.rule.name, event.rule.version] = event.rule
        elif isinstance(event, RuleAdmitted):
            rules.append(proposed[event.rule, event.rule_version])
        else:
            carried.append(event)
    admitted = tuple(f"{rule.name} version {rule.version}" for rule in rules[len(table) :])
    return Taught(tuple(rules), tuple(carried)), admitted


def _compared(alone: CellPlayed, taught: CellPlayed, margin: float) -> tuple[int | None, float | None, Effect]:
    """A faster end helps and a slower one hurts, whatever it took; between equal ends the rounds decide."""
    one, other = alone.played, taught.played
    if one.end is None or other.end is None or one.time_us is None or other.time_us is None:
        return None, None, "not known"
    saved, ratio = _wasted(one) - _wasted(other), one.time_us / other.time_us
    if ratio > 1 + margin:
        return saved, ratio, "helps"
    if ratio < 1 / (1 + margin):
        return saved, ratio, "hurts"
    return saved, ratio, "helps" if saved > 0 else "hurts" if saved < 0 else "nothing"


def _wasted(course: Course) -> int:
    return sum(step.verdict != "FASTER" for step in course.steps)
