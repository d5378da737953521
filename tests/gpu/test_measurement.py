"""What only a GPU can show of the measuring: metric sets that change, two clocks, two replays, switches that leak, energy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from gpusolver.engine.executor import Question
from gpusolver.engine.local import LocalExecutor
from gpusolver.engine.qualification import slower
from gpusolver.engine.registration import STATISTICS, RunRequest
from gpusolver.engine.rules import rules
from gpusolver.engine.run import Run
from gpusolver.events.model import Cell, Objective
from gpusolver.events.writer import LedgerWriter
from gpusolver.problems.contract import Problem, declared, load
from gpusolver.problems.sources import strict_twin, with_config, with_precision
from gpusolver.profilers import artifacts as shapes
from gpusolver.profilers.gates import judge_report
from gpusolver.profilers.intervals import b_times, interval, lower_median
from gpusolver.profilers.metrics import plan
from gpusolver.profilers.timeline import timeline_signals
from gpusolver.profilers.witnesses import wrong_while_timed
from gpusolver.replay.verify import verify

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def gpu() -> Iterator[LocalExecutor]:
    executor = LocalExecutor("cuda")
    yield executor
    executor.close()


def question(problem: Problem) -> Question:
    cell = Cell(problem=problem.name, contract="tf32-allowed", pool="flags", arm="on", repetition=1)
    return Question(cell=cell, problem=problem, purpose="test", seed=20260202)


def counters(gpu: LocalExecutor, problem: Problem, metrics: tuple[str, ...]) -> dict[str, Any]:
    seen = gpu.count(question(problem), problem.start, metrics)
    assert seen.status == "ok", seen.text
    found: dict[str, Any] = msgspec.json.decode(seen.artifacts["counters"])
    return found


def extra(gpu: LocalExecutor, problem: Problem, role: str) -> Any:
    seen = gpu.extra(question(problem), problem.start, role)
    assert seen.status == "ok", seen.text
    return msgspec.json.decode(seen.artifacts[role])


def time_ns(gpu: LocalExecutor, problem: Problem) -> int:
    seen = gpu.compare(question(problem), problem.start, problem.start, 20)
    return lower_median(b_times(shapes.decode(shapes.Samples, seen.artifacts["samples"])))


def test_attention_takes_most_of_the_decoder_block(gpu: LocalExecutor) -> None:
    """Two products and a softmax over 4 x 4096 x 4096 scores beside projections a quarter as large; fused, no operator counts."""
    problem = load("llama")
    for source, dominant in ((problem.start, True), (problem.eager, False)):
        seen = extra(gpu, msgspec.structs.replace(problem, start=source), "timeline")
        share = timeline_signals(shapes.decode(shapes.Timeline, msgspec.json.encode(seen)), 1)["attention_share"]
        assert (share is not None and share >= 0.5) == dominant, seen["operators"]


@pytest.mark.parametrize("name", ["llama", "groupnorm", "matmul_tri", "2d_convolution"])
def test_every_variant_of_the_larger_problems_passes_the_gate(gpu: LocalExecutor, name: str) -> None:
    problem = load(name)
    texts = {problem.start, problem.eager}
    for variant in problem.variants:
        if variant.source is not None:
            texts.add(with_config(variant.source, variant.configs[0]) if variant.configs else variant.source)
    for text in texts:
        for source, contract in ((strict_twin(text), "fp32-strict"), (with_precision(text, "tf32"), "tf32-allowed")):
            seen = gpu.gate(question(problem), source)
            report = shapes.decode(shapes.Report, seen.artifacts["report"])
            assert judge_report(report, declared(problem, "flags"), contract)[0] == "passed", (text, contract)


def test_a_metric_set_reads_the_same_whatever_was_read_before(gpu: LocalExecutor) -> None:
    """Under one CUPTI session a second set came back in part as missing; instruction counts are exact, so they must be equal."""
    problem = load("kb_softmax")
    small, large = plan(()).metrics, plan(rules("full")).metrics
    loads = "smsp__sass_inst_executed_op_global_ld.sum"
    first = counters(gpu, problem, small)
    for metrics in (large, small, small[:6], large):
        found = counters(gpu, problem, metrics)
        listed = found["metrics"]
        assert [name for name, value in listed.items() if value is None] in ([], ["lts__gcomp_input_sectors.sum"])
        if loads in listed:
            assert listed[loads] == first["metrics"][loads] > 0
    assert found["passes"] > first["passes"]


def test_every_rule_costs_under_half_a_second(gpu: LocalExecutor) -> None:
    problem = load("kb_softmax")
    large = plan(rules("full")).metrics
    counters(gpu, problem, large)
    assert counters(gpu, problem, large)["wall_s"] < 0.5


@pytest.mark.parametrize("name", ["kb_softmax", "sigmoid", "kb_matmul_scalar"])
def test_events_and_activity_records_agree(gpu: LocalExecutor, name: str) -> None:
    """Two clocks: within 5 % and 2 us of each other."""
    problem = load(name)
    calls = extra(gpu, problem, "timeline")["calls"]
    span = lower_median([max(k[1] for k in call) - min(k[0] for k in call) for call in calls])
    assert abs(time_ns(gpu, problem) - span) < 0.05 * span + 2000


def test_kernel_replay_lists_the_kernels_and_their_times(gpu: LocalExecutor) -> None:
    """Five element-wise kernels over 268 MB each way: 5 x 537 MB; each takes about a fifth of the whole."""
    problem = load("sigmoid")
    kernels = extra(gpu, problem, "kernels")["kernels"]
    assert len(kernels) == 5
    moved = sum(k["dram__bytes_read.sum"] + k["dram__bytes_write.sum"] for k in kernels)
    assert moved == pytest.approx(5 * 2 * 8192 * 8192 * 4, rel=0.1)
    total = time_ns(gpu, problem)
    for kernel in kernels:
        assert kernel["gpu__time_duration.sum"] == pytest.approx(total / 5, rel=0.1)


def test_a_leaked_switch_does_not_move_the_other_arm(gpu: LocalExecutor) -> None:
    """The candidate turns TF32 on and leaves it on; the fp32 product beside it stays as slow as it was (7x)."""
    problem = load("matmul")
    leak = problem.start + (
        "\n\n_run = run\n\n\ndef run(a, b):\n    out = _run(a, b)\n    torch.set_float32_matmul_precision('high')\n    return out\n"
    )
    seen = gpu.compare(question(problem), problem.start, leak, 20)
    samples = shapes.decode(shapes.Samples, seen.artifacts["samples"])
    found = interval(samples, msgspec.structs.replace(STATISTICS, blocks=20))
    assert found is not None and 0.98 < found.lower <= found.upper < 1.02
    switches = msgspec.json.decode(seen.artifacts["samples"])["switches"]
    assert switches["right"] != switches["left"]


def test_two_percent_more_rows_take_two_percent_longer(gpu: LocalExecutor) -> None:
    problem = load("kb_softmax")
    seen = gpu.compare(question(problem), problem.start, slower(problem.start, 8192), STATISTICS.blocks)
    found = interval(shapes.decode(shapes.Samples, seen.artifacts["samples"]), STATISTICS)
    assert found is not None and found.median == pytest.approx(1 / 1.02, abs=0.006)


def test_warm_samples_of_a_small_problem_are_faster(gpu: LocalExecutor) -> None:
    """2 MB of operands stay in an L2 of 60 MB; the scalar product took 193 us cold and 103 us warm before this project."""
    problem = load("kb_matmul_scalar")
    warm = shapes.decode(shapes.Samples, gpu.extra(question(problem), problem.start, "warm").artifacts["warm"])
    assert warm.cache == "warm"
    assert lower_median(b_times(warm)) < 0.75 * time_ns(gpu, problem)


def test_energy_per_call_is_power_times_time(gpu: LocalExecutor) -> None:
    """A bandwidth-bound kernel back to back draws between a quarter of the card's 700 W limit and all of it."""
    problem = load("kb_softmax")
    for window in extra(gpu, problem, "energy")["windows"]:
        watts = window["millijoules"] / window["milliseconds"]
        assert 175 < watts < 720
        assert window["milliseconds"] >= 1900
        assert 1000 * window["milliseconds"] / window["calls"] == pytest.approx(time_ns(gpu, problem) / 1000, rel=0.2)


def test_energies_of_a_pair_lie_beside_its_times(gpu: LocalExecutor) -> None:
    """A kernel against one of 2 % more rows: warm calls of about its time, power under the card's 700 W limit, outputs right to the
    last, and 2 % more energy a call, for the power is the same.
    """
    problem = load("kb_softmax")
    asked = msgspec.structs.replace(question(problem), energy=True)
    seen = gpu.compare(asked, problem.start, slower(problem.start, 8192), 10)
    assert seen.status == "ok", seen.text
    samples = shapes.decode(shapes.Samples, seen.artifacts["samples"])
    energy = Objective(by="energy", bound=2.0)
    statistics = msgspec.structs.replace(STATISTICS, blocks=10, looks=UNSET, objective=energy)
    assert samples.energy is not None and len(samples.energy) == 10
    for batch in (batch for block in samples.energy for batch in block):
        assert 175 < batch.millijoules / batch.milliseconds < 720
        assert 300 <= batch.milliseconds < 1700
        assert 1e6 * batch.milliseconds / batch.calls == pytest.approx(lower_median(b_times(samples)), rel=0.2)
    assert not wrong_while_timed(statistics, samples, declared(problem, "flags").limits["tf32-allowed"])
    found = interval(samples, statistics)
    assert found is not None and found.median == pytest.approx(1 / 1.02, abs=0.015)


def test_a_run_by_energy_on_this_device(gpu: LocalExecutor, tmp_path: Path) -> None:
    """Registered, decided and verified; which kernel wins is what it shows, not what it must be."""
    path = tmp_path / "energy.db"
    asked = RunRequest(problems=("kb_softmax",), arms=("on",), rounds=2, objective=Objective(by="energy", bound=2.0))
    with LedgerWriter(path) as ledger:
        view = Run(ledger, gpu, lambda done, total, text: None).start(asked)
    assert view.stopped == "plan completed" and not verify(path, True).findings


def test_nsight_computes_own_rules_are_read(gpu: LocalExecutor) -> None:
    """A softmax at the copy ceiling: the Speed-of-Light rule says high throughput; a source that fails spoils no other's profile."""
    problem = load("kb_softmax")
    broken = 'PRECISION = "ieee"\n\n\ndef run(x):\n    raise RuntimeError("no")\n'
    good, bad = gpu.ncu([(question(problem), problem.start), (question(problem), broken)], plan(()).metrics)
    assert good.status == "ok" and bad.status != "ok"
    (kernel,) = msgspec.json.decode(good.artifacts["ncu_rules"])["kernels"]
    said = {rule["id"]: rule for rule in kernel["rules"]}
    assert "High Throughput" in said["SOLBottleneck"]["title"]
    counted = msgspec.json.decode(good.artifacts["counters"])
    assert counted["collector"] == "ncu" and counted["metrics"]["dram__bytes_read.sum"] == pytest.approx(
        8192 * 8192 * 4, rel=0.03
    )


def test_b30_a_kernel_that_is_still_running_is_waited_for(gpu: LocalExecutor) -> None:
    """0.2 s of a spinning kernel at the highest clock, 1980 MHz, is no less at any other; its events are read when it is done."""
    problem = load("sigmoid")
    spinning = problem.start.replace(
        "def run(x) -> torch.Tensor:\n", "def run(x) -> torch.Tensor:\n    torch.cuda._sleep(396_000_000)\n", 1
    )
    assert spinning != problem.start
    seen = gpu.compare(question(problem), spinning, spinning, 2)
    assert seen.status == "ok", seen.text
    assert min(b_times(shapes.decode(shapes.Samples, seen.artifacts["samples"]))) >= 190_000_000
