"""One kernel, one pair, one cross-check of an examination, as events with their artifacts. Writes no ledger and keeps no state."""

from __future__ import annotations

import msgspec

from ..events.artifacts import digest
from ..events.errors import BadInput
from ..events.model import (
    Cell,
    Chip,
    CountersCompared,
    KernelExamined,
    PairCompared,
    Rule,
    RulesAnswered,
    StaticRulesSeen,
    Statistics,
    Verdict,
)
from ..problems.contract import Problem, declared
from ..profilers import artifacts as shapes
from ..profilers.agreement import rows
from ..profilers.gates import judge_report
from ..profilers.intervals import interval, noise_floor
from ..profilers.metrics import plan
from ..profilers.signals import signals, tier
from ..profilers.verdicts import Judgement, judge
from ..projections.matcher import answers
from .executor import Executor, Observation, Question
from .looks import sample
from .measuring import NO_COUNTERS, Shape, Uncounted, no_counters, question
from .recording import FAULTS
from .records import Draft


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel to examine, and the rules that must fire on it or stay silent; `given` are extras by role that a person brings along."""

    name: str
    problem: Problem
    contract: str
    source: str
    given: dict[str, bytes] = {}
    half: str = ""
    fires: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two sources to compare `times` times on a subject's inputs; `truth` is the verdict that they deserve."""

    name: str
    subject: str
    left: str
    right: str
    times: int
    truth: Verdict


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What every measurement of an examination shares."""

    run: str
    executor: Executor
    seed: int
    rules: tuple[Rule, ...]
    roles: tuple[str, ...]
    statistics: Statistics
    chip: Chip
    copy_gbps: float
    ceilings: shapes.Calibration


def asked(ground: Ground, subject: Subject, purpose: str, source: str, attempt: int = 1) -> Question:
    """A question about a subject; its inputs' seed follows from the registered seed, the source and the attempt."""
    cell = Cell(problem=subject.problem.name, contract=subject.contract, pool="flags", arm="on", repetition=1)
    return question(cell, subject.problem, purpose, ground.seed, digest(source.encode()), attempt)


def examine(ground: Ground, subject: Subject) -> Draft:
    """`KernelExamined` and, where the kernel passed its gate, `RulesAnswered`."""
    draft = Draft()
    gated = ground.executor.gate(asked(ground, subject, "gate", subject.source), subject.source)
    report = draft.keep_role(_whole(gated, subject.name), "report")
    launches = draft.keep_role(gated, "launches")
    assert report is not None
    problem = declared(subject.problem, "flags")
    outcome, reason = judge_report(_shape(draft, shapes.Report, report), problem, subject.contract)
    event = KernelExamined(
        run=ground.run, subject=subject.name, outcome=outcome, reason=reason, report=report, launches=launches,
        samples=None, counters=None, extras={}, tier=None, floor=None, signals={},
    )  # fmt: skip
    if outcome != "passed":
        draft.add(event)
        return draft
    if launches is None:
        raise BadInput(f"{subject.name}: its gate passed without a launch list. Run the same command again to go on.")
    event = _profiled(ground, subject, draft, event, launches)
    draft.add(event)
    if event.samples is None:
        return draft
    found = answers(ground.rules, event.signals, ground.chip, subject.contract, problem.prescriptions)
    draft.add(RulesAnswered(run=ground.run, subject=subject.name, answers=found))
    return draft


def _profiled(ground: Ground, subject: Subject, draft: Draft, event: KernelExamined, launches: str) -> KernelExamined:
    """The event with everything that could be measured of a kernel that passed its gate."""
    wanted, statistics = plan(ground.rules), ground.statistics
    ask = asked(ground, subject, "examine", subject.source)
    timed = ground.executor.compare(ask, subject.source, subject.source, statistics.blocks)
    if timed.status in FAULTS:
        # Once more, from nothing: a kernel that passed its gate and ends its process whenever it is timed has no profile.
        timed = ground.executor.compare(ask, subject.source, subject.source, statistics.blocks)
        if timed.status in FAULTS:
            return msgspec.structs.replace(event, reason=f"not timed: {timed.status}")
    name = draft.keep_role(_whole(timed, subject.name), "samples")
    assert name is not None
    samples, listed = _shape(draft, shapes.Samples, name), _shape(draft, shapes.Launches, launches)
    try:
        counters = _counters(ground, subject, draft, ask, wanted.metrics)
    except Uncounted as fault:
        return msgspec.structs.replace(event, reason=f"not timed: {fault.status}")
    extras = _extras(ground, subject, draft, ask, wanted.roles)
    seen = None if counters is None else _shape(draft, shapes.Counters, counters)
    floor = interval(samples, statistics)
    return msgspec.structs.replace(
        event,
        samples=name,
        counters=counters,
        extras=extras,
        tier=tier(listed, seen),
        floor=None if floor is None else noise_floor(floor),
        signals=signals(
            declared(subject.problem, "flags"), subject.contract, ground.chip, ground.copy_gbps, samples, listed, seen,
            ground.ceilings, {role: draft.artifacts[kept][0] for role, kept in extras.items()},
        ),
    )  # fmt: skip


def _counters(ground: Ground, subject: Subject, draft: Draft, ask: Question, metrics: tuple[str, ...]) -> str | None:
    """Digest of the counters that the rules ask for; without rules nothing is counted. Raises Uncounted."""
    if not ground.rules:
        return None
    seen = ground.executor.count(ask, subject.source, metrics)
    if seen.status in FAULTS:  # once more, from nothing
        seen = ground.executor.count(ask, subject.source, metrics)
    if seen.status in NO_COUNTERS:
        return draft.keep(no_counters(seen))
    if seen.status in FAULTS:
        raise Uncounted(seen.status)
    name = draft.keep_role(_whole(seen, subject.name), "counters")
    assert name is not None
    return name


def _extras(ground: Ground, subject: Subject, draft: Draft, ask: Question, planned: tuple[str, ...]) -> dict[str, str]:
    """Digests by role of what could be had."""
    found = {role: draft.keep(content) for role, content in subject.given.items()}
    for role in dict.fromkeys((*planned, *ground.roles)):
        if role in found:
            continue
        seen = ground.executor.extra(ask, subject.source, role)
        if (
            seen.status == "extra_failed"
        ):  # it may pass: asked once more, for its lack would look like a missing signal for good
            seen = ground.executor.extra(ask, subject.source, role)
        name = draft.keep_role(seen, role) if seen.status == "ok" else None
        if name is not None:
            found[role] = name
    return found


def check_sides(ground: Ground, subject: Subject, pair: Pair) -> None:
    """BadInput where a side of a pair that is not the subject's own source does not pass the gate: its times would mean nothing."""
    for source in dict.fromkeys((pair.left, pair.right)):
        if source == subject.source:
            continue
        seen = _whole(ground.executor.gate(asked(ground, subject, "gate", source), source), pair.name)
        report = shapes.decode(shapes.Report, seen.artifacts["report"])
        outcome, reason = judge_report(report, declared(subject.problem, "flags"), subject.contract)
        if outcome != "passed":
            raise BadInput(
                f"{pair.name}: expected two right kernels, found one that its gate refuses: {outcome} ({reason})"
            )


def compare(ground: Ground, subject: Subject, pair: Pair, number: int, floor: float) -> Draft:
    """`PairCompared` number `number`, judged like a round; each has inputs of its own, by its number."""
    ask = asked(ground, subject, "pair", pair.right, number)

    def judged(samples: shapes.Samples) -> Judgement:
        return judge(
            outcome="passed", inert=False, samples=samples, problem=declared(subject.problem, "flags"),
            contract=subject.contract, chip=ground.chip, statistics=ground.statistics, noise_floor=floor,
        )  # fmt: skip

    def blocks(count: int, first: int) -> Observation:
        return ground.executor.compare(ask, pair.left, pair.right, count, first)

    draft, seen = Draft(), _whole(sample(blocks, ground.statistics, judged), f"{pair.name} {number}")
    name = draft.keep_role(seen, "samples")
    assert name is not None
    found = judged(_shape(draft, shapes.Samples, name))
    assert found.margin is not None  # there are samples
    draft.add(
        PairCompared(
            run=ground.run, pair=pair.name, number=number, samples=name, interval=found.interval,
            margin=found.margin, verdict=found.verdict, reason=found.reason,
        )
    )  # fmt: skip
    return draft


def beside(ground: Ground, subject: Subject, ours: tuple[str, bytes] | None, seen: Observation) -> Draft:
    """`CountersCompared` and `StaticRulesSeen` from what Nsight Compute read; `ours` are the digest and content of our counters."""
    draft = Draft()
    theirs, said = draft.keep_role(seen, "counters"), draft.keep_role(seen, "ncu_rules")
    if ours is not None and theirs is not None:
        a, b = shapes.decode(shapes.Counters, ours[1]), _shape(draft, shapes.Counters, theirs)
        if a.collector != "none":
            event = CountersCompared(run=ground.run, subject=subject.name, ours=ours[0], theirs=theirs, rows=rows(a, b))
            draft.add(event)
    if said is not None:
        draft.add(StaticRulesSeen(run=ground.run, subject=subject.name, answers=said))
    return draft


def _whole(seen: Observation, what: str) -> Observation:
    """The observation, if there is one; BadInput otherwise: what is in the ledger stays, and the command goes on there."""
    if seen.status != "ok":
        raise BadInput(f"{what}: {seen.status}: {seen.text[:500]}. Run the same command again to go on from here.")
    return seen


def _shape(draft: Draft, kind: type[Shape], name: str) -> Shape:
    return shapes.decode(kind, draft.artifacts[name][0])
