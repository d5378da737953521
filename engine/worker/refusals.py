"""Why an extra measurement cannot be had, or has no answer. Says nothing of a kernel's worth."""

from __future__ import annotations


class ExtraUnsupported(Exception):
    """The device, its software or this kind of kernel does not give the measurement."""


class ExtraFailed(Exception):
    """The measurement was taken and does not fit together."""
