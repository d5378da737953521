"""Evidence, retirement and promotion of FORMAT.md 6.7, in integers. Never looks at another cell's outcomes."""

from __future__ import annotations

from math import comb

import msgspec

from ..events.model import Context, Credit, Policy
from .matching import RuleKey

EVOLVING = ("on", "on+tabu")
RANDOM = "random"
ARMS = ("off", "off+tabu", *EVOLVING, RANDOM)


class Tally(msgspec.Struct, frozen=True):
    """Credited outcomes of one rule version, and their firings in order."""

    successes: int
    failures: int
    firings: tuple[str, ...]

    @property
    def confidence(self) -> float:
        """Mean of Beta(1 + successes, 1 + failures)."""
        return (1 + self.successes) / (2 + self.successes + self.failures)


_NOTHING = Tally(0, 0, ())


class Evidence:
    """A cell's credited outcomes, what they retired and what they promoted."""

    def __init__(self) -> None:
        self._outcomes: dict[RuleKey, list[tuple[Context, Credit, str]]] = {}
        self.retired: set[tuple[RuleKey, Context]] = set()
        self.promoted: set[RuleKey] = set()

    def credit(self, key: RuleKey, context: Context, credit: Credit, firing: str) -> None:
        """Count one judged firing; a neutral one moves nothing."""
        if credit != "neutral":
            self._outcomes.setdefault(key, []).append((context, credit, firing))

    def tally(self, key: RuleKey, context: Context | None = None) -> Tally:
        """The rule's outcomes in one context, or pooled over all."""
        outcomes = self._outcomes.get(key)
        if outcomes is None:
            return _NOTHING
        counted = outcomes if context is None else [o for o in outcomes if o[0] == context]
        successes = sum(1 for o in counted if o[1] == "success")
        return Tally(successes, len(counted) - successes, tuple(o[2] for o in counted))

    def retirement(self, key: RuleKey, context: Context, policy: Policy) -> Tally | None:
        """The tally that silences the rule in this context now, if it does."""
        found = self.tally(key, context)
        due = (key, context) not in self.retired and retire_due(found.successes, found.failures, policy)
        return found if due else None

    def promotion(self, key: RuleKey, policy: Policy) -> Tally | None:
        """The pooled tally that puts the rule ahead of its tier now, if it does."""
        found = self.tally(key)
        due = key not in self.promoted and promote_due(found.successes, found.failures, policy)
        return found if due else None


def retire_due(successes: int, failures: int, policy: Policy) -> bool:
    """Whether the upper one-sided credible bound of the success rate is under one half."""
    n = successes + failures + 1
    above = sum(comb(n, k) for k in range(successes + 1, n + 1))
    return failures > 0 and policy.credible_den * above >= policy.credible_num << n


def promote_due(successes: int, failures: int, policy: Policy) -> bool:
    """Whether the lower one-sided credible bound of the success rate is over one half."""
    n = successes + failures + 1
    below = sum(comb(n, k) for k in range(successes + 1))
    return successes > 0 and policy.credible_den * below >= policy.credible_num << n
