"""An evolution policy to play over recorded measurements: an arm's name, or a person's file. Never the one that was registered, unless it equals it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from ..events.errors import BadInput
from ..events.model import Policy

_LARGEST = 100_000
_ARMS = {
    "off": (False, False),
    "on": (True, False),
    "tabu": (False, True),
    "off+tabu": (False, True),
    "on+tabu": (True, True),
}


class Played(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether rules are retired and promoted, whether inert firings are remembered, and the rest as registered where None."""

    evolves: bool
    tabu: bool = False
    credible_num: Annotated[int, msgspec.Meta(ge=1)] | None = None
    credible_den: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_rounds: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    patience: Annotated[int, msgspec.Meta(ge=1)] | None = None
    order: Literal["value"] | None = None

    def __post_init__(self) -> None:
        if (self.credible_num is None) != (self.credible_den is None):
            raise ValueError("credible_num and credible_den belong together")
        num, den = self.credible_num, self.credible_den
        if num is not None and den is not None and not den < 2 * num < 2 * den:
            raise ValueError("expected 1/2 < credible_num / credible_den < 1")

    def credible(self, registered: Policy) -> Policy:
        """The policy to ask by."""
        if self.credible_num is not None and self.credible_den is not None:
            registered = replace(registered, credible_num=self.credible_num, credible_den=self.credible_den)
        if self.patience is not None:
            registered = replace(registered, patience=self.patience)
        return registered if self.order is None else replace(registered, order=self.order)


def policy(name: str) -> Played:
    """The policy of an arm (`tabu` is `off+tabu`), or that of a TOML file. Raises BadInput."""
    if name in _ARMS:
        return Played(*_ARMS[name])
    if not name.endswith(".toml"):
        raise BadInput(f"--policy {name}: expected one of {', '.join(_ARMS)}, or a file that ends in .toml")
    try:
        with Path(name).open("rb") as file:
            raw = file.read(_LARGEST + 1)
        if len(raw) > _LARGEST:
            raise ValueError(f"more than {_LARGEST} bytes")
        return msgspec.toml.decode(raw, type=Played)
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(
            f"--policy {name}: expected TOML with evolves (true or false) and, if need be, tabu, credible_num, credible_den, "
            f"max_rounds, patience, order; found {error}"
        ) from error
