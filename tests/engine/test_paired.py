"""Paired statistics against values counted by hand: signs of ranks, one pattern after the other."""

from __future__ import annotations

import sys

import pytest

from gpusolver.engine.paired import holm, paired
from gpusolver.events.errors import BadInput

FIVE = (1.0, 2.0, 3.0, 4.0, 5.0)


@pytest.mark.parametrize(
    ("differences", "p", "effect"),
    [
        ((-1.0, -2.0, -3.0, -4.0, -5.0), 2 / 32, -1.0),  # one pattern of 32 on each side
        ((1.0, -2.0, -3.0, -4.0, -5.0, -6.0), 4 / 64, -19 / 21),  # rank sums 0 and 1: two patterns on each side
        ((1.0, 1.0, 1.0), 2 / 8, 1.0),  # ties: mean rank 2 each
        ((1.0, -1.0), 1.0, 0.0),
        ((0.0, 0.0, -7.0), 1.0, -1.0),  # one difference: either sign is as likely
        ((0.0, 0.0, 0.0), 1.0, 0.0),
        # 1 and 1 share the ranks 1 and 2: 1.5 each. W = 1.5 or less: none, the first, or the second of the 16 patterns.
        ((1.0, -1.0, -3.0, -4.0), 2 * 3 / 16, -(10 - 3) / 10),
    ],
)
def test_wilcoxon_by_hand(differences: tuple[float, ...], p: float, effect: float) -> None:
    found = paired(differences, (0.0,) * len(differences))
    assert found.p == pytest.approx(p)
    assert found.effect == pytest.approx(effect)
    assert (found.problems, found.differing) == (len(differences), sum(map(bool, differences)))
    assert found.worse == sum(d > 0 for d in differences)


def test_the_direction_is_that_of_ours() -> None:
    found = paired((1.0, 1.0), (3.0, 5.0))
    assert (found.ours, found.theirs, found.difference, found.effect) == (1.0, 4.0, -3.0, -1.0)
    assert (found.lower, found.upper) == (
        -4.0,
        -2.0,
    )  # means of two draws from -2 and -4: a quarter of them are each end


def test_equal_differences_have_no_spread() -> None:
    found = paired(FIVE, tuple(x + 2 for x in FIVE))
    assert (found.lower, found.difference, found.upper) == (-2.0, -2.0, -2.0)


def test_the_same_question_has_the_same_answer() -> None:
    """Beyond fourteen differing problems patterns are drawn, from a fixed seed."""
    ours = [((7 * i) % 20) - 8.5 for i in range(20)]
    assert paired(ours, [0.0] * 20) == paired(ours, [0.0] * 20)
    assert 0 < paired(ours, [0.0] * 20).p < 1


def test_holm_by_hand() -> None:
    """0.01 * 3, 0.02 * 2, 0.04 * 1: and no adjusted value under an earlier one."""
    assert holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_without_scipy_the_way_to_get_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(BadInput, match=r"pip install 'gpusolver\[stats\]'"):
        paired(FIVE, (0.0,) * 5)
