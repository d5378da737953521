"""The chain in whole runs on made-up kernels: who is asked, what is kept, how a round without a candidate ends; the verifier agrees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from gpusolver.engine.cli import report_command, run_command
from gpusolver.engine.generators import chain as chains
from gpusolver.engine.generators import registry
from gpusolver.engine.generators.base import Answer, Asked, Candidate, Generator
from gpusolver.engine.recorded import RecordedExecutor
from gpusolver.engine.registration import RunRequest, check_request
from gpusolver.engine.run import Run
from gpusolver.events.errors import BadInput, ToolFailed
from gpusolver.events.model import (
    GeneratorAsked,
    KernelGenerated,
    PrescriptionUnserved,
    RoundInterrupted,
    RoundJudged,
    RunRegistered,
    RunStopped,
    SourcesSwept,
)
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter
from gpusolver.problems.contract import load
from gpusolver.problems.sources import config_of, with_config, with_precision
from gpusolver.projections.spending import spending
from gpusolver.replay.verify import verify

from ..engine.support import (
    FakeExecutor,
    assert_verifies,
    cell_events,
    ignore,
    matmul_story,
    only,
    play,
    request,
    stored,
)
from .model_server import KEY, Said, serving

TILED = next(v.source for v in load("kb_matmul_scalar").variants if v.prescription == "coalesce") or ""
SOURCES = tuple(with_config(TILED, {**config_of(TILED), "BLOCK_K": k}) for k in (32, 64, 128))


class Stub:
    """A generator that gives what it was made with for the prescriptions that it was made for."""

    def __init__(self, name: str, prescriptions: tuple[str, ...], make: Callable[[Asked], Candidate | None]) -> None:
        self.name, self._prescriptions, self._make = name, prescriptions, make
        self.asked: list[Asked] = []

    def serves(self, asked: Asked) -> bool:
        return asked.prescription in self._prescriptions

    def propose(self, asked: Asked) -> Candidate | None:
        self.asked.append(asked)
        return self._make(asked)


def chained(monkeypatch: pytest.MonkeyPatch, *generators: Generator) -> tuple[str, ...]:
    """Chains are opened with these; their names."""
    known = {generator.name: generator for generator in generators}

    def opened(names: tuple[str, ...]) -> dict[str, Generator]:
        return {name: known[name] for name in names if name != registry.CATALOGUE}

    monkeypatch.setattr(chains, "opened", opened)
    return tuple(known)


def asked_for(*generators: str, rounds: int = 6, contract: str = "tf32-allowed") -> RunRequest:
    return msgspec.structs.replace(request("on", rounds=rounds, contract=contract), generators=generators)


def one(*sources: str) -> Callable[[Asked], Candidate]:
    return lambda asked: Candidate(sources=sources, note="made up", artifacts=(("text/plain", b"how"),))


def test_the_default_registers_no_chain(tmp_path: Path) -> None:
    """Ledgers of the catalogue alone keep their bytes."""
    path = tmp_path / "ledger.db"
    play(path, FakeExecutor(), asked_for("catalogue"))
    (registered,) = [r.event for r in stored(path) if isinstance(r.event, RunRegistered)]
    assert registered.generators is msgspec.UNSET and b'"generators":' not in msgspec.json.encode(registered)


def test_the_next_generator_serves_what_the_catalogue_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a catalogue `coalesce` falls to the second generator, since the first declines; its sweep chooses BLOCK_K 64, as the
    story's kernels are fastest there; its strict twin, by its precision line, is compared as any other."""
    declines = Stub("triton", ("coalesce",), lambda asked: None)
    sweeps = Stub("cuda", ("coalesce",), one(*SOURCES))
    path = tmp_path / "ledger.db"
    play(path, FakeExecutor(), asked_for(*chained(monkeypatch, declines, sweeps), contract="fp32-strict"))
    events = cell_events(path, "on")
    (registered,) = [r.event for r in stored(path) if isinstance(r.event, RunRegistered)]
    assert registered.generators == ("triton", "cuda") and registered.problems[0].prescriptions == ("coalesce",)
    outcomes = [(e.generator, e.outcome) for e in only(events, GeneratorAsked)]
    assert outcomes[:2] == [("triton", "declined"), ("cuda", "made")]
    swept, made = only(events, SourcesSwept)[0], only(events, KernelGenerated)[1]
    assert swept.chosen == 1 and (made.generator, made.variant) == ("cuda", "coalesce:cuda")
    assert text(path, made.source) == SOURCES[1] and text(path, only(events, GeneratorAsked)[1].artifacts[0]) == "how"
    assert only(events, RoundJudged)[0].verdict == "FASTER"
    assert sweeps.asked[0].source == load("kb_matmul_scalar").start and sweeps.asked[0].signals["load_eff"] == 0.4
    assert sweeps.asked[0].chip == "H200"
    assert_verifies(path)
    assert any("not checked: origin of candidate" in note and "by cuda" in note for note in verify(path, True).notes)


def test_the_catalogue_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.db"
    stub = Stub("triton", ("enable_tf32", "coalesce"), one(*SOURCES))
    chained(monkeypatch, stub)
    play(path, FakeExecutor(), asked_for("catalogue", "triton", rounds=9))
    makers = [e.generator for e in only(cell_events(path, "on"), KernelGenerated)]
    assert makers[:6] == ["start", "flag", "flag", "flag", "flag", "template"]
    assert_verifies(path)


def test_a_round_without_a_candidate_ends_and_is_not_prescribed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`enable_tf32` is unserved on the start, whose next rule then is `coalesce`; on the tiled kernel it is asked again."""
    tf32 = Stub("cuda", ("enable_tf32",), lambda asked: None)
    tiles = Stub("triton", ("coalesce",), one(SOURCES[1]))
    path = tmp_path / "ledger.db"
    play(path, FakeExecutor(), asked_for(*chained(monkeypatch, tf32, tiles)))
    events = cell_events(path, "on")
    unserved = only(events, PrescriptionUnserved)
    assert [(e.round, e.prescription) for e in unserved] == [(1, "enable_tf32"), (3, "enable_tf32")]
    assert unserved[0].incumbent != unserved[1].incumbent
    assert [(e.round, e.rule, e.verdict) for e in only(events, RoundJudged)] == [(2, "uncoalesced", "FASTER")]
    assert only(events, RunStopped)[0].reason == "no rule fires"
    assert_verifies(path)


def test_what_a_gate_refused_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep's fastest is wrong: the gate refuses it, the next sweep has the others only, then nothing is left but the incumbent."""

    def kernels(source: str):  # type: ignore[no-untyped-def]
        found = matmul_story(source)
        return msgspec.structs.replace(found, ns=1, errors=(0.5, 0.5)) if "# wrong" in source else found

    stub = Stub("triton", ("coalesce",), one(SOURCES[0], SOURCES[1], SOURCES[2] + "# wrong\n"))
    path = tmp_path / "ledger.db"
    play(path, FakeExecutor(kernels), asked_for(*chained(monkeypatch, stub), contract="fp32-strict"))
    events = cell_events(path, "on")
    assert [len(e.sources) for e in only(events, SourcesSwept)] == [3, 2]
    assert [(e.verdict, e.reason) for e in only(events, RoundJudged)][:2] == [
        ("AMBIGUOUS", "gate: wrong_result"),
        ("FASTER", "interval beyond margin"),
    ]
    assert "gate: wrong_result" in stub.asked[1].failure and "# wrong" in stub.asked[1].failure
    assert_verifies(path)


def test_a_sweep_of_which_nothing_runs_falls_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kernels(source: str):  # type: ignore[no-untyped-def]
        found = matmul_story(source)
        return msgspec.structs.replace(found, fault="compile_error") if "# broken" in source else found

    broken = Stub("triton", ("coalesce",), one(SOURCES[0] + "# broken\n", SOURCES[1] + "# broken\n"))
    whole = Stub("cuda", ("coalesce",), one(SOURCES[1]))
    path = tmp_path / "ledger.db"
    play(path, FakeExecutor(kernels), asked_for(*chained(monkeypatch, broken, whole), contract="fp32-strict"))
    events = cell_events(path, "on")
    assert only(events, SourcesSwept)[0].chosen is None
    assert only(events, KernelGenerated)[1].generator == "cuda"
    assert_verifies(path)


def test_a_flag_is_passed_over_where_the_source_has_no_precision_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A candidate without the line can win; the flag that then fires has nothing to set, and the round is unserved."""
    plain = SOURCES[1].replace('PRECISION = "ieee"', 'PRECISION: str = "ieee"')
    path = tmp_path / "ledger.db"
    stub = Stub("triton", ("reduce_registers", "coalesce"), one(plain))
    chained(monkeypatch, stub)
    view = play(path, FakeExecutor(), asked_for("triton", "catalogue"))
    assert view.stopped == "plan completed"
    events = cell_events(path, "on")
    assert only(events, KernelGenerated)[-1].generator == "triton"
    assert only(events, PrescriptionUnserved)[-1].prescription == "enable_tf32"
    assert_verifies(path)


def test_a_recorded_run_answers_a_chain_and_refuses_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = chained(monkeypatch, Stub("cuda", ("coalesce",), one(*SOURCES)))
    path, again = tmp_path / "ledger.db", tmp_path / "again.db"
    play(path, FakeExecutor(), asked_for(*names))
    executor = RecordedExecutor(path)
    with LedgerWriter(again) as ledger:
        Run(ledger, executor, ignore).start(asked_for(*names))
    kinds = [type(e).__name__ for e in cell_events(path, "on")]
    assert kinds == [type(e).__name__ for e in cell_events(again, "on")] and "SourcesSwept" in kinds
    assert_verifies(again)
    with (
        pytest.raises(BadInput, match="--generators: expected cuda, found catalogue"),
        LedgerWriter(tmp_path / "x.db") as ledger,
    ):
        Run(ledger, executor, ignore).start(asked_for("catalogue"))
    executor.close()


@pytest.mark.parametrize("names", [(), ("catalog",), ("triton", "triton")])
def test_chains_that_cannot_be(names: tuple[str, ...]) -> None:
    with pytest.raises(BadInput, match="--generators: expected"):
        check_request(asked_for(*names))


def test_a_chain_on_the_command_line(tmp_path: Path) -> None:
    """An unknown name, a model without a name, and a recording that has no such chain: words, exit 1, no file."""
    ledger = tmp_path / "x.db"

    def said(*words: str) -> str:
        result = CliRunner(env={"OPENAI_MODEL": "", "OPENAI_API_KEY": ""}).invoke(
            run_command, ["--problems", "kb_matmul_scalar", "--ledger", str(ledger), "--device", "recorded", *words]
        )
        assert result.exit_code == 1 and not ledger.exists(), result.output
        return " ".join(result.output.split())

    assert "expected some of catalogue, triton, module, cuda, llm; found magic" in said("--generators", "magic")
    assert "expected catalogue, found catalogue,cuda" in said("--generators", "catalogue,cuda", "--seed", "0")
    pytest.importorskip("openai")
    assert "OPENAI_MODEL, found none" in said("--generators", "llm")


# --- with a model behind it ------------------------------------------------------------------------------------------


def modelled(monkeypatch: pytest.MonkeyPatch, url: str, **more: object) -> None:
    """The chain's `llm` asks this URL and never sleeps."""
    pytest.importorskip("openai")
    from gpusolver.engine.generators.endpoint import Settings
    from gpusolver.engine.generators.llm import LlmGenerator

    made = LlmGenerator(Settings(model="loopback", key=KEY, base_url=url, **more), lambda wait: None)  # type: ignore[arg-type]
    chained(monkeypatch, made)


def fenced(source: str) -> str:
    return f"So be it.\n```python\n{source}```\n"


def test_a_model_rewrites_and_the_ledger_holds_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prose, then a TF32 kernel that is kept, then the same again, which is no candidate. Nothing in the file holds the key."""
    best = with_precision(SOURCES[1], "tf32")
    path = tmp_path / "ledger.db"
    with serving(Said("I would rather not."), Said(fenced(best))) as server:
        modelled(monkeypatch, server.url)
        view = play(path, FakeExecutor(), asked_for("llm", rounds=2))
    events = cell_events(path, "on")
    first = only(events, GeneratorAsked)[0]
    assert [(e.status, e.completion_tokens) for e in first.exchanges] == [("no_code", 20), ("code", 20)]
    assert (first.outcome, first.model) == ("made", "loopback")
    assert text(path, only(events, KernelGenerated)[1].source) == best
    assert only(events, RoundJudged)[0].verdict == "FASTER"
    row = spending(view)[0]
    assert (row.generator, row.made, row.completion_tokens, row.cost_usd) == ("llm", 1, 20 * row.requests, None)
    assert row.requests == sum(len(e.exchanges) for e in only(events, GeneratorAsked)) >= 2
    shown = CliRunner().invoke(report_command, [str(path)]).output
    assert "Generators beside the catalogue" in shown and str(row.prompt_tokens) in shown
    (registered,) = [r.event for r in stored(path) if isinstance(r.event, RunRegistered)]
    assert registered.environment["llm_model"] == "loopback" and KEY not in str(registered)
    assert_verifies(path)
    with LedgerReader(path) as reader:
        assert all(KEY.encode() not in row.payload for row in reader.rows())
    assert KEY.encode() not in path.read_bytes()


def test_b125_prose_for_ever_closes_the_round_and_blames_no_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.db"
    with serving(Said("I cannot improve this kernel.")) as server:
        modelled(monkeypatch, server.url)
        play(path, FakeExecutor(), asked_for("llm"))
    events = cell_events(path, "on")
    assert not only(events, RoundJudged) and len(only(events, PrescriptionUnserved)) >= 1
    assert {e.outcome for e in only(events, GeneratorAsked)} == {"no_answer"}
    assert only(events, RunStopped)[0].reason == "no rule fires"
    assert_verifies(path)


def test_b128_a_429_for_ever_stops_the_run_which_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked is kept with the cut-off attempt; resumed, the same round is tried again, and no rule was blamed."""
    path, best = tmp_path / "ledger.db", with_precision(SOURCES[1], "tf32")
    limited = Said(status=429, headers=(("Retry-After", "7"),))
    with serving(limited, limited, Said(fenced(best))) as server:
        modelled(monkeypatch, server.url, tries=2)
        with pytest.raises(ToolFailed, match=r"rate_limited after 2 requests.*--resume"):
            play(path, FakeExecutor(), asked_for("llm", rounds=1))
        assert_verifies(path)
        modelled(monkeypatch, server.url, tries=2)
        with LedgerWriter(path) as ledger:
            Run(ledger, FakeExecutor(), ignore).resume()
    events = cell_events(path, "on")
    cut, made = only(events, GeneratorAsked)
    assert (cut.outcome, cut.attempt, [e.status for e in cut.exchanges]) == ("unavailable", 1, ["rate_limited"] * 2)
    assert cut.exchanges[1].waited_s == 7.0
    assert (made.outcome, made.round, made.attempt) == ("made", cut.round, 2)
    assert len(only(events, RoundInterrupted)) == 1 and only(events, RoundJudged)[0].verdict == "FASTER"
    assert_verifies(path)


def test_what_was_spent_is_kept_where_the_round_is_cut_off_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is lost in the gate after the model has answered: the second gate is that of round 1."""
    path = tmp_path / "ledger.db"
    with serving(Said(fenced(with_precision(SOURCES[1], "tf32")))) as server:
        modelled(monkeypatch, server.url)
        play(path, FakeExecutor(faults={("gate", 2): "request_failed"}), asked_for("llm", rounds=1))
    events = cell_events(path, "on")
    assert [(e.attempt, e.outcome) for e in only(events, GeneratorAsked)] == [(1, "made"), (2, "made")]
    assert_verifies(path)


def text(path: Path, digest: str) -> str:
    with LedgerReader(path) as reader:
        return reader.artifact(digest).decode()


def test_answers_without_a_candidate_are_declined() -> None:
    """A generator that gives an empty candidate declines as one that gives none."""
    from gpusolver.engine.generators.base import answered

    stub = Stub("triton", (), lambda asked: Candidate(sources=(), note="nothing to do"))
    problem = load("kb_matmul_scalar")
    asked = Asked(problem=problem, contract="fp32-strict", prescription="x", rule="", source="", signals={})
    assert answered(stub, asked) == Answer(candidate=None, outcome="declined", note="nothing to do")


TABLE = """
[[rule]]
name = "always"
version = 1
tier = 1
prescription = "fuse"
metrics = []
rationale = "made up"
clauses = [{ signal = "time_us", op = ">", threshold = 0.0 }]
gain = { form = "constant", cap = 2.0 }
"""


@pytest.mark.torch_cpu
def test_a_model_on_loopback_and_the_real_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong kernel, then a right one: the gate refuses the first, whose reason and text are in the next prompt. The stand-in's
    clock measures no GPU, so that the second verdict may be any."""
    from gpusolver.engine import registration
    from gpusolver.engine.local import LocalExecutor

    table, path = tmp_path / "table.toml", tmp_path / "ledger.db"
    table.write_text(TABLE)
    few = msgspec.structs.replace(registration.STATISTICS, blocks=10, looks=(10,))
    monkeypatch.setattr(registration, "STATISTICS", few)
    right = 'import torch\n\nPRECISION = "ieee"\n\ndef run(x):\n    return torch.softmax(x, -1)\n'
    asked = RunRequest(
        problems=("kb_softmax",),
        arms=("on",),
        contracts=("fp32-strict",),
        rounds=2,
        rules=str(table),
        generators=("llm",),
    )
    executor = LocalExecutor("cpu", limits_s={"gate": 60.0})
    try:
        with serving(Said(fenced(right.replace("-1)", "-1) * 2"))), Said(fenced(right))) as server:
            modelled(monkeypatch, server.url)
            with LedgerWriter(path) as ledger:
                Run(ledger, executor, ignore).start(asked)
            told = server.requests[1]["messages"][1]["content"]
    finally:
        executor.close()
    first, second = only(cell_events(path, "on"), RoundJudged)
    assert (first.verdict, first.reason) == ("AMBIGUOUS", "gate: wrong_result") and not second.reason.startswith("gate")
    assert "wrong_result" in told and "torch.softmax(x, -1) * 2" in told
    assert_verifies(path)


def test_an_arm_takes_the_sweep_over_sources_that_another_arm_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = chained(monkeypatch, Stub("cuda", ("coalesce",), one(*SOURCES)))
    path, executor = tmp_path / "shared.db", FakeExecutor()
    asked = msgspec.structs.replace(request("off", "on", rounds=6), generators=names, share=True)
    play(path, executor, asked)
    swept = {r.seq: r.event for r in stored(path) if isinstance(r.event, SourcesSwept)}
    (paid, own), (_, taken) = list(swept.items())[:2]
    assert own.origin_seq is None and taken.origin_seq == paid and executor.calls["sweep"] == len(swept) - 1
    assert_verifies(path)
