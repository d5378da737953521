"""What a run registers before its first measurement: plan, problems, policy, statistics, claims, code, environment."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import product

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from .. import __version__
from ..events.errors import BadInput
from ..events.model import (
    Bounds,
    Cell,
    ClaimRegistered,
    Event,
    Experience,
    Objective,
    Policy,
    ProblemDeclared,
    RuleSeeded,
    RunRegistered,
    Statistics,
)
from ..problems.contract import CONTRACTS, Problem, declared, load
from ..projections.cell_plan import arm_policy
from ..projections.claims import endpoint_pairs
from .executor import Executor
from .experience import PREFIX, PROPOSING, learnt
from .finals import baselines
from .generators.chain import Chain
from .generators.registry import DEFAULT, check_names
from .rules import rules

REFERENCE_BATCH = ("kb_softmax", "kb_layernorm", "kb_reduce", "kb_matmul_scalar")
POLICY = Policy(credible_num=19, credible_den=20, patience=4, order="value")
STATISTICS = Statistics(
    blocks=320,
    tail_num=1,
    tail_den=100,
    margin=0.01,
    floor_multiple=2.0,
    looks=(20, 40, 80, 160, 320),
    bounds=Bounds(alone=0.05, wall_slack_ns=200_000, busy=0.8),
)
LEAST_BLOCKS = 12
"""Blocks of gigabytes of new inputs take long, and a run may have fewer than 320 of them. From twelve on the 99 % interval leaves out
the farthest block on either side: 2 * (1 + 12) / 2^12 is 0.63 %, where eleven have 2 * (1 + 11) / 2^11 = 1.17 %. With fewer it spans all blocks,
and a single bad one makes it as wide.
"""
METERED_BLOCKS, METERED_LOOKS = 20, (10,)
"""Ten is the least number of blocks with an interval at a third of the tail (three looks); a block of energies takes about two seconds."""
_ROOMS = ("engine", "events", "profilers", "projections", "problems")


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a person asks for. `repetitions` by problem; a problem that is not named there is run once.

    `comparisons` are those to make after the rounds, UNSET: all that are due. `generators` is the chain in the order of asking; the catalogue alone is what a run without a registered chain has.
    `imported` are problems of no folder here, by name. `blocks` is the number of ABBA blocks of a pair at most, else that of STATISTICS.
    `objective`: what verdicts are by, where it is not latency. `once`: a chain offers no source again on a kernel that it did not better.
    """

    problems: tuple[str, ...] = REFERENCE_BATCH
    arms: tuple[str, ...] = ("off", "on")
    contracts: tuple[str, ...] = ("tf32-allowed",)
    pool: str = "flags"
    rounds: int = 12
    rules: str = "seed"
    propose: bool = False
    share: bool = False
    comparisons: tuple[str, ...] | UnsetType = UNSET
    repetitions: Mapping[str, int] = {}
    blocks: int | UnsetType = UNSET
    seed: int = 0
    imported: Mapping[str, Problem] = {}
    generators: tuple[str, ...] = DEFAULT
    objective: Objective | UnsetType = UNSET
    once: bool = True


def register(
    run: str, request: RunRequest, executor: Executor, experience: Experience | UnsetType = UNSET
) -> RunRegistered:
    """The registration of a run, which names what its table was learnt from; BadInput for what `check_request` refuses."""
    check_request(request)
    if request.share and executor.origin is not None:
        raise BadInput(
            "--share-measurements: expected a device that measures, found a recording, which pays for nothing"
        )
    if request.blocks is not UNSET and executor.statistics() is not None:
        raise BadInput(
            "--blocks: expected a device that measures, found a recording, which is judged as it was measured"
        )
    chain = None if request.generators == DEFAULT else Chain(request.generators)
    problems = tuple(_declared(name, request, chain) for name in dict.fromkeys(request.problems))
    # A recorded run can only ask for what was measured, and be judged as its samples were taken.
    statistics = executor.statistics() or _statistics(request)
    if request.objective is not UNSET and statistics.objective != request.objective:
        raise BadInput(
            f"--objective: expected that of the recording, {_by(statistics.objective)}, found {_by(request.objective)}"
        )
    return RunRegistered(
        run=run,
        seed=request.seed,
        executor=executor.name,
        origin=executor.origin,
        max_rounds=request.rounds,
        plan=_plan(request),
        problems=problems,
        policy=replace(
            executor.policy() or _policy(statistics), offers="once" if request.once and chain is not None else UNSET
        ),
        statistics=statistics,
        claims=tuple(_claims(request)) if statistics.objective is UNSET else (),
        code=code_digests(),
        environment=environment(executor) | ({} if chain is None else chain.facts()),
        generators=UNSET if chain is None else chain.names,
        experience=experience,
        shares=request.share or UNSET,
        comparisons=request.comparisons,
    )


def _statistics(request: RunRequest) -> Statistics:
    """STATISTICS; given a number, with so many blocks at most and the looks that come before; fewer for energies, which take a second each."""
    if request.objective is UNSET:
        return STATISTICS if request.blocks is UNSET else _looking(STATISTICS, request.blocks)
    blocks = METERED_BLOCKS if request.blocks is UNSET else request.blocks
    return replace(_looking(STATISTICS, blocks, METERED_LOOKS), objective=request.objective)


def _looking(statistics: Statistics, blocks: int, first: tuple[int, ...] = ()) -> Statistics:
    assert isinstance(statistics.looks, tuple)
    every = (*first, *statistics.looks)
    return replace(statistics, blocks=blocks, looks=(*(look for look in every if look < blocks), blocks))


def _policy(statistics: Statistics) -> Policy:
    """POLICY; by objectives other than latency in the order of positions, for worth is gain in time."""
    return POLICY if statistics.objective is UNSET else replace(POLICY, order=UNSET)


def _by(objective: Objective | UnsetType) -> str:
    return "latency" if isinstance(objective, UnsetType) else str(objective)


def wanted(request: RunRequest, name: str) -> Problem:
    """A problem of the request by its name; BadInput where there is none."""
    return request.imported[name] if name in request.imported else load(name)


def _declared(name: str, request: RunRequest, chain: Chain | None) -> ProblemDeclared:
    """The problem with all prescriptions of the table that something in the chain may serve."""
    problem = wanted(request, name)
    found = declared(problem, request.pool)
    if chain is None:
        return found
    seeded = (event.rule for event in table_of("run1", request)[0] if isinstance(event, RuleSeeded))
    asked = {rule.prescription for rule in seeded if rule.prescription is not None}
    served = (p for p in asked if chain.serves(problem, request.pool, request.contracts, p))
    return replace(found, prescriptions=tuple(sorted(served)))


def table_of(run: str, request: RunRequest) -> tuple[tuple[Event, ...], Experience | UnsetType]:
    """The events that make up the run's table, and the ledger that it was learnt from where there is one."""
    if not request.rules.startswith(PREFIX):
        return tuple(RuleSeeded(run=run, rule=rule) for rule in rules(request.rules)), UNSET
    found = learnt(request.rules, run, request.seed, PROPOSING if request.propose else None)
    return found.events, found.experience


def environment(executor: Executor) -> dict[str, str]:
    """What was measured on, and with which versions."""
    return {**executor.facts(), "gpusolver": __version__, "sqlite": sqlite3.sqlite_version}


def code_digests() -> dict[str, str]:
    """SHA-256 of every file of the rooms that measure, derive and decide, by path; problems have digests of their own."""
    found: dict[str, str] = {}
    for room in _ROOMS:
        for path, content in _texts(files("gpusolver") / room, room):
            found[path] = hashlib.sha256(content).hexdigest()
    return found


def _texts(folder: Traversable, path: str) -> Iterable[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_dir() and entry.name in ("worker", "generators", "templates"):
            yield from _texts(entry, f"{path}/{entry.name}")
        elif entry.name.endswith((".py", ".toml", ".sql")):
            yield f"{path}/{entry.name}", entry.read_bytes()


def _plan(request: RunRequest) -> tuple[Cell, ...]:
    """Cells by problem and contract, then repetition, then arm, so that the arms of one comparison run close in time."""
    cells = []
    for problem, contract in product(dict.fromkeys(request.problems), dict.fromkeys(request.contracts)):
        for repetition in range(1, request.repetitions.get(problem, 1) + 1):
            for arm in dict.fromkeys(request.arms):
                cell = Cell(problem=problem, contract=contract, pool=request.pool, arm=arm, repetition=repetition)
                cells.append(cell)
    return tuple(cells)


def check_request(request: RunRequest) -> None:
    """BadInput for a problem, arm, contract or number that a run cannot have; costs nothing and writes nothing."""
    if not request.problems:
        raise BadInput("--problems: expected at least one, found none")
    for name in request.problems:
        wanted(request, name)
    check_words(request)
    strangers = [name for name in request.repetitions if name not in request.problems]
    if strangers:
        raise BadInput(f"--repetitions: expected problems of this run, found {', '.join(strangers)}")
    for name, number in request.repetitions.items():
        _within_a_thousand(f"--repetitions {name}", number)


def check_words(request: RunRequest) -> None:
    """`check_request` but for the problems: what can be said before a file is imported."""
    for what, words in (("--arms", request.arms), ("--contract", request.contracts)):
        if not words:
            raise BadInput(f"{what}: expected at least one, found none")
    for arm in request.arms:
        arm_policy(arm)
    check_names(request.generators)
    if request.propose and not request.rules.startswith(PREFIX):
        raise BadInput(f"--propose: expected --rules from:LEDGER to learn from, found --rules {request.rules}")
    table_of("run1", request)
    unknown = [c for c in request.contracts if c not in CONTRACTS]
    if unknown:
        raise BadInput(f"--contract: expected some of {', '.join(CONTRACTS)}; found {', '.join(unknown)}")
    least = LEAST_BLOCKS if request.objective is UNSET else METERED_LOOKS[0]
    if request.blocks is not UNSET and not least <= request.blocks <= STATISTICS.blocks:
        raise BadInput(f"--blocks: expected {least} to {STATISTICS.blocks}, found {request.blocks}")
    if request.objective is not UNSET and request.rules.startswith(PREFIX):
        raise BadInput(
            f"--objective: expected a table of rules, found --rules {request.rules}: what was learnt there is what is faster. "
            "Use --rules seed, full or a TOML file."
        )
    _within_a_thousand("--rounds", request.rounds)
    _check_comparisons(request)


def _check_comparisons(request: RunRequest) -> None:
    if isinstance(request.comparisons, UnsetType):
        return
    versus = dict.fromkeys(name for contract in request.contracts for name in baselines(contract))
    due = [pair.comparison for pair in endpoint_pairs(request.arms, versus)]
    strangers = [name for name in dict.fromkeys(request.comparisons) if name not in due]
    if strangers or len(set(request.comparisons)) < len(request.comparisons):
        raise BadInput(
            f"--comparisons: expected all, none, or each once of those of the arms {', '.join(request.arms)} under "
            f"{', '.join(request.contracts)}: {', '.join(due) or 'none'}; found {', '.join(strangers or request.comparisons)}"
        )


def _within_a_thousand(what: str, number: int) -> None:
    if not 1 <= number <= 1000:
        raise BadInput(f"{what}: expected 1 to 1000, found {number}")


# The claims of the reference experiment: what was published for an A100 is the bound that this chip has to meet.
# (problem, contract, comparison, bound, text)
_CLAIMS = (
    ("kb_matmul_scalar", "tf32-allowed", "endpoint_kernel", 5.75, "endpoint ratio of kb_matmul_scalar, kernel part: at least 5.75"),
    ("kb_matmul_scalar", "tf32-allowed", "versus:eager_tf32", 1.0, "the winner is not slower than cuBLAS at the same contract"),
    ("kb_matmul_scalar", "fp32-strict", "versus:eager_fp32", 1.0, "the strict winner is not slower than cuBLAS in fp32"),
    ("matmul", "tf32-allowed", "total", 6.4, "matmul 4096^2: at least 6.4x under tf32-allowed, all parts"),
    ("batched_gemm", "tf32-allowed", "total", 4.5, "bmm 16 x 1024^3: at least 4.5x under tf32-allowed, all parts"),
)  # fmt: skip


def _claims(request: RunRequest) -> Iterable[ClaimRegistered]:
    if not {"on", "off"} <= set(request.arms) or request.pool != "flags":
        return
    for problem, contract, comparison, bound, text in _CLAIMS:
        if not isinstance(request.comparisons, UnsetType) and comparison not in request.comparisons:
            continue  # nothing would be measured that could answer it
        if problem in request.problems and contract in request.contracts:
            yield ClaimRegistered(
                claim=f"{problem}/{contract}/{comparison}",
                text=text,
                problem=problem,
                contract=contract,
                pool=request.pool,
                comparison=comparison,
                at_least=bound,
                decimals=2,
            )
