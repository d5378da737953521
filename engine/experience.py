"""A table and its evidence from another ledger (`--rules from:LEDGER`). Reads that ledger, and never writes to it."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import UNSET

from ..events.errors import BadInput
from ..events.model import Event, Experience, Proposing, Rule, RuleSeeded, RunRegistered
from ..events.reader import LedgerReader
from ..projections.experience import Trial, carried, inherited, tables, trials
from ..projections.proposing import admitted, proposals

PREFIX = "from:"
PROPOSING = Proposing(support=2, purity_num=3, purity_den=4)


class Learnt(msgspec.Struct, frozen=True, kw_only=True):
    """What a run begins with: the rule events in their order, and where they come from."""

    experience: Experience
    events: tuple[Event, ...]


def learnt(words: str, run: str, seed: int, proposing: Proposing | None) -> Learnt:
    """The last run's table of the ledger in `from:LEDGER`, what it proposes, and what it carries; BadInput where it holds no run."""
    path = Path(words.removeprefix(PREFIX))
    if not path.exists():
        raise BadInput(f"--rules {words}: expected the ledger of earlier runs, found no file {path}")
    with LedgerReader(path) as reader:
        events, head = reader.head()
        records = [(stored.stream, stored.event) for stored in reader.recorded()]
    other = [e.run for _, e in records if isinstance(e, RunRegistered) and e.statistics.objective is not UNSET]
    if other:
        raise BadInput(
            f"--rules {words}: expected a ledger whose verdicts are by latency, found {other[0]} with another objective. "
            "What draws less teaches nothing about what is faster."
        )
    found = tables(records)
    if not found:
        raise BadInput(
            f"--rules {words}: expected a ledger with a run, found none in {path}. Name one that `run` wrote."
        )
    table = list(found.values())[-1]
    made: list[Event] = [RuleSeeded(run=run, rule=rule) for rule in table]
    seen = trials(records, table)
    more: list[Trial] = []
    rules: list[Rule] = [*table]
    for proposal, holds in () if proposing is None else proposals(run, seed, proposing, table, seen):
        made.append(proposal)
        if holds:
            made.append(admitted(proposal))
            rules.append(proposal.rule)
            more += inherited(proposal, seen)
    made += carried(run, rules, (*seen, *more))
    return Learnt(experience=Experience(head=head, events=events, proposing=proposing), events=tuple(made))
