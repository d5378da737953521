"""Measurements that another arm has paid for (`--share-measurements`): same problem, kernels and occurrence, one run. Measures nothing itself."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from ..events.artifacts import digest
from ..events.model import (
    Event,
    KernelGated,
    NoiseFloorMeasured,
    Policy,
    Profiled,
    RunRegistered,
    SourcesSwept,
    Statistics,
    TilesSwept,
    cell_stream,
)
from ..events.writer import LedgerWriter
from ..problems.sources import config_of
from ..profilers import artifacts as shapes
from ..profilers.metrics import for_chip
from ..profilers.verdicts import Judgement, is_final
from ..projections.cell_plan import CellPlan
from .executor import Executor, Observation, Question
from .recording import Key, compare_key, keys_of, sources_key, sweep_key

_BLOBS = (("application/x-cubin", "code"), ("text/x-ttir", "ttir"))
Judge = Callable[[shapes.Samples], Judgement]


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """The artifacts that a profile has besides samples: counters, and extras by role."""

    counters: bytes | None
    extras: dict[str, bytes]

    def answers(self, metrics: Sequence[str]) -> bool:
        """Whether the counters hold all of these that the chip has, or say why there can be none."""
        if self.counters is None:
            return False
        seen = shapes.decode(shapes.Counters, self.counters)
        return seen.collector == "none" or set(for_chip(seen.chip, metrics)) <= set(seen.metrics)

    def instead(self, own: bytes) -> bytes:
        """Own counters, where they hold a metric that these do not; else these: what was read once is not read for a better figure."""
        if self.counters is None:
            return own
        mine, theirs = (shapes.decode(shapes.Counters, each).metrics for each in (own, self.counters))
        return own if mine.keys() - theirs.keys() else self.counters


class Sharing:
    """An executor for one cell that answers from the other arms of its group first; the n-th time a cell asks for something it gets
    the n-th that any arm measured of it. What is asked of counters and extras differs from arm to arm: `read` has those that
    came with the samples, and `count` and `extra` measure what these lack.
    """

    def __init__(self, executor: Executor, ledger: LedgerWriter, plan: CellPlan, planned: RunRegistered) -> None:
        self._executor, self._ledger = executor, ledger
        self.name, self.origin = executor.name, executor.origin
        self._paid: dict[Key, list[tuple[int, Event, dict[str, str]]]] = defaultdict(list)
        self._own = cell_stream(plan.run, plan.cell)
        for cell in planned.plan:
            if cell != plan.cell and msgspec.structs.replace(cell, arm=plan.cell.arm) == plan.cell:
                self._take(cell_stream(plan.run, cell))
        for found in self._paid.values():
            found.sort(key=lambda entry: entry[0])

    def _take(self, stream: str) -> None:
        for stored in self._ledger.events(stream):
            if getattr(stored.event, "origin_seq", 0) is None:
                for key, names in _keys(stored.event).items():
                    self._paid[key].append((stored.seq, stored.event, names))

    def gate(self, question: Question, source: str) -> Observation:
        """The report of another arm on this source with the same seed, else one of its own."""
        key = ("gate", digest(source.encode()))
        return self._paid_for(key, question) or self._executor.gate(question, source)

    def sweep(self, question: Question, template: str, sources: tuple[str, ...]) -> Observation:
        """Another arm's times of the same configurations, or of the same sources where there is no template; else its own."""
        named = tuple(digest(source.encode()) for source in sources)
        key = (
            sweep_key(digest(template.encode()), tuple(config_of(source) for source in sources))
            if template
            else sources_key(named)
        )
        return self._paid_for(key, question) or self._executor.sweep(question, template, sources)

    def paid(
        self, question: Question, left: str, right: str, statistics: Statistics, judge: Judge | None
    ) -> Observation | None:
        """Another arm's samples of this ordered pair, where they end at the very look at which this cell's verdict ends."""
        key = compare_key(question.purpose, digest(left.encode()), digest(right.encode()))

        def fits(artifacts: dict[str, bytes]) -> bool:
            return ends_there(shapes.decode(shapes.Samples, artifacts["samples"]), statistics, judge)

        return self._paid_for(key, question, fits)

    def read(self, seq: int) -> Read:
        """Counters and extras of another arm's profile, whose samples were taken."""
        profile = next(event for at, event, _ in itertools.chain(*self._paid.values()) if at == seq)
        assert isinstance(profile, Profiled)
        extras = {} if isinstance(profile.extras, UnsetType) else profile.extras
        return Read(
            counters=None if profile.counters is None else self._ledger.artifact(profile.counters),
            extras={role: self._ledger.artifact(name) for role, name in extras.items()},
        )

    def _paid_for(
        self, key: Key, question: Question, fits: Callable[[dict[str, bytes]], bool] = lambda artifacts: True
    ) -> Observation | None:
        # Counted from what landed, so that an attempt that was cut off takes no turn; a round asks for nothing twice.
        turn = sum(key in _keys(stored.event) for stored in self._ledger.events(self._own))
        if turn >= len(self._paid[key]):
            return None
        seq, event, names = self._paid[key][turn]
        artifacts = {role: self._ledger.artifact(name) for role, name in names.items()}
        same_seed = (
            not isinstance(event, KernelGated)
            or shapes.decode(shapes.Report, artifacts["report"]).seed == question.seed
        )
        if not same_seed or not fits(artifacts):
            return None
        return Observation(status="ok", artifacts=artifacts, blobs=self._blobs(artifacts), origin_seq=seq)

    def _blobs(self, artifacts: dict[str, bytes]) -> tuple[tuple[str, bytes], ...]:
        if "launches" not in artifacts:
            return ()
        kernels = msgspec.json.decode(artifacts["launches"])["kernels"]
        named = [(media, k[field]) for k in kernels for media, field in _BLOBS if k.get(field)]
        return tuple((media, self._ledger.artifact(value)) for media, value in dict.fromkeys(named))

    def compare(self, question: Question, left: str, right: str, blocks: int, first: int = 0) -> Observation:
        """Its own samples; `paid` has those of others."""
        return self._executor.compare(question, left, right, blocks, first)

    def facts(self) -> dict[str, str]:
        """The executor's."""
        return self._executor.facts()

    def check(self, registration: RunRegistered) -> None:
        """The executor's."""
        self._executor.check(registration)

    def calibrate(self) -> Observation:
        """The executor's."""
        return self._executor.calibrate()

    def statistics(self) -> Statistics | None:
        """The executor's."""
        return self._executor.statistics()

    def policy(self) -> Policy | None:
        """The executor's."""
        return self._executor.policy()

    def count(self, question: Question, source: str, metrics: tuple[str, ...]) -> Observation:
        """Its own; `read` has those of others."""
        return self._executor.count(question, source, metrics)

    def extra(self, question: Question, source: str, role: str) -> Observation:
        """Its own; `read` has those of others."""
        return self._executor.extra(question, source, role)

    def ncu(self, asked: Sequence[tuple[Question, str]], metrics: tuple[str, ...]) -> list[Observation]:
        """The executor's."""
        return self._executor.ncu(asked, metrics)

    def resume(self, events: list[Event]) -> None:
        """The executor's."""
        self._executor.resume(events)

    def close(self) -> None:
        """The executor's."""
        self._executor.close()


def ends_there(samples: shapes.Samples, statistics: Statistics, judge: Judge | None) -> bool:
    """Whether these blocks are those that a cell with this judge would have taken: no look before them decides, and theirs does."""
    have = len(samples.blocks)
    if judge is None:
        return have == statistics.blocks
    looks = (statistics.blocks,) if statistics.looks is UNSET else statistics.looks
    earlier = (samples.until(look) for look in looks if look < have)
    if any(is_final(judge(part)) for part in earlier):
        return False
    return have in looks and (have == statistics.blocks or is_final(judge(samples)))


def _keys(event: Event) -> dict[Key, dict[str, str]]:
    """What can be shared of an event: reports, sweeps and samples."""
    if not isinstance(event, (KernelGated, TilesSwept, SourcesSwept, Profiled, NoiseFloorMeasured)):
        return {}
    return {key: names for key, names in keys_of(event) if key[0] in ("gate", "sweep", "compare")}
