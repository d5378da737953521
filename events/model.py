"""The vocabulary of the ledger: every event and the values inside it. Never reads a file, a clock or a database.

An event's tag (`type`) is written into the payload and is the row's `type` column. Absent and zero are different things:
a signal that could not be measured is absent from its mapping. All numbers are finite. Units stand in the names.
A field that came later is UNSET by default and then left out of the bytes, so that older payloads still re-encode as they are.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

Verdict = Literal["FASTER", "SLOWER", "SAME", "AMBIGUOUS"]
Credit = Literal["success", "failure", "neutral"]
Tier = Literal["full", "compiled", "timing"]
Operator = Literal["<", "<=", ">", ">=", "=="]


class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Base of everything nested in an event: immutable, keyword-only, closed against unknown fields."""


# --- rules ------------------------------------------------------------------------------------------------------------


class Clause(Value, frozen=True):
    """One comparison of a rule: `signal op threshold`; abstains where the signal is missing."""

    signal: str
    op: Operator
    threshold: float


class Guard(Value, frozen=True):
    """A demand on the chip: peak(`over`) / peak(`under`) must reach `at_least`; a path that the chip lacks fails it."""

    over: str
    under: str
    at_least: float


class Gain(Value, frozen=True):
    """Predicted speed-up: min(cap, form), form one of: constant = cap; signal; inverse_signal = 1 / signal; peak_ratio;
    amdahl = 1 / ((1 - s) + s / h), h = `signal` (at least 1), s = the signal `share` (1 where that is absent or not named).
    """

    form: Literal["constant", "signal", "inverse_signal", "peak_ratio", "amdahl"]
    cap: float
    signal: str | None = None
    over: str | None = None
    under: str | None = None
    share: str | UnsetType = UNSET


class Rule(Value, frozen=True):
    """A row of the rule table. Lower tiers are asked first; a rule with `stop` ends the cell instead of prescribing."""

    name: str
    version: int
    tier: int
    position: int
    stop: bool
    prescription: str | None
    clauses: tuple[Clause, ...]
    guards: tuple[Guard, ...]
    contracts: tuple[str, ...]
    gain: Gain
    metrics: tuple[str, ...]
    origin: str
    rationale: str


class Context(Value, frozen=True):
    """Where evidence counts: a retirement in one context says nothing about another."""

    chip: str
    contract: str
    language: str
    family: str
    structure: str


class ClauseSeen(Value, frozen=True):
    """A clause and the value that it saw; satisfied by it, but in the arm `random`."""

    signal: str
    op: Operator
    threshold: float
    value: float


class Abstained(Value, frozen=True):
    """A rule that could not be decided, and the signals it missed."""

    rule: str
    missing: tuple[str, ...]


class Blocked(Value, frozen=True):
    """A rule whose clauses may hold but which may not fire: guard, contract, no_variant, retired, spent or tabu."""

    rule: str
    reason: Literal["guard", "contract", "no_variant", "retired", "spent", "tabu"]


# --- what is registered before the first measurement ------------------------------------------------------------------


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


class Policy(Value, frozen=True):
    """Evolution policy: retire (promote) when the one-sided credible bound at credible_num/credible_den passes 1/2.

    `patience`: after so many rounds on one incumbent without a FASTER a rule is passed over there (UNSET: never). `order` "value":
    within a tier by expected log-gain per GPU second, so that neither a position in a file nor a promotion decides (UNSET: they do).
    `offers` "once": no generator but the catalogue offers again what was tried on the incumbent (UNSET: but for what a gate refused).
    """

    credible_num: int
    credible_den: int
    patience: int | UnsetType = UNSET
    order: Literal["value"] | UnsetType = UNSET
    offers: Literal["once"] | UnsetType = UNSET


class Bounds(Value, frozen=True):
    """What must bear out a FASTER: how much slower than alone an incumbent may be beside its candidate (fraction); how many ns a call
    the candidate's wall clock may show beyond its GPU time and the incumbent's own excess; the least share of the SMs' active time
    that its GPU time must cover.
    """

    alone: float
    wall_slack_ns: int
    busy: float


class Stage(Value, frozen=True):
    """One stage of a Foster network: a resistance (kelvin per watt) beside a capacity, which together have a time constant."""

    k_per_w: float
    tau_s: float


class Heat(Value, frozen=True):
    """How a kernel heats a device: called `calls_per_s` times a second, which draws `idle_w` between calls, through `stages` in series."""

    calls_per_s: float
    idle_w: float
    stages: tuple[Stage, ...]


class Objective(Value, frozen=True):
    """What verdicts are by where it is not time: energy a call, or the peak rise of `heat` (thermal, and only there), both of warm calls.

    A candidate may take at most `bound` times as long as the fastest incumbent of its cell.
    """

    by: Literal["energy", "thermal"]
    bound: float
    heat: Heat | UnsetType = UNSET


class Statistics(Value, frozen=True):
    """Verdict parameters, fixed beforehand: ABBA blocks, two-sided tail of the interval, margin, multiple of the floor.

    `looks` are the numbers of blocks, ascending and ending with `blocks`, after which a round's verdict is asked for, each at its
    share of the tail; a round ends at the first look that is not ambiguous. UNSET: one look, after `blocks`. `bounds` UNSET: a
    FASTER stands by its interval alone. `objective` UNSET: verdicts are by latency.
    """

    blocks: int
    tail_num: int
    tail_den: int
    margin: float
    floor_multiple: float
    looks: tuple[int, ...] | UnsetType = UNSET
    bounds: Bounds | UnsetType = UNSET
    objective: Objective | UnsetType = UNSET


class Proposing(Value, frozen=True):
    """Bounds of a proposed rule, fixed beforehand: problems that must speak for its clause, and the least share of successes it keeps."""

    support: int
    purity_num: int
    purity_den: int


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


class Chip(Value, frozen=True):
    """A chip: data-sheet dense peaks in TFLOP/s by path (absent path = the chip has none) and DRAM peak in GB/s."""

    name: str
    compute_capability: str
    peaks_tflops: dict[str, float]
    dram_gbps: float


class Separation(Value, frozen=True):
    """Successes and failures at which a rule's clauses hold (kept), and at which they do not (lost, avoided)."""

    kept_successes: int
    kept_failures: int
    lost_successes: int
    avoided_failures: int


class Interval(Value, frozen=True):
    """Order-statistic interval of the median of the paired ratios left/right; ratios above 1 say that right is faster (or, with an
    objective, that it draws or heats less).
    """

    lower: float
    median: float
    upper: float
    blocks: int
    rank: int


# --- examinations: kernels measured outside of any loop -----------------------------------------------------------------


class SubjectDeclared(Value, frozen=True):
    """A kernel to examine: its problem, contract and source digest, and the rules that must fire on it or stay silent.

    `half` is `calibration` where its signals may have set a threshold, `held-out` where they may not, else empty.
    """

    name: str
    problem: ProblemDeclared
    contract: str
    source: str
    half: str
    fires: tuple[str, ...]
    silent: tuple[str, ...]


class PairDeclared(Value, frozen=True):
    """Two sources to compare `times` times on a subject's inputs, and the verdict that is true of them."""

    name: str
    subject: str
    left: str
    right: str
    times: int
    truth: Verdict


class StatementDeclared(Value, frozen=True):
    """What event `seq` of the origin states, to be reproduced by comparing `pairs` again.

    `stands` is a claim's answer, or the verdict of a comparison or round; `medians` are those stated; `chip` the one it was measured
    on. Of a claim, `identical` repetitions had equal sources (their median is 1.0); other kinds have no bound and no decimals.
    """

    seq: int
    kind: Literal["claim", "comparison", "round"]
    text: str
    pairs: tuple[str, ...]
    medians: tuple[float, ...]
    stands: str
    chip: str
    identical: int
    at_least: float | None
    decimals: int | None


class RuleAnswer(Value, frozen=True):
    """What one rule says of a kernel, whatever the others say; `clauses` are those whose signals are present.

    `reason` is why it is blocked; `predicted_gain` is there where all clauses hold.
    """

    rule: str
    version: int
    answer: Literal["fires", "abstains", "blocked", "silent"]
    clauses: tuple[ClauseSeen, ...]
    missing: tuple[str, ...]
    reason: Literal["guard", "contract", "no_variant"] | None
    predicted_gain: float | None


class CounterRow(Value, frozen=True):
    """One metric as two collectors read it; `bound` is the larger of the relative and the absolute difference allowed."""

    metric: str
    ours: float | None
    theirs: float | None
    bound: float
    within: bool


# --- generators -------------------------------------------------------------------------------------------------------


class Exchange(Value, frozen=True):
    """One request to a language model and what came of it; `prompt` and `answer` are artifacts.

    `status` and `finish`: replay/FORMAT.md section 5. `waited_s` is the time before the request (as the endpoint demanded),
    `took_s` that until its end. Tokens and cost are None where the endpoint does not tell them and no price was given.
    """

    status: str
    prompt: str
    answer: str | None
    finish: str | None
    waited_s: float
    took_s: float
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None


# --- events -----------------------------------------------------------------------------------------------------------


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", gc=False):
    """Base of all events; `rev` is the revision of the event's own shape (see upcast.py)."""

    rev: int = 1


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


class DeviceCalibrated(Event, frozen=True, tag=True):
    """The device's measured ceilings, from the artifact `calibration`; `chip` holds the data-sheet peaks beside them."""

    run: str
    device: str
    chip: Chip
    copy_gbps: float
    calibration: str
    origin_seq: int | None = None


class RoundAttempted(Event, frozen=True, tag=True):
    """Committed before the first sample of a round, so that no round can be dropped unseen. Round 0 profiles the start."""

    cell: Cell
    round: int
    attempt: int
    incumbent: str


class RoundInterrupted(Event, frozen=True, tag=True):
    """A neutral end without a verdict: the attempt was cut off (kill, lost worker) and moves no confidence."""

    cell: Cell
    round: int
    attempt: int
    reason: str


class RuleFired(Event, frozen=True, tag=True):
    """The rule that fires on the incumbent's signals, with its evidence; `firing` is the id that credit goes to."""

    cell: Cell
    round: int
    firing: str
    rule: str
    rule_version: int
    prescription: str | None
    incumbent: str
    context: Context
    clauses: tuple[ClauseSeen, ...]
    abstained: tuple[Abstained, ...]
    blocked: tuple[Blocked, ...]
    predicted_gain: float


class GeneratorAsked(Event, frozen=True, tag=True):
    """What one generator of the chain, other than the catalogue, made of a firing: so many `sources` to try, 0 but where it is `made`.
    `artifacts` are what it leaves to read.

    An attempt that is cut off keeps these events, so that nothing spent is lost.
    """

    cell: Cell
    round: int
    attempt: int
    firing: str
    generator: str
    outcome: Literal["made", "declined", "repeated", "no_answer", "unavailable"]
    sources: int
    note: str
    model: str | None
    exchanges: tuple[Exchange, ...]
    artifacts: tuple[str, ...]


class PrescriptionUnserved(Event, frozen=True, tag=True):
    """The end of a round in which no generator had a candidate: nobody is credited, and this incumbent is not prescribed it again."""

    cell: Cell
    round: int
    attempt: int
    firing: str
    rule: str
    rule_version: int
    prescription: str
    incumbent: str
    reason: str


class SourcesSwept(Event, frozen=True, tag=True):
    """A sweep over whole sources that one generator made for a firing; `chosen` is None where none of them runs."""

    cell: Cell
    round: int
    firing: str
    generator: str
    sources: tuple[str, ...]
    samples: str
    chosen: int | None
    origin_seq: int | None = None


class TilesSwept(Event, frozen=True, tag=True):
    """A registered sweep over a template's configurations; the chosen one has the smallest median, first wins ties."""

    cell: Cell
    round: int
    firing: str
    template: str
    samples: str
    configs: tuple[dict[str, int], ...]
    chosen: int
    origin_seq: int | None = None


class KernelGenerated(Event, frozen=True, tag=True):
    """A whole candidate source; the starting kernel of a cell has no firing."""

    cell: Cell
    round: int
    firing: str | None
    generator: str
    variant: str
    source: str
    parent: str | None


class KernelGated(Event, frozen=True, tag=True):
    """The gate's outcome on a source, judged from the artifact `report`; `launches` is the ordered list of kernels."""

    cell: Cell
    round: int
    attempt: int
    source: str
    outcome: str
    reason: str
    report: str
    launches: str | None
    origin_seq: int | None = None


class Profiled(Event, frozen=True, tag=True):
    """Samples of `source` interleaved with `against` (A = against, B = source), counters, and the signals they give.

    `extras` are artifacts by role (timeline, warm, compiled, energy) that live rules asked for.
    """

    cell: Cell
    round: int
    source: str
    against: str
    tier: Tier
    samples: str
    counters: str | None
    launches: str
    signals: dict[str, float]
    cache: str
    origin_seq: int | None = None
    extras: dict[str, str] | UnsetType = UNSET


class NoiseFloorMeasured(Event, frozen=True, tag=True):
    """A/A interval of one kernel against itself; `floor` = max(upper - 1, 1 / lower - 1)."""

    cell: Cell
    round: int
    source: str
    samples: str
    interval: Interval
    floor: float
    origin_seq: int | None = None


class RoundJudged(Event, frozen=True, tag=True):
    """The verdict of a round and whom it credits."""

    cell: Cell
    round: int
    attempt: int
    firing: str
    rule: str
    rule_version: int
    candidate: str
    incumbent: str
    verdict: Verdict
    reason: str
    inert: bool
    interval: Interval | None
    margin: float | None
    credit: Credit
    next_incumbent: str


class RuleRetired(Event, frozen=True, tag=True):
    """A rule silenced in one context by its recorded failures."""

    cell: Cell
    rule: str
    rule_version: int
    context: Context
    successes: int
    failures: int
    confidence: float
    firings: tuple[str, ...]


class RulePromoted(Event, frozen=True, tag=True):
    """A rule that is asked before the unpromoted ones of its tier, by evidence pooled over contexts."""

    cell: Cell
    rule: str
    rule_version: int
    successes: int
    failures: int
    confidence: float
    firings: tuple[str, ...]


class RuleProposed(Event, frozen=True, tag=True):
    """A rule suggested by another ledger's outcomes; may not fire until admitted. `parent` names the rule that it narrows.

    `learnt` counts (problem, incumbent) of the half that it was learnt from, `shadow` rounds of the half that it was not.
    """

    run: str
    rule: Rule
    parent: str | None
    learnt: Separation
    shadow: Separation


class RuleAdmitted(Event, frozen=True, tag=True):
    """A proposed rule that passed its shadow test: from here on a row of the run's table."""

    run: str
    rule: str
    rule_version: int


class EvidenceCarried(Event, frozen=True, tag=True):
    """What another ledger says of a rule in one context: the problems that it helped at least once, and those that it never did."""

    run: str
    rule: str
    rule_version: int
    context: Context
    helped: tuple[str, ...]
    failed: tuple[str, ...]


class RunStopped(Event, frozen=True, tag=True):
    """The end of a cell (or, with no cell, of the run), and why."""

    run: str
    cell: Cell | None
    reason: str
    rule: str | None


class HeadToHead(Event, frozen=True, tag=True):
    """Two kernels against each other after the rounds (A = left, B = right); equal sources need no samples."""

    run: str
    problem: str
    contract: str
    pool: str
    repetition: int
    comparison: str
    left: str
    right: str
    samples: str | None
    interval: Interval | None
    outcome: str
    origin_seq: int | None = None


class ClaimStated(Event, frozen=True, tag=True):
    """The answer to a registered claim: the median ratio of each repetition and whether all reach the bound."""

    run: str
    claim: str
    medians: tuple[float, ...]
    lowers: tuple[float, ...]
    answer: Literal["upheld", "not upheld", "unanswerable"]


class LedgerSealed(Event, frozen=True, tag=True):
    """A checkpoint over the first `size` events: RFC 6962 root and signed note."""

    size: int
    root: str
    note: str


class ExaminationRegistered(Event, frozen=True, tag=True):
    """Everything that is decided before an examination: subjects, pairs, statistics, code and environment.

    A reproduction also names the ledger that it takes its kernels from (`origin`), and which of its statements are asked again.
    """

    run: str
    seed: int
    purpose: str
    subjects: tuple[SubjectDeclared, ...]
    pairs: tuple[PairDeclared, ...]
    statistics: Statistics
    code: dict[str, str]
    environment: dict[str, str]
    origin: Origin | UnsetType = UNSET
    statements: tuple[StatementDeclared, ...] | UnsetType = UNSET


class KernelExamined(Event, frozen=True, tag=True):
    """One kernel gated, timed against itself and profiled at every tier at hand; without samples its gate did not pass."""

    run: str
    subject: str
    outcome: str
    reason: str
    report: str
    launches: str | None
    samples: str | None
    counters: str | None
    extras: dict[str, str]
    tier: Tier | None
    floor: float | None
    signals: dict[str, float]


class RulesAnswered(Event, frozen=True, tag=True):
    """Every rule of the table on the signals of a subject, in the order of asking."""

    run: str
    subject: str
    answers: tuple[RuleAnswer, ...]


class PairCompared(Event, frozen=True, tag=True):
    """Comparison number `number` (from 1) of a pair, judged like a round: left is the incumbent, right the candidate."""

    run: str
    pair: str
    number: int
    samples: str
    interval: Interval | None
    margin: float
    verdict: Verdict
    reason: str


class CountersCompared(Event, frozen=True, tag=True):
    """A subject's counters as two collectors read them: `ours` in process, `theirs` by Nsight Compute."""

    run: str
    subject: str
    ours: str
    theirs: str
    rows: tuple[CounterRow, ...]


class StaticRulesSeen(Event, frozen=True, tag=True):
    """What Nsight Compute's own rules say of a subject (artifact `ncu_rules`): a static table beside ours, logged, not used."""

    run: str
    subject: str
    answers: str


class StatementReproduced(Event, frozen=True, tag=True):
    """What became of the origin's event `statement`: the medians measured now, and the pairs that could not be measured."""

    run: str
    statement: int
    answer: Literal["confirmed", "not confirmed", "other chip"]
    medians: tuple[float, ...]
    unmeasured: tuple[str, ...]


class ExaminationStated(Event, frozen=True, tag=True):
    """The figures of an examination, each derived from its events."""

    run: str
    figures: dict[str, float]


AnyEvent = (
    RunRegistered
    | RuleSeeded
    | DeviceCalibrated
    | RoundAttempted
    | RoundInterrupted
    | RuleFired
    | GeneratorAsked
    | PrescriptionUnserved
    | TilesSwept
    | SourcesSwept
    | KernelGenerated
    | KernelGated
    | Profiled
    | NoiseFloorMeasured
    | RoundJudged
    | RuleRetired
    | RulePromoted
    | RuleProposed
    | RuleAdmitted
    | EvidenceCarried
    | RunStopped
    | HeadToHead
    | ClaimStated
    | LedgerSealed
    | ExaminationRegistered
    | KernelExamined
    | RulesAnswered
    | PairCompared
    | CountersCompared
    | StaticRulesSeen
    | StatementReproduced
    | ExaminationStated
)
EVENT_TYPES: dict[str, type[Event]] = {kind.__name__: kind for kind in AnyEvent.__args__}


def cell_stream(run: str, cell: Cell) -> str:
    """The stream of a cell, and the prefix of its firing ids."""
    return f"{run}/{cell.problem}/{cell.contract}/{cell.pool}/{cell.arm}/{cell.repetition}"


def firing_id(run: str, cell: Cell, round_: int, attempt: int) -> str:
    """Deterministic id of a firing: the cell's stream, the round and the attempt."""
    return f"{cell_stream(run, cell)}/{round_}.{attempt}"
