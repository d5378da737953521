"""Attacks on the tables from a plain connection, and the views for people."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlite_utils

from gpusolver.events import BadInput, UnreadableLedger, schema
from gpusolver.events.model import (
    ClaimRegistered,
    ClaimStated,
    Context,
    Policy,
    RuleFired,
    RulePromoted,
    RuleRetired,
    RunRegistered,
    Statistics,
)
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter

from .examples import CELL, STREAM, fill, judged

HASH = "c" * 64
CONTEXT = Context(chip="H200", contract="fp32-strict", language="triton", family="matmul", structure="no_dot")


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A plain connection, as a shell has it, to a ledger of three events in one stream."""
    connection = sqlite3.connect(fill(tmp_path / "ledger.db"), isolation_level=None)
    yield connection
    connection.close()


def dump(connection: sqlite3.Connection) -> list[list[tuple[object, ...]]]:
    return [connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in ("events", "artifacts")]


def head(connection: sqlite3.Connection) -> str:
    return str(connection.execute("SELECT hash FROM events ORDER BY seq DESC LIMIT 1").fetchone()[0])


ROW = "(seq, stream, version, type, recorded_at, payload, prev_hash, hash) VALUES ({}, '{}', {}, 'X', 't', '{{}}', '{}', '{}')"


def row(seq: object, version: int, prev_hash: str, stream: str = STREAM, hash_: str = HASH) -> str:
    return ROW.format(seq, stream, version, prev_hash, hash_)


REFUSED_ON_EVENTS = {
    "update": "UPDATE events SET payload = '{}' WHERE seq = 2",
    "update nothing new": "UPDATE events SET seq = seq",
    "delete": "DELETE FROM events WHERE seq = 3",
    "delete all": "DELETE FROM events",
    "upsert": "INSERT INTO events " + row(2, 2, "HEAD") + " ON CONFLICT(seq) DO UPDATE SET payload = '{}'",
    "upsert nothing": "INSERT INTO events " + row(2, 2, "HEAD") + " ON CONFLICT DO NOTHING",
    "insert or replace": "INSERT OR REPLACE INTO events " + row(2, 4, "HEAD"),
    "replace into": "REPLACE INTO events " + row(3, 3, "HEAD"),
    "insert or ignore": "INSERT OR IGNORE INTO events " + row(3, 4, "HEAD"),
    "update or replace": "UPDATE OR REPLACE events SET seq = 1 WHERE seq = 3",
    "gap": "INSERT INTO events " + row(5, 4, "HEAD"),
    "back-dated": "INSERT INTO events " + row(0, 4, "HEAD"),
    "no seq": "INSERT INTO events " + row("NULL", 4, "HEAD"),
    "version gap": "INSERT INTO events " + row(4, 5, "HEAD"),
    "version again": "INSERT OR REPLACE INTO events " + row(4, 3, "HEAD"),
    "new stream at 2": "INSERT INTO events " + row(4, 2, "HEAD", stream="run2"),
    "other prev_hash": "INSERT INTO events " + row(4, 4, "0" * 64),
    "ignore, other prev_hash": "INSERT OR IGNORE INTO events " + row(4, 4, "0" * 64),
}


@pytest.mark.parametrize("recursive", ["OFF", "ON"])
@pytest.mark.parametrize("attack", REFUSED_ON_EVENTS.values(), ids=REFUSED_ON_EVENTS)
def test_events_refuse(raw: sqlite3.Connection, attack: str, recursive: str) -> None:
    raw.execute(f"PRAGMA recursive_triggers = {recursive}")
    before = dump(raw)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(attack.replace("HEAD", head(raw)))
    assert dump(raw) == before


def test_the_guard_lets_the_next_event_in(raw: sqlite3.Connection) -> None:
    raw.execute("INSERT INTO events " + row(4, 4, head(raw)))
    raw.execute("INSERT INTO events " + row(5, 1, HASH, stream="run2", hash_="d" * 64))
    assert raw.execute("SELECT count(*) FROM events").fetchone() == (5,)


def test_replace_with_the_hash_of_an_older_event_deletes_nothing(raw: sqlite3.Connection) -> None:
    before = dump(raw)[0]
    oldest = raw.execute("SELECT hash FROM events WHERE seq = 1").fetchone()[0]
    raw.execute("INSERT OR REPLACE INTO events " + row(4, 4, head(raw), hash_=oldest))
    assert dump(raw)[0][:3] == before


@pytest.mark.parametrize("table", ["events", "artifacts"])
def test_no_unique_column_beside_the_key(raw: sqlite3.Connection, table: str) -> None:
    unique = [index for index in raw.execute(f"PRAGMA index_list({table})") if index[2]]
    assert [index[3] for index in unique] == ([] if table == "events" else ["pk"])


VALUES = "VALUES ('DIGEST', 'text/plain', 1, 'raw', x'00')"
REFUSED_ON_ARTIFACTS = {
    "update": "UPDATE artifacts SET content = x'00'",
    "delete": "DELETE FROM artifacts",
    "insert": f"INSERT INTO artifacts {VALUES}",
    "insert or replace": f"INSERT OR REPLACE INTO artifacts {VALUES}",
    "replace into": f"REPLACE INTO artifacts {VALUES}",
    "insert or ignore": f"INSERT OR IGNORE INTO artifacts {VALUES}",
    "upsert": f"INSERT INTO artifacts {VALUES} ON CONFLICT DO UPDATE SET content = x'00'",
}


@pytest.mark.parametrize("recursive", ["OFF", "ON"])
@pytest.mark.parametrize("attack", REFUSED_ON_ARTIFACTS.values(), ids=REFUSED_ON_ARTIFACTS)
def test_artifacts_refuse(raw: sqlite3.Connection, attack: str, recursive: str) -> None:
    raw.execute(f"PRAGMA recursive_triggers = {recursive}")
    before = dump(raw)
    digest = raw.execute("SELECT digest FROM artifacts").fetchone()[0]
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(attack.replace("DIGEST", digest))
    assert dump(raw) == before


def test_artifacts_have_no_rowid_to_replace_by(raw: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError, match="rowid"):
        raw.execute("INSERT OR REPLACE INTO artifacts(rowid, digest) VALUES (1, 'x')")


@pytest.mark.parametrize(
    "values",
    [
        {"stream": "run\u00e9"},
        {"stream": "run\n1"},
        {"stream": ""},
        {"stream": "run\x00x"},
        {"type": "Caf\u00e9"},
        {"recorded_at": "now\x7f"},
        {"payload": b"{}"},
        {"hash": "c" * 63},
    ],
)
def test_the_tables_refuse_values_of_another_form(raw: sqlite3.Connection, values: dict[str, object]) -> None:
    stream = values.get("stream", "run2")
    whole = {"type": "X", "recorded_at": "t", "payload": "{}", "hash": HASH, **values, "stream": stream}
    with pytest.raises(sqlite3.IntegrityError, match=r"CHECK constraint failed|cannot store BLOB"):
        raw.execute(
            "INSERT INTO events(seq, version, prev_hash, stream, type, recorded_at, payload, hash) "
            "VALUES (4, 1, :prev_hash, :stream, :type, :recorded_at, :payload, :hash)",
            {**whole, "prev_hash": head(raw)},
        )


def test_sqlite_utils_can_neither_change_nor_delete(tmp_path: Path) -> None:
    database = sqlite_utils.Database(fill(tmp_path / "ledger.db"))
    events = database.table("events")
    first = dict(next(events.rows_where("seq = 1")))
    attacks: list[Callable[[], object]] = [
        lambda: events.update(1, {"payload": "{}"}),
        lambda: events.delete(1),
        lambda: events.insert({**first, "payload": "{}"}, replace=True),
        lambda: events.insert({**first, "payload": "{}"}, ignore=True),
        lambda: events.upsert({**first, "payload": "{}"}, pk="seq"),
    ]
    for attack in attacks:
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            attack()
    assert dict(next(events.rows_where("seq = 1"))) == first
    assert events.count == 3
    database.close()


# --- what no trigger can refuse is found instead --------------------------------------------------------------------


def test_a_dropped_trigger_goes_unseen_by_sqlite_but_not_by_us(raw: sqlite3.Connection, tmp_path: Path) -> None:
    raw.execute("DROP TRIGGER events_no_update")
    raw.execute("UPDATE events SET payload = '{}' WHERE seq = 2")
    assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    raw.close()
    with LedgerReader(tmp_path / "ledger.db") as ledger:
        missing = set(schema.published()) - set(ledger.schema_objects())
    assert [item.name for item in missing] == ["events_no_update"]
    with pytest.raises(UnreadableLedger, match=r"differ from events/schema\.sql: trigger events_no_update"):
        LedgerWriter(tmp_path / "ledger.db")


def test_an_object_of_another_hand_is_seen(raw: sqlite3.Connection, tmp_path: Path) -> None:
    raw.execute("CREATE TRIGGER quiet BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END")
    raw.close()
    with LedgerReader(tmp_path / "ledger.db") as ledger:
        extra = set(ledger.schema_objects()) - set(schema.published())
    assert [(item.type, item.name) for item in extra] == [("trigger", "quiet")]
    with pytest.raises(UnreadableLedger, match="trigger quiet"):
        LedgerWriter(tmp_path / "ledger.db")


def test_writable_schema_is_seen(raw: sqlite3.Connection, tmp_path: Path) -> None:
    raw.execute("PRAGMA writable_schema = ON")
    raw.execute("UPDATE sqlite_schema SET sql = replace(sql, 'IS NOT', 'IS') WHERE name = 'events_append'")
    raw.close()
    with pytest.raises(UnreadableLedger, match="trigger events_append"):
        LedgerWriter(tmp_path / "ledger.db")


def test_the_published_text_holds_every_object_word_for_word(raw: sqlite3.Connection) -> None:
    stored = raw.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    assert len(stored) == 12
    for name, sql in stored:
        assert f"\n{sql};\n" in schema.SQL, name


def test_the_ids_of_the_file(raw: sqlite3.Connection, tmp_path: Path) -> None:
    assert raw.execute("PRAGMA application_id").fetchone() == (int.from_bytes(b"gpu1"),)
    assert raw.execute("PRAGMA user_version").fetchone() == (1,)


# --- views ------------------------------------------------------------------------------------------------------------


def fired(round_: int) -> RuleFired:
    return RuleFired(
        cell=CELL,
        round=round_,
        firing=f"{STREAM}/{round_}.1",
        rule="uncoalesced",
        rule_version=1,
        prescription="coalesce",
        incumbent="a" * 64,
        context=CONTEXT,
        clauses=(),
        abstained=(),
        blocked=(),
        predicted_gain=1.5,
    )


def registration() -> RunRegistered:
    claim = ClaimRegistered(
        claim="total-5x",
        text="at least five times as fast",
        problem="matmul",
        contract="fp32-strict",
        pool="seed",
        comparison="total",
        at_least=5.0,
        decimals=1,
    )
    other = msgspec.structs.replace(claim, claim="another", text="another")
    return RunRegistered(
        run="run1",
        seed=7,
        executor="local",
        origin=None,
        max_rounds=3,
        plan=(CELL,),
        problems=(),
        policy=Policy(credible_num=19, credible_den=20),
        statistics=Statistics(blocks=20, tail_num=1, tail_den=20, margin=0.01, floor_multiple=2.0),
        claims=(other, claim),
        code={},
        environment={},
    )


@pytest.fixture
def views(tmp_path: Path) -> Iterator[sqlite_utils.Database]:
    path = tmp_path / "ledger.db"
    evidence: dict[str, Any] = {
        "cell": CELL,
        "rule": "uncoalesced",
        "rule_version": 1,
        "confidence": 0.5,
        "firings": (),
    }
    with LedgerWriter(path) as ledger:
        ledger.append("run1", 0, [registration()])
        ledger.append(STREAM, 0, [fired(1), judged(1, "FASTER", ratio=1.5), fired(2), judged(2, "SLOWER", ratio=0.5)])
        quiet = msgspec.structs.replace(
            judged(3, "AMBIGUOUS"), credit="neutral", interval=None, margin=None, inert=True
        )
        retired = RuleRetired(**evidence, context=CONTEXT, successes=0, failures=4)
        ledger.append(STREAM, 4, [fired(3), quiet, retired, RulePromoted(**evidence, successes=4, failures=0)])
        stated = ClaimStated(run="run1", claim="total-5x", medians=(5.5, 5.25), lowers=(5.0, 5.0), answer="upheld")
        ledger.append("run1", 1, [stated])
    database = sqlite_utils.Database(path)
    yield database
    database.close()


def test_the_view_of_rounds(views: sqlite_utils.Database) -> None:
    rows = list(views.query("SELECT * FROM rounds"))
    assert rows[0] == {
        "seq": 3,
        "stream": "run1/matmul/fp32-strict/seed/on/1",
        "problem": "matmul",
        "contract": "fp32-strict",
        "pool": "seed",
        "arm": "on",
        "repetition": 1,
        "round": 1,
        "rule": "uncoalesced",
        "verdict": "FASTER",
        "reason": "interval beyond margin",
        "inert": 0,
        "ratio": 1.5,
        "lower": 1.25,
        "upper": 1.75,
        "credit": "success",
    }
    assert [(row["round"], row["verdict"], row["ratio"], row["inert"]) for row in rows[1:]] == [
        (2, "SLOWER", 0.5, 0),
        (3, "AMBIGUOUS", None, 1),
    ]


def test_the_view_of_rules(views: sqlite_utils.Database) -> None:
    assert list(views.query("SELECT * FROM rules")) == [
        {
            "stream": STREAM,
            "rule": "uncoalesced",
            "rule_version": 1,
            "fired": 3,
            "success": 1,
            "failure": 1,
            "neutral": 1,
            "retired": 1,
            "promoted": 1,
        }
    ]


def test_the_view_of_claims(views: sqlite_utils.Database) -> None:
    (row,) = views.query("SELECT * FROM claims")
    assert (row["seq"], row["claim"], row["text"]) == (10, "total-5x", "at least five times as fast")
    assert (row["comparison"], row["at_least"], row["answer"]) == ("total", 5.0, "upheld")
    assert (json.loads(row["medians"]), json.loads(row["lowers"])) == ([5.5, 5.25], [5.0, 5.0])


def test_a_reader_that_trusts_no_schema_can_use_the_tables(raw: sqlite3.Connection, tmp_path: Path) -> None:
    # JSON functions are not "innocuous" in SQLite before 3.41: within a table they would make the whole file unreadable.
    careful = sqlite3.connect(tmp_path / "ledger.db")
    careful.execute("PRAGMA trusted_schema = OFF")
    assert dump(careful) == dump(raw)
    assert careful.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    careful.close()


def test_views_of_an_empty_ledger_are_empty(tmp_path: Path) -> None:
    LedgerWriter(tmp_path / "ledger.db").close()
    connection = sqlite3.connect(tmp_path / "ledger.db")
    assert [
        connection.execute(f"SELECT count(*) FROM {view}").fetchone() for view in ("rounds", "rules", "claims")
    ] == [
        (0,),
        (0,),
        (0,),
    ]
    connection.close()


def test_too_old_a_sqlite_is_refused_in_words() -> None:
    with pytest.raises(BadInput, match=r"SQLite 3\.36\.0 is too old: expected 3\.37\.0"):
        schema.require_sqlite((3, 36, 0))
