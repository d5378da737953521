"""The requests of `gpusolver qualify`: what is compared with what, worked out beforehand. Nothing is measured here."""

from __future__ import annotations

import pytest

from gpusolver.engine.qualification import SUITES, request, slower
from gpusolver.events.errors import BadInput
from gpusolver.problems.contract import load, names


def test_identical_arms_are_600_comparisons_of_five_kernels_with_themselves() -> None:
    asked = request("identical")
    assert len(asked.pairs) == 5 and sum(pair.times for pair in asked.pairs) == 600
    assert all(pair.left == pair.right and pair.truth == "SAME" for pair in asked.pairs)
    assert {pair.subject for pair in asked.pairs} == {subject.name for subject in asked.subjects}


def test_resized_subjects_have_counts_of_their_size() -> None:
    """3584^3: 2 n^3 = 92073361408 operations, three matrices of 4 n^2 bytes."""
    sized = {subject.name: subject.problem for subject in request("identical").subjects}
    product = sized["library product 3584^3"]
    assert (product.flops, product.min_bytes) == (92_073_361_408, 154_140_672)
    row = sized["softmax 512 x 1024"]
    assert (row.flops, row.min_bytes) == (5 * 2**19, 2 * 4 * 2**19)


@pytest.mark.parametrize("name", ["kb_softmax", "kb_layernorm"])
def test_the_slowdown_repeats_one_row_in_fifty_and_nothing_else(name: str) -> None:
    problem = load(name)
    text = slower(problem.start, problem.shape["rows"])
    changed = [(a, b) for a, b in zip(problem.start.splitlines(), text.splitlines(), strict=True) if a != b]
    assert len(changed) == 2
    assert changed[0][1].strip() == "row = tl.program_id(0) % 8192"
    assert "[(m + m // 50,)](" in changed[1][1]
    assert pytest.approx(1.02, abs=2e-4) == (8192 + 8192 // 50) / 8192


def test_a_source_of_another_shape_has_no_planted_slowdown() -> None:
    with pytest.raises(BadInput, match="one program a row"):
        slower(load("matmul").start, 8192)


def test_the_counters_suite_covers_every_problem_by_both_collectors() -> None:
    asked = request("counters")
    named = tuple(subject.name for subject in asked.subjects)
    assert named == (*names(), *(f"{name}, again" for name in names())) == asked.ncu


def test_the_energy_suite_measures_nothing_else() -> None:
    asked = request("energy")
    assert tuple(subject.name for subject in asked.subjects) == names()
    assert (asked.roles, asked.ncu, asked.pairs) == (("energy",), (), ())


def test_planted_kernels_expect_one_rule_to_fire_or_to_stay_silent() -> None:
    halves = {half: request("planted", half).subjects for half in ("calibration", "held-out")}
    for half, subjects in halves.items():
        assert subjects and all(subject.half == half for subject in subjects)
        assert all(len(subject.fires) + len(subject.silent) == 1 for subject in subjects)
    assert not {s.name for s in halves["calibration"]} & {s.name for s in halves["held-out"]}
    assert len(request("planted").subjects) == sum(map(len, halves.values()))


def test_an_unknown_suite_is_refused() -> None:
    with pytest.raises(BadInput, match="identical"):
        request("identcal")
    assert len(set(SUITES)) == 6
