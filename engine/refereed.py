"""A candidate's gate and its timed calls, with the referee holding inputs and answers. Returns what was observed and judges nothing."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from .arms import Arms
from .executor import Observation
from .fork_client import ForkClient
from .placeless import placeless
from .samples import together
from .worker.protocol import Asked, Call, Check, Compare, Gate, Message, Reply, Stage, Staged, Subject, Sweep
from .worker_process import WorkerProcess, usable

PLAIN_DRAWS, REPEATS = 2, 4
PROPERTIES, MIXED = ("large", "small", "one_sign", "denormal"), "mixed_signs"
WALL_CALLS, WALL_LEAST, WALL_FIRST = 16, 8, 500
REFEREE_LIMIT_S = 120.0
SPARES, CORES_A_SPARE = 5, 3
"""At most so many stand by, and no more than there are cores for: each takes one or two while it warms up. Five, so that where candidates come
in pairs it is not always the same of the two that waits for new ones."""

ALONE_S = 60.0
"""What one source of a sweep may take alone, where some end their process: all of them together have a few minutes."""
LOST = ("timeout", "worker_lost")
DEADLY = (*LOST, "context_lost")
Row = dict[str, Any]


class Fault(Exception):
    """A request that was not answered well: `reply` says how."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.text)
        self.reply = reply


class RefereeFault(Fault):
    """The referee did not answer well: no candidate is to blame."""


class Bout:
    """One referee and the workers that it watches, on one device. The referee runs no candidate."""

    def __init__(self, device: str, index: int) -> None:
        self.server = ForkClient(device, index)
        self._device = device
        self._referee = WorkerProcess(self.server)
        self.facts = usable(self._referee.hello(), device)
        self.arms = Arms(self.server, spares=_spares(device))

    def close(self) -> None:
        """End every process."""
        self.arms.close()
        self._referee.kill()
        self.server.close()

    def referee(self, message: Message, limit_s: float = REFEREE_LIMIT_S) -> Reply:
        """The referee's answer. Raises Fault; a lost referee is replaced for the next request."""
        if self._referee.pid is None:
            self._referee = WorkerProcess(self.server)
        reply = self._referee.ask(message, limit_s)
        if reply.status != "ok":
            # The worker may be well, and still is not to blame.
            status = "request_failed" if reply.status in LOST else reply.status
            raise RefereeFault(Reply(status=status, text=f"referee: {reply.status}: {reply.text}"))
        return reply

    def staged(self, subject: Subject, draws: Sequence[Asked], at_least: int = 1) -> Iterator[Staged]:
        """The draws, batch by batch, as many at a time as the arena holds."""
        left = list(draws)
        while left:
            made = self.referee(Stage(subject=subject, draws=tuple(left), at_least=at_least)).staged
            if made is None or not made.draws:
                raise RefereeFault(Reply(status="request_failed", text="the referee staged nothing"))
            left = left[len(made.draws) :]
            yield made

    def checked(self, subject: Subject, against: str) -> Row:
        """Errors of what lies in the places of the last batch."""
        reply = self.referee(Check(subject=subject, against=against))
        found: Row = msgspec.json.decode(reply.artifacts["errors"])
        return found

    # --- gate -------------------------------------------------------------------------------------------------------

    def gate(self, subject: Subject, source: str, limit_s: float) -> Observation:
        """Artifacts `report` and, where the kernel ran, `launches`. A worker that dies or hangs is the candidate's outcome."""
        try:
            source.encode()
        except UnicodeEncodeError as error:
            return Observation(status="ok", artifacts={"report": _failed(subject.seed, "load_error", str(error))})
        began = time.perf_counter_ns()
        worker = self.arms.alone({source})
        try:
            return self._gated(worker, subject, source, limit_s, began)
        except RefereeFault as fault:
            return observed(fault.reply)
        except Fault as fault:
            # A process in which nothing works any more was brought to that by its candidate.
            outcome = fault.reply.status if fault.reply.status in LOST else "run_error"
            return Observation(status="ok", artifacts={"report": _failed(subject.seed, outcome, fault.reply.text)})

    def _gated(self, worker: WorkerProcess, subject: Subject, source: str, limit_s: float, began: int) -> Observation:
        asked = [Asked(index=i, outputs=1 + (REPEATS if i == 0 else 0)) for i in range(PLAIN_DRAWS)]
        kinds = (*PROPERTIES, *((MIXED,) if subject.mixed else ()))
        asked += [Asked(index=PLAIN_DRAWS + i, kind=kind) for i, kind in enumerate(kinds)]
        rows: list[Row] = []
        first: Reply | None = None
        whole: Row = {}
        first_ns = 0
        for staged in self.staged(subject, asked):
            reply = _ok(worker.ask(Gate(source=source, staged=staged, repeats=REPEATS), limit_s))
            seen: Row = msgspec.json.decode(reply.artifacts["rows"])
            if seen["error"] is not None:
                error = seen["error"]
                return Observation(
                    status="ok", artifacts={"report": _failed(subject.seed, str(error["outcome"]), str(error["text"]))}
                )
            found = self.checked(subject, "reference")
            rows += [_row(one, its) for one, its in zip(seen["draws"], found["draws"], strict=True)]
            if first is None:
                first, whole = reply, {**found, "repeats": found["draws"][0]["outputs"][1:]}
                first_ns = seen.get("first_ns", 0)
        assert first is not None
        content = {
            "error": None,
            "seed": subject.seed,
            "draws": rows,
            "trivial": whole["trivial"],
            "repeats": whole["repeats"],
            "repeat_equal": whole["repeat_equal"],
            "expected": whole["expected"],
            "wall": self._wall(worker, subject, source, limit_s),
        }
        spent = time.perf_counter_ns() - began
        content |= {"first_ns": min(max(first_ns, 0), spent), "spent_ns": spent}
        artifacts = {"report": msgspec.json.encode(content), "launches": first.artifacts["launches"]}
        return Observation(status="ok", artifacts=artifacts, blobs=first.blobs)

    def _wall(self, worker: WorkerProcess, subject: Subject, source: str, limit_s: float) -> Row:
        """Calls and nanoseconds by our own watch, of calls whose answers are checked: in this process nobody else's watch is believed.

        What a first call costs (new memory is opened: 2 to 200 ms by its size) is none of the kernel's, so one goes before the watch. It
        has a batch of its own: what lies beside its inputs is gone when the watch begins.
        """
        self.arms.settle()
        first, watched = (
            [Asked(index=begin + i) for i in range(WALL_CALLS)] for begin in (WALL_FIRST + WALL_CALLS, WALL_FIRST)
        )
        staged = next(self.staged(subject, first, at_least=WALL_LEAST))
        one = replace(staged, draws=staged.draws[:1])
        _ok(worker.ask(Call(source=source, staged=one, place=0), limit_s))
        staged = next(self.staged(subject, watched, at_least=WALL_LEAST))
        call = Call(source=source, staged=staged, place=0)
        began = time.perf_counter_ns()
        _ok(worker.ask(call, limit_s))
        spent = time.perf_counter_ns() - began
        found = self.checked(subject, "reference")
        return {"calls": len(staged.draws), "ns": spent, "outputs": [row["outputs"][0] for row in found["draws"]]}

    # --- times ------------------------------------------------------------------------------------------------------

    def compare(
        self,
        subject: Subject,
        purpose: str,
        left: str,
        right: str,
        blocks: int,
        first: int,
        limit_s: float,
        energy: bool = False,
    ) -> Observation:
        """The `samples` artifact; each block has inputs of its own, two draws, and every output is compared afterwards."""
        worker = self.arms.alone({left, right})
        self.arms.settle()
        base = _base(purpose) + 2 * first
        asked = [Asked(index=base + i, outputs=2) for i in range(2 * blocks)]
        parts: list[Row] = []
        done = 0
        try:
            for staged in self.staged(subject, asked, at_least=2):
                count = len(staged.draws) // 2
                last = done + count == blocks
                request = Compare(
                    left=left,
                    right=right,
                    staged=staged,
                    first=first + done,
                    before=done == 0,
                    after=last,
                    energy=energy,
                )
                reply = _ok(worker.ask(request, limit_s))
                part: Row = msgspec.json.decode(reply.artifacts["samples"])
                # Of energies the last draw of every part shows a kernel that only remembers.
                outputs = self._compared(subject, begins=done == 0 or energy, ends=last or energy)
                parts.append({**part, "outputs": outputs})
                done += count
        except Fault as fault:
            return observed(fault.reply)
        return Observation(status="ok", artifacts={"samples": msgspec.json.encode(together(parts))})

    def _compared(self, subject: Subject, begins: bool, ends: bool) -> Row:
        reply = self.referee(Check(subject=subject, against="outputs", begins=begins, ends=ends))
        found: Row = msgspec.json.decode(reply.artifacts["errors"])
        return found

    def sweep(
        self, subject: Subject, purpose: str, sources: tuple[str, ...], count: int, limit_s: float
    ) -> Observation:
        """The `sweep` artifact: `count` samples of each source. Sources that bring their process to an end are left out of it."""
        seen = self._swept(subject, purpose, sources, count, limit_s)
        if seen.status not in DEADLY or len(sources) < 2:
            return seen
        alone_s = min(limit_s, max(ALONE_S, limit_s / len(sources)))
        fit = [self._swept(subject, purpose, (one,), count, alone_s).status not in DEADLY for one in sources]
        left = tuple(one for one, well in zip(sources, fit, strict=True) if well)
        if not left or all(fit):
            return seen
        seen = self._swept(subject, purpose, left, count, limit_s)
        if seen.status != "ok":
            return seen
        part: Row = msgspec.json.decode(seen.artifacts["sweep"])
        of = iter(part["samples"])
        whole = {**part, "samples": [next(of) if well else None for well in fit]}
        return replace(seen, artifacts={"sweep": msgspec.json.encode(whole)})

    def _swept(
        self, subject: Subject, purpose: str, sources: tuple[str, ...], count: int, limit_s: float
    ) -> Observation:
        worker = self.arms.alone(sources)
        self.arms.settle()
        asked = [Asked(index=_base(purpose) + i, outputs=0) for i in range(count)]
        whole: Row = {}
        try:
            for staged in self.staged(subject, asked):
                reply = _ok(worker.ask(Sweep(sources=sources, staged=staged), limit_s))
                part: Row = msgspec.json.decode(reply.artifacts["sweep"])
                whole = part if not whole else {**whole, "samples": _appended(whole["samples"], part["samples"])}
        except Fault as fault:
            return observed(fault.reply)
        return Observation(status="ok", artifacts={"sweep": msgspec.json.encode(whole)})


def _spares(device: str) -> int:
    """Workers that stand by. Without a context to open, one is enough."""
    return max(1, min(SPARES, (os.cpu_count() or 1) // CORES_A_SPARE)) if device == "cuda" else 1


def _ok(reply: Reply) -> Reply:
    if reply.status != "ok":
        raise Fault(reply)
    return reply


def observed(reply: Reply) -> Observation:
    """A reply as the loop sees it."""
    return Observation(status=reply.status, text=placeless(reply.text), artifacts=reply.artifacts, blobs=reply.blobs)


def _row(seen: Row, errors: Row) -> Row:
    """What the worker saw of one call, and how far its output is from the answer."""
    kept = {key: seen[key] for key in ("shape", "dtype", "device_ok", "type_ok", "strides", "inputs_unchanged")}
    return {**kept, **errors["outputs"][0], "kind": errors["kind"], "eager": errors["eager"]}


def _failed(seed: int, outcome: str, text: str) -> bytes:
    content = {"error": {"outcome": outcome, "text": placeless(text)[:4000]}, "seed": seed, "draws": []}
    return msgspec.json.encode(
        {**content, "expected": {"shape": [], "dtype": ""}, "trivial": {}, "repeat_equal": False}
    )


def _base(purpose: str) -> int:
    """Number of the first draw for a purpose: what one measurement has seen, no other meets again."""
    return 1000 + zlib.crc32(purpose.encode()) % 1000 * 100_000


def _appended(first: list[Any], more: list[Any]) -> list[Any]:
    return [None if a is None or b is None else a + b for a, b in zip(first, more, strict=True)]
