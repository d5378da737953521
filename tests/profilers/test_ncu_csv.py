"""Reading and adding up Nsight Compute's CSV. All CSV text here is made up, in ncu's layout; no GPU printed it."""

from __future__ import annotations

import pytest

from gpusolver.events.errors import ToolFailed
from gpusolver.profilers.ncu_calls import LOAD_BYTES, LOAD_SECTORS, aggregate
from gpusolver.profilers.ncu_csv import Kernel, obstacle, parse
from gpusolver.profilers.units import number, unit_factor

TIME = "gpu__time_duration.sum"
BYTES = "dram__bytes_read.sum"
BUSY = "sm__warps_active.avg.pct_of_peak_sustained_active"
LOAD = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
LOADS = "smsp__sass_inst_executed_op_global_ld.sum"


def made_up_csv(columns: dict[str, str], *rows: tuple[str, ...], name: str = "k") -> str:
    """A header, the unit row and one row per kernel; `columns` maps metric to unit, rows hold their cells."""
    fixed = ("ID", "Process ID", "Kernel Name", "CC")
    lines = [(*fixed, *columns), ("", "", "", "", *columns.values())]
    lines += [(str(i), "77", name, "9.0", *cells) for i, cells in enumerate(rows)]
    return "\n".join(",".join('"' + cell.replace('"', '""') + '"' for cell in line) for line in lines) + "\n"


def values(text: str, metric: str) -> list[float | None]:
    return [kernel.metrics[metric] for kernel in parse(text, [metric]).kernels]


def kernel(**metrics: float | None) -> Kernel:
    names = {"time": TIME, "bytes": BYTES, "busy": BUSY, "load": LOAD, "loads": LOADS}
    names |= {"load_bytes": LOAD_BYTES, "sectors": LOAD_SECTORS}
    return Kernel("k", "9.0", {names[key]: value for key, value in metrics.items()})


@pytest.mark.parametrize(
    ("unit", "cell"),
    [
        ("nsecond", "1,500,000"),
        ("ns", "1500000"),
        ("usecond", "1,500.00"),
        ("us", "1,500.00"),
        ("msecond", "1.50"),
        ("ms", "1.50"),
        ("s", "0.0015"),
    ],
)
def test_b48_every_spelling_of_time_comes_out_in_ns(unit: str, cell: str) -> None:
    assert values(made_up_csv({TIME: unit}, (cell,)), TIME) == [pytest.approx(1.5e6, rel=1e-15)]


def test_b48_an_unknown_unit_is_an_error_that_names_it() -> None:
    with pytest.raises(ToolFailed, match=r"gpu__time_duration\.sum is in the unknown unit 'fortnight'"):
        parse(made_up_csv({TIME: "fortnight"}, ("1",)), [TIME])


@pytest.mark.parametrize(
    ("unit", "factor"),
    [("byte", 1.0), ("Mbyte", 1e6), ("%", 1.0), ("", 1.0), ("cycle/nsecond", 1e9), ("byte/sector", 1.0), ("Ghz", 1e9)],
)
def test_b48_sizes_and_rates(unit: str, factor: float) -> None:
    assert unit_factor(unit, "m") == pytest.approx(factor)


@pytest.mark.parametrize(("cell", "value"), [("2,097,152", 2097152.0), ("12,345.67", 12345.67), ("41.67", 41.67)])
def test_b49_grouped_numbers(cell: str, value: float) -> None:
    assert number(cell, "m") == value


@pytest.mark.parametrize("cell", ["12.345,67", "27.595.520", "1,5", "12,34,567", "many"])
def test_b49_another_locale_is_an_error_that_says_what_to_do(cell: str) -> None:
    with pytest.raises(ToolFailed, match=f"m expected a number .* found '{cell}': run ncu under LC_ALL=C"):
        number(cell, "m")


def test_b50_columns_are_found_by_name() -> None:
    plain = made_up_csv({BYTES: "byte"}, ("4096",))
    wider = made_up_csv(
        {"a__x.sum": "fortnight", "b__y.sum": "", "c__z.sum": "", BYTES: "byte"}, ("?", "2", "3", "4096")
    )
    assert values(plain, BYTES) == values(wider, BYTES) == [4096.0]


def test_b50_a_header_without_rows_is_an_error() -> None:
    with pytest.raises(ToolFailed, match="a header and units but no kernel"):
        parse(made_up_csv({BYTES: "byte"}), [BYTES])


def test_b51_noise_before_and_between_rows_is_kept_as_notes() -> None:
    header, units, *rows = made_up_csv({BYTES: "byte"}, ("1",), ("2",), ("3",)).splitlines()
    profiled = [f'==PROF== Profiling "k" - {i}: 0%....100% - {n} passes' for i, n in enumerate((2, 3, 2))]
    noise = "==WARNING== something is slow"
    text = "\n".join(["loss=1,2,3", *profiled, header, units, rows[0], noise, *rows[1:], "done"])
    report = parse(text, [BYTES])
    assert [k.metrics[BYTES] for k in report.kernels] == [1.0, 2.0, 3.0]
    assert report.notes == ("loss=1,2,3", *profiled, noise, "done")
    assert report.passes == 3


def test_b51_a_row_cut_by_a_print_is_an_error() -> None:
    text = made_up_csv({BYTES: "byte"}, ("1",)) + '"1","77","k"loss=2\n'
    with pytest.raises(ToolFailed, match="output cut or interleaved"):
        parse(text, [BYTES])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("==PROF== Connected\nloss=1\n==WARNING== No kernels were profiled.\n", "no_kernels"),
        # as ncu 2025.3 answered while a CUPTI client held the counters of the same H200
        ("==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool", "busy"),
        ("result 1\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", "permission"),
        (
            "==ERROR== Failed to find metric regex:^dram__x(\\.|$)\n==WARNING== No kernels were profiled.",
            "unknown_metric",
        ),
        ("==PROF== Disconnected from process 77\n", None),
    ],
)
def test_b52_b54_what_kept_ncu_from_profiling(text: str, kind: str | None) -> None:
    assert obstacle(text) == kind


def test_b52_text_without_a_table_is_an_error_not_an_empty_list() -> None:
    with pytest.raises(ToolFailed, match='header line that begins with "ID", found none in 1 lines: ==WARNING=='):
        parse("==WARNING== No kernels were profiled.", [BYTES])


@pytest.mark.parametrize("cell", ["n/a", "N/A", "nan", "-nan", "inf", "", "(!) n/a", "(!) nan"])
def test_b57_missing_cells_are_none_never_zero(cell: str) -> None:
    assert values(made_up_csv({LOAD: "%"}, (cell,)), LOAD) == [None]


def test_b57_a_missing_column_is_none_and_the_others_still_count() -> None:
    (only,) = parse(made_up_csv({BYTES: "byte"}, ("64",)), [BYTES, LOAD]).kernels
    assert only.metrics == {BYTES: 64.0, LOAD: None}


def test_b59_the_long_layout_is_refused_by_name() -> None:
    with pytest.raises(ToolFailed, match=r"long layout .* run ncu with --page raw"):
        parse('"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n"0","k","m","ns","1"\n', [TIME])


def test_b59_a_table_without_units_is_refused() -> None:
    with pytest.raises(ToolFailed, match="expected a row of units"):
        parse(f'"ID","Kernel Name","{TIME}"\n"0","k","1500"\n', [TIME])


def test_b60_all_kernels_of_a_call_count() -> None:
    before = parse(made_up_csv({TIME: "ns"}, ("90,000",), ("4,000",), ("1,000",)), [TIME]).kernels
    after = parse(made_up_csv({TIME: "ns"}, ("5,000",), ("4,000",), ("1,000",)), [TIME]).kernels
    total, faster = aggregate(before, [TIME])[TIME], aggregate(after, [TIME])[TIME]
    assert (len(before), total, faster) == (3, 95_000.0, 10_000.0)


def test_b62_commas_and_quotes_in_a_kernel_name() -> None:
    name = 'k<float,(int)4>(const char*,"x")'
    (only,) = parse(made_up_csv({BYTES: "byte"}, ("64",), name=name), [BYTES]).kernels
    assert only == (name, "9.0", {BYTES: 64.0})


def test_percentages_are_weighted_by_duration() -> None:
    # (30 ns * 80 % + 10 ns * 40 %) / 40 ns
    assert aggregate([kernel(time=30.0, busy=80.0), kernel(time=10.0, busy=40.0)], [BUSY]) == {BUSY: 70.0}


def test_one_unknown_part_makes_the_whole_unknown() -> None:
    kernels = [kernel(time=30.0, busy=80.0, bytes=64.0), kernel(time=10.0, busy=None, bytes=None)]
    assert aggregate(kernels, [BUSY, BYTES]) == {BUSY: None, BYTES: None}
    assert aggregate([kernel(busy=80.0), kernel(busy=40.0)], [BUSY]) == {BUSY: None}


def test_maxima_do_not_add() -> None:
    name = "sm__cycles_active.max"
    one, two = Kernel("k", "9.0", {name: 10.0, TIME: 1.0}), Kernel("k", "9.0", {name: 20.0, TIME: 1.0})
    assert (aggregate([one], [name]), aggregate([one, two], [name])) == ({name: 10.0}, {name: None})


def test_load_efficiency_is_rebuilt_from_bytes_and_sectors() -> None:
    # 3200 bytes wanted in 100 sectors of 32 bytes, 800 in 300: 4000 of 12800, not the mean of 100 % and 8.33 %.
    full = kernel(time=1.0, loads=25.0, load=100.0, load_bytes=3200.0, sectors=100.0)
    poor = kernel(time=1.0, loads=25.0, load=8.33, load_bytes=800.0, sectors=300.0)
    assert aggregate([full, poor], [LOAD]) == {LOAD: 31.25}


def test_load_efficiency_without_its_parts_is_weighted_over_the_loading_kernels() -> None:
    # The kernel without such loads prints 0 and has no say: (30 * 90 + 10 * 50) / 40.
    kernels = [
        kernel(time=30.0, loads=5.0, load=90.0),
        kernel(time=10.0, loads=5.0, load=50.0),
        kernel(time=60.0, loads=0.0, load=0.0),
    ]
    assert aggregate(kernels, [LOAD]) == {LOAD: 80.0}


def test_load_efficiency_is_unknown_where_nothing_was_loaded_that_way() -> None:
    assert aggregate([kernel(time=5.0, loads=0.0, load=0.0)], [LOAD, LOADS]) == {LOAD: None, LOADS: 0.0}
