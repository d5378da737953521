"""The files of problems that were imported: they are in the ledger, and give the digest that was declared. Never runs one."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import UnsetType

from ..events.model import Event, ExaminationRegistered, ProblemDeclared, RunRegistered
from .findings import Findings
from .shelf import Shelf

# Prescriptions are those of the run's chain, and what is more in the file asks nothing of a ledger.
_STATED = (
    *("name", "family", "dtype", "shape", "flops", "min_bytes", "weight"),
    *("limits", "mixed_limits", "kind_limits"),
)
DUE = ("eager.py", "problem.toml", "reference.py", "start.py")


def problems_of(event: Event) -> Iterator[ProblemDeclared]:
    """The problems that a registration declares."""
    if isinstance(event, RunRegistered):
        yield from event.problems
    elif isinstance(event, ExaminationRegistered):
        seen = list[ProblemDeclared]()
        # By all that is declared, not by name: subjects of two runs may name two problems alike, and each has its files.
        for problem in (subject.problem for subject in event.subjects):
            if problem not in seen:
                seen.append(problem)
                yield problem


def files_of(problem: ProblemDeclared) -> dict[str, str]:
    """Digests by path; none for a problem that lies in a folder of gpusolver's."""
    return {} if isinstance(problem.files, UnsetType) else problem.files


def check_files(seq: int, problems: Iterable[ProblemDeclared], shelf: Shelf, findings: Findings) -> set[str]:
    """Every imported problem's digest against its files (FORMAT.md 4). Files that are not there are reported as missing artifacts.

    Returns the digests of the files that the problems were imported from.
    """
    originals: set[str] = set()
    for problem in problems:
        if isinstance(problem.files, UnsetType):
            continue
        originals |= {digest for path, digest in problem.files.items() if path == "original.py"}
        named = sorted(problem.files)
        if not set(DUE) <= set(named) or not all(_plain(path) for path in named):
            findings.add(
                seq, "registration", f"files of {problem.name}: {', '.join(DUE)}, by plain relative paths", named
            )
            continue
        if problem.files["problem.toml"] in shelf:
            _check_stated(seq, problem, shelf.raw(problem.files["problem.toml"]), findings)
        if all(digest in shelf for digest in problem.files.values()):
            found = _digest({path: shelf.raw(digest) for path, digest in problem.files.items()})
            findings.expect(seq, "registration", found, problem.digest, f"digest of the files of {problem.name}")
    return originals


def _check_stated(seq: int, problem: ProblemDeclared, text: bytes, findings: Findings) -> None:
    """What problem.toml states is what was declared: no limit is wider, and no count smaller, than where it came from."""
    try:
        stated = tomllib.loads(text.decode())
    except ValueError as error:
        findings.add(seq, "registration", f"problem.toml of {problem.name} in TOML", str(error))
        return
    said = msgspec.to_builtins(problem)
    for name in _STATED:
        findings.expect(seq, "registration", stated.get(name), said.get(name), f"{name} of {problem.name}")


def _plain(path: str) -> bool:
    return all(part and not part.startswith(".") and part != "__pycache__" for part in path.split("/"))


def _digest(files: dict[str, bytes]) -> str:
    whole = hashlib.sha256()
    whole.update(b"gpusolver-problem-1\n")
    for name, content in sorted((path.encode(), content) for path, content in files.items()):
        whole.update(str(len(name)).encode() + b":" + name + b"\n")
        whole.update(str(len(content)).encode() + b":" + content + b"\n")
    return whole.hexdigest()
