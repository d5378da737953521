"""Ledgers of a chain of generators, forged one statement at a time: the verifier finds each. The kernels are made up."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gpusolver.engine.generators import chain as chains
from gpusolver.engine.generators.base import Answer, Asked, Candidate
from gpusolver.events.artifacts import digest
from gpusolver.events.model import Exchange
from gpusolver.problems.contract import load
from gpusolver.problems.sources import config_of, with_config
from gpusolver.replay.verify import verify

from ..engine.support import FakeExecutor, play, request
from .tamper import Line, add_artifact, first, lines, rewrite

TILED = next(v.source for v in load("kb_matmul_scalar").variants if v.prescription == "coalesce") or ""
SOURCES = tuple(with_config(TILED, {**config_of(TILED), "BLOCK_K": k}) for k in (32, 64, 128))
ANSWER = f"So:\n```python\n{SOURCES[0].replace('ieee', 'tf32')}```\n"


class Sweeps:
    """Declines TF32, and makes three tilings of one kernel."""

    name = "triton"

    def serves(self, asked: Asked) -> bool:
        return True

    def propose(self, asked: Asked) -> Candidate | None:
        return Candidate(sources=SOURCES) if asked.prescription == "coalesce" else None


class Answers:
    """Says at first that it would rather not, then gives a kernel in TF32: as a model does, but out of a text of this file."""

    name = "llm"

    def serves(self, asked: Asked) -> bool:
        return asked.prescription == "enable_tf32"

    def propose(self, asked: Asked) -> Candidate | None:
        return self.ask(asked).candidate

    def facts(self) -> dict[str, str]:
        return {"llm_model": "made up"}

    def ask(self, asked: Asked) -> Answer:
        if "def matmul_scalar" in asked.source:
            return _answer("I would rather not.", "no_code", None)
        return _answer(ANSWER, "code", SOURCES[0].replace("ieee", "tf32"))


def _answer(text: str, status: str, source: str | None) -> Answer:
    exchange = Exchange(
        status=status, prompt=digest(b"{}"), answer=digest(text.encode()), finish="stop", waited_s=0.0, took_s=0.5,
        prompt_tokens=3, completion_tokens=4, cost_usd=None,
    )  # fmt: skip
    return Answer(
        candidate=None if source is None else Candidate(sources=(source,)),
        outcome="no_answer" if source is None else "made",
        model="made up",
        exchanges=(exchange,),
        artifacts=(("application/json", b"{}"), ("text/plain", text.encode())),
    )


@pytest.fixture(scope="module")
def chained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Round 1: TF32 is declined and not answered, unserved. Round 2: a sweep of three. Round 3: the answer's kernel."""
    path = tmp_path_factory.mktemp("chained") / "ledger.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains, "opened", lambda names: {"triton": Sweeps(), "llm": Answers()})
        asked = request("on", rounds=3)
        play(
            path,
            FakeExecutor(),
            type(asked)(problems=asked.problems, arms=("on",), rounds=3, generators=("triton", "llm")),
        )
    return path


@pytest.fixture
def ledger(chained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(chained, tmp_path / "ledger.db"))


def kinds(path: Path, upto: int | None = None) -> set[str]:
    return {finding.kind for finding in verify(path, True).findings}


def test_the_ledger_is_clean_and_says_what_is_not_checked(ledger: Path) -> None:
    report = verify(ledger, True)
    assert report.findings == ()
    told = [
        e.kind
        for e in lines(ledger)
        if "/" in e.stream and e.kind not in ("KernelGated", "Profiled", "NoiseFloorMeasured")
    ]
    assert told[:15] == [
        "RoundAttempted", "KernelGenerated",
        "RoundAttempted", "RuleFired", "GeneratorAsked", "GeneratorAsked", "PrescriptionUnserved",
        "RoundAttempted", "RuleFired", "GeneratorAsked", "SourcesSwept", "KernelGenerated", "RoundJudged",
        "RoundAttempted", "RuleFired",
    ]  # fmt: skip
    (note,) = [note for note in report.notes if "not checked: origin of candidate" in note]
    assert "1 round by triton" in note and "llm" not in note  # what stands in an answer is derived again


def no_chain(events: list[Line], path: Path) -> None:
    del first(events, "RunRegistered").body["generators"]


def a_word_of_the_catalogue(events: list[Line], path: Path) -> None:
    first(events, "RunRegistered").body["generators"] = ["triton", "llm", "flag"]


def another_order(events: list[Line], path: Path) -> None:
    first(events, "RunRegistered").body["generators"] = ["llm", "triton"]


def a_stranger(events: list[Line], path: Path) -> None:
    first(events, "GeneratorAsked").body["generator"] = "moonlight"


def asked_by_another_firing(events: list[Line], path: Path) -> None:
    first(events, "GeneratorAsked").body["firing"] += "1"


def asked_in_another_attempt(events: list[Line], path: Path) -> None:
    first(events, "GeneratorAsked").body["attempt"] = 2


def no_answer_without_a_question(events: list[Line], path: Path) -> None:
    first(events, "GeneratorAsked", generator="triton").body["outcome"] = "no_answer"


def code_where_there_is_none(events: list[Line], path: Path) -> None:
    body = first(events, "GeneratorAsked", generator="llm").body
    body["exchanges"][0]["status"] = "code"


def a_truncated_answer_that_is_taken(events: list[Line], path: Path) -> None:
    first(events, "GeneratorAsked", generator="llm", outcome="made").body["exchanges"][0]["finish"] = "length"


def another_answer(events: list[Line], path: Path) -> None:
    body = first(events, "GeneratorAsked", generator="llm", outcome="made").body
    body["exchanges"][0]["answer"] = add_artifact(path, ANSWER.replace("tf32", "ieee").encode())


def a_kernel_of_ones_own(events: list[Line], path: Path) -> None:
    first(events, "KernelGenerated", generator="llm").body["source"] = add_artifact(path, b"# tuned by hand\n")


def another_of_the_sweep(events: list[Line], path: Path) -> None:
    made, swept = first(events, "KernelGenerated", generator="triton"), first(events, "SourcesSwept")
    made.body["source"] = swept.body["sources"][0]


def another_choice(events: list[Line], path: Path) -> None:
    first(events, "SourcesSwept").body["chosen"] = 2


def no_choice(events: list[Line], path: Path) -> None:
    first(events, "SourcesSwept").body["chosen"] = None


def a_sweep_with_the_incumbent(events: list[Line], path: Path) -> None:
    swept = first(events, "SourcesSwept")
    swept.body["sources"][0] = first(events, "RoundAttempted", round=2).body["incumbent"]


def a_sweep_of_anothers(events: list[Line], path: Path) -> None:
    first(events, "SourcesSwept").body["generator"] = "llm"


def a_sweep_is_dropped(events: list[Line], path: Path) -> None:
    """And with it what else was tried."""
    events.remove(first(events, "SourcesSwept"))


def a_sweep_is_cut(events: list[Line], path: Path) -> None:
    first(events, "GeneratorAsked", outcome="made").body["sources"] = 2


def sources_of_who_declined(events: list[Line], path: Path) -> None:
    first(events, "GeneratorAsked", outcome="declined").body["sources"] = 1


def a_sweep_that_nobody_offered(events: list[Line], path: Path) -> None:
    at = events.index(first(events, "SourcesSwept"))
    events[at - 1].body["outcome"] = "declined"


def a_candidate_by_another(events: list[Line], path: Path) -> None:
    first(events, "KernelGenerated", generator="triton").body.update(generator="llm", variant="coalesce:llm")


def a_file_out_of_nowhere(events: list[Line], path: Path) -> None:
    first(events, "KernelGenerated", generator="triton").body.update(generator="file", variant="coalesce:x.py")


def unserved_though_it_was_made(events: list[Line], path: Path) -> None:
    first(events, "GeneratorAsked", generator="triton").body["outcome"] = "made"


def another_prescription_unserved(events: list[Line], path: Path) -> None:
    first(events, "PrescriptionUnserved").body["prescription"] = "coalesce"


def a_reason_of_ones_own(events: list[Line], path: Path) -> None:
    first(events, "PrescriptionUnserved").body["reason"] = "it was late"


def unserved_of_another_kernel(events: list[Line], path: Path) -> None:
    first(events, "PrescriptionUnserved").body["incumbent"] = "0" * 64


def unavailable_and_yet_a_round(events: list[Line], path: Path) -> None:
    body = first(events, "GeneratorAsked", generator="llm").body
    body["outcome"], body["exchanges"][0]["status"], body["exchanges"][0]["answer"] = "unavailable", "timeout", None


def an_unserved_round_is_dropped(events: list[Line], path: Path) -> list[Line]:
    """The rule that nobody could serve would have fired again."""
    return [e for e in events if e.body.get("round") != 1 or "/" not in e.stream]


def nobody_was_asked(events: list[Line], path: Path) -> list[Line]:
    """Round 1 ends unserved, and all of its declines are gone."""
    return [e for e in events if not (e.kind == "GeneratorAsked" and e.body["round"] == 1)]


def one_decline_is_dropped(events: list[Line], path: Path) -> list[Line]:
    """Of round 3, whose candidate is the model's: that the first of the chain had none."""
    return [
        e
        for e in events
        if not (e.kind == "GeneratorAsked" and e.body["round"] == 3 and e.body["generator"] == "triton")
    ]


def an_offer_after_the_candidate(events: list[Line], path: Path) -> None:
    at = events.index(first(events, "SourcesSwept"))
    events[at - 1], events[at + 1] = events[at + 1], events[at - 1]


FORGERIES: list[tuple[Callable[[list[Line], Path], list[Line] | None], str]] = [
    (no_chain, "generated source"),
    (a_word_of_the_catalogue, "registration"),
    (another_order, "generated source"),
    (a_stranger, "generated source"),
    (asked_by_another_firing, "generated source"),
    (asked_in_another_attempt, "round"),
    (no_answer_without_a_question, "generated source"),
    (code_where_there_is_none, "generated source"),
    (a_truncated_answer_that_is_taken, "generated source"),
    (another_answer, "generated source"),
    (a_kernel_of_ones_own, "generated source"),
    (another_of_the_sweep, "generated source"),
    (another_choice, "sweep"),
    (no_choice, "sweep"),
    (a_sweep_with_the_incumbent, "sweep"),
    (a_sweep_of_anothers, "sweep"),
    (a_sweep_is_dropped, "generated source"),
    (a_sweep_is_cut, "sweep"),
    (sources_of_who_declined, "generated source"),
    (a_sweep_that_nobody_offered, "sweep"),
    (a_candidate_by_another, "generated source"),
    (a_file_out_of_nowhere, "generated source"),
    (unserved_though_it_was_made, "generated source"),
    (another_prescription_unserved, "round"),
    (a_reason_of_ones_own, "round"),
    (unserved_of_another_kernel, "round"),
    (unavailable_and_yet_a_round, "order of events"),
    (an_unserved_round_is_dropped, "match"),
    (nobody_was_asked, "generated source"),
    (one_decline_is_dropped, "generated source"),
    (an_offer_after_the_candidate, "order of events"),
]


@pytest.mark.parametrize(("forgery", "kind"), FORGERIES, ids=[f.__name__ for f, _ in FORGERIES])
def test_a_forgery_is_found(ledger: Path, forgery: Callable[[list[Line], Path], list[Line] | None], kind: str) -> None:
    rewrite(ledger, lambda events: forgery(events, ledger))
    assert kind in kinds(ledger)


def test_an_answer_that_is_not_there_is_missed(ledger: Path) -> None:
    rewrite(
        ledger,
        lambda events: first(events, "GeneratorAsked", generator="llm").body["exchanges"][0].update(prompt="0" * 64),
    )
    assert "artifact missing" in kinds(ledger)
