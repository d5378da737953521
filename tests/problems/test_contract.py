"""The folders of the problems room, and what is refused in one."""

from __future__ import annotations

import ast
import hashlib
import shutil
import subprocess
import sys
from math import prod
from pathlib import Path

import pytest

from gpusolver.events.errors import BadInput
from gpusolver.problems import contract
from gpusolver.problems.contract import CONTRACTS, declared, digest, load, names
from gpusolver.problems.sources import config_of, strict_twin

# By hand, float32 = 4 bytes: matmul 2mnk and 4(mk + kn + mn); per element 5, 7, 1 and 4 operations (see each problem.toml).
# llama, t tokens of d = 256: 4 projections of 2tdd, 3 of the MLP of 2tdh, and for t (t + 1) / 2 pairs two products of 2d.
COUNTS = {
    "kb_softmax": (5 * 8192 * 8192, 4 * 2 * 8192 * 8192),
    "kb_layernorm": (7 * 8192 * 8192, 4 * (2 * 8192 * 8192 + 2 * 8192)),
    "kb_reduce": (16384 * 8192, 4 * (16384 * 8192 + 16384)),
    "sigmoid": (4 * 8192 * 8192, 4 * 2 * 8192 * 8192),
    "kb_matmul_scalar": (2 * 512**3, 4 * 3 * 512**2),
    "matmul": (2 * 4096**3, 4 * 3 * 4096**2),
    "batched_gemm": (16 * 2 * 1024**3, 16 * 4 * 3 * 1024**2),
    "groupnorm": (7 * 8192 * 8192, 4 * (2 * 8192 * 8192 + 2 * 256)),
    "matmul_tri": (2 * sum(m * (m + 1) // 2 for m in range(1, 4097)), 4 * (2 * sum(range(1, 4097)) + 4096**2)),
    "2d_convolution": (2 * 9 * 256 * 32 * 256 * 56 * 56 // 4, 4 * (2 * 32 * 256 * 56 * 56 + 256 * 256 * 9)),
    "llama": (
        4 * 2 * 4096 * 256 * 256 + 3 * 2 * 4096 * 256 * 704 + 2 * 2 * 256 * 4096 * 4097 // 2,
        4 * (2 * 4096 * 256 + 2 * 4096 * 32 + 4 * 256 * 256 + 3 * 256 * 704 + 2 * 256),
    ),
}
SHAPES = {
    "kb_softmax": {"rows": 8192, "cols": 8192},
    "kb_layernorm": {"rows": 8192, "cols": 8192},
    "kb_reduce": {"rows": 16384, "cols": 8192},
    "sigmoid": {"rows": 8192, "cols": 8192},
    "kb_matmul_scalar": {"m": 512, "n": 512, "k": 512},
    "matmul": {"m": 4096, "n": 4096, "k": 4096},
    "batched_gemm": {"batch": 16, "m": 1024, "n": 1024, "k": 1024},
    "groupnorm": {"batch": 256, "groups": 32, "channels": 8, "height": 32, "width": 32},
    "matmul_tri": {"n": 4096},
    "2d_convolution": {"batch": 32, "channels": 256, "filters": 256, "height": 56, "width": 56},
    "llama": {"batch": 1, "seq": 4096, "heads": 4, "pairs": 32, "hidden": 704},
}
PRODUCTS = ("matmul", "conv", "network")
every_problem = pytest.mark.parametrize("name", names())


def test_every_folder_with_a_problem_file_is_found() -> None:
    room = Path(contract.__file__).parent
    assert set(names()) == {path.parent.name for path in room.glob("*/problem.toml")}
    assert set(COUNTS) == set(names()) and len(COUNTS) == 11


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_those_of_the_shape(name: str) -> None:
    problem = load(name)
    assert (problem.shape, problem.flops, problem.min_bytes) == (SHAPES[name], *COUNTS[name])


@every_problem
def test_small_sizes_suit_the_interpreter_and_cut_through_tiles(name: str) -> None:
    small = load(name).small
    assert max(small.values()) <= 64
    assert any(size % 16 for size in small.values())


@every_problem
def test_limits_widen_with_the_contract_and_allow_for_tails(name: str) -> None:
    limits = [load(name).limits[contract] for contract in CONTRACTS]
    assert [x.rel_l2 for x in limits] == sorted(x.rel_l2 for x in limits)
    assert limits[0].rel_l2 < 2.9e-4  # TF32 with rounded inputs
    for x in limits:
        assert 5.5 * x.rel_l2 <= x.max_rms <= 0.1  # 5.5 sigma: the largest of 2.6e7 normal errors


@every_problem
def test_problems_without_a_product_allow_nothing_more_under_tf32(name: str) -> None:
    problem = load(name)
    assert (len(set(problem.limits.values())) == 1) == (problem.family not in PRODUCTS)


@every_problem
def test_every_source_keeps_the_conventions(name: str) -> None:
    problem = load(name)
    for text in (problem.start, problem.eager, *(v.source for v in problem.variants if v.source)):
        strict_twin(text)
        tree = ast.parse(text)
        imported = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        assert imported <= {"torch", "triton"}
        assert not any(isinstance(n, ast.ImportFrom) for n in ast.walk(tree))
        run = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "run")
        assert run.returns is not None and ast.unparse(run.returns) == "torch.Tensor"
    assert any(isinstance(n, ast.FunctionDef) and n.name == "operation" for n in ast.parse(problem.eager).body)


@every_problem
def test_no_variant_is_the_text_that_stands_for_torch(name: str) -> None:
    """A baseline's text may be no candidate's (replay/FORMAT.md 6.8), else nobody could tell which of the two a ledger means."""
    problem = load(name)
    assert strict_twin(problem.eager) not in {strict_twin(v.source) for v in problem.variants if v.source}


@every_problem
def test_every_problem_offers_the_flag_and_nothing_twice(name: str) -> None:
    problem = load(name)
    flag = problem.variant("enable_tf32", "flags")
    assert flag is not None and flag.kind == "flag" and flag.source is None
    assert declared(problem, "flags").prescriptions == tuple(sorted({v.prescription for v in problem.variants}))


def test_on_the_scalar_product_tf32_is_a_flag_in_one_pool_and_a_dot_in_the_other() -> None:
    problem = load("kb_matmul_scalar")
    assert "tl.dot(" not in problem.start
    dotted = problem.variant("enable_tf32", "dot")
    assert dotted is not None and dotted.source is not None and dotted.kind == "template"
    assert 'PRECISION = "tf32"' in dotted.source.split("\n") and "tl.dot(" in dotted.source
    tiled = problem.variant("coalesce", "flags")
    assert tiled is not None and tiled.source == strict_twin(dotted.source)
    assert tiled == problem.variant("coalesce", "dot")
    assert config_of(problem.start) == {"BLOCK_M": 32, "BLOCK_N": 32, "num_warps": 4}


def test_a_prescription_without_a_variant_is_none_and_is_not_declared() -> None:
    problem = load("sigmoid")
    assert problem.variant("coalesce", "flags") is None
    assert declared(problem, "dot").prescriptions == ("fuse",)
    with pytest.raises(BadInput, match=r"unknown pool 'any'.*flags, dot"):
        declared(problem, "any")


@every_problem
def test_sweeps_fit_a_block_and_the_tile_limits_of_triton(name: str) -> None:
    for variant in load(name).variants:
        for config in variant.configs:
            blocks = [size for key, size in config.items() if key.startswith("BLOCK")]
            assert all(size & (size - 1) == 0 for size in (*blocks, config["num_warps"]))
            assert config["num_warps"] <= 32 and prod(blocks) <= 2**20


def test_an_unknown_name_lists_the_known_ones_and_the_closest() -> None:
    with pytest.raises(BadInput, match=r"unknown problem 'softmx'.*batched_gemm.*sigmoid; did you mean kb_softmax\?"):
        load("softmx")
    with pytest.raises(BadInput, match=r"unknown problem '\.\./problems/matmul'"):
        load("../problems/matmul")


def test_the_digest_is_the_stated_preimage(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.py").write_bytes(b"1\n")
    (tmp_path / "a.toml").write_bytes(b"")
    preimage = b"gpusolver-problem-1\n6:a.toml\n0:\n6:b/x.py\n2:1\n\n"
    assert digest(tmp_path) == hashlib.sha256(preimage).hexdigest()
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").write_bytes(b"3")
    (tmp_path / ".swap").write_bytes(b"4")
    assert digest(tmp_path) == hashlib.sha256(preimage).hexdigest()
    (tmp_path / "b" / "x.py").write_bytes(b"2\n")
    assert digest(tmp_path) != hashlib.sha256(preimage).hexdigest()


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("problem.toml", 'name = "sigmoid"', 'name = "other"', "name is 'other', its folder is 'sigmoid'"),
        ("problem.toml", "weight = 1.0", 'weight = "1"', r"Expected `float`, got `str` - at `\$.weight`"),
        ("problem.toml", "flops = ", "flop = ", r"unknown field `flop`"),
        (
            "problem.toml",
            "[limits.bf16-allowed]",
            "[limits.bf16]",
            "limits are given for .*'bf16'.*expected .*'bf16-allowed'",
        ),
        (
            "problem.toml",
            "[shape]",
            "mixed_inputs = [0]\n[shape]",
            "mixed_inputs are places from 0 beside mixed_limits",
        ),
        ("problem.toml", "[shape]", "[kind_limits.tiny]\n[shape]", "kind_limits are given for .*'tiny'.*expected some"),
        ("problem.toml", "[shape]", "[kind_limits.large]\n[shape]", r"kind_limits.large are given for \[\]"),
        ("problem.toml", "cols = 48", "columns = 48", "name the same ones"),
        ("problem.toml", 'kind = "flag"', 'kind = "flag"\nfile = "start.py"', "`file` belongs to"),
        ("problem.toml", 'kind = "template"', 'kind = "file"', "`configs` belongs to"),
        ("problem.toml", "{ BLOCK = 512, num_warps = 4 }", "{ BLOCK = 512 }", r"configs\[0\] has keys \['BLOCK'\]"),
        ("problem.toml", "{ BLOCK = 512, num_warps = 4 }", "{ BLOCK = 1024, num_warps = 4 }", r"configs\[1\] repeats"),
        ("problem.toml", "variants/fused.py", "variants/gone.py", "variants/gone.py: expected a Python source"),
        ("problem.toml", 'pool = "any"', 'pool = "all"', "Invalid enum value 'all'"),
        (
            "problem.toml",
            "prescriptions.fuse",
            "prescriptions.enable_tf32",
            "pool flags offers enable_tf32 more than once",
        ),
        ("variants/fused.py", 'PRECISION = "ieee"', "PRECISION = 'ieee'", "fused.py: .*exactly one line `PRECISION"),
        ("eager.py", 'PRECISION = "ieee"', "PRECISION = 'ieee'", "eager.py: .*exactly one line `PRECISION"),
        (
            "variants/fused.py",
            "CONFIG = {",
            "CONFIG= {",
            r"prescriptions.fuse \(any, template\): .*exactly one line `CONFIG",
        ),
        ("problem.toml", "[small]", "[small", "sigmoid/problem.toml: .*see problems/README.md"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused_with_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str, message: str
) -> None:
    folder = tmp_path / "sigmoid"
    shutil.copytree(Path(load("sigmoid").reference).parent, folder)
    monkeypatch.setattr(contract, "files", lambda package: tmp_path)
    load("sigmoid")
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    with pytest.raises(BadInput, match=message):
        load("sigmoid")


def test_reading_problems_needs_neither_torch_nor_triton() -> None:
    code = "import sys; from gpusolver.problems.contract import load, names; [load(n) for n in names()]; print(*sys.modules)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "triton", "numpy", "sqlite3"} & set(child.stdout.split())
