"""Values edited, added or left out with the chain rebuilt behind them: a finding names the seq and the kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpusolver.replay.verify import verify

from .reports import found
from .tamper import Line, compact, first, lines, rewrite

Change = Callable[[list[Line]], "list[Line] | None"]


def test_a_clean_ledger_has_no_finding(clean: Path) -> None:
    """And its claim is re-derived as stated."""
    report = verify(clean, deep=True)
    assert report.findings == ()
    assert [claim.agree for claim in report.runs[0].claims] == [True]
    assert report.counts["rounds"] == 24


def judged(events: list[Line], verdict: str) -> Line:
    return first(events, "RoundJudged", verdict=verdict)


def flip_verdict(events: list[Line]) -> None:
    judged(events, "FASTER").body["verdict"] = "SLOWER"


def credit_failure(events: list[Line]) -> None:
    judged(events, "FASTER").body["credit"] = "failure"


def keep_incumbent(events: list[Line]) -> None:
    body = judged(events, "SLOWER").body
    body["next_incumbent"] = body["candidate"]


def move_interval(events: list[Line]) -> None:
    judged(events, "FASTER").body["interval"]["median"] += 1.0


def widen_margin(events: list[Line]) -> None:
    judged(events, "SLOWER").body["margin"] = 0.5


def deny_inert(events: list[Line]) -> None:
    first(events, "RoundJudged", inert=True).body["inert"] = False


def better_gain(events: list[Line]) -> None:
    first(events, "RuleFired", rule="tf32").body["predicted_gain"] = 9.0


def hide_abstention(events: list[Line]) -> None:
    first(events, "RuleFired", rule="tf32").body["abstained"] = []


def hide_block(events: list[Line]) -> None:
    first(events, "RuleFired", rule="tf32").body["blocked"].pop()


def other_rule(events: list[Line]) -> None:
    first(events, "RuleFired", rule="tf32").body["rule"] = "tiles"


def other_context(events: list[Line]) -> None:
    first(events, "RuleFired", rule="tiles").body["context"]["structure"] = "dot"


def raise_signal(events: list[Line]) -> None:
    first(events, "Profiled").body["signals"]["occupancy"] = 0.9


def invent_signal(events: list[Line]) -> None:
    body = first(events, "Profiled").body
    body["signals"] = dict(sorted((body["signals"] | {"load_eff": 0.5}).items()))


def lower_tier(events: list[Line]) -> None:
    first(events, "Profiled").body["tier"] = "timing"


def smaller_floor(events: list[Line]) -> None:
    first(events, "NoiseFloorMeasured").body["floor"] = 0.0


def other_tiles(events: list[Line]) -> None:
    first(events, "TilesSwept").body["chosen"] = 0


def fail_gate(events: list[Line]) -> None:
    first(events, "KernelGated", round=1).body["outcome"] = "wrong_result"


def other_attempt(events: list[Line]) -> None:
    first(events, "KernelGated", round=1).body["attempt"] = 2


def faster_copy(events: list[Line]) -> None:
    first(events, "DeviceCalibrated").body["copy_gbps"] = 1000.0


def faster_split_products(events: list[Line]) -> None:
    """Half of TF32's peak, where each takes three products."""
    peaks = first(events, "DeviceCalibrated").body["chip"]["peaks_tflops"]
    peaks["tf32x3"] = peaks["tf32"] / 2


def cheat_claim(events: list[Line]) -> None:
    first(events, "ClaimStated").body["medians"] = [99.0]


def deny_claim(events: list[Line]) -> None:
    first(events, "ClaimStated").body["answer"] = "not upheld"


def other_endpoint(events: list[Line]) -> None:
    body = first(events, "HeadToHead", comparison="endpoint").body
    body["right"] = first(events, "HeadToHead", comparison="endpoint_kernel").body["right"]


def no_parent(events: list[Line]) -> None:
    first(events, "KernelGenerated", round=2).body["parent"] = None


def early_stop(events: list[Line]) -> None:
    first(events, "RunStopped", reason="rounds exhausted").body["reason"] = "no rule fires"


def evidence_of(events: list[Line]) -> None:
    first(events, "RuleRetired").body["firings"].pop()


def skip_round(events: list[Line]) -> None:
    first(events, "RoundAttempted", round=3).body["round"] = 4


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (flip_verdict, "verdict"),
        (credit_failure, "credit"),
        (keep_incumbent, "incumbent"),
        (move_interval, "interval"),
        (widen_margin, "margin"),
        (deny_inert, "verdict"),
        (better_gain, "predicted gain"),
        (hide_abstention, "match"),
        (hide_block, "match"),
        (other_rule, "match"),
        (other_context, "context"),
        (raise_signal, "signals"),
        (invent_signal, "signals"),
        (lower_tier, "profile"),
        (smaller_floor, "noise floor"),
        (other_tiles, "sweep"),
        (fail_gate, "gate"),
        (other_attempt, "gate"),
        (faster_copy, "calibration"),
        (faster_split_products, "calibration"),
        (cheat_claim, "claim"),
        (deny_claim, "claim"),
        (other_endpoint, "head to head"),
        (no_parent, "generated source"),
        (early_stop, "stop"),
        (evidence_of, "retire"),
        (skip_round, "round"),
    ],
)
def test_an_edited_value_with_the_chain_rebuilt(ledger: Path, change: Change, kind: str) -> None:
    """The chain says nothing, the derivation names the event."""
    before = {e.seq: e.payload() for e in lines(ledger)}
    rewrite(ledger, change)
    edited = [e.seq for e in lines(ledger) if before[e.seq] != e.payload()]
    assert len(edited) == 1
    seen = found(ledger)
    assert (edited[0], kind) in seen
    assert not {"hash", "previous hash", "payload encoding"} & {k for _, k in seen}


def without(kind: str, **fields: object) -> Change:
    """Drop the first such event."""

    def change(events: list[Line]) -> list[Line]:
        gone = first(events, kind, **fields)
        return [event for event in events if event is not gone]

    return change


def seeded(name: str, events: list[Line]) -> object:
    """The registered rule of that name."""
    return next(e.body["rule"] for e in events if e.kind == "RuleSeeded" and e.body["rule"]["name"] == name)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (without("RuleRetired"), "retire"),
        (without("RoundAttempted", round=3), "order of events"),
        (without("KernelGated", round=1), "order of events"),
        (without("NoiseFloorMeasured"), "order of events"),
        (without("HeadToHead", comparison="kernel_part"), "head to head"),
        (without("ClaimStated"), "claim"),
        (lambda events: [e for e in events if e.body.get("rule") != seeded("uncoalesced", events)], "match"),
        (without("DeviceCalibrated"), "calibration"),
        (without("RunRegistered"), "registration"),
    ],
)
def test_a_dropped_event_with_the_chain_rebuilt(ledger: Path, change: Change, kind: str) -> None:
    """What was left out is missed."""
    rewrite(ledger, change)
    assert kind in {k for _, k in found(ledger)}


def test_retirement_without_failures(ledger: Path) -> None:
    """A rule silenced after its third failure, and again when it is due."""

    def change(events: list[Line]) -> list[Line]:
        retired = first(events, "RuleRetired")
        third = [e for e in events if e.stream == retired.stream and e.kind == "RoundJudged"][2]
        at = events.index(third) + 1
        forged = Line(0, retired.stream, retired.kind, retired.at, compact(retired.body | {"failures": 3}))
        return [*events[:at], forged, *events[at:]]

    rewrite(ledger, change)
    seq = first(lines(ledger), "RuleRetired").seq
    assert (seq, "retire") in found(ledger)


def test_promotion_that_is_not_due(ledger: Path) -> None:
    """One success is no promotion."""

    def change(events: list[Line]) -> list[Line]:
        hit = next(
            e for e in events if e.kind == "RoundJudged" and e.body["verdict"] == "FASTER" and "/on/" in e.stream
        )
        body = {
            "type": "RulePromoted",
            "cell": hit.body["cell"],
            "rule": hit.body["rule"],
            "rule_version": 1,
            "successes": 1,
            "failures": 0,
            "confidence": 2 / 3,
            "firings": [hit.body["firing"]],
            "rev": 1,
        }
        at = events.index(hit) + 1
        return [*events[:at], Line(0, hit.stream, "RulePromoted", hit.at, compact(body)), *events[at:]]

    rewrite(ledger, change)
    assert (first(lines(ledger), "RulePromoted").seq, "promote") in found(ledger)


def test_a_dropped_last_round(ledger: Path) -> None:
    """The cell now ends before its rounds are exhausted, and its winner is not the one compared."""

    def change(events: list[Line]) -> list[Line]:
        on = next(e.stream for e in events if "/on/" in e.stream)
        return [e for e in events if not (e.stream == on and e.body.get("round") == 8)]

    rewrite(ledger, change)
    stop = next(e.seq for e in lines(ledger) if e.kind == "RunStopped" and "/on/" in e.stream)
    assert (stop, "stop") in found(ledger)


def test_a_dropped_cell(ledger: Path) -> None:
    """The plan names it, the run says that the plan is completed."""
    rewrite(ledger, lambda events: [e for e in events if "/off+tabu/" not in e.stream])
    end = lines(ledger)[-1].seq
    seen = found(ledger)
    assert (end, "missing cell") in seen


def test_a_cell_that_was_not_planned(ledger: Path) -> None:
    """Taken out of the plan, its events give it away."""

    def change(events: list[Line]) -> None:
        body = first(events, "RunRegistered").body
        body["plan"] = [cell for cell in body["plan"] if cell["arm"] != "off+tabu"]

    rewrite(ledger, change)
    begun = next(e.seq for e in lines(ledger) if "/off+tabu/" in e.stream)
    assert (begun, "cell not planned") in found(ledger)


def test_more_rounds_than_registered(ledger: Path) -> None:
    """Lowering the registered number does not hide the rounds played."""
    rewrite(ledger, lambda events: first(events, "RunRegistered").body.update(max_rounds=5))
    assert any(kind == "round" for _, kind in found(ledger))
