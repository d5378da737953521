"""The seed table, a row per rule, on data-sheet peaks; and what a rule file may not say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from gpusolver.engine.rules import parse_rules, seed_rules
from gpusolver.events.errors import BadInput
from gpusolver.events.model import Blocked, Chip
from gpusolver.projections.matcher import Match, Situation, answers, in_order, match

from .support import A100, H200, PRESCRIPTIONS, RTX3090, T4, context_of

Signals = dict[str, float]


@dataclass(frozen=True)
class Row:
    """Signals at which the rule just fires, its gain there, and the values at which each clause just fails."""

    rule: str
    hit: Signals
    gain: float
    misses: tuple[Signals, ...]


TABLE = [
    Row("below_weight_gate", {"weight": 0.049}, 1.0, ({"weight": 0.05},)),
    Row("memory_saturated", {"useful_bw_frac": 0.85}, 1.0, ({"useful_bw_frac": 0.849},)),
    Row(
        "tensorcore_saturated",
        {"tensor_active": 1.0, "tensor_frac": 0.70},
        1.0,
        ({"tensor_frac": 0.699}, {"tensor_active": 0.0}),
    ),
    Row(
        "fp32_no_tensorcore",
        {"dtype_bits": 32.0, "tensor_active": 0.0},
        8.0,  # A100: 156 / 19.5
        ({"dtype_bits": 16.0}, {"tensor_active": 1.0}),
    ),
    Row(
        "memory_bound_fusable",
        {"kernel_count": 2.0, "traffic_excess": 1.3, "bw_frac": 0.5},
        1.3,
        ({"kernel_count": 1.0}, {"traffic_excess": 1.299}, {"bw_frac": 0.499}),
    ),
    Row(
        "launch_overhead",
        {"kernel_count": 4.0, "mean_kernel_us": 10.0},
        2.0,
        ({"kernel_count": 3.0}, {"mean_kernel_us": 10.01}),
    ),
    Row("attention_dominant", {"attention_share": 0.5}, 2.0, ({"attention_share": 0.499},)),
    Row("uncoalesced", {"load_eff": 0.625}, 1.6, ({"load_eff": 0.7},)),
    Row(
        "reg_pressure",
        {"occupancy": 0.499, "registers": 65.0},
        2.0,  # 1 / 0.499 is beyond the cap
        ({"occupancy": 0.5}, {"registers": 64.0}),
    ),
]


def ask_seeds(signals: Signals, chip: Chip = A100, contract: str = "tf32-allowed") -> Match:
    situation = Situation(
        chip=chip,
        contract=contract,
        context=context_of(chip),
        prescriptions=PRESCRIPTIONS,
        evolves=False,
        retired=(),
        tabu=(),
    )
    return match(in_order(seed_rules(), ()), signals, situation)


def test_every_rule_has_a_row() -> None:
    assert [row.rule for row in TABLE] == [rule.name for rule in seed_rules()]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.rule)
def test_hit_and_near_misses(row: Row) -> None:
    found = ask_seeds(row.hit)
    assert found.fired is not None
    assert (found.fired.name, found.predicted_gain) == (row.rule, row.gain)
    for miss in row.misses:
        other = ask_seeds(row.hit | miss).fired
        assert other is None or other.name != row.rule


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.rule)
def test_each_signal_is_needed(row: Row) -> None:
    """Take any one signal away and the rule abstains by name."""
    for signal in row.hit:
        found = ask_seeds({name: value for name, value in row.hit.items() if name != signal})
        assert found.fired is None or found.fired.name != row.rule
        assert [entry.missing for entry in found.abstained if entry.rule == row.rule] in ([(signal,)], [])
        if found.fired is None:
            assert (signal,) in [entry.missing for entry in found.abstained if entry.rule == row.rule]


def test_a_measured_zero_is_a_value() -> None:
    """No byte of a loaded sector used is the worst case, not a missing counter; its gain is capped."""
    found = ask_seeds({"load_eff": 0.0})
    assert found.fired is not None
    assert (found.fired.name, found.predicted_gain) == ("uncoalesced", 8.0)


FP32 = {"dtype_bits": 32.0, "tensor_active": 0.0}


@pytest.mark.parametrize(("chip", "gain"), [(A100, 156 / 19.5), (H200, 494.7 / 66.9)], ids=lambda x: str(x)[:12])
def test_tf32_is_prescribed_where_it_is_faster(chip: Chip, gain: float) -> None:
    """7.39x on an H200, 8x on an A100: both over 1.3."""
    found = ask_seeds(FP32, chip)
    assert found.fired is not None
    assert (found.fired.prescription, found.predicted_gain) == ("enable_tf32", gain)


@pytest.mark.parametrize("chip", [T4, RTX3090], ids=lambda chip: chip.name)
def test_b90_the_guard_blocks_where_tf32_is_absent_or_no_faster(chip: Chip) -> None:
    """The T4 has no TF32; the RTX 3090's is 35.6 / 35.6 = 1.0."""
    assert ask_seeds(FP32, chip).blocked == (Blocked(rule="fp32_no_tensorcore", reason="guard"),)


def test_the_contract_blocks_before_the_guard() -> None:
    for chip in (H200, T4):
        found = ask_seeds(FP32, chip, contract="fp32-strict")
        assert found.blocked == (Blocked(rule="fp32_no_tensorcore", reason="contract"),)
    assert ask_seeds(FP32, H200, contract="bf16-allowed").fired is not None


def test_stops_are_asked_first() -> None:
    """Everything at once: the weight gate ends it, and without it the memory roof."""
    everything = {name: value for row in TABLE for name, value in row.hit.items()}
    fired = ask_seeds(everything).fired
    assert fired is not None and fired.name == "below_weight_gate" and fired.stop
    fired = ask_seeds(everything | {"weight": 1.0}).fired
    assert fired is not None and fired.name == "memory_saturated" and fired.stop


def test_what_the_table_is() -> None:
    rules = seed_rules()
    assert [rule.tier for rule in rules] == [0, 0, 0, 1, 2, 2, 2, 3, 3]
    assert [rule.position for rule in rules] == list(range(1, 10))
    assert {rule.name for rule in rules if rule.stop} == {
        "below_weight_gate",
        "memory_saturated",
        "tensorcore_saturated",
    }
    assert {rule.origin for rule in rules} == {"seed"} and all(rule.rationale for rule in rules)


GOOD = """
[[rule]]
name = "mine"
version = 1
tier = 1
prescription = "do"
clauses = [{ signal = "x", op = "<", threshold = 1 }]
gain = { form = "constant", cap = 2 }
metrics = []
rationale = "because"
"""


def test_a_rule_file_of_ones_own() -> None:
    (rule,) = parse_rules(GOOD, where="mine.toml", origin="file")
    assert (rule.name, rule.stop, rule.position, rule.origin, rule.guards) == ("mine", False, 1, "file", ())
    assert (rule.clauses[0].threshold, rule.gain.cap) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[[rule]]", "[[rule", "not TOML"),
        ("[[rule]]", "[[rules]]", "expected [[rule]] tables"),
        (GOOD, "", "found nothing"),
        (GOOD, "rule = [1]", "expected a [[rule]] table, found 1"),
        ('op = "<"', 'op = "!="', "Invalid enum value '!='"),
        ("threshold = 1 ", 'threshold = "1" ', "$.clauses[0].threshold"),
        ("threshold = 1 ", "threshold = nan ", "finite"),
        ("version = 1", "", "missing required field `version`"),
        ("version = 1", "version = 0", "version >= 1"),
        ("metrics = []", "metric = []", "metric"),
        ("metrics = []", "metrics = []\nposition = 3", "position follows from the file"),
        ('prescription = "do"', "", "either stop = true or a prescription"),
        ('prescription = "do"', 'prescription = "do"\nstop = true', "either stop = true or a prescription"),
        ('clauses = [{ signal = "x", op = "<", threshold = 1 }]', "clauses = []", "at least one clause"),
        ("metrics = []", 'metrics = []\ncontracts = ["tf32"]', "contracts: expected some of"),
        ('form = "constant"', 'form = "signal"', "needs exactly ['signal'] beside cap, found []"),
        ("cap = 2", 'cap = 2, signal = "x"', "needs exactly [] beside cap, found ['signal']"),
        ('rationale = "because"', 'rationale = "because"' + GOOD, "'mine' stands there 2 times"),
    ],
)
def test_what_a_rule_file_may_not_say(old: str, new: str, says: str) -> None:
    assert old in GOOD
    with pytest.raises(BadInput) as error:
        parse_rules(GOOD.replace(old, new, 1), where="mine.toml", origin="file")
    assert "mine.toml" in str(error.value) and says in str(error.value)


CODE = ("__import__('os').system('touch touched')", "().__class__.__base__", "9**9**9", "x < 1 or True")


@pytest.mark.parametrize("code", CODE)
def test_b132_a_condition_is_data_and_code_in_it_is_only_a_name(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a signal it is one that nobody measured, so the rule abstains; in any other place the file is refused."""
    monkeypatch.chdir(tmp_path)
    (rule,) = parse_rules(GOOD.replace('signal = "x"', f'signal = "{code}"'), where="mine.toml", origin="file")
    (said,) = answers((rule,), {"x": 0.0}, H200, "tf32-allowed", ("do",))
    assert (said.answer, said.missing) == ("abstains", (code,))
    for place in ("threshold = 1 ", 'op = "<"', "version = 1", "cap = 2"):
        with pytest.raises(BadInput, match=r"mine\.toml"):
            parse_rules(GOOD.replace(place, f'{place.split(" =")[0]} = "{code}" ', 1), where="mine.toml", origin="file")
    assert list(tmp_path.iterdir()) == []
