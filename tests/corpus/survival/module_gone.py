"""Replaces itself in sys.modules by an object whose every attribute raises SystemExit."""

import sys

PRECISION = "ieee"


class Nothing:
    def __getattr__(self, name):
        raise SystemExit(name)


sys.modules[__name__] = Nothing()
