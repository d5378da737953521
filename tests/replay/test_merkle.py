"""The verifier's tree against the published cases, and against the writing side's for every small size and every flipped bit."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusolver.events import merkle as writing
from gpusolver.replay.merkle import Heads, is_consistent, is_included, leaf_hash
from tests.events.test_merkle import CONSISTENCY, INCLUSION, LEAVES, ROOTS

CASES = json.loads((Path(__file__).parent / "rfc6962_cases.json").read_text("utf-8"))
"""Inclusion and consistency cases, 98 of each, of github.com/transparency-dev/merkle (Apache License 2.0)."""


def head(leaves: list[bytes]) -> bytes:
    heads = Heads()
    heads.extend(leaves)
    return heads.root()


def unhex(path: list[str]) -> list[bytes]:
    return [bytes.fromhex(node) for node in path]


def test_there_are_all_the_published_cases() -> None:
    assert (len(CASES["inclusion"]), len(CASES["consistency"])) == (98, 98)
    assert sum(not case["wantErr"] for case in CASES["inclusion"] + CASES["consistency"]) > 10


@pytest.mark.parametrize("case", CASES["inclusion"], ids=lambda case: case["name"])
def test_published_inclusion_case(case: dict[str, Any]) -> None:
    path = [b64decode(node) for node in case["proof"] or []]
    held = is_included(b64decode(case["leafHash"]), case["leafIdx"], case["treeSize"], path, b64decode(case["root"]))
    assert held is not case["wantErr"]


@pytest.mark.parametrize("case", CASES["consistency"], ids=lambda case: case["name"])
def test_published_consistency_case(case: dict[str, Any]) -> None:
    path = [b64decode(node) for node in case["proof"] or []]
    roots = b64decode(case["root1"] or ""), b64decode(case["root2"] or "")
    assert is_consistent(case["size1"], case["size2"], *roots, path) is not case["wantErr"]


@pytest.mark.parametrize("size", range(9))
def test_published_roots(size: int) -> None:
    assert head(LEAVES[:size]).hex() == ROOTS[size]


@pytest.mark.parametrize("index, size", INCLUSION)
def test_published_audit_paths_hold(index: int, size: int) -> None:
    path, root = unhex(INCLUSION[index, size]), bytes.fromhex(ROOTS[size])
    assert is_included(leaf_hash(LEAVES[index]), index, size, path, root)
    assert not is_included(leaf_hash(LEAVES[index]), index, size, [*path, root], root)
    assert not is_included(leaf_hash(b"other"), index, size, path, root)


@pytest.mark.parametrize("old, new", CONSISTENCY)
def test_published_consistency_proofs_hold(old: int, new: int) -> None:
    path, roots = unhex(CONSISTENCY[old, new]), (bytes.fromhex(ROOTS[old]), bytes.fromhex(ROOTS[new]))
    assert is_consistent(old, new, *roots, path)
    assert not is_consistent(old, new, *roots, [*path, roots[1]])


def leaves_of(size: int) -> list[bytes]:
    return [number.to_bytes(4, "big") for number in range(size)]


def flipped(path: list[bytes]) -> list[list[bytes]]:
    """The path with one bit of each node the other way, and with each node left out."""
    bits = [[*path[:i], bytes([path[i][0] ^ 1]) + path[i][1:], *path[i + 1 :]] for i in range(len(path))]
    return bits + [[*path[:i], *path[i + 1 :]] for i in range(len(path))]


def test_every_inclusion_proof_up_to_forty_leaves() -> None:
    """Each made by one side, held by the other, and refused with any node altered or missing, or at another place."""
    for size in range(1, 41):
        leaves = leaves_of(size)
        root = head(leaves)
        for index in range(size):
            path = writing.subtree_roots(leaves, writing.inclusion_ranges(index, size))
            leaf = leaf_hash(leaves[index])
            assert is_included(leaf, index, size, path, root)
            assert not any(is_included(leaf, index, size, other, root) for other in flipped(path))
            assert not any(is_included(leaf, other, size, path, root) for other in range(size) if other != index)


def test_every_consistency_proof_up_to_forty_leaves() -> None:
    for new in range(1, 41):
        leaves = leaves_of(new)
        roots = [head(leaves[:size]) for size in range(new + 1)]
        for old in range(1, new + 1):
            path = writing.subtree_roots(leaves, writing.consistency_ranges(old, new))
            assert is_consistent(old, new, roots[old], roots[new], path)
            assert not any(is_consistent(old, new, roots[old], roots[new], other) for other in flipped(path))
            assert old == new or not is_consistent(old, new, roots[old - 1], roots[new], path)


@given(st.integers(0, 1400), st.data())
def test_both_sides_agree_on_heads_whatever_the_portions(size: int, data: st.DataObject) -> None:
    """Wanted sizes are noted on the way, in whatever portions the leaves come."""
    leaves = leaves_of(size)
    wanted = data.draw(st.lists(st.integers(0, 1500), max_size=5))
    heads, at = Heads(wanted), 0
    while at < size:
        portion = data.draw(st.integers(1, 600))
        heads.extend(leaves[at : at + portion])
        at += portion
    assert heads.root() == writing.root(leaves)
    assert heads.at == {size_: writing.root(leaves[:size_]) for size_ in wanted if size_ <= size}


@given(st.integers(1, 900), st.data())
def test_both_sides_agree_on_proofs(size: int, data: st.DataObject) -> None:
    leaves = leaves_of(size)
    index, old = data.draw(st.integers(0, size - 1)), data.draw(st.integers(1, size))
    path = writing.subtree_roots(leaves, writing.inclusion_ranges(index, size))
    assert is_included(leaf_hash(leaves[index]), index, size, path, head(leaves))
    path = writing.subtree_roots(leaves, writing.consistency_ranges(old, size))
    assert is_consistent(old, size, head(leaves[:old]), head(leaves), path)
