"""Starts, eager forms and variants of the larger problems through the real gate, in a worker on the CPU at small sizes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpusolver.engine.catalogue import text_of
from gpusolver.engine.local import LocalExecutor
from gpusolver.problems.contract import load
from gpusolver.problems.sources import precision_of, with_precision

from ..corpus.gating import PASSED, judged
from ..engine.candidates import open_worker
from .loading import candidates

pytestmark = pytest.mark.torch_cpu
PROBLEMS = ("llama", "groupnorm", "matmul_tri", "2d_convolution")
CASES = [(name, label) for name in PROBLEMS for label in candidates(load(name), every_config=False)]


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    made = open_worker()
    yield made
    made.close()


@pytest.mark.parametrize(("name", "label"), CASES)
def test_every_source_passes_the_strict_gate(executor: LocalExecutor, name: str, label: str) -> None:
    source = with_precision(candidates(load(name), every_config=False)[label], "ieee")
    assert judged(executor, source, name, "fp32-strict").said() == PASSED


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("llama", ".triu(1)", ".triu(2)"),  # each position sees the next one
        ("llama", "is_causal=True", "is_causal=False"),
        ("llama", "second * cos + first * sin", "second * cos - first * sin"),
        ("llama", "rms_norm(rotated(heads_of(h, wk), cos, sin))", "rotated(heads_of(h, wk), cos, sin)"),
        ("groupnorm", "* weight[:, None]", ""),
        ("groupnorm", "program % GROUPS * CHANNELS", "program * 0"),
        ("matmul_tri", "(first_m + within % height + 1) * BLOCK_M", "(first_m + within % height) * BLOCK_M"),
        ("matmul_tri", "within // height * BLOCK_N // BLOCK_K * BLOCK_K", "(within // height + 1) * BLOCK_N"),
        ("2d_convolution", "padding=1)", "padding=1).flip(0)"),
    ],
)
def test_what_leaves_a_step_out_does_not(executor: LocalExecutor, name: str, right: str, wrong: str) -> None:
    texts = [text for text in candidates(load(name), every_config=False).values() if right in text]
    assert texts
    for text in texts:
        changed = with_precision(text, "ieee").replace(right, wrong)
        assert judged(executor, changed, name, "bf16-allowed").outcome == "wrong_result"


def test_a_variant_that_follows_the_incumbent_keeps_its_precision() -> None:
    problem = load("llama")
    fused = problem.variant("fused_attention", "flags")
    assert fused is not None and fused.source is not None and fused.follows and precision_of(fused.source) == "ieee"
    for precision in ("ieee", "tf32"):
        assert text_of(fused, fused.source, with_precision(problem.start, precision)) == with_precision(
            fused.source, precision
        )
    assert text_of(fused, fused.source, "def run(x): ...") == fused.source
    own = load("matmul").variant("coalesce", "flags")
    assert own is not None and own.source is not None and not own.follows
    assert text_of(own, own.source, with_precision(problem.start, "tf32")) == own.source
