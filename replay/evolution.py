"""Evidence, retirement and promotion of FORMAT.md 6.7, in integers. Never looks at another cell's outcomes."""

from __future__ import annotations

from collections.abc import Iterable
from math import comb

import msgspec

from ..events.model import Context, Credit, EvidenceCarried, Policy
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
    """A cell's credited outcomes, what they retired and what they promoted.

    What was `carried` into the run counts from the start, and under `policy` may have retired or promoted before the first round.
    """

    def __init__(self, carried: Iterable[EvidenceCarried] = (), policy: Policy | None = None) -> None:
        self._outcomes: dict[RuleKey, list[tuple[Context, Credit, str]]] = {}
        self._before: dict[RuleKey, dict[Context, tuple[int, int]]] = {}
        for entry in carried:
            places = self._before.setdefault((entry.rule, entry.rule_version), {})
            places[entry.context] = (len(entry.helped), len(entry.failed))
        self.retired: set[tuple[RuleKey, Context]] = set()
        self.promoted: set[RuleKey] = set()
        if policy is not None:
            self._begin(policy)

    def _begin(self, policy: Policy) -> None:
        for key, places in self._before.items():
            self.retired |= {(key, context) for context in places if self.retirement(key, context, policy) is not None}
            if self.promotion(key, policy) is not None:
                self.promoted.add(key)

    def credit(self, key: RuleKey, context: Context, credit: Credit, firing: str) -> None:
        """Count one judged firing; a neutral one moves nothing."""
        if credit != "neutral":
            self._outcomes.setdefault(key, []).append((context, credit, firing))

    def tally(self, key: RuleKey, context: Context | None = None) -> Tally:
        """The rule's outcomes in one context, or pooled over all, with what was carried; the firings are the cell's own."""
        outcomes, before = self._outcomes.get(key), self._before.get(key)
        if outcomes is None and before is None:
            return _NOTHING
        counted = [o for o in outcomes or () if context in (None, o[0])]
        helped, failed = self._carried(before or {}, context)
        successes = sum(1 for o in counted if o[1] == "success")
        return Tally(successes + helped, len(counted) - successes + failed, tuple(o[2] for o in counted))

    def _carried(self, before: dict[Context, tuple[int, int]], context: Context | None) -> tuple[int, int]:
        counts = list(before.values()) if context is None else [before.get(context, (0, 0))]
        return sum(helped for helped, _ in counts), sum(failed for _, failed in counts)

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
