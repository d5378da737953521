"""Errors of outputs, by hand: norms, the largest difference, and elements that are not finite, for each dtype that a kernel may return."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch_cpu

import torch

from gpusolver.engine.worker.errors import errors, trivial

NAN, INF = math.nan, math.inf


def wide(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_the_norm_of_the_difference_over_that_of_the_answer() -> None:
    """(3, 4) has norm 5 and RMS 5 / sqrt 2; (3, 5) is 1 away."""
    found = errors(wide(3, 5), wide(3, 4))
    assert found == {"nonfinite": 0, "rel_l2": 0.2, "max_rms": pytest.approx(math.sqrt(2) / 5, rel=1e-15)}


def test_an_equal_answer_has_no_error() -> None:
    assert errors(wide(1, -2, 3), wide(1, -2, 3)) == {"nonfinite": 0, "rel_l2": 0.0, "max_rms": 0.0}


@pytest.mark.parametrize(
    ("out", "expected", "nonfinite"),
    [
        ((NAN, 4.0), (3.0, 4.0), 1),
        ((INF, 4.0), (3.0, 4.0), 1),
        ((NAN, -INF), (3.0, 4.0), 2),
        ((3.0, 4.0), (NAN, 4.0), 1),
        ((3.0, 4.0), (INF, 4.0), 1),
        ((INF, 4.0), (-INF, 4.0), 1),
        ((NAN, 4.0), (INF, 4.0), 1),
        ((INF, 4.0), (NAN, 4.0), 1),
    ],
)
def test_an_element_that_is_not_finite_in_the_same_way_counts_once(
    out: tuple[float, ...], expected: tuple[float, ...], nonfinite: int
) -> None:
    assert errors(wide(*out), wide(*expected))["nonfinite"] == nonfinite


@pytest.mark.parametrize("odd", [NAN, INF, -INF])
def test_where_both_are_not_finite_alike_the_rest_decides(odd: float) -> None:
    """The element counts for nothing: (3, 5) against (3, 4), and an RMS over the three elements, 5 / sqrt 3."""
    found = errors(wide(odd, 3, 5), wide(odd, 3, 4))
    assert found == {"nonfinite": 0, "rel_l2": 0.2, "max_rms": pytest.approx(math.sqrt(3) / 5, rel=1e-15)}


@pytest.mark.parametrize("odd", [NAN, INF])
def test_an_output_that_is_not_finite_where_the_answer_is_has_no_norm(odd: float) -> None:
    assert errors(wide(odd, 4), wide(3, 4)) == {"nonfinite": 1, "rel_l2": None, "max_rms": None}


@pytest.mark.parametrize("out", [(0.0, 0.0), (0.0, 1.0)])
def test_against_zeros_there_is_no_relative_error(out: tuple[float, ...]) -> None:
    """0 / 0 and 1 / 0 alike: never a pass."""
    assert errors(wide(*out), wide(0, 0)) == {"nonfinite": 0, "rel_l2": None, "max_rms": None}


def test_against_an_answer_without_a_finite_element_there_is_none_either() -> None:
    assert errors(wide(NAN, INF), wide(NAN, INF)) == {"nonfinite": 0, "rel_l2": None, "max_rms": None}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8])
def test_other_dtypes_are_compared_in_double(dtype: torch.dtype) -> None:
    """Both values are exact in each; the square of 250 is beyond uint8, and 65504 is float16's last."""
    found = errors(torch.tensor([3, 5], dtype=dtype), wide(3, 4))
    assert found["rel_l2"] == 0.2
    assert errors(torch.tensor([250, 0], dtype=dtype), torch.tensor([250, 250], dtype=dtype))["rel_l2"] == (
        pytest.approx(1 / math.sqrt(2), rel=1e-15)
    )


def test_float16_beyond_its_range_is_infinite_and_counts() -> None:
    assert errors(wide(1e5, 1).half(), wide(1e5, 1))["nonfinite"] == 1
    assert errors(torch.tensor([60000.0, 60000.0]).half(), wide(60000, 60000))["rel_l2"] == 0.0


def test_a_float32_output_is_compared_with_the_double_answer_as_it_is() -> None:
    """The answer is not rounded to float32 first: 1 + 2^-30 stays 2^-30 away from 1."""
    found = errors(torch.ones(1), wide(1 + 2.0**-30))
    assert found["rel_l2"] == pytest.approx(2.0**-30, rel=1e-8)


def test_an_output_by_strides_counts_as_its_elements() -> None:
    turned = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).t()
    assert errors(turned, wide(1, 3, 2, 4).view(2, 2))["rel_l2"] == 0.0


def test_answers_that_nobody_had_to_compute() -> None:
    """Of (0, 3, 4), whose norm is 5 and mean 7 / 3; moved on by two places it is (3, 4, 0)."""
    found = trivial((wide(0, 3, 4).float(), wide(9, 9)), wide(0, 3, 4), wide(0, 3, 5))
    expected = {
        "zeros": 1.0,
        "ones": math.sqrt(1 + 4 + 9) / 5,
        "mean": math.sqrt(49 + 4 + 25) / 3 / 5,
        "shuffled": math.sqrt(9 + 1 + 16) / 5,
        "other_inputs": 1 / 5,
        "input_0": 0.0,  # the one input that has the answer's shape
    }
    assert {name: row["rel_l2"] for name, row in found.items()} == pytest.approx(expected, rel=1e-12)
    assert all(set(row) == {"rel_l2", "max_rms"} for row in found.values())


def test_an_answer_to_other_inputs_is_asked_only_where_it_has_the_same_shape() -> None:
    assert "other_inputs" not in trivial((), wide(1, 3), wide(1, 3, 5))
    assert "other_inputs" not in trivial((), wide(1, 3), None)


def test_of_an_answer_of_zeros_alone_zeros_are_the_trivial_one() -> None:
    assert trivial((wide(1, 2),), wide(0, 0), None)["zeros"] == {"rel_l2": 0.0, "max_rms": 0.0}
    assert trivial((wide(1, 2),), wide(0, 1), None)["zeros"]["rel_l2"] == 1.0


def test_of_one_number_and_of_two_no_trivial_answer_is_the_answer_itself() -> None:
    """The mean of one number is that number; two numbers turned round by two are where they were."""
    assert set(trivial((wide(1, 2),), wide(3.0).sum(), None)) == {"zeros", "ones"}
    assert trivial((wide(1, 2, 3),), wide(3, 4), None)["shuffled"]["rel_l2"] == pytest.approx(
        math.sqrt(2) / 5, rel=1e-12
    )
