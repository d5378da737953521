"""Another ledger's statements as an examination: its kernels, taken from its artifacts, gated and compared again. Measures nothing itself."""

from __future__ import annotations

import secrets
from itertools import takewhile

from msgspec.structs import replace

from ..events.errors import BadInput
from ..events.model import Origin
from ..events.reader import LedgerReader
from ..events.writer import LedgerWriter
from ..problems.contract import Problem, declared, load
from ..problems.imported import restored
from ..projections.examination import fold
from ..projections.reproduction import KINDS, Compared, statements
from .examination import ExaminationRequest
from .examining import Pair, Subject

TIMES = 3
"""How often each pair is compared: as often as the reference experiment was repeated."""


def reproduction(
    first: LedgerReader, seed: int, kinds: tuple[str, ...] = KINDS, times: int = TIMES, origin: Origin | None = None
) -> ExaminationRequest:
    """The examination that asks again what `first` states (as it was at `origin`, where given).

    BadInput where it states nothing, or its packaged problems are not those installed here.
    """
    origin = origin or _now(first)
    told = takewhile(lambda row: row.seq <= origin.events, first.recorded())
    found = statements(((row.seq, row.stream, row.event) for row in told), kinds)
    if not found.stated:
        raise BadInput(
            f"{first.path}: expected a ledger with {', '.join(kinds)} that rest on a measured pair, found none to reproduce "
            "(a run by another objective than latency states no speeds)"
        )
    problems = {pair.problem.name: _installed(first, pair) for pair in found.pairs.values()}
    subjects = {
        _named(pair, source): Subject(
            name=_named(pair, source),
            problem=problems[pair.problem.name],
            contract=pair.contract,
            source=_text(first, source),
        )
        for pair in found.pairs.values()
        for source in (pair.left, pair.right)
    }
    pairs = tuple(
        Pair(
            name=name,
            subject=_named(pair, pair.left),
            left=subjects[_named(pair, pair.left)].source,
            right=subjects[_named(pair, pair.right)].source,
            times=times,
            truth=found.verdicts[name],
        )
        for name, pair in found.pairs.items()
    )
    return ExaminationRequest(
        purpose=f"reproduction of the ledger with head {origin.head[:12]}",
        subjects=tuple(subjects.values()),
        pairs=pairs,
        rules=(),
        seed=seed,
        origin=origin,
        statements=found.stated,
    )


def begun(ledger: LedgerWriter, first: LedgerReader) -> tuple[int, Origin]:
    """Seed and origin of the unfinished reproduction of `first` in a ledger, though `first` has grown since.

    Else its head as it is, and a new seed: inputs that nobody could prepare a kernel for.
    """
    for view in fold((stored.stream, stored.event) for stored in ledger.events()).values():
        registered = view.registration
        if view.stopped is None and registered is not None and registered.origin:
            origin = registered.origin
            if first.before(origin.events + 1, "")[:2] == (origin.events, origin.head):
                return registered.seed, origin
    return secrets.randbits(63), _now(first)


def _now(first: LedgerReader) -> Origin:
    events, head = first.head()
    return Origin(head=head, events=events)


def _named(pair: Compared, source: str) -> str:
    return f"{pair.problem.name}/{pair.contract}/{source[:12]}"


def _installed(first: LedgerReader, pair: Compared) -> Problem:
    """The problem as installed here, or of an imported one as the ledger holds it: its reference and its inputs are what the kernels are gated on, so it
    must be the registered one.
    """
    if isinstance(pair.problem.files, dict):
        return restored(pair.problem, first.artifact)
    problem = load(pair.problem.name)
    here = replace(declared(problem, "flags"), prescriptions=())
    if here != pair.problem:
        raise BadInput(
            f"{first.path}: registered {pair.problem.name} with digest {pair.problem.digest}, found {here.digest} installed here. "
            "Reproduce it with the version of gpusolver that wrote it (its registration names that in environment)."
        )
    return problem


def _text(first: LedgerReader, source: str) -> str:
    try:
        return first.artifact(source).decode()
    except UnicodeDecodeError:
        raise BadInput(f"{first.path}: source {source} is no text: run gpusolver replay on this ledger") from None
