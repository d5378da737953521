"""What is registered before the first measurement: problems, cells, claims, and the run itself. Never measures one."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from .base import Event, Value
from .policy import Policy, Proposing, Statistics
from .rules import Rule


class Limits(Value, frozen=True):
    """Largest accepted error against the float64 reference: relative L2 norm, and largest element over the RMS."""

    rel_l2: float
    max_rms: float


class ProblemDeclared(Value, frozen=True):
    """A problem as registered: `digest` covers every file of its folder; counts are algorithmic minima per call.

    `files` are artifacts by relative path: the folder of a problem that was imported, for it lies nowhere else.
    `mixed_limits` are those of a draw of kind `mixed_signs`, which a gate asks where they are stated; `kind_limits`, by kind, those of
    draws of other kinds on which rounding shows more than on plain ones.
    """

    name: str
    digest: str
    family: str
    dtype: str
    shape: dict[str, int]
    flops: int
    min_bytes: int
    weight: float
    limits: dict[str, Limits]
    prescriptions: tuple[str, ...]
    files: dict[str, str] | UnsetType = UNSET
    mixed_limits: dict[str, Limits] | UnsetType = UNSET
    kind_limits: dict[str, dict[str, Limits]] | UnsetType = UNSET


class Cell(Value, frozen=True):
    """One independent experiment: it folds its own stream over the registered rule table."""

    problem: str
    contract: str
    pool: str
    arm: str
    repetition: int


class Experience(Value, frozen=True):
    """The ledger that a run's table and evidence were learnt from: its first `events` events, ending with `head`."""

    head: str
    events: int
    proposing: Proposing | None


class ClaimRegistered(Value, frozen=True):
    """A claim on the median ratio of `comparison`, rounded half up to `decimals`, in every repetition."""

    claim: str
    text: str
    problem: str
    contract: str
    pool: str
    comparison: str
    at_least: float
    decimals: int


class Origin(Value, frozen=True):
    """The ledger that a recorded run answers from."""

    head: str
    events: int


class RunRegistered(Event, frozen=True, tag=True):
    """Everything that is decided before measuring. `generators` is the chain in the order of asking; UNSET: the catalogue alone.

    With `shares`, an arm may take what another arm of its group measured. `comparisons` are those that are made after the rounds where
    they are due; UNSET: all that are due.
    """

    run: str
    seed: int
    executor: str
    origin: Origin | None
    max_rounds: int
    plan: tuple[Cell, ...]
    problems: tuple[ProblemDeclared, ...]
    policy: Policy
    statistics: Statistics
    claims: tuple[ClaimRegistered, ...]
    code: dict[str, str]
    environment: dict[str, str]
    generators: tuple[str, ...] | UnsetType = UNSET
    experience: Experience | UnsetType = UNSET
    shares: bool | UnsetType = UNSET
    comparisons: tuple[str, ...] | UnsetType = UNSET


class RuleSeeded(Event, frozen=True, tag=True):
    """One row of the registered rule table."""

    run: str
    rule: Rule


def cell_stream(run: str, cell: Cell) -> str:
    """The stream of a cell, and the prefix of its firing ids."""
    return f"{run}/{cell.problem}/{cell.contract}/{cell.pool}/{cell.arm}/{cell.repetition}"


def firing_id(run: str, cell: Cell, round_: int, attempt: int) -> str:
    """Deterministic id of a firing: the cell's stream, the round and the attempt."""
    return f"{cell_stream(run, cell)}/{round_}.{attempt}"
