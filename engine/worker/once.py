"""Runs one call of each request between profiler marks, as the program that ncu watches. Prints only what failed, measures nothing."""

from __future__ import annotations

import pathlib
import sys
import traceback

import msgspec
import torch

from . import switches
from .device import CudaDevice
from .inputs import draw
from .loading import load_run
from .ncu_reading import range_name
from .protocol import Count


def main(path: str) -> None:
    """Read a list of Count requests from `path`, and mark one warmed-up call of each, in a range named by its number."""
    device = CudaDevice()
    for number, request in enumerate(msgspec.msgpack.decode(pathlib.Path(path).read_bytes(), type=list[Count])):
        try:
            _mark(device, request, range_name(number))
        except BaseException:  # the next request may still be profiled
            traceback.print_exc()


def _mark(device: CudaDevice, request: Count, name: str) -> None:
    run, inputs = load_run(request.source), draw(device, request.subject, 0)
    with switches.strict():
        run(*inputs)
        device.synchronize()
        torch.cuda.profiler.start()
        torch.cuda.nvtx.range_push(name)
        try:
            run(*inputs)
            device.synchronize()
        finally:
            torch.cuda.nvtx.range_pop()
            torch.cuda.profiler.stop()


if __name__ == "__main__":
    main(sys.argv[1])
