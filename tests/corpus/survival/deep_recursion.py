"""Raises the recursion limit and runs out of stack."""

import sys

sys.setrecursionlimit(1 << 30)


def run(x):
    return [run(x)]
