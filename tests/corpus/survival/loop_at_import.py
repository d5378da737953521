"""The import never ends."""

PRECISION = "ieee"
count = 0
while True:
    count += 1
