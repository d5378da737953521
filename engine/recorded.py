"""Executor that answers from the artifacts of a recorded ledger and refuses what it has not seen. Measures nothing."""

from __future__ import annotations

import pathlib
from collections import defaultdict
from collections.abc import Sequence

import msgspec
from msgspec import UnsetType

from ..events.artifacts import digest
from ..events.errors import BadInput
from ..events.model import Cell, Event, Origin, Policy, RunRegistered, Statistics
from ..problems.sources import config_of
from .executor import Observation, Question
from .recording import Key, Recorded, Recording, cell_of, compare_key, extra_key, keys_of, sources_key, sweep_key

_BLOB_FIELDS = (("application/x-cubin", "code"), ("text/x-ttir", "ttir"))


class RecordedExecutor:
    """Answers a cell's questions with what the same cell measured: same pair, purpose and occurrence, or not at all."""

    name = "recorded"

    def __init__(self, path: pathlib.Path) -> None:
        self._recording = Recording(path)
        self._used: dict[tuple[Cell, Key], int] = defaultdict(int)
        self._run = next(iter(self._recording.registrations))
        self.origin: Origin | None = self._recording.origin

    def facts(self) -> dict[str, str]:
        """The environment that the measurements were made in."""
        return self._recording.registrations[self._run].environment

    def check(self, registration: RunRegistered) -> None:
        """BadInput, before anything is written, for a plan that goes beyond the recording, or differs from what it measured."""
        known = self._recording.home
        missing = [cell for cell in registration.plan if cell not in known]
        if missing:
            raise self._refusal(f"cell {_words(missing[0])}", "one of its recorded cells", self._list())
        self._run = known[registration.plan[0]]
        for run in {known[cell] for cell in registration.plan}:
            self._same(registration, self._recording.registrations[run])

    def calibrate(self) -> Observation:
        """The calibration of the run that measured the plan's first cell."""
        return self._observation(self._recording.calibrations[self._run])

    def gate(self, question: Question, source: str) -> Observation:
        """The recorded gate report of this source."""
        return self._answer(question, ("gate", _digest(source)))

    def statistics(self) -> Statistics | None:
        """Those that the recorded run registered: its samples were taken for their looks and their blocks."""
        return self._recording.registrations[self._run].statistics

    def policy(self) -> Policy | None:
        """The recorded run's: another order of asking would ask for pairs that were never measured."""
        return self._recording.registrations[self._run].policy

    def compare(self, question: Question, left: str, right: str, blocks: int, first: int = 0) -> Observation:
        """Recorded samples of this ordered pair, the blocks of all looks at once."""
        return self._answer(question, compare_key(question.purpose, _digest(left), _digest(right)))

    def sweep(self, question: Question, template: str, sources: tuple[str, ...]) -> Observation:
        """The recorded sweep of this template over these configurations, or of these sources where there is no template."""
        if not template:
            return self._answer(question, sources_key(tuple(_digest(source) for source in sources)))
        return self._answer(question, sweep_key(_digest(template), tuple(config_of(source) for source in sources)))

    def count(self, question: Question, source: str, metrics: tuple[str, ...]) -> Observation:
        """Recorded counters of this source."""
        return self._answer(question, ("count", _digest(source)))

    def extra(self, question: Question, source: str, role: str) -> Observation:
        """The recorded extra of this source; `extra_unrecorded` where there is none."""
        key = extra_key(role, _digest(source))
        if self._used[(question.cell, key)] >= len(self._recording.answers(question.cell, key)):
            return Observation(status="extra_unrecorded", text=f"the recording holds no {role} of this kernel")
        return self._answer(question, key)

    def ncu(self, asked: Sequence[tuple[Question, str]], metrics: tuple[str, ...]) -> list[Observation]:
        """A recorded run holds none."""
        return [Observation(status="ncu_unrecorded", text="a recording holds no Nsight Compute run") for _ in asked]

    def resume(self, events: list[Event]) -> None:
        """Count the answers that a resumed ledger already holds, so that the next occurrence follows them."""
        for event in events:
            cell = cell_of(event)
            for key, _ in keys_of(event):
                if cell is not None:
                    self._used[(cell, key)] += 1

    def close(self) -> None:
        """Close the recording."""
        self._recording.reader.close()

    def _answer(self, question: Question, key: Key) -> Observation:
        found, turn = self._recording.answers(question.cell, key), self._used[(question.cell, key)]
        if turn >= len(found):
            what = f"{key[0]} ({question.purpose}) number {turn + 1} of {_words(question.cell)}"
            raise self._refusal(what, "a recorded measurement", f"{len(found)} of these two kernels")
        self._used[(question.cell, key)] += 1
        return self._observation(found[turn])

    def _observation(self, recorded: Recorded) -> Observation:
        if recorded.status != "ok":
            return Observation(status=recorded.status, text="as recorded", origin_seq=recorded.seq)
        artifacts = {role: self._recording.reader.artifact(value) for role, value in recorded.digests.items()}
        return Observation(status="ok", artifacts=artifacts, blobs=self._blobs(artifacts), origin_seq=recorded.seq)

    def _blobs(self, artifacts: dict[str, bytes]) -> tuple[tuple[str, bytes], ...]:
        """Machine code and IR that a launch list refers to."""
        if "launches" not in artifacts:
            return ()
        kernels = msgspec.json.decode(artifacts["launches"])["kernels"]
        named = [(media, k[field]) for k in kernels for media, field in _BLOB_FIELDS if k.get(field)]
        return tuple((media, self._recording.reader.artifact(value)) for media, value in dict.fromkeys(named))

    def _same(self, asked: RunRegistered, recorded: RunRegistered) -> None:
        """The problems, inputs and statistics of a recorded run are those that the new run registers."""
        digests = {problem.name: problem.digest for problem in recorded.problems}
        planned = {cell.problem for cell in asked.plan}
        for problem in asked.problems:
            if problem.name in planned and digests.get(problem.name, problem.digest) != problem.digest:
                raise self._refusal(
                    f"problem {problem.name}", f"files of digest {digests[problem.name][:12]}", problem.digest[:12]
                )
        if asked.seed != recorded.seed:
            raise self._refusal("--seed", str(recorded.seed), str(asked.seed))
        if asked.max_rounds > recorded.max_rounds:
            raise self._refusal("--rounds", f"at most {recorded.max_rounds}", str(asked.max_rounds))
        if asked.generators != recorded.generators:
            raise self._refusal("--generators", _chain(recorded), _chain(asked))
        if asked.policy.offers != recorded.policy.offers:
            raise self._refusal("--offers", _offers(recorded), _offers(asked))
        if not _within(asked.comparisons, recorded.comparisons):
            raise self._refusal("--comparisons", _compared(recorded), _compared(asked))
        if asked.statistics != recorded.statistics:
            raise self._refusal("statistics", str(recorded.statistics), str(asked.statistics))

    def _refusal(self, what: str, expected: str, found: str) -> BadInput:
        return BadInput(
            f"recording {self._recording.path}: {what}: expected {expected}, found {found}. "
            "A recording answers only what was measured; --device cuda measures anew."
        )

    def _list(self) -> str:
        """The recorded cells, by problem, for people."""
        found: dict[str, set[str]] = defaultdict(set)
        for cell in self._recording.home:
            found[f"{cell.problem} {cell.contract} pool {cell.pool}"].add(f"{cell.arm} #{cell.repetition}")
        return "none such; it has " + "; ".join(
            f"{place}: {', '.join(sorted(cells))}" for place, cells in found.items()
        )


def _chain(registered: RunRegistered) -> str:
    return "catalogue" if registered.generators is msgspec.UNSET else ",".join(registered.generators)


def _offers(registered: RunRegistered) -> str:
    return "always" if registered.policy.offers is msgspec.UNSET else registered.policy.offers


def _within(asked: tuple[str, ...] | UnsetType, recorded: tuple[str, ...] | UnsetType) -> bool:
    """Whether every comparison that is asked for was one to be made in the recording; UNSET is all that are due."""
    if isinstance(recorded, UnsetType):
        return True
    return not isinstance(asked, UnsetType) and set(asked) <= set(recorded)


def _compared(registered: RunRegistered) -> str:
    listed = registered.comparisons
    return "all" if isinstance(listed, UnsetType) else ",".join(listed) or "none"


def _words(cell: Cell) -> str:
    return f"{cell.problem} {cell.contract} pool {cell.pool} arm {cell.arm} #{cell.repetition}"


def _digest(source: str) -> str:
    return digest(source.encode())
