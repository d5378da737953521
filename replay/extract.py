"""The source in a language model's answer (FORMAT.md section 5, answers): its blocks by lines, and the one that counts. Runs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..events.model import Exchange
from .artifacts import Shelf

_OPENS = re.compile(r" {0,3}(`{3,}(?=[^`]*\Z)|~{3,})(.*)\Z", re.DOTALL)
_WORDS = ("", "python", "python3", "py", "triton")
_ENTRY = "def run("
UNANSWERED = ("rate_limited", "timeout", "unreachable", "http_error")
"""Statuses of an exchange that came to no answer."""
FRUITLESS = ("no_code", "truncated", "wrong_names", "refused")
"""Statuses of an answer that holds no source to try."""


def status(exchange: Exchange, shelf: Shelf) -> str:
    """What an exchange's answer comes to; of one without an answer any of UNANSWERED, as recorded."""
    if exchange.answer is None:
        return exchange.status if exchange.status in UNANSWERED else f"one of {', '.join(UNANSWERED)}"
    if exchange.finish == "length":
        return "truncated"
    if exchange.finish == "content_filter":
        return "refused"
    found = list(blocks(shelf.text(exchange.answer)))
    if not found:
        return "no_code"
    return "code" if any(_enters(block) for block in found) else "wrong_names"


def source(text: str) -> str | None:
    """The last block that defines `run`; None where there is none."""
    entering = [block for block in blocks(text) if _enters(block)]
    return "".join(f"{line}\n" for line in entering[-1]) if entering else None


def blocks(text: str) -> Iterator[list[str]]:
    """The closed blocks that may be Python, each as its lines."""
    lines = iter([line.removesuffix("\r") for line in text.split("\n")])
    for line in lines:
        opened = _OPENS.match(line)
        if opened is None:
            continue
        fence, held, closed = opened[1], list[str](), False
        ends = re.compile(rf" {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*\Z")
        for inner in lines:
            if ends.match(inner):
                closed = True
                break
            held.append(inner)
        words = opened[2].replace("\t", " ").split(" ")
        if closed and next((word for word in words if word), "").lower() in _WORDS:
            yield held


def _enters(block: list[str]) -> bool:
    return any(line.startswith(_ENTRY) for line in block)
