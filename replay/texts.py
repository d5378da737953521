"""Sources as texts: the PRECISION and CONFIG lines that FORMAT.md section 5 fixes. Never runs one."""

from __future__ import annotations

import json

_LINES = ('PRECISION = "ieee"', 'PRECISION = "tf32"', 'PRECISION = "tf32x3"')


def precision_of(source: str) -> str | None:
    """The precision that a source's one PRECISION line states; None where there is not exactly one."""
    found = [line for line in source.split("\n") if line in _LINES]
    return found[0].split('"')[1] if len(found) == 1 else None


def with_precision(source: str, precision: str) -> str | None:
    """The same text with its one PRECISION line set; None where there is not exactly one such line."""
    lines = source.split("\n")
    at = [i for i, line in enumerate(lines) if line in _LINES]
    if len(at) != 1:
        return None
    lines[at[0]] = f'PRECISION = "{precision}"'
    return "\n".join(lines)


def with_config(template: str, config: dict[str, int]) -> str:
    """A template's text with its CONFIG line set."""
    line = "CONFIG = " + json.dumps(config, sort_keys=True)
    return "\n".join(line if old.startswith("CONFIG = ") else old for old in template.split("\n"))
