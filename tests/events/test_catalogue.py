"""events/README.md against events/model.py: every event and value is listed with its revision and its keys in order."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import msgspec
import pytest

import gpusolver
from gpusolver.events import EVENT_TYPES, model, upcast

PAGE = (Path(gpusolver.__file__).parent.parent / "events" / "README.md").read_text(encoding="utf-8")
VALUES = {
    name: kind
    for name, kind in inspect.getmembers(model, inspect.isclass)
    if issubclass(kind, model.Value) and kind is not model.Value
}


def table(heading: str) -> dict[str, list[str]]:
    """{first cell without its marks: further cells} of the table under a heading."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {cells[0].strip(" `"): [cell.strip() for cell in cells[1:]] for cells in rows}


def keys(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_model_gathers_what_the_modules_of_its_topics_define() -> None:
    """An event that is in its topic's module alone could be neither recorded nor read, and a value there escapes this page."""
    defined = {kind for base in (model.Event, model.Value) for kind in base.__subclasses__()}
    ours = {kind for kind in defined if kind.__module__.startswith("gpusolver.events.")}
    assert {kind.__name__: kind for kind in ours} == {**EVENT_TYPES, **VALUES}
    assert {kind.__name__ for kind in ours} <= set(model.__all__)


def test_every_event_is_in_the_catalogue_in_the_order_of_the_model() -> None:
    assert list(table("Events")) == list(EVENT_TYPES)


@pytest.mark.parametrize("name", EVENT_TYPES)
def test_an_events_line(name: str) -> None:
    rev, meaning, listed = table("Events")[name]
    assert int(rev) == upcast.CURRENT[name]
    assert len(meaning) > 10
    assert keys(listed) == list(EVENT_TYPES[name].__struct_fields__)


def test_every_nested_value_is_in_the_catalogue() -> None:
    assert set(table("Values")) == set(VALUES)


@pytest.mark.parametrize("name", VALUES)
def test_a_values_line(name: str) -> None:
    (listed,) = table("Values")[name]
    assert keys(listed) == list(VALUES[name].__struct_fields__)


def test_the_keys_are_those_of_the_encoding() -> None:
    stop = model.RunStopped(run="run1", cell=None, reason="done", rule=None)
    assert list(msgspec.json.decode(msgspec.json.encode(stop))) == ["type", *keys(table("Events")["RunStopped"][2])]
