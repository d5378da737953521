"""Sources turned by the triton generator: they parse, keep comments and strings, and compute the right answer under the interpreter."""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusolver.engine.generators.base import Asked
from gpusolver.events.model import Cell
from gpusolver.problems.contract import load, names
from gpusolver.problems.sources import strict_twin, with_precision

cst = pytest.importorskip("libcst")

from gpusolver.engine.generators.triton import AXES, MOST_SOURCES, TritonGenerator, variants
from gpusolver.engine.generators.triton_rewrite import plain_grids, turned, with_dots
from gpusolver.engine.generators.triton_source import read

FREE = Path(__file__).parent / "free"
FREE_SOURCES = {path.stem: path.read_text() for path in sorted(FREE.glob("*.py"))}
OWN = {
    f"{name} {kind}": source
    for name in names()
    for kind, source in (
        ("start", load(name).start),
        *((str(v.file), v.source) for v in load(name).variants if v.source),
    )
    if "triton.jit" in source and name != "matmul"  # whose tiled variant is that of kb_matmul_scalar, with other tiles
}
TRITON_SOURCES = OWN | FREE_SOURCES
DIFFERENT = list({axes: name for name, axes in AXES.items()}.values())
"""One prescription of each way to turn."""
PAIRS = [(name, each) for name in FREE_SOURCES for each in DIFFERENT] + [
    (name, each) for name in OWN for each in ("reduce_registers", "less_of_both", "remove_stall")
]


def propose(
    source: str, prescription: str, contract: str = "tf32-allowed", problem: str = "kb_matmul_scalar"
) -> tuple[str, ...]:
    asked = Asked(
        problem=load(problem), contract=contract, prescription=prescription, rule="", source=source, signals={}
    )
    found = TritonGenerator().propose(asked)
    return () if found is None else found.sources


def kept(source: str) -> Counter[tuple[int, str]]:
    """Comments and strings."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return Counter((t.type, t.string) for t in tokens if t.type in (tokenize.COMMENT, tokenize.STRING))


@pytest.mark.parametrize(("name", "prescription"), PAIRS)
def test_what_is_turned_parses_and_keeps_comments_and_strings(name: str, prescription: str) -> None:
    source = TRITON_SOURCES[name]
    made = propose(source, prescription)
    assert len(made) <= MOST_SOURCES and len(set(made)) == len(made) and source not in made
    for text in made:
        compile(text, name, "exec")
        assert kept(text) == kept(source)


@pytest.mark.parametrize("name", names())
def test_what_it_cannot_read_it_leaves_to_the_next(name: str) -> None:
    """Torch operations, prose, half a file, a kernel that nobody launches: None, whatever is prescribed."""
    lone = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, BLOCK: tl.constexpr):\n    tl.program_id(0)\n"
    for source in (load(name).eager, "I cannot improve this kernel.", "def run(x:\n", lone, "", "\x00"):
        assert all(not propose(source, prescription) for prescription in (*DIFFERENT, "enable_tf32"))
    assert not propose(load("kb_softmax").start, "fuse")


def test_the_knobs_of_the_scalar_product() -> None:
    """By hand: two tiles and the warps stand in CONFIG; stages are nowhere, so that the launch can be given the keyword."""
    reading = read(load("kb_matmul_scalar").start)
    assert reading is not None and plain_grids(reading) == {"matmul_scalar"}
    assert [(k.name, k.kind, k.value, k.node is None) for k in reading.knobs] == [
        ("BLOCK_M", "tile", 32, False),
        ("BLOCK_N", "tile", 32, False),
        ("num_warps", "warps", 4, False),
        ("num_stages", "stages", 3, True),
    ]


def test_a_keyword_that_is_added_stands_before_what_is_unpacked() -> None:
    reading = read(load("kb_softmax").start)
    assert reading is not None
    text = turned(reading, {0: 8, 1: 2})
    assert 'CONFIG = {"num_warps": 8}' in text and "INPUT_PRECISION=PRECISION, num_stages=2, **CONFIG" in text


def test_a_literal_that_also_stands_in_the_grid_is_not_turned() -> None:
    """`(n + 255) // 256` beside BLOCK=256: turning one of the two would be wrong."""
    text = FREE_SOURCES["literal_grid"]
    reading = read(text)
    assert reading is not None and "tile" not in [knob.kind for knob in reading.knobs]
    assert [k.kind for k in read(FREE_SOURCES["literals"]).knobs] == ["tile", "warps", "stages"]  # type: ignore[union-attr]


def test_what_an_autotuner_chooses_is_left_to_it() -> None:
    reading = read(FREE_SOURCES["autotuned"])
    assert reading is not None and reading.knobs == () and reading.launches


def test_the_swizzle_is_a_permutation_of_the_grid() -> None:
    """swizzle2d by its own documentation, worked out for a grid of 5 x 3 in groups of 2."""

    def swizzle2d(i: int, j: int, size_i: int, size_j: int, group: int) -> tuple[int, int]:
        linear = i * size_j + j
        first = linear // (group * size_j) * group
        height = min(size_i - first, group)
        within = linear % (group * size_j)
        return first + within % height, within // height

    assert {swizzle2d(i, j, 5, 3, 2) for i in range(5) for j in range(3)} == {
        (i, j) for i in range(5) for j in range(3)
    }
    text = next(t for t in propose(load("kb_matmul_scalar").start, "keep_in_l2") if "swizzle2d" in t)
    line = next(line for line in text.splitlines() if "swizzle2d" in line)
    assert re.search(
        r"tl\.swizzle2d\(tl\.program_id\(1\), tl\.program_id\(0\), tl\.num_programs\(1\), tl\.num_programs\(0\), \d+\)",
        line,
    )
    assert "rows = swizzled_column * BLOCK_M" in text and "cols = swizzled_row * BLOCK_N" in text


def test_the_swizzle_keeps_a_docstring_first_and_is_not_applied_twice() -> None:
    reading = read(FREE_SOURCES["language_alias"])
    assert reading is not None
    once = turned(reading, {}, 4, plain_grids(reading))
    again = read(once)
    assert again is not None and not plain_grids(again) and turned(again, {}, 4, plain_grids(again)) == once
    body = once.split('"""Sum of two matrices."""\n')[1].splitlines()[0]
    assert body.strip().startswith("swizzled_row, swizzled_column = L.swizzle2d(L.program_id(1)")


@pytest.mark.parametrize("name", ["helper_reads_grid", "one_axis"])
def test_a_grid_that_others_read_or_of_one_axis_is_not_swizzled(name: str) -> None:
    reading = read(FREE_SOURCES[name])
    assert reading is not None and not plain_grids(reading)


@given(st.sampled_from(sorted(TRITON_SOURCES)), st.sampled_from(DIFFERENT), st.data())
@settings(max_examples=12, deadline=None)
def test_turning_is_idempotent_and_can_be_taken_back(name: str, prescription: str, data: st.DataObject) -> None:
    """The same values on the turned source change nothing; the old values give the old text back, but for a keyword added."""
    reading = read(TRITON_SOURCES[name])
    assert reading is not None
    places = [place for place, knob in enumerate(reading.knobs) if knob.node is not None]
    values = {place: data.draw(st.sampled_from([1, 2, 4, 16, 64])) for place in places}
    once = read(turned(reading, values))
    assert once is not None and turned(once, {}) == once.module.code
    assert [once.knobs[p].value for p in places] == [values[p] for p in places] or "literal" in name
    if [k.name for k in once.knobs] == [k.name for k in reading.knobs]:
        assert turned(once, values) == once.module.code
        assert turned(once, {p: reading.knobs[p].value for p in places}) == reading.module.code
    assert all(text != reading.module.code for text in variants(reading, AXES[prescription]))


@pytest.mark.parametrize("prescription", DIFFERENT)
def test_the_strict_contract_never_gets_tf32(prescription: str) -> None:
    """A dot that says nothing is Triton's TF32: under the strict contract each candidate says ieee, or takes it from the line."""
    for name, source in ((name, source) for name, source in TRITON_SOURCES.items() if ".dot(" in source):
        for text in propose(source, prescription, "fp32-strict"):
            assert "tf32" not in re.sub(r"#.*|\"\"\".*?\"\"\"|allow_tf32=False", "", text, flags=re.DOTALL).lower(), (
                name
            )
            for call in re.findall(r"(?:tl|L)\.dot\(.*", text):
                assert 'input_precision="ieee"' in call or "INPUT_PRECISION" in call or "allow_tf32=False" in call, name
    assert not propose(FREE_SOURCES["dots"], "enable_tf32", "fp32-strict")


def test_tf32_where_it_is_allowed() -> None:
    """Every literal is set, the name is left to the precision line; a source whose dots are TF32 already has nothing to gain."""
    strict = with_dots(FREE_SOURCES["dots"], "ieee")
    assert strict is not None and with_dots(strict, "ieee") == strict
    (made,) = propose(strict, "enable_tf32")
    assert made.count('input_precision="tf32"') == 2 and "allow_tf32=True" in made and "allow_tf32=False" not in made
    assert not propose(made, "enable_tf32")
    tiled = next(source for name, source in OWN.items() if "kb_matmul_scalar variants" in name)
    ieee = with_precision(tiled, "ieee")
    assert propose(ieee, "enable_tf32") == (with_precision(tiled, "tf32"),)
    assert not propose(load("kb_matmul_scalar").start, "enable_tf32")  # no dot that could be TF32


def test_dots_are_split_under_the_strict_contract_alone() -> None:
    """Every literal and the precision line say tf32x3, also where allow_tf32 had said what it cannot say; tiles turned later keep it."""
    strict = with_dots(FREE_SOURCES["dots"], "ieee")
    assert strict is not None and not propose(strict, "split_products", "tf32-allowed")
    (made,) = propose(strict, "split_products", "fp32-strict")
    assert made.count('input_precision="tf32x3"') == len(re.findall(r"(?:tl|L)\.dot\(", made))
    assert "allow_tf32" not in made and not propose(made, "split_products", "fp32-strict")
    for turned_later in propose(made, "tile", "fp32-strict"):
        assert turned_later.count('input_precision="tf32x3"') == made.count('input_precision="tf32x3"')
    tiled = next(source for name, source in OWN.items() if "kb_matmul_scalar variants" in name)
    (split,) = propose(with_precision(tiled, "ieee"), "split_products", "fp32-strict")
    assert split == with_precision(tiled, "tf32x3") and strict_twin(split) == with_precision(tiled, "ieee")
    assert not propose(load("kb_matmul_scalar").start, "split_products", "fp32-strict")


# --- under the interpreter, through the real gate ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def executor() -> Iterator[object]:
    from gpusolver.engine.local import LocalExecutor

    made = LocalExecutor("cpu", limits_s={"gate": 60.0})
    yield made
    made.close()


def gated(executor: object, source: str, problem: str, contract: str) -> tuple[str, str]:
    from gpusolver.engine.executor import Question
    from gpusolver.problems.contract import declared
    from gpusolver.profilers import artifacts as shapes
    from gpusolver.profilers.gates import judge_report

    cell = Cell(problem=problem, contract=contract, pool="flags", arm="on", repetition=1)
    seen = executor.gate(Question(cell=cell, problem=load(problem), purpose="gate", seed=5), source)  # type: ignore[attr-defined]
    assert seen.status == "ok", seen
    report = shapes.decode(shapes.Report, seen.artifacts["report"])
    return judge_report(report, declared(load(problem), "flags"), contract)


OF_PROBLEM = {
    **{name: name.split()[0] for name in OWN},
    **{name: {"rows": "kb_softmax"}.get(name, "kb_matmul_scalar") for name in ("rows", "dots", "literals_product")},
}


@pytest.mark.torch_cpu
@pytest.mark.parametrize("name", [name for name in OF_PROBLEM if name in TRITON_SOURCES])
def test_what_is_turned_computes_the_right_answer(executor: object, name: str) -> None:
    """Of every prescription the first and the last source, each once, by the real gate; and all that the strict contract allows."""
    source, problem = TRITON_SOURCES[name], OF_PROBLEM[name]
    chosen = dict[str, None]()
    for prescription in DIFFERENT:
        made = propose(source, prescription, "fp32-strict", problem)
        chosen |= dict.fromkeys([*made[:1], *made[-1:]])
    assert chosen or "start" in name
    scalar = name == "kb_matmul_scalar start"  # ten seconds each under the interpreter
    for text in list(chosen)[: 4 if scalar else 10]:
        assert gated(executor, text, problem, "fp32-strict") == ("passed", "within limits"), text


@pytest.mark.torch_cpu
def test_a_whole_run_on_the_stand_in(executor: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule of a made-up table prescribes `hide_latency`, which no catalogue has: one sweep, one candidate, one verdict, and the
    verifier agrees. The CPU's clock says nothing of a GPU."""
    from gpusolver.engine import registration
    from gpusolver.engine.registration import RunRequest
    from gpusolver.engine.run import Run
    from gpusolver.events.model import GeneratorAsked, KernelGated, SourcesSwept
    from gpusolver.events.writer import LedgerWriter

    from ..engine.support import assert_verifies, cell_events, ignore, only

    table = tmp_path / "table.toml"
    table.write_text(
        "[[rule]]\nname = \"always\"\nversion = 1\ntier = 1\nprescription = \"fewer_barriers\"\nmetrics = []\n"
        "rationale = \"made up\"\nclauses = [{ signal = \"time_us\", op = \">\", threshold = 0.0 }]\n"
        "gain = { form = \"constant\", cap = 2.0 }\n"
    )  # fmt: skip
    path = tmp_path / "ledger.db"
    few = msgspec.structs.replace(registration.STATISTICS, blocks=10, looks=(10,))
    monkeypatch.setattr(registration, "STATISTICS", few)
    asked = RunRequest(
        problems=("kb_softmax",),
        arms=("on",),
        contracts=("fp32-strict",),
        rounds=1,
        rules=str(table),
        generators=("catalogue", "triton"),
    )
    with LedgerWriter(path) as ledger:
        Run(ledger, executor, ignore).start(asked)  # type: ignore[arg-type]
    events = cell_events(path, "on")
    assert [e.outcome for e in only(events, GeneratorAsked)] == ["made"]
    (swept,) = only(events, SourcesSwept)
    assert len(swept.sources) == 2 and [e.outcome for e in only(events, KernelGated)] == ["passed", "passed"]
    assert_verifies(path)


def test_what_is_asked_is_not_changed() -> None:
    asked = Asked(
        problem=load("kb_softmax"),
        contract="fp32-strict",
        prescription="tile",
        rule="",
        source=OWN["kb_softmax start"],
        signals={},
    )
    before = msgspec.structs.asdict(asked)
    TritonGenerator().propose(asked)
    assert msgspec.structs.asdict(asked) == before
