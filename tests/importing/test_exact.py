"""Who answers in float64: cudnn or torch's own kernels, on a device that is made up, for there is no cudnn here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch_cpu

import torch

from gpusolver.problems import exact
from gpusolver.problems.exact import Exact, quick


class OnCard(torch.Tensor):  # type: ignore[misc]
    """Says that it is on a card."""

    is_cuda = True


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[bool, float]]:
    """Seconds that a call takes with cudnn and without."""
    takes = {True: 0.4, False: 0.02}
    monkeypatch.setattr(exact, "_seconds", lambda call: takes[torch.backends.cudnn.enabled])
    monkeypatch.setattr(torch.backends.cudnn, "enabled", True)
    yield takes
    assert torch.backends.cudnn.enabled


def convolved(seen: list[bool]) -> torch.Tensor:
    """Notes whether cudnn may answer."""
    seen.append(torch.backends.cudnn.enabled)
    image, filters = torch.ones(1, 1, 4, 4, dtype=torch.float64), torch.ones(1, 1, 3, 3, dtype=torch.float64)
    return torch.nn.functional.conv2d(image, filters).as_subclass(OnCard)


@pytest.mark.parametrize(
    ("with_cudnn", "without", "apart"), [(0.4, 0.02, True), (0.4, 0.5, False), (0.019, 0.001, False)]
)
def test_a_long_convolution_goes_to_the_faster_one(
    card: dict[bool, float], with_cudnn: float, without: float, apart: bool
) -> None:
    card.update({True: with_cudnn, False: without})
    by, seen = Exact(), list[bool]()
    assert [by(lambda: convolved(seen)).sum().item() for _ in range(3)] == [36.0] * 3  # four sums of nine ones
    assert by.apart is apart and seen[-1] is not apart


def test_where_the_other_one_cannot_cudnn_goes_on(card: dict[bool, float]) -> None:
    def scarce() -> torch.Tensor:
        if not torch.backends.cudnn.enabled:
            raise torch.OutOfMemoryError("columns")
        return convolved([])

    by = Exact()
    by(scarce)
    assert by.apart is False
    with pytest.raises(ZeroDivisionError):
        Exact()(lambda: torch.ones(1) * (1 / 0))


def test_products_and_answers_on_a_cpu_are_left_alone(card: dict[bool, float]) -> None:
    product, here = Exact(), Exact()
    product(lambda: (torch.ones(2, 2) @ torch.ones(2, 2)).as_subclass(OnCard))
    here(lambda: convolved([]).as_subclass(torch.Tensor))
    assert (product.apart, here.apart) == (False, False)


def test_a_reference_is_the_same_function() -> None:
    double = quick(lambda x, y: 2 * x + y)
    x, y = torch.arange(4.0), torch.ones(4)
    assert double(x, y).tolist() == double(x, y).tolist() == [1.0, 3.0, 5.0, 7.0]
