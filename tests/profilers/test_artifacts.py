"""Artifacts: what is written reads back, facts are passed over, and damage is named."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from gpusolver.events.errors import BadInput
from gpusolver.profilers.artifacts import (
    Artifact,
    Calibration,
    Compiled,
    CompiledKernel,
    Copy,
    Counters,
    DeviceLimits,
    DeviceState,
    Energy,
    Errors,
    Expected,
    Launches,
    Product,
    Report,
    ReportError,
    Samples,
    Sweep,
    Timeline,
    Window,
    decode,
    encode,
)
from gpusolver.profilers.calibration import copy_gbps
from gpusolver.profilers.sweeps import choose

from .examples import draw, launch, launches, report, samples

EXAMPLES: list[Artifact] = [
    samples([(3, 2), (5, 4)]),
    Sweep(samples=((1, 2), None)),
    launches(launch(), launch(None, language="library", scalars=(1, 2.5, True, "s", None))),
    Counters(
        collector="cupti", passes=2, chip="GH100", cache="cold", metrics={"a.sum": 1, "b.pct": 0.5, "c.sum": None}
    ),
    report(draw(rel_l2=None), trivial={"zeros": Errors(rel_l2=1.0, max_rms=None)}, repeat_equal=True),
    report(error=ReportError(outcome="timeout", text="60 s"), expected=None),
    Calibration(copy=Copy(bytes=8, ns=(1, 2))),
    Calibration(
        copy=Copy(bytes=8, ns=(1, 2)),
        l2=Copy(bytes=4, ns=(1,)),
        gemm_fp32=Product(flop=9, ns=(3,)),
        limits=DeviceLimits(
            sms=132,
            warps_per_sm=64,
            blocks_per_sm=32,
            registers_per_sm=65536,
            shared_per_sm=233472,
            shared_reserved=1024,
            sm_clock_mhz=1980,
        ),
    ),
    replace(samples([(3, 2)]), before=DeviceState(sm_clock_mhz=1980.0, throttle_bits=4.0), after=DeviceState()),
    launches(launch(static_shared=1024)),
    Counters(collector="cupti", passes=1, chip="GH100", cache="cold", metrics={}, wall_s=0.12),
    Timeline(collector="torch_profiler", calls=(((0, 5, "a"), (3, 9, "b")),), operators=(("aten::bmm", 5),)),
    Compiled(tool="nvdisasm", kernels=(CompiledKernel(code="c1", mix={"LDG.E.128": 2, "EXIT": 0}),)),
    Energy(windows=(Window(calls=10, millijoules=0, milliseconds=100, temperature_c=40),)),
]


@pytest.mark.parametrize("artifact", EXAMPLES, ids=lambda a: type(a).__name__)
def test_round_trip_with_facts(artifact: Artifact) -> None:
    assert decode(type(artifact), encode(artifact)) == artifact
    raw = encode(artifact, {"telemetry": {"sm_mhz": [1980]}})
    assert decode(type(artifact), raw) == artifact
    assert json.loads(raw)["telemetry"] == {"sm_mhz": [1980]}


def test_facts_may_not_replace_what_is_judged() -> None:
    with pytest.raises(BadInput, match=r"'samples' would replace its own keys \['blocks'\]"):
        encode(samples([(1, 1)]), {"blocks": []})


def test_nan_is_stored_as_unknown() -> None:
    raw = encode(report(draw(rel_l2=float("nan"), max_rms=float("inf")), seed=1))
    found = decode(Report, raw).draws[0]
    assert (found.rel_l2, found.max_rms) == (None, None)


def test_the_page_of_the_format_reads_as_written() -> None:
    raw = b'{"clock":"cuda_event","cache":"cold","unit":"ns","blocks":[[4,1,2,3]],"before":{"sm_mhz":1980}}'
    assert decode(Samples, raw).blocks == ((4, 1, 2, 3),)
    raw = (
        b'{"clock":"cuda_event","cache":"cold","unit":"ns","blocks":[[4,1,2,3]],"before":null,'
        b'"after":{"sm_clock_mhz":1980,"throttle_bits":4,"temperature_c":52.0}}'
    )
    assert decode(Samples, raw).after == DeviceState(sm_clock_mhz=1980.0, throttle_bits=4.0)
    raw = b'{"error":null,"seed":5,"draws":[],"expected":{"shape":[2],"dtype":"float32"},"trivial":{},"repeat_equal":true}'
    assert decode(Report, raw).expected == Expected(shape=(2,), dtype="float32")


@pytest.mark.parametrize(
    ("kind", "raw", "where"),
    [
        (Samples, b"\xff\xfe", "artifact 'samples' \\(2 bytes\\)"),
        (Samples, b"", "truncated"),
        (Samples, b'{"clock":"c","cache":"cold","unit":"ns"}', "missing required field `blocks`"),
        (Samples, b'{"clock":"c","cache":"cold","unit":"us","blocks":[[1,1,1,1]]}', r"`\$.unit`"),
        (Samples, b'{"clock":"c","cache":"cold","unit":"ns","blocks":[]}', r"`\$.blocks`"),
        (Samples, b'{"clock":"c","cache":"cold","unit":"ns","blocks":[[1,1,1]]}', r"`\$.blocks\[0\]`"),
        (Samples, b'{"clock":"c","cache":"cold","unit":"ns","blocks":[[1,0,1,1]]}', r"`\$.blocks\[0\]\[1\]`"),
        (Samples, b'{"clock":"c","cache":"cold","unit":"ns","blocks":[[1,1.5,1,1]]}', r"`\$.blocks\[0\]\[1\]`"),
        (Launches, b'{"complete":true,"kernels":[{"name":"k","language":"cuda"}]}', r"`\$.kernels\[0\].language`"),
        (Counters, b'{"collector":"c","passes":1,"chip":"x","cache":"cold","metrics":{"a":"n/a"}}', r"`\$.metrics"),
        (Sweep, b'{"unit":"ns","samples":[[]]}', r"`\$.samples\[0\]`"),
        (Report, b'{"error":{"outcome":"odd","text":""},"seed":1}', r"`\$.error.outcome`"),
        (Calibration, b'{"copy":{"bytes":8,"ns":[]}}', r"`\$.copy.ns`"),
        (Calibration, b'{"copy":{"bytes":8,"ns":[1]},"gemm_tf32":{"flop":8,"ns":[]}}', r"`\$.gemm_tf32.ns`"),
        (Calibration, b'{"copy":{"bytes":8,"ns":[1]},"limits":{"sms":132}}', r"`warps_per_sm`.*`\$.limits`"),
        (Samples, b'{"clock":"c","cache":"cold","blocks":[[1,1,1,1]],"before":{"throttle_bits":4.5}}', r"`\$.before`"),
        (
            Samples,
            b'{"clock":"c","cache":"cold","blocks":[[1,1,1,1]],"after":{"sm_clock_mhz":-1}}',
            r"`\$.after.sm_clock_mhz`",
        ),
        (
            Launches,
            b'{"complete":true,"kernels":[{"name":"k","language":"triton","grid":[-1]}]}',
            r"`\$.kernels\[0\].grid\[0\]`",
        ),
        (Timeline, b'{"collector":"nsys","calls":[]}', r"`\$.calls`"),
        (Timeline, b'{"collector":"nsys","calls":[[]]}', r"`\$.calls\[0\]`"),
        (
            Timeline,
            b'{"collector":"nsys","calls":[[[0,1,"a"]],[[5,5,"a"]]]}',
            "call 1: expected kernels of some length",
        ),
        (Timeline, b'{"collector":"nsys","calls":[[[5,6,"a"],[4,9,"b"]]]}', "in order of start"),
        (Timeline, b'{"collector":"nsys","calls":[[[0,1,"a"]]],"operators":[["o",1],["o",2]]}', "each operator once"),
        (Compiled, b'{"tool":"t","kernels":[{"code":"c","mix":{"LDG":-1}}]}', r"`\$.kernels\[0\].mix"),
        (
            Energy,
            b'{"windows":[{"calls":1,"millijoules":1,"milliseconds":0,"temperature_c":1}]}',
            r"`\$.windows\[0\].milliseconds`",
        ),
    ],
)
def test_damage_is_named(kind: type[Artifact], raw: bytes, where: str) -> None:
    with pytest.raises(BadInput, match=where) as caught:
        decode(kind, raw)
    assert f"artifact '{kind.__name__.lower()}'" in str(caught.value)


def test_nothing_unreadable_is_written() -> None:
    with pytest.raises(BadInput, match="samples"):
        encode(samples([(1, 0)]))


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (((9, 9, 9), (5, 100, 4), (6, 6, 6)), 1),  # medians 9, 5, 6
        (((7, 7), (7, 9), (8, 8)), 0),  # lower medians 7, 7, 8: the first of equals
        ((None, (8,), None, (3,)), 3),
        ((None, None), None),
        ((), None),
    ],
)
def test_choice_of_a_sweep(times: Any, expected: int | None) -> None:
    assert choose(Sweep(samples=times), margin=0.0) == expected


def test_choice_among_equals_is_the_first_registered() -> None:
    # 100, 99 and 98 ns: within 2 % of 98 (up to 99.96) the first is the second; within 3 % (100.94) it is the first.
    sweep = Sweep(samples=((100,), (99,), (98,)))
    assert [choose(sweep, margin) for margin in (0.0, 0.02, 0.03)] == [2, 1, 0]


def test_copy_bandwidth() -> None:
    # 8 GB in a lower median of 2 s is 4 GB/s, whatever the outlier.
    found = Calibration(copy=Copy(bytes=8 * 10**9, ns=(2 * 10**9, 9 * 10**9, 10**9, 3 * 10**9)))
    assert copy_gbps(found) == 4.0
