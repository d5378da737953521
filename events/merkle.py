"""RFC 6962 tree heads and proofs over the hashes of a ledger's events. Never reads a ledger, and never checks a proof.

A leaf's bytes are the 32 bytes of an event's hash. One pass over the leaves in order is enough for a head and for either
proof, and none of them holds more than one hash for each level of the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import islice

from .errors import BadInput

Range = tuple[int, int]
"""Leaves of a subtree, from the first (counted from 0) up to, but without, the second."""


class Tree:
    """A growing tree; `root` may be asked after any number of leaves. Memory: a hash for each level."""

    def __init__(self) -> None:
        self.size = 0
        self._peaks: list[bytes] = []  # roots of full subtrees, largest first: one for each bit that is set in `size`

    def append(self, leaf: bytes) -> None:
        """Add the next leaf."""
        node = sha256(b"\x00" + leaf).digest()
        size = self.size
        while size & 1:
            node = sha256(b"\x01" + self._peaks.pop() + node).digest()
            size >>= 1
        self._peaks.append(node)
        self.size += 1

    def root(self) -> bytes:
        """The tree head, 32 bytes; that of no leaves is SHA-256 of nothing."""
        if not self._peaks:
            return sha256(b"").digest()
        node = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            node = sha256(b"\x01" + peak + node).digest()
        return node


def root(leaves: Iterable[bytes]) -> bytes:
    """The tree head over all leaves."""
    tree = Tree()
    for leaf in leaves:
        tree.append(leaf)
    return tree.root()


def inclusion_ranges(index: int, size: int) -> list[Range]:
    """The subtrees whose roots prove that leaf `index` (from 0) is in the tree of `size` leaves, in the proof's order."""
    if not 0 <= index < size:
        raise BadInput(f"inclusion proof: expected a leaf from 0 to {size - 1}, found {index}")
    ranges: list[Range] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((start, middle))
            start = middle
    return ranges[::-1]


def consistency_ranges(old: int, new: int) -> list[Range]:
    """The subtrees whose roots prove that the tree of `new` leaves begins with that of `old`, in the proof's order.

    None are needed where both are the same tree.
    """
    if not 0 < old <= new:
        raise BadInput(f"consistency proof: expected sizes with 0 < old <= new, found {old} and {new}")
    ranges: list[Range] = []
    start, end = 0, new
    while end != old:
        middle = start + _split(end - start)
        if old <= middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((start, middle))
            start = middle
    if start:  # the old tree's own root is known to whoever checks; only a part of it has to be told
        ranges.append((start, end))
    return ranges[::-1]


def subtree_roots(leaves: Iterable[bytes], ranges: Sequence[Range]) -> list[bytes]:
    """The roots of disjoint subtrees, in the order of `ranges`, by one pass over the leaves."""
    roots: dict[Range, bytes] = {}
    coming, at = iter(leaves), 0
    for start, end in sorted(ranges):
        for _ in islice(coming, start - at):
            pass
        tree = Tree()
        for leaf in islice(coming, end - start):
            tree.append(leaf)
        if tree.size != end - start:
            raise BadInput(f"proof: expected at least {end} leaves, found {start + tree.size}")
        roots[start, end], at = tree.root(), end
    return [roots[each] for each in ranges]


def _split(size: int) -> int:
    """The largest power of two below `size`, which is 2 or more."""
    return 1 << ((size - 1).bit_length() - 1)
