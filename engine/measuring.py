"""Turns an executor's observations into the measuring events of a round, derived by the pure rooms. Judges no rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec
from msgspec import UNSET

from ..events.model import Cell, KernelGated, NoiseFloorMeasured, Profiled, Rule
from ..problems.contract import Problem
from ..profilers import artifacts as shapes
from ..profilers.gates import gate_seed, judge_report
from ..profilers.intervals import interval, noise_floor
from ..profilers.metrics import plan as planned
from ..profilers.signals import signals, tier
from ..profilers.verdicts import Judgement
from ..profilers.witnesses import busy_ns
from ..projections.asking import INTERRUPTIONS_ALLOWED
from ..projections.cell_plan import CellPlan
from .executor import Executor, Observation, Question
from .looks import sample
from .recording import FAULTS
from .records import Draft
from .sharing import Read, Sharing

# The driver, the device or the installation gives no counters: a fact that lowers the tier. Anything else may pass.
NO_COUNTERS = ("counters_permission", "counters_unsupported", "counters_library")
_NOTHING = Read(counters=None, extras={})

Shape = TypeVar("Shape", bound=shapes.Artifact)


class Interrupted(Exception):
    """An infrastructure fault left the round without a verdict; it is recorded and the round is tried again."""


class Uncounted(Exception):
    """A source whose counters could not be read, in a fresh process neither: `status` is the fault."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


class Unavailable(Interrupted):
    """What a generator asks does not answer: the run ends here, and goes on with --resume."""


class Gated(msgspec.Struct, frozen=True, kw_only=True):
    """A gated source: outcome, the digest of its launch list where it ran, and what was observed."""

    outcome: str
    launches: str | None
    report: shapes.Report


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """ABBA samples of a pair, or the fault that prevented them; `busy_ns` of the candidate's call by its counters, where there are any."""

    fault: str
    name: str = ""
    samples: shapes.Samples | None = None
    busy_ns: float | None = None
    origin_seq: int | None = None


def question(cell: Cell, problem: Problem, purpose: str, seed: int, source: str = "", attempt: int = 1) -> Question:
    """A measurement; its inputs' seed follows from the registered seed, the source's digest and the attempt."""
    return Question(cell=cell, problem=problem, purpose=purpose, seed=gate_seed(seed, source, attempt))


def no_counters(seen: Observation) -> bytes:
    """The artifact that says why no counters could be read."""
    none = shapes.Counters(collector="none", passes=0, chip="", cache="unknown", metrics={})
    return shapes.encode(none, {"refused": seen.status, "text": seen.text[:2000]})


class Bench:
    """What is measured for one cell: gate, pair timing, counters, noise floor. Appends events to the draft it is given."""

    def __init__(
        self,
        executor: Executor,
        plan: CellPlan,
        problem: Problem,
        seed: int,
        copy_gbps: float,
        ceilings: shapes.Calibration,
        sharing: Sharing | None = None,
    ) -> None:
        self._sharing = sharing
        self.executor, self._plan, self._problem, self._seed = executor, plan, problem, seed
        self._copy_gbps, self._ceilings = copy_gbps, ceilings

    def question(self, purpose: str, source: str = "", attempt: int = 1) -> Question:
        """A measurement of this cell."""
        asked = question(self._plan.cell, self._problem, purpose, self._seed, source, attempt)
        return msgspec.structs.replace(asked, energy=self._plan.statistics.objective is not UNSET)

    def gate(self, draft: Draft, round_: int, attempt: int, text: str) -> Gated:
        """Record the gate's outcome on a source."""
        source = draft.keep_source(text)
        seen = self.executor.gate(self.question("gate", source, attempt), text)
        report = draft.keep_role(seen, "report")
        if seen.status != "ok" or report is None:
            raise Interrupted(f"gate: {seen.status}: {seen.text[:500]}")
        launches = draft.keep_role(seen, "launches")
        found = _shape(draft, shapes.Report, report)
        outcome, reason = judge_report(found, self._plan.problem, self._plan.cell.contract)
        event = KernelGated(
            cell=self._plan.cell,
            round=round_,
            attempt=attempt,
            source=source,
            outcome=outcome,
            reason=reason,
            report=report,
            launches=launches,
            origin_seq=seen.origin_seq,
        )
        draft.add(event)
        return Gated(outcome=outcome, launches=launches, report=found)

    def time(
        self,
        draft: Draft,
        purpose: str,
        left: str,
        right: str,
        attempt: int = 1,
        judge: Callable[[shapes.Samples], Judgement] | None = None,
    ) -> Timed:
        """ABBA samples of two sources, kept as an artifact: all blocks at once, or by looks where `judge` says when it is enough."""
        asked, statistics = self.question(purpose, draft.keep_source(right), attempt), self._plan.statistics

        def ask(blocks: int, first: int) -> Observation:
            return self.executor.compare(asked, left, right, blocks, first)

        paid = None if self._sharing is None else self._sharing.paid(asked, left, right, statistics, judge)
        seen = paid or (ask(statistics.blocks, 0) if judge is None else sample(ask, statistics, judge))
        name = draft.keep_role(seen, "samples")
        if seen.status != "ok" or name is None:
            return Timed(fault=seen.status)
        return Timed(fault="", name=name, samples=_shape(draft, shapes.Samples, name), origin_seq=seen.origin_seq)

    def profile(
        self, draft: Draft, round_: int, attempt: int, text: str, against: str, launches: str, live: Iterable[Rule],
        judge: Callable[[shapes.Samples], Judgement] | None = None,
    ) -> Timed:  # fmt: skip
        """Samples of a source interleaved with another's, what the live rules ask for, and the signals that all this gives."""
        timed = self.time(draft, "profile", against, text, attempt, judge)
        if timed.samples is None:
            return timed
        source, wanted = draft.keep_source(text), planned(live)
        paid = _NOTHING
        if self._sharing is not None and timed.origin_seq is not None:
            paid = self._sharing.read(timed.origin_seq)
        try:
            counters = self._counters(draft, source, attempt, text, wanted.metrics, paid)
        except Uncounted as fault:
            return Timed(fault=fault.status)
        extras = self._extras(draft, source, attempt, text, wanted.roles, paid)
        seen = None if counters is None else _shape(draft, shapes.Counters, counters)
        listed, plan = _shape(draft, shapes.Launches, launches), self._plan
        event = Profiled(
            cell=plan.cell,
            round=round_,
            source=source,
            against=draft.keep_source(against),
            tier=tier(listed, seen),
            samples=timed.name,
            counters=counters,
            launches=launches,
            signals=signals(
                plan.problem, plan.cell.contract, plan.chip, self._copy_gbps, timed.samples, listed, seen,
                self._ceilings, {role: draft.artifacts[name][0] for role, name in extras.items()},
            ),
            cache=timed.samples.cache,
            origin_seq=timed.origin_seq,
            extras=extras or UNSET,
        )  # fmt: skip
        draft.add(event)
        return msgspec.structs.replace(timed, busy_ns=busy_ns(seen, self._ceilings))

    def _counters(
        self, draft: Draft, source: str, attempt: int, text: str, metrics: tuple[str, ...], paid: Read
    ) -> str | None:
        """Digest of the counters, or of the record of why there can be none. Raises Uncounted, and Interrupted for what is no source's fault."""
        if paid.counters is not None and paid.answers(metrics):
            return draft.keep(paid.counters)
        seen = self.executor.count(self.question("count", source, attempt), text, metrics)
        # Another interruption would end the cell, which may be what the source wants.
        last = attempt >= INTERRUPTIONS_ALLOWED
        if last and seen.status in FAULTS:
            raise Uncounted(seen.status)
        if seen.status != "ok" and seen.status not in NO_COUNTERS:
            raise Interrupted(f"counters: {seen.status}: {seen.text[:500]}")
        own = seen.artifacts.get("counters") if seen.status == "ok" else no_counters(seen)
        kept = paid.counters if own is None else paid.instead(own)
        return None if kept is None else draft.keep(kept)

    def _extras(
        self, draft: Draft, source: str, attempt: int, text: str, roles: tuple[str, ...], paid: Read
    ) -> dict[str, str]:
        """Digests by role of what could be had; what could not leaves its signals absent, and rules abstain."""
        found = {role: draft.keep(paid.extras[role]) for role in roles if role in paid.extras}
        for role in (role for role in roles if role not in found):
            seen = self.executor.extra(self.question(role, source, attempt), text, role)
            if seen.status == "extra_failed":
                seen = self.executor.extra(self.question(role, source, attempt), text, role)
            name = draft.keep_role(seen, role) if seen.status == "ok" else None
            if name is not None:
                found[role] = name
        return found

    def floor(self, draft: Draft, round_: int, text: str, timed: Timed) -> None:
        """Record the A/A noise floor that samples of a source against itself give."""
        seen = None if timed.samples is None else interval(timed.samples, self._plan.statistics)
        if seen is None:
            raise Interrupted(f"noise floor: {timed.fault or 'too few blocks (or no energies) for an interval'}")
        event = NoiseFloorMeasured(
            cell=self._plan.cell,
            round=round_,
            source=draft.keep_source(text),
            samples=timed.name,
            interval=seen,
            floor=noise_floor(seen),
            origin_seq=timed.origin_seq,
        )
        draft.add(event)


def _shape(draft: Draft, kind: type[Shape], name: str) -> Shape:
    return shapes.decode(kind, draft.artifacts[name][0])
