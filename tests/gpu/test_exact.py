"""Convolutions in float64 by cudnn and by torch's own kernels: the same answer, and the slower one is not asked again. Needs a GPU."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.gpu

import torch
from torch.nn import functional

from gpusolver.problems.exact import LONG_S, Exact


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
        torch.backends.cudnn.enabled = enabled
        try:
            found = call(image.cuda(), filters.cuda(), padding=1, groups=groups)
        finally:
            torch.backends.cudnn.enabled = True
        assert float((found.cpu() - expected).abs().max()) < 1e-12 * float(expected.abs().max())


def test_of_a_long_one_the_faster_is_kept() -> None:
    """0.11 TFLOP: by far longer than what is left to cudnn unasked, or there is nothing to choose."""
    image = torch.randn(8, 48, 48, 48, 48, device="cuda", dtype=torch.float64)
    filters = torch.randn(48, 48, 3, 3, 3, device="cuda", dtype=torch.float64)

    def seconds(enabled: bool) -> float:
        torch.backends.cudnn.enabled = enabled
        try:
            torch.cuda.synchronize()
            began = time.perf_counter()
            functional.conv_transpose3d(image, filters)
            torch.cuda.synchronize()
            return time.perf_counter() - began
        finally:
            torch.backends.cudnn.enabled = True

    by = Exact()
    first = by(lambda: functional.conv_transpose3d(image, filters))
    spent = {enabled: min(seconds(enabled) for _ in range(3)) for enabled in (True, False)}
    print(f"{spent[True]:.3f} s by cudnn, {spent[False]:.3f} s by torch's own kernels")
    torch.testing.assert_close(by(lambda: functional.conv_transpose3d(image, filters)), first, rtol=1e-10, atol=1e-10)
    close = max(spent.values()) < 1.5 * min(spent.values())
    assert close or spent[True] < LONG_S or by.apart is (spent[False] < spent[True])
