"""What a run may register: an executor, a plan, numbers in their ranges, claims that can be answered. Never looks at a measurement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import inf, isfinite

from msgspec import UnsetType

from ..events.model import ClaimRegistered, Objective, ProblemDeclared, RunRegistered, Statistics
from .artifacts import MOST_BLOCKS
from .evolution import ARMS
from .finals import comparisons
from .findings import Findings
from .objective import by_time
from .statistic import MOST_LOOKS, PATHS

_HEAD = re.compile(r"[0-9a-f]{64}")
MOST_DECIMALS = 6
MOST_STAGES = 16
_LEAST, _MOST = 1e-6, 1e7
"""Between these the page's digits are more than a rise can lose."""

# A demand in words, what there is instead, and whether the demand is met.
Demand = tuple[str, object, bool]


def check_registered(seq: int, registered: RunRegistered, findings: Findings) -> None:
    """Report every demand of FORMAT.md section 4 that the registration does not meet."""
    for words, found, met in (
        *_executor(registered),
        *_experience(registered),
        *_plan(registered),
        *_numbers(registered),
        *_chain(registered),
        *_comparisons(registered),
        *(demand for problem in registered.problems for demand in problem_demands(problem)),
        *(demand for claim in registered.claims for demand in _claim(claim, registered)),
        *_by_objective(registered),
    ):
        if not met:
            findings.add(seq, "registration", words, found)


def _executor(registered: RunRegistered) -> Iterator[Demand]:
    origin = registered.origin
    name = registered.executor
    yield "executor local or recorded", name, name in ("local", "recorded")
    fits = (name == "recorded") == (origin is not None)
    yield "an origin where the executor is recorded, and only there", (name, origin), fits
    if not isinstance(registered.shares, UnsetType):
        yield (
            "shares true, in a run that measures itself",
            (registered.shares, name),
            registered.shares and origin is None,
        )
    if origin is not None:
        sound = bool(_HEAD.fullmatch(origin.head)) and origin.events >= 1
        yield "an origin's head in 64 hex digits and its number of events", origin, sound


def _experience(registered: RunRegistered) -> Iterator[Demand]:
    if isinstance(registered.experience, UnsetType):
        return
    learnt = registered.experience
    sound = bool(_HEAD.fullmatch(learnt.head)) and learnt.events >= 1
    yield "an experience's head in 64 hex digits and its number of events", learnt, sound
    bounds = learnt.proposing
    if bounds is not None:
        fair = bounds.support >= 1 and 0 < bounds.purity_num <= bounds.purity_den
        yield "a support from 1 and a purity over 0 and at most 1", bounds, fair


def _plan(registered: RunRegistered) -> Iterator[Demand]:
    declared, plan = [problem.name for problem in registered.problems], registered.plan
    yield "each problem once", declared, len(set(declared)) == len(declared)
    yield "each cell once", f"{len(plan)} cells, {len(set(plan))} of them different", len(set(plan)) == len(plan)
    for cell in dict.fromkeys(plan):
        # With a slash in a name two cells could share one stream, and one of them would never be missed.
        named = (cell.problem, cell.contract, cell.pool, cell.arm)
        plain = all(named) and not any("/" in name for name in named)
        yield "names without a slash, none empty", cell, plain
        known = cell.arm in ARMS and cell.contract in PATHS and cell.problem in declared and cell.repetition >= 1
        yield "a known arm, contract and declared problem, repetition from 1", cell, known


def _chain(registered: RunRegistered) -> Iterator[Demand]:
    if not isinstance(registered.generators, UnsetType):
        chain = registered.generators
        named = all(name and "/" not in name for name in chain) and not {"start", "flag", "template", "file"} & set(
            chain
        )
        yield (
            "generators: a chain of names, each once, none a word of the catalogue",
            chain,
            (bool(chain) and named and len(set(chain)) == len(chain)),
        )


def _comparisons(registered: RunRegistered) -> Iterator[Demand]:
    listed = registered.comparisons
    if isinstance(listed, UnsetType):
        return
    known = {name for contract in {cell.contract for cell in registered.plan} for name in comparisons(contract)}
    yield "comparisons: each once", listed, len(set(listed)) == len(listed)
    yield "comparisons of the plan's contracts", listed, set(listed) <= known


def _numbers(registered: RunRegistered) -> Iterator[Demand]:
    policy = registered.policy
    yield from statistics_demands(registered.statistics)
    doubled, whole = 2 * policy.credible_num, policy.credible_den
    yield "a credible bound between 1/2 and 1", policy, whole < doubled < 2 * whole
    if not isinstance(policy.patience, UnsetType):
        yield "a patience from 1", policy, policy.patience >= 1
    yield "max_rounds from 1", registered.max_rounds, registered.max_rounds >= 1


def _by_objective(registered: RunRegistered) -> Iterator[Demand]:
    """What reads medians as speeds, or times as costs, has no place in a run whose verdicts are by something else."""
    if by_time(registered.statistics):
        return
    yield "no claims under an objective", registered.claims, not registered.claims
    yield "no order of worth under an objective", registered.policy, isinstance(registered.policy.order, UnsetType)
    yield "no experience under an objective", registered.experience, isinstance(registered.experience, UnsetType)


def statistics_demands(statistics: Statistics) -> Iterator[Demand]:
    """What holds of the verdict parameters of a run and of an examination."""
    yield f"statistics.blocks from 1 to {MOST_BLOCKS}", statistics, 1 <= statistics.blocks <= MOST_BLOCKS
    yield "a tail between 0 and 1", statistics, 0 < statistics.tail_num < statistics.tail_den
    yield "a margin over 0", statistics, statistics.margin > 0 and isfinite(statistics.margin)
    fair = statistics.floor_multiple >= 0 and isfinite(statistics.floor_multiple)
    yield "a multiple of the noise floor from 0", statistics, fair
    if not isinstance(statistics.looks, UnsetType):
        looks = statistics.looks
        fair = looks == tuple(sorted(set(looks))) and min(looks, default=0) >= 1 and looks[-1] == statistics.blocks
        yield "looks from 1, ascending, the last of all blocks", looks, fair
        yield f"at most {MOST_LOOKS} looks", len(looks), len(looks) <= MOST_LOOKS
    if not isinstance(statistics.bounds, UnsetType):
        bounds = statistics.bounds
        fair = bounds.alone >= 0 and isfinite(bounds.alone) and bounds.wall_slack_ns >= 0 and 0 < bounds.busy <= 1
        yield "bounds: alone and wall_slack_ns from 0, busy over 0 and at most 1", bounds, fair
    if not isinstance(statistics.objective, UnsetType):
        yield from _objective(statistics, statistics.objective)


def _objective(statistics: Statistics, wanted: Objective) -> Iterator[Demand]:
    yield "bounds beside an objective", statistics.bounds, not isinstance(statistics.bounds, UnsetType)
    yield "an objective's bound from 1", wanted.bound, 1 <= wanted.bound < inf
    heated = not isinstance(wanted.heat, UnsetType)
    yield "heat of an objective by heat, and only there", wanted, heated == (wanted.by == "thermal")
    if isinstance(wanted.heat, UnsetType):
        return
    heat = wanted.heat
    fair = _LEAST <= heat.calls_per_s <= _MOST and 0 <= heat.idle_w <= _MOST and 1 <= len(heat.stages) <= MOST_STAGES
    yield f"calls_per_s from {_LEAST} to {_MOST}, idle_w from 0, 1 to {MOST_STAGES} stages", heat, fair
    stages = all(_LEAST <= x <= _MOST for stage in heat.stages for x in (stage.k_per_w, stage.tau_s))
    yield f"stages with k_per_w and tau_s from {_LEAST} to {_MOST}", heat.stages, stages


def problem_demands(problem: ProblemDeclared) -> Iterator[Demand]:
    """What holds of a problem wherever it is registered."""
    # The answer 0 has a rel_l2 of 1: a limit from there on would accept no answer at all.
    mixed = {} if isinstance(problem.mixed_limits, UnsetType) else problem.mixed_limits
    kinds = {} if isinstance(problem.kind_limits, UnsetType) else problem.kind_limits
    known = set(kinds) <= {"large", "small", "one_sign", "denormal"}
    yield f"kind_limits of {problem.name} of large, small, one_sign, denormal", set(kinds), known
    further = (*(() if isinstance(problem.mixed_limits, UnsetType) else (mixed,)), *kinds.values())
    for stated in further:
        fits = bool(stated) and set(stated) <= set(problem.limits)
        yield f"further limits of {problem.name} under contracts of its limits", set(stated), fits
    for contract, limits in (*problem.limits.items(), *(pair for stated in further for pair in stated.items())):
        fair = 0 < limits.rel_l2 < 1 and limits.max_rms > 0 and isfinite(limits.max_rms)
        yield f"limits of {problem.name} under {contract} over 0, rel_l2 under 1", limits, fair
    counts = problem.flops, problem.min_bytes
    yield f"counts of {problem.name} from 0", counts, min(counts) >= 0


def _claim(claim: ClaimRegistered, registered: RunRegistered) -> Iterator[Demand]:
    name = f"claim {claim.claim}"
    times = [other.claim for other in registered.claims].count(claim.claim)
    yield f"{name} once", f"{times} times", times == 1
    yield f"{name}: a bound over 0", claim.at_least, claim.at_least > 0 and isfinite(claim.at_least)
    yield f"{name}: decimals from 0 to {MOST_DECIMALS}", claim.decimals, 0 <= claim.decimals <= MOST_DECIMALS
    known = comparisons(claim.contract)
    yield f"{name}: one of {', '.join(known)}", claim.comparison, claim.comparison in known
    listed = registered.comparisons
    made = isinstance(listed, UnsetType) or claim.comparison in listed
    yield f"{name}: a comparison among those registered", claim.comparison, made
    scope = (claim.problem, claim.contract, claim.pool)
    planned = scope in {(cell.problem, cell.contract, cell.pool) for cell in registered.plan}
    yield f"{name}: a problem, contract and pool of the plan", scope, planned
