"""Events to payload bytes and back. Never writes what it could not read again unchanged, never touches a file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from . import upcast
from .errors import BadInput, UnreadableLedger
from .model import EVENT_TYPES, Event

# "deterministic" keeps the order of Struct fields and sorts the keys of mappings; "sorted" would sort both.
_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    name: msgspec.json.Decoder(kind) for name, kind in EVENT_TYPES.items()
}


def encode(event: Event) -> bytes:
    """The payload bytes of `event`, proved: they decode to an equal event, and that encodes to the same bytes.

    BadInput names the event type and the field where it cannot be so: NaN or infinity (JSON has neither), an int where
    the field is a float, a list where it is a tuple, a wrong type.
    """
    kind = type(event)
    name = kind.__name__
    if EVENT_TYPES.get(name) is not kind:
        raise BadInput(f"cannot record {kind.__qualname__}: expected one of the events of events/model.py")
    if event.rev != upcast.CURRENT[name]:
        raise BadInput(f"cannot record {name}: field rev: expected {upcast.CURRENT[name]}, found {event.rev!r}")
    try:
        payload = _ENCODER.encode(event)
        decoded = _DECODERS[name].decode(payload)
        if decoded == event and _ENCODER.encode(decoded) == payload:
            return payload
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadInput(f"cannot record {name}: {_non_finite(event) or error}") from error
    raise BadInput(f"cannot record {name}: {_non_finite(event) or _first_difference(event, decoded)}")


def decode(type_: str, payload: bytes) -> Event:
    """The event in `payload`, upcast from an older revision; UnreadableLedger says what is not understood."""
    decoder = _DECODERS.get(type_)
    if decoder is None:
        raise UnreadableLedger(f"event kind not understood: {type_!r}; a newer gpusolver may have written it")
    try:
        event: Event = decoder.decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return _decode_older(type_, payload, error)
    return event if event.rev == upcast.CURRENT[type_] else _decode_older(type_, payload, None)


def _decode_older(type_: str, payload: bytes, error: Exception | None) -> Event:
    """Decode by way of the upcast steps; without an older revision the first error stands."""
    current = upcast.CURRENT[type_]
    try:
        raw = msgspec.json.decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as fault:
        raise UnreadableLedger(f"{type_}: payload is no JSON ({fault})") from fault
    if not isinstance(raw, dict) or raw.get("type") != type_:
        raise UnreadableLedger(f"{type_}: payload is not an object of that type") from error
    rev = raw.get("rev")
    if type(rev) is not int or not 1 <= rev <= current:
        raise UnreadableLedger(f"{type_}: revision {rev!r}, expected 1 to {current}; update gpusolver") from error
    if rev == current:
        raise UnreadableLedger(f"{type_}: {error}") from error
    try:
        event: Event = msgspec.convert(upcast.upcast(raw, upcast.STEPS, upcast.CURRENT), EVENT_TYPES[type_])
    except (msgspec.MsgspecError, LookupError, TypeError, ValueError) as fault:
        raise UnreadableLedger(f"{type_}: revision {rev} cannot be upcast to {current} ({fault!r})") from fault
    return event


# --- where an event cannot be recorded --------------------------------------------------------------------------------


def _children(value: object) -> Iterator[tuple[str, object]]:
    """The named parts of a Struct, mapping or sequence."""
    if isinstance(value, msgspec.Struct):
        yield from ((f".{name}", getattr(value, name)) for name in value.__struct_fields__)
    elif isinstance(value, Mapping):
        yield from ((f"[{key!r}]", value[key]) for key in sorted(value, key=repr))
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{index}]", item) for index, item in enumerate(value))


def _non_finite(value: object, path: str = "") -> str | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else f"field {path.lstrip('.')}: expected a finite number, found {value!r}"
    return next((found for name, child in _children(value) if (found := _non_finite(child, path + name))), None)


def _first_difference(given: object, read: object, path: str = "") -> str:
    """Words for the first field that would not come back as it was given."""
    ours, theirs = dict(_children(given)), dict(_children(read))
    if type(given) is type(read) and ours.keys() == theirs.keys():
        for name, child in ours.items():
            if child != theirs[name] or repr(child) != repr(theirs[name]):
                return _first_difference(child, theirs[name], path + name)
    field = path.lstrip(".") or "(whole event)"
    return f"field {field}: found {given!r} ({type(given).__name__}), which would be read as {read!r}"
