"""Inertness, one difference at a time, and the context of evidence."""

from typing import Any

import pytest

from gpusolver.events.model import Context
from gpusolver.profilers.launches import context, is_inert, language, structure

from .examples import CHIP, launch, launches

DOT = "%5 = tt.dot %3, %4, %c, inputPrecision = tf32 : tensor<32x32xf32>"
PLAIN = "%5 = arith.mulf %3, %4 : tensor<32x32xf32>"


def test_equal_lists_are_inert() -> None:
    assert is_inert(launches(launch(), launch("c2")), launches(launch(), launch("c2")))


@pytest.mark.parametrize(
    "change", [{"name": "other"}, {"ttir": "t9"}, {"registers": 99}, {"local_bytes": 8}, {"language": "library"}]
)
def test_what_is_not_machine_work_does_not_count(change: dict[str, Any]) -> None:
    assert is_inert(launches(launch(**change)), launches(launch()))


@pytest.mark.parametrize(
    "change",
    [
        {"code": "c2"},
        {"grid": (8, 1, 1)},
        {"block": (64, 1, 1)},
        {"shared": 2048},
        {"scalars": {"n": 1001}},
        {"scalars": {"m": 1000}},
        {"scalars": {"n": 1000.0}},
    ],
)
def test_each_difference_counts(change: dict[str, Any]) -> None:
    assert not is_inert(launches(launch(**change)), launches(launch()))


def test_order_and_number_count() -> None:
    pair = launches(launch("c1"), launch("c2"))
    assert not is_inert(launches(launch("c2"), launch("c1")), pair)
    assert not is_inert(launches(launch("c1")), pair)


def test_order_of_named_scalars_does_not() -> None:
    one, two = launch(scalars={"m": 1, "n": 2}), launch(scalars={"n": 2, "m": 1})
    assert is_inert(launches(one), launches(two))


@pytest.mark.parametrize(
    "unknown",
    [launches(launch(), complete=False), launches(), launches(launch(None)), launches(launch(), launch(None))],
)
def test_what_is_not_known_is_never_inert(unknown: Any) -> None:
    assert not is_inert(unknown, unknown)
    assert not is_inert(launches(launch()), unknown)
    assert not is_inert(unknown, launches(launch()))


def test_language_and_structure() -> None:
    triton = launches(launch(language="library"), launch())
    library = launches(launch(language="library"))
    assert (language(triton), language(library), language(launches())) == ("triton", "library", "library")
    assert structure(triton, [PLAIN, DOT]) == "dot"
    assert structure(triton, [PLAIN]) == "no_dot"
    assert structure(triton, []) == "no_dot"
    assert structure(library, [DOT]) == "library"


def test_context() -> None:
    assert context(CHIP, "fp32-strict", "matmul", launches(launch()), [DOT]) == Context(
        chip="toy", contract="fp32-strict", language="triton", family="matmul", structure="dot"
    )
