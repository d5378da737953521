"""Comparisons after the rounds and the claims that they answer (FORMAT.md 6.8). Never measures."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec
from msgspec import UnsetType

from ..events.model import (
    Cell,
    Chip,
    ClaimRegistered,
    ClaimStated,
    HeadToHead,
    Interval,
    ProblemDeclared,
    RunRegistered,
)
from . import statistic
from .artifacts import Samples
from .bounds import WRONG_WHILE_TIMED, asks, outputs_right
from .cells import Ended
from .claims import Answered, answer, bounds
from .declared import files_of
from .findings import Findings
from .shelf import Shelf
from .texts import precision_of, with_precision

Group = tuple[str, str, str, int]
Side = tuple[str, bool]
Ratio = tuple[float, float, float]
Pins = dict[tuple[str, str], str]
"""Strict twin of a baseline by (problem's digest, `eager` or `compile`): it is the same in the whole ledger."""

OPEN = ""
"""A side that the page leaves open: a baseline, whose source is the problem's. None is a side that does not exist."""
_SAMPLED = ("measured", WRONG_WHILE_TIMED)
PRECISIONS = {"fp32": "ieee", "tf32": "tf32"}

# comparison: (left, right), each an arm or the start, and whether its strict twin is meant
PAIRS: dict[str, tuple[Side, Side]] = {
    "endpoint": (("off", False), ("on", False)),
    "endpoint_kernel": (("off", True), ("on", True)),
    "total": (("start", False), ("on", False)),
    "kernel_part": (("start", False), ("on", True)),
    "precision_part": (("on", True), ("on", False)),
    "tabu": (("off+tabu", False), ("on", False)),
}


def baselines(contract: str) -> tuple[str, ...]:
    """PyTorch's own kernels that a winner is compared with under a contract."""
    strict = ("eager_fp32", "compile_fp32")
    return strict if contract == "fp32-strict" else (*strict, "eager_tf32", "compile_tf32")


def comparisons(contract: str) -> tuple[str, ...]:
    """Every comparison that there can be under a contract."""
    return (*PAIRS, *(f"versus:{name}" for name in baselines(contract)))


def _group(cell: Cell) -> Group:
    return cell.problem, cell.contract, cell.pool, cell.repetition


class Finals:
    """The comparisons of one run against what its cells left. `baselines`: (seq, source, strict twin) of each that was compared."""

    def __init__(
        self,
        run: RunRegistered,
        ended: Iterable[Ended],
        chip: Chip | None,
        pins: Pins,
        shelf: Shelf,
        findings: Findings,
    ) -> None:
        self._run, self._chip, self._pins = run, chip, pins
        self._shelf, self._findings = shelf, findings
        self.baselines: list[tuple[int, str, str]] = []
        self._planned: dict[Group, list[str]] = {}
        for cell in run.plan:
            self._planned.setdefault(_group(cell), []).append(cell.arm)
        self._ended: dict[Group, dict[str, Ended]] = {group: {} for group in self._planned}
        for end in ended:
            self._ended[_group(end.cell)][end.cell.arm] = end
        self.ratios: dict[tuple[Group, str], Ratio] = {}
        self._seen: set[tuple[Group, str]] = set()
        self.last = 0

    def check(self, seq: int, event: HeadToHead) -> None:
        """One comparison: when, which sources, and the interval that its samples give."""
        group = (event.problem, event.contract, event.pool, event.repetition)
        if (group, event.comparison) in self._seen:
            self._findings.add(seq, "head to head", "each comparison once", f"{event.comparison} again")
        self._seen.add((group, event.comparison))
        self.last = max(self.last, seq)
        self._check_time(seq, group, event.comparison)
        if event.comparison not in comparisons(event.contract):
            self._findings.add(seq, "head to head", f"one of {comparisons(event.contract)}", event.comparison)
            return
        if not self._registered(event.comparison):
            self._findings.add(
                seq, "head to head", f"one of those registered, {self._run.comparisons}", event.comparison
            )
            return
        # Side by side: a text that is not there is a finding, and no reason to leave the other side, or the samples, unread.
        for side in ("left", "right"):
            with self._findings.derivation(seq, f"comparison {event.comparison} {side}"):
                if not self._check_side(seq, group, event, side):
                    return
        ratio = self._ratio(seq, event)
        if ratio is not None:
            self.ratios.setdefault((group, event.comparison), ratio)

    def _check_side(self, seq: int, group: Group, event: HeadToHead, side: str) -> bool:
        """One source, against what the cells left; False where the cells gave nothing to compare."""
        due, found = self._due(group, event.comparison, side), getattr(event, side)
        if due is None:
            self._findings.add(seq, "head to head", "two sides that the cells of the plan give", event.comparison)
            return False
        if due == OPEN:
            self._check_baseline(seq, event)
        else:
            self._findings.expect(seq, "head to head", due, found, f"{event.comparison} {side}")
        return True

    def _registered(self, comparison: str) -> bool:
        """Whether the run makes this comparison where it is due; without a list it makes all."""
        return isinstance(self._run.comparisons, UnsetType) or comparison in self._run.comparisons

    def _check_time(self, seq: int, group: Group, comparison: str) -> None:
        """The comparison belongs to the plan and follows the end of every cell of its group."""
        if group not in self._planned:
            self._findings.add(seq, "head to head", "a problem, contract, pool and repetition of the plan", comparison)
        for arm in self._planned.get(group, ()):
            end = self._ended[group].get(arm)
            if end is None or end.stopped is None or end.stopped > seq:
                self._findings.add(seq, "head to head", f"after the end of cell {arm}", comparison)

    def _check_baseline(self, seq: int, event: HeadToHead) -> None:
        """One text by problem and way of running, at the precision of its name, and no candidate's."""
        mode, _, precision = event.comparison.removeprefix("versus:").partition("_")
        what = f"{event.comparison} left"
        own = files_of(self._problem(event)).get("eager.py")
        if own is not None and event.comparison == "versus:eager_fp32":
            self._findings.expect(seq, "head to head", own, event.left, f"{what}, the problem's eager.py")
        text = self._shelf.text(event.left)
        self._findings.expect(seq, "head to head", PRECISIONS[precision], precision_of(text), f"{what}, precision")
        twin = _twin(text)
        problem = self._problem(event)
        pinned = self._pins.setdefault((problem.digest, mode), twin or "")
        self._findings.expect(seq, "head to head", pinned, twin, f"{what}, its strict twin as in every comparison")
        if twin is not None:
            self.baselines.append((seq, event.left, twin))

    def _due(self, group: Group, comparison: str, side: str) -> str | None:
        """Digest of a side; OPEN for a baseline, None where the side does not exist."""
        if comparison.startswith("versus:"):
            return OPEN if side == "left" else self._source(group, ("on", False))
        left, right = PAIRS[comparison]
        return self._source(group, left if side == "left" else right)

    def _source(self, group: Group, side: Side) -> str | None:
        cells = self._ended.get(group, {})
        end = cells.get("on" if side[0] == "start" else side[0])
        if end is None or end.winner is None:
            return None
        digest = end.start if side[0] == "start" else end.winner
        if digest is None or not side[1]:
            return digest
        return _twin(self._shelf.text(digest))

    def _ratio(self, seq: int, event: HeadToHead) -> Ratio | None:
        """Lower, median and upper as re-derived; None for a fault, and for samples that answer nothing."""
        outcomes = ("identical",) if event.left == event.right else (*_SAMPLED, *statistic.FAULTS)
        if event.outcome not in outcomes:
            self._findings.add(seq, "head to head", f"outcome {' or '.join(outcomes)}", event.outcome)
        sampled = event.outcome in _SAMPLED
        if sampled != (event.samples is not None):
            self._findings.add(seq, "head to head", "samples where measured, and only there", event.outcome)
        due: Interval | None = None
        sound = False
        if sampled and event.samples is not None:
            due, sound = self._derived(seq, event, self._shelf.json(event.samples, Samples))
        self._findings.expect(seq, "interval", due, event.interval, event.comparison)
        if event.outcome == "identical":
            return (1.0, 1.0, 1.0)
        return bounds(due) if due is not None and sound else None

    def _derived(self, seq: int, event: HeadToHead, samples: Samples) -> tuple[Interval | None, bool]:
        """The interval, none where a side was wrong while timed; and whether the samples are as many and as slow as they must be."""
        blocks, problem = self._run.statistics.blocks, self._problem(event)
        enough = self._findings.expect(seq, "samples", blocks, len(samples.blocks), f"{event.comparison} blocks")
        floor_ns = 0.0 if self._chip is None else statistic.physical_floor(problem, self._chip, event.contract)
        fastest = min((statistic.lower_median(side) for side in (samples.left(), samples.right()) if side), default=0)
        if fastest < floor_ns:
            self._findings.add(seq, "head to head", f"no kernel below physical floor, {floor_ns} ns", f"{fastest} ns")
        asked = asks(self._run.statistics, problem.limits.get(event.contract))
        right = asked is None or outputs_right(samples, asked)
        if event.outcome == WRONG_WHILE_TIMED and samples.outputs is None:
            self._findings.add(seq, "head to head", "outputs that are not right", "samples without outputs")
        outcome = _SAMPLED[0] if right else WRONG_WHILE_TIMED
        self._findings.expect(seq, "head to head", outcome, event.outcome, f"{event.comparison} outcome")
        return (statistic.interval(samples, self._run.statistics) if right else None), enough and fastest >= floor_ns

    def _problem(self, event: HeadToHead) -> ProblemDeclared:
        return next(p for p in self._run.problems if p.name == event.problem)

    def check_complete(self, seq: int) -> None:
        """Every comparison that the registration, the plan and the cells allow was recorded."""
        for group in self._ended:
            for comparison in filter(self._registered, comparisons(group[1])):
                with self._findings.derivation(seq, f"{comparison} of {group}"):
                    sides = [self._due(group, comparison, side) for side in ("left", "right")]
                    if None not in sides and (group, comparison) not in self._seen:
                        self._findings.add(seq, "head to head", f"{comparison} of {group}", "absent")

    def answer(self, claim: ClaimRegistered) -> Answered:
        """A claim's answer from the re-derived intervals of its comparison."""
        scope = (claim.problem, claim.contract, claim.pool)
        groups = sorted(group for group in self._planned if group[:3] == scope)
        return answer(claim, [self.ratios.get((group, claim.comparison)) for group in groups])


def _twin(text: str) -> str | None:
    """Digest of a source's strict twin; None where it has none."""
    twin = with_precision(text, "ieee")
    return None if twin is None else hashlib.sha256(twin.encode()).hexdigest()


def strict_twins(sources: Iterable[str], shelf: Shelf) -> set[str]:
    """Digests of the strict twins of sources; those that cannot be read are reported where they are named."""
    twins = (_twin(shelf.raw(source).decode("utf-8", "replace")) for source in sources if source in shelf)
    return {twin for twin in twins if twin is not None}


class ClaimView(msgspec.Struct, frozen=True):
    """A registered claim with its bound, what the ledger states of it and what was re-derived (None: not done or not possible)."""

    claim: str
    text: str
    comparison: str
    at_least: float
    stated: str
    stated_medians: tuple[float, ...]
    derived: Answered | None
    agree: bool | None


def check_claims(
    run: RunRegistered,
    stated: list[tuple[int, ClaimStated]],
    finals: Finals | None,
    completed: int | None,
    findings: Findings,
) -> tuple[ClaimView, ...]:
    """Each registered claim beside its answer. `finals` None: nothing was re-derived; `completed`: seq of the run's end."""
    compared = 0 if finals is None else finals.last
    by_claim: dict[str, tuple[int, ClaimStated]] = {}
    registered = {claim.claim for claim in run.claims}
    for seq, event in stated:
        if event.claim not in registered:
            findings.add(seq, "claim", "a registered claim", event.claim)
        if event.claim in by_claim:
            findings.add(seq, "claim", "one answer to a claim", f"{event.claim} again")
        if seq < compared:
            findings.add(seq, "claim", f"an answer after the last comparison, event {compared}", event.claim)
        by_claim.setdefault(event.claim, (seq, event))
    return tuple(_claim(claim, by_claim.get(claim.claim), finals, completed, findings) for claim in run.claims)


def _claim(
    claim: ClaimRegistered,
    found: tuple[int, ClaimStated] | None,
    finals: Finals | None,
    completed: int | None,
    findings: Findings,
) -> ClaimView:
    if found is None and completed is not None:
        findings.add(completed, "claim", f"an answer to claim {claim.claim}", "absent")
    derived: Answered | None = None
    if finals is not None:
        with findings.derivation(found[0] if found else completed or 0, f"claim {claim.claim}"):
            derived = finals.answer(claim)
    agree: bool | None = None
    if found is not None and derived is not None:
        seq, event = found
        due = (derived.answer, derived.medians, derived.lowers)
        agree = findings.expect(seq, "claim", due, (event.answer, event.medians, event.lowers), claim.claim)
    stated = "not answered" if found is None else found[1].answer
    medians = () if found is None else found[1].medians
    return ClaimView(claim.claim, claim.text, claim.comparison, claim.at_least, stated, medians, derived, agree)
