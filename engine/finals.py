"""After a group's rounds: its winners head to head, and against PyTorch eager and torch.compile. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET
from msgspec.structs import replace

from ..events.errors import BadInput
from ..events.model import Cell, HeadToHead
from ..events.writer import LedgerWriter
from ..problems.contract import Problem
from ..problems.sources import strict_twin, with_precision
from ..profilers import artifacts as shapes
from ..profilers.gates import gate_seed
from ..profilers.intervals import interval
from ..profilers.witnesses import wrong_while_timed
from ..projections.claims import Pair, Side, recorded_source, registered_pairs
from ..projections.runs import Group, RunView, group_of_comparison
from .executor import Executor, Observation, Question
from .records import Draft

WRONG = "wrong while timed"

# eager.py computes in `operation`, which `run` looks up when it is called.
_COMPILE = "\n\noperation = torch.compile(operation)\n"


def baselines(contract: str) -> tuple[str, ...]:
    """PyTorch's own answers under a contract; every ratio names its denominator."""
    strict = ("eager_fp32", "compile_fp32")
    return strict if contract == "fp32-strict" else (*strict, "eager_tf32", "compile_tf32")


def baseline_source(problem: Problem, name: str) -> str:
    """The source of a baseline: torch eager or torch.compile, in fp32 or TF32."""
    mode, precision = name.split("_")
    text = with_precision(problem.eager, "tf32" if precision == "tf32" else "ieee")
    return text + _COMPILE if mode == "compile" else text


class Finals:
    """Measures the head-to-heads of a group that the ledger does not hold yet."""

    def __init__(self, ledger: LedgerWriter, executor: Executor, view: RunView, say: Callable[[str], None]) -> None:
        assert view.registration is not None
        self._ledger, self._executor, self._view, self._say = ledger, executor, view, say
        self._registration = view.registration

    def play(self, group: Group, problem: Problem) -> None:
        """Every registered comparison of the group, each recorded as soon as it is measured."""
        done = {(h.problem, h.contract, h.pool, h.repetition, h.comparison) for h in self._view.head_to_heads}
        for pair in registered_pairs(self._registration, group, baselines(group.contract)):
            if (group.problem, group.contract, group.pool, group.repetition, pair.comparison) not in done:
                self._record(group, problem, pair)

    def _record(self, group: Group, problem: Problem, pair: Pair) -> None:
        left, right = (self._text(group, problem, side) for side in (pair.left, pair.right))
        if left is None or right is None:
            return
        draft = Draft()
        names = draft.keep_source(left), draft.keep_source(right)
        event = self._paid(group, pair.comparison, *names)
        if event is None:
            seen = None if left == right else self._measure(group, problem, pair, left, right, names[1])
            name = None if seen is None else draft.keep_role(seen, "samples")
            samples = None if name is None else shapes.decode(shapes.Samples, draft.artifacts[name][0])
            wrong = samples is not None and self._wrong(group, problem, samples)
            event = HeadToHead(
                run=self._view.run,
                problem=group.problem,
                contract=group.contract,
                pool=group.pool,
                repetition=group.repetition,
                comparison=pair.comparison,
                left=names[0],
                right=names[1],
                samples=name,
                interval=None if samples is None or wrong else interval(samples, self._registration.statistics),
                outcome="identical" if seen is None else WRONG if wrong else "measured" if name else seen.status,
                origin_seq=None if seen is None else seen.origin_seq,
            )
        draft.add(event)
        run = self._view.run
        self._ledger.append(run, self._ledger.version(run), draft.events, list(draft.artifacts.values()))
        ratio = f"{event.interval.median:.2f}x" if event.interval else event.outcome
        self._say(f"{pair.comparison}: {ratio}")

    def _paid(self, group: Group, comparison: str, left: str, right: str) -> HeadToHead | None:
        """What an earlier comparison of the group measured of these very kernels, where the run shares."""
        if self._registration.shares is not True:
            return None
        for stored in self._ledger.events(self._view.run):
            paid = stored.event
            if not isinstance(paid, HeadToHead) or paid.origin_seq is not None or paid.samples is None:
                continue
            if group_of_comparison(paid) == group and (paid.left, paid.right) == (left, right):
                return replace(paid, comparison=comparison, origin_seq=stored.seq)
        return None

    def _measure(self, group: Group, problem: Problem, pair: Pair, left: str, right: str, name: str) -> Observation:
        cell = Cell(
            problem=group.problem, contract=group.contract, pool=group.pool, arm="on", repetition=group.repetition
        )
        purpose = f"final:{pair.comparison}"
        energy = self._registration.statistics.objective is not UNSET
        seed = gate_seed(self._registration.seed, name, 1)
        question = Question(cell=cell, problem=problem, purpose=purpose, seed=seed, energy=energy)
        return self._executor.compare(question, left, right, self._registration.statistics.blocks)

    def _text(self, group: Group, problem: Problem, side: Side) -> str | None:
        if side.role == "baseline":
            return baseline_source(problem, side.name)
        source = recorded_source(self._view, group, side)
        if source is None:
            return None
        text = self._ledger.artifact(source).decode()
        try:
            return strict_twin(text) if side.strict else text
        except BadInput:
            return None  # no precision line, no twin, no split

    def _wrong(self, group: Group, problem: Problem, samples: shapes.Samples) -> bool:
        """Whether either side gave an answer that the contract does not allow: how long that took is no speed of a right kernel."""
        return wrong_while_timed(self._registration.statistics, samples, problem.limits[group.contract])
