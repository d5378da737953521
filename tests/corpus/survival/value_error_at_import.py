"""ValueError at import."""

PRECISION = "ieee"
raise ValueError("no such tile: 48")
