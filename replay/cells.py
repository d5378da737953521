"""One cell walked from its first event to its end, each step re-derived and then continued as recorded. Never reads a file."""

from __future__ import annotations

from typing import cast

import msgspec

from ..events.model import Cell, RoundJudged, RuleFired, RunStopped
from .evolution import EVOLVING, Tally
from .findings import Findings, Kind
from .grammar import Round, Script
from .offers import Maker
from .rounds import MOST_ATTEMPTS, Checker
from .setting import Setting
from .state import State


class Ended(msgspec.Struct, frozen=True):
    """What a cell leaves to the comparisons after it: start and last incumbent, no winner where round 0 never came to a profile."""

    cell: Cell
    start: str | None
    winner: str | None
    stopped: int | None


def walk(setting: Setting, script: Script, findings: Findings) -> Ended:
    """Check every round of the cell and its end. A disagreement is reported once and the recorded value carried on."""
    state = State(setting.carried, setting.run.policy)
    checker = Checker(setting, state, findings)
    previous: Round | None = None
    started = False
    for round_ in script.rounds:
        with findings.derivation(round_.seq, f"place of round {round_.attempted.round}"):
            _check_place(setting, state, previous, round_, findings)
        if round_.attempted.round == 0:
            state.incumbent = round_.attempted.incumbent
        if round_.interrupted is not None:
            _check_interruption(round_, findings)
            checker.offers().check(round_)
        elif not round_.bare():
            _Step(setting, state, checker, round_, findings).all()
            started = started or (round_.generated is not None and round_.attempted.round == 0)
        previous = round_
    with findings.derivation(_last_seq(script), "end of the cell"):
        _check_end(setting, checker, script, findings)
    start = script.rounds[0].attempted.incumbent if script.rounds else None
    stopped = None if script.stopped is None else script.stopped[0]
    # A start that never came to a profile is no kernel to compare: its gate refused it, or its round was cut off.
    profiled = started and start in state.signals
    return Ended(setting.cell, start, state.incumbent if profiled else None, stopped)


def _check_place(setting: Setting, state: State, previous: Round | None, now: Round, findings: Findings) -> None:
    """Rounds and attempts count without a gap, within what was registered, on the incumbent that is due."""
    attempted = now.attempted
    due = (0, 1)
    if previous is not None:
        before = previous.attempted
        again = previous.interrupted is not None
        due = (before.round, before.attempt + 1) if again else (before.round + 1, 1)
    findings.expect(now.seq, "round", due, (attempted.round, attempted.attempt), "round, attempt")
    if previous is not None and previous.bare():
        findings.add(now.seq, "order of events", "RoundInterrupted for the attempt that was cut off", "RoundAttempted")
    if attempted.round > setting.run.max_rounds:
        findings.add(now.seq, "round", f"at most {setting.run.max_rounds} rounds, as registered", attempted.round)
    if attempted.attempt > MOST_ATTEMPTS:
        findings.add(now.seq, "round", f"at most {MOST_ATTEMPTS} attempts", attempted.attempt)
    if attempted.round > 0 or previous is not None:
        findings.expect(now.seq, "incumbent", state.incumbent, attempted.incumbent)


def _check_interruption(round_: Round, findings: Findings) -> None:
    interrupted, attempted = round_.interrupted, round_.attempted
    if interrupted is not None:
        due = (attempted.round, attempted.attempt)
        findings.expect(
            round_.seqs["interrupted"], "round", due, (interrupted.round, interrupted.attempt), "interrupted"
        )


class _Step:
    """One round's events in order, each checked and then folded into the state."""

    def __init__(self, setting: Setting, state: State, checker: Checker, round_: Round, findings: Findings) -> None:
        self._setting, self._state, self._checker = setting, state, checker
        self._round, self._findings = round_, findings

    def all(self) -> None:
        """Check what is there, in the order of the page; a missing event was reported by the grammar."""
        self._numbers()
        self._prompted()
        self._candidate(self._offered())
        self._measured()
        judged = self._round.judged is not None and self._round.fired is not None
        if judged:
            self._verdict()
        self._state.remember(self._round)
        if judged:
            self._credited()

    def _numbers(self) -> None:
        due = self._round.attempted.round
        for slot in ("fired", "swept", "generated", "gated", "profiled", "floor", "judged"):
            event = getattr(self._round, slot)
            if event is not None:
                self._findings.expect(self._round.seqs[slot], "round", due, event.round, "round")
        judged = self._round.judged
        if judged is not None:
            attempt = self._round.attempted.attempt
            self._findings.expect(self._round.seqs["judged"], "round", attempt, judged.attempt, "attempt")

    def _prompted(self) -> None:
        r = self._round
        if r.fired is None:
            return
        seq = r.seqs["fired"]
        with self._findings.derivation(seq, "match"):
            self._checker.fired(seq, r.fired, r.attempted.round, r.attempted.attempt)
        if r.swept is not None:
            with self._findings.derivation(r.seqs["swept"], "sweep"):
                self._checker.swept(r.seqs["swept"], r.swept, r.fired)

    def _offered(self) -> Maker | None:
        """What the chain was asked, and the end of a round in which it had nothing."""
        r, offers = self._round, self._checker.offers()
        made = offers.check(r)
        if r.unserved is not None:
            offers.unserved(r.seqs["unserved"], r.unserved, r, made)
        elif made is not None and r.generated is None:
            self._findings.add(r.seq, "generated source", f"the candidate of {made.generator}", "none")
        return made

    def _candidate(self, made: Maker | None) -> None:
        r = self._round
        if r.generated is None:
            return
        seq = r.seqs["generated"]
        with self._findings.derivation(seq, "generated source"):
            self._checker.generated(seq, r, r.generated, made)
        if r.attempted.round == 0:
            self._findings.expect(seq, "generated source", r.attempted.incumbent, r.generated.source, "start")
        if r.gated is not None:
            with self._findings.derivation(r.seqs["gated"], "gate"):
                self._checker.gated(r.seqs["gated"], r.gated, r.generated.source, r.attempted.attempt)

    def _measured(self) -> None:
        r, state = self._round, self._state
        source = r.generated.source if r.generated is not None else state.incumbent
        if r.profiled is not None:
            with self._findings.derivation(r.seqs["profiled"], "signals"):
                self._checker.profiled(r.seqs["profiled"], r.profiled, r.gated, state.incumbent)
        if r.floor is not None:
            with self._findings.derivation(r.seqs["floor"], "noise floor"):
                self._checker.floor(r.seqs["floor"], r.floor, source, r.profiled)

    def _verdict(self) -> None:
        r = self._round
        if r.judged is not None and r.generated is not None and r.gated is not None:
            with self._findings.derivation(r.seqs["judged"], "verdict"):
                self._checker.judged(r.seqs["judged"], r, r.judged)

    def _credited(self) -> None:
        r, state = self._round, self._state
        judged, fired = cast(RoundJudged, r.judged), cast(RuleFired, r.fired)
        state.account(judged)
        state.incumbent = judged.next_incumbent
        state.evidence.credit((judged.rule, judged.rule_version), fired.context, judged.credit, fired.firing)
        with self._findings.derivation(r.seqs["judged"], "evolution"):
            self._evolved(judged, fired)

    def _evolved(self, judged: RoundJudged, fired: RuleFired) -> None:
        """Retirement and promotion: recorded exactly when due, for the judged rule alone."""
        r, evidence, policy = self._round, self._state.evidence, self._setting.run.policy
        key = (judged.rule, judged.rule_version)
        evolves = self._setting.cell.arm in EVOLVING
        silenced = evidence.retirement(key, fired.context, policy) if evolves else None
        raised = evidence.promotion(key, policy) if evolves else None
        self._evolution("retire", "retired", silenced, (*key, fired.context))
        self._evolution("promote", "promoted", raised, key)
        if r.retired is not None:
            evidence.retired.add(((r.retired.rule, r.retired.rule_version), r.retired.context))
        if r.promoted is not None:
            evidence.promoted.add((r.promoted.rule, r.promoted.rule_version))

    def _evolution(self, kind: Kind, slot: str, due: Tally | None, whom: tuple[object, ...]) -> None:
        recorded = getattr(self._round, slot)
        seq = self._round.seqs.get(slot, self._round.seqs["judged"])
        if due is None or recorded is None:
            if (due is None) != (recorded is None):
                text = f"{kind} of {whom[0]} version {whom[1]}"
                missing = due is not None
                self._findings.add(seq, kind, text if missing else "none due", "absent" if missing else text)
            return
        found_whom = (recorded.rule, recorded.rule_version, *([recorded.context] if slot == "retired" else []))
        self._findings.expect(seq, kind, tuple(whom), found_whom, "rule")
        expected = (due.successes, due.failures, due.confidence, due.firings)
        found = (recorded.successes, recorded.failures, recorded.confidence, recorded.firings)
        self._findings.expect(seq, kind, expected, found, "evidence")


def _last_seq(script: Script) -> int:
    if script.stopped is not None:
        return script.stopped[0]
    return script.rounds[-1].seq if script.rounds else 0


def _check_end(setting: Setting, checker: Checker, script: Script, findings: Findings) -> None:
    """The reason of the end against what was due after the last round."""
    if script.stopped is None:
        return
    seq, stopped = script.stopped
    findings.expect(seq, "stop", setting.run.run, stopped.run, "run")
    reason, rule = _due_end(setting, checker, script)
    findings.expect(seq, "stop", (reason, rule), (stopped.reason, stopped.rule), "reason, rule")
    _check_last_firing(checker, script, stopped, findings)


def _due_end(setting: Setting, checker: Checker, script: Script) -> tuple[str, str | None]:
    last = script.rounds[-1] if script.rounds else None
    if last is None:
        return "a round 0 before any end", None
    if last.interrupted is not None:
        if last.attempted.attempt >= MOST_ATTEMPTS:
            return "interrupted too often", None
        return f"attempt {last.attempted.attempt + 1} of round {last.attempted.round}", None
    if last.attempted.round == 0 and last.gated is not None and last.gated.outcome != "passed":
        return "start unfit", None
    if last.attempted.round >= setting.run.max_rounds:
        return "rounds exhausted", None
    due = checker.decide().rule
    if due is None:
        return "no rule fires", None
    return ("stop rule", due.name) if due.stop else (f"round {last.attempted.round + 1} by {due.name}", None)


def _check_last_firing(checker: Checker, script: Script, stopped: RunStopped, findings: Findings) -> None:
    if script.last_firing is None:
        if stopped.reason == "stop rule":
            findings.add(script.stopped[0] if script.stopped else 0, "stop", "RuleFired of the stop rule", "absent")
        return
    seq, fired = script.last_firing
    if stopped.reason != "stop rule":
        findings.add(seq, "stop", "no firing without a round of its own", fired.rule)
    with findings.derivation(seq, "match"):
        checker.fired(seq, fired, script.rounds[-1].attempted.round + 1, 1)
