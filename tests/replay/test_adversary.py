"""Forgeries by someone who knows the page: chain, intervals and claims all fit, and a rule of the page still says no."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gpusolver.events.model import Origin
from gpusolver.replay.artifacts import MOST_BLOCKS
from gpusolver.replay.shelf import LARGEST_JSON
from gpusolver.replay.verify import verify

from .forge import forge
from .reports import found
from .tamper import Line, add_artifact, artifact, compact, first, lines, rewrite

Change = Callable[[list[Line], Path], "list[Line] | None"]
BASELINE = "versus:eager_tf32"
ONE = {"lower": 1.0, "median": 1.0, "upper": 1.0, "blocks": 8, "rank": 1}


def put(path: Path, content: object) -> str:
    """Store a JSON artifact."""
    return add_artifact(path, compact(content).encode())


def edited(path: Path, digest: str, **fields: object) -> str:
    """A JSON artifact with other values."""
    return put(path, json.loads(artifact(path, digest)) | fields)


def compared(events: list[Line], comparison: str) -> Any:
    return first(events, "HeadToHead", comparison=comparison).body


def after(events: list[Line], line: Line, body: dict[str, Any]) -> list[Line]:
    """The events with another of the same kind behind one."""
    at = events.index(line) + 1
    return [*events[:at], Line(0, line.stream, line.kind, line.at, compact(body)), *events[at:]]


def registered(**fields: object) -> Change:
    """Other values in the registration, `part.field` as `part__field`."""

    def change(events: list[Line], path: Path) -> None:
        body = first(events, "RunRegistered").body
        for name, value in fields.items():
            part, _, field = name.partition("__")
            if field:
                body[part][field] = value
            else:
                body[part] = value

    return change


def claims(**fields: object) -> Change:
    return lambda events, path: first(events, "RunRegistered").body["claims"][0].update(fields)


def report(fill: Callable[[dict[str, Any]], object]) -> Change:
    """The report of the first gate, altered."""

    def change(events: list[Line], path: Path) -> None:
        body = first(events, "KernelGated").body
        content = json.loads(artifact(path, body["report"]))
        fill(content)
        body["report"] = put(path, content)

    return change


def samples(kind: str, **fields: Any) -> Change:
    """The samples of the first event of a kind that has some, altered; a value may be a function of what is there."""

    def change(events: list[Line], path: Path) -> None:
        body = next(e.body for e in events if e.kind == kind and e.body["samples"])
        content = json.loads(artifact(path, body["samples"]))
        made = {name: value(content[name]) if callable(value) else value for name, value in fields.items()}
        body["samples"] = put(path, content | made)

    return change


# --- gate ---


def passes_by_error(events: list[Line], path: Path) -> None:
    told = put(path, {"error": {"outcome": "passed", "text": "within limits"}})
    for event in events:
        if event.kind == "KernelGated":
            event.body["report"] = told


def invents_an_outcome(events: list[Line], path: Path) -> None:
    body = first(events, "KernelGated", round=1).body
    error = {"outcome": "too good to be true", "text": "x"}
    body.update(outcome=error["outcome"], reason="x", report=edited(path, body["report"], error=error))


def first_draw(**fields: object) -> Change:
    return report(lambda content: [draw.update(fields) for draw in content["draws"]])


def praises_itself(events: list[Line], path: Path) -> None:
    first(events, "KernelGated").body["reason"] = "bit-identical to float64"


def gates_other_launches(events: list[Line], path: Path) -> None:
    body = first(events, "KernelGated").body
    body["launches"] = edited(path, body["launches"], complete=False)


def profiles_what_failed(events: list[Line], path: Path) -> None:
    profiled = next(e for e in events if e.kind == "Profiled" and e.body["round"] > 0)
    of_round = {
        e.kind: e for e in events if e.stream == profiled.stream and e.body.get("round") == profiled.body["round"]
    }
    gated, judged = of_round["KernelGated"], of_round["RoundJudged"]
    error = {"outcome": "timeout", "text": "x"}
    gated.body.update(outcome="timeout", reason="x", report=edited(path, gated.body["report"], error=error))
    judged.body.update(verdict="AMBIGUOUS", reason="gate: timeout", interval=None, margin=None, credit="neutral")


def measures_an_unfit_start(events: list[Line], path: Path) -> None:
    body = first(events, "KernelGated", round=0).body
    error = {"outcome": "timeout", "text": "x"}
    body.update(outcome="timeout", reason="x", report=edited(path, body["report"], error=error))


# --- rounds ---


def drops_a_profile(events: list[Line], path: Path) -> list[Line]:
    timed = (e for e in events if e.kind == "RoundJudged" and e.body["interval"])
    judged = next(e for e in timed if e.body["verdict"] in ("SLOWER", "SAME"))
    judged.body.update(verdict="AMBIGUOUS", reason="3.0x FASTER", interval=None, margin=None, credit="neutral")
    at = (judged.stream, judged.body["round"])
    return [e for e in events if e.kind != "Profiled" or (e.stream, e.body["round"]) != at]


def invents_a_generator(events: list[Line], path: Path) -> None:
    first(events, "KernelGenerated", generator="template").body.update(generator="moonlight")


def calls_a_template_a_file(events: list[Line], path: Path) -> None:
    first(events, "KernelGenerated", generator="template").body.update(generator="file")


def serves_another_prescription(events: list[Line], path: Path) -> None:
    first(events, "KernelGenerated", generator="template").body.update(variant="polish:by_hand.py")


def starts_again(events: list[Line], path: Path) -> None:
    first(events, "KernelGenerated", generator="template").body.update(generator="start", variant="start")


def repeats_a_missing_signal(events: list[Line], path: Path) -> None:
    for body in (e.body for e in events if e.kind == "RuleFired"):
        for abstained in body["abstained"]:
            abstained["missing"] *= 2


def raises_the_floor(events: list[Line], path: Path) -> list[Line]:
    floor = first(events, "NoiseFloorMeasured")
    judged = next(e for e in events if e.stream == floor.stream and e.kind == "RoundJudged")
    wide = edited(path, floor.body["samples"], blocks=[[2000 + i, 1000, 1000, 2000] for i in range(8)])
    interval = {"lower": 2.0, "median": 2.0015, "upper": 2.0035, "blocks": 8, "rank": 1}
    body = floor.body | {"round": 1, "samples": wide, "interval": interval, "floor": 1.0035}
    at = events.index(judged)
    return [*events[:at], Line(0, floor.stream, floor.kind, floor.at, compact(body)), *events[at:]]


def other_floor_of_the_start(events: list[Line], path: Path) -> None:
    body = first(events, "NoiseFloorMeasured", round=0).body
    blocks = json.loads(artifact(path, body["samples"]))["blocks"]
    body["samples"] = edited(path, body["samples"], blocks=[block[::-1] for block in blocks])


def interleaves_cells(events: list[Line], path: Path) -> list[Line]:
    """An event of the second cell lands inside a round of the first."""
    streams = list(dict.fromkeys(e.stream for e in events if "/" in e.stream))
    stranger = next(e for e in events if e.stream == streams[1])
    rest = [e for e in events if e is not stranger]
    at = rest.index(next(e for e in rest if e.stream == streams[0] and e.kind == "KernelGated"))
    return [*rest[:at], stranger, *rest[at:]]


def shortens_the_sweep(events: list[Line], path: Path) -> None:
    body = first(events, "TilesSwept").body
    body["configs"] = body["configs"][:-1]


def sweeps_in_fortnights(events: list[Line], path: Path) -> None:
    body = first(events, "TilesSwept").body
    body["samples"] = edited(path, body["samples"], unit="fortnights")


def sweeps_once_for_two_rounds(events: list[Line], path: Path) -> None:
    """The sweep of another round once more; a fact beside the samples changes the digest."""
    one, other = [e for e in events if e.kind == "TilesSwept"][:2]
    other.body["samples"] = edited(path, one.body["samples"], wall_s=1)


# --- comparisons ---


def reuses_samples(events: list[Line], path: Path) -> None:
    """The comparison with a baseline is that with the start, once more; a fact beside the blocks changes the digest."""
    total, versus = compared(events, "total"), compared(events, BASELINE)
    again = edited(path, total["samples"], wall_s=1)
    versus.update(left=total["left"], samples=again, interval=total["interval"])


def baseline_is_the_winner(events: list[Line], path: Path) -> None:
    body = compared(events, BASELINE)
    body.update(left=body["right"], samples=None, interval=None, outcome="identical")


def another_baseline(events: list[Line], path: Path) -> None:
    compared(events, BASELINE)["left"] = add_artifact(path, b'PRECISION = "tf32"\n# anything else\n')


def baseline_at_another_precision(events: list[Line], path: Path) -> None:
    compared(events, BASELINE)["left"] = compared(events, "versus:eager_fp32")["left"]


def adds(comparison: str) -> Change:
    """A comparison that this run cannot have, with samples of its own."""

    def change(events: list[Line], path: Path) -> list[Line]:
        total = first(events, "HeadToHead", comparison="total")
        rows = [[9000, 9000, 9000, 9000]] * 8
        made = put(path, {"clock": "cuda_event", "cache": "cold", "unit": "ns", "blocks": rows})
        return after(events, total, total.body | {"comparison": comparison, "samples": made, "interval": ONE})

    return change


def keeps_the_best_blocks(events: list[Line], path: Path) -> None:
    body = compared(events, BASELINE)
    blocks = json.loads(artifact(path, body["samples"]))["blocks"]
    best = sorted(blocks, key=lambda block: (block[1] + block[2]) / (block[0] + block[3]))[:6]
    body["samples"] = edited(path, body["samples"], blocks=best)


def measures_until_it_fits(events: list[Line], path: Path) -> None:
    body = compared(events, BASELINE)
    blocks = json.loads(artifact(path, body["samples"]))["blocks"]
    body["samples"] = edited(path, body["samples"], blocks=[*blocks, [9000, 9000, 9000, 9001]])


def faster_than_light(side: int) -> Change:
    def change(events: list[Line], path: Path) -> None:
        body = compared(events, BASELINE)
        rows = [[100_000 + i, 1, 1, 100_000] if side else [1, 100_000 + i, 100_000, 1] for i in range(8)]
        body["samples"] = edited(path, body["samples"], blocks=rows)

    return change


def fails_then_measures(events: list[Line], path: Path) -> list[Line]:
    line = first(events, "HeadToHead", comparison=BASELINE)
    failed = line.body | {"samples": None, "interval": None, "outcome": "timeout"}
    line.body, good = failed, line.body
    return after(events, line, good)


def fails_in_words(events: list[Line], path: Path) -> None:
    compared(events, BASELINE).update(samples=None, interval=None, outcome="measured ok")


# --- runs ---


def answers_first(events: list[Line], path: Path) -> list[Line]:
    answer = first(events, "ClaimStated")
    rest = [e for e in events if e is not answer]
    return [rest[0], answer, *rest[1:]]


def calibrates_twice(events: list[Line], path: Path) -> list[Line]:
    line = first(events, "DeviceCalibrated")
    return after(events, line, line.body | {"device": "another"})


def hides_in_an_empty_cell(events: list[Line], path: Path) -> None:
    for event in events:
        if event.kind == "RuleSeeded":
            event.stream = "run1/"


def ends_by_a_rule(events: list[Line], path: Path) -> None:
    first(events, "RunStopped", cell=None).body["rule"] = "all upheld"


def writes_next_tuesday(events: list[Line], path: Path) -> None:
    for event in events:
        event.at = "next tuesday"


def claims_twice(events: list[Line], path: Path) -> None:
    body = first(events, "RunRegistered").body
    body["claims"] = [body["claims"][0] | {"text": "the moon is cheese"}, *body["claims"]]


def shares_a_stream(events: list[Line], path: Path) -> None:
    """Two cells whose names meet in one stream; only one of them was played."""
    body = first(events, "RunRegistered").body
    body["plan"] = [*body["plan"], *(cell | {"contract": "tf32-allowed", "pool": "full/x"} for cell in body["plan"])]


def accepts_anything(events: list[Line], path: Path) -> None:
    first(events, "RunRegistered").body["problems"][0]["limits"]["tf32-allowed"]["rel_l2"] = 1e9


def names_an_origin(kind: str) -> Change:
    return lambda events, path: first(events, kind).body.update(origin_seq=7)


def two_chips(events: list[Line], path: Path) -> None:
    body = next(e.body for e in reversed(events) if e.kind == "Profiled")
    body["counters"] = edited(path, body["counters"], chip="GA100")


def repeats_a_key(events: list[Line], path: Path) -> None:
    body = compared(events, BASELINE)
    raw = artifact(path, body["samples"])
    body["samples"] = add_artifact(path, b'{"blocks":[[9,1,1,9]],' + raw[1:])


CHANGES: list[tuple[Change, str]] = [
    (passes_by_error, "gate"),
    (passes_by_error, "seed"),
    (invents_an_outcome, "gate"),
    (first_draw(rel_l2=-1.0), "derivation failed"),
    (first_draw(nonfinite=-3), "derivation failed"),
    (report(lambda r: r.update(trivial={})), "gate"),
    (report(lambda r: [part.update(dtype="bool") for part in (r["expected"], *r["draws"])]), "gate"),
    (report(lambda r: [part.update(shape=[1, 7]) for part in (r["expected"], *r["draws"])]), "gate"),
    (report(lambda r: [part.update(shape="banana") for part in (r["expected"], *r["draws"])]), "derivation failed"),
    (report(lambda r: r.pop("seed")), "seed"),
    (praises_itself, "gate"),
    (gates_other_launches, "profile"),
    (profiles_what_failed, "profile"),
    (measures_an_unfit_start, "order of events"),
    (drops_a_profile, "verdict"),
    (invents_a_generator, "generated source"),
    (calls_a_template_a_file, "generated source"),
    (serves_another_prescription, "generated source"),
    (starts_again, "generated source"),
    (repeats_a_missing_signal, "match"),
    (raises_the_floor, "noise floor"),
    (other_floor_of_the_start, "noise floor"),
    (interleaves_cells, "order of events"),
    (shortens_the_sweep, "sweep"),
    (sweeps_in_fortnights, "derivation failed"),
    (sweeps_once_for_two_rounds, "samples"),
    (reuses_samples, "samples"),
    (reuses_samples, "head to head"),
    (baseline_is_the_winner, "head to head"),
    (another_baseline, "head to head"),
    (baseline_at_another_precision, "head to head"),
    (adds("versus:cutlass"), "head to head"),
    (adds("tabu2"), "head to head"),
    (keeps_the_best_blocks, "samples"),
    (measures_until_it_fits, "samples"),
    (faster_than_light(0), "head to head"),
    (faster_than_light(1), "head to head"),
    (samples("HeadToHead", blocks=lambda rows: [[-x for x in row] for row in rows]), "derivation failed"),
    (samples("HeadToHead", cache="boiling"), "derivation failed"),
    (samples("HeadToHead", clock="cpu_wall", cache="unknown"), "samples"),
    (fails_then_measures, "head to head"),
    (fails_in_words, "head to head"),
    (answers_first, "claim"),
    (calibrates_twice, "calibration"),
    (hides_in_an_empty_cell, "cell not planned"),
    (ends_by_a_rule, "stop"),
    (writes_next_tuesday, "time"),
    (claims_twice, "registration"),
    (shares_a_stream, "registration"),
    (names_an_origin("HeadToHead"), "origin"),
    (names_an_origin("DeviceCalibrated"), "origin"),
    (names_an_origin("KernelGated"), "origin"),
    (two_chips, "samples"),
    (repeats_a_key, "derivation failed"),
    (registered(executor="by hand"), "registration"),
    (registered(executor="recorded"), "registration"),
    (registered(origin={"head": "0" * 64, "events": 1}), "registration"),
    (registered(statistics__blocks=-7), "registration"),
    (registered(statistics__tail_num=3, statistics__tail_den=1), "registration"),
    (registered(statistics__margin=0.0), "registration"),
    (registered(statistics__floor_multiple=-1.0), "registration"),
    (registered(policy__credible_num=-1), "registration"),
    (registered(max_rounds=0), "registration"),
    (registered(policy={"credible_num": 19, "credible_den": 20, "patience": 0}), "registration"),
    (registered(shares=False), "registration"),
    (registered(experience={"head": "0" * 63, "events": 9, "proposing": None}), "registration"),
    (
        registered(
            experience={
                "head": "0" * 64,
                "events": 9,
                "proposing": {"support": 0, "purity_num": 3, "purity_den": 4},
            }
        ),
        "registration",
    ),
    (accepts_anything, "registration"),
    (claims(at_least=0.0), "registration"),
    (claims(decimals=7), "registration"),
    (claims(comparison="versus:cutlass"), "registration"),
    (claims(pool="another"), "registration"),
]


@pytest.mark.parametrize(("change", "kind"), CHANGES)
def test_a_forgery_is_found(ledger: Path, change: Change, kind: str) -> None:
    """With the chain rebuilt behind it; before the change there is no finding."""
    assert kind in {k for _, k in found(rewrite(ledger, lambda events: change(events, ledger)))}


def test_a_comparison_whose_arm_is_not_planned(tmp_path: Path) -> None:
    """No off+tabu in the plan: a comparison with it has no side, and answers no claim."""
    path = forge(tmp_path / "ledger.db", arms=("on",), repetitions=1)
    rewrite(path, lambda events: adds("tabu")(events, path))
    seq = first(lines(path), "HeadToHead", comparison="tabu").seq
    assert (seq, "head to head") in found(path)


def test_claims_answered_from_a_part_of_the_plan(tmp_path: Path) -> None:
    """Two repetitions planned, one played: the claim is unanswerable, whatever the first one gave."""
    path = forge(tmp_path / "ledger.db", arms=("off", "on"), repetitions=2)

    def change(events: list[Line]) -> list[Line]:
        kept = [e for e in events if not e.stream.endswith("/2") and e.body.get("repetition") != 2]
        answer = first(kept, "ClaimStated").body
        answer.update(medians=answer["medians"][:1], lowers=answer["lowers"][:1])
        return kept[:-1]

    rewrite(path, change)
    assert (first(lines(path), "ClaimStated").seq, "claim") in found(path)


def test_a_repetition_that_is_a_copy(tmp_path: Path) -> None:
    """Every event of the second repetition is the first one's under another number."""
    path = forge(tmp_path / "ledger.db", arms=("on",), repetitions=2)

    def change(events: list[Line]) -> list[Line]:
        for event in [e for e in events if e.stream.endswith("/1")]:
            body = compact(event.body).replace("/on/1/", "/on/2/").replace('"repetition":1', '"repetition":2')
            events.append(Line(0, event.stream[:-1] + "2", event.kind, event.at, body))
        return events

    rewrite(path, lambda events: change([e for e in events if not e.stream.endswith("/2")]))
    copies = [e.seq for e in lines(path) if e.stream.endswith("/2") and e.kind == "Profiled"]
    assert copies and {(seq, "samples") for seq in copies} <= found(path)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A clean recorded run."""
    path = forge(tmp_path / "recorded.db", origin=Origin(head="cd" * 32, events=700), arms=("on",), repetitions=1)
    assert verify(path, deep=True).findings == ()
    return path


@pytest.mark.parametrize("origin_seq", [None, 0, -5, 701, 1])
def test_a_measurement_without_a_place_in_the_origin(recorded: Path, origin_seq: int | None) -> None:
    """Absent, outside the origin, or the place of another measurement."""
    rewrite(recorded, lambda events: first(events, "KernelGated", round=1).body.update(origin_seq=origin_seq))
    assert (first(lines(recorded), "KernelGated", round=1).seq, "origin") in found(recorded)


@pytest.mark.parametrize("origin", [None, {"head": "not a hash", "events": 700}, {"head": "cd" * 32, "events": 0}])
def test_a_recorded_run_names_its_origin(recorded: Path, origin: object) -> None:
    """By head and length."""
    rewrite(recorded, lambda events: first(events, "RunRegistered").body.update(origin=origin))
    assert (1, "registration") in found(recorded)


def test_a_recorded_gate_has_a_seed_of_its_source(recorded: Path) -> None:
    """Of one of the three attempts that the origin can have needed."""

    def change(events: list[Line]) -> None:
        body = first(events, "KernelGated").body
        body["report"] = edited(recorded, body["report"], seed=12345)

    rewrite(recorded, change)
    assert (first(lines(recorded), "KernelGated").seq, "seed") in found(recorded)


def test_an_index_that_leaves_rows_out(ledger: Path) -> None:
    """Built with a condition and then given its published text: the views would not see the registration."""
    with closing(sqlite3.connect(ledger)) as db:
        indexes = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
        name, text = db.execute(indexes).fetchone()
        for sql, command in ((f"{text} WHERE type <> 'RunRegistered'", f"REINDEX {name}"), (text, "SELECT 1")):
            db.execute("PRAGMA writable_schema = ON")
            db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, name))
            db.commit()
            db.execute("PRAGMA writable_schema = RESET")
            db.execute(command)
            db.commit()
    assert (0, "index") in found(ledger)


# --- artifacts that cost more than they are worth ---


@pytest.mark.parametrize("blocks", [MOST_BLOCKS + 1, LARGEST_JSON // 10 + 1])
def test_too_many_blocks_are_not_worked_through(ledger: Path, blocks: int) -> None:
    """Refused by their number, or before they are decoded by their size; each event that names them says so in no time."""
    rows = b",".join([b"[90,90,90,90]"] * blocks)
    content = b'{"clock":"cuda_event","cache":"cold","unit":"ns","blocks":[' + rows + b"]}"

    def change(events: list[Line]) -> None:
        made = add_artifact(ledger, content)
        for event in events:
            if event.body.get("samples") and event.kind != "TilesSwept":
                event.body["samples"] = made

    rewrite(ledger, change)
    began = time.perf_counter()
    seen = found(ledger)
    assert time.perf_counter() - began < 20
    named = {e.seq for e in lines(ledger) if e.body.get("samples") and e.kind != "TilesSwept"}
    assert {(seq, "derivation failed") for seq in named} <= seen


def test_artifacts_beyond_the_total_are_not_read(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out is said, and what it would have answered is missing."""
    monkeypatch.setattr("gpusolver.replay.whole_file.LARGEST_TOTAL", 2000)
    seen = verify(ledger, deep=False)
    assert any("were not read" in note for note in seen.notes)
    assert "artifact missing" in {finding.kind for finding in seen.findings}


def test_the_stand_ins_times_are_said_to_measure_no_gpu(tmp_path: Path) -> None:
    """A run by the CPU's clock throughout has no finding for it, and a note."""
    path = forge(tmp_path / "ledger.db", arms=("on",), repetitions=1)

    def change(events: list[Line]) -> None:
        made: dict[str, str] = {}
        for event in events:
            named = event.body.get("samples")
            if named and event.kind != "TilesSwept":
                made[named] = made.get(named) or edited(path, named, clock="cpu_wall", cache="unknown")
                event.body["samples"] = made[named]
            if event.kind == "Profiled":
                event.body["cache"] = "unknown"

    seen = verify(rewrite(path, change), deep=True)
    assert seen.findings == ()
    assert any("measures no GPU" in note for note in seen.notes)


def test_refused_counters_lower_the_tier_and_hold_no_metric(ledger: Path) -> None:
    """The collector `none` is not `full`, and metrics under it are a contradiction."""

    def change(events: list[Line]) -> None:
        bodies = [e.body for e in events if e.kind == "Profiled"][:2]
        for body, metrics in zip(bodies, ({}, {"dram__bytes_read.sum": 1}), strict=True):
            body["counters"] = put(ledger, {"collector": "none", "chip": "", "metrics": metrics})

    rewrite(ledger, change)
    one, other = [e.seq for e in lines(ledger) if e.kind == "Profiled"][:2]
    assert {(one, "profile"), (other, "derivation failed")} <= found(ledger)


def test_a_clean_copy_is_still_clean(clean: Path, tmp_path: Path) -> None:
    """The rules above refuse nothing that the writing side writes."""
    assert verify(shutil.copy(clean, tmp_path / "copy.db"), deep=True).findings == ()
