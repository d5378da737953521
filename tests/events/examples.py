"""Small events with known contents, a strategy for every event, and ledgers made of them."""

from __future__ import annotations

import types
import typing
from pathlib import Path
from typing import Any, Literal

import msgspec
from hypothesis import strategies as st

from gpusolver.events.model import EVENT_TYPES, Cell, Event, Interval, RoundAttempted, RoundJudged, Verdict, cell_stream
from gpusolver.events.writer import LedgerWriter

CELL = Cell(problem="matmul", contract="fp32-strict", pool="seed", arm="on", repetition=1)
STREAM = cell_stream("run1", CELL)


def attempt(round_: int, *, incumbent: str = "a" * 64) -> RoundAttempted:
    return RoundAttempted(cell=CELL, round=round_, attempt=1, incumbent=incumbent)


def attempts(count: int) -> list[RoundAttempted]:
    return [attempt(index) for index in range(count)]


def judged(round_: int, verdict: Verdict = "FASTER", *, ratio: float = 1.5) -> RoundJudged:
    return RoundJudged(
        cell=CELL,
        round=round_,
        attempt=1,
        firing=f"{STREAM}/{round_}.1",
        rule="uncoalesced",
        rule_version=1,
        candidate="b" * 64,
        incumbent="a" * 64,
        verdict=verdict,
        reason="interval beyond margin",
        inert=False,
        interval=Interval(lower=ratio - 0.25, median=ratio, upper=ratio + 0.25, blocks=20, rank=6),
        margin=0.01,
        credit="success" if verdict == "FASTER" else "failure",
        next_incumbent="b" * 64,
    )


def fill(path: Path, count: int = 3) -> Path:
    """A closed ledger with `count` events in one stream."""
    with LedgerWriter(path) as ledger:
        ledger.append(STREAM, 0, attempts(count), [(b"source text", "text/x-python")])
    return path


def events_of(kind: type[Event]) -> st.SearchStrategy[Any]:
    """Every value that a Struct's annotations allow; the revision stays as it is."""
    return _struct(kind)


def any_event() -> st.SearchStrategy[Any]:
    return st.one_of([events_of(kind) for kind in EVENT_TYPES.values()])


def _struct(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    hints = {name: hint for name, hint in typing.get_type_hints(kind).items() if name in kind.__struct_fields__}
    return st.builds(kind, **{name: _value(hint) for name, hint in hints.items() if name != "rev"})


def _value(hint: Any) -> st.SearchStrategy[Any]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _struct(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([_value(argument) for argument in arguments])
    if origin is tuple:
        return st.lists(_value(arguments[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(_value(arguments[0]), _value(arguments[1]), max_size=3)
    return _PLAIN[hint]


_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=20),
    int: st.integers(),
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    type(None): st.none(),
    msgspec.UnsetType: st.just(msgspec.UNSET),
}
