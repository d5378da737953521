"""Words of workers as they are recorded: without this machine's folders, and otherwise as they were said."""

from __future__ import annotations

import sys

import pytest

from gpusolver.engine.placeless import placeless


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ('File "/opt/here/site-packages/torch/nn/modules.py", line 3', 'File "torch/nn/modules.py", line 3'),
        ('File "/opt/here/tree/gpusolver/engine/worker/serving.py"', 'File "gpusolver/engine/worker/serving.py"'),
        ("/tmp/gpusolver-worker-ab12_x9z/candidate_0.py:7: TypeError", "candidate_0.py:7: TypeError"),
        ("/elsewhere/gpusolver-import-a1b2c3d4/log", "log"),
        ("rel_l2 0.1 / 0.2, a/b", "rel_l2 0.1 / 0.2, a/b"),
        ("/usr/other/lib.so", "/usr/other/lib.so"),
        ("", ""),
    ],
)
def test_paths_begin_where_modules_are_found(monkeypatch: pytest.MonkeyPatch, said: str, kept: str) -> None:
    monkeypatch.setattr(sys, "path", ["", "/opt/here", "/opt/here/site-packages/", "/opt/here/tree"])
    assert placeless(said) == kept
