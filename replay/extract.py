"""The source in a language model's answer (FORMAT.md section 5, answers): its blocks by lines, and the one that counts. Runs nothing."""

from __future__ import annotations

from collections.abc import Iterator

from ..events.model import Exchange
from .shelf import Shelf

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
        fence, rest = _fence(line)
        if len(fence) < 3 or (fence[0] == "`" and "`" in rest):
            continue
        held, closed = list[str](), False
        for inner in lines:
            end, behind = _fence(inner)
            closed = end[:1] == fence[0] and len(end) >= len(fence) and not behind.strip(" \t")
            if closed:
                break
            held.append(inner)
        words = rest.replace("\t", " ").split(" ")
        if closed and next((word for word in words if word), "").lower() in _WORDS:
            yield held


def _fence(line: str) -> tuple[str, str]:
    """The run of backticks or tildes after at most three spaces, and what stands behind it."""
    at = next((i for i, letter in enumerate(line[:4]) if letter != " "), 4)
    body = line[at:]
    if at > 3 or body[:1] not in ("`", "~"):
        return "", body
    behind = body.lstrip(body[0])
    return body[: len(body) - len(behind)], behind


def _enters(block: list[str]) -> bool:
    return any(line.startswith(_ENTRY) for line in block)
