"""The measurement on an H200 read a second time, after what the first time had shown was mended: they verify, and the README's figures are in them."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import Any

import msgspec
import pytest

from gpusolver.events.model import CountersCompared, Event, KernelExamined, PairCompared, Profiled, RoundJudged
from gpusolver.events.reader import LedgerReader
from gpusolver.projections.prediction import predicted
from gpusolver.projections.runs import fold
from gpusolver.replay.verify import verify

FOLDER = Path(__file__).parents[2] / "problems" / "recordings" / "h200.measurement.v2"
SLOWED = ("kb_softmax, 2 % slower", "kb_layernorm, 2 % slower")


@cache
def events(name: str) -> tuple[Event, ...]:
    with LedgerReader(FOLDER / f"{name}.db") as ledger:
        return tuple(row.event for row in ledger.recorded())


def artifact(name: str, digest: str | None) -> Any:
    assert digest is not None
    with LedgerReader(FOLDER / f"{name}.db") as ledger:
        return msgspec.json.decode(ledger.artifact(digest))


def compared(pair: str) -> list[PairCompared]:
    return [event for event in events("timing") if isinstance(event, PairCompared) and event.pair == pair]


def costs(name: str, at_most: int) -> list[float]:
    """Seconds that the counters of one kernel took, where they took so many passes at most."""
    counted = [event for event in events(name) if isinstance(event, KernelExamined | Profiled) and event.counters]
    found = [artifact(name, event.counters) for event in counted]
    return sorted(seen["wall_s"] for seen in found if seen["passes"] <= at_most)


@pytest.mark.parametrize("name", ["timing", "problems", "rules", "loop"])
def test_each_ledger_verifies(name: str) -> None:
    assert not verify(FOLDER / f"{name}.db", True).findings


def test_identical_arms_are_the_same_in_all_600_comparisons() -> None:
    pairs = Counter(event.pair for event in events("timing") if isinstance(event, PairCompared))
    same = [pair for pair in pairs if pair not in SLOWED]
    assert [pairs[pair] for pair in same] == [120] * 5
    assert Counter(event.verdict for pair in same for event in compared(pair)) == {"SAME": 600}


def test_the_slowdown_as_far_as_it_was_measured() -> None:
    """The second of its two kernels was cut after 37 comparisons; the examination says of itself that it has no end."""
    verdicts = [Counter(event.verdict for event in compared(pair)) for pair in SLOWED]
    assert verdicts == [{"SLOWER": 120}, {"SLOWER": 37}]


def test_no_place_in_a_block_is_favoured_where_the_first_was() -> None:
    """Means of a, b, b, a on the 4.9 us kernel: within 0.1 % but for the last (3 % more), which is A's like the first; medians do not see it."""
    blocks = [
        block for event in compared("softmax 512 x 1024") for block in artifact("timing", event.samples)["blocks"]
    ]
    assert [round(mean(block[place] for block in blocks)) for place in range(4)] == [5151, 5146, 5146, 5299]
    medians = [event.interval.median for event in compared("softmax 512 x 1024") if event.interval is not None]
    assert round(median(medians), 4) == 0.9967


def test_small_kernels_need_the_later_looks() -> None:
    looks = Counter(len(artifact("timing", e.samples)["blocks"]) for e in compared("tiled product 512^3"))
    assert looks == {80: 9, 160: 88, 320: 23}


def test_what_a_rounds_counters_cost() -> None:
    rounds = costs("rules", 4)
    assert (len(rounds), round(median(rounds), 3), round(rounds[-1], 2)) == (40, 0.025, 0.20)
    assert sum(cost < 0.15 for cost in rounds) == 37
    assert [round(cost, 3) for cost in (costs("loop", 4)[0], costs("loop", 4)[-1])] == [0.02, 0.025]


def test_every_rule_live_beside_nsight_compute() -> None:
    """Twelve passes for 54 rules; 0.5 s is passed on one problem, whose kernel takes 2.7 ms a pass."""
    kernels = {event.subject: event for event in events("problems") if isinstance(event, KernelExamined)}
    slow = {n for n, e in kernels.items() if artifact("problems", e.counters)["wall_s"] > 0.35}
    assert slow == {"matmul", "matmul, again"} and kernels["matmul"].signals["time_us"] > 2600
    theirs = [artifact("problems", e.theirs) for e in events("problems") if isinstance(e, CountersCompared)]
    assert len(theirs) == 14 and {round(seen["wall_s"], 2) for seen in theirs} == {4.34}
    ratios = sorted(4.343 / cost for cost in costs("problems", 12))
    assert [round(ratio, 1) for ratio in (ratios[0], median(ratios), ratios[-1])] == [7.6, 16.4, 17.7]


def test_rows_within_bounds_and_which_are_not() -> None:
    named = {e.subject.removesuffix(", again"): e for e in events("problems") if isinstance(e, CountersCompared)}
    rows = [row for e in events("problems") if isinstance(e, CountersCompared) for row in e.rows]
    exact = [row for row in rows if row.metric.endswith(".sum")]
    ratios = [row for row in rows if not row.metric.endswith(".sum")]
    assert (sum(row.within for row in exact), len(exact)) == (469, 490)
    assert (sum(row.within for row in ratios), len(ratios)) == (410, 514)
    apart = Counter(row.metric for row in exact if not row.within)
    shared = sum(n for metric, n in apart.items() if "mem_shared_op" in metric)
    assert (shared, apart["dram__bytes_write.sum"], apart["lts__t_sectors_srcunit_tex.sum"]) == (15, 4, 2)
    assert shared + 4 + 2 == sum(apart.values()) and len(named) == 7


def test_sectors_of_the_library_product_vary_by_more_than_the_collectors_differ() -> None:
    """Millions, three counts by each collector, out of two ledgers: on `matmul` the ranges of CUPTI and Nsight Compute lie across one another."""
    assert sectors("matmul") == ([93.40, 93.88, 94.57], [93.62, 94.37, 94.81])
    assert sectors("batched_gemm") == ([26.03, 26.04, 26.18], [26.25, 26.27, 26.33])


def sectors(problem: str) -> tuple[list[float], list[float]]:
    first = FOLDER.with_name("h200.measurement.v1") / "problems.db"
    with LedgerReader(first) as ledger:
        both = [*(row.event for row in ledger.recorded()), *events("problems")]
    seen = [e for e in both if isinstance(e, CountersCompared) and e.subject.removesuffix(", again") == problem]
    rows = [row for event in seen for row in event.rows if row.metric == "lts__t_sectors_srcunit_tex.sum"]
    ours, theirs = (sorted(round((getattr(row, side) or 0) / 1e6, 2) for row in rows) for side in ("ours", "theirs"))
    return ours, theirs


def test_one_ratio_differs_alike_every_time_and_is_not_explained() -> None:
    """Shared bytes per wavefront on the two library products; the same on our own kernels."""
    metric = "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct"
    found: dict[str, set[tuple[float, float]]] = {}
    for event in (each for each in events("problems") if isinstance(each, CountersCompared)):
        for row in event.rows:
            if row.metric == metric and row.ours is not None and row.theirs is not None:
                pair = round(row.ours, 2), round(row.theirs, 2)
                found.setdefault(event.subject.removesuffix(", again"), set()).add(pair)
    apart = {subject: pairs for subject, pairs in found.items() if any(a != b for a, b in pairs)}
    assert apart == {"matmul": {(22.77, 17.87)}, "batched_gemm": {(30.53, 22.96)}} and len(found) == 7


def test_the_full_table_no_longer_stops_the_scalar_product() -> None:
    """It ends at 10.1 us, not 14.8; what now stops a cell wrongly is `throttled` on batched_gemm, mended since and not measured again."""
    view = fold_view("rules", "run2")
    assert {row.rule: round(row.measured, 2) for row in predicted(view)}["uncoalesced"] == 14.51


def test_rounds_under_bounds_on_the_redesigned_worker() -> None:
    """A fresh process for every candidate and answers in another: the scalar product goes the same way as before."""
    judged = [e for e in events("loop") if isinstance(e, RoundJudged) and e.cell.arm == "on" and e.verdict == "FASTER"]
    medians = [round(e.interval.median, 2) for e in judged if e.interval is not None]
    assert medians == [15.07, 1.85]


def fold_view(name: str, run: str) -> Any:
    with LedgerReader(FOLDER / f"{name}.db") as ledger:
        return fold((row.stream, row.event) for row in ledger.recorded())[run]
