"""What both sides derive of the same made-up artifacts: the second signals, answers, counter rows and looks, value for value.

The verifier and the writing side share no code; where they differ, one of them misreads replay/FORMAT.md.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from gpusolver.events.model import Chip, Clause, Gain, Guard, Rule, Statistics
from gpusolver.profilers import agreement, verdicts
from gpusolver.profilers import artifacts as shapes
from gpusolver.profilers.counted import stall_metric
from gpusolver.profilers.signals import signals as written_signals
from gpusolver.projections import matcher
from gpusolver.replay import exam_derive, statistic
from gpusolver.replay.artifacts import Counters, Launches, Samples
from gpusolver.replay.calibration import Calibration
from gpusolver.replay.derive_counted import STALLS
from gpusolver.replay.derive_signals import signals as derived_signals
from gpusolver.replay.extras import SHAPES, Extras

from . import exam_world as world
from .world import CHIP, rule

SLOW = settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
Json = dict[str, Any]
NS = st.integers(1, 5000)


def maybe(content: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | content


def some_of(mapping: Json) -> st.SearchStrategy[Json]:
    """The mapping with some of its keys left out."""
    return st.sets(st.sampled_from(sorted(mapping))).map(
        lambda gone: {k: v for k, v in mapping.items() if k not in gone}
    )


STATE = st.fixed_dictionaries(
    {},
    optional={
        "sm_clock_mhz": st.integers(1, 3000) | st.floats(1, 3000),
        "throttle_bits": st.integers(0, 300) | st.just(4.0),
    },
)
BLOCKS = st.lists(st.tuples(NS, NS, NS, NS), min_size=1, max_size=9)
SAMPLES = st.builds(
    lambda blocks, before, after, held: {
        "clock": "cuda_event",
        "cache": "cold",
        "unit": "ns",
        "blocks": blocks,
        "before": before,
        "after": after,
        **held,
    },
    BLOCKS,
    STATE,
    STATE,
    st.fixed_dictionaries({}, optional={"throttled_ns": st.integers(0, 10**10), "wall_s": st.floats(0, 10)}),
)
PRODUCT = st.fixed_dictionaries({"flop": st.integers(1, 10**12), "ns": st.lists(NS, min_size=1, max_size=3)})
LIMITS = st.fixed_dictionaries(
    {
        "sms": st.integers(1, 200),
        "warps_per_sm": st.sampled_from((32, 48, 64)),
        "blocks_per_sm": st.integers(1, 32),
        "registers_per_sm": st.sampled_from((32768, 65536)),
        "shared_per_sm": st.sampled_from((65536, 102400, 233472)),
        "shared_reserved": st.sampled_from((1024, 512)),
        "sm_clock_mhz": st.integers(1, 3000),
    }
)
SPLITS = replace(CHIP, peaks_tflops=CHIP.peaks_tflops | {"tf32x3": CHIP.peaks_tflops["tf32"] / 3})
CALIBRATION = st.fixed_dictionaries(
    {"copy": st.just({"bytes": 10**9, "ns": [2_000_000]})},
    optional={
        "l2": st.fixed_dictionaries({"bytes": st.integers(1, 10**9), "ns": st.lists(NS, min_size=1, max_size=3)}),
        "gemm_fp32": PRODUCT,
        "gemm_tf32": PRODUCT,
        "gemm_bf16": PRODUCT,
        "limits": LIMITS,
    },
).map(lambda found: {"limits": world.CALIBRATION["limits"]} | found)
SIZES = maybe(st.lists(st.integers(1, 70), min_size=1, max_size=3))
KERNEL = st.builds(
    lambda fixed, static: fixed | static,
    st.fixed_dictionaries(
        {
            "name": st.just("k"),
            "language": st.sampled_from(("triton", "library")),
            "code": st.just("code"),
            "ttir": st.none(),
            "grid": SIZES,
            "block": SIZES,
            "shared": maybe(st.integers(0, 250_000)),
            "scalars": st.just([]),
            "registers": maybe(st.integers(0, 255)),
            "local_bytes": maybe(st.integers(0, 9)),
        }
    ),
    st.fixed_dictionaries({}, optional={"static_shared": maybe(st.integers(0, 50_000))}),
)
LAUNCHES = st.fixed_dictionaries({"complete": st.booleans() | st.just(True), "kernels": st.lists(KERNEL, max_size=3)})
NAMES = sorted({*world.METRICS, *(stall_metric(kind) for kind in STALLS)})
VALUE = maybe(st.integers(0, 10**6) | st.floats(0, 200))
METRICS = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, VALUE))


@st.composite
def counters(draw: st.DrawFn) -> Json:
    """The metrics of exam_world.py with some replaced, added and left out; or none read at all."""
    if draw(st.integers(0, 9)) == 0:
        return {"collector": "none", "passes": 0, "chip": "", "cache": "cold", "metrics": {}}
    return world.COUNTERS | {"metrics": draw(some_of(world.METRICS)) | draw(METRICS)}


@st.composite
def timelines(draw: st.DrawFn) -> Json:
    """Calls of kernels in order of start, overlapping or not."""
    calls = []
    number = draw(st.integers(1, 3))
    for _ in range(draw(st.integers(1, 4))):
        starts = sorted(draw(st.lists(st.integers(0, 3000), min_size=number, max_size=number)))
        calls.append([[start, start + draw(NS), draw(st.sampled_from("kmn"))] for start in starts])
        number = draw(st.sampled_from((number, number, number + 1)))
    names = st.sampled_from(("aten::bmm", "aten::baddbmm", "aten::_softmax", "aten::masked_fill", "aten::mm"))
    spent = draw(maybe(st.dictionaries(names, NS)))
    operators = None if spent is None else [list(item) for item in spent.items()]
    return {"collector": draw(st.sampled_from(("torch_profiler", "nsys"))), "calls": calls, "operators": operators}


OPCODE = st.sampled_from(
    ("LDG", "LDG.E.128", "LDG.E.U8", "STG.E.128.SYS", "STG", "LDL.128", "STL", "HMMA.16816.F32", "HGMMA.64x8x16.F32", "UTCHMMA",
     "LDGSTS.E.128", "UTMALDG.2D", "UBLKCP", "IADD3", "128.LDG", "LDGDEPBAR", "HMMA128")
)  # fmt: skip
COMPILED = st.lists(st.dictionaries(OPCODE, st.integers(0, 50)), max_size=3).map(
    lambda mixes: {"tool": "x", "kernels": [{"code": "code", "mix": mix} for mix in mixes]}
)
WINDOW = st.fixed_dictionaries(
    {"calls": NS, "millijoules": st.integers(0, 10**6), "milliseconds": NS, "temperature_c": st.integers(0, 99)}
)
ENERGY = st.lists(WINDOW, min_size=1, max_size=4).map(lambda windows: {"windows": windows})
WARM = BLOCKS.map(lambda blocks: {"clock": "cuda_event", "cache": "warm", "unit": "ns", "blocks": blocks})
EXTRAS = st.fixed_dictionaries(
    {},
    optional={
        "timeline": timelines(),
        "warm": WARM,
        "compiled": COMPILED,
        "energy": ENERGY,
        "kernels": st.just(world.KERNELS),
    },
)
WHOLE: Json = {
    "timeline": world.TIMELINE,
    "warm": world.samples(world.WARM, cache="warm"),
    "compiled": world.compiled("code"),
    "energy": world.ENERGY,
    "kernels": world.KERNELS,
}


def raw(content: object) -> bytes:
    return msgspec.json.encode(content)


@SLOW
@given(
    samples=SAMPLES,
    launches=LAUNCHES,
    counted=maybe(counters()),
    calibration=CALIBRATION,
    extras=EXTRAS,
    contract=st.sampled_from(("fp32-strict", "tf32-allowed", "bf16-allowed")),
    chip=st.sampled_from((CHIP, SPLITS)),
)
@example(
    samples=world.samples(world.AA),
    launches=world.launches("code", "ttir"),
    counted=world.COUNTERS,
    calibration=world.CALIBRATION,
    extras=WHOLE,
    contract="tf32-allowed",
    chip=CHIP,
)
@example(
    samples=world.samples(world.AA),
    launches=world.launches("code", "ttir"),
    counted=world.COUNTERS,
    calibration=world.CALIBRATION,
    extras=WHOLE,
    contract="fp32-strict",
    chip=SPLITS,
)
def test_signals(
    samples: Json, launches: Json, counted: Json | None, calibration: Json, extras: Json, contract: str, chip: Chip
) -> None:
    """The same names with the same 64 bits."""
    written = written_signals(
        world.PROBLEM,
        contract,
        chip,
        500.0,
        shapes.decode(shapes.Samples, raw(samples)),
        shapes.decode(shapes.Launches, raw(launches)),
        None if counted is None else shapes.decode(shapes.Counters, raw(counted)),
        shapes.decode(shapes.Calibration, raw(calibration)),
        {role: raw(content) for role, content in extras.items()},
    )
    derived = derived_signals(
        world.PROBLEM,
        contract,
        chip,
        500.0,
        msgspec.json.decode(raw(samples), type=Samples),
        msgspec.json.decode(raw(launches), type=Launches),
        None if counted is None else msgspec.json.decode(raw(counted), type=Counters),
        msgspec.json.decode(raw(calibration), type=Calibration),
        Extras(**{role: msgspec.json.decode(raw(content), type=SHAPES[role]) for role, content in extras.items()}),
    )
    assert {n: (written.get(n), derived.get(n)) for n in written | derived if written.get(n) != derived.get(n)} == {}


SOME_SIGNALS = ("load_eff", "bw_frac", "traffic_excess", "stall_wait")
CLAUSES = st.lists(
    st.builds(
        Clause,
        signal=st.sampled_from(SOME_SIGNALS),
        op=st.sampled_from(("<", "<=", ">", ">=", "==")),
        threshold=st.sampled_from((0.0, 0.5, 1.0)),
    ),
    max_size=3,
).map(tuple)
GAINS = st.builds(
    Gain,
    form=st.sampled_from(("constant", "signal", "inverse_signal", "peak_ratio", "amdahl")),
    cap=st.sampled_from((1.0, 2.0, 9.0)),
    signal=st.sampled_from(SOME_SIGNALS),
    over=st.sampled_from(("tf32", "bf16")),
    under=st.just("fp32"),
    share=st.sampled_from((*SOME_SIGNALS, UNSET)),
)
GUARDS = st.lists(
    st.builds(
        Guard, over=st.sampled_from(("tf32", "bf16")), under=st.just("fp32"), at_least=st.sampled_from((2.0, 9.0))
    ),
    max_size=1,
)


@st.composite
def tables(draw: st.DrawFn) -> list[Rule]:
    """Rules of few names, tiers and positions, so that ties and versions meet."""
    return [
        msgspec.structs.replace(
            rule(draw(st.sampled_from("abc")), draw(st.integers(1, 2)), []),
            version=version,
            tier=draw(st.integers(0, 1)),
            stop=draw(st.booleans()),
            clauses=draw(CLAUSES),
            guards=tuple(draw(GUARDS)),
            contracts=draw(st.sampled_from(((), ("tf32-allowed",), ("bf16-allowed",)))),
            gain=draw(GAINS),
        )
        for version in range(draw(st.integers(0, 6)))
    ]


@SLOW
@given(table=tables(), seen=st.dictionaries(st.sampled_from(SOME_SIGNALS), st.sampled_from((0.0, 0.25, 0.5, 1.0, 3.0))))
def test_answers(table: list[Rule], seen: dict[str, float]) -> None:
    """Order, answer, clauses, missing signals, reason and gain."""
    told = matcher.answers(table, seen, CHIP, "tf32-allowed", ("a", "b"))
    assert exam_derive.answers(table, seen, CHIP, "tf32-allowed", ("a", "b")) == told


METRIC = st.sampled_from(("a.sum", "b_bytes.sum", "c.avg", "bytes.pct", "d.sum.ratio"))
READ = st.dictionaries(
    METRIC, maybe(st.integers(0, 10**8) | st.floats(0, 1e8)) | st.sampled_from((100, 101, 99, 103.0))
)


@SLOW
@given(ours=READ, theirs=READ)
def test_counter_rows(ours: Json, theirs: Json) -> None:
    """Bounds and what is within them."""
    both = [world.COUNTERS | {"metrics": read} for read in (ours, theirs)]
    written = agreement.rows(*(shapes.decode(shapes.Counters, raw(one)) for one in both))
    assert exam_derive.counter_rows(*(msgspec.json.decode(raw(one), type=Counters) for one in both)) == written


SIDE = st.sampled_from((1900, 2000, 2050, 2100, 2200, 4000))
LOOKS = st.sampled_from((UNSET, (12,), (6, 12), (4, 8, 12), (2, 5, 9, 12)))


@SLOW
@given(
    blocks=st.lists(st.tuples(SIDE, SIDE, SIDE, SIDE), min_size=12, max_size=12)
    | st.tuples(SIDE, SIDE, SIDE, SIDE).map(lambda b: [b] * 12),
    looks=LOOKS,
    floor=st.sampled_from((0.0, 0.01, 0.2)),
)
def test_rounds_measured_by_looks(blocks: list[Any], looks: Any, floor: float) -> None:
    """The writing side measures until a look stands; the verifier agrees that it stands there and nowhere before."""
    statistics = Statistics(blocks=12, tail_num=1, tail_den=5, margin=0.02, floor_multiple=1.0, looks=looks)
    ends = (12,) if looks is UNSET else looks
    for number in ends:
        samples = {"clock": "cuda_event", "cache": "cold", "unit": "ns", "blocks": blocks[:number]}
        told = verdicts.judge(
            outcome="passed",
            inert=False,
            samples=shapes.decode(shapes.Samples, raw(samples)),
            problem=world.PROBLEM,
            contract="tf32-allowed",
            chip=CHIP,
            statistics=statistics,
            noise_floor=floor,
        )
        due = statistic.judge_by_looks(
            outcome="passed",
            inert=False,
            samples=msgspec.json.decode(raw(samples), type=Samples),
            margin=max(0.02, floor),
            floor_ns=statistic.physical_floor(world.PROBLEM, CHIP, "tf32-allowed"),
            statistics=statistics,
        )
        found = due.judgement
        assert (found.verdict, found.reason, found.interval, found.margin) == (
            told.verdict,
            told.reason,
            told.interval,
            told.margin,
        )
        stands = number == ends[-1] or verdicts.is_final(told)
        assert (due.forbidden == ()) is stands
        if stands:
            return
