"""Ledgers by a hostile writer who chains anew, against imported problems: what is declared is checked, whatever it is called."""

from __future__ import annotations

from pathlib import Path

from gpusolver.replay.verify import verify

from .exam_forge import forge_examination
from .tamper import Line, add_artifact, rewrite


def test_files_hide_behind_no_later_problem_of_the_same_name(tmp_path: Path) -> None:
    """The first subject's problem has files that do not give its digest; the last one of that name has none."""
    path = forge_examination(tmp_path / "ledger.db")
    false = add_artifact(path, b"print('another')\n")

    def change(events: list[Line]) -> None:
        subjects = events[0].body["subjects"]
        names = ("eager.py", "problem.toml", "reference.py", "start.py")
        subjects[0]["problem"] = {**subjects[0]["problem"], "files": dict.fromkeys(names, false)}
        assert subjects[0]["problem"]["name"] in {s["problem"]["name"] for s in subjects[1:]}

    rewrite(path, change)
    told = [f for f in verify(path, True).findings if f.kind == "registration"]
    assert any("digest of the files" in str(f) for f in told), told
