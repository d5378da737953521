"""A worker's loop: answers requests on its socket until the engine closes it. Holds the context, never a verdict."""

from __future__ import annotations

import faulthandler
import os
import socket
import sys
import traceback
from typing import Any

import msgspec
from msgspec import structs

from . import calibration, checking, counters, energy, extras, identity, referee, timing
from .device import open_device
from .loading import told
from .protocol import (
    AnyRequest,
    Calibrate,
    Call,
    Check,
    Compare,
    Count,
    Extra,
    FindMeter,
    Gate,
    Hello,
    Reply,
    Stage,
    Sweep,
    receive,
    send,
)


def serve(connection: socket.socket) -> None:
    """Serve requests until the engine closes the socket or the CUDA context is lost. What a candidate prints goes to the log."""
    requests, replies = connection.makefile("rb"), connection.makefile("wb")
    faulthandler.enable()  # a crash inside a driver library leaves a stack in the log
    decoder = msgspec.msgpack.Decoder(AnyRequest)
    device: Any = None
    while (payload := receive(requests)) is not None:
        request = decoder.decode(payload)
        try:
            if device is None:
                device = open_device()
            reply = _answer(device, request)
        except BaseException as error:
            reply = _fault(device, error)
        send(replies, structs.replace(reply, number=request.number))
        if reply.exiting:
            os._exit(4)
    os._exit(0)  # nothing that a candidate registered for the end is run


def _answer(device: Any, request: AnyRequest) -> Reply:
    match request:
        case Hello():
            return identity.hello(device, request.warm)
        case FindMeter():
            energy.counter(device)
            return Reply(status="ok")
        case Calibrate():
            return Reply(status="ok", artifacts={"calibration": calibration.calibrate(device)})
        case Stage():
            return referee.stage(device, request)
        case Check():
            return referee.check(device, request)
        case Gate():
            return checking.gate(device, request)
        case Compare():
            return timing.compare(device, request)
        case Call():
            return timing.call_all(device, request)
        case Sweep():
            return timing.sweep(device, request)
        case Count():
            return counters.count(device, request)
        case Extra():
            return extras.extra(device, request)


def _fault(device: Any, error: BaseException) -> Reply:
    """An infrastructure fault of one request; the process goes on unless its context is lost."""
    lines = "".join(traceback.format_exception(error))
    sys.stderr.write(lines)
    # What went wrong first: whoever quotes the beginning of a reply quotes that.
    text = f"{told(error)}\n{lines[-4000:]}".encode(errors="replace").decode()
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
