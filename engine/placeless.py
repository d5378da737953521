"""Texts of workers without the places of this machine: what failed is a fact of the ledger, in which folder Python lies is not. Keeps nothing."""

from __future__ import annotations

import re
import sys

_OURS = re.compile(r"[^\s\"']*/gpusolver-[a-z]+-[A-Za-z0-9_]{8}/")
"""Folders that we make for workers and imports, by the names that tempfile gives them."""


def placeless(text: str) -> str:
    """The text with paths from where Python finds its modules, and from within a worker's folder, not from the root."""
    for place in sorted({entry.rstrip("/") for entry in sys.path if len(entry) > 1}, key=len, reverse=True):
        text = text.replace(f"{place}/", "")
    return _OURS.sub("", text)
