"""What the importer does to text, by hand: numbers that may be halved, limits from errors, names of problems. No torch."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpusolver.events.errors import BadInput
from gpusolver.events.model import Limits
from gpusolver.problems.imported import find, name_of
from gpusolver.problems.knobs import knobs, with_values
from gpusolver.problems.limits import EXACT, Seen, apart, limits, of_kind, stated

TEXT = """N = 8 * 1024
shape = (4, N, 512)
height = width = 128
a, b = 3, 2 ** 4
scale = 0.5
flag = True
def f():
    inner = 9
"""


def test_whole_numbers_of_the_top_level_and_no_others() -> None:
    found = {knob.name: knob.value for knob in knobs(TEXT)}
    assert found == {"N": 8192, "shape_0": 4, "shape_2": 512, "height.width": 128, "a": 3, "b": 16}


def test_numbers_are_replaced_where_they_stand_and_nothing_else_changes() -> None:
    by_name = {knob.name: knob for knob in knobs("é = 1.5\n" + TEXT)}
    changed = with_values("é = 1.5\n" + TEXT, {by_name["N"]: 64, by_name["shape_2"]: 7, by_name["b"]: 8})
    expected = TEXT.replace("8 * 1024", "64").replace("512", "7").replace("2 ** 4", "8")
    assert changed == "é = 1.5\n" + expected


def seen(fp32: float, tf32: float = 0.0, bf16: float = 0.0, peak: float = 3.0, whole: bool = False) -> Seen:
    one, other = (tf32, 5 * tf32), (bf16, 5 * bf16)
    return Seen(fp32=(fp32, 5 * fp32), tf32=one, bf16=other, tf32_worst=one, bf16_worst=other, peak=peak, whole=whole)


def test_without_a_product_all_contracts_allow_the_same() -> None:
    found = limits(seen(1e-7))
    assert [found[c].rel_l2 for c in ("fp32-strict", "tf32-allowed", "bf16-allowed")] == [2e-5, 2e-5, 2e-5]


def test_a_product_puts_each_limit_between_its_precision_and_the_next() -> None:
    """Of normal operands: fp32 3e-7, TF32 2.9e-4, bf16 2.4e-3, as in the hand-made matrix problems."""
    found = limits(seen(3e-7, 2.9e-4, 2.4e-3))
    assert found["fp32-strict"].rel_l2 == 2e-5
    # hardware that cuts TF32 operands shows 7e-4
    assert found["tf32-allowed"].rel_l2 == pytest.approx(1.45e-3)
    assert 7e-4 < found["tf32-allowed"].rel_l2 < 2.4e-3
    assert found["bf16-allowed"].rel_l2 == pytest.approx(1.2e-2)
    assert found["tf32-allowed"].max_rms == pytest.approx(10 * 1.45e-3)


def test_terms_of_one_sign_leave_room_for_units_that_err_to_one_side() -> None:
    """8192 products of numbers in [0, 1): rounding shows 4e-6, an H200's cuBLAS 5.5e-5, and operands that are cut 7e-4."""
    rounding = seen(1.2e-6, 3.9e-6, 3.1e-5)
    assert limits(rounding)["tf32-allowed"].rel_l2 < 5.5e-5
    found = limits(replace(rounding, tf32_shown=(7e-4, 9e-4)))
    assert found["tf32-allowed"].rel_l2 == pytest.approx(1.05e-3)
    assert found["fp32-strict"] == limits(rounding)["fp32-strict"]


def test_strict_refuses_tf32_where_that_is_better_than_usual() -> None:
    assert limits(seen(1e-8, 1.6e-5, 1e-4))["fp32-strict"].rel_l2 == pytest.approx(8e-6)


def test_a_long_sum_leaves_room_for_another_order() -> None:
    """131072 terms of one sign: eager's tree shows 1.6e-7, steps of eight 1.7e-6, and TF32's rounding cancels to 4.8e-7."""
    assert limits(seen(1.6e-7, 4.8e-7, 6e-6))["fp32-strict"].rel_l2 == pytest.approx(16 * 1.6e-7)
    assert limits(seen(1.2e-6, 3.9e-6, 3.1e-5))["fp32-strict"].rel_l2 == pytest.approx(5e-6)
    assert limits(seen(2e-6, 3.9e-6, 3.1e-5))["fp32-strict"].rel_l2 == pytest.approx(8e-6)


def test_a_kind_of_inputs_has_limits_of_its_own_where_rounding_shows_more() -> None:
    """Plain limits are 1.45e-3 and 1.2e-2; twice and a half of what was seen has to fit, or five times of it is the limit."""
    plain = limits(seen(3e-7, 2.9e-4, 2.4e-3))
    assert of_kind(plain, seen(3e-7, 5e-4, 4e-3)) == {}
    found = of_kind(plain, seen(3e-7, 8e-4, 3e-3))
    assert [found[c].rel_l2 for c in ("fp32-strict", "tf32-allowed", "bf16-allowed")] == pytest.approx(
        [2e-5, 4e-3, 1.5e-2]
    )
    assert of_kind(plain, seen(3e-7, 0.5, 0.6))["tf32-allowed"].rel_l2 == 0.9


def test_an_answer_with_a_large_peak_may_be_off_there_in_proportion() -> None:
    assert limits(seen(1e-7, peak=100.0))["fp32-strict"].max_rms == pytest.approx(200 * 2e-5)


def test_whole_numbers_must_be_equal() -> None:
    assert set(limits(seen(0.0, whole=True)).values()) == {EXACT}


def test_a_module_that_fp32_cannot_compute_is_refused() -> None:
    with pytest.raises(BadInput, match=r"relative error of 0\.3"):
        limits(seen(0.3))


@pytest.mark.parametrize("pair", [None, (1.0, 2.0), (1e-5,), (1e-5, 0.0), "x"])
def test_limits_of_a_users_file_are_a_pair_for_each_contract(pair: object) -> None:
    with pytest.raises(BadInput, match="LIMITS: expected 'tf32-allowed'"):
        stated({"fp32-strict": (1e-5, 1e-4), "tf32-allowed": pair, "bf16-allowed": (1e-5, 1e-4)})


def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "KernelBench" / "level1"
    folder.mkdir(parents=True)
    for name in ("1_First.py", "2_Second_.py", "10_Tenth.py", "notes.txt"):
        (folder / name).write_text("")
    return tmp_path


def test_files_of_a_clone_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    found = find("kernelbench:level1", clone(tmp_path))
    assert [path.name for path in found] == ["1_First.py", "2_Second_.py", "10_Tenth.py"]
    (second,) = find("kernelbench:level1/2", tmp_path / "KernelBench")
    assert name_of(second) == "kernelbench.level1.2_Second"


@pytest.mark.parametrize(
    ("word", "given", "said"),
    [
        ("kernelbench:level1/3", True, "expected one of 1 to 10, found '3'"),
        ("kernelbench:level7/3", True, "expected a folder KernelBench/level7"),
        ("kernelbench:../1", True, "expected a folder KernelBench/.."),
        ("kernelbench:level1/3", False, "expected --kernelbench DIR"),
        ("absent.py", False, "gpusolver new absent writes one"),
    ],
)
def test_what_is_not_there_is_said(tmp_path: Path, word: str, given: bool, said: str) -> None:
    root = clone(tmp_path)
    with pytest.raises(BadInput) as refusal:
        find(word, root if given else None)
    assert said in str(refusal.value)


def long_sums() -> list[float]:
    """2,048 answers like those of a row of 524,288 products of numbers in (0, 1): 131,072 on average, 120 apart."""
    drawn = random.Random(5)
    return [drawn.gauss(131_072.0, 120.0) for _ in range(2048)]


def errors_of(answer: list[float], expected: list[float]) -> tuple[float, float]:
    rms = (sum(x * x for x in expected) / len(expected)) ** 0.5
    off = [abs(a - e) / rms for a, e in zip(answer, expected, strict=True)]
    return (sum(x * x for x in off) / len(off)) ** 0.5, max(off)


def test_where_answers_hardly_differ_limits_keep_the_mean_out() -> None:
    """TF32 that is cut is off by 6.5e-4 to one side on such sums, and the mean by 9.2e-4: what is allowed lies between the two."""
    wide = {
        "fp32-strict": Limits(rel_l2=1e-6, max_rms=7e-6),
        "tf32-allowed": Limits(rel_l2=9.77e-4, max_rms=6.5e-3),
        "bf16-allowed": Limits(rel_l2=5e-3, max_rms=3e-2),
    }
    expected = long_sums()
    mean = sum(expected) / len(expected)
    spread = errors_of([mean] * len(expected), expected)[0]
    assert spread == pytest.approx(120 / 131_072, rel=0.05) and spread < wide["tf32-allowed"].rel_l2
    found = apart(wide, spread)
    assert found["fp32-strict"] == wide["fp32-strict"]
    half = [mean if i % 2 else value for i, value in enumerate(expected)]
    for contract in ("tf32-allowed", "bf16-allowed"):
        held = found[contract]

        def passes(answer: list[float], held: Limits = held) -> bool:
            rel_l2, max_rms = errors_of(answer, expected)
            return rel_l2 <= held.rel_l2 and max_rms <= held.max_rms

        assert not passes([mean] * len(expected)) and not passes(half)
        assert passes([value * (1 - 6.5e-4) for value in expected])


def test_limits_are_as_they_were_where_answers_differ_and_never_closer_than_strict() -> None:
    found = limits(seen(3e-7, 2.9e-4, 2.4e-3))
    assert apart(found, 1.0) == found
    assert apart(found, 0.0) == found  # a single number
    assert set(apart(found, 1e-9).values()) == {found["fp32-strict"]}
