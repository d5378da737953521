"""A clean forged ledger, made once, and a fresh copy of it for each test that alters one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .forge import forge


@pytest.fixture(scope="session")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A consistent ledger; not to be altered."""
    return forge(tmp_path_factory.mktemp("clean") / "ledger.db", repetitions=1)


@pytest.fixture
def ledger(clean: Path, tmp_path: Path) -> Path:
    """A copy to alter."""
    return Path(shutil.copy(clean, tmp_path / "ledger.db"))
