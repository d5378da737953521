"""One round re-derived: every recorded value that follows from artifacts or from earlier events, compared. Never reads a file."""

from __future__ import annotations

import hashlib
from typing import cast

import msgspec

from ..events.model import (
    Context,
    KernelGated,
    KernelGenerated,
    NoiseFloorMeasured,
    Profiled,
    RoundJudged,
    RuleFired,
    TilesSwept,
)
from . import bounds, derive_gate, derive_signals, statistic
from .artifacts import Counters, GateReport, Launches, Samples, Sweep
from .asking import Asked, ask
from .calibration import Calibration
from .evolution import EVOLVING, RANDOM
from .extras import read_extras
from .findings import Findings
from .grammar import Round
from .matching import Decision
from .offers import Maker, Offers, best
from .setting import Setting
from .state import State
from .texts import with_config, with_precision

MOST_ATTEMPTS = 3


class Checker:
    """Compares the events of one cell with what the setting and the state give; disagreements go to `findings`."""

    def __init__(self, setting: Setting, state: State, findings: Findings) -> None:
        self._at = setting
        self._state = state
        self._findings = findings
        arm = setting.cell.arm
        self._asked = Asked(
            table=setting.table,
            policy=setting.run.policy,
            evolves=arm in EVOLVING,
            tabu=arm.endswith("+tabu"),
            chip=setting.chip,
            prescriptions=setting.problem.prescriptions,
            blocks=setting.run.statistics.blocks,
            draw=f"{setting.run.seed}:{setting.stream}" if arm == RANDOM else None,
        )

    # --- matching ---

    def decide(self) -> Decision:
        """Ask the rules about the incumbent as it stands now."""
        return ask(self._asked, self._state, self.context())

    def context(self) -> Context:
        """The incumbent's context."""
        at = self._at
        launches = self._launches(self._state.incumbent)
        return derive_signals.context(at.chip, at.cell.contract, at.problem.family, launches, at.shelf)

    def fired(self, seq: int, fired: RuleFired, round_: int, attempt: int) -> None:
        """A firing against the decision that is due."""
        due, expect = self.decide(), self._findings.expect
        expect(seq, "round", round_, fired.round, "firing in round")
        expect(seq, "round", f"{self._at.stream}/{round_}.{attempt}", fired.firing, "firing id")
        expect(seq, "incumbent", self._state.incumbent, fired.incumbent)
        expect(seq, "context", self.context(), fired.context)
        if due.rule is None:
            self._findings.add(seq, "match", "no rule fires", fired.rule)
            return
        rule = due.rule
        agreed = expect(seq, "match", (rule.name, rule.version), (fired.rule, fired.rule_version), "rule")
        expect(seq, "match", rule.prescription, fired.prescription, "prescription")
        expect(seq, "match", due.clauses, fired.clauses, "clauses")
        expect(seq, "match", due.abstained, fired.abstained, "abstained")
        expect(seq, "match", due.blocked, fired.blocked, "blocked")
        if agreed:
            expect(seq, "predicted gain", due.gain, fired.predicted_gain)

    # --- the candidate ---

    def swept(self, seq: int, swept: TilesSwept, fired: RuleFired) -> None:
        """The chosen configuration: the first whose lower median is within the registered margin of the smallest."""
        self._findings.expect(seq, "sweep", fired.firing, swept.firing, "firing")
        sweep = self._at.shelf.json(swept.samples, Sweep)
        if not self._findings.expect(seq, "sweep", len(swept.configs), len(sweep.samples), "configurations"):
            return
        due = best(sweep, self._at.run.statistics.margin)
        self._findings.expect(seq, "sweep", "no configuration that ran" if due is None else due, swept.chosen, "chosen")

    def offers(self) -> Offers:
        """What the generators of the chain were asked about the incumbent as it stands now."""
        state = self._state
        return Offers(self._at.run, self._at.stream, state.incumbent, state.tried(), self._at.shelf, self._findings)

    def generated(self, seq: int, round_: Round, generated: KernelGenerated, made: Maker | None) -> None:
        """Firing, parent, generator and, where the page fixes it, the text of the candidate; `made` as by the round's offers."""
        expect, fired, swept = self._findings.expect, round_.fired, round_.swept
        self._made(seq, round_, generated, made)
        expect(seq, "generated source", None if fired is None else fired.firing, generated.firing, "firing")
        expect(seq, "generated source", None if fired is None else self._state.incumbent, generated.parent, "parent")
        text: str | None
        if generated.generator == "flag":
            parent = self._at.shelf.text(generated.parent or "")
            text = with_precision(parent, "tf32")
        elif generated.generator == "template":
            text = self._filled(swept)
        else:
            if made is not None and made.source is not None:
                expect(seq, "generated source", made.source, generated.source, generated.generator)
            self._at.shelf.raw(generated.source)
            return
        found = "no such text can be made" if text is None else hashlib.sha256(text.encode()).hexdigest()
        expect(seq, "generated source", found, generated.source, generated.generator)

    def _made(self, seq: int, round_: Round, generated: KernelGenerated, maker: Maker | None) -> None:
        """One of the closed list of generators, and the variant that it makes of the prescription."""
        made, variant, fired, swept = generated.generator, generated.variant, round_.fired, round_.swept
        if fired is None:
            self._findings.expect(seq, "generated source", ("start", "start"), (made, variant), "generator, variant")
            return
        due = self.offers().fits(generated, fired, maker, round_)
        if due is not None:
            self._findings.add(seq, "generated source", due, f"{made} {variant}")
        if (swept is not None) != (made == "template"):
            self._findings.add(seq, "generated source", "TilesSwept before a template, and only there", made)

    def _filled(self, swept: TilesSwept | None) -> str | None:
        if swept is None or not 0 <= swept.chosen < len(swept.configs):
            return None
        return with_config(self._at.shelf.text(swept.template), swept.configs[swept.chosen])

    def gated(self, seq: int, gated: KernelGated, source: str, attempt: int) -> None:
        """The outcome against the report, and the seed against the registration."""
        at, expect = self._at, self._findings.expect
        expect(seq, "gate", source, gated.source, "source")
        expect(seq, "gate", attempt, gated.attempt, "attempt")
        report = at.shelf.json(gated.report, GateReport)
        expect(seq, "gate", derive_gate.outcome(report, at.problem, at.cell.contract), gated.outcome, "outcome")
        if report.error is not None:
            expect(seq, "gate", report.error.text, gated.reason, "reason")
        elif gated.outcome == "passed":
            expect(seq, "gate", "within limits", gated.reason, "reason")
        for misfit in derive_gate.misfits(report, at.problem, sized=at.clock == "cuda_event"):
            self._findings.add(seq, "gate", "a report of this problem", misfit)
        attempts = (attempt,) if at.run.origin is None else range(1, MOST_ATTEMPTS + 1)
        due = [derive_gate.seed(at.run.seed, gated.source, number) for number in attempts]
        if report.seed not in due:
            self._findings.add(seq, "seed", due, report.seed)

    def profiled(self, seq: int, profiled: Profiled, gated: KernelGated | None, against: str) -> None:
        """Tier and signals against the raw artifacts; source and launches are those that were gated."""
        at, expect = self._at, self._findings.expect
        if gated is not None:
            due = (gated.source, against, gated.launches)
            found = (profiled.source, profiled.against, profiled.launches)
            expect(seq, "profile", due, found, "source, against, launches")
        samples, launches = at.shelf.json(profiled.samples, Samples), at.shelf.json(profiled.launches, Launches)
        counters = None if profiled.counters is None else at.shelf.json(profiled.counters, Counters)
        expect(seq, "profile", samples.cache, profiled.cache, "cache")
        expect(seq, "profile", derive_signals.tier(counters, launches), profiled.tier, "tier")
        extras = {} if isinstance(profiled.extras, msgspec.UnsetType) else profiled.extras
        signals = derive_signals.signals(
            at.problem,
            at.cell.contract,
            at.chip,
            at.device.copy_gbps,
            samples,
            launches,
            counters,
            at.shelf.json(at.device.calibration, Calibration),
            read_extras(at.shelf, extras, launches),
        )
        self._findings.differences(seq, "signals", signals, profiled.signals)

    def floor(self, seq: int, floor: NoiseFloorMeasured, source: str, profiled: Profiled | None) -> None:
        """Interval and floor against the A/A samples, in round 0 those of the profile."""
        expect = self._findings.expect
        expect(seq, "noise floor", source, floor.source, "source")
        if profiled is not None and floor.round == 0:
            expect(seq, "noise floor", profiled.samples, floor.samples, "samples")
        samples = self._at.shelf.json(floor.samples, Samples)
        expect(seq, "noise floor", self._at.run.statistics.blocks, len(samples.blocks), "blocks")
        found = statistic.interval(samples, self._at.run.statistics)
        expect(seq, "noise floor", found, floor.interval, "interval")
        if found is not None:
            expect(seq, "noise floor", statistic.noise_floor(found), floor.floor, "floor")

    # --- the verdict ---

    def judged(self, seq: int, round_: Round, judged: RoundJudged) -> None:
        """Verdict, reason, interval, margin, credit and next incumbent against samples and launches."""
        expect = self._findings.expect
        fired, candidate = cast(RuleFired, round_.fired), cast(KernelGenerated, round_.generated).source
        looked = self._judgement(round_, round_.profiled)
        self._declined(round_)
        due = looked.judgement
        for forbidden in looked.forbidden:
            self._findings.add(seq, "looks", "an end at the first look that decides", forbidden)
        expect(seq, "verdict", due.verdict, judged.verdict)
        if due.reason is not None:
            expect(seq, "verdict", due.reason, judged.reason, "reason")
        elif judged.reason not in statistic.FAULTS:
            self._findings.add(seq, "verdict", f"one of the faults {', '.join(statistic.FAULTS)}", judged.reason)
        won = judged.verdict == "FASTER"
        if won != (round_.floor is not None):
            self._findings.add(
                seq, "noise floor", "one after FASTER, and only there", "none" if won else judged.verdict
            )
        if round_.profiled is not None and (due.inert or (due.reason or "").startswith("gate: ")):
            self._findings.add(round_.seqs["profiled"], "profile", f"none of a candidate {due.reason}", "Profiled")
        expect(seq, "verdict", due.inert, judged.inert, "inert")
        expect(seq, "interval", due.interval, judged.interval)
        expect(seq, "margin", due.margin, judged.margin)
        prompted = (fired.firing, fired.rule, fired.rule_version)
        expect(seq, "credit", prompted, (judged.firing, judged.rule, judged.rule_version), "firing")
        expect(seq, "credit", statistic.CREDIT[due.verdict], judged.credit)
        expect(seq, "incumbent", candidate, judged.candidate, "candidate")
        expect(seq, "incumbent", self._state.incumbent, judged.incumbent)
        following = candidate if due.verdict == "FASTER" else self._state.incumbent
        expect(seq, "incumbent", following, judged.next_incumbent, "next incumbent")

    def _declined(self, round_: Round) -> None:
        """Another arm's samples are taken where they end at the very look at which this cell's verdict ends."""
        seq = round_.seqs.get("profiled", 0)
        if round_.profiled is None or seq not in self._at.declined:
            return
        paid, origin = self._at.declined[seq]
        taken = msgspec.structs.replace(round_.profiled, samples=origin.samples)
        looked = self._judgement(round_, taken)
        # Outputs that are wrong only later than a look may end a measurement at either; too few blocks are nobody's look.
        if not looked.forbidden and looked.judgement.reason not in (bounds.WRONG_WHILE_TIMED, statistic.TOO_FEW):
            self._findings.add(seq, "origin", f"what event {paid} measured of these kernels", "measured anew")

    def _judgement(self, round_: Round, profiled: Profiled | None) -> statistic.Look:
        at, state = self._at, self._state
        gated = cast(KernelGated, round_.gated)
        statistics = at.run.statistics
        floor = state.floors.get(state.incumbent)
        margin = None if floor is None else max(statistics.margin, statistics.floor_multiple * floor)
        candidate = None if gated.launches is None else at.shelf.json(gated.launches, Launches)
        report = at.shelf.json(gated.report, GateReport)
        return statistic.judge_by_looks(
            outcome=derive_gate.outcome(report, at.problem, at.cell.contract),
            inert=derive_signals.inert(candidate, self._launches(state.incumbent)),
            samples=None if profiled is None else at.shelf.json(profiled.samples, Samples),
            margin=margin,
            floor_ns=statistic.physical_floor(at.problem, at.chip, at.cell.contract),
            statistics=statistics,
            limits=at.problem.limits.get(at.cell.contract),
            witnesses=self._witnesses(gated, profiled),
            warm_ns=statistic.arithmetic_floor(at.problem, at.chip, at.cell.contract),
        )

    def _witnesses(self, gated: KernelGated, profiled: Profiled | None) -> bounds.Witnesses | None:
        """What a FASTER is held against, of a candidate that passed; None where nothing is asked."""
        at, state = self._at, self._state
        alone = state.alone.get(state.incumbent)
        if isinstance(at.run.statistics.bounds, msgspec.UnsetType) or profiled is None or alone is None:
            return None
        before = state.report(state.incumbent, gated)
        counters = None if profiled.counters is None else at.shelf.json(profiled.counters, Counters)
        return bounds.Witnesses(
            alone=self._alone(alone),
            fastest=self._fastest(),
            wall_a=bounds.wall(None if before is None else at.shelf.json(before, GateReport)),
            wall_b=bounds.wall(at.shelf.json(gated.report, GateReport)),
            active=bounds.active(counters, at.shelf.json(at.device.calibration, Calibration)),
        )

    def _fastest(self) -> int | None:
        """The least of what the cell's incumbents took by themselves; asked under an objective alone."""
        if isinstance(self._at.run.statistics.objective, msgspec.UnsetType):
            return None
        return min(map(self._alone, self._state.alone.values()))

    def _alone(self, samples: str) -> int:
        """ns a call of a kernel against itself."""
        return statistic.lower_median(self._at.shelf.json(samples, Samples).right())

    def _launches(self, source: str) -> Launches | None:
        digest = self._state.launches.get(source)
        return None if digest is None else self._at.shelf.json(digest, Launches)
