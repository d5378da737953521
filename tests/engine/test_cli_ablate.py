"""`gpusolver ablate`: on the committed recording of an H200, on made-up kernels in every arm, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec import UNSET

from gpusolver.__main__ import main
from gpusolver.engine.ablation import duels, verdict
from gpusolver.engine.cli import run_command
from gpusolver.engine.cli_ablate import ablate_command, contests_of
from gpusolver.events.model import RunRegistered
from gpusolver.projections.contest import Contest

from .support import FakeExecutor, assert_verifies, play, request, stored

H200 = ("kb_softmax", "kb_layernorm", "kb_reduce", "kb_matmul_scalar", "matmul", "batched_gemm", "sigmoid")
ALL = ("off", "on", "off+tabu", "on+tabu", "random")


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def ablate(*words: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "400"}).invoke(main, ["ablate", *map(str, words)])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The seven problems of the recording, in the three arms that it holds."""
    path = tmp_path_factory.mktemp("ablate") / "ledger.db"
    result = ablate(*H200, "--arms", "off,on,off+tabu,oracle", "--device", "recorded", "--ledger", path)
    assert result.exit_code == 0, result.output
    return path, result.output


def named(found: tuple[Contest, ...], problem: str) -> Contest:
    return next(contest for contest in found if contest.group.problem == problem)


def test_the_recorded_arms_beside_the_oracle(recorded: tuple[Path, str]) -> None:
    """What the ledger's own rounds say: OFF wastes all twelve on both problems where TF32 does nothing."""
    assert_verifies(recorded[0])
    found = contests_of(recorded[0])
    assert len(found) == len(H200)
    off, on, tabu = named(found, "sigmoid").arms
    assert (off.wasted, off.reached, on.wasted, on.reached, tabu.wasted) == (12, None, 4, 5, 12)
    assert (named(found, "sigmoid").oracle.rounds, named(found, "kb_matmul_scalar").oracle.rounds) == (1, 2)
    off, on, tabu = named(found, "kb_matmul_scalar").arms
    assert (off.inert, on.inert, tabu.inert) == (12, 4, 1)
    assert (off.reached, on.reached, tabu.reached) == (None, 6, 3)
    assert [arm.wasted for arm in named(found, "kb_softmax").arms] == [0, 0, 0]


def test_seven_problems_of_which_two_differ_prove_nothing_and_it_says_so(recorded: tuple[Path, str]) -> None:
    """Two differences of one sign: one of four patterns on each side, p = 1/2, however large they are."""
    wasted = next(d for d in duels(contests_of(recorded[0]), "on") if (d.measure, d.theirs) == ("wasted rounds", "off"))
    assert (wasted.found.differing, wasted.found.p, wasted.winner, wasted.significant) == (2, 0.5, "on", False)
    assert (
        "on against off over 7 problems: neither wins significantly. wasted rounds: on (not significant" in recorded[1]
    )
    assert "on ends with a slower kernel than off, beyond the noise, on 0 of them" in recorded[1]


def test_a_ledger_is_compared_again_without_playing(recorded: tuple[Path, str]) -> None:
    before = recorded[0].read_bytes()
    again = ablate("--ledger", recorded[0])
    assert again.exit_code == 0
    assert again.output == recorded[1][recorded[1].index("Arms beside the oracle") :]
    assert recorded[0].read_bytes() == before


def test_problems_in_two_ledgers_are_compared_like_problems_in_one(recorded: tuple[Path, str], tmp_path: Path) -> None:
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    for path, problems in ((first, H200[:3]), (second, H200[3:])):
        words = (*problems, "--arms", "off,on,off+tabu,oracle", "--device", "recorded", "--ledger", path)
        assert ablate(*words).exit_code == 0
    again = ablate("--ledger", first, "--also", second, "--also", first)
    assert again.output == recorded[1][recorded[1].index("Arms beside the oracle") :]
    assert "does not exist" in ablate("--ledger", first, "--also", tmp_path / "third.db").output


def test_every_arm_on_made_up_kernels(tmp_path: Path) -> None:
    """The random arm draws by seed and is re-derived; memory alone gets to the tiles in the second round, evolving in the fifth."""
    path = tmp_path / "ledger.db"
    play(path, FakeExecutor(), request(*ALL, rounds=8))
    assert_verifies(path)
    (found,) = contests_of(path)
    arms = {arm.arm: arm for arm in found.arms}
    assert tuple(arms) == ALL
    assert (arms["off"].inert, arms["off"].reached) == (8, None)
    assert arms["on"].inert == 4 and arms["on+tabu"].inert == arms["off+tabu"].inert == 1
    assert arms["on"].reached == 6 and arms["off+tabu"].reached == 3
    assert found.oracle.rounds == 2 and 0 < found.oracle.gpu_s <= (arms["off+tabu"].gpu_s_to_best or 0)
    assert arms["random"].rounds == 8


def test_who_won_is_said_where_it_is_certain() -> None:
    """Made-up duels: eight problems, all of one sign, p = 2/256, times the ten tests of the family still under 0.1."""
    from gpusolver.engine.ablation import FINAL, Duel
    from gpusolver.engine.paired import paired

    wins = paired([1.0] * 8, [2.0 + i for i in range(8)])
    equal = paired([1.0] * 8, [1.0] * 8)
    assert wins.p == pytest.approx(2 / 256)
    found = [
        Duel(measure="wasted rounds", ours="on", theirs="off", found=wins, adjusted=5 * wins.p),
        Duel(measure=FINAL, ours="on", theirs="off", found=equal, adjusted=1.0),
    ]
    assert verdict(found) == (
        "on against off over 8 problems: on wins significantly. wasted rounds: on (significant, p = 0.0391); "
        f"equal in {FINAL}; on ends with a slower kernel than off, beyond the noise, on 0 of them"
    )


def test_both_commands_have_the_same_words() -> None:
    """But for --against and --also, which belong to the comparison; they differ in arms, comparisons and offers by default, and in what no problem means."""
    run = {parameter.name: parameter for parameter in run_command.params}
    ablate = {parameter.name: parameter for parameter in ablate_command.params}
    assert ablate.keys() - run.keys() == {"against", "also"} and not run.keys() - ablate.keys()
    assert {"targets", "blocks", "kernelbench", "generators", "table", "share"} <= run.keys()
    differ = {name for name in run if run[name].default != ablate[name].default}
    assert differ == {"arms", "comparisons", "offers"} and all(run[name].opts == ablate[name].opts for name in run)


@pytest.mark.parametrize("words", [["kb_softmax", "kb_reduce"], ["--problems", "kb_softmax,kb_reduce"]])
def test_problems_are_named_in_either_way_on_either_command(words: list[str], tmp_path: Path) -> None:
    for command in ("run", "ablate"):
        path = tmp_path / f"{command}.db"
        said = CliRunner().invoke(
            main, [command, *words, "--arms", "on", "--device", "recorded", "--ledger", str(path)]
        )
        assert said.exit_code == 0, said.output
        (registered,) = [record.event for record in stored(path) if isinstance(record.event, RunRegistered)]
        assert [cell.problem for cell in registered.plan] == ["kb_softmax", "kb_reduce"]
        assert registered.generators is UNSET


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "expected problems to play, or a --ledger to compare"),
        (("kb_softmax", "--arms", "off,maybe"), "'maybe'"),
        (("kb_nothing", "--device", "recorded"), "kb_nothing"),
        (("kb_softmax", "--arms", "random", "--device", "recorded"), "arm random"),
        (("kb_softmax", "--arms", "oracle", "--device", "recorded"), "--arms: expected at least one"),
        (("my_kernel", "--device", "cpu"), "my_kernel: expected a file (my_kernel.py, kernelbench:level1/23)"),
        (("absent.py", "--device", "cpu"), "absent.py: expected a Python file, found none"),
        (("kernelbench:level1/first24", "--device", "cpu"), "expected --kernelbench DIR"),
        # Said before a file is opened: importing sixty takes minutes.
        (("absent.py", "--arms", "off,maybe"), "'maybe'"),
        (("absent.py", "--generators", "magic"), "found magic"),
        (("absent.py", "--blocks", "321"), "--blocks: expected"),
        (("absent.py", "--rules", "absent.toml"), "absent.toml"),
        (("kb_softmax", "--repetitions", "matmul=2"), "problems of this run, found matmul"),
    ],
)
def test_refusals(words: tuple[str, ...], said: str) -> None:
    result = ablate(*words)
    assert result.exit_code == 1 and said in result.output and "Traceback" not in result.output


def test_arms_are_compared_by_time_alone(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    done = CliRunner().invoke(main, ["ablate", "sigmoid", "--objective", "energy", "--ledger", str(ledger)])
    assert done.exit_code == 1 and "--objective energy: expected latency" in done.output
    assert not ledger.exists()


def test_contradictions_are_refused_before_anything_is_played(tmp_path: Path) -> None:
    """A recording is judged by the blocks that it holds, and an arm that cannot be is compared with none."""
    path = tmp_path / "ledger.db"
    for words, said in (
        (("run", "kb_reduce", "--blocks", "12"), "--blocks: expected a device that measures, found a recording"),
        (("ablate", "kb_reduce", "--against", "of"), "arm 'of': expected off, on,"),
        (("run", "kb_reduce", "--repetitions", "kb_reduce=2=3"), "--repetitions: expected a number or problem=number"),
    ):
        found = CliRunner().invoke(main, [*words, "--device", "recorded", "--ledger", str(path)])
        assert found.exit_code == 1 and said in found.output
        assert not path.exists()


def test_a_file_without_a_suffix_does_not_hide_a_packaged_problem(tmp_path: Path) -> None:
    """It is named by its path."""
    Path("kb_reduce").write_text("no problem")
    words = ("--arms", "on", "--device", "recorded", "--ledger", str(tmp_path / "ledger.db"))
    assert CliRunner().invoke(main, ["run", "kb_reduce", *words]).exit_code == 0
    assert "a file of yours is measured" in CliRunner().invoke(main, ["run", "./kb_reduce", *words]).output
