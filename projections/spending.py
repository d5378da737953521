"""What generators were asked and what it cost, by generator, as rows for people. Never decides anything."""

from __future__ import annotations

import msgspec

from ..events.model import Exchange, GeneratorAsked
from .runs import RunView


class SpendingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One generator over a run: how often it was asked and made a candidate, and the requests to a model that this took.

    Tokens are sums over the requests that state them, `cost_usd` likewise; None where none does. `took_s` includes waiting.
    """

    generator: str
    asked: int
    made: int
    requests: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None
    took_s: float


def spending(view: RunView) -> tuple[SpendingRow, ...]:
    """A row for each generator that was asked, in the order in which they were first asked; none for a run of the catalogue alone."""
    asked = [event for state in view.cells.values() for event in state.asked]
    return tuple(
        _row(name, [e for e in asked if e.generator == name]) for name in dict.fromkeys(e.generator for e in asked)
    )


def _row(name: str, asked: list[GeneratorAsked]) -> SpendingRow:
    exchanges = [exchange for event in asked for exchange in event.exchanges]
    costs = [e.cost_usd for e in exchanges if e.cost_usd is not None]
    return SpendingRow(
        generator=name,
        asked=len(asked),
        made=sum(event.outcome == "made" for event in asked),
        requests=len(exchanges),
        prompt_tokens=_total([e.prompt_tokens for e in exchanges]),
        completion_tokens=_total([e.completion_tokens for e in exchanges]),
        cost_usd=sum(costs) if costs else None,
        took_s=sum(_seconds(e) for e in exchanges),
    )


def _total(counts: list[int | None]) -> int | None:
    stated = [count for count in counts if count is not None]
    return sum(stated) if stated else None


def _seconds(exchange: Exchange) -> float:
    return exchange.waited_s + exchange.took_s
