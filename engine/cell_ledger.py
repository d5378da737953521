"""One cell's stream in the ledger beside its fold: what is stored of its kernels, and drafts appended. Measures and decides nothing."""

from __future__ import annotations

from collections.abc import Callable

from ..events.model import Context, Rule, cell_stream
from ..events.writer import LedgerWriter
from ..profilers import artifacts as shapes
from ..profilers.launches import context
from ..profilers.witnesses import alone_ns, per_call
from ..projections.asking import live_rules
from ..projections.cell import CellState, fold
from ..projections.cell_plan import CellPlan
from .records import Draft


class CellLedger:
    """What a cell acts on. `state` is always the fold of what the cell's stream holds, so that the cell can resume."""

    def __init__(self, ledger: LedgerWriter, plan: CellPlan) -> None:
        self.ledger, self.plan = ledger, plan
        self.stream = cell_stream(plan.run, plan.cell)
        self.state = CellState(cell=plan.cell)
        for stored in ledger.events(self.stream):
            self.state = fold(self.state, stored.event)

    def commit(self, draft: Draft) -> None:
        """Append a draft in one transaction, and fold it."""
        self.ledger.append(self.stream, self.ledger.version(self.stream), draft.events, list(draft.artifacts.values()))
        self.state = self.after(draft)

    def after(self, draft: Draft) -> CellState:
        """The state as it would be with a draft appended."""
        state = self.state
        for event in draft.events:
            state = fold(state, event)
        return state

    @property
    def incumbent(self) -> str:
        """Digest of the incumbent, which a cell has from its round 0 on."""
        assert self.state.incumbent is not None
        return self.state.incumbent

    def context(self, source: str) -> Context:
        """The context in which evidence on a stored kernel counts."""
        return self._context(self.launches(source), self.ledger.artifact)

    def launches(self, source: str) -> shapes.Launches:
        """The launches of a stored kernel."""
        return shapes.decode(shapes.Launches, self.ledger.artifact(self.state.launches[source]))

    def live(self, draft: Draft, launches: str) -> tuple[Rule, ...]:
        """The rules that can still fire on a draft's kernel: those retired in its context need not be measured for."""
        listed = shapes.decode(shapes.Launches, draft.artifacts[launches][0])
        return live_rules(self.plan, self.state, self._context(listed, lambda name: draft.artifacts[name][0]))

    def wall(self) -> float | None:
        """Wall-clock ns a call of the incumbent, by its own gate."""
        report = self.state.reports.get(self.incumbent)
        return None if report is None else per_call(shapes.decode(shapes.Report, self.ledger.artifact(report)))

    def alone(self) -> dict[str, int]:
        """By source: ns alone of every incumbent so far, by its own noise floor."""
        floors = self.state.alone.items()
        return {source: alone_ns(shapes.decode(shapes.Samples, self.ledger.artifact(name))) for source, name in floors}

    def _context(self, listed: shapes.Launches, read: Callable[[str], bytes]) -> Context:
        texts = [read(kernel.ttir).decode() for kernel in listed.kernels if kernel.ttir]
        return context(self.plan.chip, self.plan.cell.contract, self.plan.problem.family, listed, texts)
