"""Energy and heat: the closed form against an integration of its equation, and choices by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from gpusolver.__main__ import main
from gpusolver.engine.cli_objective import disagreement, thermal_of
from gpusolver.events.errors import BadInput
from gpusolver.events.model import Event, cell_stream
from gpusolver.projections.objectives import Choice, Stage, Thermal, choices, rise
from gpusolver.projections.runs import fold

from .support import Outcome, World, cell_of, context_of, plan_of, rule, run_stream, simulate

ONE = (Stage(k_per_w=0.1, tau_s=0.5),)
MODEL = Thermal(load=0.5, bound=2.0, idle_w=50.0, stages=ONE)


def integrated(stage: Stage, idle_w: float, on_w: float, on_s: float, period_s: float, steps: int = 400) -> float:
    """tau dT/dt = R P - T by the classical Runge-Kutta method from the mean on, until the transient is gone; the highest T."""
    at = stage.k_per_w * (idle_w + (on_w - idle_w) * on_s / period_s)
    peak = 0.0
    periods = max(3, int(25 * stage.tau_s / period_s))
    for number in range(periods):
        peak = at if number == periods - 1 else 0.0
        for power, span in ((on_w, on_s), (idle_w, period_s - on_s)):
            h = span / steps
            for _ in range(steps):
                k1 = (stage.k_per_w * power - at) / stage.tau_s
                k2 = (stage.k_per_w * power - at - h * k1 / 2) / stage.tau_s
                k3 = (stage.k_per_w * power - at - h * k2 / 2) / stage.tau_s
                k4 = (stage.k_per_w * power - at - h * k3) / stage.tau_s
                at += h * (k1 + 2 * k2 + 2 * k3 + k4) / 6
                peak = max(peak, at)
    return peak


@pytest.mark.parametrize(("on_s", "period_s"), [(0.05, 0.2), (0.3, 1.0), (1.0, 4.0), (0.9, 1.0)])
def test_the_closed_form_is_the_steady_state_of_its_equation(on_s: float, period_s: float) -> None:
    found = rise(ONE, 50.0, 400.0, on_s, period_s)
    assert found == pytest.approx(integrated(ONE[0], 50.0, 400.0, on_s, period_s), rel=1e-6)


def test_limits_by_hand() -> None:
    """Always on: R P. Never on: R P_idle. A period far under tau: R times the mean power. Far over it: R P at the end of a call."""
    assert rise(ONE, 50.0, 400.0, 1.0, 1.0) == pytest.approx(40.0)
    assert rise(ONE, 50.0, 400.0, 0.0, 1.0) == pytest.approx(5.0)
    assert rise(ONE, 50.0, 400.0, 1e-6, 4e-6) == pytest.approx(0.1 * (0.75 * 50 + 0.25 * 400), rel=1e-5)
    assert rise(ONE, 50.0, 400.0, 100.0, 400.0) == pytest.approx(40.0)
    assert rise((*ONE, *ONE), 50.0, 400.0, 1.0, 1.0) == pytest.approx(80.0)


@given(st.floats(0.01, 1), st.floats(0.01, 10), st.floats(0.001, 100))
def test_the_peak_lies_between_the_mean_and_the_most(share: float, tau_s: float, period_s: float) -> None:
    found = rise((Stage(k_per_w=1.0, tau_s=tau_s),), 10.0, 100.0, share * period_s, period_s)
    assert 10 + 90 * share <= found * (1 + 1e-9) and found <= 100 * (1 + 1e-9)


SIGNALS = {
    # a warm call takes mJ / W: 100 us, 150 us, 400 us; per call 40, 30, 20 mJ
    "start": {"time_us": 410.0, "millijoules": 20.0, "power_w": 50.0, "x": 1.0},
    "frugal": {"time_us": 160.0, "millijoules": 30.0, "power_w": 200.0, "x": 1.0},
    "fast": {"time_us": 110.0, "millijoules": 40.0, "power_w": 400.0},
}


def choice_of(thermal: Thermal = MODEL, signals: dict[str, dict[str, float]] = SIGNALS) -> tuple[Choice, ...]:
    table, cell = (rule("one", ("x", ">", 0.0), prescription="p"),), cell_of()
    made = iter(("frugal", "fast"))
    world = World(signals, lambda firing: Outcome("FASTER", next(made)), dict.fromkeys(signals, context_of()))
    records: list[tuple[str, Event]] = [("run1", event) for event in run_stream((cell,), table)]
    records += [(cell_stream("run1", cell), event) for event in simulate(plan_of(cell, rules=table), world)[0]]
    return choices(fold(records)["run1"], thermal)


def test_three_objectives_pick_three_kernels() -> None:
    """The start uses the least energy and is too slow for the bound; at 5,000 calls a second `frugal` is 150 us of 200 at 200 W."""
    (found,) = choice_of()
    assert found.best == {"latency": "fast", "energy": "start", "thermal": "frugal"}
    rises = {kernel.source: kernel.rise_k for kernel in found.kernels}
    assert rises["start"] is None
    assert rises["fast"] == pytest.approx(0.1 * (0.5 * 50 + 0.5 * 400), rel=1e-3)  # 100 us of every 200
    assert rises["frugal"] == pytest.approx(0.1 * (0.25 * 50 + 0.75 * 200), rel=1e-3)
    assert [kernel.source for kernel in found.kernels] == ["fast", "frugal", "start"]
    assert (
        disagreement([found])
        == "two objectives pick different kernels in 1 of 1 groups; 0 of 1 have one kernel to choose from"
    )


def test_at_one_power_the_three_objectives_agree_on_the_fastest() -> None:
    """All draw 200 W for 100, 150 and 180 us: 20, 30, 36 mJ, so the fastest takes the least energy and is on for the shortest."""
    signals = {
        name: {**SIGNALS[name], "time_us": 10.0 + call_us, "millijoules": 0.2 * call_us, "power_w": 200.0}
        for name, call_us in (("start", 180.0), ("frugal", 150.0), ("fast", 100.0))
    }
    (found,) = choice_of(signals=signals)
    assert found.best == dict.fromkeys(("latency", "energy", "thermal"), "fast")
    rises = [kernel.rise_k for kernel in found.kernels]  # on for 100, 150, 180 us of every 200
    assert rises == pytest.approx([0.1 * (50 + 150 * on_us / 200) for on_us in (100, 150, 180)], rel=1e-3)
    assert disagreement([found]) == "no two objectives differ; 0 of 1 have one kernel to choose from"


def test_at_full_rate_only_the_fastest_keeps_up() -> None:
    (found,) = choice_of(Thermal(load=1.0, bound=9.0, idle_w=50.0, stages=ONE))
    assert [kernel.rise_k is not None for kernel in found.kernels] == [True, False, False]


def test_kernels_without_an_energy_are_left_out() -> None:
    bare = {name: {k: v for k, v in seen.items() if k != "millijoules"} for name, seen in SIGNALS.items()}
    assert choice_of(signals=bare) == ()
    (one,) = choice_of(signals=bare | {"fast": SIGNALS["fast"]})
    assert one.best == dict.fromkeys(("latency", "energy", "thermal"), "fast")
    assert disagreement([one]) == "no two objectives differ; 1 of 1 have one kernel to choose from"


def test_the_parameters_come_from_a_file(tmp_path: Path) -> None:
    assert len(thermal_of(None).stages) == 3
    for text in ("load = 0", "load = 2\nbound = 1\nidle_w = 1\nstages = []", "nonsense"):
        (tmp_path / "bad.toml").write_text(text)
        with pytest.raises(BadInput, match="expected load, bound, idle_w and stages"):
            thermal_of(tmp_path / "bad.toml")


def test_the_recording_has_no_energies_and_that_is_said() -> None:
    recording = Path(__file__).parents[2] / "problems" / "recordings" / "h200.v1" / "ledger.db"
    said = CliRunner(env={"COLUMNS": "300"}).invoke(main, ["objective", str(recording), "--objective", "energy"])
    assert said.exit_code == 0 and "no kernel with a measured energy" in said.output
