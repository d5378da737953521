"""Which kernels meet after the rounds, and when a claim is upheld."""

from __future__ import annotations

import pytest

from gpusolver.engine.rules import seed_rules
from gpusolver.events.model import ClaimRegistered, Event, HeadToHead, cell_stream
from gpusolver.projections.claims import Side, answer, claim_repetitions, endpoint_pairs, planned_arms, recorded_source
from gpusolver.projections.runs import Group, fold

from .support import Outcome, World, cell_of, context_of, head_to_head, plan_of, registered, run_stream, simulate

CLAIM = ClaimRegistered(
    claim="c1",
    text="ON is at least 5.8 times as fast as OFF",
    problem="toy",
    contract="tf32-allowed",
    pool="flags",
    comparison="endpoint",
    at_least=5.8,
    decimals=1,
)
GROUP = Group(problem="toy", contract="tf32-allowed", pool="flags", repetition=1)


def named(side: Side) -> str:
    text = {"start": "S", "incumbent": f"W({side.name})", "baseline": side.name}[side.role]
    return f"twin({text})" if side.strict else text


def test_all_pairs_in_the_order_of_the_format() -> None:
    pairs = endpoint_pairs(("off", "on", "off+tabu"), ("eager_fp32",))
    assert [(pair.comparison, named(pair.left), named(pair.right)) for pair in pairs] == [
        ("endpoint", "W(off)", "W(on)"),
        ("endpoint_kernel", "twin(W(off))", "twin(W(on))"),
        ("total", "S", "W(on)"),
        ("kernel_part", "S", "twin(W(on))"),
        ("precision_part", "twin(W(on))", "W(on)"),
        ("tabu", "W(off+tabu)", "W(on)"),
        ("versus:eager_fp32", "eager_fp32", "W(on)"),
    ]


@pytest.mark.parametrize(
    ("arms", "left_out"),
    [
        (("off", "on"), {"tabu"}),
        (("on",), {"tabu", "endpoint", "endpoint_kernel"}),
        (("on", "off+tabu"), {"endpoint", "endpoint_kernel"}),
    ],
)
def test_pairs_of_arms_that_are_not_planned_are_left_out(arms: tuple[str, ...], left_out: set[str]) -> None:
    everything = {pair.comparison for pair in endpoint_pairs(("off", "on", "off+tabu"), ("eager",))}
    assert {pair.comparison for pair in endpoint_pairs(arms, ("eager",))} == everything - left_out


def test_without_on_there_is_nothing_to_compare() -> None:
    assert endpoint_pairs(("off", "off+tabu"), ("eager",)) == ()


def test_arms_and_repetitions_of_the_plan() -> None:
    plan = (cell_of(arm="on", repetition=2), cell_of(arm="off"), cell_of(arm="on"), cell_of("other", repetition=3))
    assert planned_arms(registered(plan), GROUP) == ("off", "on")
    assert claim_repetitions(registered(plan), CLAIM) == (1, 2)


def test_recorded_sources() -> None:
    """The start and the arms' last incumbents; a baseline and an arm that never began have none in the ledger."""
    cell = cell_of(arm="on")
    signals = {"start": {"load_eff": 0.5}, "coalesced": {"weight": 0.01}}
    world = World(signals, lambda _: Outcome("FASTER", "coalesced"), {name: context_of() for name in signals})
    records: list[tuple[str, Event]] = [("run1", event) for event in run_stream((cell,), seed_rules())]
    records += [(cell_stream("run1", cell), event) for event in simulate(plan_of(cell), world)[0]]
    view = fold(records)["run1"]
    assert recorded_source(view, GROUP, Side(role="start")) == "start"
    assert recorded_source(view, GROUP, Side(role="incumbent", name="on", strict=True)) == "coalesced"
    assert recorded_source(view, GROUP, Side(role="incumbent", name="off")) is None
    assert recorded_source(view, GROUP, Side(role="baseline", name="eager_fp32")) is None


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ([head_to_head("endpoint", 5.82, 1), head_to_head("endpoint", 5.78, 2)], "upheld"),
        ([head_to_head("endpoint", 5.82, 1), head_to_head("endpoint", 5.75, 2)], "upheld"),  # 57.5 + 0.5 = 58
        ([head_to_head("endpoint", 5.82, 1), head_to_head("endpoint", 5.74, 2)], "not upheld"),
        ([head_to_head("endpoint", 5.82, 1)], "unanswerable"),
        ([head_to_head("endpoint", 5.0, 1)], "unanswerable"),
        ([head_to_head("endpoint", 5.82, 1), head_to_head("endpoint", None, 2, "timeout")], "unanswerable"),
        ([head_to_head("endpoint", 5.82, 1), head_to_head("endpoint", None, 2, "measured")], "unanswerable"),
        ([head_to_head("endpoint", 5.82, 1), head_to_head("endpoint", None, 2, "identical")], "not upheld"),
        ([head_to_head("endpoint", 5.82, 1), head_to_head("total", 5.82, 2)], "unanswerable"),
        ([head_to_head("endpoint", 5.82, n) for n in (1, 2, 3)], "upheld"),
        ([], "unanswerable"),
    ],
)
def test_answers(found: list[HeadToHead], says: str) -> None:
    """Over two planned repetitions, at one decimal; a third that was never planned does not count."""
    assert answer("run1", CLAIM, found, (1, 2)).answer == says


def test_an_answer_shows_medians_and_lower_bounds_by_repetition() -> None:
    found = [
        head_to_head("endpoint", 6.0, 2, lower=5.9),
        head_to_head("endpoint", 7.0, 1, lower=6.5),
        head_to_head("endpoint", None, 3, "identical"),
    ]
    stated = answer("run1", CLAIM, found, (1, 2, 3))
    assert (stated.run, stated.claim) == ("run1", "c1")
    assert (stated.medians, stated.lowers) == ((7.0, 6.0, 1.0), (6.5, 5.9, 1.0))


def test_a_second_measurement_cannot_improve_on_the_first() -> None:
    found = [head_to_head("endpoint", 5.0, 1), head_to_head("endpoint", 6.0, 1)]
    assert (answer("run1", CLAIM, found, (1,)).answer, answer("run1", CLAIM, found[::-1], (1,)).answer) == (
        "not upheld",
        "upheld",
    )


def test_a_claim_on_what_was_never_planned_is_not_upheld_by_silence() -> None:
    assert answer("run1", CLAIM, [head_to_head("endpoint", 9.0)], ()).answer == "unanswerable"
