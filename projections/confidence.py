"""How far recorded outcomes speak for or against a rule, decided in integers. Never reads a ledger, never rounds to decide."""

from __future__ import annotations

from math import comb

from ..events.model import Policy


def confidence(successes: int, failures: int) -> float:
    """Mean of Beta(1 + successes, 1 + failures); 0.5 without evidence."""
    return (1 + successes) / (2 + successes + failures)


def retires(successes: int, failures: int, policy: Policy) -> bool:
    """Whether P(rate < 1/2) under Beta(1 + successes, 1 + failures) reaches the policy's credibility, with a failure seen.

    For whole parameters that probability is P(Binomial(n, 1/2) > successes) with n = successes + failures + 1
    (DLMF 8.17.5), so the test is a comparison of integers and the same on every machine.
    """
    n = successes + failures + 1
    above = sum(comb(n, k) for k in range(successes + 1, n + 1))
    return failures > 0 and _credible(above, n, policy)


def promotes(successes: int, failures: int, policy: Policy) -> bool:
    """Whether P(rate > 1/2) under Beta(1 + successes, 1 + failures) reaches the policy's credibility, with a success seen."""
    n = successes + failures + 1
    up_to = sum(comb(n, k) for k in range(successes + 1))
    return successes > 0 and _credible(up_to, n, policy)


def _credible(favourable: int, n: int, policy: Policy) -> bool:
    return policy.credible_den * favourable >= policy.credible_num * (1 << n)
