"""The line conventions of a kernel source (replay/FORMAT.md, section 5). Never imports or runs a source."""

from __future__ import annotations

import json
from typing import Literal, get_args

from ..events.errors import BadInput

Precision = Literal["ieee", "tf32", "tf32x3"]
PRECISION_LINES: dict[str, Precision] = {f'PRECISION = "{value}"': value for value in get_args(Precision)}
CONFIG_START = "CONFIG = "


def with_precision(source: str, precision: Precision) -> str:
    """The same text with its one precision line set; raises BadInput unless there is exactly one."""
    lines = source.split("\n")
    found = [i for i, line in enumerate(lines) if line in PRECISION_LINES]
    lines[_only(found, "` or `".join(PRECISION_LINES))] = f'PRECISION = "{precision}"'
    return "\n".join(lines)


def precision_of(source: str) -> Precision:
    """What the source's one precision line states; raises BadInput unless there is exactly one."""
    strict_twin(source)
    return next(PRECISION_LINES[line] for line in source.split("\n") if line in PRECISION_LINES)


def strict_twin(source: str) -> str:
    """The same kernel, tiles and all, held to IEEE float32: what splits a gain into its precision and its kernel part."""
    return with_precision(source, "ieee")


def with_config(template: str, config: dict[str, int]) -> str:
    """The template with its one CONFIG line replaced by `config`, keys sorted; raises BadInput unless there is exactly one."""
    lines = template.split("\n")
    lines[_config_line(lines)] = CONFIG_START + json.dumps(config, sort_keys=True)
    return "\n".join(lines)


def config_of(source: str) -> dict[str, int]:
    """The configuration in the source's CONFIG line; raises BadInput if the line is missing or is not a JSON object of integers."""
    lines = source.split("\n")
    line = lines[_config_line(lines)]
    try:
        found = json.loads(line.removeprefix(CONFIG_START))
    except ValueError as error:
        raise BadInput(
            f"the source's line `{line}` is not JSON ({error}); write `CONFIG = ` and one JSON object"
        ) from None
    if not isinstance(found, dict) or not all(type(value) is int for value in found.values()):
        raise BadInput(f"the source's line `{line}` must hold a JSON object with integer values; found {found!r}")
    return found


def _config_line(lines: list[str]) -> int:
    return _only([i for i, line in enumerate(lines) if line.startswith(CONFIG_START)], CONFIG_START + "{...}")


def _only(found: list[int], wanted: str) -> int:
    if len(found) != 1:
        where = "none" if not found else "lines " + ", ".join(str(i + 1) for i in found)
        raise BadInput(
            f"a kernel source needs exactly one line `{wanted}`, unindented and alone; found {where}; add or remove"
        )
    return found[0]
