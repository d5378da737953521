"""Memory that the referee shares with workers: inputs lie there, outputs come back there. Holds tensors and nothing that decides."""

from __future__ import annotations

import ctypes
import mmap
import os
import pathlib
import resource
import tempfile
from collections.abc import Sequence
from typing import Any

import torch

from .protocol import Arena, Place

_ALIGNMENT, _HANDLE_BYTES = 256, 64


class Memory:
    """One open arena; `at` gives tensors that lie in it."""

    def __init__(self, arena: Arena, raw: torch.Tensor) -> None:
        self.arena, self._raw = arena, raw

    def at(self, place: Place) -> torch.Tensor:
        """The tensor of a place, which shares the arena's memory."""
        dtype = getattr(torch, place.dtype)
        return torch.as_strided(
            self._raw[place.offset :].view(torch.uint8)[: _bytes(place)].view(dtype), place.shape, place.strides
        )


def layout(shapes: Sequence[tuple[Sequence[int], Sequence[int], torch.dtype]], offset: int) -> tuple[list[Place], int]:
    """Places one after the other from `offset` on for (sizes, strides, dtype), and the offset behind them."""
    places = []
    for shape, strides, dtype in shapes:
        place = Place(
            offset=offset,
            shape=tuple(shape),
            strides=tuple(strides),
            dtype=str(dtype).removeprefix("torch."),
        )
        places.append(place)
        offset += -(-max(1, _bytes(place)) // _ALIGNMENT) * _ALIGNMENT
    return places, offset


def _bytes(place: Place) -> int:
    """Bytes from the first element of a place to its last."""
    if 0 in place.shape:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(place.shape, place.strides, strict=True))
    return (last + 1) * getattr(torch, place.dtype).itemsize


def create(on_gpu: bool, size: int) -> Memory:
    """A new arena of `size` bytes that other processes may open."""
    size = -(-size // _ALIGNMENT) * _ALIGNMENT
    if on_gpu:
        pointer = _checked(_runtime().cudaMalloc(size))[1]
        handle = _checked(_runtime().cudaIpcGetMemHandle(pointer))[1]
        arena = Arena(kind="cuda", key=ctypes.string_at(handle.getPtr(), _HANDLE_BYTES).hex(), size=size)
        return Memory(arena, _wrapped(int(pointer), size))
    descriptor, path = tempfile.mkstemp(prefix="arena-", dir=os.environ.get("GPUSOLVER_WORKER_FOLDER"))
    try:
        _lengthen(descriptor, size)
    finally:
        os.close(descriptor)
    return _mapped(Arena(kind="file", key=path, size=size))


def _lengthen(descriptor: int, size: int) -> None:
    """What bounds a file that a candidate writes (the soft limit of every worker) is no bound of inputs."""
    soft, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    try:
        os.ftruncate(descriptor, size)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, most))


def open_arena(arena: Arena) -> Memory:
    """An arena that another process made. Raises RuntimeError or OSError where it cannot be opened."""
    if arena.kind == "file":
        return _mapped(arena)
    handle = _runtime().cudaIpcMemHandle_t()
    ctypes.memmove(handle.getPtr(), bytes.fromhex(arena.key), _HANDLE_BYTES)
    flag = _runtime().cudaIpcMemLazyEnablePeerAccess
    pointer = _checked(_runtime().cudaIpcOpenMemHandle(handle, flag))[1]
    return Memory(arena, _wrapped(int(pointer), arena.size))


def there(memory: Memory) -> bool:
    """Whether others can still open it: a candidate may remove a file."""
    return memory.arena.kind != "file" or pathlib.Path(memory.arena.key).is_file()


def close(memory: Memory) -> None:
    """Give an arena that this process made back; views of it must not be used any more."""
    if memory.arena.kind == "file":
        pathlib.Path(memory.arena.key).unlink(missing_ok=True)
    else:
        _checked(_runtime().cudaFree(memory._raw.data_ptr()))


def leave(memory: Memory) -> None:
    """Let go of an arena that another process made: until then its memory is not free, whatever that process does. Views end with it."""
    if memory.arena.kind != "file":
        _checked(_runtime().cudaIpcCloseMemHandle(memory._raw.data_ptr()))


def _mapped(arena: Arena) -> Memory:
    with pathlib.Path(arena.key).open("r+b") as file:
        return Memory(arena, torch.frombuffer(mmap.mmap(file.fileno(), arena.size), dtype=torch.uint8))


def _wrapped(pointer: int, size: int) -> torch.Tensor:
    class Block:
        __cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (pointer, False), "version": 2}  # noqa: RUF012

    return torch.as_tensor(Block(), device="cuda")


def _runtime() -> Any:
    from cuda.bindings import runtime  # pyright: ignore[reportAttributeAccessIssue]

    return runtime


def _checked(result: tuple[Any, ...]) -> tuple[Any, ...]:
    if int(result[0]) != 0:
        raise RuntimeError(f"CUDA runtime call failed: {result[0]!r}")
    return result
