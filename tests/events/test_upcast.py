"""Upcast steps on a made-up event that was changed twice; the real table is empty so far."""

from __future__ import annotations

from typing import Any

import pytest

from gpusolver.events import EVENT_TYPES, UnreadableLedger, decode, upcast
from gpusolver.events.model import RunStopped

CURRENT = {"RunStopped": 3, "RoundAttempted": 1}


def named_run(payload: dict[str, Any]) -> dict[str, Any]:
    payload["run"] = f"run{payload.pop('number')}"
    return payload


def with_rule(payload: dict[str, Any]) -> dict[str, Any]:
    return {**payload, "rule": None}


TABLE = {("RunStopped", 1): named_run, ("RunStopped", 2): with_rule}


def test_steps_follow_one_another() -> None:
    old = {"type": "RunStopped", "number": 4, "cell": None, "reason": "done", "rev": 1}
    new = upcast.upcast(old, TABLE, CURRENT)
    assert new == {"type": "RunStopped", "run": "run4", "cell": None, "reason": "done", "rule": None, "rev": 3}
    assert old == {"type": "RunStopped", "number": 4, "cell": None, "reason": "done", "rev": 1}


def test_a_current_payload_stays() -> None:
    payload = {"type": "RoundAttempted", "rev": 1}
    assert upcast.upcast(payload, TABLE, CURRENT) == payload


def test_a_whole_table_is_accepted() -> None:
    upcast.validate(TABLE, CURRENT)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({("RunStopped", 2): with_rule}, "no upcast step for RunStopped revision 1"),
        ({("RunStopped", 1): named_run}, "no upcast step for RunStopped revision 2"),
        ({**TABLE, ("RunStopped", 3): dict}, "from 1 to below the current 3"),
        ({**TABLE, ("RunStopped", 0): dict}, "from 1 to below the current 3"),
        ({**TABLE, ("RunStoped", 1): dict}, "no such event type"),
        ({("RunStopped", 1): with_rule, ("RunStopped", 2): with_rule}, "one function serves two"),
    ],
)
def test_gaps_strangers_and_duplicates_are_refused(table: dict[tuple[str, int], upcast.Step], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        upcast.validate(table, CURRENT)


def test_every_event_of_the_vocabulary_has_a_revision() -> None:
    assert upcast.CURRENT["RunStopped"] == 1
    assert set(upcast.CURRENT) == set(EVENT_TYPES)


def older(monkeypatch: pytest.MonkeyPatch, step: upcast.Step) -> bytes:
    """Make 2 the current revision of RunStopped, reached by `step`; returns a stored payload of revision 1."""
    monkeypatch.setitem(upcast.CURRENT, "RunStopped", 2)
    monkeypatch.setitem(upcast.STEPS, ("RunStopped", 1), step)
    return b'{"type":"RunStopped","number":4,"cell":null,"reason":"done","rule":null,"rev":1}'


def test_decode_reads_last_years_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = older(monkeypatch, named_run)
    assert decode("RunStopped", stored) == RunStopped(run="run4", cell=None, reason="done", rule=None, rev=2)


def test_decode_upcasts_even_where_the_old_shape_happens_to_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    older(monkeypatch, lambda payload: {**payload, "reason": payload["reason"].upper()})
    stored = b'{"type":"RunStopped","run":"run4","cell":null,"reason":"done","rule":null,"rev":1}'
    assert decode("RunStopped", stored) == RunStopped(run="run4", cell=None, reason="DONE", rule=None, rev=2)


@pytest.mark.parametrize("step", [lambda payload: payload, lambda payload: {"run": payload["absent"]}])
def test_a_step_that_does_not_fit_is_named(monkeypatch: pytest.MonkeyPatch, step: upcast.Step) -> None:
    stored = older(monkeypatch, step)
    with pytest.raises(UnreadableLedger, match="RunStopped: revision 1 cannot be upcast to 2"):
        decode("RunStopped", stored)
