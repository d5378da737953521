"""The GPU worker: a long-lived process that answers measuring requests on a pipe. It holds the context, never a verdict."""

from __future__ import annotations

import faulthandler
import os
import sys
import traceback
from typing import Any, BinaryIO

import msgspec

from .protocol import AnyRequest, Calibrate, Compare, Count, Extra, Gate, Hello, Reply, Sweep, receive, send


def main() -> None:
    """Serve requests until the engine closes the pipe or the CUDA context is lost."""
    requests, replies = _private_pipes()
    faulthandler.enable()  # a crash inside a driver library leaves a stack in the log
    decoder = msgspec.msgpack.Decoder(AnyRequest)
    device: Any = None
    while (payload := receive(requests)) is not None:
        try:
            if device is None:
                from .device import open_device

                device = open_device()
            reply = _answer(device, decoder.decode(payload))
        except BaseException as error:
            reply = _fault(device, error)
        send(replies, reply)
        if reply.exiting:
            os._exit(4)


def _private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Keep the pipe for ourselves: what a candidate prints goes to stderr and cannot break a frame."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return requests, replies


def _answer(device: Any, request: AnyRequest) -> Reply:
    from . import calibration, checking, counters, extras, identity, timing

    match request:
        case Hello():
            counters.warm_up(device)
            return Reply(status="ok", facts=identity.facts(device))
        case Calibrate():
            return Reply(status="ok", artifacts={"calibration": calibration.calibrate(device)})
        case Gate():
            return checking.gate(device, request)
        case Compare():
            return Reply(status="ok", artifacts={"samples": timing.compare(device, request)})
        case Sweep():
            return Reply(status="ok", artifacts={"sweep": timing.sweep(device, request)})
        case Count():
            return counters.count(device, request)
        case Extra():
            return extras.extra(device, request)


def _fault(device: Any, error: BaseException) -> Reply:
    """An infrastructure fault of one request; the process goes on unless its context is lost."""
    text = "".join(traceback.format_exception(error))[-4000:].encode(errors="replace").decode()
    sys.stderr.write(text)
    try:
        if device is not None:
            device.synchronize()
    except Exception:
        return Reply(status="context_lost", text=text, exiting=True)
    missing = device is None
    return Reply(
        status="no_device" if missing else "request_failed",
        text=f"{type(error).__name__}: {error}" if missing else text,
    )


if __name__ == "__main__":
    main()
