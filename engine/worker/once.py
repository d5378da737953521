"""Runs one call between profiler marks, as the program that ncu watches. Prints and measures nothing itself."""

from __future__ import annotations

import pathlib
import sys

import msgspec
import torch

from . import switches
from .device import CudaDevice
from .loading import load_run
from .protocol import Count
from .timing import draw


def main(path: str) -> None:
    """Read a Count request from `path`, warm up, and mark one call."""
    request = msgspec.msgpack.decode(pathlib.Path(path).read_bytes(), type=Count)
    device = CudaDevice()
    run, inputs = load_run(request.source), draw(device, request.subject, 0)
    switches.reset()
    run(*inputs)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    run(*inputs)
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


if __name__ == "__main__":
    main(sys.argv[1])
