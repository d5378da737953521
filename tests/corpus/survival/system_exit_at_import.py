"""raise SystemExit(0) at import."""

PRECISION = "ieee"
raise SystemExit(0)
