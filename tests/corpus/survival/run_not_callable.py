"""run is a number."""

PRECISION = "ieee"
run = 42
