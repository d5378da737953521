"""Raises SystemExit."""

def run(x):
    raise SystemExit(0)
