"""What is registered of a cell before its first measurement, and the policy that its arm's name stands for. Decides nothing."""

from __future__ import annotations

import msgspec

from ..events.errors import BadInput
from ..events.model import Cell, Chip, EvidenceCarried, Policy, ProblemDeclared, Rule, Statistics


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """The policy that an arm's name stands for: `on` evolves and `off` does not; `+tabu` adds the memory of inert firings.

    `random` draws among the prescriptions by the registered seed, and asks no clause.
    """

    evolves: bool
    tabu: bool
    random: bool = False


class CellPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a cell that is registered before its first measurement."""

    run: str
    cell: Cell
    rules: tuple[Rule, ...]
    chip: Chip
    problem: ProblemDeclared
    policy: Policy
    statistics: Statistics
    max_rounds: int
    seed: int = 0
    carried: tuple[EvidenceCarried, ...] = ()


def arm_policy(name: str) -> Arm:
    """Read an arm's name (`off`, `on`, `off+tabu`, `on+tabu`, `random`); BadInput for any other."""
    if name == "random":
        return Arm(evolves=False, tabu=False, random=True)
    base, *more = name.split("+")
    if base not in ("off", "on") or more not in ([], ["tabu"]):
        raise BadInput(f"arm {name!r}: expected off, on, off+tabu, on+tabu or random; correct the plan's arms")
    return Arm(evolves=base == "on", tabu=bool(more))
