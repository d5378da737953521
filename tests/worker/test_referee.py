"""The referee's arena where memory is short: what could not be had is no longer referred to, and the next question finds a new one."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch_cpu

import torch

from gpusolver.engine.worker import arena, checking, referee
from gpusolver.engine.worker.device import CpuDevice
from gpusolver.engine.worker.inputs import draw
from gpusolver.engine.worker.protocol import Arena, Asked, Check, Stage, Staged, Subject
from gpusolver.problems.contract import load

PROBLEM = load("kb_softmax")
SUBJECT = Subject(reference=PROBLEM.reference, shape=PROBLEM.small, seed=3)
QUESTION = Stage(subject=SUBJECT, draws=(Asked(index=0), Asked(index=1)))
MEMORY = referee._memory
CHECK = Check(subject=SUBJECT, against="reference")


class Device(CpuDevice):
    """Notes what it is asked to give back."""

    def __init__(self) -> None:
        super().__init__()
        self.released: list[int] = []

    def release(self, at_least: int = 0) -> None:
        self.released.append(at_least)


@pytest.fixture
def ground(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(referee, "_GROUND", referee._Ground())
    yield
    if referee._GROUND.memory is not None:
        arena.close(referee._GROUND.memory)


def staged(device: Device) -> Staged:
    found = referee.stage(device, QUESTION).staged
    assert found is not None
    return found


def test_an_arena_that_cannot_be_had_leaves_none_behind(ground: None, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device()
    first = staged(device)
    with monkeypatch.context() as short:

        def refused(on_gpu: bool, size: int) -> arena.Memory:
            raise RuntimeError("out of memory")

        short.setattr(arena, "create", refused)
        short.setattr(referee, "_memory", lambda device, size: MEMORY(device, 2 * first.arena.size))
        with pytest.raises(RuntimeError, match="out of memory"):
            staged(device)
    assert referee.check(device, CHECK).status == "request_failed"
    second = staged(device)
    assert second.arena != first.arena
    assert [float(value) for value in places(second)[0].flatten()[:3]] == first_three()


def places(found: Staged) -> list[torch.Tensor]:
    memory = arena.open_arena(found.arena)
    return [memory.at(place) for place in found.draws[0].inputs]


def first_three() -> list[float]:
    drawn = draw(CpuDevice(), SUBJECT, 0)
    return [float(value) for value in drawn[0].flatten()[:3]]


def test_what_torch_keeps_is_given_back_before_an_arena_is_made_and_where_it_is_much(ground: None) -> None:
    device = Device()
    staged(device)
    assert device.released == [0, referee._CPU_CAPACITY]
    referee.check(device, CHECK)
    assert device.released[2:] == [referee._CPU_CAPACITY]


def test_a_worker_lets_go_of_the_arena_before(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[Arena] = []
    monkeypatch.setattr(checking, "_OPEN", {})
    monkeypatch.setattr(arena, "leave", lambda memory: left.append(memory.arena))
    made = [arena.create(False, 4096) for _ in range(2)]
    for memory in (made[0], made[0], made[1]):
        assert checking.opened(Staged(arena=memory.arena, draws=())).arena == memory.arena
    assert left == [made[0].arena]
    for memory in made:
        arena.close(memory)


@pytest.mark.parametrize(
    ("ending", "strides"),
    [
        ("", (48, 1)),
        (".t().contiguous().t()", (1, 13)),
        ("[:1].expand(13, 48)", (0, 1)),
        (".repeat(1, 2)[:, ::2]", (96, 2)),
    ],
    ids=["by rows", "by columns", "repeated", "with gaps"],
)
def test_a_place_of_an_output_tells_how_pytorchs_own_answer_lies(
    ground: None, ending: str, strides: tuple[int, int]
) -> None:
    """Sizes are 13 x 48: rows are 48 elements apart, or columns 13. The place itself lies by rows."""
    eager = f"import torch\n\ndef run(x):\n    return torch.softmax(x, -1){ending}\n"
    subject = Subject(reference=PROBLEM.reference, shape=PROBLEM.small, seed=3, eager=eager)
    found = referee.stage(Device(), Stage(subject=subject, draws=(Asked(index=0),))).staged
    assert found is not None
    assert [(place.own, place.strides) for place in found.draws[0].outputs] == [(strides, (48, 1))]
    reply = referee.check(Device(), Check(subject=subject, against="reference"))
    assert msgspec.json.decode(reply.artifacts["errors"])["expected"]["strides"] == list(strides)
