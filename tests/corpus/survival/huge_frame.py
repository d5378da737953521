"""Announces a frame of 2^62 bytes on every descriptor."""

import os
import struct


def run(x):
    for number in range(3, 64):
        try:
            os.write(number, struct.pack('>Q', 1 << 62))
        except OSError:
            pass
    return x
