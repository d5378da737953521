"""os._exit(0) at import, which looks like success."""

import os

PRECISION = "ieee"
os._exit(0)
