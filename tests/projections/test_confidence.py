"""The credible bound against binomial sums by hand and against a numeric Beta integral."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusolver.events.model import Policy
from gpusolver.projections.confidence import confidence, promotes, retires

from .support import POLICY

# successes, failures, retired. n = s + f + 1; the share is sum_{k > s} C(n, k) / 2^n, and 0.95 retires.
BY_HAND = [
    (0, 3, False),  # n = 4: 16 - 1 = 15 of 16 = 0.9375
    (0, 4, True),  # n = 5: 32 - 1 = 31 of 32 = 0.96875
    (1, 4, False),  # n = 6: 64 - 1 - 6 = 57 of 64 = 0.890625
    (1, 5, False),  # n = 7: 128 - 1 - 7 = 120 of 128 = 0.9375
    (1, 6, True),  # n = 8: 256 - 1 - 8 = 247 of 256 = 0.96484
    (2, 7, False),  # n = 10: 1024 - 1 - 10 - 45 = 968 of 1024 = 0.94531
    (2, 8, True),  # n = 11: 2048 - 1 - 11 - 55 = 1981 of 2048 = 0.96729
    (3, 3, False),  # n = 7, symmetric about one half: 64 of 128
]


@pytest.mark.parametrize(("successes", "failures", "due"), BY_HAND)
def test_retirement_by_hand(successes: int, failures: int, due: bool) -> None:
    """And, by symmetry, the promotion of the mirrored record."""
    assert retires(successes, failures, POLICY) is due
    assert promotes(failures, successes, POLICY) is due


def share_below_half(successes: int, failures: int, steps: int = 2000) -> float:
    """P(X < 1/2) for X ~ Beta(1 + s, 1 + f), by Simpson's rule on the unnormalised density."""

    def integral(upper: float) -> float:
        h = upper / steps
        heights = [(i * h) ** successes * (1 - i * h) ** failures for i in range(steps + 1)]
        return h / 3 * (heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2]))

    return integral(0.5) / integral(1.0)


def test_against_the_beta_integral() -> None:
    """No record of up to ten each lies nearer to the bound than the quadrature errs, so the two must agree."""
    for successes, failures in product(range(11), repeat=2):
        share = share_below_half(successes, failures)
        assert abs(share - 0.95) > 1e-6 and abs(share - 0.05) > 1e-6
        assert retires(successes, failures, POLICY) is (share >= 0.95)
        assert promotes(successes, failures, POLICY) is (share <= 0.05)


def test_a_lax_policy_still_needs_evidence_of_its_kind() -> None:
    """At credible 1/4 nothing at all (1 of 2) would pass both bounds: a retirement needs a failure, a promotion a success."""
    lax = Policy(credible_num=1, credible_den=4)
    assert not retires(0, 0, lax) and not promotes(0, 0, lax)
    assert not retires(1, 0, lax) and not promotes(0, 1, lax)
    assert retires(0, 1, lax) and promotes(1, 0, lax)


def test_the_bound_itself_counts() -> None:
    """31 of 32 is exactly the credible 31/32: reached; (0, 3) gives 30 of 32."""
    exact = Policy(credible_num=31, credible_den=32)
    assert retires(0, 4, exact) and not retires(0, 3, exact)


def test_mean_confidence() -> None:
    """Laplace's rule of succession: 1/2 unseen, 1/6 after four failures, 5/6 after four successes."""
    assert confidence(0, 0) == 0.5
    assert confidence(0, 4) == 1 / 6
    assert confidence(4, 0) == 5 / 6


@given(st.integers(0, 200), st.integers(0, 200))
def test_never_both_ways(successes: int, failures: int) -> None:
    """A record cannot be credibly under and over one half, and more of the same never takes a decision back."""
    assert not (retires(successes, failures, POLICY) and promotes(successes, failures, POLICY))
    assert not retires(successes, failures, POLICY) or retires(successes, failures + 1, POLICY)
