"""The text of the module generator: what it offers when, and that it touches nothing but how the module is called. No torch."""

from __future__ import annotations

import msgspec
import pytest

from gpusolver.engine.generators.base import Asked
from gpusolver.engine.generators.module import WAYS, ModuleGenerator
from gpusolver.engine.generators.module_text import ORDER, precision_of, ways_of, with_ways
from gpusolver.engine.rules import rules
from gpusolver.problems.contract import Problem, load
from gpusolver.problems.module_source import MARK, ModuleCall, eager
from gpusolver.problems.sources import strict_twin, with_precision

USER = '"""Mine."""\nimport torch\n\n\nclass Model(torch.nn.Module):\n    PART = torch.nn.Conv2d(4, 4, 1), torch.nn.ConvTranspose2d, torch.nn.MaxPool2d, "groups", torch.tril, torch.mean, torch.sqrt, torch.mv\n'
CALL = ModuleCall(tensors=2, fixed={1: -0.5, 2: "sum"}, state=("conv.weight", "conv.bias"), eval="dropout")
START = eager(USER, CALL)
PLAIN = tuple(way for way in ORDER if way != "rows")  # which only texts that name one of its operators get


def problem(family: str = "matmul") -> Problem:
    return msgspec.structs.replace(load("matmul"), name="mine", family=family, start=START, eager=START)


def asked(prescription: str, source: str = START, contract: str = "tf32-allowed", family: str = "matmul") -> Asked:
    return Asked(
        problem=problem(family), contract=contract, prescription=prescription, rule="r", source=source, signals={}
    )


def proposed(question: Asked) -> list[tuple[str, tuple[str, ...]]]:
    """(precision, ways) of every source."""
    found = ModuleGenerator().propose(question)
    return [] if found is None else [(precision_of(source), ways_of(source)) for source in found.sources]


@pytest.mark.parametrize("ways", [(), *((way,) for way in PLAIN), PLAIN])
def test_every_source_is_whole_and_keeps_the_users_text(ways: tuple[str, ...]) -> None:
    source = with_ways(START, ways, "ieee")
    compile(source, "source", "exec")
    assert source.partition(MARK)[0] == START.partition(MARK)[0]
    assert strict_twin(source) == source
    assert ways_of(source) == ways
    assert with_ways(source, (), "ieee") == with_ways(START, (), "ieee")
    assert "_FIXED = {1: -0.5, 2: 'sum'}" in source and '_EVAL = "dropout"' in source


def test_further_ways_come_on_top_of_those_that_won_and_keep_the_precision() -> None:
    incumbent = with_ways(START, ("channels_last", "compile"), "tf32")
    assert proposed(asked("cuda_graph", incumbent)) == [
        ("tf32", ("channels_last", "compile", "cuda_graph")),
        ("tf32", ("channels_last", "reduce_overhead")),
    ]


def test_tf32_is_set_in_every_source_of_its_prescription() -> None:
    found = proposed(asked("enable_tf32", family="conv"))
    assert {precision for precision, _ in found} == {"tf32"}
    assert found[0] == ("tf32", ())
    assert ("tf32", ("channels_last", "compile", "benchmark")) in found


@pytest.mark.parametrize("family", ["reduce", "norm", "elementwise"])
def test_without_a_product_tf32_is_not_served(family: str) -> None:
    """It would change nothing there, and a kernel that some other way makes faster would have the wrong reason in its ledger."""
    assert not ModuleGenerator().serves(asked("enable_tf32", family=family))
    assert ModuleGenerator().serves(asked("less_traffic", family=family))
    assert ModuleGenerator().serves(asked("enable_tf32", family="matmul"))


def test_strict_is_never_served_tf32() -> None:
    question = asked("enable_tf32", contract="fp32-strict")
    assert not ModuleGenerator().serves(question)
    carried = asked("fuse", with_precision(START, "tf32"), contract="fp32-strict")
    assert {precision for precision, _ in proposed(carried)} == {"ieee"}


def test_layout_is_offered_where_there_are_convolutions_alone() -> None:
    assert all("channels_last" not in ways for _, ways in proposed(asked("fuse")))
    assert any("channels_last" in ways for _, ways in proposed(asked("fuse", family="network")))


def test_what_it_does_already_and_what_is_no_module_falls_through() -> None:
    done = with_ways(START, ("fused_attention", "compile"), "ieee")
    assert ("ieee", ("fused_attention", "compile")) not in proposed(asked("fused_attention", done))
    assert ModuleGenerator().propose(asked("fuse", load("matmul").start)) is None
    other = Asked(
        problem=load("matmul"), contract="tf32-allowed", prescription="fuse", rule="r", source=START, signals={}
    )
    assert not ModuleGenerator().serves(other)


def test_what_the_users_text_has_no_use_for_is_left_out() -> None:
    plain = START.replace(
        'torch.nn.Conv2d(4, 4, 1), torch.nn.ConvTranspose2d, torch.nn.MaxPool2d, "groups", torch.tril, torch.mean, torch.sqrt, torch.mv',
        "None",
    )
    assert ways_of(with_ways(plain, ORDER, "ieee")) == (
        "channels_last", "folded", "fused_attention", "in_place", "compile", "compile_autotune", "reduce_overhead", "cuda_graph",
    )  # fmt: skip
    pooled = with_ways(plain.replace("PART = None", "PART = torch.nn.AvgPool1d"), ("pools",), "ieee")
    assert "def _pooling(" in pooled and "def _depthwise(" not in pooled and "_REWRITES = (_pooling,)" in pooled
    assert ways_of(with_ways(plain.replace("PART = None", "PART = torch.nn.Conv2d(4, 4, 3)"), ORDER[:8], "ieee")) == (
        "channels_last", "folded",
    )  # fmt: skip
    product = with_ways(plain.replace("PART = None", "PART = torch.triu"), ("pools", "triangular"), "ieee")
    assert ways_of(product) == ("triangular",) and "def _pooling(" not in product


def test_of_two_ways_for_one_thing_a_source_has_the_later() -> None:
    incumbent = with_ways(START, ("triangular", "compile"), "ieee")
    found = [ways for _, ways in proposed(asked("tile", incumbent))]
    assert ("triangular_tiles", "compile") in found and ("triangular", "compile_autotune") in found
    assert not any({"triangular", "triangular_tiles"} <= set(ways) for ways in found)


def test_its_prescriptions_are_some_rule_s() -> None:
    known = {rule.prescription for table in ("seed", "full") for rule in rules(table)}
    assert set(WAYS) <= known
