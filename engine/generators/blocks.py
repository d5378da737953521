"""The source in a language model's answer, by the lines of its fenced blocks (replay/FORMAT.md section 5). Never parses or runs it."""

from __future__ import annotations

from typing import Literal

Found = Literal["code", "no_code", "wrong_names"]
LANGUAGES = ("", "python", "python3", "py", "triton")
ENTRY = "def run("


def read_answer(text: str) -> tuple[Found, str]:
    """What a whole answer holds, and the source where it is `code`: the last block with a line that begins with `def run(`.

    `no_code`: no closed block that may be Python. `wrong_names`: none of those defines `run`; in the place of the source stand
    the names that the last one defines.
    """
    blocks = closed_blocks(text)
    entering = [block for block in blocks if any(line.startswith(ENTRY) for line in block)]
    if entering:
        return "code", "".join(line + "\n" for line in entering[-1])
    return ("wrong_names", ", ".join(_names(blocks[-1]))) if blocks else ("no_code", "")


def closed_blocks(text: str) -> list[list[str]]:
    """The lines of every fenced block that is closed and whose language is none or Python's."""
    found: list[list[str]] = []
    fence, language, held = "", "", list[str]()
    for line in (raw.removesuffix("\r") for raw in text.split("\n")):
        if not fence:
            fence, language = _opening(line)
            held = []
        elif _closes(line, fence):
            if language in LANGUAGES:
                found.append(held)
            fence = ""
        else:
            held.append(line)
    return found


def _opening(line: str) -> tuple[str, str]:
    """The fence that a line opens with and its language, in lower case; two empty texts where it opens none."""
    body = line.lstrip(" ")
    mark = body[:1]
    if len(line) - len(body) > 3 or mark not in ("`", "~"):
        return "", ""
    rest = body.lstrip(mark)
    count = len(body) - len(rest)
    if count < 3 or (mark == "`" and "`" in rest):
        return "", ""
    words = [word for word in rest.replace("\t", " ").split(" ") if word]
    return mark * count, words[0].lower() if words else ""


def _closes(line: str, fence: str) -> bool:
    body = line.lstrip(" ")
    rest = body.lstrip(fence[0])
    return len(line) - len(body) <= 3 and len(body) - len(rest) >= len(fence) and not rest.strip(" \t")


def _names(block: list[str]) -> list[str]:
    """What a block defines at its left margin, in words for an error."""
    lines = (line.split("(")[0].split(":")[0].split() for line in block if line.startswith(("def ", "class ")))
    return [words[1] for words in lines if len(words) > 1]
