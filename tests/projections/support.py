"""Event builders, data-sheet chips and a pure driver of one cell with scripted outcomes, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpusolver.engine.rules import seed_rules
from gpusolver.events.model import (
    Cell,
    Chip,
    Clause,
    Context,
    Credit,
    DeviceCalibrated,
    Event,
    Gain,
    HeadToHead,
    Interval,
    KernelGated,
    KernelGenerated,
    NoiseFloorMeasured,
    Policy,
    ProblemDeclared,
    Profiled,
    RoundAttempted,
    RoundInterrupted,
    RoundJudged,
    Rule,
    RuleFired,
    RuleSeeded,
    RunRegistered,
    RunStopped,
    Statistics,
    Verdict,
    firing_id,
)
from gpusolver.projections.asking import ask, must_stop, next_attempt
from gpusolver.projections.cell import CellState, fold
from gpusolver.projections.cell_plan import CellPlan
from gpusolver.projections.evolution import decide
from gpusolver.projections.matcher import Match

# Dense data-sheet peaks in TFLOP/s; the RTX 3090 runs TF32 no faster than fp32, the T4 (compute capability 7.5) has no TF32.
A100 = Chip(
    name="A100 SXM 40GB", compute_capability="8.0", peaks_tflops={"fp32": 19.5, "tf32": 156.0}, dram_gbps=1555.0
)
H200 = Chip(name="H200", compute_capability="9.0", peaks_tflops={"fp32": 66.9, "tf32": 494.7}, dram_gbps=4800.0)
RTX3090 = Chip(name="RTX 3090", compute_capability="8.6", peaks_tflops={"fp32": 35.6, "tf32": 35.6}, dram_gbps=936.0)
T4 = Chip(name="T4", compute_capability="7.5", peaks_tflops={"fp32": 8.1, "fp16": 65.0}, dram_gbps=320.0)

POLICY = Policy(credible_num=19, credible_den=20)
STATISTICS = Statistics(blocks=20, tail_num=1, tail_den=100, margin=0.01, floor_multiple=2.0)
CREDITS: dict[Verdict, Credit] = {"FASTER": "success", "SLOWER": "failure", "SAME": "failure", "AMBIGUOUS": "neutral"}
PRESCRIPTIONS = ("enable_tf32", "fuse", "cuda_graph", "fused_attention", "coalesce", "reduce_registers")


def rule(name: str, *clauses: tuple[str, str, float], **changed: object) -> Rule:
    """A rule of tier 1 with prescription `do_<name>`, or a stop."""
    fields: dict[str, object] = {
        "version": 1,
        "tier": 1,
        "position": 1,
        "stop": False,
        "prescription": None if changed.get("stop") else f"do_{name}",
        "clauses": tuple(Clause(signal=s, op=op, threshold=t) for s, op, t in clauses),  # type: ignore[arg-type]
        "guards": (),
        "contracts": (),
        "gain": Gain(form="constant", cap=2.0),
        "metrics": (),
        "origin": "test",
        "rationale": "made up",
    }
    return Rule(name=name, **{**fields, **changed})  # type: ignore[arg-type]


def cell_of(problem: str = "toy", arm: str = "on", contract: str = "tf32-allowed", repetition: int = 1) -> Cell:
    return Cell(problem=problem, contract=contract, pool="flags", arm=arm, repetition=repetition)


def context_of(chip: Chip = A100, language: str = "triton", structure: str = "no_dot") -> Context:
    return Context(chip=chip.name, contract="tf32-allowed", language=language, family="toy", structure=structure)


def problem_of(name: str = "toy", prescriptions: tuple[str, ...] = PRESCRIPTIONS) -> ProblemDeclared:
    return ProblemDeclared(
        name=name,
        digest="0" * 64,
        family="toy",
        dtype="float32",
        shape={"n": 512},
        flops=2 * 512**3,
        min_bytes=3 * 4 * 512**2,
        weight=1.0,
        limits={},
        prescriptions=prescriptions,
    )


def plan_of(cell: Cell, chip: Chip = A100, rules: tuple[Rule, ...] | None = None, max_rounds: int = 12) -> CellPlan:
    """A cell of run1 over the seed rules, where nothing else is given, with a variant for every prescription of the table."""
    table = seed_rules() if rules is None else rules
    prescriptions = tuple(entry.prescription for entry in table if entry.prescription is not None)
    return CellPlan(
        run="run1",
        cell=cell,
        rules=table,
        chip=chip,
        problem=problem_of(cell.problem, prescriptions),
        policy=POLICY,
        statistics=STATISTICS,
        max_rounds=max_rounds,
    )


@dataclass(frozen=True)
class Outcome:
    """What became of a firing: the verdict on `candidate`; `cut_off` attempts end in RoundInterrupted before it."""

    verdict: Verdict
    candidate: str = "candidate"
    inert: bool = False
    cut_off: int = 0


@dataclass
class World:
    """The scripted world of a cell: signals and context by source, and the outcome of each firing."""

    signals: Mapping[str, dict[str, float]]
    outcome: Callable[[RuleFired], Outcome]
    contexts: Mapping[str, Context]


def simulate(plan: CellPlan, world: World, start: str = "start") -> tuple[list[Event], CellState]:
    """Play a cell to its end without measuring: its events in order, and their fold."""
    events: list[Event] = []
    state = CellState(cell=plan.cell)

    def add(*new: Event) -> None:
        nonlocal state
        for event in new:
            events.append(event)
            state = fold(state, event)

    add(*round_zero(plan.cell, start, world.signals[start]))
    while state.stopped is None:
        assert state.incumbent is not None
        reason = must_stop(plan, state)
        found = ask(plan, state, world.contexts[state.incumbent])
        if reason is not None or found.fired is None:
            add(stop(plan.cell, reason or "no rule fires"))
        elif found.fired.stop:
            add(fired(plan, state, found, world), stop(plan.cell, "stop rule", found.fired.name))
        else:
            _play_round(plan, world, found, add, lambda: state)
    return events, state


def _play_round(
    plan: CellPlan, world: World, found: Match, add: Callable[..., None], now: Callable[[], CellState]
) -> None:
    outcome = world.outcome(fired(plan, now(), found, world))
    for _ in range(outcome.cut_off):
        round_, attempt = next_attempt(now())
        add(RoundAttempted(cell=plan.cell, round=round_, attempt=attempt, incumbent=now().incumbent or ""))
        add(RoundInterrupted(cell=plan.cell, round=round_, attempt=attempt, reason="killed"))
        if must_stop(plan, now()) is not None:
            return
    round_, attempt = next_attempt(now())
    firing = fired(plan, now(), found, world)
    add(RoundAttempted(cell=plan.cell, round=round_, attempt=attempt, incumbent=firing.incumbent), firing)
    add(*candidate(plan.cell, firing, attempt, outcome, world.signals.get(outcome.candidate, {"time_us": 1.0})))
    add(judged(plan.cell, firing, attempt, outcome))
    add(*decide(plan, now()))


def round_zero(cell: Cell, start: str, signals: dict[str, float]) -> tuple[Event, ...]:
    return (
        RoundAttempted(cell=cell, round=0, attempt=1, incumbent=start),
        KernelGenerated(cell=cell, round=0, firing=None, generator="start", variant="start", source=start, parent=None),
        gated(cell, 0, 1, start),
        profiled(cell, 0, start, start, signals),
        floor_of(cell, 0, start),
    )


def candidate(
    cell: Cell, firing: RuleFired, attempt: int, outcome: Outcome, signals: dict[str, float]
) -> tuple[Event, ...]:
    """What lies between a firing and its verdict; an inert candidate is not profiled."""
    source = outcome.candidate
    made = KernelGenerated(
        cell=cell,
        round=firing.round,
        firing=firing.firing,
        generator="template",
        variant=source,
        source=source,
        parent=firing.incumbent,
    )
    gate = gated(cell, firing.round, attempt, source)
    if outcome.inert:
        return made, gate
    return made, gate, profiled(cell, firing.round, source, firing.incumbent, signals)


def gated(cell: Cell, round_: int, attempt: int, source: str, outcome: str = "passed") -> KernelGated:
    return KernelGated(
        cell=cell,
        round=round_,
        attempt=attempt,
        source=source,
        outcome=outcome,
        reason="",
        report="r" * 64,
        launches=f"launches of {source}",
    )


def profiled(cell: Cell, round_: int, source: str, against: str, signals: dict[str, float]) -> Profiled:
    return Profiled(
        cell=cell,
        round=round_,
        source=source,
        against=against,
        tier="full",
        samples="s" * 64,
        counters="c" * 64,
        launches=f"launches of {source}",
        signals=signals,
        cache="cold",
    )


def interval(median: float, lower: float | None = None) -> Interval:
    return Interval(lower=median if lower is None else lower, median=median, upper=median, blocks=20, rank=4)


def floor_of(cell: Cell, round_: int, source: str, floor: float = 0.002) -> NoiseFloorMeasured:
    return NoiseFloorMeasured(
        cell=cell, round=round_, source=source, samples="s" * 64, interval=interval(1.0), floor=floor
    )


def fired(plan: CellPlan, state: CellState, found: Match, world: World) -> RuleFired:
    """The RuleFired of the coming attempt."""
    assert found.fired is not None and state.incumbent is not None
    round_, attempt = next_attempt(state)
    return RuleFired(
        cell=plan.cell,
        round=round_,
        firing=firing_id(plan.run, plan.cell, round_, attempt),
        rule=found.fired.name,
        rule_version=found.fired.version,
        prescription=found.fired.prescription,
        incumbent=state.incumbent,
        context=world.contexts[state.incumbent],
        clauses=found.clauses,
        abstained=found.abstained,
        blocked=found.blocked,
        predicted_gain=found.predicted_gain,
    )


def judged(cell: Cell, firing: RuleFired, attempt: int, outcome: Outcome) -> RoundJudged:
    return RoundJudged(
        cell=cell,
        round=firing.round,
        attempt=attempt,
        firing=firing.firing,
        rule=firing.rule,
        rule_version=firing.rule_version,
        candidate=outcome.candidate,
        incumbent=firing.incumbent,
        verdict=outcome.verdict,
        reason="inert" if outcome.inert else "scripted",
        inert=outcome.inert,
        interval=None,
        margin=None,
        credit=CREDITS[outcome.verdict],
        next_incumbent=outcome.candidate if outcome.verdict == "FASTER" else firing.incumbent,
    )


def stop(cell: Cell | None, reason: str, rule_name: str | None = None, run: str = "run1") -> RunStopped:
    return RunStopped(run=run, cell=cell, reason=reason, rule=rule_name)


def firings(events: list[Event]) -> list[str]:
    """Names of the rules that fired, in order."""
    return [event.rule for event in events if isinstance(event, RuleFired)]


def registered(plan: tuple[Cell, ...], run: str = "run1") -> RunRegistered:
    names = dict.fromkeys(cell.problem for cell in plan)
    return RunRegistered(
        run=run,
        seed=7,
        executor="recorded",
        origin=None,
        max_rounds=12,
        plan=plan,
        problems=tuple(problem_of(name) for name in names),
        policy=POLICY,
        statistics=STATISTICS,
        claims=(),
        code={},
        environment={},
    )


def run_stream(plan: tuple[Cell, ...], rules: tuple[Rule, ...], run: str = "run1") -> list[Event]:
    """The head of a run's own stream: registration, rules, calibration."""
    calibrated = DeviceCalibrated(run=run, device="made up", chip=A100, copy_gbps=1300.0, calibration="k" * 64)
    return [registered(plan, run), *(RuleSeeded(run=run, rule=entry) for entry in rules), calibrated]


def head_to_head(
    comparison: str, median: float | None, repetition: int = 1, outcome: str = "measured", lower: float | None = None
) -> HeadToHead:
    """A comparison of `toy`; without a median a fault, or two identical sources."""
    found = None if median is None else interval(median, lower)
    return HeadToHead(
        run="run1",
        problem="toy",
        contract="tf32-allowed",
        pool="flags",
        repetition=repetition,
        comparison=comparison,
        left="left",
        right="right",
        samples=None if found is None else "s" * 64,
        interval=found,
        outcome=outcome,
    )
