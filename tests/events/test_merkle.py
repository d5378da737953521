"""events/merkle.py against the published tree of eight leaves, and against the recursive definition of RFC 6962."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusolver.events.errors import BadInput
from gpusolver.events.merkle import Tree, consistency_ranges, inclusion_ranges, root, subtree_roots

LEAVES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
"""The reference leaves of Certificate Transparency."""

ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
"""The published roots over the first 0 to 8 of them."""

INCLUSION = {
    (0, 1): [],
    (0, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (5, 8): [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 3): ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
    (1, 5): [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}
"""Published audit paths by (leaf from 0, size)."""

CONSISTENCY = {
    (1, 1): [],
    (1, 8): INCLUSION[0, 8],
    (6, 8): [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 5): [
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}
"""Published consistency proofs by (old size, new size)."""


def defined(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962 section 2.1, word for word."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return sha256(b"\0" + leaves[0]).digest()
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return sha256(b"\1" + defined(leaves[:k]) + defined(leaves[k:])).digest()


@pytest.mark.parametrize("size", range(9))
def test_published_roots(size: int) -> None:
    assert root(LEAVES[:size]).hex() == ROOTS[size]


@pytest.mark.parametrize("index, size", INCLUSION)
def test_published_audit_paths(index: int, size: int) -> None:
    path = subtree_roots(LEAVES[:size], inclusion_ranges(index, size))
    assert [node.hex() for node in path] == INCLUSION[index, size]


@pytest.mark.parametrize("old, new", CONSISTENCY)
def test_published_consistency_proofs(old: int, new: int) -> None:
    path = subtree_roots(LEAVES[:new], consistency_ranges(old, new))
    assert [node.hex() for node in path] == CONSISTENCY[old, new]


@given(st.lists(st.binary(max_size=3), max_size=70))
def test_the_head_after_each_leaf_is_the_definitions(leaves: list[bytes]) -> None:
    tree = Tree()
    for size, leaf in enumerate(leaves):
        assert tree.root() == defined(leaves[:size])
        tree.append(leaf)
    assert (tree.size, tree.root()) == (len(leaves), defined(leaves))


@pytest.mark.parametrize("index, size", [(0, 0), (1, 1), (-1, 4), (4, 4)])
def test_a_leaf_outside_the_tree_has_no_proof(index: int, size: int) -> None:
    with pytest.raises(BadInput, match=f"expected a leaf from 0 to {size - 1}, found {index}"):
        inclusion_ranges(index, size)


@pytest.mark.parametrize("old, new", [(0, 4), (5, 4), (-1, 2)])
def test_sizes_that_no_consistency_proof_is_about(old: int, new: int) -> None:
    with pytest.raises(BadInput, match=f"found {old} and {new}"):
        consistency_ranges(old, new)


def test_too_few_leaves_are_named() -> None:
    with pytest.raises(BadInput, match="expected at least 4 leaves, found 3"):
        subtree_roots(LEAVES[:3], inclusion_ranges(0, 8))
