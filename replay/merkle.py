"""Tree heads and the checking of proofs, after RFC 9162 section 2.1 (RFC 6962's tree). Shares no code with the side that proves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

EMPTY = sha256(b"").digest()
_BLOCK = 256  # leaves hashed level by level at once: a full subtree of eight levels


def leaf_hash(leaf: bytes) -> bytes:
    """The hash of a leaf's bytes; here they are the 32 bytes of an event's hash."""
    return sha256(b"\x00" + leaf).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node."""
    return sha256(b"\x01" + left + right).digest()


Step = tuple[str, bytes]
"""(`leaves`, their hashes), (`block`, the head of 256 of them) or (`mark`, nothing)."""


class Heads:
    """The tree over leaves that come in order, and its heads at the sizes that were asked for.

    Memory: a block of leaves, and one hash for each level above.
    """

    def __init__(self, wanted: Iterable[int] = ()) -> None:
        self.size = 0
        self.at: dict[int, bytes] = {}
        self._wanted = sorted(set(wanted), reverse=True)
        self._blocks: list[tuple[int, bytes]] = []  # (levels, root) of full subtrees, largest first
        self._rest: list[bytes] = []
        self._note_wanted()

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Add leaves; the heads at wanted sizes are noted on the way."""
        done = 0
        while done < len(leaves):
            upto = len(leaves)
            if self._wanted and self._wanted[-1] - self.size < upto - done:
                upto = done + self._wanted[-1] - self.size
            self._add(leaves[done:upto])
            done = upto
            self._note_wanted()

    def follow(self, steps: Iterable[Step]) -> None:
        """Do what a `Portion` did elsewhere, as if its leaves had come here. Its first leaf must be the next one here."""
        for kind, hashes in steps:
            if kind == "block":
                self._block(hashes)
            elif kind == "mark":
                self.mark()
            else:
                self._rest += [hashes[at : at + 32] for at in range(0, len(hashes), 32)]
                self.size += len(hashes) // 32
                self._fold()

    def mark(self) -> None:
        """Note the head at the present size."""
        self.at[self.size] = self.root()

    def root(self) -> bytes:
        """The head at the present size."""
        node = _subtree(self._rest) if self._rest else None
        for _, block in reversed(self._blocks):
            node = block if node is None else node_hash(block, node)
        return EMPTY if node is None else node

    def _note_wanted(self) -> None:
        while self._wanted and self._wanted[-1] <= self.size:
            if self._wanted.pop() == self.size:
                self.mark()

    def _add(self, leaves: Sequence[bytes]) -> None:
        self._rest += [sha256(b"\x00" + leaf).digest() for leaf in leaves]
        self.size += len(leaves)
        self._fold()

    def _fold(self) -> None:
        while len(self._rest) >= _BLOCK:
            root = _subtree(self._rest[:_BLOCK])
            del self._rest[:_BLOCK]
            self._push(root)

    def _push(self, root: bytes) -> None:
        level = 8
        while self._blocks and self._blocks[-1][0] == level:
            root = node_hash(self._blocks.pop()[1], root)
            level += 1
        self._blocks.append((level, root))

    def _block(self, root: bytes) -> None:
        if self._rest:
            raise ValueError("a block that does not begin where the last one ended")
        self._push(root)
        self.size += _BLOCK


class Portion(Heads):
    """Leaves from a place in the middle on, without those before: the steps by which `Heads.follow` adds them.

    Whole blocks go as one hash, what is left over at either end, or before a mark, leaf by leaf.
    """

    def __init__(self, offset: int, wanted: Iterable[int] = ()) -> None:
        super().__init__(size for size in wanted if size > offset)
        self.size, self.steps = offset, list[Step]()

    def mark(self) -> None:
        """The head at the present size is wanted."""
        self.finish()
        self.steps.append(("mark", b""))

    def finish(self) -> None:
        """Give what is not a whole block."""
        if self._rest:
            self.steps.append(("leaves", b"".join(self._rest)))
            self._rest.clear()

    def _fold(self) -> None:
        while self._rest:
            into = (self.size - len(self._rest)) % _BLOCK
            if len(self._rest) < _BLOCK - into:
                return
            part = self._rest[: _BLOCK - into]
            del self._rest[: _BLOCK - into]
            self.steps.append(("leaves", b"".join(part)) if into else ("block", _subtree(part)))


def _subtree(hashes: Sequence[bytes]) -> bytes:
    """The head over leaf hashes: pairs level by level; one that is left over at the end rises as it is."""
    level = list(hashes)
    while len(level) > 1:
        pairs = iter(level)
        odd = level[-1:] if len(level) % 2 else []
        level = [sha256(b"\x01" + left + right).digest() for left, right in zip(pairs, pairs, strict=False)] + odd
    return level[0]


def is_included(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether `path` shows that the leaf with hash `leaf` has place `index` (from 0) in the tree of `size` leaves under `root`."""
    if not 0 <= index < size or len(leaf) != len(EMPTY):
        return False
    place, last, node = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return False
        if place & 1 or place == last:
            node = node_hash(sibling, node)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            node = node_hash(node, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and node == root


def is_consistent(old: int, new: int, old_root: bytes, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Whether `path` shows that the tree of `new` leaves begins with the tree of `old` leaves.

    The RFC leaves out two cases: equal sizes take no path and one root; a tree of no leaves proves nothing, so False.
    """
    if not 0 < old <= new:
        return False
    if old == new:
        return not path and old_root == new_root
    hashes = [old_root, *path] if old & (old - 1) == 0 else list(path)
    if not path:
        return False
    place, last = old - 1, new - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    was = now = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            was, now = node_hash(sibling, was), node_hash(sibling, now)
            while place and not place & 1:
                place, last = place >> 1, last >> 1
        else:
            now = node_hash(now, sibling)
        place, last = place >> 1, last >> 1
    return last == 0 and was == old_root and now == new_root
