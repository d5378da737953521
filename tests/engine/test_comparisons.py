"""Which kernels a run compares after its rounds is registered: no others, none missing, no claim on another. The kernels are made up."""

from __future__ import annotations

import shutil
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec import UNSET
from msgspec.structs import replace

from gpusolver.__main__ import main
from gpusolver.engine.registration import RunRequest, check_request, register
from gpusolver.events.errors import BadInput
from gpusolver.events.model import HeadToHead, RunRegistered
from gpusolver.projections import claims
from gpusolver.replay import finals, registered
from gpusolver.replay.verify import verify

from ..replay.tamper import Line, first, lines, rewrite
from ..replay.test_mutations import Mutant, mutants, planted
from .support import FakeExecutor, assert_verifies, only, play, request, stored
from .test_recorded import rerun

ALL = (
    "endpoint", "endpoint_kernel", "total", "kernel_part", "precision_part",
    "versus:eager_fp32", "versus:compile_fp32", "versus:eager_tf32", "versus:compile_tf32",
)  # fmt: skip
SOME = ("total", "endpoint_kernel")


def asked(*names: str) -> RunRequest:
    return replace(request("off", "on", rounds=6), comparisons=names)


def compared(path: Path) -> list[str]:
    return [event.comparison for event in only((r.event for r in stored(path)), HeadToHead)]


def claimed(path: Path) -> list[str]:
    return [claim.comparison for claim in only((r.event for r in stored(path)), RunRegistered)[0].claims]


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that registered two comparisons; not to be altered."""
    path = tmp_path_factory.mktemp("some") / "ledger.db"
    play(path, FakeExecutor(), asked(*SOME))
    return path


@pytest.fixture
def copied(some: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(some, tmp_path / "forged.db"))


def test_a_run_makes_what_it_registered_and_states_claims_on_that_alone(some: Path) -> None:
    """In the order of the page, whatever the order of asking. Of the two claims on this problem one rests on `versus:eager_tf32`."""
    assert compared(some) == ["endpoint_kernel", "total"]
    assert claimed(some) == ["endpoint_kernel"]
    assert_verifies(some)
    assert (
        "run1: of the comparisons after the rounds it registered only: total, endpoint_kernel"
        in verify(some, True).notes
    )


def test_without_a_list_all_are_made_and_the_payload_has_no_such_key(tmp_path: Path) -> None:
    """What ledgers were before there was a list."""
    path, listed = tmp_path / "all.db", tmp_path / "listed.db"
    play(path, FakeExecutor(), request("off", "on", rounds=6))
    assert "comparisons" not in lines(path)[0].body
    play(listed, FakeExecutor(), asked(*ALL))
    assert compared(path) == compared(listed) == list(ALL)
    assert claimed(path) == claimed(listed) == ["endpoint_kernel", "versus:eager_tf32"]
    assert_verifies(listed)


def test_none_measures_nothing_after_the_rounds(tmp_path: Path) -> None:
    apart, alone = FakeExecutor(), FakeExecutor()
    play(tmp_path / "all.db", apart, request("off", "on", rounds=6))
    play(tmp_path / "none.db", alone, asked())
    assert lines(tmp_path / "none.db")[0].body["comparisons"] == []
    assert (compared(tmp_path / "none.db"), claimed(tmp_path / "none.db")) == ([], [])
    sampled = [e for e in only((r.event for r in stored(tmp_path / "all.db")), HeadToHead) if e.samples is not None]
    assert apart.calls["compare"] - alone.calls["compare"] == len(sampled) == len(ALL)
    assert_verifies(tmp_path / "none.db")


# --- forged ---------------------------------------------------------------------------------------------------------------


def dropped_list(events: list[Line]) -> None:
    del events[0].body["comparisons"]


def dropped_comparison(events: list[Line]) -> list[Line]:
    gone = first(events, "HeadToHead", comparison="total")
    return [event for event in events if event is not gone]


def extra_comparison(events: list[Line]) -> None:
    """One that was measured is not among those registered: an engine that looks first and keeps what it likes."""
    events[0].body["comparisons"] = ["endpoint_kernel"]


def another_comparison(events: list[Line]) -> None:
    first(events, "HeadToHead", comparison="total").body["comparison"] = "endpoint"


def longer_list(events: list[Line]) -> None:
    events[0].body["comparisons"] = [*SOME, "versus:eager_fp32"]


def longer_list_of_what_is_not_due(events: list[Line]) -> None:
    """Nothing is missing, as arm off+tabu is not planned."""
    events[0].body["comparisons"] = [*SOME, "tabu"]


def twice(events: list[Line]) -> None:
    events[0].body["comparisons"] = [*SOME, "total"]


def unknown(events: list[Line]) -> None:
    events[0].body["comparisons"] = [*SOME, "versus:cublas"]


def claim_on_another(events: list[Line]) -> None:
    events[0].body["claims"][0]["comparison"] = "kernel_part"


def list_without_the_claims(events: list[Line]) -> list[Line]:
    """The list, and what it no longer names, are cut together; the claim on it stays."""
    events[0].body["comparisons"] = ["total"]
    gone = first(events, "HeadToHead", comparison="endpoint_kernel")
    return [event for event in events if event is not gone]


@pytest.mark.parametrize(
    ("change", "kind", "expected"),
    [
        (dropped_list, "head to head", "versus:eager_fp32 of"),
        (dropped_comparison, "head to head", "total of"),
        (extra_comparison, "head to head", "one of those registered"),
        (another_comparison, "head to head", "one of those registered"),
        (another_comparison, "head to head", "total of"),
        (longer_list, "head to head", "versus:eager_fp32 of"),
        (twice, "registration", "comparisons: each once"),
        (unknown, "registration", "comparisons of the plan's contracts"),
        (claim_on_another, "registration", "a comparison among those registered"),
        (list_without_the_claims, "registration", "a comparison among those registered"),
    ],
)
def test_what_is_forged_is_found(
    copied: Path, change: Callable[[list[Line]], list[Line] | None], kind: str, expected: str
) -> None:
    rewrite(copied, change)
    assert any(f.kind == kind and expected in str(f.expected) for f in verify(copied, True).findings)


def test_a_name_that_is_not_due_changes_nothing(copied: Path) -> None:
    rewrite(copied, longer_list_of_what_is_not_due)
    assert verify(copied, True).findings == ()


# --- what is refused, and where it comes from -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("tabu",), r"of the arms off, on under tf32-allowed: endpoint, .*versus:compile_tf32; found tabu"),
        (("versus",), "found versus"),
        (("total", "total"), "each once .*found total, total"),
    ],
)
def test_what_can_never_be_due_is_refused(names: tuple[str, ...], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        check_request(asked(*names))


def test_a_contract_has_its_own_baselines() -> None:
    strict = replace(asked("versus:eager_tf32"), contracts=("fp32-strict",))
    with pytest.raises(BadInput, match=r"under fp32-strict: .*versus:compile_fp32; found versus:eager_tf32"):
        check_request(strict)
    check_request(replace(strict, contracts=("fp32-strict", "tf32-allowed")))


def test_a_recording_answers_no_comparison_that_it_did_not_register(some: Path, tmp_path: Path) -> None:
    for beyond, found in ((asked("total", "endpoint"), "total,endpoint"), (request("off", "on", rounds=6), "all")):
        with pytest.raises(BadInput, match=f"--comparisons: expected total,endpoint_kernel, found {found}"):
            rerun(some, tmp_path / "beyond.db", beyond)
    for within in (asked(*SOME), asked("total"), asked()):
        path = tmp_path / f"{len(within.comparisons or ())}.db"
        rerun(some, path, within)
        assert set(compared(path)) == set(within.comparisons or ())
        assert_verifies(path)


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        (("run",), UNSET),
        (("ablate",), ()),
        (("run", "--comparisons", "none"), ()),
        (("ablate", "--comparisons", "all"), UNSET),
        (("ablate", "--comparisons", "versus:eager_fp32, total"), ("versus:eager_fp32", "total")),
    ],
)
def test_the_word_on_the_command_line(words: tuple[str, ...], listed: object, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    more = ("kb_softmax", "--arms", "off,on", "--device", "recorded", "--ledger", str(path))
    said = CliRunner(env={"COLUMNS": "400"}).invoke(main, [words[0], *more, *words[1:]])
    assert said.exit_code == 0, said.output
    (made,) = only((r.event for r in stored(path)), RunRegistered)
    assert made.comparisons == listed
    # Tables of comparisons that were not made are not printed empty.
    assert ("Head to head" in said.output, "PyTorch over the winner" in said.output) == ((listed != ()), (listed != ()))
    assert_verifies(path)


def test_no_word_is_no_list() -> None:
    said = CliRunner().invoke(main, ["run", "kb_softmax", "--comparisons", ",", "--device", "recorded"])
    assert said.exit_code == 1 and "--comparisons: expected all, none, or names by comma; found nothing" in said.output


# --- either side alone ----------------------------------------------------------------------------------------------------

STRICT = request("off", "on", rounds=6, contract="fp32-strict")
EVERY = replace(request("off", "on", "off+tabu", rounds=6), comparisons=(*ALL, "tabu"))
"""All that there are under the contract."""
SIDES = (
    (claims, ("registered_pairs",)),
    (finals, ("Finals._registered", "Finals.check_complete")),
    (registered, ("_comparisons",)),
)
CASES = [
    pytest.param(module, mutant, id=f"{index}-{mutant.where}")
    for module, names in SIDES
    for index, mutant in enumerate(mutants(module, *names))
]


def noticed(folder: Path) -> bool:
    """Whether a ledger with a list, or without one, is not clean, or a forged one is."""
    try:
        for number, wanted in enumerate((asked(), asked(*SOME), EVERY, STRICT)):
            path = folder / f"{number}.db"
            play(path, FakeExecutor(), wanted)
            if verify(path, True).findings:
                return True
        for change in (dropped_comparison, dropped_list, twice, unknown):
            forged = Path(shutil.copy(folder / "1.db", folder / f"{change.__name__}.db"))
            if not verify(rewrite(forged, change), True).findings:
                return True
    except Exception:  # noqa: BLE001 - a mutant may raise anything
        return True
    return False


def test_without_a_mutation_nothing_is_noticed(tmp_path: Path) -> None:
    assert not noticed(tmp_path)


@pytest.mark.parametrize(("module", "mutant"), CASES)
def test_a_mutation_is_noticed(tmp_path: Path, module: types.ModuleType, mutant: Mutant) -> None:
    with planted(module, mutant):
        assert noticed(tmp_path), mutant.where


def test_the_registration_refuses_before_anything_is_written() -> None:
    with pytest.raises(BadInput, match="--comparisons"):
        register("run1", asked("tabu"), FakeExecutor())
