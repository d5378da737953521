"""What a generator is asked and what it gives back. Never measures, judges, or writes an event."""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

import msgspec

from ...events.model import Exchange
from ...problems.contract import Problem

Outcome = Literal["made", "declined", "no_answer", "unavailable"]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule's prescription is to be applied to.

    `source` is the incumbent's whole text; `signals` are its latest; `failure` is why the last candidate for this incumbent
    was not kept, in words; `chip` is the calibrated chip's name.
    """

    problem: Problem
    contract: str
    prescription: str
    rule: str
    source: str
    signals: dict[str, float]
    failure: str = ""
    chip: str = ""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One or several whole source files to try as one round (several: a sweep, cheapest first), with artifacts (media type, bytes) to keep."""

    sources: tuple[str, ...]
    note: str = ""
    artifacts: tuple[tuple[str, bytes], ...] = ()


class Generator(Protocol):
    """Rewrites a kernel."""

    name: str

    def serves(self, asked: Asked) -> bool:
        """Whether it may have an answer. It is asked of the starting kernel when a run is registered, so it goes by the prescription,
        the contract and the problem; what a later source lacks is for `propose` to say.
        """
        ...

    def propose(self, asked: Asked) -> Candidate | None:
        """A candidate; None falls through to the next generator."""
        ...


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal beside what it cost. `artifacts` holds everything that exchanges name, by their digests."""

    candidate: Candidate | None
    outcome: Outcome
    note: str = ""
    model: str | None = None
    exchanges: tuple[Exchange, ...] = ()
    artifacts: tuple[tuple[str, bytes], ...] = ()


@runtime_checkable
class Spending(Protocol):
    """A generator that pays for its answers: `ask` says what a proposal cost, `facts` what is registered of it."""

    def ask(self, asked: Asked) -> Answer:
        """The proposal of `propose`, and what it cost."""
        ...

    def facts(self) -> dict[str, str]:
        """Words for `RunRegistered.environment`; no secret."""
        ...


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A whole candidate source, and which variant of which generator it is."""

    generator: str
    variant: str
    source: str


def answered(generator: Generator, asked: Asked) -> Answer:
    """What a generator makes of a question, whether it pays or not."""
    if isinstance(generator, Spending):
        return generator.ask(asked)
    found = generator.propose(asked)
    if found is None or not found.sources:
        return Answer(candidate=None, outcome="declined", note="" if found is None else found.note)
    return Answer(candidate=found, outcome="made", note=found.note)
