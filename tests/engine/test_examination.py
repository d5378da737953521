"""Examinations played with made-up kernels: what lands in the ledger, resuming, refusals, and what people are shown."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from gpusolver.engine.examination import Examination, ExaminationRequest
from gpusolver.engine.examining import Pair, Subject
from gpusolver.engine.explain import print_explanation
from gpusolver.engine.rules import seed_rules
from gpusolver.engine.statement import print_statement
from gpusolver.events.errors import BadInput
from gpusolver.events.model import KernelExamined, PairCompared, RulesAnswered
from gpusolver.events.reader import LedgerReader
from gpusolver.events.writer import LedgerWriter
from gpusolver.problems.contract import load
from gpusolver.problems.sources import with_precision
from gpusolver.projections.examination import ExaminationView

from .support import FakeExecutor, Kernel, assert_verifies, ignore, matmul_story, only, stored

PROBLEM = load("kb_matmul_scalar")
SCALAR = Subject(name="scalar", problem=PROBLEM, contract="tf32-allowed", source=PROBLEM.start)
SLOW = PROBLEM.start + "# slower\n"


def story(text: str) -> Kernel:
    """The scalar product of the story, and a copy of it that takes 3 % longer."""
    kernel = matmul_story(text.removesuffix("# slower\n"))
    return replace(kernel, ns=kernel.ns * 103 // 100) if text.endswith("# slower\n") else kernel


def afterwards(text: str) -> Kernel:
    """The same kernels a few ns slower, for another process: a stand-in that starts anew would repeat its samples."""
    kernel = story(text)
    return replace(kernel, ns=kernel.ns + 7)


def asked(times: int = 3) -> ExaminationRequest:
    same = Pair(name="same", subject="scalar", left=SCALAR.source, right=SCALAR.source, times=times, truth="SAME")
    slower = Pair(name="slower", subject="scalar", left=SCALAR.source, right=SLOW, times=times, truth="SLOWER")
    planted = replace(SCALAR, name="planted", half="held-out", fires=("uncoalesced",), silent=())
    missed = replace(SCALAR, name="missed", half="held-out", fires=(), silent=("uncoalesced",))
    return ExaminationRequest(
        purpose="a test", subjects=(SCALAR, planted, missed), pairs=(same, slower), rules=seed_rules()
    )


def play(path: Path, request: ExaminationRequest, executor: FakeExecutor | None = None) -> ExaminationView:
    with LedgerWriter(path) as ledger:
        return Examination(ledger, executor or FakeExecutor(story), request, ignore).play()


def test_an_examination_verifies_and_states_what_it_found(tmp_path: Path) -> None:
    """Three comparisons each; the planted kernel fires as expected, the one said to be a near miss fires too: 1 of 2 right."""
    path = tmp_path / "l.db"
    view = play(path, asked())
    assert view.stated is not None
    assert view.stated["pair/same/SAME"] == 3 and view.stated["pair/slower/SLOWER"] == 3
    assert (view.stated["matrix/held-out/expected"], view.stated["matrix/held-out/right"]) == (2, 1)
    assert view.stated["matrix/held-out/fired_on_missing"] == 0
    assert_verifies(path)


def test_a_decisive_pair_ends_at_its_first_look(tmp_path: Path) -> None:
    """Registered looks are 20, 40, 80, 160 and 320 blocks; noise of 0.2 % leaves nothing to doubt after 20."""
    path = tmp_path / "l.db"
    play(path, asked())
    compared = only((row.event for row in stored(path)), PairCompared)
    assert [event.interval.blocks for event in compared if event.interval] == [20] * 6


def test_every_rule_answers_for_itself(tmp_path: Path) -> None:
    """The scalar product of the story loads 40 % of its bytes in vain and has no tensor work: both rules fire, whatever the order."""
    path = tmp_path / "l.db"
    play(path, asked())
    answers = {a.rule: a for a in only((row.event for row in stored(path)), RulesAnswered)[0].answers}
    assert len(answers) == 9
    assert answers["uncoalesced"].answer == "fires" and answers["uncoalesced"].predicted_gain == 2.5
    assert answers["fp32_no_tensorcore"].answer == "fires"
    assert answers["attention_dominant"].answer == "abstains" and answers["attention_dominant"].missing == (
        "attention_share",
    )
    assert answers["launch_overhead"].answer == "silent"


def test_a_refused_kernel_is_told_and_not_measured(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    loose = Subject(
        name="loose", problem=PROBLEM, contract="fp32-strict",
        source=with_precision((PROBLEM.variant("coalesce", "flags") or pytest.fail()).source or "", "tf32"),
    )  # fmt: skip
    request = ExaminationRequest(purpose="a test", subjects=(loose,), rules=seed_rules())
    view = play(path, request)
    assert view.examined["loose"].outcome == "wrong_precision" and view.examined["loose"].samples is None
    assert "loose" not in view.answers and view.stated is not None and view.stated["examined/refused"] == 1
    assert_verifies(path)


@pytest.mark.parametrize(("lost", "reason"), [((2,), "within limits"), ((2, 3), "not timed: request_failed")])
def test_counters_that_fail_are_asked_once_more_in_a_fresh_process(
    tmp_path: Path, lost: tuple[int, ...], reason: str
) -> None:
    """Where they fail there too the kernel has no profile, and the examination goes on: count 2 is the second kernel's."""
    path = tmp_path / "l.db"
    request = replace(asked(), pairs=())
    view = play(path, request, FakeExecutor(story, faults={("count", n): "request_failed" for n in lost}))
    second = request.subjects[1].name
    assert (view.examined[second].outcome, view.examined[second].reason) == ("passed", reason)
    assert (view.examined[second].samples is None) == (second not in view.answers) == (reason != "within limits")
    assert len(view.examined) == 3 and view.stopped is not None
    assert_verifies(path)


def test_an_interrupted_examination_goes_on_where_it_was(tmp_path: Path) -> None:
    """A lost worker at the fifth comparison ends the command with words; the same command measures only what is missing."""
    path = tmp_path / "l.db"
    with pytest.raises(BadInput, match=r"worker_lost.*same command"):
        play(path, asked(), FakeExecutor(story, faults={("compare", 3 + 5): "worker_lost"}))
    before = stored(path)
    executor = FakeExecutor(story)
    play(path, asked(), executor)
    after = stored(path)
    assert after[: len(before)] == before
    # One gate: the side of the second pair that is no subject, whose outcome no event holds.
    assert executor.calls["gate"] == 1 and executor.calls["compare"] == 6 - 4
    assert len(only((row.event for row in after), KernelExamined)) == 3
    assert_verifies(path)


def test_an_unfinished_examination_is_not_finished_by_another_command(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with pytest.raises(BadInput):
        play(path, asked(), FakeExecutor(story, faults={("compare", 4): "worker_lost"}))
    with pytest.raises(BadInput, match="registered otherwise"):
        play(path, asked(times=4))


def test_an_unfinished_examination_is_not_finished_by_other_rules(tmp_path: Path) -> None:
    """Rules are seeded, not registered: answers of others would not follow from the ledger's own table."""
    path = tmp_path / "l.db"
    with pytest.raises(BadInput):
        play(path, asked(), FakeExecutor(story, faults={("compare", 4): "worker_lost"}))
    with pytest.raises(BadInput, match="registered otherwise"):
        play(path, replace(asked(), rules=seed_rules()[1:]))


def timeline(end: int) -> bytes:
    """One call with one kernel of `end` ns."""
    return b'{"collector": "nsys", "calls": [[[0, %d, "made_up"]]], "operators": null}' % end


def test_a_kernel_examined_with_one_timeline_is_not_finished_with_another(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    pair = Pair(name="same", subject="scalar", left=SCALAR.source, right=SCALAR.source, times=2, truth="SAME")

    def with_timeline(end: int) -> ExaminationRequest:
        subject = replace(SCALAR, given={"timeline": timeline(end)})
        return ExaminationRequest(purpose="a test", subjects=(subject,), pairs=(pair,), rules=seed_rules())

    with pytest.raises(BadInput, match="worker_lost"):
        play(path, with_timeline(300_000), FakeExecutor(story, faults={("compare", 2): "worker_lost"}))
    with pytest.raises(BadInput, match="with another timeline"):
        play(path, with_timeline(200_000))
    play(path, with_timeline(300_000))
    assert_verifies(path)


@pytest.mark.parametrize("turn", range(1, 13))
def test_a_killed_examination_goes_on(tmp_path: Path, turn: int) -> None:
    """SIGKILL at each of its measurements (ceilings, three kernels of three, comparisons): nothing is measured twice."""
    path = tmp_path / "l.db"
    child = os.fork()
    if child == 0:
        seen = iter(range(1, 100))

        def kill(stage: str) -> None:
            if next(seen) == turn:
                os.kill(os.getpid(), signal.SIGKILL)

        play(path, asked(), FakeExecutor(story, before=kill))
        os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    before = stored(path)
    play(path, asked(), FakeExecutor(afterwards))
    after = stored(path)
    assert after[: len(before)] == before
    assert len(only((row.event for row in after), KernelExamined)) == 3
    assert len(only((row.event for row in after), PairCompared)) == 6
    assert_verifies(path)


def test_two_examinations_share_a_ledger(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    executor = FakeExecutor(story)  # one, so that its noise goes on
    assert (play(path, asked(), executor).run, play(path, asked(), executor).run) == ("exam1", "exam2")
    assert_verifies(path)


def test_the_tables_say_what_was_found(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    view = play(path, asked())
    console = Console(width=200, record=True, file=open(tmp_path / "out", "w"))  # noqa: SIM115
    with LedgerReader(path) as reader:
        print_statement(view, reader.artifact, console)
        print_explanation(view, "scalar", reader.artifact, console)
    text = console.export_text()
    assert "300.0" in text  # us, as the story has it
    for words in (
        "1 of 1",
        "0 of 1",
        "load_eff",
        "0.4",
        "attention_share is missing",
        "FIRES",
        "2.50x",
        "A/A noise floor",
        "gates passed: 3; whole gate: median 1.25 s, mean 1.25 s, nine of ten in 1.25 s or less",
        "loading and first call: median 1.00 s",
    ):
        assert words in text, words


def test_a_wrong_side_of_a_pair_is_refused_before_it_is_timed(tmp_path: Path) -> None:
    """A faster kernel that computes something else would be called FASTER."""
    path = tmp_path / "l.db"
    broken = PROBLEM.start + "# broken\n"
    pair = Pair(name="wrong", subject="scalar", left=SCALAR.source, right=broken, times=2, truth="FASTER")
    request = ExaminationRequest(purpose="a test", subjects=(SCALAR,), pairs=(pair,), rules=seed_rules())

    def kernels(text: str) -> Kernel:
        return replace(matmul_story(SCALAR.source), errors=(0.5, 2.0)) if text == broken else story(text)

    with pytest.raises(
        BadInput, match="wrong: expected two right kernels, found one that its gate refuses: wrong_result"
    ):
        play(path, request, FakeExecutor(kernels))
    assert not only((row.event for row in stored(path)), PairCompared)
