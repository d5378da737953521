"""Sleeps for ever at import, as a compiler that never returns would."""

import time

PRECISION = "ieee"
while True:
    time.sleep(3600)
