"""Calls itself for ever."""

def run(x):
    return run(x)
