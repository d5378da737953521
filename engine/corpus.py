"""A folder of candidates of known nature (cheats, honest oddities, attacks on the process) as subjects for the gate. Runs none of them."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec

from ..events.errors import BadInput
from ..problems.contract import load
from .examining import Subject

HONEST = "honest"
FILE = "corpus.toml"


class Candidate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file: `where` is `cpu`, `gpu` or `both`; `time_cheat` marks right answers whose time is the lie."""

    file: str
    problem: str
    contract: str
    where: str
    about: str
    fault: str = ""
    time_cheat: bool = False

    @property
    def kind(self) -> str:
        """The folder: cheats, honest or survival."""
        return self.file.partition("/")[0]


class _Toml(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    candidate: tuple[Candidate, ...]


def candidates(folder: Path, device: str) -> tuple[Candidate, ...]:
    """Those for a device (`cuda` or `cpu`), in the order of corpus.toml; BadInput where there is no such file or it says something else."""
    path = folder / FILE
    try:
        listed = msgspec.toml.decode(path.read_bytes(), type=_Toml).candidate
    except (OSError, msgspec.DecodeError) as error:
        raise BadInput(f"--corpus {folder}: expected {FILE} with [[candidate]] entries, found: {error}") from error
    here = "gpu" if device == "cuda" else "cpu"
    return tuple(one for one in listed if one.where in ("both", here))


def subjects(folder: Path, device: str, hostile: int) -> tuple[Subject, ...]:
    """So many hostile candidates, cheats and attacks in turn, each followed by an honest one: again and again, every text made its own.

    A cheat whose answers are right is left out: the gate says nothing against it, and a clock must. So is what is no text: no ledger
    can hold it as a source.
    """
    found = [one for one in candidates(folder, device) if not one.time_cheat and _is_text(folder / one.file)]
    good = [one for one in found if one.kind == HONEST]
    bad = _in_turn(*([one for one in found if one.kind == kind] for kind in ("cheats", "survival")))
    if not bad or not good:
        raise BadInput(
            f"--corpus {folder}: expected hostile and honest candidates for {device}, found {len(found)} in all"
        )
    made = []
    for number, one, after in zip(range(1, hostile + 1), itertools.cycle(bad), itertools.cycle(good), strict=False):
        made += [_subject(folder, one, number), _subject(folder, after, number)]
    return tuple(made)


def _in_turn(*kinds: list[Candidate]) -> list[Candidate]:
    """One of each kind, then the next of each; what is left of the longest at the end."""
    return [one for row in itertools.zip_longest(*kinds) for one in row if one is not None]


def _is_text(path: Path) -> bool:
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _subject(folder: Path, one: Candidate, number: int) -> Subject:
    text = (folder / one.file).read_text(encoding="utf-8")
    return Subject(
        name=f"{one.file} #{number}",
        problem=load(one.problem),
        contract=one.contract,
        source=f"{text}\n# candidate {number}\n",
    )
