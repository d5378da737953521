"""Random structured edits of a ledger by someone who holds the file: rows, artifacts, schema, chain and seal. No code under test."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import zlib
from base64 import b64encode
from collections.abc import Callable
from contextlib import closing
from copy import copy
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from gpusolver.engine.seal_keys import SigningKey, signature_line

from .tamper import compact, event_hash, sha

_COLUMNS = "seq, stream, version, type, recorded_at, CAST(payload AS TEXT), prev_hash, hash"
SCHEMA_EDITS = (
    "DROP TRIGGER events_no_update",
    "DROP TRIGGER artifacts_append",
    "DROP VIEW claims",
    "DROP INDEX events_by_stream",
    "CREATE VIEW winners AS SELECT 1",
    "CREATE TABLE notes(x)",
    "CREATE TRIGGER quiet AFTER INSERT ON events BEGIN SELECT 1; END",
    "DROP VIEW rounds; CREATE VIEW rounds AS SELECT seq, stream, 'FASTER' AS verdict FROM events",
    "DROP TRIGGER events_no_delete; CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN SELECT 1; END",
    "DROP INDEX events_by_stream; CREATE INDEX events_by_stream ON events(stream)",
)


@dataclass
class Row:
    """One event, every column."""

    seq: int
    stream: str
    version: int
    kind: str
    at: str
    payload: str
    previous: str
    hash: str

    def body(self) -> Any:
        return json.loads(self.payload)


@dataclass
class Book:
    """A ledger in memory; `rechain` is how it will be written: numbered and hashed anew, or as the rows are."""

    rows: list[Row]
    artifacts: dict[str, bytes]
    rechain: bool = True
    schema: str = ""
    renumber: bool = True
    replaced: dict[str, bytes | None] = field(default_factory=dict)
    added: dict[str, bytes] = field(default_factory=dict)

    def store(self, content: bytes) -> str:
        self.added[sha(content)] = content
        return sha(content)


def read(path: Path) -> Book:
    """The ledger as it stands."""
    with closing(sqlite3.connect(path)) as db:
        rows = [Row(*found) for found in db.execute(f"SELECT {_COLUMNS} FROM events ORDER BY seq")]
        found = db.execute("SELECT digest, codec, content FROM artifacts")
        artifacts = {digest: zlib.decompress(c) if codec == "zlib" else bytes(c) for digest, codec, c in found}
    return Book(rows, artifacts)


def forked(book: Book) -> Book:
    """A copy whose rows may be altered."""
    return Book([copy(row) for row in book.rows], book.artifacts)


def write(book: Book, base: Path, target: Path) -> Path:
    """The base file with the book's rows, artifacts and schema."""
    shutil.copy(base, target)
    with closing(sqlite3.connect(target, isolation_level=None)) as db:
        for setting in ("synchronous = OFF", "journal_mode = OFF", "ignore_check_constraints = ON"):
            db.execute(f"PRAGMA {setting}")
        db.execute("BEGIN")
        triggers = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        db.execute("DELETE FROM events")
        rows = chained(book.rows) if book.rechain else numbered(book.rows) if book.renumber else book.rows
        for r in rows:
            values = (r.seq, r.stream, r.version, r.kind, r.at, r.payload, r.previous, r.hash)
            db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        for digest, content in book.replaced.items():
            if content is None:
                db.execute("DELETE FROM artifacts WHERE digest = ?", (digest,))
            else:
                new = (zlib.compress(content), len(content), digest)
                db.execute("UPDATE artifacts SET codec = 'zlib', content = ?, size = ? WHERE digest = ?", new)
        for digest, content in book.added.items():
            row = (digest, "application/json", len(content), "zlib", zlib.compress(content))
            db.execute("INSERT OR IGNORE INTO artifacts VALUES (?, ?, ?, ?, ?)", row)
        for _, sql in triggers:
            db.execute(sql)
        db.execute("COMMIT")
        db.executescript(book.schema)
    return target


def numbered(rows: list[Row]) -> list[Row]:
    """Consecutive numbers, every other column as it is."""
    for seq, row in enumerate(rows, start=1):
        row.seq = seq
    return rows


def chained(rows: list[Row]) -> list[Row]:
    """Numbers, versions and hashes anew, as a forger who knows the page makes them."""
    previous, versions = "0" * 64, dict[str, int]()
    for row in numbered(rows):
        row.version = versions[row.stream] = versions.get(row.stream, 0) + 1
        row.previous = previous
        row.hash = event_hash(row.seq, row.version, previous, row.stream, row.kind, row.at, row.payload.encode())
        previous = row.hash
    return rows


# --- edits of the events, of which `last` are there to be edited (a seal behind them is no part of that) ---------------------

Edit = Callable[[random.Random, Book, int], None]


def reorder(rng: random.Random, book: Book, last: int) -> None:
    """Two events change places."""
    i, j = rng.sample(range(last), 2)
    book.rows[i], book.rows[j] = book.rows[j], book.rows[i]
    book.rechain = rng.random() < 0.7


def drop_tail(rng: random.Random, book: Book, last: int) -> None:
    """The end is cut off, and the seal with it or not; the chain stays whole without a new hash."""
    cut = rng.randint(1, last // 2)
    del book.rows[last - cut : last]
    if rng.random() < 0.5:
        del book.rows[last - cut :]
    book.rechain = rng.random() < 0.5


def drop_middle(rng: random.Random, book: Book, last: int) -> None:
    """Some events vanish."""
    start = rng.randrange(1, last - 1)
    del book.rows[start : min(last - 1, start + rng.randint(1, 12))]
    book.rechain = rng.random() < 0.8
    book.renumber = rng.random() < 0.5


def drop_run(rng: random.Random, book: Book, last: int) -> None:
    """A whole run vanishes; the second may take the first one's name."""
    run = rng.choice(["run1", "run2"])
    book.rows = [row for row in book.rows if row.stream.partition("/")[0] != run]
    if run == "run1" and rng.random() < 0.7:
        for row in book.rows:
            row.stream, row.payload = row.stream.replace("run2", "run1"), row.payload.replace('"run2', '"run1')


def drop_cell(rng: random.Random, book: Book, last: int) -> None:
    """One cell is measured anew: everything that it held vanishes, as if it were still to come."""
    stream = rng.choice(sorted({row.stream for row in book.rows[:last] if "/" in row.stream}))
    book.rows = [row for row in book.rows if row.stream != stream]


def duplicate(rng: random.Random, book: Book, last: int) -> None:
    """An event stands there twice."""
    book.rows.insert(rng.randrange(last), copy(book.rows[rng.randrange(last)]))


def swap_artifacts(rng: random.Random, book: Book, last: int) -> None:
    """Two artifacts change contents, or one is altered or gone, under the digests that the events name."""
    one, other = rng.sample(sorted(book.artifacts), 2)
    match rng.randrange(3):
        case 0:
            book.replaced |= {one: book.artifacts[other], other: book.artifacts[one]}
        case 1:
            content = bytearray(book.artifacts[one] or b"x")
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            book.replaced[one] = bytes(content)
        case _:
            book.replaced[one] = None
    book.rechain = False


def point_elsewhere(rng: random.Random, book: Book, last: int) -> None:
    """An event names another artifact of the ledger."""
    named = [(row, digest) for row in book.rows[:last] for digest in book.artifacts if digest in row.payload]
    row, digest = rng.choice(named)
    other = rng.choice([each for each in sorted(book.artifacts) if each != digest])
    row.payload = row.payload.replace(digest, other)


def forge_retire(rng: random.Random, book: Book, last: int) -> None:
    """A rule is retired that was not, or was and is not."""
    retired = [row for row in book.rows[:last] if row.kind == "RuleRetired"]
    if retired and rng.random() < 0.4:
        book.rows.remove(rng.choice(retired))
        return
    at, fired = rng.choice([(i, row) for i, row in enumerate(book.rows[:last]) if row.kind == "RuleFired"])
    body = fired.body()
    made = {
        "type": "RuleRetired",
        "cell": body["cell"],
        "rule": body["rule"],
        "rule_version": body["rule_version"],
        "context": body["context"],
        "successes": 0,
        "failures": 4,
        "confidence": 1 / 6,
        "firings": [body["firing"]],
        "rev": 1,
    }
    later = [i for i in range(at, last) if book.rows[i].kind == "RoundJudged" and book.rows[i].stream == fired.stream]
    place = (later[0] if later else at) + 1
    book.rows.insert(place, Row(0, fired.stream, 0, "RuleRetired", fired.at, compact(made), "", ""))


def alter_sample(rng: random.Random, book: Book, last: int) -> None:
    """One time of one measurement is another, properly stored and named."""
    measured = [row for row in book.rows[:last] if '"samples":"' in row.payload and row.kind != "TilesSwept"]
    digest = rng.choice(measured).body()["samples"]
    samples = json.loads(book.artifacts[digest])
    block = rng.choice(samples["blocks"])
    block[rng.randrange(4)] += rng.choice([-1, 1]) * rng.choice([1, 7, 500, 20_000])
    other = book.store(compact(samples).encode())
    for row in book.rows[:last]:
        row.payload = row.payload.replace(digest, other)


def alter_payload(rng: random.Random, book: Book, last: int) -> None:
    """One value of one event is another."""
    row = book.rows[rng.randrange(last)]
    body = row.body()
    holder, name = rng.choice(list(_leaves(body)))
    holder[name] = _another(rng, holder[name])
    row.payload = compact(body)
    book.rechain = rng.random() < 0.7


def _leaves(value: Any) -> Any:
    for name, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, (dict, list)):
            yield from _leaves(item)
        elif name not in ("type", "rev") and item is not None:
            yield value, name


def _another(rng: random.Random, value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + rng.choice([-1, 1, 10])
        case float():
            return value * rng.choice([0.5, 0.999, 1.001, 2.0]) + 0.125
        case _:
            at = rng.randrange(len(value) + 1)
            return value[:at] + rng.choice("0aZ ") + value[at + 1 :] + rng.choice(["", "x"])


def back_date(rng: random.Random, book: Book, last: int) -> None:
    """One event, or all, happened on another day."""
    day = f"2025-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}T{rng.randint(0, 23):02d}:00:00.000Z"
    for row in book.rows[:last] if rng.random() < 0.5 else [book.rows[rng.randrange(last)]]:
        row.at = day
    book.rechain = rng.random() < 0.8


def replace_schema(rng: random.Random, book: Book, last: int) -> None:
    """A table, view, trigger or index is not the published one."""
    book.schema, book.rechain = rng.choice(SCHEMA_EDITS), False


def move_stream(rng: random.Random, book: Book, last: int) -> None:
    """An event lies in another stream."""
    row = book.rows[rng.randrange(last)]
    row.stream = rng.choice(sorted({other.stream for other in book.rows[:last]} - {row.stream}))


EDITS: tuple[Edit, ...] = (
    reorder,
    drop_tail,
    drop_middle,
    drop_run,
    drop_cell,
    duplicate,
    swap_artifacts,
    point_elsewhere,
    forge_retire,
    alter_sample,
    alter_payload,
    back_date,
    replace_schema,
    move_stream,
)


# --- what the forger makes of the seal behind the events ---------------------------------------------------------------------


def reseal(rng: random.Random, book: Book, own: SigningKey) -> str:
    """Leave the seal, remove it, or put one in its place that fits the forged events: unsigned, or signed by a key of the same name."""
    at = next((i for i, row in enumerate(book.rows) if row.kind == "LedgerSealed"), None)
    if at is None or not book.rechain:
        return "left"
    choice = rng.choice(["left", "removed", "unsigned", "own key"])
    if choice == "removed":
        del book.rows[at]
    if choice in ("unsigned", "own key"):
        leaves = [bytes.fromhex(row.hash) for row in chained(book.rows[:at])]
        text = f"{own.name}\n{at}\n{b64encode(head(leaves)).decode()}\n"
        note = text if choice == "unsigned" else f"{text}\n{signature_line(own, text)}"
        book.rows[at].payload = compact(
            {"type": "LedgerSealed", "size": at, "root": head(leaves).hex(), "note": note, "rev": 1}
        )
    return choice


def head(leaves: list[bytes]) -> bytes:
    """The root of section 9, as the page defines it."""
    if len(leaves) < 2:
        return sha256(b"\0" + leaves[0]).digest() if leaves else sha256(b"").digest()
    k = 1 << ((len(leaves) - 1).bit_length() - 1)
    return sha256(b"\1" + head(leaves[:k]) + head(leaves[k:])).digest()
