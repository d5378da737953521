"""A candidate measured beside its cell's incumbent, and the verdict that the pure rooms give on it. Records no verdict and decides no rule."""

from __future__ import annotations

from msgspec.structs import replace

from ..profilers import artifacts as shapes
from ..profilers.launches import is_inert
from ..profilers.verdicts import Judgement, judge
from ..profilers.witnesses import Witnesses, per_call
from .cell_ledger import CellLedger
from .measuring import Bench
from .records import Draft

_NOT_MEASURED = "not measured"


def measure(cell: CellLedger, bench: Bench, draft: Draft, text: str, incumbent: str) -> Judgement:
    """Gate, inertness, samples and counters of a candidate (`text`), and the verdict that they give."""
    round_, attempt = cell.state.round, cell.state.attempt
    gated = bench.gate(draft, round_, attempt, text)
    standing = _witnesses(cell, gated.report)
    if gated.outcome != "passed" or gated.launches is None:
        return _verdict(cell, outcome=gated.outcome)
    listed = shapes.decode(shapes.Launches, draft.artifacts[gated.launches][0])
    if is_inert(listed, cell.launches(cell.incumbent)):
        return _verdict(cell, inert=True)

    def judged(seen: shapes.Samples) -> Judgement:
        return _verdict(cell, seen, standing)

    live = cell.live(draft, gated.launches)
    timed = bench.profile(draft, round_, attempt, text, incumbent, gated.launches, live, judged)
    if timed.samples is None:
        return _verdict(cell, fault=timed.fault or _NOT_MEASURED)
    return _verdict(cell, timed.samples, replace(standing, busy=timed.busy_ns))


def _witnesses(cell: CellLedger, report: shapes.Report) -> Witnesses:
    """What is there beside the samples of a candidate before it is profiled; `report` is its gate's."""
    alone = cell.alone()
    return Witnesses(
        alone=alone.get(cell.incumbent),
        fastest=min(alone.values(), default=None),
        walls=(cell.wall(), per_call(report)),
    )


def _verdict(
    cell: CellLedger,
    samples: shapes.Samples | None = None,
    witnesses: Witnesses | None = None,
    *,
    outcome: str = "passed",
    inert: bool = False,
    fault: str = _NOT_MEASURED,
) -> Judgement:
    plan = cell.plan
    return judge(
        outcome=outcome,
        inert=inert,
        samples=samples,
        fault=fault,
        problem=plan.problem,
        contract=plan.cell.contract,
        chip=plan.chip,
        statistics=plan.statistics,
        noise_floor=cell.state.floors.get(cell.incumbent, 0.0),
        witnesses=witnesses,
    )
