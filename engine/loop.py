"""One cell from its first profile to its stop: match, generate, gate, profile, judge, record, evolve. Measures nothing itself."""

from __future__ import annotations

from collections.abc import Callable

from ..events.errors import ToolFailed
from ..events.model import RoundAttempted, RoundInterrupted, RuleFired, RunStopped
from ..events.writer import LedgerWriter
from ..problems.contract import Problem
from ..profilers.verdicts import Judgement
from ..projections.asking import ask, must_stop, next_attempt
from ..projections.cell import CellState
from ..projections.cell_plan import CellPlan
from ..projections.evolution import decide
from ..projections.matcher import Match
from ..projections.tried import refused, tried
from .catalogue import candidate_for
from .cell_ledger import CellLedger
from .generators.base import Asked, Made
from .generators.chain import Chain, Try
from .generators.failures import last_failure
from .judging import measure
from .measuring import Bench, Interrupted, Unavailable
from .records import Draft
from .round_events import firing, generated, judged, unserved

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
        self._cell = CellLedger(ledger, plan)
        self._bench, self._plan, self._problem, self._say, self._chain = bench, plan, problem, say, chain

    @property
    def _state(self) -> CellState:
        return self._cell.state

    def run(self) -> CellState:
        """Go on until the cell stops; a round that was cut off before is closed first and tried again."""
        if self._state.open:
            self._interrupt("the run ended before the round did")
        while self._state.stopped is None:
            self._step()
        return self._state

    def _step(self) -> None:
        cell = self._cell
        reason = must_stop(self._plan, cell.state)
        if reason is not None:
            return self._stop(reason)
        if cell.state.incumbent is None or cell.state.incumbent not in cell.state.signals:
            return self._attempt(self._problem.start, self._round_zero)
        found = ask(self._plan, cell.state, cell.context(cell.incumbent))
        if found.fired is None:
            return self._stop("no rule fires")
        if found.fired.stop:
            draft = Draft()
            draft.add(firing(cell, found, *next_attempt(cell.state)))
            return self._stop("stop rule", found.fired.name, draft)
        incumbent = cell.ledger.artifact(cell.incumbent).decode()
        return self._attempt(incumbent, lambda draft: self._round(draft, found, incumbent))

    def _attempt(self, incumbent: str, body: Callable[[Draft], None]) -> None:
        """Commit the attempt before its first sample, then the whole round in one transaction."""
        round_, attempt = next_attempt(self._state)
        opening = Draft()
        digest = opening.keep_source(incumbent)
        opening.add(RoundAttempted(cell=self._plan.cell, round=round_, attempt=attempt, incumbent=digest))
        self._cell.commit(opening)
        draft = Draft()
        try:
            body(draft)
        except Interrupted as fault:
            self._interrupt(str(fault), draft.spent())
            if isinstance(fault, Unavailable):
                raise ToolFailed(f"{fault}. What was measured is in the ledger: go on with --resume.") from fault
            return None
        return self._cell.commit(draft)

    def _round_zero(self, draft: Draft) -> None:
        """Gate and profile the starting kernel against itself, which also gives its noise floor."""
        text, attempt = self._problem.start, self._state.attempt
        draft.add(generated(self._cell, draft, None, text, "start", "start"))
        gated = self._bench.gate(draft, 0, attempt, text)
        if gated.outcome in ("timeout", "worker_lost"):
            raise Interrupted(f"gate of the starting kernel: {gated.outcome}")
        if gated.outcome != "passed":
            self._say(f"round 0: the starting kernel is not fit to measure ({gated.outcome})")
            return
        if gated.launches is None:
            raise Interrupted("gate: passed without a launch list")
        live = self._cell.live(draft, gated.launches)
        timed = self._bench.profile(draft, 0, attempt, text, text, gated.launches, live)
        self._bench.floor(draft, 0, text, timed)
        self._say("round 0: starting kernel profiled")

    def _round(self, draft: Draft, found: Match, incumbent: str) -> None:
        cell, round_, attempt = self._cell, self._state.round, self._state.attempt
        fired = firing(cell, found, round_, attempt)
        draft.add(fired)
        made = self._candidate(draft, fired, incumbent)
        if made is None:
            event = unserved(cell, fired)
            draft.add(event)
            return self._say(f"round {round_}: {fired.rule} -> {event.prescription}: {event.reason}")
        draft.add(generated(cell, draft, fired.firing, made.source, made.generator, made.variant))
        judgement = measure(cell, self._bench, draft, made.source, incumbent)
        if judgement.verdict == "FASTER":
            timed = self._bench.time(draft, "floor", made.source, made.source, attempt)
            self._bench.floor(draft, round_, made.source, timed)
        return self._conclude(draft, fired, draft.keep_source(made.source), judgement)

    def _candidate(self, draft: Draft, fired: RuleFired, incumbent: str) -> Made | None:
        """What the catalogue, or the first generator of the chain that can, makes of the firing."""
        cell, executor, margin = self._cell, self._bench.executor, self._plan.statistics.margin
        question = self._bench.question("sweep", draft.keep_source(incumbent), cell.state.attempt)
        if self._chain is None:
            return candidate_for(draft, executor, question, fired, incumbent, margin)
        assert fired.prescription is not None  # stop rules end the cell
        asked = Asked(
            problem=self._problem,
            contract=self._plan.cell.contract,
            prescription=fired.prescription,
            rule=fired.rule,
            source=incumbent,
            signals=cell.state.signals.get(cell.incumbent, {}),
            failure=last_failure(cell.ledger, cell.stream, cell.incumbent),
            chip=self._plan.chip.name,
        )
        known = (refused(cell.state), tried(self._plan.policy, cell.state))
        return self._chain.make(Try(draft, executor, question, fired, cell.state.attempt, asked, known, margin))

    def _conclude(self, draft: Draft, fired: RuleFired, candidate: str, judgement: Judgement) -> None:
        """The verdict, and what it makes of the rule table."""
        event = judged(self._cell, fired, candidate, judgement)
        draft.add(event)
        decisions = decide(self._plan, self._cell.after(draft))
        for decision in decisions:
            draft.add(decision)
        ratio = f" {judgement.interval.median:.2f}x" if judgement.interval else ""
        evolved = "".join(f", {type(d).__name__.removeprefix('Rule').lower()} {d.rule}" for d in decisions)
        self._say(f"round {event.round}: {fired.rule} -> {event.verdict}{ratio} ({event.reason}){evolved}")

    def _interrupt(self, reason: str, draft: Draft | None = None) -> None:
        draft = draft or Draft()
        round_, attempt = self._state.round, self._state.attempt
        draft.add(RoundInterrupted(cell=self._plan.cell, round=round_, attempt=attempt, reason=reason))
        self._cell.commit(draft)
        self._say(f"round {round_}: interrupted ({reason.splitlines()[0][:100]})")

    def _stop(self, reason: str, rule: str | None = None, draft: Draft | None = None) -> None:
        draft = draft or Draft()
        draft.add(RunStopped(run=self._plan.run, cell=self._plan.cell, reason=reason, rule=rule))
        self._cell.commit(draft)
        self._say(f"stop: {reason}{f' ({rule})' if rule else ''}")
