"""What every shape of an artifact is made of: the base, and numbers within their bounds. Holds no shape of its own."""

from __future__ import annotations

from typing import Annotated

import msgspec

# A time of 0 ns is no measurement, and as a divisor it would end in an error far from its cause.
Nanoseconds = Annotated[int, msgspec.Meta(gt=0)]
AtLeastOne = msgspec.Meta(min_length=1)
Positive = Annotated[int, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]
FromZero = Annotated[float, msgspec.Meta(ge=0)]
Times = Annotated[tuple[Nanoseconds, ...], msgspec.Meta(min_length=1)]


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every shape here: immutable, keyword-only, open to facts that it does not name."""
