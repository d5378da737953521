"""What an examination may register: subjects, pairs and numbers in their ranges. Never looks at a measurement."""

from __future__ import annotations

from collections.abc import Iterator

from ..events.model import ExaminationRegistered, PairDeclared, SubjectDeclared
from .exam_grammar import ExamEvents
from .findings import Findings
from .objective import by_time
from .registered import Demand, problem_demands, statistics_demands
from .reproduced import demands
from .shelf import Shelf
from .statistic import PATHS

HALVES = ("calibration", "held-out", "")


def check_examination(exam: ExamEvents, findings: Findings) -> None:
    """Report every demand of FORMAT.md section 7 that the registration does not meet."""
    if exam.registered is None:
        findings.add(exam.first, "registration", f"ExaminationRegistered of {exam.run}", "absent")
        return
    seq, registered = exam.registered
    rules = {rule.name for rule in exam.table()}
    named = [subject.name for subject in registered.subjects]
    for words, found, met in (
        *statistics_demands(registered.statistics),
        (
            "no objective: an examination compares times",
            registered.statistics.objective,
            by_time(registered.statistics),
        ),
        *_names("subject", named),
        *_names("pair", [pair.name for pair in registered.pairs]),
        *(demand for subject in registered.subjects for demand in _subject(subject, rules)),
        *(demand for pair in registered.pairs for demand in _pair(pair, named)),
        *demands(registered),
    ):
        if not met:
            findings.add(seq, "registration", words, found)
    if exam.device is not None:
        findings.expect(exam.device[0], "origin", None, exam.device[1].origin_seq, "origin_seq")


def check_sources(seq: int, registered: ExaminationRegistered, shelf: Shelf, findings: Findings) -> None:
    """Every registered source is a text; one that is not there is reported with the other missing artifacts."""
    sources = {subject.name: subject.source for subject in registered.subjects}
    sources |= {f"{pair.name} left": pair.left for pair in registered.pairs}
    sources |= {f"{pair.name} right": pair.right for pair in registered.pairs}
    for name, digest in sources.items():
        if digest in shelf:
            with findings.derivation(seq, f"source {name}"):
                shelf.text(digest)


def _names(what: str, names: list[str]) -> Iterator[Demand]:
    yield f"each {what} once, by a name", names, len(set(names)) == len(names) and all(names)


def _subject(subject: SubjectDeclared, rules: set[str]) -> Iterator[Demand]:
    yield from problem_demands(subject.problem)
    name = f"subject {subject.name}"
    known = subject.contract in PATHS and subject.contract in subject.problem.limits
    yield f"{name}: a known contract that its problem has limits for", subject.contract, known
    yield f"{name}: half one of {HALVES}", subject.half, subject.half in HALVES
    expected = (*subject.fires, *subject.silent)
    yield f"{name}: rules of the seeded table", expected, set(expected) <= rules
    yield f"{name}: each rule once in fires and silent", expected, len(set(expected)) == len(expected)


def _pair(pair: PairDeclared, subjects: list[str]) -> Iterator[Demand]:
    yield f"pair {pair.name}: a registered subject", pair.subject, pair.subject in subjects
    yield f"pair {pair.name}: times from 1", pair.times, pair.times >= 1
