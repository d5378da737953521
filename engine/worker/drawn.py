"""Runs a source once on each of a gate's draws, as the program that compute-sanitizer watches. Compares nothing with an answer."""

from __future__ import annotations

import pathlib
import sys

import msgspec

from . import switches
from .device import open_device
from .inputs import draw
from .loading import load_run
from .protocol import Drawn


def main(path: str) -> None:
    """Read a Drawn from `path` and run it; what the source raises ends the process with its traceback."""
    asked = msgspec.msgpack.decode(pathlib.Path(path).read_bytes(), type=Drawn)
    device = open_device()
    run = load_run(asked.source)
    for one in asked.draws:
        inputs = draw(device, asked.subject, one.index, one.kind)
        with switches.strict():
            run(*inputs)
            device.synchronize()
    print(f"drawn: {len(asked.draws)} calls", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
