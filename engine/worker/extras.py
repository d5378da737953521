"""Extra measurements of one source by role. One that cannot be had is a status with its reason, never a fault of the worker."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from . import compiled, counters, energy, timeline, timing
from .cupti_library import CountersUnavailable
from .device import AnyDevice
from .protocol import Extra, Reply
from .refusals import ExtraUnsupported

Measure = Callable[[AnyDevice, Extra], bytes]

_ROLES: dict[str, Measure] = {
    "timeline": timeline.timeline,
    "warm": lambda device, asked: timing.warm(device, asked.subject, asked.source),
    "compiled": compiled.compiled,
    "energy": energy.energy,
    "kernels": counters.kernels,
}


def extra(device: AnyDevice, request: Extra) -> Reply:
    """The artifact under its role; `extra_unsupported` where this place cannot give it, `extra_failed` where it went wrong.

    Raises only where the device is lost: then this worker is at its end.
    """
    measure = _ROLES.get(request.role)
    if measure is None:
        return Reply(status="extra_unsupported", text=f"role {request.role!r}: expected one of {', '.join(_ROLES)}")
    if device.name != "cuda":
        return Reply(status="extra_unsupported", text=f"the CPU stand-in has no {request.role}")
    try:
        return Reply(status="ok", artifacts={request.role: measure(device, request)})
    except ExtraUnsupported as refused:
        return Reply(status="extra_unsupported", text=str(refused))
    except CountersUnavailable as refused:
        passing = refused.reason in ("busy", "failed")
        return Reply(status="extra_failed" if passing else "extra_unsupported", text=str(refused))
    except Exception as error:
        device.synchronize()
        last = "".join(traceback.format_exception(error))[-2000:]
        return Reply(status="extra_failed", text=last.encode(errors="replace").decode())
