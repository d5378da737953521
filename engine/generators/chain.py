"""The chain of generators: the first that has a candidate for a firing makes it. Measures sweeps through the executor, judges nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...events.artifacts import digest
from ...events.errors import BadInput
from ...events.model import Cell, GeneratorAsked, RuleFired, SourcesSwept
from ...problems.contract import CONTRACTS, Problem
from ...problems.sources import with_precision
from ...profilers import artifacts as shapes
from ...profilers.sweeps import choose
from ..catalogue import candidate_for, text_of
from ..executor import Executor, Question
from ..measuring import Interrupted, Unavailable
from ..records import Draft
from .base import Answer, Asked, Generator, Made, Spending, answered
from .registry import CATALOGUE, opened

_LONGEST_NOTE = 2000
_NOT_SERVED = Answer(candidate=None, outcome="declined", note="serves no such prescription here")
_INCUMBENT = "the incumbent"


class Try:
    """One firing on its way through the chain: the draft it is recorded in, who measures, and what the cell knows of sources.

    `known` is by source digest why one is not tried again: for the catalogue what a gate refused, for the others what was tried.
    """

    def __init__(
        self, draft: Draft, executor: Executor, question: Question, fired: RuleFired, attempt: int,
        asked: Asked, known: tuple[Mapping[str, str], Mapping[str, str]], margin: float,
    ) -> None:  # fmt: skip
        self.draft, self.executor, self.question, self.fired = draft, executor, question, fired
        self.attempt, self.asked, self.margin = attempt, asked, margin
        self._refused, self._tried = known

    def applies(self, source: str) -> bool:
        """Whether the catalogue's source is neither the incumbent nor refused by a gate of this cell; it may have been tried before."""
        return source != self.asked.source and digest(source.encode()) not in self._refused

    def sorted_out(self, sources: Sequence[str]) -> dict[str, str | None]:
        """Each source once, in order, with the reason why it is not tried again, or None where it is to be tried."""
        tried = {source: self._tried.get(digest(source.encode())) for source in sources}
        return tried | ({self.asked.source: _INCUMBENT} if self.asked.source in tried else {})


class Chain:
    """The generators of a run in the order of asking."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._generators = opened(names)

    def facts(self) -> dict[str, str]:
        """What is registered of generators that pay for their answers."""
        paying = (g for g in self._generators.values() if isinstance(g, Spending))
        return {key: value for generator in paying for key, value in generator.facts().items()}

    def serves(self, problem: Problem, pool: str, contracts: Sequence[str], prescription: str) -> bool:
        """Whether some generator may serve a prescription on a problem, under one of the contracts."""
        if CATALOGUE in self.names and problem.variant(prescription, pool) is not None:
            return True
        asked = (_of_start(problem, contract, prescription) for contract in contracts if contract in CONTRACTS)
        return any(generator.serves(each) for each in asked for generator in self._generators.values())

    def make(self, now: Try) -> Made | None:
        """The candidate of a firing; None where no generator has one. Everything asked and spent is in the draft.

        Raises Interrupted where a sweep could not be measured, Unavailable where a generator's endpoint does not answer.
        """
        for name in self.names:
            made = _by_catalogue(now) if name == CATALOGUE else _by(self._generators[name], now)
            if made is not None:
                return made
        return None


def _of_start(problem: Problem, contract: str, prescription: str) -> Asked:
    return Asked(
        problem=problem, contract=contract, prescription=prescription, rule="", source=problem.start, signals={}
    )


def _by_catalogue(now: Try) -> Made | None:
    """The problem's own variant, unless there is none, it does not apply to this source, or a gate has refused it."""
    prescription = now.asked.prescription
    variant = now.question.problem.variant(prescription, now.fired.cell.pool)
    if variant is None:
        return None
    if variant.kind == "flag":
        try:
            if not now.applies(with_precision(now.asked.source, "tf32")):
                return None
        except BadInput:
            return None  # a source of another generator, without the line that a flag sets
    whole = variant.source if variant.kind == "file" else None
    if whole is not None and not now.applies(text_of(variant, whole, now.asked.source)):
        return None
    return candidate_for(now.draft, now.executor, now.question, now.fired, now.asked.source, now.margin)


def _by(generator: Generator, now: Try) -> Made | None:
    # One that serves no such prescription is on the record too: nobody of the chain may have been left out unseen.
    answer = answered(generator, now.asked) if generator.serves(now.asked) else _NOT_SERVED
    offered = {} if answer.candidate is None else now.sorted_out(answer.candidate.sources)
    sources = tuple(source for source, why in offered.items() if why is None)
    repeated = answer.candidate is not None and not sources
    note = "; ".join(filter(None, (answer.note, _left_out(offered))))
    now.draft.add(_event(generator.name, now, answer, note, repeated, len(sources)))
    if answer.outcome == "unavailable":
        raise Unavailable(f"{generator.name}: {answer.note}")
    if not sources:
        return None
    source = sources[0] if len(sources) == 1 else _swept(generator.name, now, sources)
    if source is None:
        return None
    return Made(generator=generator.name, variant=f"{now.asked.prescription}:{generator.name}", source=source)


def _left_out(offered: Mapping[str, str | None]) -> str:
    """What of an offer is not tried and why, each by its place in the offer, the first being 1; "" where all of it is."""
    words = [f"{place} ({why})" for place, why in enumerate(offered.values(), start=1) if why is not None]
    return f"left out: {', '.join(words)}" if words else ""


def _event(name: str, now: Try, answer: Answer, note: str, repeated: bool, sources: int) -> GeneratorAsked:
    for media_type, content in answer.artifacts:
        now.draft.keep(content, media_type)
    kept = () if answer.candidate is None else answer.candidate.artifacts
    cell: Cell = now.fired.cell
    return GeneratorAsked(
        cell=cell,
        round=now.fired.round,
        attempt=now.attempt,
        firing=now.fired.firing,
        generator=name,
        outcome="repeated" if repeated else answer.outcome,
        sources=sources,
        note=note[:_LONGEST_NOTE],
        model=answer.model,
        exchanges=answer.exchanges,
        artifacts=tuple(now.draft.keep(content, media_type) for media_type, content in kept),
    )


def _swept(name: str, now: Try, sources: tuple[str, ...]) -> str | None:
    """The first of those within the margin of the fastest; None where none of them runs."""
    seen = now.executor.sweep(now.question, "", sources)
    kept = now.draft.keep_role(seen, "sweep")
    if seen.status != "ok" or kept is None:
        raise Interrupted(f"sweep of {len(sources)} sources by {name}: {seen.status}: {seen.text[:500]}")
    chosen = choose(shapes.decode(shapes.Sweep, now.draft.artifacts[kept][0]), now.margin)
    event = SourcesSwept(
        cell=now.fired.cell,
        round=now.fired.round,
        firing=now.fired.firing,
        generator=name,
        sources=tuple(now.draft.keep_source(source) for source in sources),
        samples=kept,
        chosen=chosen,
        origin_seq=seen.origin_seq,
    )
    now.draft.add(event)
    return None if chosen is None else sources[chosen]
