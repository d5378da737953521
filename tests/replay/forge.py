"""Small whole ledgers with made-up samples and counters, written as a run would write them. No number here was measured.

The writing side's own pure code (profilers, projections) derives the recorded values, so a clean forged ledger also holds the
verifier against them.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from gpusolver.events.model import (
    Cell,
    ClaimRegistered,
    Context,
    DeviceCalibrated,
    Event,
    HeadToHead,
    KernelGated,
    KernelGenerated,
    NoiseFloorMeasured,
    Origin,
    Policy,
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
    TilesSwept,
    cell_stream,
    firing_id,
)
from gpusolver.events.writer import LedgerWriter
from gpusolver.profilers import artifacts as shapes
from gpusolver.profilers.gates import gate_seed, judge_report
from gpusolver.profilers.intervals import interval, noise_floor
from gpusolver.profilers.launches import context, is_inert
from gpusolver.profilers.signals import signals, tier
from gpusolver.profilers.sweeps import choose
from gpusolver.profilers.verdicts import Judgement, credit, is_final, judge
from gpusolver.projections.asking import ask, must_stop, next_attempt
from gpusolver.projections.cell import CellState, fold
from gpusolver.projections.cell_plan import CellPlan
from gpusolver.projections.claims import answer, claim_repetitions
from gpusolver.projections.evolution import decide
from gpusolver.projections.matcher import Match

from . import exam_world
from .world import CHIP, CONFIGS, PROBLEM, RULES, START, TEMPLATE, World

POLICY = Policy(credible_num=19, credible_den=20)


class Forge:
    """Writes one run cell by cell, in the order of replay/FORMAT.md."""

    def __init__(
        self,
        ledger: LedgerWriter,
        world: World,
        *,
        contract: str = "tf32-allowed",
        arms: tuple[str, ...] = ("off", "on", "off+tabu"),
        repetitions: int = 2,
        max_rounds: int = 8,
        rules: tuple[Rule, ...] = RULES,
        at_least: float = 1.5,
        origin: Origin | None = None,
        run: str = "run1",
        interrupt: tuple[int, int] = (0, 0),
        looks: tuple[int, ...] | None = None,
        second: bool = False,
        policy: Policy = POLICY,
        comparisons: tuple[str, ...] | None = None,
    ) -> None:
        self._second = second
        self.ledger, self.world, self.rules, self.run, self._interrupt = ledger, world, rules, run, interrupt
        plan = tuple(
            Cell(problem="toy", contract=contract, pool="full", arm=arm, repetition=repetition)
            for repetition in range(1, repetitions + 1)
            for arm in arms
        )
        claim = ClaimRegistered(
            claim="c1",
            text="on beats off",
            problem="toy",
            contract=contract,
            pool="full",
            comparison="endpoint",
            at_least=at_least,
            decimals=1,
        )
        self.registered = RunRegistered(
            run=run,
            seed=42,
            executor="local" if origin is None else "recorded",
            origin=origin,
            max_rounds=max_rounds,
            plan=plan,
            problems=(PROBLEM,),
            policy=policy,
            statistics=Statistics(
                blocks=8, tail_num=1, tail_den=20, margin=0.01, floor_multiple=2.0, looks=looks or UNSET
            ),
            claims=(claim,) if comparisons is None or claim.comparison in comparisons else (),
            code={"version": "made up"},
            environment={"made_up": "yes"},
            comparisons=UNSET if comparisons is None else comparisons,
        )
        self.states: dict[Cell, CellState] = {}
        self.sources: dict[str, str] = {}
        self._origin = itertools.count(1) if origin is not None else itertools.repeat(None)

    def put(self, stream: str, *events: Event) -> None:
        """Append with every artifact that is new."""
        blobs = [(content, "application/octet-stream") for content in self.world.blobs.values()]
        self.ledger.append(stream, self.ledger.version(stream), events, blobs)
        self.world.blobs.clear()

    def source(self, text: str) -> str:
        name = self.world.keep(text.encode())
        self.sources[name] = text
        return name

    def all(self) -> None:
        """The whole run."""
        self.register()
        for cell in self.registered.plan:
            self.cell(cell)
        self.finish()

    def register(self) -> None:
        self.put(
            self.run,
            self.registered,
            *(RuleSeeded(run=self.run, rule=r) for r in self.rules),
            DeviceCalibrated(
                run=self.run,
                device="gpu0",
                chip=CHIP,
                copy_gbps=2**30 / 1_200_000,
                calibration=self.world.keep_json(self.calibration()),
                origin_seq=next(self._origin),
            ),
        )

    def calibration(self) -> shapes.Calibration:
        """The copy ceiling; with the second set also those of exam_world.py, and its limits."""
        copied = shapes.Copy(bytes=2**30, ns=(1_200_000, 1_210_000, 1_190_000))
        if not self._second:
            return shapes.Calibration(copy=copied)
        raw = json.dumps(exam_world.CALIBRATION).encode()
        return replace(shapes.decode(shapes.Calibration, raw), copy=copied)

    def extras(self, text: str) -> dict[str, bytes]:
        """What is measured beside the samples, by role; warm samples anew each time."""
        if not self._second:
            return {}
        code = self.world.launches(text)[1].kernels[0].code
        warm = replace(self.world.samples(text, text, 3)[1], cache="warm")
        made = {
            "timeline": exam_world.TIMELINE,
            "energy": exam_world.ENERGY,
            "compiled": exam_world.compiled(code or ""),
        }
        return {role: json.dumps(made[role]).encode() for role in sorted(made)} | {"warm": shapes.encode(warm)}

    def plan(self, cell: Cell) -> CellPlan:
        registered = self.registered
        return CellPlan(
            run=self.run,
            cell=cell,
            rules=self.rules,
            chip=CHIP,
            problem=PROBLEM,
            policy=registered.policy,
            statistics=registered.statistics,
            max_rounds=registered.max_rounds,
            seed=registered.seed,
        )

    def cell(self, cell: Cell) -> None:
        """Round 0, rounds, end."""
        self.states[cell] = CellState(cell=cell)
        self.open(cell, self.source(START))
        if must_stop(self.plan(cell), self.states[cell]) is not None:
            return self.close(cell, [self.stop(cell, "interrupted too often")])
        self.close(cell, self.start(cell))
        while (stop := self.round(cell)) is None:
            pass
        return self.close(cell, stop)

    def open(self, cell: Cell, incumbent: str) -> None:
        round_, attempt = next_attempt(self.states[cell])
        self.close(cell, [RoundAttempted(cell=cell, round=round_, attempt=attempt, incumbent=incumbent)])
        if round_ == self._interrupt[0] and attempt <= self._interrupt[1]:
            self.close(cell, [RoundInterrupted(cell=cell, round=round_, attempt=attempt, reason="made-up fault")])
            if must_stop(self.plan(cell), self.states[cell]) is None:
                self.open(cell, incumbent)

    def close(self, cell: Cell, events: list[Event]) -> None:
        self.put(cell_stream(self.run, cell), *events)
        for event in events:
            self.states[cell] = fold(self.states[cell], event)

    def start(self, cell: Cell) -> list[Event]:
        text, state = START, self.states[cell]
        generated = KernelGenerated(
            cell=cell, round=0, firing=None, generator="start", variant="start", source=self.source(text), parent=None
        )
        gated, listed = self.gate(cell, text, 0, state.attempt)
        if gated.outcome != "passed":
            return [generated, gated]
        profiled, samples = self.profile(cell, text, text, 0, listed)
        floor = self.floor(cell, text, 0, profiled.samples, samples)
        return [generated, gated, profiled, replace(floor, origin_seq=profiled.origin_seq)]

    def gate(self, cell: Cell, text: str, round_: int, attempt: int) -> tuple[KernelGated, str]:
        source = self.source(text)
        name, report = self.world.report(text, gate_seed(self.registered.seed, source, attempt))
        outcome, reason = judge_report(report, PROBLEM, cell.contract)
        listed = self.world.launches(text)[0]
        event = KernelGated(
            cell=cell,
            round=round_,
            attempt=attempt,
            source=source,
            outcome=outcome,
            reason=reason,
            report=name,
            launches=listed if outcome == "passed" else None,
            origin_seq=next(self._origin),
        )
        return event, listed

    def measured(self, cell: Cell, text: str, against: str, round_: int) -> tuple[str, shapes.Samples]:
        """All blocks, or those of the first look that stands."""
        statistics = self.registered.statistics
        name, samples = self.world.samples(against, text, statistics.blocks)
        if round_ == 0 or statistics.looks is UNSET:
            return name, samples
        del self.world.blobs[name]
        floor = self.states[cell].floors[self.source(against)]
        seen = samples
        for number in statistics.looks:
            seen = replace(samples, blocks=samples.blocks[:number])
            if is_final(self.judgement(cell, "passed", False, seen, floor)):
                break
        return self.world.keep_json(seen), seen

    def judgement(
        self, cell: Cell, outcome: str, inert: bool, samples: shapes.Samples | None, floor: float
    ) -> Judgement:
        return judge(
            outcome=outcome,
            inert=inert,
            samples=samples,
            fault="made-up fault",
            problem=PROBLEM,
            contract=cell.contract,
            chip=CHIP,
            statistics=self.registered.statistics,
            noise_floor=floor,
        )

    def profile(self, cell: Cell, text: str, against: str, round_: int, listed: str) -> tuple[Profiled, shapes.Samples]:
        name, samples = self.measured(cell, text, against, round_)
        counters, counted = self.world.counters(text)
        launches, extras = self.world.launches(text)[1], self.extras(text)
        rate = 2**30 / 1_200_000
        calibration = self.calibration()
        seen = signals(PROBLEM, cell.contract, CHIP, rate, samples, launches, counted, calibration, extras)
        event = Profiled(
            cell=cell,
            round=round_,
            source=self.source(text),
            against=self.source(against),
            tier=tier(launches, counted),
            samples=name,
            counters=counters,
            launches=listed,
            signals=seen,
            cache="cold",
            origin_seq=next(self._origin),
            extras={role: self.world.keep(content) for role, content in extras.items()} or UNSET,
        )
        return event, samples

    def floor(self, cell: Cell, text: str, round_: int, name: str, samples: shapes.Samples) -> NoiseFloorMeasured:
        found = interval(samples, self.registered.statistics)
        assert found is not None
        return NoiseFloorMeasured(
            cell=cell,
            round=round_,
            source=self.source(text),
            samples=name,
            interval=found,
            floor=noise_floor(found),
            origin_seq=next(self._origin),
        )

    def context_of(self, cell: Cell, text: str) -> Context:
        listed = self.world.launches(text)[1]
        texts = ["tt.dot" if "dot(" in text else "arith.mulf"]
        return context(CHIP, cell.contract, PROBLEM.family, listed, texts)

    def fired(self, cell: Cell, found: Match, round_: int, attempt: int) -> RuleFired:
        incumbent = self.states[cell].incumbent
        assert found.fired is not None and incumbent is not None
        return RuleFired(
            cell=cell,
            round=round_,
            firing=firing_id(self.run, cell, round_, attempt),
            rule=found.fired.name,
            rule_version=found.fired.version,
            prescription=found.fired.prescription,
            incumbent=incumbent,
            context=self.context_of(cell, self.sources[incumbent]),
            clauses=found.clauses,
            abstained=found.abstained,
            blocked=found.blocked,
            predicted_gain=found.predicted_gain,
        )

    def stop(self, cell: Cell, reason: str, by: str | None = None) -> RunStopped:
        return RunStopped(run=self.run, cell=cell, reason=reason, rule=by)

    def round(self, cell: Cell) -> list[Event] | None:
        """Play one round; the closing events if the cell ends instead."""
        plan, state = self.plan(cell), self.states[cell]
        reason = must_stop(plan, state)
        if reason is not None:
            return [self.stop(cell, reason)]
        assert state.incumbent is not None
        found = ask(plan, state, self.context_of(cell, self.sources[state.incumbent]))
        if found.fired is None:
            return [self.stop(cell, "no rule fires")]
        if found.fired.stop:
            return [self.fired(cell, found, *next_attempt(state)), self.stop(cell, "stop rule", found.fired.name)]
        self.open(cell, state.incumbent)
        if must_stop(plan, self.states[cell]) == "interrupted too often":
            return [self.stop(cell, "interrupted too often")]
        self.close(cell, self.body(cell, found))
        return None

    def body(self, cell: Cell, found: Match) -> list[Event]:
        state = self.states[cell]
        assert state.incumbent is not None and found.fired is not None
        incumbent = self.sources[state.incumbent]
        fired = self.fired(cell, found, state.round, state.attempt)
        events: list[Event] = [fired]
        if found.fired.name == "tiles":
            sweep = shapes.Sweep(samples=tuple(self.swept(config) for config in CONFIGS))
            chosen = choose(sweep, margin=0.01)
            assert chosen is not None
            events.append(
                TilesSwept(
                    cell=cell,
                    round=state.round,
                    firing=fired.firing,
                    template=self.source(TEMPLATE),
                    samples=self.world.keep_json(sweep),
                    configs=CONFIGS,
                    chosen=chosen,
                    origin_seq=next(self._origin),
                )
            )
            text, generator = self.filled(CONFIGS[chosen]), "template"
        elif found.fired.name == "polish":
            text, generator = incumbent + "# polish\n", "file"
        else:
            text, generator = incumbent.replace('"ieee"', '"tf32"'), "flag"
        events.append(
            KernelGenerated(
                cell=cell,
                round=state.round,
                firing=fired.firing,
                generator=generator,
                variant=found.fired.name if generator == "flag" else f"{found.fired.name}:made_up.py",
                source=self.source(text),
                parent=state.incumbent,
            )
        )
        return self.judged(cell, fired, text, incumbent, events)

    def filled(self, config: dict[str, int]) -> str:
        return TEMPLATE.replace('CONFIG = {"BLOCK": 0}', "CONFIG = " + json.dumps(config, sort_keys=True))

    def swept(self, config: dict[str, int]) -> tuple[int, ...] | None:
        if config["BLOCK"] == 4096:
            return None
        return self.world.swept(self.filled(config), 7)

    def judged(self, cell: Cell, fired: RuleFired, text: str, incumbent: str, events: list[Event]) -> list[Event]:
        state = self.states[cell]
        gated, listed = self.gate(cell, text, state.round, state.attempt)
        events.append(gated)
        inert = gated.outcome == "passed" and is_inert(self.world.launches(text)[1], self.world.launches(incumbent)[1])
        samples = None
        if gated.outcome == "passed" and not inert:
            profiled, samples = self.profile(cell, text, incumbent, state.round, listed)
            events.append(profiled)
        found = self.judgement(cell, gated.outcome, inert, samples, state.floors[fired.incumbent])
        if found.verdict == "FASTER":
            events.append(self.floor(cell, text, state.round, *self.world.samples(text, text, 8)))
        faster = found.verdict == "FASTER"
        events.append(
            RoundJudged(
                cell=cell,
                round=state.round,
                attempt=state.attempt,
                firing=fired.firing,
                rule=fired.rule,
                rule_version=fired.rule_version,
                candidate=gated.source,
                incumbent=fired.incumbent,
                verdict=found.verdict,
                reason=found.reason,
                inert=found.inert,
                interval=found.interval,
                margin=found.margin,
                credit=credit(found.verdict),
                next_incumbent=gated.source if faster else fired.incumbent,
            )
        )
        after = state
        for event in events:
            after = fold(after, event)
        return [*events, *decide(self.plan(cell), after)]

    def finish(self) -> None:
        """Comparisons, claims, end of the run."""
        cells = self.registered.plan
        events = [e for repetition in sorted({c.repetition for c in cells}) for e in self.compared(repetition)]
        claims = [
            answer(self.run, claim, events, claim_repetitions(self.registered, claim))
            for claim in self.registered.claims
        ]
        self.put(self.run, *events, *claims, RunStopped(run=self.run, cell=None, reason="plan completed", rule=None))

    def compared(self, repetition: int) -> list[HeadToHead]:
        won = {
            c.arm: self.sources[s.incumbent or ""]
            for c, s in self.states.items()
            if c.repetition == repetition and s.incumbent is not None and s.start in s.signals
        }
        strict, listed = self.registered.plan[0].contract == "fp32-strict", self.registered.comparisons
        baselines = (
            ("eager_fp32", "compile_fp32") if strict else ("eager_fp32", "compile_fp32", "eager_tf32", "compile_tf32")
        )
        sides = ({"start": START} if "on" in won else {}) | won | {name: baseline(name) for name in baselines}
        pairs = {
            "endpoint": ("off", "on"),
            "endpoint_kernel": ("off!", "on!"),
            "total": ("start", "on"),
            "kernel_part": ("start", "on!"),
            "precision_part": ("on!", "on"),
            "tabu": ("off+tabu", "on"),
        } | {f"versus:{name}": (name, "on") for name in baselines}
        return [
            self.head_to_head(repetition, name, *(_side(sides, side) for side in pair))
            for name, pair in pairs.items()
            if all(side.rstrip("!") in sides for side in pair) and (listed is UNSET or name in listed)
        ]

    def head_to_head(self, repetition: int, comparison: str, left: str, right: str) -> HeadToHead:
        cell = self.registered.plan[0]
        equal = left == right
        name, samples = (None, None) if equal else self.world.samples(left, right, self.registered.statistics.blocks)
        return HeadToHead(
            run=self.run,
            problem=cell.problem,
            contract=cell.contract,
            pool=cell.pool,
            repetition=repetition,
            comparison=comparison,
            left=self.source(left),
            right=self.source(right),
            samples=name,
            interval=None if samples is None else interval(samples, self.registered.statistics),
            outcome="identical" if equal else "measured",
            origin_seq=None if equal else next(self._origin),
        )


def baseline(name: str) -> str:
    """PyTorch's kernel of that name, made up."""
    mode, precision = name.split("_")
    text = f"{START}# {mode}\n"
    return text.replace('"ieee"', '"tf32"') if precision == "tf32" else text


def _side(sides: dict[str, str], side: str) -> str:
    text = sides[side.rstrip("!")]
    return text.replace('"tf32"', '"ieee"') if side.endswith("!") else text


def forge(path: Path, world: World | None = None, **options: object) -> Path:
    """A whole ledger at `path`."""
    with LedgerWriter(path, clock=lambda: "2026-01-01T00:00:00.000Z") as ledger:
        Forge(ledger, world or World(), **options).all()  # type: ignore[arg-type]
    return path
