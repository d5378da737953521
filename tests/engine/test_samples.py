"""Samples put together from parts, by hand."""

from __future__ import annotations

from typing import Any

from gpusolver.engine.samples import joined, together

FIRST: dict[str, Any] = {
    "clock": "cuda_event",
    "blocks": [[1, 2, 3, 4]],
    "first": 6,
    "wall_s": 1.5,
    "before": {"sm_clock_mhz": 1980.0, "power_throttled_ns": 100.0, "thermal_throttled_ns": 7.0},
    "after": {},
    "outputs": {"pairs": ["p0", "p1"], "ends": ["e0"]},
    "switches": {"before": {"tf32": False}, "left": {"tf32": True}, "right": {}},
}
MORE: dict[str, Any] = {
    "clock": "cuda_event",
    "blocks": [[5, 6, 7, 8], [9, 10, 11, 12]],
    "first": 7,
    "wall_s": 2.0,
    "before": {},
    "after": {"sm_clock_mhz": 1755.0, "power_throttled_ns": 350.0, "thermal_throttled_ns": 9.0},
    "outputs": {"pairs": ["p2", "p3", "p4", "p5"], "ends": ["e1", "e2"]},
    "switches": {"before": {"tf32": True}, "left": {"tf32": False}, "right": {"autocast": True}},
}


def test_blocks_and_outputs_follow_each_other_and_times_add_up() -> None:
    whole = joined(FIRST, MORE)
    assert whole["blocks"] == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
    assert whole["outputs"] == {"pairs": ["p0", "p1", "p2", "p3", "p4", "p5"], "ends": ["e0", "e1", "e2"]}
    assert whole["wall_s"] == 3.5 and whole["clock"] == "cuda_event"


def test_the_state_before_is_the_first_parts_and_that_after_the_last_ones() -> None:
    whole = joined(FIRST, MORE)
    assert (whole["before"], whole["after"], whole["first"]) == (FIRST["before"], MORE["after"], 6)


def test_a_switch_that_was_left_on_in_any_part_is_left_on() -> None:
    """The one that the first part saw stands; what only the second saw is added."""
    assert joined(FIRST, MORE)["switches"] == {
        "before": {"tf32": False},
        "left": {"tf32": True},
        "right": {"autocast": True},
    }


def test_what_one_part_lacks_is_not_made_up() -> None:
    """A sum of one known part and one unknown would pass for the whole."""
    bare = {"blocks": [[1, 1, 1, 1]]}
    whole = joined(bare, MORE)
    assert "wall_s" not in bare and whole["wall_s"] == 2.0
    assert joined({**FIRST, "throttled_ns": 5.0}, {**MORE, "throttled_ns": 6.0})["throttled_ns"] == 11.0


def test_parts_are_left_as_they_were() -> None:
    kept = {**FIRST, "blocks": list(FIRST["blocks"])}
    together([FIRST, MORE])
    assert kept == FIRST


def test_the_clocks_were_held_down_for_as_long_as_the_longest_of_the_reasons() -> None:
    """Power 350 - 100 = 250 ns, heat 9 - 7 = 2 ns: both may have held at once, so they are not added."""
    whole = together([FIRST, MORE])
    assert whole["throttled_ns"] == 250.0
    assert whole["blocks"] == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]


def test_one_part_is_the_whole() -> None:
    alone = {**FIRST, "after": MORE["after"]}
    assert together([alone]) == {**alone, "throttled_ns": 250.0}


def test_where_no_counter_was_read_nothing_is_said_of_throttling() -> None:
    for after in ({}, {"sm_clock_mhz": 1980.0}):
        assert "throttled_ns" not in together([{**FIRST, "after": after}])
    assert "throttled_ns" not in together([{"blocks": [[1, 1, 1, 1]]}])
