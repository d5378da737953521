"""Convolutions in float64 by cudnn and by torch's own kernels: the same answer, and the slower one is not asked again. Needs a GPU."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.gpu

import torch
from torch.nn import functional

from gpusolver.problems.exact import Exact, _cudnn, _seconds


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 16])
def test_either_gives_the_answer_of_a_cpu(transposed: bool, groups: int) -> None:
    """Sums of at most 9 * 16 terms near 1: within 1e-12."""
    made = torch.Generator().manual_seed(1)
    image = torch.randn(2, 16, 24, 24, generator=made, dtype=torch.float64)
    filters = torch.randn(16, 16 // groups, 3, 3, generator=made, dtype=torch.float64)
    call = functional.conv_transpose2d if transposed else functional.conv2d
    expected = call(image, filters, padding=1, groups=groups)
    for enabled in (True, False):
        with _cudnn(enabled):
            found = call(image.cuda(), filters.cuda(), padding=1, groups=groups)
        assert float((found.cpu() - expected).abs().max()) < 1e-12 * float(expected.abs().max())


def test_of_a_long_one_the_faster_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    image = torch.randn(8, 48, 48, 48, 48, device="cuda", dtype=torch.float64)
    filters = torch.randn(48, 48, 3, 3, 3, device="cuda", dtype=torch.float64)
    by = Exact()
    first = by(lambda: functional.conv_transpose3d(image, filters))
    spent = {}
    for enabled in (True, False):
        with _cudnn(enabled):
            spent[enabled] = _seconds(lambda: functional.conv_transpose3d(image, filters))
    with capsys.disabled():
        print(f"\n0.11 TFLOP in float64: {spent[True]:.3f} s by cudnn, {spent[False]:.3f} s by torch's own kernels")
    again = by(lambda: functional.conv_transpose3d(image, filters))
    torch.testing.assert_close(again, first, rtol=1e-10, atol=1e-10)
    if max(spent.values()) > 1.5 * min(spent.values()) and spent[True] > 0.03:
        assert by.apart is (spent[False] < spent[True])
