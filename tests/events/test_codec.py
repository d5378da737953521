"""Events to bytes and back: what is written can be read again unchanged, and what cannot is refused by field."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given

from gpusolver.events import BadInput, Event, UnreadableLedger, decode, encode
from gpusolver.events.model import ClaimStated, Interval, NoiseFloorMeasured, Profiled, RoundJudged, RunStopped

from .examples import CELL, any_event, attempt, judged


@given(any_event())
def test_every_event_comes_back_and_encodes_to_the_same_bytes(event: Event) -> None:
    payload = encode(event)
    read = decode(type(event).__name__, payload)
    assert read == event
    assert encode(read) == payload


@given(any_event())
def test_payloads_are_compact_strict_json_with_the_tag_first(event: Event) -> None:
    payload = encode(event)

    def no_constant(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    parsed = json.loads(payload, parse_constant=no_constant)
    assert next(iter(parsed)) == "type"
    assert parsed["type"] == type(event).__name__
    stated = [name for name in event.__struct_fields__ if getattr(event, name) is not msgspec.UNSET]
    assert list(parsed)[1:] == stated


def test_an_event_reads_as_written_by_hand() -> None:
    expected = b'{"type":"RunStopped","run":"run1","cell":null,"reason":"done","rule":null,"rev":1}'
    assert encode(RunStopped(run="run1", cell=None, reason="done", rule=None)) == expected


def test_mapping_keys_are_sorted_whatever_order_they_came_in() -> None:
    keys = ["time_us", "Z", "a", "é", "\U0001f600", "￿"]
    one, other = (encode(profiled(dict.fromkeys(order, 1.5))) for order in (keys, keys[::-1]))
    assert one == other
    assert list(json.loads(one)["signals"]) == sorted(keys, key=lambda key: key.encode())


def profiled(signals: dict[str, Any]) -> Profiled:
    return Profiled(
        cell=CELL,
        round=1,
        source="a" * 64,
        against="b" * 64,
        tier="timing",
        samples="c" * 64,
        counters=None,
        launches="d" * 64,
        signals=signals,
        cache="cold",
    )


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_lacks_are_refused_by_field(number: float) -> None:
    with pytest.raises(BadInput, match=r"Profiled: field signals\['bw_frac'\]: expected a finite number"):
        encode(profiled({"bw_frac": number, "time_us": 1.0}))
    # An optional field would take the null that msgspec writes for NaN, and read it as "absent".
    with pytest.raises(BadInput, match="RoundJudged: field margin: expected a finite number"):
        encode(msgspec.structs.replace(judged(1), margin=number))


def floor_with(**changes: Any) -> NoiseFloorMeasured:
    given_: dict[str, Any] = {"lower": 0.5, "median": 1.0, "upper": 1.5, "blocks": 20, "rank": 6, **changes}
    return NoiseFloorMeasured(
        cell=CELL, round=0, source="a" * 64, samples="b" * 64, interval=Interval(**given_), floor=1.0
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lower": 1}, r"field interval\.lower: found 1 \(int\)"),
        ({"lower": "1"}, r"interval\.lower"),
        ({"lower": True}, r"interval\.lower"),
        ({"lower": None}, r"interval\.lower"),
        ({"blocks": 20.5}, r"interval\.blocks"),
        ({"blocks": True}, r"interval\.blocks"),
    ],
)
def test_wrong_types_are_refused_by_field(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=f"cannot record NoiseFloorMeasured: .*{words}"):
        encode(floor_with(**changes))


def test_a_list_where_a_tuple_belongs_is_refused() -> None:
    medians: Any = [1.5]
    with pytest.raises(BadInput, match=r"ClaimStated: field medians: found \[1\.5\] \(list\)"):
        encode(ClaimStated(run="run1", claim="c", medians=medians, lowers=(1.0,), answer="upheld"))


def test_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(BadInput, match="cannot record RunStopped"):
        encode(RunStopped(run="run1", cell=None, reason="bad \udcff byte", rule=None))


def test_an_event_of_another_revision_is_refused() -> None:
    with pytest.raises(BadInput, match="RoundAttempted: field rev: expected 1, found 2"):
        encode(msgspec.structs.replace(attempt(1), rev=2))


def test_what_is_no_event_of_the_vocabulary_is_refused() -> None:
    invented: Any = msgspec.defstruct("Invented", [], bases=(Event,), tag=True, frozen=True)
    with pytest.raises(BadInput, match="Invented: expected one of the events"):
        encode(invented())


@pytest.mark.parametrize(
    ("type_", "payload", "words"),
    [
        ("Invented", b"{}", "event kind not understood: 'Invented'"),
        ("RunStopped", b"{", "no JSON"),
        ("RunStopped", b"\xff", "no JSON"),
        ("RunStopped", b"[]", "not an object of that type"),
        ("RunStopped", encode(attempt(1)), "not an object of that type"),
        ("RunStopped", b'{"type":"RunStopped","run":"run1","rev":1}', "missing required field"),
        (
            "RunStopped",
            b'{"type":"RunStopped","run":"r","cell":null,"reason":"d","rule":null,"new":0,"rev":1}',
            "unknown field",
        ),
        (
            "RunStopped",
            b'{"type":"RunStopped","run":"r","cell":null,"reason":"d","rule":null,"rev":2}',
            "revision 2, expected 1 to 1; update gpusolver",
        ),
        ("RunStopped", b'{"type":"RunStopped","rev":"1"}', "revision '1'"),
        ("RunStopped", b"[" * 100_000, "no JSON"),
    ],
)
def test_payloads_that_are_not_understood_say_why(type_: str, payload: bytes, words: str) -> None:
    with pytest.raises(UnreadableLedger, match=words):
        decode(type_, payload)


def test_integers_beyond_64_bits_come_back_exactly() -> None:
    huge = 2**200 + 1
    event = msgspec.structs.replace(judged(1), round=huge)
    read = decode("RoundJudged", encode(event))
    assert isinstance(read, RoundJudged)
    assert read.round == huge
