"""Closes every descriptor."""

import os


def run(x):
    os.closerange(0, 256)
    return x
