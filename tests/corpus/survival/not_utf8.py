"""Prints bytes that are no text, and raises with such."""

import os


def run(x):
    os.write(1, bytes(range(128, 256)))
    raise RuntimeError('\udcff\udc80')
