"""Writes garbage into every descriptor."""

import os


def run(x):
    for number in range(3, 64):
        try:
            os.write(number, b'\xff' * 4096)
        except OSError:
            pass
    return x
