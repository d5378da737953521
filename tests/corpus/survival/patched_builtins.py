"""Replaces builtins that everybody uses."""

import builtins

builtins.len = lambda *_: 7
builtins.isinstance = lambda *_: True


def run(x):
    return x
