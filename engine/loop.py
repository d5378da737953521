"""One cell from its first profile to its stop: match, generate, gate, profile, judge, record, evolve. Measures nothing itself."""

from __future__ import annotations

from collections.abc import Callable

from ..events.errors import ToolFailed
from ..events.model import (
    Context,
    KernelGenerated,
    PrescriptionUnserved,
    RoundAttempted,
    RoundInterrupted,
    RoundJudged,
    Rule,
    RuleFired,
    RunStopped,
    cell_stream,
    firing_id,
)
from ..events.writer import LedgerWriter
from ..problems.contract import Problem
from ..profilers import artifacts as shapes
from ..profilers.launches import context, is_inert
from ..profilers.verdicts import Judgement, credit, judge
from ..profilers.witnesses import Witnesses, alone_ns, per_call
from ..projections.asking import ask, live_rules, must_stop, next_attempt
from ..projections.cell import CellState, fold
from ..projections.cell_plan import CellPlan
from ..projections.evolution import decide
from ..projections.matcher import Match
from ..projections.tried import refused, tried
from .catalogue import candidate_for
from .generators.base import Asked, Made
from .generators.chain import Chain, Try
from .generators.failures import last_failure
from .measuring import Bench, Interrupted, Unavailable
from .records import Draft

Say = Callable[[str], None]


class CellLoop:
    """Plays one cell against a ledger. Every state that it acts on is the fold of the cell's stream, so it can resume."""

    def __init__(
        self,
        ledger: LedgerWriter,
        bench: Bench,
        plan: CellPlan,
        problem: Problem,
        say: Say,
        chain: Chain | None = None,
    ) -> None:
        """`chain` None: the catalogue alone, whose prescriptions are all that the problem registered."""
        self._ledger, self._bench, self._plan, self._problem, self._say = ledger, bench, plan, problem, say
        self._chain = chain
        self._stream = cell_stream(plan.run, plan.cell)
        self._state = CellState(cell=plan.cell)
        for stored in ledger.events(self._stream):
            self._state = fold(self._state, stored.event)

    def run(self) -> CellState:
        """Go on until the cell stops; a round that was cut off before is closed first and tried again."""
        if self._state.open:
            self._interrupt("the run ended before the round did")
        while self._state.stopped is None:
            self._step()
        return self._state

    def _step(self) -> None:
        reason = must_stop(self._plan, self._state)
        if reason is not None:
            return self._stop(reason)
        if self._state.incumbent is None or self._state.incumbent not in self._state.signals:
            return self._attempt(self._problem.start, self._round_zero)
        found = ask(self._plan, self._state, self._context(self._state.incumbent))
        if found.fired is None:
            return self._stop("no rule fires")
        if found.fired.stop:
            draft = Draft()
            draft.add(self._firing(found, *next_attempt(self._state)))
            return self._stop("stop rule", found.fired.name, draft)
        incumbent = self._ledger.artifact(self._state.incumbent).decode()
        return self._attempt(incumbent, lambda draft: self._round(draft, found, incumbent))

    def _attempt(self, incumbent: str, body: Callable[[Draft], None]) -> None:
        """Commit the attempt before its first sample, then the whole round in one transaction."""
        round_, attempt = next_attempt(self._state)
        opening = Draft()
        digest = opening.keep_source(incumbent)
        opening.add(RoundAttempted(cell=self._plan.cell, round=round_, attempt=attempt, incumbent=digest))
        self._commit(opening)
        draft = Draft()
        try:
            body(draft)
        except Interrupted as fault:
            self._interrupt(str(fault), draft.spent())
            if isinstance(fault, Unavailable):
                raise ToolFailed(f"{fault}. What was measured is in the ledger: go on with --resume.") from fault
            return None
        return self._commit(draft)

    def _round_zero(self, draft: Draft) -> None:
        """Gate and profile the starting kernel against itself, which also gives its noise floor."""
        text, attempt = self._problem.start, self._state.attempt
        draft.add(self._generated(draft, None, text, "start", "start"))
        gated = self._bench.gate(draft, 0, attempt, text)
        if gated.outcome in ("timeout", "worker_lost"):
            raise Interrupted(f"gate of the starting kernel: {gated.outcome}")
        if gated.outcome != "passed":
            self._say(f"round 0: the starting kernel is not fit to measure ({gated.outcome})")
            return
        if gated.launches is None:
            raise Interrupted("gate: passed without a launch list")
        timed = self._bench.profile(draft, 0, attempt, text, text, gated.launches, self._live(draft, gated.launches))
        self._bench.floor(draft, 0, text, timed)
        self._say("round 0: starting kernel profiled")

    def _round(self, draft: Draft, found: Match, incumbent: str) -> None:
        fired = self._firing(found, self._state.round, self._state.attempt)
        draft.add(fired)
        made = self._candidate(draft, fired, incumbent)
        if made is None:
            return self._unserved(draft, fired)
        draft.add(self._generated(draft, fired.firing, made.source, made.generator, made.variant))
        judged = self._measure(draft, made.source, incumbent)
        if judged.verdict == "FASTER":
            timed = self._bench.time(draft, "floor", made.source, made.source, self._state.attempt)
            self._bench.floor(draft, self._state.round, made.source, timed)
        self._conclude(draft, fired, draft.keep_source(made.source), judged)

    def _candidate(self, draft: Draft, fired: RuleFired, incumbent: str) -> Made | None:
        """What the catalogue, or the first generator of the chain that can, makes of the firing."""
        question = self._bench.question("sweep", draft.keep_source(incumbent), self._state.attempt)
        margin, executor = self._plan.statistics.margin, self._bench.executor
        if self._chain is None:
            return candidate_for(draft, executor, question, fired, incumbent, margin)
        assert fired.prescription is not None  # stop rules end the cell
        asked = Asked(
            problem=self._problem,
            contract=self._plan.cell.contract,
            prescription=fired.prescription,
            rule=fired.rule,
            source=incumbent,
            signals=self._state.signals.get(self._incumbent, {}),
            failure=last_failure(self._ledger, self._stream, self._incumbent),
            chip=self._plan.chip.name,
        )
        known = (refused(self._state), tried(self._plan.policy, self._state))
        return self._chain.make(Try(draft, executor, question, fired, self._state.attempt, asked, known, margin))

    def _unserved(self, draft: Draft, fired: RuleFired) -> None:
        """Nobody could follow the prescription: the round ends without a verdict, and this incumbent is not prescribed it again."""
        assert fired.prescription is not None  # stop rules end the cell
        reason = "no generator has a candidate"
        event = PrescriptionUnserved(
            cell=self._plan.cell,
            round=self._state.round,
            attempt=self._state.attempt,
            firing=fired.firing,
            rule=fired.rule,
            rule_version=fired.rule_version,
            prescription=fired.prescription,
            incumbent=self._incumbent,
            reason=reason,
        )
        draft.add(event)
        self._say(f"round {event.round}: {fired.rule} -> {fired.prescription}: {reason}")

    def _measure(self, draft: Draft, text: str, incumbent: str) -> Judgement:
        """Gate, inertness, samples and counters of a candidate, and the verdict that they give."""
        round_, attempt = self._state.round, self._state.attempt
        gated = self._bench.gate(draft, round_, attempt, text)
        inert, samples, fault, busy = False, None, "not measured", None
        incumbent_wall, alone = self._standing()
        walls, fastest = (incumbent_wall, per_call(gated.report)), min(self._alone().values(), default=None)

        def judged(seen: shapes.Samples) -> Judgement:
            return self._judge(seen, Witnesses(alone=alone, fastest=fastest, walls=walls, busy=busy))

        if gated.outcome == "passed" and gated.launches is not None:
            mine = shapes.decode(shapes.Launches, draft.artifacts[gated.launches][0])
            inert = is_inert(mine, self._launches(self._incumbent))
            if not inert:
                live = self._live(draft, gated.launches)
                timed = self._bench.profile(draft, round_, attempt, text, incumbent, gated.launches, live, judged)
                samples, fault, busy = timed.samples, timed.fault or fault, timed.busy_ns
        if samples is not None:
            return judged(samples)
        return self._judge(None, None, gated.outcome, inert, fault)

    def _standing(self) -> tuple[float | None, float | None]:
        """(wall-clock ns a call, ns alone) of the incumbent, by its own gate and its own noise floor."""
        report = self._state.reports.get(self._incumbent)
        wall = None if report is None else per_call(shapes.decode(shapes.Report, self._ledger.artifact(report)))
        return wall, self._alone().get(self._incumbent)

    def _alone(self) -> dict[str, int]:
        """By source: ns alone of every incumbent so far."""
        floors = self._state.alone.items()
        return {source: alone_ns(shapes.decode(shapes.Samples, self._ledger.artifact(name))) for source, name in floors}

    def _judge(
        self,
        samples: shapes.Samples | None,
        witnesses: Witnesses | None,
        outcome: str = "passed",
        inert: bool = False,
        fault: str = "",
    ) -> Judgement:
        return judge(
            outcome=outcome,
            inert=inert,
            samples=samples,
            fault=fault,
            problem=self._plan.problem,
            contract=self._plan.cell.contract,
            chip=self._plan.chip,
            statistics=self._plan.statistics,
            noise_floor=self._state.floors.get(self._incumbent, 0.0),
            witnesses=witnesses,
        )

    def _live(self, draft: Draft, launches: str) -> tuple[Rule, ...]:
        """The rules that can still fire on a kernel: those retired in its context need not be measured for."""
        listed = shapes.decode(shapes.Launches, draft.artifacts[launches][0])
        return live_rules(self._plan, self._state, self._context_of(listed, lambda name: draft.artifacts[name][0]))

    def _conclude(self, draft: Draft, fired: RuleFired, candidate: str, judged: Judgement) -> None:
        """The verdict, credited by firing id, and what it makes of the rule table."""
        event = RoundJudged(
            cell=self._plan.cell,
            round=self._state.round,
            attempt=self._state.attempt,
            firing=fired.firing,
            rule=fired.rule,
            rule_version=fired.rule_version,
            candidate=candidate,
            incumbent=self._incumbent,
            verdict=judged.verdict,
            reason=judged.reason,
            inert=judged.inert,
            interval=judged.interval,
            margin=judged.margin,
            credit=credit(judged.verdict),
            next_incumbent=candidate if judged.verdict == "FASTER" else self._incumbent,
        )
        draft.add(event)
        state = self._state
        for earlier in draft.events:
            state = fold(state, earlier)
        decisions = decide(self._plan, state)
        for decision in decisions:
            draft.add(decision)
        ratio = f" {judged.interval.median:.2f}x" if judged.interval else ""
        evolved = "".join(f", {type(d).__name__.removeprefix('Rule').lower()} {d.rule}" for d in decisions)
        self._say(f"round {event.round}: {fired.rule} -> {judged.verdict}{ratio} ({judged.reason}){evolved}")

    def _firing(self, found: Match, round_: int, attempt: int) -> RuleFired:
        assert found.fired is not None
        rule = found.fired
        return RuleFired(
            cell=self._plan.cell,
            round=round_,
            firing=firing_id(self._plan.run, self._plan.cell, round_, attempt),
            rule=rule.name,
            rule_version=rule.version,
            prescription=rule.prescription,
            incumbent=self._incumbent,
            context=self._context(self._incumbent),
            clauses=found.clauses,
            abstained=found.abstained,
            blocked=found.blocked,
            predicted_gain=found.predicted_gain,
        )

    def _generated(self, draft: Draft, firing: str | None, text: str, generator: str, variant: str) -> KernelGenerated:
        return KernelGenerated(
            cell=self._plan.cell,
            round=self._state.round,
            firing=firing,
            generator=generator,
            variant=variant,
            source=draft.keep_source(text),
            parent=None if firing is None else self._incumbent,
        )

    @property
    def _incumbent(self) -> str:
        assert self._state.incumbent is not None
        return self._state.incumbent

    def _context(self, source: str) -> Context:
        return self._context_of(self._launches(source), lambda name: self._ledger.artifact(name))

    def _context_of(self, listed: shapes.Launches, read: Callable[[str], bytes]) -> Context:
        texts = [read(kernel.ttir).decode() for kernel in listed.kernels if kernel.ttir]
        return context(self._plan.chip, self._plan.cell.contract, self._plan.problem.family, listed, texts)

    def _launches(self, source: str) -> shapes.Launches:
        return shapes.decode(shapes.Launches, self._ledger.artifact(self._state.launches[source]))

    def _interrupt(self, reason: str, draft: Draft | None = None) -> None:
        draft = draft or Draft()
        round_, attempt = self._state.round, self._state.attempt
        draft.add(RoundInterrupted(cell=self._plan.cell, round=round_, attempt=attempt, reason=reason))
        self._commit(draft)
        self._say(f"round {round_}: interrupted ({reason.splitlines()[0][:100]})")

    def _stop(self, reason: str, rule: str | None = None, draft: Draft | None = None) -> None:
        draft = draft or Draft()
        draft.add(RunStopped(run=self._plan.run, cell=self._plan.cell, reason=reason, rule=rule))
        self._commit(draft)
        self._say(f"stop: {reason}{f' ({rule})' if rule else ''}")

    def _commit(self, draft: Draft) -> None:
        self._ledger.append(
            self._stream, self._ledger.version(self._stream), draft.events, list(draft.artifacts.values())
        )
        for event in draft.events:
            self._state = fold(self._state, event)
