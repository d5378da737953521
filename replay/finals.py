"""Comparisons after the rounds and the claims that they answer (FORMAT.md 6.8). Never measures."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from ..events.model import ClaimRegistered, ClaimStated, HeadToHead, Interval, RunRegistered
from . import statistic
from .artifacts import Samples, Shelf, with_precision
from .cells import Ended
from .claims import Answered, answer, bounds
from .findings import Findings

Group = tuple[str, str, str, int]
Side = tuple[str, bool]
Ratio = tuple[float, float, float]

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


class Finals:
    """The comparisons of one run against what its cells left."""

    def __init__(self, run: RunRegistered, ended: Iterable[Ended], shelf: Shelf, findings: Findings) -> None:
        self._run, self._shelf, self._findings = run, shelf, findings
        self._ended: dict[Group, dict[str, Ended]] = {}
        for end in ended:
            cell = end.cell
            group = (cell.problem, cell.contract, cell.pool, cell.repetition)
            self._ended.setdefault(group, {})[cell.arm] = end
        self.ratios: dict[tuple[Group, str], Ratio] = {}
        self._seen: set[tuple[Group, str]] = set()

    def check(self, seq: int, event: HeadToHead) -> None:
        """One comparison: when, which sources, and the interval that its samples give."""
        group = (event.problem, event.contract, event.pool, event.repetition)
        if (group, event.comparison) in self.ratios:
            self._findings.add(seq, "head to head", "each comparison measured once", f"{event.comparison} again")
        self._seen.add((group, event.comparison))
        self._check_time(seq, group, event.comparison)
        if event.comparison not in PAIRS and not event.comparison.startswith("versus:"):
            self._findings.add(seq, "head to head", f"one of {', '.join(PAIRS)}, versus:<baseline>", event.comparison)
            return
        left, right = self._due(group, event.comparison)
        if left is not None:
            self._findings.expect(seq, "head to head", left, event.left, f"{event.comparison} left")
        if right is not None:
            self._findings.expect(seq, "head to head", right, event.right, f"{event.comparison} right")
        ratio = self._ratio(seq, event)
        if ratio is not None:
            self.ratios.setdefault((group, event.comparison), ratio)

    def _check_time(self, seq: int, group: Group, comparison: str) -> None:
        """The comparison belongs to the plan and follows the end of every cell of its group."""
        if group not in self._ended:
            self._findings.add(seq, "head to head", "a problem, contract, pool and repetition of the plan", comparison)
        for end in self._ended.get(group, {}).values():
            if end.stopped is None or end.stopped > seq:
                self._findings.add(seq, "head to head", f"after the end of cell {end.cell.arm}", comparison)

    def _due(self, group: Group, comparison: str) -> tuple[str | None, str | None]:
        """Digests of both sides; None where the page leaves a side open (a baseline) or it does not exist."""
        if comparison.startswith("versus:"):
            return None, self._source(group, ("on", False))
        left, right = PAIRS[comparison]
        return self._source(group, left), self._source(group, right)

    def _source(self, group: Group, side: Side) -> str | None:
        cells = self._ended.get(group, {})
        end = cells.get("on" if side[0] == "start" else side[0])
        if end is None or end.winner is None:
            return None
        digest = end.start if side[0] == "start" else end.winner
        if digest is None or not side[1]:
            return digest
        twin = with_precision(self._shelf.text(digest), "ieee")
        return None if twin is None else hashlib.sha256(twin.encode()).hexdigest()

    def _ratio(self, seq: int, event: HeadToHead) -> Ratio | None:
        """Lower, median and upper as re-derived; None for a fault or too few blocks."""
        expect = self._findings.expect
        expected = "identical" if event.left == event.right else "measured, or a fault"
        if (event.outcome == "identical") != (event.left == event.right):
            self._findings.add(seq, "head to head", expected, event.outcome)
        due: Interval | None = None
        if event.outcome == "measured" and event.samples is not None:
            due = statistic.interval(self._shelf.json(event.samples, Samples).blocks, self._run.statistics)
        elif event.outcome == "measured":
            self._findings.add(seq, "head to head", "samples", "measured without samples")
        elif event.samples is not None:
            self._findings.add(seq, "head to head", "no samples", f"samples of a comparison {event.outcome}")
        expect(seq, "interval", due, event.interval, event.comparison)
        if event.outcome == "identical":
            return (1.0, 1.0, 1.0)
        return None if due is None else bounds(due)

    def check_complete(self, seq: int) -> None:
        """Every comparison that the plan and the cells allow was recorded."""
        for group in self._ended:
            for comparison in (*PAIRS, *(f"versus:{name}" for name in baselines(group[1]))):
                with self._findings.derivation(seq, f"{comparison} of {group}"):
                    left, right = self._due(group, comparison)
                    due = right is not None and (left is not None or comparison.startswith("versus:"))
                    if due and (group, comparison) not in self._seen:
                        self._findings.add(seq, "head to head", f"{comparison} of {group}", "absent")

    def answer(self, claim: ClaimRegistered) -> Answered:
        """A claim's answer from the re-derived intervals of its comparison."""
        scope = (claim.problem, claim.contract, claim.pool)
        groups = sorted(group for group in self._ended if group[:3] == scope)
        return answer(claim, [self.ratios.get((group, claim.comparison)) for group in groups])


class ClaimView(msgspec.Struct, frozen=True):
    """A registered claim, what the ledger states of it and what was re-derived (None: not done or not possible)."""

    claim: str
    text: str
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
    by_claim: dict[str, tuple[int, ClaimStated]] = {}
    registered = {claim.claim for claim in run.claims}
    for seq, event in stated:
        if event.claim not in registered:
            findings.add(seq, "claim", "a registered claim", event.claim)
        if event.claim in by_claim:
            findings.add(seq, "claim", "one answer to a claim", f"{event.claim} again")
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
    return ClaimView(claim.claim, claim.text, stated, () if found is None else found[1].medians, derived, agree)
