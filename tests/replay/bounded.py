"""The made-up world of world.py with registered bounds: outputs while timed, a watch, active cycles, and one lie at a time.

The writing side's own code derives the recorded verdicts, so each such ledger also holds the verifier against it.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from gpusolver.events.artifacts import digest
from gpusolver.events.model import Bounds, Cell, Event, KernelGated, NoiseFloorMeasured, RuleFired
from gpusolver.events.writer import LedgerWriter
from gpusolver.profilers import artifacts as shapes
from gpusolver.profilers.verdicts import Judgement, is_final, judge
from gpusolver.profilers.witnesses import Witnesses, alone_ns, busy_ns, per_call

from .forge import Forge
from .world import CHIP, PROBLEM, World

BOUNDS = Bounds(alone=0.02, wall_slack_ns=2000, busy=0.9)
CALLS = 16
OVERHEAD_NS = 5000
CLOCK_GHZ = 2
"""Of the limits in exam_world.py's calibration."""
RIGHT = shapes.OutputErrors(rel_l2=4e-4, max_rms=4e-3, nonfinite=0)
APART = shapes.OutputErrors(rel_l2=1.5e-3, max_rms=1.5e-2, nonfinite=0)
"""Two outputs may be this far apart, though neither may be as far from the reference."""
WRONG = shapes.OutputErrors(rel_l2=0.5, max_rms=0.5, nonfinite=0)
DOUBTS = {
    "no wall": "no wall clock",
    "crowded": "the incumbent was slower beside the candidate than alone",
    "slow alone": "not faster than the incumbent alone",
    "late": "the wall clock does not confirm it",
    "busy": "the counters do not confirm it",
    "wrong pair": "wrong while timed",
    "wrong end": "wrong while timed",
    "no outputs": "wrong while timed",
}
"""What a candidate with a dot may do, and the reason of its round."""
GATES = {"flaky": "nondeterministic", "tired": "wrong_later", "narrow": "wrong_result"}
"""The same for its gate."""


class BoundedWorld(World):
    """Honest but for one lie about candidates with a dot."""

    def __init__(self, lie: str = "") -> None:
        super().__init__()
        self.lie = lie

    def lies(self, text: str, *about: str) -> bool:
        return "dot(" in text and self.lie in about

    def samples(self, left: str, right: str, blocks: int) -> tuple[str, shapes.Samples]:
        name, made = super().samples(left, right, blocks)
        del self.blobs[name]
        if left != right and self.lies(right, "crowded"):
            made = replace(made, blocks=tuple((a * 11 // 10, b, c, d * 11 // 10) for a, b, c, d in made.blocks))
        if left != right and self.lies(right, "slow alone"):
            # Beside the candidate the incumbent takes a little more than alone, and the candidate no less than that.
            times = [self.noisy(left) for _ in range(blocks)]
            made = replace(made, blocks=tuple((t * 1015 // 1000, t + 99, t + 99, t * 1015 // 1000) for t in times))
        if not self.lies(right, "no outputs"):
            made = replace(made, outputs=self.outputs(right, blocks))
        return self.keep_json(made), made

    def outputs(self, right: str, blocks: int) -> shapes.TimedOutputs:
        pair = WRONG if self.lies(right, "wrong pair") else APART
        end = WRONG if self.lies(right, "wrong end") else RIGHT
        return shapes.TimedOutputs(pairs=(APART,) * (2 * blocks - 1) + (pair,), ends=((RIGHT, RIGHT), (RIGHT, end)))

    def counters(self, text: str) -> tuple[str, shapes.Counters]:
        name, made = super().counters(text)
        del self.blobs[name]
        cycles = self.true_ns(text) * CLOCK_GHZ * (2 if self.lies(text, "busy") else 1)
        made = replace(made, metrics=made.metrics | {"sm__cycles_active.avg": cycles})
        return self.keep_json(made), made

    def report(self, text: str, seed: int) -> tuple[str, shapes.Report]:
        name, made = super().report(text, seed)
        del self.blobs[name]
        plain = made.draws[0]
        eager = replace(RIGHT, rel_l2=3e-4)
        large = replace(plain, kind="large", eager=eager, rel_l2=2.5e-3 if self.lies(text, "narrow") else 2.3e-3)
        unasked = replace(plain, kind="denormal", eager=replace(eager, nonfinite=2), nonfinite=7, rel_l2=None)
        made = replace(
            made,
            draws=(*made.draws, large, unasked),
            repeats=(RIGHT, WRONG if self.lies(text, "flaky") else RIGHT),
            wall=None if self.lies(text, "no wall") else self.wall(text),
        )
        return self.keep_json(made), made

    def wall(self, text: str) -> shapes.Wall:
        ns = self.true_ns(text) + OVERHEAD_NS + (500_000 if self.lies(text, "late") else 0)
        outputs = (RIGHT,) * (CALLS - 1) + (WRONG if self.lies(text, "tired") else RIGHT,)
        return shapes.Wall(calls=CALLS, ns=CALLS * ns, outputs=outputs)


class BoundedForge(Forge):
    """Writes a run whose registration has bounds, and remembers what a verdict is held against."""

    def __init__(self, ledger: LedgerWriter, world: BoundedWorld, looks: tuple[int, ...] | None = None) -> None:
        super().__init__(ledger, world, repetitions=1, looks=looks, second=True)
        self.registered = replace(self.registered, statistics=replace(self.registered.statistics, bounds=BOUNDS))
        self._alone: dict[tuple[Cell, str], shapes.Samples] = {}
        self._walls: dict[tuple[Cell, str], float | None] = {}
        self._pair = ("", "")

    def gate(self, cell: Cell, text: str, round_: int, attempt: int) -> tuple[KernelGated, str]:
        event, listed = super().gate(cell, text, round_, attempt)
        if event.outcome == "passed":
            report = shapes.decode(shapes.Report, self.world.blobs[event.report])
            self._walls[cell, event.source] = per_call(report)
        return event, listed

    def floor(self, cell: Cell, text: str, round_: int, name: str, samples: shapes.Samples) -> NoiseFloorMeasured:
        self._alone[cell, digest(text.encode())] = samples
        return super().floor(cell, text, round_, name, samples)

    def measured(self, cell: Cell, text: str, against: str, round_: int) -> tuple[str, shapes.Samples]:
        """All blocks, or those of the first look that stands with the outputs that there were by then: the last end is the last look's."""
        statistics = self.registered.statistics
        if round_ == 0 or statistics.looks is UNSET:
            return super().measured(cell, text, against, round_)
        name, whole = self.world.samples(against, text, statistics.blocks)
        del self.world.blobs[name]
        floor, seen = self.states[cell].floors[digest(against.encode())], whole
        for number in statistics.looks:
            outputs = whole.outputs
            if outputs is not None and number < statistics.blocks:
                outputs = replace(outputs, pairs=outputs.pairs[: 2 * number], ends=outputs.ends[:1])
            seen = replace(whole.until(number), outputs=outputs)
            if is_final(self.judgement(cell, "passed", False, seen, floor)):
                break
        return self.world.keep_json(seen), seen

    def judged(self, cell: Cell, fired: RuleFired, text: str, incumbent: str, events: list[Event]) -> list[Event]:
        self._pair = (incumbent, text)
        return super().judged(cell, fired, text, incumbent, events)

    def judgement(
        self, cell: Cell, outcome: str, inert: bool, samples: shapes.Samples | None, floor: float
    ) -> Judgement:
        before, after = (digest(text.encode()) for text in self._pair)
        return judge(
            outcome=outcome,
            inert=inert,
            samples=samples,
            fault="made-up fault",
            problem=PROBLEM,
            contract=cell.contract,
            chip=CHIP,
            statistics=self.registered.statistics,
            noise_floor=floor,
            witnesses=Witnesses(
                alone=alone_ns(self._alone[cell, before]),
                fastest=min(alone_ns(samples) for (of, _), samples in self._alone.items() if of == cell),
                walls=(self._walls.get((cell, before)), self._walls.get((cell, after))),
                busy=busy_ns(self.world.counters(self._pair[1])[1], self.calibration()),
            ),
        )


def forge_bounded(path: Path, lie: str = "", looks: tuple[int, ...] | None = None) -> Path:
    """A whole ledger with bounds at `path`."""
    with LedgerWriter(path, clock=lambda: "2026-01-01T00:00:00.000Z") as ledger:
        BoundedForge(ledger, BoundedWorld(lie), looks).all()
    return path
