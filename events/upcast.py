"""One upcast step per event type and revision, on plain dicts at reading time. Never rewrites what is stored.

To change the shape of an event: give its Struct `rev: int = N + 1`, add the step (type, N) here, keep an old payload as a
test. The old Struct is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from .model import EVENT_TYPES, Event

Payload = dict[str, Any]
Step = Callable[[Payload], Payload]

STEPS: dict[tuple[str, int], Step] = {}
"""{(type, rev): function from a payload of that rev to one of rev + 1}; empty as long as every event is at revision 1."""


def revision(kind: type[Event]) -> int:
    """The revision that `kind`, as a Struct, describes: the default of its `rev`."""
    return next(int(field.default) for field in msgspec.structs.fields(kind) if field.name == "rev")


CURRENT: dict[str, int] = {name: revision(kind) for name, kind in EVENT_TYPES.items()}


def validate(table: Mapping[tuple[str, int], Step], current: Mapping[str, int]) -> None:
    """Demand exactly one step for each revision below the current one, of known types; ValueError names what is wrong."""
    for name, rev in table:
        if name not in current:
            raise ValueError(f"upcast step ({name}, {rev}): no such event type")
        if not 1 <= rev < current[name]:
            raise ValueError(
                f"upcast step ({name}, {rev}): expected a revision from 1 to below the current {current[name]}"
            )
    for name, newest in current.items():
        missing = [rev for rev in range(1, newest) if (name, rev) not in table]
        if missing:
            raise ValueError(f"no upcast step for {name} revision {missing[0]}, though the current one is {newest}")
    steps = list(table.values())
    if len(set(map(id, steps))) != len(steps):
        raise ValueError("one function serves two upcast steps: each revision needs its own")


def upcast(payload: Payload, table: Mapping[tuple[str, int], Step], current: Mapping[str, int]) -> Payload:
    """The payload at the current revision of its type, one step after the other; the argument stays as it was."""
    name = payload["type"]
    result = dict(payload)
    while (rev := result["rev"]) < current[name]:
        result = {**table[name, rev](dict(result)), "type": name, "rev": rev + 1}
    return result


validate(STEPS, CURRENT)
