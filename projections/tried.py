"""Which sources a generator has no more to offer for a cell's incumbent, and why. Never measures and judges none."""

from __future__ import annotations

from ..events.model import Policy, RoundJudged
from .cell import CellState

# Ends that say nothing about the source: it may be tried again.
_FAULTS = ("timeout", "worker_lost", "request_failed", "context_lost")
_GATE = "gate: "


def refused(state: CellState) -> dict[str, str]:
    """What the cell's gate has refused: the outcome by source digest."""
    return {
        source: f"{_GATE}{outcome}"
        for source, outcome in state.gates.items()
        if outcome != "passed" and outcome not in _FAULTS
    }


def tried(policy: Policy, state: CellState) -> dict[str, str]:
    """Why, by source digest: refused by the gate and, where the policy says `once`, judged against the incumbent before, swept on it
    beside a source that then lost to it or tied, or swept where nothing ran.
    """
    found = refused(state)
    if policy.offers != "once":
        return found
    judged = {j.round: j for j in state.rounds if j.incumbent == state.incumbent and not _is_fault(j)}
    for incumbent, sweep in state.swept:
        verdict = judged.get(sweep.round)
        best = None if sweep.chosen is None else sweep.sources[sweep.chosen]
        if incumbent != state.incumbent:
            continue
        if best is None:
            why = f"round {sweep.round}: nothing of its sweep ran"
        elif verdict is not None and verdict.candidate == best and verdict.verdict in ("SLOWER", "SAME"):
            why = f"round {sweep.round}: no faster in the sweep than one that was {verdict.verdict}"
        else:
            continue
        found |= dict.fromkeys(sweep.sources, why)
    return found | {j.candidate: f"round {j.round}: {j.verdict}, {j.reason}" for j in judged.values()}


def _is_fault(judged: RoundJudged) -> bool:
    return judged.reason.removeprefix(_GATE) in _FAULTS
