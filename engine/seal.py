"""Seals a ledger, and proves what a seal covers. Never changes an event; refuses to seal a chain that does not hold."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import msgspec

from ..events import merkle
from ..events.chain import GENESIS, event_hash
from ..events.codec import decode
from ..events.errors import BadInput, ToolFailed, UnreadableLedger
from ..events.files import size as bytes_of
from ..events.model import LedgerSealed
from ..events.reader import LedgerReader
from ..events.rows import Row
from ..events.writer import LedgerWriter
from .seal_keys import SigningKey, check_name, signature_line

STREAM = "seal"
DEFAULT_ORIGIN = "gpusolver"


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    """A seal as appended: event `seq` over the first `size` events; `head` is its own hash, the ledger's new head."""

    seq: int
    size: int
    root: str
    note: str
    head: str
    checkpoint: Path


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One event with every column, so that its hash can be computed from the proof alone."""

    seq: int
    stream: str
    version: int
    type: str
    recorded_at: str
    payload: str
    prev_hash: str
    hash: str


class Inclusion(msgspec.Struct, frozen=True, kw_only=True, tag_field="proof", tag="inclusion"):
    """Shows that `event` is leaf `event.seq` - 1 of the tree of `size` leaves; hashes in lower-case hex."""

    event: Place
    size: int
    root: str
    path: tuple[str, ...]
    checkpoint: str | None


class Consistency(msgspec.Struct, frozen=True, kw_only=True, tag_field="proof", tag="consistency"):
    """Shows that the tree of `to_size` leaves begins with the tree of `from_size`."""

    from_size: int
    to_size: int
    from_root: str
    to_root: str
    path: tuple[str, ...]
    from_checkpoint: str | None
    to_checkpoint: str | None


def seal(path: Path, key: SigningKey | None, origin: str | None, checkpoint: Path | None) -> Sealed:
    """Append LedgerSealed over all events so far, and write its note to `checkpoint` (by default LEDGER.<size>.checkpoint).

    BadInput where there is nothing to seal or the file exists; UnreadableLedger where the chain does not hold.
    """
    if not path.exists():
        raise BadInput(f"{path}: expected a ledger to seal, found no file")
    named = check_name(origin or (key.name if key is not None else DEFAULT_ORIGIN), "origin")
    with LedgerWriter(path) as ledger:  # holds the lock, so nothing is appended between reading and sealing
        with LedgerReader(path) as reader:
            tree = merkle.Tree()
            for leaf in leaves(reader.rows(), path):
                tree.append(leaf)
        if tree.size == 0:
            raise BadInput(f"{path} has no events: expected something to seal; record a run first")
        note = _note(named, tree.size, tree.root(), key)
        event = LedgerSealed(size=tree.size, root=tree.root().hex(), note=note)
        target = checkpoint or path.with_name(f"{path.name}.{tree.size}.checkpoint")
        with _new_file(target) as descriptor:
            (seq,) = ledger.append(STREAM, ledger.version(STREAM), [event])
            _write(descriptor, note, target)
        head = ledger.head()[1]
    return Sealed(seq=seq, size=tree.size, root=event.root, note=note, head=head, checkpoint=target)


def _note(origin: str, size: int, root: bytes, key: SigningKey | None) -> str:
    """The checkpoint: a C2SP signed note, or its three lines alone without a key."""
    text = f"{origin}\n{size}\n{b64encode(root).decode()}\n"
    return text if key is None else f"{text}\n{signature_line(key, text)}"


@contextmanager
def _new_file(path: Path) -> Iterator[int]:
    """A file that was not there before, removed again where nothing was sealed."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        raise BadInput(f"{path} exists already: a checkpoint is never overwritten; name another with -o") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}; name another file with -o") from error
    try:
        yield descriptor
    except BaseException:
        if bytes_of(path) == 0:
            path.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _write(descriptor: int, note: str, path: Path) -> None:
    try:
        os.write(descriptor, note.encode())
        os.fsync(descriptor)
    except OSError as error:
        raise ToolFailed(
            f"the ledger is sealed, but {path} could not be written ({error.strerror}); the checkpoint is this text:\n{note}"
        ) from error


def leaves(rows: Iterator[Row], path: Path) -> Iterator[bytes]:
    """The leaf of every event: its hash as computed from the row. UnreadableLedger where the stored one is another."""
    last, previous = 0, GENESIS
    for row in rows:
        found = event_hash(row.seq, row.version, previous, row.stream, row.type, row.recorded_at, row.payload)
        if row.seq != last + 1 or row.ill or found != row.hash or row.prev_hash != previous:
            raise UnreadableLedger(
                f"{path}: event {row.seq} does not continue the chain: expected event {last + 1} with hash {found}, found "
                f"{row.hash}; gpusolver replay {path} says more"
            )
        last, previous = row.seq, found
        yield bytes.fromhex(found)


def prove_event(path: Path, seq: int, size: int | None) -> Inclusion:
    """That event `seq` is among the first `size` events; by default those of the last seal that covers it (a signed one first), else all."""
    with LedgerReader(path) as reader:
        seals, total = _seals(reader), reader.head()[0]
        size = size or _best(seals, seq, total)
        _check_size(path, size, total)
        if not 0 < seq <= size:
            raise BadInput(f"{path}: expected an event from 1 to {size}, found {seq}; name it with --event")
        row = next(islice(reader.rows(), seq - 1, None))
        root, nodes = _proved(reader, path, merkle.inclusion_ranges(seq - 1, size), size)
    return Inclusion(
        event=Place(
            seq=row.seq,
            stream=row.stream,
            version=row.version,
            type=row.type,
            recorded_at=row.recorded_at,
            payload=_text(row, path),
            prev_hash=row.prev_hash,
            hash=row.hash,
        ),
        size=size,
        root=root,
        path=nodes,
        checkpoint=seals.get(size),
    )


def prove_growth(path: Path, old: int, new: int | None) -> Consistency:
    """That the first `new` events begin with the first `old`; by default those of the last seal after it, else all."""
    with LedgerReader(path) as reader:
        seals, total = _seals(reader), reader.head()[0]
        new = new or _best(seals, old + 1, total)
        _check_size(path, new, total)
        ranges = merkle.consistency_ranges(old, new)
        root, nodes = _proved(reader, path, ranges, new)
        old_root = merkle.root(islice(leaves(reader.rows(), path), old)).hex()
    return Consistency(
        from_size=old,
        to_size=new,
        from_root=old_root,
        to_root=root,
        path=nodes,
        from_checkpoint=seals.get(old),
        to_checkpoint=seals.get(new),
    )


def _best(seals: dict[int, str], least: int, total: int) -> int:
    """The size to prove against: of the last signed seal over `least` events, else the last seal, else all there are."""
    covering = [size for size in seals if size >= least]
    signed = [size for size in covering if "\n\n" in seals[size]]
    return max(signed or covering or [total])


def _text(row: Row, path: Path) -> str:
    try:
        return row.payload.decode()
    except UnicodeDecodeError as error:
        raise UnreadableLedger(
            f"{path}: event {row.seq}: payload is not UTF-8 ({error.reason}); JSON cannot hold it"
        ) from error


def _check_size(path: Path, size: int, total: int) -> None:
    if not 0 < size <= total:
        raise BadInput(f"{path}: expected a size from 1 to {total}, the number of its events; found {size}")


def _seals(reader: LedgerReader) -> dict[int, str]:
    """The notes of the ledger's seals by size."""
    found: dict[int, str] = {}
    for row in reader.rows():
        if row.type == LedgerSealed.__name__:
            event = decode(row.type, row.payload)
            if isinstance(event, LedgerSealed):
                found[event.size] = event.note
    return found


def _proved(reader: LedgerReader, path: Path, ranges: list[merkle.Range], size: int) -> tuple[str, tuple[str, ...]]:
    """(root, proof) by one pass over the first `size` events."""
    tree = merkle.Tree()

    def watched() -> Iterator[bytes]:
        for leaf in islice(leaves(reader.rows(), path), size):
            tree.append(leaf)
            yield leaf

    coming = watched()
    nodes = tuple(node.hex() for node in merkle.subtree_roots(coming, ranges))
    for _ in coming:  # the root takes the leaves behind the last subtree, too
        pass
    return tree.root().hex(), nodes
