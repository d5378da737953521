"""Remarks on sources: what each kind is given for, and that words are no evidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusolver.profilers.screen import Remark, remarks

from .examples import launch, launches

CORPUS = Path(__file__).parents[1] / "corpus"
PROBLEMS = Path(__file__).parents[2] / "problems"
KERNEL = "import triton\nimport torch\n\n@triton.jit\ndef kernel(x, y):\n    pass\n\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import time\ntime.perf_counter = lambda: 0\n", Remark(2, "patches", "time.perf_counter")),
        ("import torch\nsetattr(torch.cuda, 'Event', None)\n", Remark(2, "patches", "torch.cuda")),
        ("from torch import cuda as c\ndel c.Event\n", Remark(2, "patches", "c.Event")),
        ("import torch\ntorch.__dict__['add'] = 1\n", Remark(2, "patches", "torch.__dict__['add']")),
        ("import torch as t\nt.backends.cuda.matmul.allow_tf32 = True\n", Remark(2, "switches", "t.backends.cuda.matmul.allow_tf32")),
        ("import torch\ns = torch.cuda.Stream()\n", Remark(2, "streams", "torch.cuda.Stream")),
        ("def run(x):\n    import threading\n", Remark(2, "threads", "threading")),
        ("import os\nos.fork()\n", Remark(2, "processes", "os.fork")),
        ("import sys\nsys._getframe(1)\n", Remark(2, "frames", "sys._getframe")),
        ("from gc import get_objects\n", Remark(1, "frames", "gc")),
        (KERNEL + "def run(x):\n    return torch.softmax(x, -1)\n", Remark(9, "torch computes", "torch.softmax")),
        (KERNEL + "def run(x, y):\n    return x @ y\n", Remark(9, "torch computes", "x @ y")),
        ("def run(x:\n", Remark(1, "unreadable", "SyntaxError")),
    ],
)  # fmt: skip
def test_each_kind(source: str, expected: Remark) -> None:
    assert remarks(source) == (expected,)


@pytest.mark.parametrize(
    "source",
    [
        '"""Streams downstream; monkey patch of time.perf_counter, os._exit, gc.get_objects."""\n# import threading\nX = "sys._getframe"\n',
        "class Box:\n    pass\n\nbox = Box()\nbox.value = 1\n",
        "import torch\n\ndef run(x):\n    return torch.softmax(x, -1)\n",
        KERNEL + "def run(x):\n    y = torch.empty_like(x)\n    kernel[(1,)](x, y)\n    return y\n",
    ],
    ids=["words", "an attribute of its own", "no kernel to fall back from", "a plain launch"],
)
def test_b23_nothing_to_remark(source: str) -> None:
    assert remarks(source) == ()


def test_b21_a_kernel_in_a_branch_that_is_never_taken() -> None:
    """The source has a kernel, the call ran the library's alone; where the list may lack one, nothing is said."""
    source = KERNEL + "def run(x):\n    return x\n"
    library = launch(language="library", code=None)
    assert remarks(source, launches(library)) == (
        Remark(0, "no own kernel", "no Triton kernel ran, though the source has one"),
    )
    assert remarks(source, launches(library, launch())) == () == remarks(source, launches(library, complete=False))
    assert remarks("def run(x):\n    return x\n", launches(library)) == ()


def test_the_corpus_shows_why_a_screen_is_no_verdict() -> None:
    """One honest oddity in ten has a remark, and two cheats in three have none."""
    with_remarks = {
        kind: [bool(remarks(path.read_text())) for path in sorted((CORPUS / kind).glob("*.py"))]
        for kind in ("honest", "cheats")
    }
    assert [(sum(found), len(found)) for found in with_remarks.values()] == [(8, 82), (40, 123)]


def test_the_problems_own_kernels_have_only_their_scoped_switches() -> None:
    kinds = {remark.kind for path in PROBLEMS.glob("*/start.py") for remark in remarks(path.read_text())}
    assert kinds == {"switches"}
