"""Two collectors beside each other: bounds worked by hand, and what null means on either side."""

from __future__ import annotations

import pytest

from gpusolver.profilers.agreement import bound, rows
from gpusolver.profilers.artifacts import Counters


def read(metrics: dict[str, int | float | None], collector: str = "cupti_user_range") -> Counters:
    return Counters(collector=collector, passes=1, chip="GH100", cache="cold", metrics=metrics)


@pytest.mark.parametrize(
    ("metric", "theirs", "expected"),
    [
        ("dram__bytes_read.sum", 10_000_000, 1_000_000.0),  # 3 % are 0.3 MB, less than 1 MB
        ("dram__bytes_read.sum", 200_000_000, 6_000_000.0),
        ("sm__sass_data_bytes_mem_local.sum", 0, 1_000_000.0),
        ("smsp__sass_inst_executed_op_global_ld.sum", 4000, 40.0),
        ("smsp__sass_inst_executed_op_global_ld.sum", 0, 0.0),
        ("sm__warps_active.avg.pct_of_peak_sustained_active", 50.0, 1.5),
        ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", 100.0, 3.0),  # named after bytes, but no sum
        ("dram__bytes_read.sum", None, 0.0),
    ],
)
def test_bounds(metric: str, theirs: float | None, expected: float) -> None:
    assert bound(metric, theirs) == expected


@pytest.mark.parametrize(
    ("ours", "theirs", "within"),
    [(4040, 4000, True), (3960, 4000, True), (4041, 4000, False), (0, 0, True), (1, 0, False),
     (None, None, True), (None, 0, False), (0, None, False)],
)  # fmt: skip
def test_counts_within_one_percent_of_theirs(ours: int | None, theirs: int | None, within: bool) -> None:
    """A count that one side lacks is no 0: it agrees with nothing but another lack."""
    (row,) = rows(read({"a.sum": ours}), read({"a.sum": theirs}, "ncu"))
    assert row.within is within
    assert (row.ours, row.theirs) == (ours, theirs)


def test_rows_are_what_both_list_in_order_of_name() -> None:
    found = rows(
        read({"b.sum": 1, "a.avg": 2, "Z.sum": 3, "mine.sum": 4}),
        read({"Z.sum": 3, "a.avg": 2.0, "b.sum": 1, "own.sum": 5}),
    )
    assert [row.metric for row in found] == ["Z.sum", "a.avg", "b.sum"]
    assert all(isinstance(value, float) for row in found for value in (row.ours, row.theirs, row.bound))
    assert rows(read({}), read({"a.sum": 1})) == ()
