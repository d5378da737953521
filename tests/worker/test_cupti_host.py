"""CUPTI's struct layouts, and what its host library says about chips and metrics; no GPU is needed."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from gpusolver.engine.worker import cupti_abi as abi
from gpusolver.engine.worker.cupti_host import CHIPS, Host, passes, supported
from gpusolver.engine.worker.cupti_library import CountersUnavailable, load, mapped
from gpusolver.profilers.metrics import BASE, for_chip
from gpusolver.profilers.signals import HFMA2, HMMA, TENSOR_ANY, TENSOR_METRICS

NO_SPLIT = ("TU104", "GA102", "AD104", "AD102", "GB100")

# Printed by a C++ program from the *_STRUCT_SIZE macros of the CUDA 13.0 headers.
STRUCT_SIZES = {
    abi.Initialize: 16,
    abi.ChipName: 32,
    abi.HostInitialize: 48,
    abi.HostDeinitialize: 24,
    abi.AddMetrics: 40,
    abi.ConfigImageSize: 32,
    abi.ConfigImage: 40,
    abi.NumOfPasses: 40,
    abi.Evaluate: 72,
    abi.Enable: 32,
    abi.RangeObject: 24,
    abi.SetConfig: 90,
    abi.PushRange: 32,
    abi.Stop: 41,
    abi.DecodeData: 32,
    abi.CounterDataSize: 64,
    abi.CounterDataInitialize: 40,
    abi.CounterDataInfo: 40,
}
OFFSETS = [
    (abi.SetConfig, "range", 56),
    (abi.SetConfig, "replayMode", 60),
    (abi.SetConfig, "maxRangesPerPass", 64),
    (abi.SetConfig, "numNestingLevels", 72),
    (abi.SetConfig, "minNestingLevel", 74),
    (abi.SetConfig, "passIndex", 80),
    (abi.SetConfig, "targetNestingLevel", 88),
    (abi.CounterDataSize, "maxNumRangeTreeNodes", 48),
    (abi.CounterDataSize, "counterDataSize", 56),
    (abi.Stop, "isAllPassSubmitted", 40),
    (abi.HostInitialize, "pChipName", 24),
    (abi.HostInitialize, "pHostObject", 40),
]


@pytest.mark.parametrize("kind", STRUCT_SIZES, ids=lambda kind: kind.__name__)
def test_struct_size_ends_with_the_last_field(kind: type[abi.Params]) -> None:
    assert kind().structSize == STRUCT_SIZES[kind]


def test_every_struct_is_checked() -> None:
    assert set(abi.Params.__subclasses__()) == set(STRUCT_SIZES)


@pytest.mark.parametrize(("kind", "field", "offset"), OFFSETS)
def test_field_offsets(kind: Any, field: str, offset: int) -> None:
    assert getattr(kind, field).offset == offset


def test_padding_is_left_out_of_the_struct_size() -> None:
    assert (ctypes.sizeof(abi.SetConfig), ctypes.sizeof(abi.Stop)) == (96, 48)


def test_the_copy_that_torch_mapped_comes_before_an_older_one() -> None:
    maps = """\
7f00-7f01 r-xp 00000000 08:01 11  /opt/triton/lib/cupti/libcupti.so.12
7f02-7f03 r--p 00000000 08:01 12  /opt/with space/lib/libcupti.so.13
7f03-7f04 r-xp 00001000 08:01 12  /opt/with space/lib/libcupti.so.13
7f05-7f06 rw-p 00000000 00:00 0
7f07-7f08 r-xp 00000000 08:01 13  /opt/cupti/libother.so
"""
    assert mapped(maps) == ["/opt/with space/lib/libcupti.so.13", "/opt/triton/lib/cupti/libcupti.so.12"]


@pytest.fixture
def cupti() -> None:
    try:
        load()
    except CountersUnavailable as error:
        if error.reason != "library":
            raise
        pytest.skip(f"libcupti is not installed here: {error}")


def has(chip: str, name: str) -> bool:
    return supported(chip, [name]) == [name]


@pytest.mark.torch_cpu
@pytest.mark.usefixtures("cupti")
class TestHostLibrary:
    @pytest.mark.parametrize("chip", CHIPS)
    def test_base_set_takes_two_passes(self, chip: str) -> None:
        names = supported(chip, for_chip(chip, BASE))
        assert passes(chip, names) == 2

    @pytest.mark.parametrize("chip", CHIPS)
    def test_base_set_lacks_only_the_hfma2_split(self, chip: str) -> None:
        asked = for_chip(chip, BASE)
        assert set(asked) - set(supported(chip, asked)) == ({HFMA2} if chip in NO_SPLIT else set())

    def test_tensor_pipe_names_by_chip(self) -> None:
        known = [[chip for chip in CHIPS if has(chip, name)] for name in TENSOR_METRICS]
        assert known == [["GH100"], ["AD104", "AD102"], ["GB100"], list(CHIPS)]

    def test_split_by_hfma2_exists_on_ga100_and_gh100_only(self) -> None:
        assert [chip for chip in CHIPS if has(chip, HFMA2)] == ["GA100", "GH100"]
        assert [chip for chip in CHIPS if not has(chip, HMMA)] == ["GB100"]

    def test_unsplit_count_beside_the_split_costs_gh100_a_pass(self) -> None:
        assert passes("GH100", (*for_chip("GH100", BASE), TENSOR_ANY)) == 3

    def test_the_two_throughput_composites_cost_nine_passes_on_gh100(self) -> None:
        composites = [
            "sm__throughput.avg.pct_of_peak_sustained_elapsed",
            "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        ]
        assert passes("GH100", composites) == 9

    def test_unknown_names_are_left_out_and_order_is_kept(self) -> None:
        asked = ["dram__bytes_write.sum", "dram__no_such_thing.sum", "launch__grid_size", "dram__bytes_read.sum"]
        assert supported("GH100", asked) == ["dram__bytes_write.sum", "dram__bytes_read.sum"]

    def test_a_base_name_without_rollup_is_unknown(self) -> None:
        assert supported("GH100", ["dram__bytes_read"]) == []

    def test_passes_of_an_unknown_metric_name_it(self) -> None:
        with pytest.raises(CountersUnavailable, match=r"GH100 does not know dram__no_such_thing\.sum") as caught:
            passes("GH100", ["dram__bytes_read.sum", "dram__no_such_thing.sum"])
        assert caught.value.reason == "unsupported"

    def test_an_unknown_chip_is_unsupported(self) -> None:
        with pytest.raises(CountersUnavailable, match=r"46 .*INVALID_CHIP_NAME") as caught:
            supported("XX999", ["dram__bytes_read.sum"])
        assert caught.value.reason == "unsupported"

    def test_config_image_is_filled(self) -> None:
        with Host("GH100") as host:
            assert host.add(["dram__bytes_read.sum"])
            assert any(host.config_image())
