"""Ed25519 keys in C2SP note form, and signature lines made with them. Never prints, logs or overwrites a private key."""

from __future__ import annotations

import os
import re
import stat
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ..events.errors import BadInput, ToolFailed

_MARK = "PRIVATE+KEY+"
_ED25519 = b"\x01"
_NAME = re.compile(r"[!-*,-~]{1,200}")


class SigningKey(NamedTuple):
    """A private key under a name; `vkey` is what others check its signatures with."""

    name: str
    vkey: str
    key_id: bytes
    private: Any


def check_name(name: str, what: str) -> str:
    """The name of a key or the origin of a checkpoint; BadInput where a signed note could not hold it."""
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"{what} {name[:80]!r}: expected 1 to 200 printable ASCII characters without space and '+', such as "
            "example.com/ledgers; name another"
        )
    return name


def generate(path: Path, name: str) -> SigningKey:
    """Write a new private key to `path`, for its owner alone to read; BadInput where there is a file already."""
    check_name(name, "key name")
    private = _ed25519().generate()
    seed = private.private_bytes_raw()
    key = _key(name, seed)
    text = f"{_MARK}{name}+{key.key_id.hex()}+{b64encode(_ED25519 + seed).decode()}\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise BadInput(f"{path} exists already: a key is never overwritten; name a new file") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}; name a file in a folder that can be") from error
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return key


def load(path: Path) -> SigningKey:
    """Read a private key; BadInput where the file is none, or where others than its owner may read it."""
    try:
        mode, text = path.stat().st_mode, path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read ({error}); expected a key that gpusolver keygen made") from error
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise BadInput(
            f"{path} has mode {stat.S_IMODE(mode):03o}: expected 600, for whoever reads the key can sign; chmod 600 {path}"
        )
    name, _, rest = text.removeprefix(_MARK).partition("+")
    key_id, _, encoded = rest.partition("+")
    try:
        raw = b64decode(encoded.encode(), validate=True)
    except (NotBase64, ValueError):
        raw = b""
    if not text.startswith(_MARK) or raw[:1] != _ED25519 or len(raw) != 33 or not _NAME.fullmatch(name):
        raise BadInput(
            f"{path} is no Ed25519 key: expected one line {_MARK}name+id+base64, as gpusolver keygen writes it"
        )
    key = _key(name, raw[1:])
    if key.key_id.hex() != key_id:
        raise BadInput(
            f"{path}: expected the id {key.key_id.hex()} of this name and key, found {key_id[:20]}; restore the file"
        )
    return key


def signature_line(key: SigningKey, text: str) -> str:
    """The line of a signed note under `text`, which ends in a newline."""
    return f"— {key.name} {b64encode(key.key_id + key.private.sign(text.encode())).decode()}\n"


def _key(name: str, seed: bytes) -> SigningKey:
    private = _ed25519().from_private_bytes(seed)
    public = _ED25519 + private.public_key().public_bytes_raw()
    key_id = sha256(name.encode() + b"\n" + public).digest()[:4]
    return SigningKey(name, f"{name}+{key_id.hex()}+{b64encode(public).decode()}", key_id, private)


def _ed25519() -> Any:
    """The class of private keys; imported only where one is used, so that unsigned seals do without it."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise ToolFailed(
            "keys need the package cryptography, which is not installed: pip install 'gpusolver[seal]', or seal without --key "
            "(root only, unsigned)"
        ) from error
    return Ed25519PrivateKey
