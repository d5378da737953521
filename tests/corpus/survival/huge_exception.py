"""Raises with 50 MB of text."""

def run(x):
    raise RuntimeError('x' * 50_000_000)
