"""How a firing becomes a source that passed the gate: generators, sweeps, kernels. Never runs one."""

from __future__ import annotations

from typing import Literal

from .base import Event, Value
from .registration import Cell


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
