"""Compiler caches between workers: a source's own entries come back, another's never, and what a candidate puts there harms nobody."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpusolver.engine import caches as module
from gpusolver.engine.caches import FOLDERS, Caches

from .candidates import HONEST, assert_unharmed, gate, open_worker


def entries(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def put(folder: Path, name: str, content: bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def test_entries_of_all_folders_come_back_under_their_own_paths(tmp_path: Path) -> None:
    caches = Caches(tmp_path)
    mine = {f"{folder}/deep/entry": folder.encode() for folder in FOLDERS.values()}
    for name, content in mine.items():
        put(tmp_path, name, content)
    caches.keep("a")
    caches.empty()
    assert entries(tmp_path) == {}
    caches.lay(["a", "one that nobody knows"])
    assert entries(tmp_path) == mine


def test_what_is_no_cache_is_left_alone(tmp_path: Path) -> None:
    put(tmp_path, "log", b"words")
    caches = Caches(tmp_path)
    caches.keep("a")
    caches.empty()
    assert entries(tmp_path) == {"log": b"words"}


def test_the_first_that_is_kept_stays(tmp_path: Path) -> None:
    caches = Caches(tmp_path)
    put(tmp_path, "triton/k", b"1")
    caches.keep("a")
    put(tmp_path, "triton/k", b"2")
    caches.keep("a")
    caches.empty()
    caches.lay(["a"])
    assert entries(tmp_path) == {"triton/k": b"1"}


def test_links_and_pipes_are_neither_followed_nor_waited_for(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    put(elsewhere, "secret", b"not to be read, not to be removed")
    folder = tmp_path / "worker"
    (folder / "triton").mkdir(parents=True)
    caches = Caches(folder)
    (folder / "triton" / "link").symlink_to(elsewhere / "secret")
    (folder / "triton" / "folder").symlink_to(elsewhere)
    (folder / "inductor").symlink_to(elsewhere)
    os.mkfifo(folder / "triton" / "pipe")
    put(folder, "cuda", b"a file where a folder belongs")
    caches.keep("a")
    caches.empty()
    assert [path.name for path in folder.iterdir()] == []
    caches.lay(["a"])
    assert entries(folder) == {} and entries(elsewhere) == {"secret": b"not to be read, not to be removed"}


def test_more_than_the_limits_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 10)
    monkeypatch.setattr(module, "_MOST_FILES", 2)
    caches = Caches(tmp_path)
    put(tmp_path, "triton/one", b"12345")
    put(tmp_path, "triton/two", b"67890")
    caches.keep("fits")
    put(tmp_path, "triton/three", b"")
    caches.keep("one file too many")
    (tmp_path / "triton" / "three").unlink()
    put(tmp_path, "triton/two", b"678901")
    caches.keep("one byte too many")
    caches.empty()
    caches.lay(["one file too many", "one byte too many"])
    assert entries(tmp_path) == {}
    caches.lay(["fits"])
    assert entries(tmp_path) == {"triton/one": b"12345", "triton/two": b"67890"}


def test_the_oldest_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES_IN_ALL", 10)
    caches = Caches(tmp_path)
    for source in ("a", "b", "c"):
        put(tmp_path, f"triton/{source}", b"12345")
        caches.keep(source)
        caches.empty()
    caches.lay(["a", "b", "c"])
    assert set(entries(tmp_path)) == {"triton/b", "triton/c"}


# A candidate that leaves an entry in every cache, for whoever comes to run it, and one that refuses to run where it finds any.
POISONS = (
    """
import os, pathlib
for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "CUDA_CACHE_PATH"):
    folder = pathlib.Path(os.environ[name])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "entry").write_text("poison")
"""
    + HONEST
)
FINDS = """
import os, pathlib
for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "CUDA_CACHE_PATH"):
    assert not pathlib.Path(os.environ[name], "entry").exists(), "found what another left"
"""


@pytest.mark.torch_cpu
def test_no_worker_of_another_source_finds_what_a_candidate_left_in_the_caches() -> None:
    executor = open_worker()
    try:
        assert gate(executor, POISONS) == ("passed", "within limits")
        assert gate(executor, FINDS + HONEST) == ("passed", "within limits")
        assert_unharmed(executor)
    finally:
        executor.close()
