"""What the measurement itself is put to: identical kernels, a slowdown of known size, planted bottlenecks, a second collector. Measures nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from ..events.errors import BadInput
from ..problems.contract import Problem, load, names
from ..problems.planting import planted
from ..problems.sources import with_config, with_precision
from .corpus import subjects as subjects_of
from .examination import ExaminationRequest
from .examining import Pair, Subject
from .registration import STATISTICS
from .rules import rules

CONTRACT = "tf32-allowed"
_FEW = 10
"""Blocks that time what passed a gate, where times are not the question."""
AGAIN = ", again"
"""Ends the name of a subject that is the same kernel a second time."""
SUITES = ("identical", "slowdown", "planted", "counters", "energy", "gate")


def request(
    suite: str,
    half: str = "",
    times: int = 120,
    ncu: bool = False,
    seed: int = 0,
    corpus: Path | None = None,
    device: str = "cuda",
) -> ExaminationRequest:
    """The examination of a suite; `half` keeps one half of the planted kernels, `times` is comparisons per pair or hostile
    candidates of the `corpus`, `ncu` runs Nsight Compute over the planted hits too.
    """
    if suite not in SUITES:
        raise BadInput(f"--suite: expected some of {', '.join(SUITES)}; found {suite!r}")
    made: dict[str, Callable[[], ExaminationRequest]] = {
        "identical": lambda: _identical(times, seed),
        "slowdown": lambda: _slowdown(times, seed),
        "planted": lambda: _planted(half, ncu, seed),
        "counters": lambda: _counters(seed),
        "energy": lambda: _energy(seed),
        "gate": lambda: _gate(corpus, device, times, seed),
    }
    return made[suite]()


def _identical(times: int, seed: int) -> ExaminationRequest:
    """Five kernels from 5 us to 2 ms, each against itself: whatever is not SAME is the measurement's own fault."""
    subjects = tuple(_subject(name, problem, source) for name, (problem, source) in _five().items())
    pairs = tuple(
        Pair(name=s.name, subject=s.name, left=s.source, right=s.source, times=times, truth="SAME") for s in subjects
    )
    return ExaminationRequest(purpose="identical arms", subjects=subjects, pairs=pairs, rules=rules("seed"), seed=seed)


def _five() -> dict[str, tuple[Problem, str]]:
    softmax, scalar, sigmoid = load("kb_softmax"), load("kb_matmul_scalar"), load("sigmoid")
    small = _sized(softmax, {"rows": 512, "cols": 1024}, flops=5 * 512 * 1024, min_bytes=8 * 512 * 1024)
    side = 3584
    product = _sized(load("matmul"), {"m": side, "n": side, "k": side}, flops=2 * side**3, min_bytes=12 * side**2)
    return {
        "softmax 512 x 1024": (small, small.start),
        "tiled product 512^3": (scalar, tiled(scalar)),
        "softmax 8192^2": (softmax, softmax.start),
        "sigmoid 8192^2, five kernels": (sigmoid, sigmoid.start),
        f"library product {side}^3": (product, product.start),
    }


def tiled(problem: Problem) -> str:
    """The K-tiled rewrite of the scalar product, TF32: 32 x 32 tiles, 64 along K."""
    variant = problem.variant("coalesce", "flags")
    if variant is None or variant.source is None:
        raise BadInput(f"problem {problem.name}: expected a coalesce variant, found none")
    config = {"BLOCK_K": 64, "BLOCK_M": 32, "BLOCK_N": 32, "GROUP_M": 8, "num_stages": 3, "num_warps": 4}
    return with_config(with_precision(variant.source, "tf32"), config)


def _slowdown(times: int, seed: int) -> ExaminationRequest:
    """Row kernels with one row in fifty done twice: the same answer in 2 % more time."""
    subjects, pairs = [], []
    for name in ("kb_softmax", "kb_layernorm"):
        problem = load(name)
        subjects.append(_subject(name, problem, problem.start))
        pairs.append(
            Pair(
                name=f"{name}, 2 % slower",
                subject=name,
                left=problem.start,
                right=slower(problem.start, problem.shape["rows"]),
                times=times,
                truth="SLOWER",
            )
        )
    return ExaminationRequest(
        purpose="a planted slowdown of 2 %",
        subjects=tuple(subjects),
        pairs=tuple(pairs),
        rules=rules("seed"),
        seed=seed,
    )


def slower(source: str, rows: int) -> str:
    """A one-program-a-row source whose last rows // 50 programs do the first rows again; BadInput where it has another shape."""
    program, grid = "row = tl.program_id(0)\n", "[(m,)]("
    if source.count(program) != 1 or source.count(grid) != 1:
        raise BadInput("slowdown: expected a source with one program a row (row = tl.program_id(0), grid (m,))")
    return source.replace(program, f"row = tl.program_id(0) % {rows}\n").replace(grid, "[(m + m // 50,)](")


def _planted(half: str, ncu: bool, seed: int) -> ExaminationRequest:
    """A hit and a near miss of every rule, at the size of either half."""
    chosen = [kernel for kernel in planted() if half in ("", kernel.half)]
    if not chosen:
        raise BadInput(f"--half: expected calibration or held-out, found {half!r}")
    subjects = tuple(
        Subject(
            name=kernel.name,
            problem=kernel.problem,
            contract=kernel.contract,
            source=kernel.source,
            half=kernel.half,
            fires=(kernel.rule,) if kernel.kind == "hit" else (),
            silent=(kernel.rule,) if kernel.kind == "near" else (),
        )
        for kernel in chosen
    )
    beside = tuple(subject.name for subject in subjects if subject.fires) if ncu else ()
    purpose = f"planted kernels{f', {half} half' if half else ''}"
    return ExaminationRequest(purpose=purpose, subjects=subjects, rules=rules("full"), ncu=beside, seed=seed)


def _counters(seed: int) -> ExaminationRequest:
    """The starting kernels of every problem at every tier, counted in process and by Nsight Compute, twice by each: what a
    kernel's count does from one call to the next is no disagreement of the collectors.
    """
    subjects = tuple(
        _subject(f"{name}{again}", load(name), load(name).start) for again in ("", AGAIN) for name in names()
    )
    return ExaminationRequest(
        purpose="the problems, by two collectors",
        subjects=subjects,
        rules=rules("full"),
        roles=("kernels", "compiled"),
        ncu=tuple(subject.name for subject in subjects),
        seed=seed,
    )


def _energy(seed: int) -> ExaminationRequest:
    """Energy per call of every problem's starting kernel, without the calls of another collector in between."""
    subjects = tuple(_subject(name, load(name), load(name).start) for name in names())
    return ExaminationRequest(
        purpose="energy of the problems", subjects=subjects, rules=rules("seed"), roles=("energy",), seed=seed
    )


def _gate(corpus: Path | None, device: str, times: int, seed: int) -> ExaminationRequest:
    """Hostile candidates one after the other, each with an honest one behind it, which must find the place unharmed."""
    if corpus is None:
        raise BadInput("--suite gate: expected --corpus DIR, a folder of candidates with a corpus.toml, found none")
    return ExaminationRequest(
        purpose=f"{times} hostile candidates, each followed by an honest one",
        subjects=subjects_of(corpus, device, times),
        rules=rules("seed"),
        seed=seed,
        statistics=replace(STATISTICS, blocks=_FEW, looks=UNSET),
    )


def _subject(name: str, problem: Problem, source: str) -> Subject:
    return Subject(name=name, problem=problem, contract=CONTRACT, source=source)


def _sized(problem: Problem, shape: dict[str, int], flops: int, min_bytes: int) -> Problem:
    """The problem at another size, with that size's counts."""
    if shape.keys() != problem.shape.keys():
        raise BadInput(f"problem {problem.name}: expected sizes {sorted(problem.shape)}, found {sorted(shape)}")
    return replace(problem, shape=shape, flops=flops, min_bytes=min_bytes)
