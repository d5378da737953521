"""Bytes, artifacts, schema objects and payloads that are not as published, with the chain rebuilt where a forger could."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gpusolver.replay.verify import verify

from .reports import found
from .tamper import Line, add_artifact, artifact, compact, first, lines, rewrite, sha, unguarded

Change = Callable[[list[Line]], "list[Line] | None"]


def test_one_byte_of_a_payload(ledger: Path) -> None:
    """The event is named by its hash; its successor's prev_hash still fits the stored one."""
    seq = first(lines(ledger), "RoundJudged").seq
    with unguarded(ledger) as db:
        db.execute("UPDATE events SET payload = replace(payload, '\"round\":1', '\"round\":2') WHERE seq = ?", (seq,))
    assert found(ledger) == {(seq, "hash"), (seq, "round")}


def test_one_byte_on_disk(ledger: Path) -> None:
    """A hex edit that SQLite itself does not notice."""
    stored = ledger.read_bytes()
    at = stored.index(b'"reason":"interval beyond margin"')
    ledger.write_bytes(stored[:at] + stored[at:].replace(b"interval beyond margin", b"interval beyond marg1n", 1))
    kinds = {kind for _, kind in found(ledger)}
    assert "hash" in kinds and "verdict" in kinds


def test_an_altered_sample_with_everything_hashed_again(ledger: Path) -> None:
    """A new, properly stored artifact with better times: the signals and the verdict no longer follow."""
    profiled = first(lines(ledger), "Profiled", round=5)
    samples = json.loads(artifact(ledger, profiled.body["samples"]))
    samples["blocks"] = [[a1, b1 // 2, b2 // 2, a2] for a1, b1, b2, a2 in samples["blocks"]]
    better = add_artifact(ledger, compact(samples).encode())
    rewrite(ledger, lambda events: first(events, "Profiled", round=5).body.update(samples=better))
    seen = found(ledger)
    assert (profiled.seq, "signals") in seen
    judged_at = next(e.seq for e in lines(ledger) if e.kind == "RoundJudged" and e.seq > profiled.seq)
    assert (judged_at, "interval") in seen


def test_a_swapped_artifact(ledger: Path) -> None:
    """Other bytes under an old digest: the digest is named, and so is every event that needs it."""
    profiled = first(lines(ledger), "Profiled")
    with unguarded(ledger) as db:
        db.execute(
            "UPDATE artifacts SET codec = 'raw', content = ?, size = 2 WHERE digest = ?",
            (b"{}", profiled.body["samples"]),
        )
    seen = found(ledger)
    assert (0, "artifact digest") in seen and (profiled.seq, "artifact missing") in seen


def test_an_artifact_that_inflates_beyond_its_size(ledger: Path) -> None:
    """The stated size bounds the inflating."""
    profiled = first(lines(ledger), "Profiled")
    with unguarded(ledger) as db:
        db.execute("UPDATE artifacts SET size = 10 WHERE digest = ?", (profiled.body["samples"],))
    seen = found(ledger)
    assert (0, "artifact size") in seen and (profiled.seq, "artifact missing") in seen


def test_a_removed_artifact(ledger: Path) -> None:
    """The event that names it is named."""
    gated = first(lines(ledger), "KernelGated")
    with unguarded(ledger) as db:
        db.execute("DELETE FROM artifacts WHERE digest = ?", (gated.body["report"],))
    assert (gated.seq, "artifact missing") in found(ledger)


def test_a_report_with_another_seed(ledger: Path) -> None:
    """Inputs drawn by a seed of one's own choice."""
    gated = first(lines(ledger), "KernelGated")
    report = json.loads(artifact(ledger, gated.body["report"])) | {"seed": 7}
    other = add_artifact(ledger, compact(report).encode())
    rewrite(ledger, lambda events: first(events, "KernelGated").body.update(report=other))
    assert (gated.seq, "seed") in found(ledger)


def test_a_candidate_that_is_not_what_its_generator_makes(ledger: Path) -> None:
    """A flag changes one line; another source under its name is found."""
    generated = first(lines(ledger), "KernelGenerated", generator="flag")
    other = add_artifact(ledger, artifact(ledger, generated.body["source"]) + b"# tuned\n")
    rewrite(ledger, lambda events: first(events, "KernelGenerated", generator="flag").body.update(source=other))
    seen = found(ledger)
    assert (generated.seq, "generated source") in seen
    assert other == sha(artifact(ledger, other))


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER extra AFTER INSERT ON events BEGIN SELECT 1; END",
        "CREATE VIEW winners AS SELECT 1",
        "DROP TRIGGER events_no_update",
        "CREATE TABLE notes(x)",
        "DROP INDEX events_by_stream",
    ],
)
def test_schema_objects(ledger: Path, sql: str) -> None:
    """Byte for byte those of the published schema, and no other."""
    with closing(sqlite3.connect(ledger)) as db:
        db.execute(sql)
        db.commit()
    assert found(ledger) == {(0, "schema object")}


def rename_type(events: list[Line]) -> None:
    line = first(events, "RuleRetired")
    line.kind, line.raw = "RuleForgotten", line.payload().replace('"RuleRetired"', '"RuleForgotten"', 1)


def disagreeing_type(events: list[Line]) -> None:
    first(events, "RuleRetired").kind = "RulePromoted"


def of_a_run_in_a_cell(events: list[Line]) -> None:
    line = first(events, "RuleRetired")
    line.kind = "RuleAdmitted"
    line.raw = '{"type":"RuleAdmitted","run":"run1","rule":"x","rule_version":1,"rev":1}'


def type_of_no_text(events: list[Line]) -> None:
    first(events, "RuleRetired").body["type"] = ["RuleRetired"]


def duplicate_key(events: list[Line]) -> None:
    line = first(events, "RuleRetired")
    line.raw = line.payload().replace('"successes":0', '"successes":9,"successes":0', 1)


def spaced(events: list[Line]) -> None:
    line = first(events, "RuleRetired")
    line.raw = line.payload().replace('"successes":0', '"successes": 0', 1)


def unknown_key(events: list[Line]) -> None:
    first(events, "RuleRetired").body["note"] = "x"


def wrong_type(events: list[Line]) -> None:
    first(events, "RuleRetired").body["successes"] = "none"


def deep(events: list[Line]) -> None:
    first(events, "RuleRetired").raw = '{"type":"RuleRetired","cell":' + "[" * 5000 + "]" * 5000 + "}"


def huge(events: list[Line]) -> None:
    line = first(events, "RuleRetired")
    line.raw = line.payload().replace('"successes":0', '"successes":' + "9" * 6000, 1)


def future(events: list[Line]) -> None:
    first(events, "RuleRetired").body["rev"] = 2


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (rename_type, "event kind not understood"),
        (disagreeing_type, "payload type"),
        (of_a_run_in_a_cell, "stream"),
        (type_of_no_text, "event kind not understood"),
        (duplicate_key, "payload encoding"),
        (spaced, "payload encoding"),
        (unknown_key, "payload not understood"),
        (wrong_type, "payload not understood"),
        (deep, "payload not understood"),
        (huge, "payload not understood"),
        (future, "event kind not understood"),
    ],
)
def test_payloads_that_are_not_as_published(ledger: Path, change: Change, kind: str) -> None:
    """Each is named with its seq, whatever else follows from its absence."""
    seq = first(lines(ledger), "RuleRetired").seq
    rewrite(ledger, change)
    assert (seq, kind) in found(ledger)


def test_two_events_exchanged_without_rechaining(ledger: Path) -> None:
    """The chain shows order, not only content."""
    with unguarded(ledger) as db:
        db.execute("UPDATE events SET seq = -1 WHERE seq = 20")
        db.execute("UPDATE events SET seq = 20 WHERE seq = 21")
        db.execute("UPDATE events SET seq = 21 WHERE seq = -1")
    seen = found(ledger)
    assert {(20, "hash"), (20, "previous hash"), (21, "hash"), (21, "version")} <= seen


def test_a_cut_tail_is_shown_by_a_head_kept_elsewhere(ledger: Path, clean: Path) -> None:
    """The chain alone does not show it; the anchor does."""
    head = verify(clean, deep=False).head
    with unguarded(ledger) as db:
        db.execute("DELETE FROM events WHERE type = 'RunStopped' AND stream = 'run1'")
    alone = verify(ledger, deep=True)
    assert alone.findings == () and any("no RunStopped" in note for note in alone.notes)
    anchored = verify(ledger, deep=True, head=head)
    assert [(f.kind, f.expected) for f in anchored.findings] == [("head", head)]
    assert verify(clean, deep=True, head=head).findings == ()
