"""Instruction counts from what a disassembler prints. Never runs one, and counts nothing that is not an instruction."""

from __future__ import annotations

import re
from collections import Counter

# An address comment, an optional predicate, an opcode with its modifiers: `/*00a0*/  @!P0 LDG.E.128 R4, [R2.64] ;`
_INSTRUCTION = re.compile(
    r"^\s*/\*[0-9a-fA-F]{4,}\*/\s+\{?\s*(?:@!?U?P(?:\d+|T)\s+)?([A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*)"
)


def instruction_mix(text: str) -> dict[str, int]:
    """Static count of each opcode, modifiers and all, in the text of `nvdisasm -c` (or cuobjdump -sass); sorted by opcode."""
    found = Counter(match[1] for line in text.splitlines() if (match := _INSTRUCTION.match(line)))
    return dict(sorted(found.items()))
