"""Honest and hostile candidates in a real worker process on the CPU: each gets its outcome, and the next one is unharmed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import pytest

from gpusolver.engine.local import SWEEP_SAMPLES, LocalExecutor
from gpusolver.events.model import Limits
from gpusolver.problems.contract import declared, load
from gpusolver.problems.sources import with_precision
from gpusolver.profilers import artifacts as shapes
from gpusolver.profilers.gates import judge_report

from .candidates import HONEST, PROBLEM, assert_unharmed, gate, open_worker, question

pytestmark = pytest.mark.torch_cpu


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    made = open_worker()
    yield made
    made.close()


# --- honest -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["kb_softmax", "sigmoid", "kb_matmul_scalar"])
def test_the_starting_kernel_and_torch_pass(executor: LocalExecutor, problem: str) -> None:
    for source in (load(problem).start, load(problem).eager):
        assert gate(executor, source, problem) == ("passed", "within limits")


def test_b23_words_in_an_honest_source_are_no_evidence(executor: LocalExecutor) -> None:
    """Only what a candidate does counts: neither comments nor names."""
    source = HONEST.replace(
        "def run", "# streaming softmax: os._exit, elapsed_time, monkey patch\ndownstream = 1\n\ndef run"
    )
    assert gate(executor, source) == ("passed", "within limits")


def test_b87_a_triton_kernel_finds_its_own_source(executor: LocalExecutor) -> None:
    """Triton reads a kernel's text from its file, so a source that is run from a string would not load."""
    assert "@triton.jit" in PROBLEM.start
    assert gate(executor, PROBLEM.start)[0] == "passed"


def test_b86_a_source_of_the_same_size_is_never_taken_for_the_one_before(executor: LocalExecutor) -> None:
    for factor, outcome in ((1, "passed"), (2, "wrong_result"), (3, "wrong_result"), (1, "passed")):
        assert gate(executor, HONEST.replace("-1)", f"-1) * {factor}"))[0] == outcome


def test_candidates_do_not_share_their_globals(executor: LocalExecutor) -> None:
    first = "import torch\nSCALE = 1\n\ndef run(x):\n    return torch.softmax(x, -1) * SCALE\n"
    assert gate(executor, first)[0] == "passed"
    assert gate(executor, first.replace("SCALE = 1", "SCALE = 5"))[0] == "wrong_result"
    assert gate(executor, first)[0] == "passed"


def test_the_inputs_follow_from_the_seed_alone(executor: LocalExecutor) -> None:
    """Same seed, same errors to the last bit; another seed, other inputs. Only the watch tells two gates apart."""
    reports = [json.loads(executor.gate(question(seed=seed), HONEST).artifacts["report"]) for seed in (5, 6, 5)]
    assert all(report.pop("spent_ns") > report.pop("first_ns") + report["wall"].pop("ns") > 0 for report in reports)
    assert reports[0] == reports[2] != reports[1]


def test_the_cpu_has_no_counters_and_says_so(executor: LocalExecutor) -> None:
    seen = executor.count(question(), HONEST, ())
    assert (seen.status, seen.artifacts) == ("counters_unsupported", {})


def test_a_sweep_leaves_out_what_ends_its_process(executor: LocalExecutor) -> None:
    """The others are swept without it; one that is alone in this has no sweep."""
    deadly = "import os\n\ndef run(x):\n    os.abort()\n"
    seen = executor.sweep(question(), HONEST, (deadly, HONEST, deadly.replace("abort()", "_exit(3)")))
    samples = shapes.decode(shapes.Sweep, seen.artifacts["sweep"]).samples
    assert [None if taken is None else len(taken) for taken in samples] == [None, SWEEP_SAMPLES, None]
    assert executor.sweep(question(), HONEST, (deadly,)).status == "worker_lost"


def test_a_sweep_leaves_out_what_does_not_run(executor: LocalExecutor) -> None:
    seen = executor.sweep(question(), HONEST, (HONEST, "def run(x):\n    raise ValueError(1)\n", "raise KeyError(2)\n"))
    samples = shapes.decode(shapes.Sweep, seen.artifacts["sweep"]).samples
    assert samples[0] is not None and samples[1:] == (None, None)


# --- candidates that do not load or do not run ------------------------------------------------------------------------

FAILING = {
    "syntax_error": ("def run(x:\n", "load_error", "SyntaxError"),
    "empty": ("", "load_error", "no function 'run'"),
    "prose": ("I cannot improve this kernel.\n", "load_error", "SyntaxError"),
    "nul": ("x = 1\0\n", "load_error", ""),
    "b126_raises_at_import": ("raise ValueError('no chip')\n", "load_error", "ValueError: no chip"),
    "b126_asserts_at_import": ("assert False, 'why'\n", "load_error", "AssertionError: why"),
    "b126_system_exit_at_import": ("raise SystemExit(0)\n", "load_error", "SystemExit"),
    "b126_os_exit_at_import": ("import os\nos._exit(3)\n", "worker_lost", "exit 3"),
    "b126_missing_module": ("import no_such_module\n", "load_error", "no_such_module"),
    "b126_keyboard_interrupt_at_import": ("raise KeyboardInterrupt\n", "load_error", "KeyboardInterrupt"),
    "b127_wrong_entry_name": ("def forward(x):\n    return x\n", "load_error", "callables found: forward"),
    "b127_run_is_no_function": ("run = 5\n", "load_error", "no function 'run'"),
    "b127_wrong_signature": ("def run():\n    return 1\n", "run_error", "TypeError"),
    "raises": ("def run(x):\n    raise RuntimeError('boom')\n", "run_error", "RuntimeError: boom"),
    "system_exit": ("def run(x):\n    raise SystemExit(0)\n", "run_error", "SystemExit"),
    "keyboard_interrupt": ("def run(x):\n    raise KeyboardInterrupt\n", "run_error", "KeyboardInterrupt"),
    "os_exit": ("import os\ndef run(x):\n    os._exit(0)\n", "worker_lost", "exit 0"),
    "segfault": ("import ctypes\ndef run(x):\n    ctypes.string_at(0)\n", "worker_lost", "exit -11"),
    "abort": ("import os\ndef run(x):\n    os.abort()\n", "worker_lost", "exit -6"),
    "kills_its_group": ("import os, signal\ndef run(x):\n    os.killpg(0, signal.SIGKILL)\n", "worker_lost", "exit -9"),
    "endless_recursion": ("def run(x):\n    return run(x)\n", "run_error", "RecursionError"),
    "out_of_memory": ("import torch\ndef run(x):\n    return torch.empty(1 << 60)\n", "run_error", ""),
    "error_without_text": ("class E(Exception):\n    def __str__(self):\n        raise ValueError\ndef run(x):\n    raise E\n", "run_error", ""),
    "error_with_a_huge_text": ("def run(x):\n    raise RuntimeError('x' * 50_000_000)\n", "run_error", "RuntimeError: xxx"),
    "error_with_surrogates": ("def run(x):\n    raise RuntimeError('\\ud800')\n", "run_error", "RuntimeError"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILING)
def test_a_candidate_that_fails_gets_its_outcome_and_the_next_one_passes(executor: LocalExecutor, name: str) -> None:
    source, outcome, words = FAILING[name]
    found, reason = gate(executor, source)
    assert found == outcome, reason
    assert words in reason and len(reason) <= 4000
    assert_unharmed(executor)


# --- wrong answers ----------------------------------------------------------------------------------------------------

WRONG = {
    "b01_changes_its_input": ("y = torch.softmax(x, -1); x.zero_(); return y", "inputs_changed", "changed its inputs"),
    "b01_zeroes_its_input": ("x.zero_(); return torch.zeros_like(x)", "inputs_changed", "changed its inputs"),
    "b04_zeros": ("return torch.zeros_like(x)", "wrong_result", "rel_l2 1.0"),
    "b07_a_constant": ("return torch.full_like(x, 1 / x.shape[-1])", "wrong_result", "rel_l2"),
    "b08_nan": ("return torch.full_like(x, float('nan'))", "nonfinite", "not finite"),
    "b08_one_nan": ("y = torch.softmax(x, -1); y[0, 0] = float('nan'); return y", "nonfinite", "1 elements"),
    "b08_infinity": ("return torch.softmax(x, -1) + float('inf')", "nonfinite", "not finite"),
    "b25_shape_of_one": ("return torch.softmax(x, -1)[:1, 0]", "wrong_type", "shape"),
    "b25_one_column": ("return torch.softmax(x, -1)[:, :1]", "wrong_type", "shape"),
    "b25_flat": ("return torch.softmax(x, -1).flatten()", "wrong_type", "shape"),
    "b25_dtype_float64": ("return torch.softmax(x.double(), -1)", "wrong_type", "expected dtype float32, found float64"),
    "b25_dtype_float16": ("return torch.softmax(x, -1).half()", "wrong_type", "expected dtype float32, found float16"),
    "b25_dtype_complex": ("return torch.softmax(x, -1).to(torch.complex64)", "wrong_type", "dtype"),
    "b25_dtype_int": ("return torch.softmax(x, -1).int()", "wrong_type", "dtype"),
    "b127_none": ("return None", "wrong_type", "not a plain tensor"),
    "b127_tuple": ("return (torch.softmax(x, -1),)", "wrong_type", "not a plain tensor"),
    "b127_list": ("return torch.softmax(x, -1).tolist()", "wrong_type", "not a plain tensor"),
    "subclass": ("return torch.softmax(x, -1).as_subclass(Own)", "wrong_type", "not a plain tensor"),
    "parameter": ("return torch.nn.Parameter(torch.softmax(x, -1))", "wrong_type", "not a plain tensor"),
    "another_device_once": ("KEPT.append(x); return torch.softmax(x.to('meta' if len(KEPT) == 1 else 'cpu'), -1)", "wrong_type", "not on the device"),
    "strides_of_columns": ("return torch.softmax(x, -1).t().contiguous().t()", "wrong_type", "expected strides"),
    "strides_with_gaps": ("return torch.softmax(x, -1).repeat_interleave(2, -1)[:, ::2]", "wrong_type", "expected strides"),
    "strides_untold": ("torch.Tensor.stride, torch.Tensor.is_contiguous = (lambda t: (t.shape[-1], 1)), (lambda t, **_: True); return torch.softmax(x.t().contiguous(), 0).t()", "wrong_type", "expected strides"),
    "negated_later": ("return torch._neg_view(-torch.softmax(x, -1))", "wrong_type", "not a plain tensor"),
    "sparse": ("return torch.softmax(x, -1).to_sparse()", "wrong_type", "not a plain tensor"),
    "its_input": ("return x", "wrong_result", "rel_l2"),
    "b22_first_answer_kept": ("KEPT.append(torch.softmax(x, -1)); return KEPT[0].clone()", "wrong_result", "draw 1"),
    "half_precision_inside": ("return torch.softmax(x.bfloat16(), -1).float()", "wrong_result", "rel_l2"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_refused_for_what_is_wrong_with_it(executor: LocalExecutor, name: str) -> None:
    body, outcome, words = WRONG[name]
    source = f"import torch\n\nKEPT = []\n\nclass Own(torch.Tensor):\n    pass\n\ndef run(x):\n    {body}\n"
    found, reason = gate(executor, source)
    assert found == outcome, reason
    assert words in reason
    assert_unharmed(executor)


@pytest.mark.parametrize(
    ("own", "candidate", "outcome"),
    [
        (".t().contiguous().t()", ".t().contiguous().t()", "passed"),
        (".t().contiguous().t()", "", "passed"),
        (".t().contiguous().t()", ".repeat(1, 2)[:, :48]", "wrong_type"),
        (".repeat(1, 2)[:, :48]", ".repeat(1, 2)[:, :48]", "passed"),
    ],
)
def test_an_answer_may_lie_as_pytorchs_own_does(
    executor: LocalExecutor, own: str, candidate: str, outcome: str
) -> None:
    """The eager form's answer by columns, or with gaps of a row of 48: a module that returns a view starts so, and is fit."""
    eager, source = (f"import torch\n\ndef run(x):\n    return torch.softmax(x, -1){end}\n" for end in (own, candidate))
    asked = question()
    asked = msgspec.structs.replace(asked, problem=msgspec.structs.replace(asked.problem, eager=eager))
    report = shapes.decode(shapes.Report, executor.gate(asked, source).artifacts["report"])
    found, reason = judge_report(report, declared(asked.problem, "flags"), "tf32-allowed")
    assert found == outcome, reason


def test_b02_uninitialised_memory_fails_every_time(executor: LocalExecutor) -> None:
    source = "import torch\n\ndef run(x):\n    return torch.empty_like(x)\n"
    outcomes = [gate(executor, source, seed=seed)[0] for seed in range(20)]
    assert set(outcomes) <= {"nonfinite", "wrong_result"}


def test_b05_b07_a_problem_that_a_constant_solves_is_reported_as_unfit(executor: LocalExecutor) -> None:
    """Under limits as wide as the output, the control answers pass too, and say that nothing can be decided."""
    report = shapes.decode(shapes.Report, executor.gate(question(), HONEST).artifacts["report"])
    wide = msgspec.structs.replace(declared(PROBLEM, "flags"), limits={"tf32-allowed": Limits(rel_l2=1.0, max_rms=1e6)})
    outcome, reason = judge_report(report, wide, "tf32-allowed")
    assert outcome == "unfit_problem" and "zeros" in reason


def test_b10_the_expected_answer_is_not_found_by_the_garbage_collector(executor: LocalExecutor) -> None:
    source = """
import gc
import torch

def run(x):
    for found in gc.get_objects():
        if type(found) is torch.Tensor and found.dtype == torch.float64 and found.shape == x.shape:
            return found.float()
    return torch.zeros_like(x)
"""
    assert gate(executor, source)[0] == "wrong_result"


def test_b10_the_expected_answer_is_not_found_in_the_callers_frames(executor: LocalExecutor) -> None:
    source = """
import sys
import torch

def run(x):
    frame = sys._getframe()
    while frame is not None:
        if "expected" in frame.f_locals:
            return frame.f_locals["expected"].float()
        frame = frame.f_back
    return torch.zeros_like(x)
"""
    assert gate(executor, source)[0] == "wrong_result"


def test_b67_a_switch_that_one_candidate_leaves_on_does_not_reach_the_next(executor: LocalExecutor) -> None:
    leaves = HONEST.replace("    return", "    torch.backends.cuda.matmul.allow_tf32 = True\n    return")
    reads = HONEST.replace("    return", "    assert not torch.backends.cuda.matmul.allow_tf32\n    return")
    assert gate(executor, leaves)[0] == "passed"
    assert gate(executor, reads) == ("passed", "within limits")


@pytest.mark.parametrize(
    "leak",
    [
        "torch.set_default_dtype(torch.float64)",
        "torch.set_autocast_enabled('cuda', True)",
        "torch.use_deterministic_algorithms(True)",
        "torch.backends.cuda.enable_flash_sdp(False)",
        "torch.set_grad_enabled(False)",
    ],
)
@pytest.mark.parametrize("where", ["on import", "in a call"])
def test_b67_no_switch_reaches_the_next_candidate(executor: LocalExecutor, leak: str, where: str) -> None:
    """Set while it is imported or while it runs: the next one is gated on inputs as registered, and finds every switch strict."""
    leaves = HONEST + f"\n{leak}\n" if where == "on import" else HONEST.replace("    return", f"    {leak}\n    return")
    gate(executor, leaves)
    strict = (
        "    assert torch.get_default_dtype() is torch.float32 and not torch.is_autocast_enabled('cuda')\n"
        "    assert not torch.are_deterministic_algorithms_enabled() and torch.backends.cuda.flash_sdp_enabled()\n"
        "    assert torch.is_grad_enabled()\n    return"
    )
    assert gate(executor, HONEST.replace("    return", strict)) == ("passed", "within limits")


def test_a_strict_matrix_product_passes_strictly_on_the_cpu(executor: LocalExecutor) -> None:
    """The starting kernel and its flagged copy compute the same on a CPU: the flag alone is no wrong precision."""
    problem = load("kb_matmul_scalar")
    for source in (problem.start, with_precision(problem.start, "tf32")):
        seen = executor.gate(question(problem.name), source)
        report = shapes.decode(shapes.Report, seen.artifacts["report"])
        assert judge_report(report, declared(problem, "flags"), "fp32-strict")[0] == "passed"
