"""Cells of a database as rows, whatever a hostile file holds in them. Never raises on a cell."""

from __future__ import annotations

from .rows import ArtifactRow, Row


class Text(bytes):
    """The bytes of a cell stored as text, so that text, blob and undecodable text can be told apart."""


def row(cells: tuple[object, ...]) -> Row:
    """The event of (seq, stream, version, type, recorded_at, payload as a blob, prev_hash, hash, payload is text)."""
    seq, stream, version, type_, recorded_at, payload, prev_hash, hash_, payload_is_text = cells
    if (
        type(seq) is int
        and type(stream) is str
        and type(version) is int
        and type(type_) is str
        and type(recorded_at) is str
        and type(payload) is bytes
        and type(prev_hash) is str
        and type(hash_) is str
        and payload_is_text
    ):
        return Row(seq, stream, version, type_, recorded_at, payload, prev_hash, hash_)
    texts = {"stream": stream, "type": type_, "recorded_at": recorded_at, "prev_hash": prev_hash, "hash": hash_}
    ill = [name for name, cell in {"seq": seq, "version": version}.items() if type(cell) is not int]
    ill += [name for name, cell in texts.items() if not isinstance(cell, (str, Text))]
    ill += [] if payload_is_text else ["payload"]
    return Row(
        seq=whole(seq),
        stream=text(stream),
        version=whole(version),
        type=text(type_),
        recorded_at=text(recorded_at),
        payload=payload if isinstance(payload, bytes) else b"",
        prev_hash=text(prev_hash),
        hash=text(hash_),
        ill=tuple(ill),
    )


def artifact(cells: tuple[object, ...]) -> ArtifactRow:
    """The artifact of (digest, media type, size, codec, content), read with texts as `Text`."""
    digest, media_type, size, codec, content = cells
    ill = [
        name
        for name, cell in {"digest": digest, "media_type": media_type, "codec": codec}.items()
        if not isinstance(cell, Text)
    ]
    ill += [] if type(size) is int else ["size"]
    ill += [] if type(content) is bytes else ["content"]
    blob = content if isinstance(content, bytes) else b""
    return ArtifactRow(text(digest), text(media_type), whole(size), text(codec), bytes(blob), tuple(ill))


def whole(cell: object) -> int:
    """The integer in the cell, else 0."""
    return cell if type(cell) is int else 0


def text(cell: object) -> str:
    """The text in the cell, undecodable bytes as surrogate escapes; else ""."""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "surrogateescape")
    return cell if isinstance(cell, str) else ""
