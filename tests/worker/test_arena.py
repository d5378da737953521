"""The arena: where tensors lie, byte by byte, and that two processes see the same ones. On the CPU, as a file."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch_cpu

import torch

from gpusolver.engine.worker import arena
from gpusolver.engine.worker.protocol import Arena, Place

FLOAT, HALF, DOUBLE, BYTE = torch.float32, torch.float16, torch.float64, torch.uint8


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[arena.Memory]:
    monkeypatch.setenv("GPUSOLVER_WORKER_FOLDER", str(tmp_path))
    made = arena.create(False, 4096)
    yield made
    arena.close(made)


def content(memory: arena.Memory) -> bytes:
    """What lies in the file, read without the code under test."""
    return Path(memory.arena.key).read_bytes()


@pytest.mark.parametrize(
    ("shape", "strides", "dtype", "behind"),
    [
        ((2, 3), (3, 1), FLOAT, 256),  # 24 bytes
        ((64,), (1,), FLOAT, 256),  # exactly 256
        ((65,), (1,), FLOAT, 512),
        ((3, 2), (1, 3), HALF, 256),  # transposed: 12 bytes
        ((2, 2), (100, 1), FLOAT, 512),  # rows 400 bytes apart: 408
        ((1000,), (0,), DOUBLE, 256),  # one element, seen a thousand times
        ((0, 5), (5, 1), FLOAT, 256),  # nothing, which has a place all the same
        ((), (), DOUBLE, 256),
        ((257,), (1,), BYTE, 512),
    ],
)
def test_a_place_ends_behind_its_last_element_on_the_next_256_bytes(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, behind: int
) -> None:
    places, end = arena.layout([(shape, strides, dtype)], 0)
    assert [(place.offset, place.shape, place.strides) for place in places] == [(0, shape, strides)]
    assert places[0].dtype == str(dtype).removeprefix("torch.")
    assert end == behind
    assert arena.layout([(shape, strides, dtype)], 768)[1] == 768 + behind


def test_places_follow_each_other(memory: arena.Memory) -> None:
    asked = [((2, 3), (3, 1), FLOAT), ((65,), (1,), FLOAT), ((0,), (1,), HALF), ((3, 2), (1, 3), HALF)]
    places, end = arena.layout(asked, 256)
    assert [place.offset for place in places] == [256, 512, 1024, 1280] and end == 1536
    for number, place in enumerate(places, 1):
        memory.at(place).fill_(number)
    for number, place in enumerate(places, 1):
        view = memory.at(place)
        assert (bool((view == number).all()) and view.data_ptr() % 256 == 0) or view.numel() == 0
    assert content(memory)[:256] == bytes(256)


def test_elements_lie_where_strides_say_and_gaps_are_left_alone(memory: arena.Memory) -> None:
    """[[1, 2], [3, 4]] with strides (5, 2): elements 0, 2, 5 and 7, behind the 16 bytes of the offset."""
    place = Place(offset=16, shape=(2, 2), strides=(5, 2), dtype="float32")
    memory.at(place).copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert content(memory)[:64] == bytes(16) + struct.pack("<8f16x", 1, 0, 2, 0, 0, 3, 0, 4)
    assert content(memory)[64:] == bytes(4096 - 64)
    assert memory.at(place).stride() == (5, 2)


@pytest.mark.parametrize(
    ("dtype", "written", "packed"),
    [
        ("float64", 1.5, struct.pack("<d", 1.5)),
        ("float16", -2.0, struct.pack("<e", -2.0)),
        ("bfloat16", 1.0, b"\x80\x3f"),  # the upper half of 1.0 in float32
        ("int64", -1, b"\xff" * 8),
        ("int32", 258, b"\x02\x01\x00\x00"),
        ("bool", True, b"\x01"),
    ],
)
def test_each_dtype_lies_as_its_bytes(memory: arena.Memory, dtype: str, written: float, packed: bytes) -> None:
    view = memory.at(Place(offset=512, shape=(1,), strides=(1,), dtype=dtype))
    view.fill_(written)
    assert content(memory)[512 : 512 + len(packed)] == packed
    assert content(memory)[512 + len(packed) :] == bytes(4096 - 512 - len(packed))


def test_two_processes_see_the_same_bytes(memory: arena.Memory) -> None:
    """The other reads 1, 2, 3, writes their doubles into another place, and this one sees them at once."""
    (first, second), _ = arena.layout([((3,), (1,), FLOAT)] * 2, 0)
    memory.at(first).copy_(torch.tensor([1.0, 2.0, 3.0]))
    program = (
        "from gpusolver.engine.worker import arena\n"
        "from gpusolver.engine.worker.protocol import Arena, Place\n"
        f"memory = arena.open_arena({memory.arena!r})\n"
        f"memory.at({second!r}).copy_(memory.at({first!r}) * 2)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    assert memory.at(second).tolist() == [2.0, 4.0, 6.0]
    assert content(memory)[256:268] == struct.pack("<3f", 2, 4, 6)


def test_an_arena_lies_in_the_workers_folder_until_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUSOLVER_WORKER_FOLDER", str(tmp_path))
    made = arena.create(False, 1000)
    assert (made.arena.kind, made.arena.size) == ("file", 1024)
    (path,) = tmp_path.iterdir()
    assert str(path) == made.arena.key and path.stat().st_size == 1024
    arena.close(made)
    assert not path.exists()
    arena.close(made)


def test_inputs_may_be_longer_than_what_a_candidate_may_write(tmp_path: Path) -> None:
    """A worker's soft limit on files stays as it is, and an arena of more than that is there."""
    code = """
import pathlib, resource
most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, most))
from gpusolver.engine.worker import arena
made = arena.create(False, 3 << 20)
assert pathlib.Path(made.arena.key).stat().st_size == 3 << 20
assert resource.getrlimit(resource.RLIMIT_FSIZE) == (1 << 20, most)
"""
    environment = dict(os.environ) | {"GPUSOLVER_WORKER_FOLDER": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_an_arena_that_is_not_there_is_no_empty_one(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        arena.open_arena(Arena(kind="file", key=str(tmp_path / "none"), size=256))
