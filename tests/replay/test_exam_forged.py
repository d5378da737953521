"""Examinations altered by someone who rebuilds the chain: every field of every event, artifacts, order, figures, looks."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpusolver.replay.verify import verify

from .exam_forge import forge_examination
from .reports import found
from .tamper import Line, add_artifact, artifact, compact, first, lines, rewrite

Change = Callable[[list[Line], Path], "list[Line] | None"]
Edit = Callable[[Any], object]
NOWHERE = "ab" * 32


@pytest.fixture(scope="module")
def examined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean ledger that holds one examination; not to be altered."""
    return forge_examination(tmp_path_factory.mktemp("exam") / "ledger.db")


@pytest.fixture
def exam(examined: Path, tmp_path: Path) -> Path:
    """A copy to alter."""
    return Path(shutil.copy(examined, tmp_path / "ledger.db"))


def put(path: Path, content: object) -> str:
    """Store a JSON artifact."""
    return add_artifact(path, compact(content).encode())


def nothing_examined(events: list[Line], path: Path) -> list[Line]:
    """An examination of no kernel, at its end, on no device."""
    registered, stated, stopped = (
        first(events, k) for k in ("ExaminationRegistered", "ExaminationStated", "RunStopped")
    )
    registered.body.update(subjects=[], pairs=[])
    stated.body["figures"] = {
        name: 0.0 for name in ("counters/compared", "counters/within", "examined/passed", "examined/refused")
    }
    return [registered, stated, stopped]


def field(kind: str, name: str, value: object, **where: object) -> Change:
    """Another value in a field of the first such event; a function is given what is there."""

    def change(events: list[Line], path: Path) -> None:
        body = first(events, kind, **where).body
        body[name] = value(copy.deepcopy(body[name])) if callable(value) else value

    return change


def inside(kind: str, name: str, edit: Edit, **where: object) -> Change:
    """The artifact that a field names, altered in place by `edit`; the event names the new one."""

    def change(events: list[Line], path: Path) -> None:
        body = first(events, kind, **where).body
        content = json.loads(artifact(path, body[name]))
        edit(content)
        body[name] = put(path, content)

    return change


def extra(role: str, edit: Edit) -> Change:
    """The same of an artifact in `extras`."""

    def change(events: list[Line], path: Path) -> None:
        extras = first(events, "KernelExamined").body["extras"]
        content = json.loads(artifact(path, extras[role]))
        edit(content)
        extras[role] = put(path, content)

    return change


def setting(name: str, value: object) -> Edit:
    return lambda content: content.update({name: value})


def without(kind: str, **where: object) -> Change:
    def change(events: list[Line], path: Path) -> list[Line]:
        gone = first(events, kind, **where)
        return [event for event in events if event is not gone]

    return change


def again(kind: str, **where: object) -> Change:
    """The same event once more, right behind itself."""

    def change(events: list[Line], path: Path) -> list[Line]:
        line = first(events, kind, **where)
        at = events.index(line) + 1
        return [*events[:at], Line(0, line.stream, line.kind, line.at, line.payload()), *events[at:]]

    return change


def moved(kind: str, to: int) -> Change:
    """The first such event at another place."""

    def change(events: list[Line], path: Path) -> list[Line]:
        line = first(events, kind)
        rest = [event for event in events if event is not line]
        return [*rest[:to], line, *rest[to:]] if to >= 0 else [*rest, line]

    return change


def subject(at: int, **fields: object) -> Change:
    return lambda events, path: events[0].body["subjects"][at].update(fields)


def pair(at: int, **fields: object) -> Change:
    return lambda events, path: events[0].body["pairs"][at].update(fields)


def statistics(**fields: object) -> Change:
    return lambda events, path: events[0].body["statistics"].update(fields)


def answer(rule: str, **fields: object) -> Change:
    def change(events: list[Line], path: Path) -> None:
        answers = first(events, "RulesAnswered").body["answers"]
        next(a for a in answers if a["rule"] == rule).update(fields)

    return change


def row(at: int, **fields: object) -> Change:
    return lambda events, path: first(events, "CountersCompared").body["rows"][at].update(fields)


def figure(name: str, value: float) -> Change:
    return field("ExaminationStated", "figures", lambda figures: figures | {name: value})


def signal(name: str, value: float) -> Change:
    return field("KernelExamined", "signals", lambda found: dict(sorted((found | {name: value}).items())))


def blocks(number: int) -> Edit:
    """The first blocks, repeated as often as it takes."""
    return lambda content: content.update(blocks=(content["blocks"] * 3)[:number])


def swap_extras(events: list[Line], path: Path) -> None:
    extras = first(events, "KernelExamined").body["extras"]
    extras["timeline"], extras["energy"] = extras["energy"], extras["timeline"]


def reuse(kind: str, **where: object) -> Change:
    """The samples of the first subject named again by another event."""

    def change(events: list[Line], path: Path) -> None:
        first(events, kind, **where).body["samples"] = first(events, "KernelExamined").body["samples"]

    return change


def skip_a_number(events: list[Line], path: Path) -> list[Line]:
    """The first comparison is dropped, the registered number lowered to hide it."""
    events[0].body["pairs"][0]["times"] = 1
    return [e for e in events if e.kind != "PairCompared" or e.body["pair"] != "better" or e.body["number"] == 2]


def whole_tail(events: list[Line], path: Path) -> None:
    """As if three looks had the whole tail each: 40 * 9 is above 256, rank 1 at eight; 40 * 79 within 4096, rank 3 at twelve."""
    first(events, "PairCompared", pair="equal").body["interval"]["rank"] = 3


def late_stop(events: list[Line], path: Path) -> None:
    """Decided at eight blocks, measured on to twelve; interval and rank are those of twelve."""
    body = first(events, "PairCompared", pair="better").body
    content = json.loads(artifact(path, body["samples"]))
    content["blocks"] += [[2000, 1501, 1500, 2000]] * 4
    body["samples"] = put(path, content)
    ratio = 2000 / 1500
    body["interval"] = {"lower": 4000 / 3001, "median": ratio, "upper": ratio, "blocks": 12, "rank": 2}
    first(events, "ExaminationStated").body["figures"]["pair/better/sampled_s"] += (4 * 7001) / 1e9


def early_stop(events: list[Line], path: Path) -> None:
    """An undecided look given out as the last."""
    body = first(events, "PairCompared", pair="equal").body
    content = json.loads(artifact(path, body["samples"]))
    content["blocks"] = content["blocks"][:8]
    body["samples"] = put(path, content)
    found = {"lower": 1.0, "median": 1.0, "upper": 1.1, "blocks": 8, "rank": 1}
    body.update(interval=found, verdict="AMBIGUOUS", reason="interval straddles margin")


def other_stream(events: list[Line], path: Path) -> None:
    first(events, "StaticRulesSeen").stream = "run1"


def second(events: list[Line], path: Path) -> None:
    for event in events:
        event.stream = event.body["run"] = "exam2"


def without_looks(events: list[Line], path: Path) -> None:
    del events[0].body["statistics"]["looks"]


def of_a_run(events: list[Line], path: Path) -> list[Line]:
    line = first(events, "RunStopped")
    body = {
        "type": "ClaimStated",
        "run": "exam1",
        "claim": "c",
        "medians": [],
        "lowers": [],
        "answer": "upheld",
        "rev": 1,
    }
    return [*events[:-2], Line(0, line.stream, "ClaimStated", line.at, compact(body)), *events[-2:]]


def refused_but_measured(events: list[Line], path: Path) -> None:
    body = first(events, "KernelExamined", subject="broken").body
    body["tier"] = "timing"


def passes_by_word(events: list[Line], path: Path) -> None:
    body = first(events, "KernelExamined", subject="broken").body
    body.update(outcome="passed", reason="within limits")


BETTER, EQUAL = {"pair": "better", "number": 1}, {"pair": "equal"}
LOW = {"signal": "load_eff", "op": "<", "threshold": 0.9, "value": 0.1}
FORGERIES: dict[str, tuple[Change, str]] = {
    # registration
    "another exam's number": (second, "registration"),
    "run named otherwise": (field("ExaminationRegistered", "run", "exam7"), "stream"),
    "another seed": (field("ExaminationRegistered", "seed", 8), "seed"),
    "a subject twice": (
        lambda events, path: events[0].body["subjects"].append(events[0].body["subjects"][0]),
        "registration",
    ),
    "a pair twice": (lambda events, path: events[0].body["pairs"].append(events[0].body["pairs"][0]), "registration"),
    "a pair of no subject": (pair(0, subject="nobody"), "registration"),
    "a pair compared never": (pair(0, times=0), "registration"),
    "an unknown half": (subject(0, half="other"), "registration"),
    "an unknown contract": (subject(0, contract="fp64-strict"), "registration"),
    "an unknown rule expected": (subject(0, fires=["nosuch"]), "registration"),
    "a rule on both sides": (subject(0, silent=["uncoalesced"]), "registration"),
    "a subject without a name": (subject(2, name=""), "registration"),
    "limits that accept anything": (
        lambda events, path: events[0].body["subjects"][0]["problem"]["limits"]["tf32-allowed"].update(rel_l2=2.0),
        "registration",
    ),
    "a source that is not there": (subject(0, source=NOWHERE), "artifact missing"),
    "another source": (lambda e, path: subject(0, source=e[0].body["subjects"][1]["source"])(e, path), "seed"),
    "a side that is not there": (pair(0, left=NOWHERE), "artifact missing"),
    "looks that do not end with all blocks": (statistics(looks=[4, 8]), "registration"),
    "looks that go back": (statistics(looks=[8, 4, 12]), "registration"),
    "a look before any block": (statistics(looks=[0, 12]), "registration"),
    "no look": (statistics(looks=[]), "registration"),
    "too many looks": (statistics(looks=list(range(1, 200))), "registration"),
    "a wider tail": (statistics(tail_num=5), "interval"),
    "a wider margin": (statistics(margin=0.5), "margin"),
    "a larger multiple of the floor": (statistics(floor_multiple=3.0), "margin"),
    # rules and device
    "a rule left out": (without("RuleSeeded"), "answers"),
    "a rule seeded twice": (again("RuleSeeded"), "rule table"),
    "a rule seeded late": (moved("RuleSeeded", 14), "order of events"),
    "no calibration": (without("DeviceCalibrated"), "calibration"),
    "two calibrations": (again("DeviceCalibrated"), "order of events"),
    "a calibration from elsewhere": (field("DeviceCalibrated", "origin_seq", 3), "origin"),
    "a faster copy": (field("DeviceCalibrated", "copy_gbps", 600.0), "calibration"),
    "a faster L2": (inside("DeviceCalibrated", "calibration", setting("l2", {"bytes": 1, "ns": [9]})), "signals"),
    "products without a time": (
        inside("DeviceCalibrated", "calibration", setting("gemm_fp32", {"flop": 1, "ns": []})),
        "derivation failed",
    ),
    "no limits": (inside("DeviceCalibrated", "calibration", lambda c: c.pop("limits")), "signals"),
    "more SMs": (inside("DeviceCalibrated", "calibration", lambda c: c["limits"].update(sms=8)), "signals"),
    # a kernel
    "a subject left out": (without("KernelExamined", subject="broken"), "missing measurement"),
    "a subject twice, examined": (again("KernelExamined", subject="broken"), "order of events"),
    "a subject that is not registered": (
        field("KernelExamined", "subject", "nobody", subject="broken"),
        "order of events",
    ),
    "a refusal made a pass": (passes_by_word, "gate"),
    "a pass made a refusal": (field("KernelExamined", "outcome", "wrong_result"), "gate"),
    "a better reason": (field("KernelExamined", "reason", "bit-identical"), "gate"),
    "another report": (inside("KernelExamined", "report", lambda r: r["draws"][0].update(rel_l2=0.9)), "gate"),
    "a report of another seed": (inside("KernelExamined", "report", setting("seed", 1)), "seed"),
    "a report that is not there": (field("KernelExamined", "report", NOWHERE), "artifact missing"),
    "no launches": (field("KernelExamined", "launches", None), "profile"),
    "other launches": (inside("KernelExamined", "launches", lambda c: c["kernels"][0].update(grid=[90])), "signals"),
    "a grid of words": (
        inside("KernelExamined", "launches", lambda c: c["kernels"][0].update(grid=["x"])),
        "derivation failed",
    ),
    "code that is not there": (
        inside("KernelExamined", "launches", lambda c: c["kernels"][0].update(ttir=NOWHERE)),
        "artifact missing",
    ),
    "no samples": (field("KernelExamined", "samples", None), "profile"),
    "fewer blocks": (inside("KernelExamined", "samples", blocks(11)), "samples"),
    "more blocks": (inside("KernelExamined", "samples", blocks(13)), "samples"),
    "faster samples": (inside("KernelExamined", "samples", lambda c: c.update(blocks=[[9, 9, 9, 9]] * 12)), "signals"),
    "samples by another clock": (
        inside("KernelExamined", "samples", lambda c: c.update(clock="cpu_wall", cache="unknown")),
        "samples",
    ),
    "a throttle reason less": (
        inside("KernelExamined", "samples", setting("before", {"throttle_bits": 0, "sm_clock_mhz": 1900})),
        "signals",
    ),
    "half a throttle bit": (
        inside("KernelExamined", "samples", setting("before", {"throttle_bits": 0.5})),
        "derivation failed",
    ),
    "no counters": (field("KernelExamined", "counters", None), "profile"),
    "other counters": (
        inside("KernelExamined", "counters", lambda c: c["metrics"].update({"lts__t_bytes.sum": 1})),
        "signals",
    ),
    "counters of another chip": (
        inside("KernelExamined", "counters", setting("chip", "TOY2"), subject="quick"),
        "samples",
    ),
    "a lower tier": (field("KernelExamined", "tier", "compiled"), "profile"),
    "a smaller floor": (field("KernelExamined", "floor", 0.001), "noise floor"),
    "no floor": (field("KernelExamined", "floor", None), "noise floor"),
    "a signal edited": (signal("conflict_frac", 0.9), "signals"),
    "a signal invented": (signal("stall_wait", 0.9), "signals"),
    "a signal dropped": (
        field("KernelExamined", "signals", lambda s: {k: v for k, v in s.items() if k != "waves"}),
        "signals",
    ),
    "a refused kernel measured": (refused_but_measured, "profile"),
    "samples of another subject": (reuse("KernelExamined", subject="quick"), "samples"),
    # extras
    "an unknown role": (field("KernelExamined", "extras", lambda e: e | {"zeal": e["warm"]}), "extras"),
    "a role left out": (
        field("KernelExamined", "extras", lambda e: {k: v for k, v in e.items() if k != "warm"}),
        "signals",
    ),
    "roles swapped": (swap_extras, "derivation failed"),
    "an extra that is not there": (
        field("KernelExamined", "extras", lambda e: e | {"energy": NOWHERE}),
        "artifact missing",
    ),
    "a shorter timeline": (extra("timeline", lambda c: c["calls"].pop(1)), "signals"),
    "a timeline of nothing": (extra("timeline", setting("calls", [])), "derivation failed"),
    "a call of nothing": (extra("timeline", setting("calls", [[]])), "derivation failed"),
    "kernels that end before they start": (extra("timeline", setting("calls", [[[9, 3, "k"]]])), "derivation failed"),
    "kernels out of order": (extra("timeline", setting("calls", [[[5, 9, "k"], [1, 4, "k"]]])), "derivation failed"),
    "an operator twice": (extra("timeline", setting("operators", [["a", 1], ["a", 2]])), "derivation failed"),
    "no operators": (extra("timeline", setting("operators", None)), "signals"),
    "a timeline by nsys": (extra("timeline", setting("collector", "nsys")), "signals"),
    "slower warm calls": (extra("warm", lambda c: c.update(blocks=[[9, 9000, 9000, 9]] * 3)), "signals"),
    "warm calls that are cold": (extra("warm", setting("cache", "cold")), "derivation failed"),
    "less energy": (extra("energy", lambda c: c["windows"].pop(2)), "signals"),
    "a window of no time": (extra("energy", lambda c: c["windows"][0].update(milliseconds=0)), "derivation failed"),
    "fewer instructions": (extra("compiled", lambda c: c["kernels"][0]["mix"].pop("LDL")), "signals"),
    "code that was not launched": (
        extra("compiled", lambda c: c["kernels"][0].update(code=NOWHERE)),
        "derivation failed",
    ),
    "kernels by another collector": (extra("kernels", setting("collector", "words")), "derivation failed"),
    # answers
    "no answers": (without("RulesAnswered"), "order of events"),
    "answers twice": (again("RulesAnswered"), "order of events"),
    "answers of another subject": (field("RulesAnswered", "subject", "quick"), "order of events"),
    "an answer left out": (field("RulesAnswered", "answers", lambda a: a[:-1]), "answers"),
    "answers in another order": (field("RulesAnswered", "answers", lambda a: a[::-1]), "answers"),
    "an older version answers": (answer("uncoalesced", version=0), "answers"),
    "a silent rule fires": (answer("conflicts", answer="fires", predicted_gain=2.0), "answers"),
    "a firing silenced": (answer("uncoalesced", answer="silent", predicted_gain=None), "answers"),
    "an abstention fires": (answer("dispatch", answer="fires"), "answers"),
    "a missing signal hidden": (answer("dispatch", missing=[]), "answers"),
    "a clause hidden": (answer("uncoalesced", clauses=[]), "answers"),
    "a clause's value edited": (answer("uncoalesced", clauses=[LOW]), "answers"),
    "blocked for another reason": (answer("bf16", reason="guard"), "answers"),
    "not blocked": (answer("fp16", answer="fires", reason=None), "answers"),
    "a larger gain": (answer("uncoalesced", predicted_gain=9.0), "answers"),
    "a gain of a silent rule": (answer("conflicts", predicted_gain=2.0), "answers"),
    "an expected firing flipped": (
        subject(0, fires=["no_clause"], silent=["conflicts", "bf16", "uncoalesced"]),
        "figures",
    ),
    # pairs
    "a comparison dropped": (without("PairCompared", pair="better", number=2), "missing measurement"),
    "the first comparison dropped and hidden": (skip_a_number, "pair"),
    "a comparison twice": (again("PairCompared", **EQUAL), "pair"),
    "a comparison that is not registered": (field("PairCompared", "pair", "nosuch", **EQUAL), "pair"),
    "another number": (field("PairCompared", "number", 3, **BETTER), "pair"),
    "a comparison before its subject": (moved("PairCompared", 12), "order of events"),
    "a verdict flipped": (field("PairCompared", "verdict", "SLOWER", **BETTER), "verdict"),
    "another reason": (field("PairCompared", "reason", "it is", **BETTER), "verdict"),
    "no interval": (field("PairCompared", "interval", None, **BETTER), "interval"),
    "an interval where there is none": (
        field(
            "PairCompared",
            "interval",
            {"lower": 1.0, "median": 1.0, "upper": 1.0, "blocks": 4, "rank": 1},
            pair="cheat",
        ),
        "interval",
    ),
    "another interval": (field("PairCompared", "interval", lambda i: i | {"lower": 1.2}, **BETTER), "interval"),
    "another margin": (field("PairCompared", "margin", 0.01, **BETTER), "margin"),
    "samples of a subject": (reuse("PairCompared", **EQUAL), "samples"),
    "samples of the other comparison": (
        lambda e, path: field(
            "PairCompared", "samples", first(e, "PairCompared", **BETTER).body["samples"], pair="better", number=2
        )(e, path),
        "samples",
    ),
    "samples that are not there": (field("PairCompared", "samples", NOWHERE, **EQUAL), "artifact missing"),
    "slower than the floor": (
        inside("PairCompared", "samples", lambda c: c.update(blocks=[[2000, 1000, 1000, 2000]] * 8), pair="cheat"),
        "verdict",
    ),
    # looks
    "blocks between looks": (inside("PairCompared", "samples", blocks(10), **EQUAL), "looks"),
    "fewer blocks than the first look": (inside("PairCompared", "samples", blocks(3), **EQUAL), "looks"),
    "stopped late": (late_stop, "looks"),
    "stopped early": (early_stop, "looks"),
    "the tail not divided": (whole_tail, "interval"),
    "looks left out of the registration": (without_looks, "verdict"),
    # counters
    "counters compared twice": (again("CountersCompared"), "order of events"),
    "counters of another subject": (field("CountersCompared", "subject", "broken"), "counters compared"),
    "counters of nobody": (field("CountersCompared", "subject", "nobody"), "order of events"),
    "counters before the kernel": (moved("CountersCompared", 12), "order of events"),
    "others than our counters": (inside("CountersCompared", "ours", setting("passes", 1)), "counters compared"),
    "theirs by us": (inside("CountersCompared", "theirs", setting("collector", "made-up")), "counters compared"),
    "theirs edited": (
        inside("CountersCompared", "theirs", lambda c: c["metrics"].update({"l1tex__t_sector_hit_rate.pct": 9.0})),
        "counters compared",
    ),
    "theirs that are not there": (field("CountersCompared", "theirs", NOWHERE), "artifact missing"),
    "a row dropped": (field("CountersCompared", "rows", lambda rows: rows[:3] + rows[4:]), "counters compared"),
    "a row's ours edited": (row(3, ours=20.0), "counters compared"),
    "a row's theirs edited": (row(3, theirs=18.75), "counters compared"),
    "a bound widened": (row(3, bound=2.0), "counters compared"),
    "a row made to fit": (row(3, within=True), "counters compared"),
    "a row renamed": (row(3, metric="sm__warps"), "counters compared"),
    # Nsight Compute's rules
    "static rules twice": (again("StaticRulesSeen"), "order of events"),
    "static rules of nobody": (field("StaticRulesSeen", "subject", "nobody"), "order of events"),
    "static rules that are not there": (field("StaticRulesSeen", "answers", NOWHERE), "artifact missing"),
    "static rules that are no JSON": (
        lambda e, path: first(e, "StaticRulesSeen").body.update(answers=add_artifact(path, b"{")),
        "derivation failed",
    ),
    "a key twice": (
        lambda e, path: first(e, "StaticRulesSeen").body.update(answers=add_artifact(path, b'{"a":1,"a":2}')),
        "derivation failed",
    ),
    # the end
    "a figure edited": (figure("matrix/held-out/right", 4.0), "figures"),
    "a figure added": (figure("pair/nosuch/FASTER", 1.0), "figures"),
    "a figure dropped": (
        field("ExaminationStated", "figures", lambda f: {k: v for k, v in f.items() if "refused" not in k}),
        "figures",
    ),
    "samples saved": (figure("pair/better/sampled_s", 0.0), "figures"),
    "counters made to fit": (figure("counters/within", 7.0), "figures"),
    "no figures": (without("ExaminationStated"), "order of events"),
    "figures twice": (again("ExaminationStated"), "order of events"),
    "figures before the last comparison": (moved("ExaminationStated", 20), "order of events"),
    "an end for another reason": (field("RunStopped", "reason", "no rule fires"), "stop"),
    "an end by a rule": (field("RunStopped", "rule", "saturated"), "stop"),
    "an end, and more": (again("RunStopped"), "order of events"),
    "figures without an end": (without("RunStopped"), "order of events"),
    "an end without anything": (nothing_examined, "calibration"),
    "no registration": (without("ExaminationRegistered"), "registration"),
    "a registration in the middle": (moved("ExaminationRegistered", 4), "order of events"),
    "an event in a run's stream": (other_stream, "stream"),
    "an event of a run": (of_a_run, "stream"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_found(exam: Path, name: str) -> None:
    """With the chain rebuilt behind it; what else is found beside is no matter here."""
    change, kind = FORGERIES[name]
    rewrite(exam, lambda events: change(events, exam))
    seen = found(exam)
    assert kind in {k for _, k in seen}
    assert not {"hash", "previous hash", "payload encoding", "payload not understood"} & {k for _, k in seen}
    verify(exam, deep=False)


def leaves(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to every number and text of a payload."""
    if isinstance(value, dict):
        return [p for key, part in value.items() if key not in ("type", "rev") for p in leaves(part, (*at, key))]
    if isinstance(value, list):
        return [p for i, part in enumerate(value) for p in leaves(part, (*at, i))]
    return [at] if isinstance(value, (int, float, str)) else []


@pytest.mark.parametrize(
    "kind", ["KernelExamined", "RulesAnswered", "PairCompared", "CountersCompared", "ExaminationStated"]
)
def test_every_value_of_every_event_is_held(examined: Path, tmp_path: Path, kind: str) -> None:
    """Each number or text of the first event of a kind, changed alone, gives a finding."""
    body = first(lines(examined), kind).body
    for at in leaves(body):
        path = Path(shutil.copy(examined, tmp_path / "ledger.db"))

        def change(events: list[Line], at: tuple[Any, ...] = at) -> None:
            part = first(events, kind).body
            for key in at[:-1]:
                part = part[key]
            old = part[at[-1]]
            part[at[-1]] = (
                not old if isinstance(old, bool) else old + 1 if isinstance(old, (int, float)) else old[::-1] + "x"
            )

        rewrite(path, change)
        assert verify(path, deep=True).findings, at
