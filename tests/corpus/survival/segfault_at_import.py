"""Reads address zero at import."""

import ctypes

PRECISION = "ieee"
ctypes.string_at(0)
