"""Which file system holds a path, read off texts as Linux writes them, and the refusal of those of another machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpusolver.events import BadInput, mounts
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter

from .examples import STREAM, attempt, fill

MOUNTS = (
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "40 22 0:35 / /home rw shared:2 - nfs4 server:/home rw,vers=4.2\n"
    "41 40 8:2 / /home/ana/my\\040disk rw - xfs /dev/sdb1 rw\n"
    "not a line of it\n"
)


@pytest.mark.parametrize(
    ("folder", "type_"),
    [("/home/ana", "nfs4"), ("/home/ana/my disk/x", "xfs"), ("/homework", "ext4"), ("/", "ext4"), ("/home", "nfs4")],
)
def test_the_mount_that_holds_a_folder(folder: str, type_: str) -> None:
    assert mounts.holding(MOUNTS, folder) == type_


def test_the_later_of_two_mounts_on_one_place_counts() -> None:
    assert mounts.holding(MOUNTS + "50 22 0:40 / /home rw - tmpfs tmpfs rw\n", "/home/ana") == "tmpfs"
    assert mounts.holding("", "/") is None


def as_on(monkeypatch: pytest.MonkeyPatch, folder: Path, kind: str) -> None:
    """Have the system say that `folder` is a mount of this type."""
    text = folder.parent / "mountinfo"
    text.write_text(f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n40 22 0:35 / {folder} rw - {kind} server:/home rw\n")
    monkeypatch.setattr(mounts, "_MOUNTS", text)


@pytest.mark.parametrize("kind", ["nfs4", "lustre", "cifs", "fuse.sshfs"])
def test_b100_a_network_file_system_is_refused_by_its_type_and_may_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Before anything is made, also where SQLite would start there; a closed ledger is read all the same."""
    folder = tmp_path / "home"
    folder.mkdir()
    there = fill(folder / "closed.db")
    as_on(monkeypatch, folder, kind)
    for path in (folder / "ledger.db", there):
        with pytest.raises(BadInput, match=rf"{path.name} lies on {kind}, a network file system.*local disk"):
            LedgerWriter(path)
    assert os.listdir(folder) == ["closed.db"]
    with LedgerReader(there) as reader:
        assert reader.head()[0] == 3


def test_a_local_disk_below_a_network_mount_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    as_on(monkeypatch, tmp_path / "home", "nfs4")
    with LedgerWriter(tmp_path / "ledger.db") as ledger:
        assert ledger.append(STREAM, 0, [attempt(0)]) == [1]


def test_where_the_system_does_not_tell_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "_MOUNTS", tmp_path / "none")
    assert mounts.type_of(tmp_path) is None
    LedgerWriter(tmp_path / "ledger.db").close()
