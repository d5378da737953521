"""Speed-ups over eager fp32, by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gpusolver.projections.ablation import AblationRow
from gpusolver.projections.runs import Group
from gpusolver.projections.speedups import kind, left_out, speedups, summaries

from .support import head_to_head


def row(problem: str, **medians: float | None) -> AblationRow:
    group = Group(problem=problem, contract="tf32-allowed", pool="flags", repetition=1)
    entries = {f"versus:{name}": head_to_head(f"versus:{name}", median) for name, median in medians.items()}
    return AblationRow(group=group, arms=(), head_to_heads=entries)


def test_a_baseline_is_worth_eager_over_it() -> None:
    """eager / winner = 4 and compile / winner = 2: compile is twice as fast as eager, and the winner twice as fast as it."""
    (found,) = speedups([row("kernelbench.level1.1_A", eager_fp32=4.0, compile_fp32=2.0, eager_tf32=5.0)])
    assert (found.winner, found.baselines, found.best, found.loses) == (
        4.0,
        {"compile_fp32": 2.0, "eager_tf32": 0.8},
        2.0,
        False,
    )


def test_where_nothing_beats_eager_the_best_is_eager() -> None:
    (found,) = speedups([row("a.b.c", eager_fp32=0.5, compile_fp32=1.0)])
    assert (found.best, found.baselines, found.loses) == (1.0, {"compile_fp32": 0.5}, True)


def test_a_group_without_all_its_comparisons_is_left_out() -> None:
    assert speedups([row("a.b.c", compile_fp32=2.0), row("a.b.d", eager_fp32=2.0, compile_fp32=None)]) == ()


def test_a_baseline_that_was_wrong_while_timed_is_left_out_alone_and_named() -> None:
    """The group is summed up with those that have the same baselines; eager itself is the denominator, and cannot be left out."""
    whole = row("a.b.c", eager_fp32=4.0, compile_fp32=2.0, compile_tf32=8.0)
    wrong = {
        name: replace(entry, outcome="wrong while timed", interval=None, samples="ab" * 32)
        for name, entry in whole.head_to_heads.items()
    }
    (found,) = speedups(
        [replace(whole, head_to_heads={**whole.head_to_heads, "versus:compile_fp32": wrong["versus:compile_fp32"]})]
    )
    assert (found.winner, found.baselines, found.best, found.wrong) == (
        4.0,
        {"compile_tf32": 0.5},
        1.0,
        ("compile_fp32",),
    )
    no_eager = replace(whole, head_to_heads={**whole.head_to_heads, "versus:eager_fp32": wrong["versus:eager_fp32"]})
    assert speedups([no_eager]) == () and [group.problem for group in left_out([no_eager])] == ["a.b.c"]


def test_sums_keep_kinds_apart() -> None:
    """Geometric mean of 4 and 1 is 2, their median 2.5; of the best, 2 and 1, 1.41 and 1.5. The level-2 problem stands alone."""
    found = speedups(
        [
            row("kernelbench.level1.1_A", eager_fp32=4.0, compile_fp32=2.0),
            row("kernelbench.level1.2_B", eager_fp32=1.0, compile_fp32=2.0),
            row("kernelbench.level2.2_B", eager_fp32=0.5, compile_fp32=1.0),
        ]
    )
    first, second = summaries(found)
    assert (first.kind, first.rows, first.losses) == ("kernelbench.level1", 2, ())
    assert first.winner == pytest.approx((2.0, 2.5))
    assert first.rivals["compile_fp32"] == pytest.approx((1.0, 1.25))
    assert first.rivals["best of these and eager"] == pytest.approx((2.0**0.5, 1.5))
    assert (second.kind, second.rows, second.losses) == ("kernelbench.level2", 1, ("kernelbench.level2.2_B",))
    assert kind("matmul") == ""


def test_what_no_speed_up_is_stated_of_is_named() -> None:
    """A baseline that failed may be the one that would have won: its group is not dropped unsaid."""
    found = left_out([row("a.b.c", eager_fp32=2.0, compile_fp32=None), row("a.b.d", eager_fp32=2.0), row("a.b.e")])
    assert [group.problem for group in found] == ["a.b.c", "a.b.e"]
