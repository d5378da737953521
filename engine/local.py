"""Executor on this machine's GPU, through worker processes. A lost worker is replaced; the loss is an observation."""

from __future__ import annotations

import fcntl
import os
import pathlib
import tempfile
from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from ..events.errors import BadInput, ToolFailed
from ..events.model import Event, Origin, Policy, RunRegistered, Statistics
from ..profilers.metrics import CHIPS
from .executor import Observation, Question
from .recording import FAULTS
from .refereed import Bout, Fault, observed
from .worker import ncu_batch
from .worker.protocol import Calibrate, Count, Extra, FindMeter, Message, Subject

LIMITS_S = {"calibrate": 120.0, "gate": 180.0, "compare": 120.0, "sweep": 300.0, "count": 60.0, "extra": 120.0}
NCU_START_S, NCU_EACH_S = 60.0, 40.0
METERED_S = 8.0
"""Four windows a block, of a second and a half at most, and what lies between them."""
SWEEP_SAMPLES = 21


class LocalExecutor:
    """Measures on one device. `device` is `cuda`, or `cpu` for tests of the machinery (its times mean nothing)."""

    name = "local"
    origin: Origin | None = None

    def __init__(self, device: str = "cuda", index: int = 0, limits_s: dict[str, float] | None = None) -> None:
        self._device = device
        self._bout = Bout(device, index)
        self._limits = {**LIMITS_S, **(limits_s or {})}
        self._facts = self._bout.facts
        try:
            self._lock = _device_lock(self._facts.get("uuid", f"{device}-{os.getpid()}"))
        except ToolFailed:
            self._bout.close()
            raise

    def facts(self) -> dict[str, str]:
        """Environment of the workers."""
        return self._facts

    @property
    def worker_pid(self) -> int | None:
        """Process id of the worker that runs candidates now."""
        return self._bout.arms.pid

    def check(self, registration: RunRegistered) -> None:
        """Whatever can be registered can be measured, but for energies where there is no meter: BadInput."""
        objective = registration.statistics.objective
        if isinstance(objective, UnsetType):
            return
        try:
            self._bout.referee(FindMeter())
        except Fault as fault:
            said = (fault.reply.text.strip().splitlines() or [""])[-1]
            raise BadInput(
                f"--objective {objective.by}: expected a device whose energy can be read (NVML, pip install nvidia-ml-py), found {said}. "
                "Leave --objective out to decide by latency."
            ) from fault

    def calibrate(self) -> Observation:
        """Ceilings of the device, by the referee: no candidate may have touched the process that finds them."""
        self._bout.arms.settle()
        try:
            return observed(self._bout.referee(Calibrate(), self._limits["calibrate"]))
        except Fault as fault:
            return observed(fault.reply)

    def gate(self, question: Question, source: str) -> Observation:
        """A worker that dies or hangs under a candidate is that candidate's outcome, told as a report."""
        return self._bout.gate(self._subject(question), source, self._limits["gate"])

    def statistics(self) -> Statistics | None:
        """Free to choose."""
        return None

    def policy(self) -> Policy | None:
        """None: a run here may evolve as it likes."""
        return None

    def compare(self, question: Question, left: str, right: str, blocks: int, first: int = 0) -> Observation:
        """ABBA samples of two sources; each block has inputs of its own."""
        subject, limit_s = self._subject(question), self._limits["compare"]
        if question.energy:
            limit_s += METERED_S * blocks
        return self._bout.compare(subject, question.purpose, left, right, blocks, first, limit_s, question.energy)

    def sweep(self, question: Question, template: str, sources: tuple[str, ...]) -> Observation:
        """Samples of every configuration, taken in turn."""
        limit_s = self._limits["sweep"]
        return self._bout.sweep(self._subject(question), question.purpose, sources, SWEEP_SAMPLES, limit_s)

    def count(self, question: Question, source: str, metrics: tuple[str, ...]) -> Observation:
        """Hardware counters over one call."""
        return self._ask("count", source, Count(subject=self._subject(question), source=source, metrics=metrics))

    def extra(self, question: Question, source: str, role: str) -> Observation:
        """An extra measurement; a fault of any kind under it is `extra_failed`, for no verdict waits for it."""
        seen = self._ask("extra", source, Extra(subject=self._subject(question), source=source, role=role))
        if seen.status == "ok" or seen.status.startswith("extra_"):
            return seen
        return Observation(status="extra_failed", text=f"{seen.status}: {seen.text}")

    def ncu(self, asked: Sequence[tuple[Question, str]], metrics: tuple[str, ...]) -> list[Observation]:
        """One ncu process over all of them. The workers end first: one may hold the card's counters; the next question starts others."""
        if self._device == "cpu":
            return [Observation(status="ncu_unsupported", text="the CPU stand-in has no counters") for _ in asked]
        self._bout.arms.close(after=[source for _, source in asked])
        requests = [Count(subject=self._subject(each), source=source, metrics=metrics) for each, source in asked]
        chip = CHIPS.get(self._facts["compute_capability"], "")
        limit_s = NCU_START_S + NCU_EACH_S * len(requests)
        environment = self._bout.server.environment()
        replies = ncu_batch.collect(requests, metrics, chip, limit_s, environment) if requests else []
        return [observed(reply) for reply in replies]

    def resume(self, events: list[Event]) -> None:
        """Nothing to note: every measurement is a new one."""

    def close(self) -> None:
        """End the workers and free the card."""
        self._bout.close()
        os.close(self._lock)

    def _subject(self, question: Question) -> Subject:
        # The CPU stand-in interprets kernels, so it takes the problem's small sizes.
        shape = question.problem.small if self._device == "cpu" else question.problem.shape
        mixed = question.problem.mixed_limits is not UNSET
        tossed = question.problem.mixed_inputs
        return Subject(
            reference=question.problem.reference,
            shape=shape,
            seed=question.seed,
            mixed=mixed,
            tossed=tossed,
            eager=question.problem.eager,
        )

    def _ask(self, stage: str, source: str, message: Message) -> Observation:
        worker = self._bout.arms.beside(source)
        self._bout.arms.settle()
        reply = worker.ask(message, self._limits[stage])
        if reply.status in FAULTS:  # what a source has done to its process may be why: that one is asked nothing more
            worker.kill()
        return observed(reply)


def _device_lock(uuid: str) -> int:
    """One measuring process a card: two would spoil each other's times. Freed by the system when the process ends."""
    path = pathlib.Path(tempfile.gettempdir()) / f"gpusolver-{uuid}.lock"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError:
        raise ToolFailed(
            f"{path}: expected to lock the device, found another user's lock file. Remove it, or set TMPDIR."
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise ToolFailed(
            f"device {uuid}: expected to measure alone, found another gpusolver on it ({path}). Wait for it."
        ) from None
    return handle
