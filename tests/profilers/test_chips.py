"""The chip table: names as drivers print them, and what the peaks say about TF32."""

import pytest

from gpusolver.profilers.chips import chip_for, table


@pytest.mark.parametrize(
    ("device", "capability", "name", "dram_gbps"),
    [
        ("NVIDIA H200", "9.0", "H200", 4800.0),
        ("NVIDIA H100 80GB HBM3", "9.0", "H100 SXM", 3350.0),
        ("NVIDIA H100 PCIe", "9.0", "H100 PCIe", 2000.0),
        ("NVIDIA A100-SXM4-40GB", "8.0", "A100 SXM 40GB", 1555.0),
        ("NVIDIA A100-SXM4-80GB", "8.0", "A100 SXM 80GB", 2039.0),
        ("A100-SXM4-40GB", "8.0", "A100 SXM 40GB", 1555.0),
        ("NVIDIA A100 80GB PCIe", "8.0", "A100 PCIe 80GB", 1935.0),
        ("Tesla T4", "7.5", "T4", 320.0),
        ("Tesla V100-SXM2-16GB", "7.0", "V100 SXM2", 900.0),
        ("NVIDIA GeForce RTX 3090", "8.6", "RTX 3090", 936.0),
        ("NVIDIA GeForce RTX 4090", "8.9", "RTX 4090", 1008.0),
        ("NVIDIA L4", "8.9", "L4", 300.0),
        ("NVIDIA L40S", "8.9", "L40S", 864.0),
        ("NVIDIA B200", "10.0", "B200", 8000.0),
    ],
)
def test_names_of_the_driver(device: str, capability: str, name: str, dram_gbps: float) -> None:
    chip = chip_for(device, capability)
    assert (chip.name, chip.compute_capability, chip.dram_gbps) == (name, capability, dram_gbps)


@pytest.mark.parametrize(
    ("device", "capability"),
    [
        ("NVIDIA GeForce RTX 3090 Ti", "8.6"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "8.9"),
        ("NVIDIA L40", "8.9"),
        ("NVIDIA H200 NVL", "9.0"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "8.0"),
        ("NVIDIA H200", "10.0"),
        ("cpu stand-in", "0.0"),
    ],
)
def test_a_chip_that_is_not_listed_borrows_no_peaks(device: str, capability: str) -> None:
    chip = chip_for(device, capability)
    assert (chip.name, chip.peaks_tflops, chip.dram_gbps) == (device, {}, 0.0)


@pytest.mark.parametrize(
    ("device", "capability", "ratio"),
    [
        ("NVIDIA A100-SXM4-40GB", "8.0", 8.0),
        ("NVIDIA H200", "9.0", 7.39),
        ("NVIDIA L40S", "8.9", 2.0),
        ("NVIDIA GeForce RTX 3090", "8.6", 1.0),
        ("NVIDIA GeForce RTX 4090", "8.9", 1.0),
    ],
)
def test_gain_of_tf32_over_fp32(device: str, capability: str, ratio: float) -> None:
    peaks = chip_for(device, capability).peaks_tflops
    assert round(peaks["tf32"] / peaks["fp32"], 2) == ratio


def test_chips_before_ampere_have_neither_tf32_nor_bf16() -> None:
    for device, capability in (("Tesla T4", "7.5"), ("Tesla V100-SXM2-16GB", "7.0")):
        assert chip_for(device, capability).peaks_tflops.keys() == {"fp32", "fp16"}


def test_table_is_consistent() -> None:
    names = [device for row in table() for device in row.devices]
    assert len(names) == len(set(names))
    for row in table():
        ordered = [row.peaks_tflops[p] for p in ("fp32", "tf32", "bf16", "fp8") if p in row.peaks_tflops]
        assert ordered == sorted(ordered), row.name  # no narrower path is slower
        assert ("fp8" in row.peaks_tflops) == (row.compute_capability in {"8.9", "9.0", "10.0"}), row.name
        assert row.peaks_tflops.get("bf16", row.peaks_tflops["fp16"]) == row.peaks_tflops["fp16"], row.name
