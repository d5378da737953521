"""Drawn inputs: what each kind does to the values, by hand, and that they follow from seed and number alone."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch_cpu

import torch
from msgspec.structs import replace

from gpusolver.engine.worker.device import CpuDevice
from gpusolver.engine.worker.inputs import copies, draw
from gpusolver.engine.worker.protocol import Subject

# Two tensors by hand, which need no generator: a float one of strides (1, 2) and an integer one.
FIXED = """
import torch

def inputs(shape, generator, device):
    turned = torch.tensor([[1.0, -2.0, 3.0], [-4.0, 0.0, -6.0]], device=device)
    return turned.t().contiguous().t(), torch.tensor([-7, 8], device=device)

def reference(x, n):
    return x.double()
"""
DRAWN = """
import torch

def inputs(shape, generator, device):
    return (torch.randn(shape["n"], generator=generator, device=device),)

def reference(x):
    return x.double()
"""


def subject(folder: Path, text: str, seed: int = 5) -> Subject:
    path = folder / "reference.py"
    path.write_text(text)
    return Subject(reference=str(path), shape={"n": 4}, seed=seed)


TINY = 1e-40
EXPECTED = {
    "plain": [[1, -2, 3], [-4, 0, -6]],
    "large": [[64, -128, 192], [-256, 0, -384]],
    "small": [[1 / 4096, -2 / 4096, 3 / 4096], [-4 / 4096, 0, -6 / 4096]],
    "one_sign": [[1, 2, 3], [4, 0, 6]],
    # Every third one as they lie in memory, column by column: 1, -4, -2, 0, 3, -6.
    "denormal": [[1 * TINY, -2, 3], [-4, 0, -6]],
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_each_kind_changes_the_floating_point_values_alone(tmp_path: Path, kind: str) -> None:
    values, whole = draw(CpuDevice(), subject(tmp_path, FIXED), 0, kind)
    assert values.tolist() == torch.tensor(EXPECTED[kind]).tolist()
    assert values.stride() == (1, 2)
    assert whole.tolist() == [-7, 8]


def test_denormal_values_are_denormal_in_float32(tmp_path: Path) -> None:
    """Not zero, and below the least normal number, 2^-126."""
    value = draw(CpuDevice(), subject(tmp_path, FIXED), 0, "denormal")[0][0, 0].item()
    assert 0 < value < 2.0**-126


def test_a_kind_changes_what_the_same_number_would_draw(tmp_path: Path) -> None:
    asked = subject(tmp_path, DRAWN)
    (plain,), (large,) = draw(CpuDevice(), asked, 3), draw(CpuDevice(), asked, 3, "large")
    assert large.equal(plain * 64)


def test_inputs_follow_from_the_sum_of_seed_and_number(tmp_path: Path) -> None:
    """As torch's generator makes them of that seed, whatever was drawn before and whatever the global generator holds."""
    expected = torch.randn(4, generator=torch.Generator().manual_seed(8))
    for seed, number in ((5, 3), (8, 0), (0, 8)):
        torch.manual_seed(number)
        assert draw(CpuDevice(), subject(tmp_path, DRAWN, seed), number)[0].equal(expected)
    assert not draw(CpuDevice(), subject(tmp_path, DRAWN), 4)[0].equal(expected)


def test_the_largest_seed_draws_too(tmp_path: Path) -> None:
    """Seeds are below 2^63; the next one after the last is 0."""
    expected = torch.randn(4, generator=torch.Generator().manual_seed(0))
    assert draw(CpuDevice(), subject(tmp_path, DRAWN, 2**63 - 1), 1)[0].equal(expected)


def test_copies_have_memory_of_their_own_and_the_same_strides() -> None:
    base = torch.arange(12.0).view(3, 4)
    views = (base[:, ::2], base.t())
    made = copies(views)
    for one, view in zip(made, views, strict=True):
        assert one.equal(view) and one.stride() == view.stride()
    base.zero_()
    assert made[0].tolist() == [[0, 2], [4, 6], [8, 10]]


POSITIVE = """
import torch

def inputs(shape, generator, device):
    torch.manual_seed(generator.initial_seed())  # as an imported module draws: the same seed, another generator
    return torch.rand(shape["n"], 1024), torch.rand(shape["n"], 1024)

def reference(x, y):
    return x.double()
"""


def test_signs_are_mixed_of_the_inputs_that_are_named_alone(tmp_path: Path) -> None:
    """Of none named, of all; other kinds change every input."""
    asked = replace(subject(tmp_path, POSITIVE), tossed=(1,))
    for kind, changed in (("mixed_signs", [False, True]), ("large", [True, True])):
        found = zip(draw(CpuDevice(), asked, 0), draw(CpuDevice(), asked, 0, kind), strict=True)
        assert [not one.equal(other) for one, other in found] == changed


def test_mixed_signs_are_coins_that_know_neither_the_value_nor_the_other_input(tmp_path: Path) -> None:
    """Of 4096 fair coins 1900 to 2196 fall on one side, with a probability over 0.999996 (4.6 sigma); halves of them likewise."""
    asked = subject(tmp_path, POSITIVE)
    plain, mixed = draw(CpuDevice(), asked, 0), draw(CpuDevice(), asked, 0, "mixed_signs")
    negative = [value < 0 for value in mixed]
    for value, changed, turned in zip(plain, mixed, negative, strict=True):
        assert changed.abs().equal(value)
        assert 1900 <= int(turned.sum()) <= 2196
        assert 0.45 < float(turned[value < 0.5].float().mean()) < 0.55
    assert 1900 <= int((negative[0] ^ negative[1]).sum()) <= 2196
    assert all(one.equal(two) for one, two in zip(mixed, draw(CpuDevice(), asked, 0, "mixed_signs"), strict=True))
