"""CUDA C++ from templates: what is read off a problem, machine code by NVRTC for three chips, and answers under an emulation by g++."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from gpusolver.engine.generators.base import Asked
from gpusolver.engine.generators.cuda import CudaGenerator
from gpusolver.engine.generators.operation import Elementwise, Product, Rows, operation_of
from gpusolver.problems.contract import load, names
from gpusolver.problems.sources import config_of, strict_twin

SERVED = {
    "kb_softmax": "fuse", "kb_layernorm": "fuse", "kb_reduce": "fuse", "sigmoid": "fuse",
    "kb_matmul_scalar": "coalesce", "matmul": "coalesce", "batched_gemm": "coalesce",
}  # fmt: skip


def propose(problem: str, prescription: str, eager: str | None = None) -> tuple[str, ...]:
    found = load(problem)
    found = found if eager is None else msgspec.structs.replace(found, eager=eager)
    asked = Asked(
        problem=found, contract="fp32-strict", prescription=prescription, rule="", source=found.start, signals={}
    )
    made = CudaGenerator().propose(asked)
    assert (made is not None) == CudaGenerator().serves(asked)
    return () if made is None else made.sources


@pytest.mark.parametrize("name", [name for name in names() if name in SERVED])
def test_every_own_problem_is_served_by_whole_sources(name: str) -> None:
    """Each source is Python of its own, with one configuration line and a strict twin that is itself."""
    sources = propose(name, SERVED[name])
    assert 5 <= len(sources) <= 9 and len(set(sources)) == len(sources)
    for source in sources:
        ast.parse(source)
        assert strict_twin(source) == source and config_of(source) and "gpusolver" not in source
    assert propose(name, "fused_attention") == ()


def operation(body: str, parameters: str = "x") -> str:
    return f"import torch\n\ndef operation({parameters}):\n    return {body}\n"


@pytest.mark.parametrize(
    ("body", "parameters", "found"),
    [
        ("torch.softmax(x, dim=-1)", "x", Rows(number=0)),
        ("x.softmax(-1)", "x", Rows(number=0)),
        ("torch.nn.functional.layer_norm(x, w.shape, w, b, 1e-6)", "x, w, b", Rows(number=1, eps=1e-6)),
        ("F.layer_norm(x, w.shape, w, b)", "x, w, b", Rows(number=1)),
        ("torch.sum(x, dim=-1)", "x", Rows(number=2)),
        ("x.mean(-1)", "x", Rows(number=3)),
        ("a @ b", "a, b", Product()),
        ("torch.bmm(a, b)", "a, b", Product()),
        ("1.0 / (1.0 + torch.exp(-x))", "x", Elementwise(element="(1.0f / (1.0f + (expf((-x0)))))")),
        ("torch.relu(x * y + 2)", "x, y", Elementwise(element="(relu(((x0 * x1) + 2.0f)))")),
        ("x.tanh().mul(x) ** 2", "x", Elementwise(element="square(((tanhf(x0)) * x0))")),
    ],
)
def test_operations_that_are_known(body: str, parameters: str, found: object) -> None:
    assert operation_of(operation(body, parameters)) == found


@pytest.mark.parametrize(
    ("body", "parameters"),
    [
        ("torch.softmax(x, dim=0)", "x"), ("torch.sum(x)", "x"), ("torch.sum(x, dim=-1, keepdim=True)", "x"),
        ("b @ a", "a, b"), ("a @ a", "a, b"), ("x", "x"), ("torch.exp(x)", "x, y"), ("torch.cumsum(x, -1)", "x"),
        ("torch.gelu(x, approximate='tanh')", "x"), ("x + float('inf')", "x"), ("x + 1e999", "x"), ("x + 'a'", "x"),
        ("torch.softmax(x * 2, dim=-1)", "x"), ("torch.exp(*x)", "x"), ("x ** 3", "x"), ("x + self.bias", "x"),
        ("torch.nn.functional.layer_norm(x, (4,), w, b)", "x, w, b"), ("a + b + c + d + e", "a, b, c, d, e"),
    ],
)  # fmt: skip
def test_operations_that_are_not(body: str, parameters: str) -> None:
    assert operation_of(operation(body, parameters)) is None


def test_texts_that_have_no_operation() -> None:
    for text in (
        "",
        "def operation(:",
        "x = 1",
        operation("x + 1") * 2,
        "def operation(x):\n    y = x\n    return y + 1\n",
    ):
        assert operation_of(text) is None


# --- with torch, without a GPU ----------------------------------------------------------------------------------------


def loaded(source: str, folder: Path) -> ModuleType:
    from ..problems.loading import load_text

    return load_text(folder, "candidate", source)


@pytest.mark.torch_cpu
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("name", sorted(SERVED))
def test_machine_code_by_nvrtc(name: str, architecture: str, tmp_path: Path) -> None:
    """Every configuration of every template gives an ELF file that holds its kernel by name."""
    for place, source in enumerate(propose(name, SERVED[name])):
        (tmp_path / str(place)).mkdir()
        module = loaded(source, tmp_path / str(place))
        cubin = module.machine_code(module.CODE, architecture, module.CONFIG)
        (kernel,) = re.findall(r"__launch_bounds__\(THREADS\) (\w+)\(", module.CODE)
        assert cubin[:4] == b"\x7fELF" and f".text.{kernel}".encode() in cubin


@pytest.mark.torch_cpu
def test_an_error_in_the_source_is_the_compilers_log(tmp_path: Path) -> None:
    module = loaded(propose("sigmoid", "fuse")[0], tmp_path)
    with pytest.raises(RuntimeError, match="undefined"):
        module.machine_code(
            module.CODE.replace("#define ELEMENT ", "#define ELEMENT no_such + "), "sm_90", module.CONFIG
        )


def inputs(problem: str) -> tuple[Any, ...]:
    import torch

    from ..problems.loading import load_file

    generator = torch.Generator().manual_seed(3)
    drawn: tuple[Any, ...] = load_file(Path(load(problem).reference)).inputs(load(problem).small, generator, "cpu")
    return drawn


@pytest.mark.torch_cpu
@pytest.mark.skipif(shutil.which("g++") is None, reason="CUDA C++ is emulated by way of g++")
@pytest.mark.parametrize("place", [0, 1, -1])
@pytest.mark.parametrize("name", sorted(set(SERVED) - {"matmul"}))
def test_the_emulated_answer_is_that_of_float64(name: str, place: int, tmp_path: Path) -> None:
    """Relative L2 error under the strict limit of the problem, on its small sizes; a thread is a thread of the host."""
    import torch

    from ..problems.emulated import launcher
    from ..problems.loading import load_file

    module = loaded(propose(name, SERVED[name])[place], tmp_path)
    vars(module)["launch"] = launcher(tmp_path, module.CONFIG, waits="__syncthreads" in module.CODE)
    given = inputs(name)
    expected = load_file(Path(load(name).reference)).reference(*given)
    found = module.run(*given).double()
    assert found.shape == expected.shape
    error = torch.linalg.vector_norm(found - expected) / torch.linalg.vector_norm(expected)
    assert float(error) <= load(name).limits["fp32-strict"].rel_l2


@pytest.mark.torch_cpu
@pytest.mark.skipif(shutil.which("g++") is None, reason="CUDA C++ is emulated by way of g++")
def test_ends_that_are_no_whole_vector_and_tensors_that_are_broadcast(tmp_path: Path) -> None:
    """7 x 3 elements: five quads and one over; a row of 3 against them; views that begin at no multiple of 16 bytes."""
    import torch

    from ..problems.emulated import launcher

    source = propose("sigmoid", "fuse", operation("torch.gelu(x) * y - torch.silu(x) / 3", "x, y"))[0]
    module = loaded(source, tmp_path)
    vars(module)["launch"] = launcher(tmp_path, module.CONFIG, waits=False)
    x = torch.linspace(-3, 3, 22)[1:].reshape(7, 3)
    y = torch.tensor([0.5, -2.0, 4.0])
    functional = torch.nn.functional
    expected = functional.gelu(x.double()) * y.double() - functional.silu(x.double()) / 3
    assert torch.allclose(module.run(x, y).double(), expected, rtol=1e-5, atol=1e-6)
