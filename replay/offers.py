"""What the chain of generators was asked in a round (FORMAT.md section 4, generators): order, outcomes, sweeps, and who made the candidate."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

import msgspec
from msgspec import UnsetType

from ..events.model import GeneratorAsked, KernelGenerated, PrescriptionUnserved, RuleFired, RunRegistered, SourcesSwept
from . import extract, statistic
from .artifacts import Sweep
from .findings import Findings
from .grammar import Round
from .shelf import Shelf

CATALOGUE = "catalogue"
GENERATORS = ("flag", "template", "file")
"""What the catalogue's candidates are called."""
UNSERVED = "no generator has a candidate"


class Maker(msgspec.Struct, frozen=True):
    """Who made the candidate, and the digest that it must have, where the page fixes it."""

    generator: str
    source: str | None


class Offers:
    """The offers of one attempt against the registered chain."""

    def __init__(
        self, run: RunRegistered, stream: str, incumbent: str, tried: Collection[str], shelf: Shelf, findings: Findings
    ) -> None:
        """`tried` are the sources that were tried on the incumbent: where the policy says so, none is offered again."""
        self._run, self._shelf, self._findings, self._incumbent = run, shelf, findings, incumbent
        self._tried = frozenset() if isinstance(run.policy.offers, UnsetType) else frozenset(tried)
        self._stream = stream
        self._chain = () if isinstance(run.generators, UnsetType) else run.generators

    def check(self, round_: Round) -> Maker | None:
        """Report what does not fit; who made the candidate, None where nobody of the chain beside the catalogue did."""
        made: Maker | None = None
        asked: GeneratorAsked | None = None
        place = -1
        for seq, event in round_.offers:
            with self._findings.derivation(seq, "generator"):
                self._findings.expect(seq, "round", round_.attempted.round, event.round, "round")
                firing = f"{self._stream}/{round_.attempted.round}.{round_.attempted.attempt}"
                self._findings.expect(seq, "generated source", firing, event.firing, "firing")
                if made is not None:
                    self._findings.add(seq, "generated source", f"the candidate of {made.generator}", event.generator)
                if isinstance(event, GeneratorAsked):
                    place = self._asked(seq, event, round_, place, asked)
                    asked, made = event, self._single(event, round_)
                else:
                    made, asked = self._swept(seq, event, asked), None
        if round_.interrupted is None:
            self._complete(round_)
        if made is None and asked is not None and asked.outcome == "made" and round_.interrupted is None:
            self._findings.add(round_.seq, "generated source", f"the candidate of {asked.generator}", "none")
        return made

    def _complete(self, round_: Round) -> None:
        """Everybody in the chain up to whom the candidate is from was asked: all, where it is from nobody."""
        due = [name for name in self._chain if name != CATALOGUE]
        if round_.generated is not None and round_.generated.generator != "start":
            by = CATALOGUE if round_.generated.generator in GENERATORS else round_.generated.generator
            at = self._chain.index(by) if by in self._chain else len(self._chain)
            due = [name for name in self._chain[: at + 1] if name != CATALOGUE]
        elif round_.unserved is None:
            return
        found = [event.generator for _, event in round_.offers if isinstance(event, GeneratorAsked)]
        if left_out := [name for name in due if name not in found]:
            self._findings.add(round_.seq, "generated source", f"{', '.join(left_out)} asked as well", found)

    def _asked(self, seq: int, event: GeneratorAsked, round_: Round, place: int, before: GeneratorAsked | None) -> int:
        expect = self._findings.expect
        expect(seq, "round", round_.attempted.attempt, event.attempt, "attempt")
        known = event.generator in self._chain and event.generator != CATALOGUE
        at = self._chain.index(event.generator) if known else -1
        if not known or at <= place:
            self._findings.add(seq, "generated source", f"the next generator of {self._chain}", event.generator)
        if before is not None and before.outcome == "made" and round_.interrupted is None:
            self._findings.add(seq, "generated source", f"the candidate of {before.generator}", "the next one asked")
        for number, exchange in enumerate(event.exchanges, start=1):
            expect(seq, "generated source", extract.status(exchange, self._shelf), exchange.status, f"answer {number}")
        if (event.sources > 0) != (event.outcome == "made") or event.sources < 0:
            self._findings.add(
                seq, "generated source", "sources where the outcome is made, and only there", event.sources
            )
        due = self._outcomes(event)
        if event.outcome not in due:
            self._findings.add(seq, "generated source", f"an outcome of {', '.join(due)}", event.outcome)
        if event.outcome == "unavailable" and round_.interrupted is None:
            self._findings.add(
                seq, "order of events", "RoundInterrupted after an endpoint that is unavailable", "a round"
            )
        return max(at, place)

    def _outcomes(self, event: GeneratorAsked) -> tuple[str, ...]:
        """Those that the last exchange leaves open."""
        if not event.exchanges:
            return "made", "declined", "repeated", "unavailable"
        last = event.exchanges[-1].status
        if last == "code":
            return "made", "repeated"
        return ("no_answer",) if last in extract.FRUITLESS else ("unavailable",)

    def _single(self, event: GeneratorAsked, round_: Round) -> Maker | None:
        """The maker of one source, which no sweep follows."""
        if event.outcome != "made" or event.sources > 1 or round_.fired is None:
            return None
        answer = event.exchanges[-1].answer if event.exchanges else None
        if answer is None:
            return Maker(event.generator, None)
        text = extract.source(self._shelf.text(answer))
        return Maker(event.generator, "" if text is None else hashlib.sha256(text.encode()).hexdigest())

    def _swept(self, seq: int, event: SourcesSwept, asked: GeneratorAsked | None) -> Maker | None:
        expect = self._findings.expect
        offered = None if asked is None or asked.outcome != "made" else asked.generator
        expect(seq, "sweep", offered, event.generator, "generator that made the sources")
        expect(seq, "sweep", None if asked is None else asked.sources, len(event.sources), "number of sources")
        fit = len(event.sources) > 1 and len(set(event.sources)) == len(event.sources)
        if not fit or self._incumbent in event.sources:
            self._findings.add(seq, "sweep", "two or more sources, all different, none the incumbent", event.sources)
        expect(seq, "sweep", [], sorted(self._tried.intersection(event.sources)), "sources tried before")
        sweep = self._shelf.json(event.samples, Sweep)
        if expect(seq, "sweep", len(event.sources), len(sweep.samples), "sources"):
            expect(seq, "sweep", best(sweep, self._run.statistics.margin), event.chosen, "chosen")
        chosen = event.chosen
        if chosen is None or not 0 <= chosen < len(event.sources):
            return None
        return Maker(event.generator, event.sources[chosen])

    def unserved(self, seq: int, event: PrescriptionUnserved, round_: Round, made: Maker | None) -> None:
        """The end of a round without a candidate names its firing; a candidate, or no chain to ask, forbids it."""
        fired, expect = round_.fired, self._findings.expect
        if not self._chain or made is not None:
            self._findings.add(seq, "generated source", "a candidate", "PrescriptionUnserved")
        if fired is not None:
            due = (fired.firing, fired.rule, fired.rule_version, fired.prescription, self._incumbent)
            found = (event.firing, event.rule, event.rule_version, event.prescription, event.incumbent)
            expect(seq, "round", due, found, "firing, rule, version, prescription, incumbent")
        expect(seq, "round", (round_.attempted.round, round_.attempted.attempt), (event.round, event.attempt), "round")
        expect(seq, "round", UNSERVED, event.reason, "reason")

    def fits(self, generated: KernelGenerated, fired: RuleFired, made: Maker | None, round_: Round) -> str | None:
        """What KernelGenerated should say of its generator instead; None where it fits."""
        generator, variant = generated.generator, generated.variant
        asked, _, file = variant.partition(":")
        if generator in GENERATORS:
            after = [e.generator for _, e in round_.offers if e.generator in self._chain]
            late = bool(self._chain) and (
                CATALOGUE not in self._chain
                or any(self._chain.index(name) > self._chain.index(CATALOGUE) for name in after)
            )
            named = asked == fired.prescription and (generator == "flag") == (variant == asked)
            if made is not None or late or not named or not (generator == "flag" or file):
                return _due(fired, made)
            return None
        if made is None or made.generator != generator or variant != f"{fired.prescription}:{generator}":
            return _due(fired, made)
        if generated.source in self._tried:
            return "a source that was not tried on this incumbent before"
        return None


def best(sweep: Sweep, margin: float) -> int | None:
    """The first list whose lower median is within the margin of the smallest; None where none ran."""
    medians = [(statistic.lower_median(s), i) for i, s in enumerate(sweep.samples) if s]
    limit = min(medians, default=(0, 0))[0] * (1 + margin)
    return next((i for time, i in medians if time <= limit), None)


def _due(fired: RuleFired, made: Maker | None) -> str:
    if made is not None:
        return f"{made.generator} {fired.prescription}:{made.generator}"
    return f"flag {fired.prescription}, template or file {fired.prescription}:<file>"
