"""Reads address 0."""

import ctypes


def run(x):
    ctypes.string_at(0)
