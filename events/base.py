"""The bases of all values and events, and the words that more than one topic uses. Never imports a topic."""

from __future__ import annotations

from typing import Literal

import msgspec

Verdict = Literal["FASTER", "SLOWER", "SAME", "AMBIGUOUS"]
Tier = Literal["full", "compiled", "timing"]


class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Base of everything nested in an event: immutable, keyword-only, closed against unknown fields."""


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", gc=False):
    """Base of all events; `rev` is the revision of the event's own shape (see upcast.py)."""

    rev: int = 1
