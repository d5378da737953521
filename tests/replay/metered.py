"""The made-up world with a meter, and runs whose verdicts are by energy or heat: honest but for one lie about candidates with a dot.

The writing side's own code derives the recorded verdicts, so each such ledger also holds the verifier against it.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from gpusolver.events.model import Heat, Objective, Stage
from gpusolver.events.writer import LedgerWriter
from gpusolver.profilers import artifacts as shapes

from .bounded import BoundedForge, BoundedWorld

ENERGY = Objective(by="energy", bound=2.0)
HEAT = Heat(calls_per_s=2000.0, idle_w=75.0, stages=(Stage(k_per_w=0.02, tau_s=0.001), Stage(k_per_w=0.05, tau_s=2.0)))
THERMAL = Objective(by="thermal", bound=2.0, heat=HEAT)
"""500 us a period, which the first stage follows and the second does not."""
BATCH_MS = 300
LIES = {
    "dark": "no energies",
    "sluggish": "over the latency bound",
    "lazy": "below physical floor",
    "no wall": "no wall clock",
    "crowded": "the incumbent was slower beside the candidate than alone",
    "late": "the wall clock does not confirm it",
    "busy": "the counters do not confirm it",
    "wrong pair": "wrong while timed",
}
"""What a candidate with a dot may do, and the reason of its round under either objective."""
HOT_LIES = LIES | {"behind": "too slow for the call rate"}


class MeteredWorld(BoundedWorld):
    """Scalar kernels draw 300 W (300 us: 90 mJ a call), tiles 600 W (90 us: 54 mJ), in TF32 1600 W (45 us: 72 mJ)."""

    def __init__(self, lie: str = "", seed: int = 1, tiles_w: int = 600, noise: int = 1000) -> None:
        """`tiles_w`: what tiles draw; batches stray by one part in `noise`."""
        super().__init__(lie)
        self._random.seed(seed)
        self._tiles_w, self._noise = tiles_w, noise

    def watts(self, text: str) -> int:
        if "dot(" not in text:
            return 300
        if self.lies(text, "sluggish", "behind"):
            return 80
        return 1600 if "tf32" in text else self._tiles_w

    def true_ns(self, text: str) -> int:
        return 700_000 if self.lies(text, "sluggish") else super().true_ns(text)

    def samples(self, left: str, right: str, blocks: int) -> tuple[str, shapes.Samples]:
        name, made = super().samples(left, right, blocks)
        del self.blobs[name]
        if not self.lies(right, "dark"):
            energy = tuple(
                (self.batch(left), self.batch(right), self.batch(right), self.batch(left)) for _ in range(blocks)
            )
            made = replace(made, energy=energy)
        return self.keep_json(made), made

    def batch(self, text: str) -> shapes.Batch:
        """As many calls as fit, at a power that is a thousandth off at most."""
        us = 510 if self.lies(text, "behind") else self.true_ns(text) / 1000
        calls = round(BATCH_MS * 1000 / us) * (1000 if self.lies(text, "lazy") else 1)
        drawn = self.watts(text) * BATCH_MS
        stray = self._random.randint(-drawn // self._noise, drawn // self._noise)
        return shapes.Batch(millijoules=drawn + stray, calls=calls, milliseconds=BATCH_MS)


class MeteredForge(BoundedForge):
    """Writes a run with an objective, which has no claims."""

    def __init__(
        self, ledger: LedgerWriter, world: MeteredWorld, objective: Objective, looks: tuple[int, ...] | None = None
    ) -> None:
        super().__init__(ledger, world, looks)
        statistics = replace(self.registered.statistics, objective=objective)
        self.registered = replace(self.registered, statistics=statistics, claims=())


def forge_metered(
    path: Path,
    objective: Objective = ENERGY,
    lie: str = "",
    looks: tuple[int, ...] | None = None,
    world: MeteredWorld | None = None,
) -> Path:
    """A whole ledger with an objective at `path`."""
    with LedgerWriter(path, clock=lambda: "2026-01-01T00:00:00.000Z") as ledger:
        MeteredForge(ledger, world or MeteredWorld(lie), objective, looks).all()
    return path
