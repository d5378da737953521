"""Prints 100 MB."""

import sys


def run(x):
    for _ in range(100):
        sys.stdout.write('x' * (1 << 20))
    raise RuntimeError('flooded')
