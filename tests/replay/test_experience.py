"""What one ledger teaches the next: trials, proposals and carried evidence, on made-up ledgers, by both sides and by hand."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gpusolver.engine.experience import PROPOSING, Learnt, learnt
from gpusolver.events.errors import BadInput
from gpusolver.events.model import (
    Clause,
    Context,
    Event,
    EvidenceCarried,
    Proposing,
    Rule,
    RuleAdmitted,
    RuleProposed,
    RuleRetired,
    RuleSeeded,
    Separation,
    Verdict,
    cell_stream,
)
from gpusolver.events.writer import LedgerWriter
from gpusolver.projections.asking import ask
from gpusolver.projections.cell import CellState
from gpusolver.replay.experience import check_experience

from ..projections.support import (
    A100,
    H200,
    RTX3090,
    Outcome,
    World,
    cell_of,
    context_of,
    firings,
    plan_of,
    registered,
    rule,
    run_stream,
    simulate,
)

TABLE = (
    rule("coalesce", ("load_eff", "<", 0.7), position=1, prescription="p"),
    rule("shrink", ("occupancy", "<", 0.5), position=2, prescription="q"),
)
ROUNDS = 3
# Names whose digests under seed 0 are even (learnt from) or odd (tested on).
NAMES = [f"problem{i}" for i in range(40)]
EVEN = [name for name in NAMES if hashlib.sha256(f"0:{name}".encode()).digest()[-1] % 2 == 0]
ODD = [name for name in NAMES if name not in EVEN]
Story = dict[str, tuple[dict[str, float], Verdict]]


def ledger(path: Path, story: Story, table: tuple[Rule, ...] = TABLE, arm: str = "off", rounds: int = ROUNDS) -> Path:
    """One cell a problem: its signals, and what every round of it comes to (a FASTER leads to a kernel on which nothing fires)."""
    cells = tuple(cell_of(name, arm) for name in story)
    with LedgerWriter(path) as writer:
        writer.append("run1", 0, run_stream(cells, table))
        for cell, (signals, verdict) in zip(cells, story.values(), strict=True):
            world = World(
                {"start": signals, "done": {"time_us": 1.0}},
                lambda firing, verdict=verdict: Outcome(verdict, "done"),  # type: ignore[misc]
                dict.fromkeys(("start", "done"), context_of()),
            )
            plan = replace(plan_of(cell, A100, table, rounds), seed=7)
            writer.append(cell_stream("run1", cell), 0, simulate(plan, world)[0])
    return path


def learn(path: Path, proposing: Proposing | None = PROPOSING, seed: int = 0) -> Learnt:
    return learnt(f"from:{path}", "run1", seed, proposing)


def written(path: Path, found: Learnt, seed: int = 0, events: tuple[Event, ...] | None = None) -> Path:
    """A ledger whose run says that it learnt this."""
    first = replace(registered((cell_of(),)), seed=seed, experience=found.experience)
    with LedgerWriter(path) as writer:
        writer.append("run1", 0, [first, *(found.events if events is None else events)])
    return path


def low(x: float, **more: float) -> dict[str, float]:
    return {"load_eff": 0.3, "occupancy": x, "time_us": 100.0, **more}


# `coalesce` fires on all of them, and helps where the occupancy is 0.6 and more.
SEPARABLE: Story = {
    **{name: (low(0.6 + i / 100), "FASTER") for i, name in enumerate(EVEN[:3])},
    **{name: (low(0.55 - i / 100), "SAME") for i, name in enumerate(EVEN[3:6])},
    **{name: (low(0.8), "FASTER") for name in ODD[:2]},
    **{name: (low(0.52), "SLOWER") for name in ODD[2:4]},
}


def test_a_clause_that_separates_is_proposed_and_admitted(tmp_path: Path) -> None:
    """Learnt: 3 of 3 and 3 avoided, between 0.55 and 0.60. Tested: no gain lost, 2 problems of 3 rounds saved."""
    found = learn(ledger(tmp_path / "old.db", SEPARABLE))
    (proposal,) = [event for event in found.events if isinstance(event, RuleProposed)]
    assert (proposal.parent, proposal.rule.name, proposal.rule.version) == ("coalesce", "coalesce", 2)
    assert proposal.rule.clauses == (*TABLE[0].clauses, Clause(signal="occupancy", op=">=", threshold=0.6))
    assert proposal.learnt == Separation(kept_successes=3, kept_failures=0, lost_successes=0, avoided_failures=3)
    assert proposal.shadow == Separation(kept_successes=2, kept_failures=0, lost_successes=0, avoided_failures=6)
    assert [e.rule_version for e in found.events if isinstance(e, RuleAdmitted)] == [2]
    carried = {(e.rule, e.rule_version): e for e in found.events if isinstance(e, EvidenceCarried)}
    assert (len(carried["coalesce", 1].helped), len(carried["coalesce", 1].failed)) == (5, 5)
    assert (len(carried["coalesce", 2].helped), carried["coalesce", 2].failed) == (5, ())
    assert check_experience(str(written(tmp_path / "new.db", found)), [str(tmp_path / "old.db")])[0] == []


def test_the_admitted_rule_saves_the_rounds_of_the_next_problem(tmp_path: Path) -> None:
    """On a new problem of low occupancy the old table spends its rounds on `coalesce`, the learnt one none."""
    found = learn(ledger(tmp_path / "old.db", SEPARABLE))
    admitted = [event.rule for event in found.events if isinstance(event, RuleProposed)]
    seen = {"load_eff": 0.3, "occupancy": 0.54}
    world = World({"start": seen}, lambda firing: Outcome("SAME", "same"), {"start": context_of()})
    for table, due in ((TABLE, ["coalesce"] * ROUNDS), ((*TABLE, *admitted), [])):
        assert firings(simulate(plan_of(cell_of("next", "off"), A100, table, ROUNDS), world)[0]) == due


def test_a_proposal_that_would_lose_a_gain_is_not_admitted(tmp_path: Path) -> None:
    """The same learning half; in the other, one problem of low occupancy gains."""
    story: Story = {**SEPARABLE, ODD[4]: (low(0.51), "FASTER")}
    found = learn(ledger(tmp_path / "old.db", story))
    (proposal,) = [event for event in found.events if isinstance(event, RuleProposed)]
    assert proposal.shadow.lost_successes == 1
    assert not [event for event in found.events if isinstance(event, RuleAdmitted)]
    assert check_experience(str(written(tmp_path / "new.db", found)), [str(tmp_path / "old.db")])[0] == []


@pytest.mark.parametrize(
    ("bounds", "made"),
    [(Proposing(support=3, purity_num=1, purity_den=1), 1), (Proposing(support=4, purity_num=1, purity_den=2), 0)],
)
def test_the_registered_support_bounds_it(tmp_path: Path, bounds: Proposing, made: int) -> None:
    found = learn(ledger(tmp_path / "old.db", SEPARABLE), bounds)
    assert len([event for event in found.events if isinstance(event, RuleProposed)]) == made


def test_gains_that_no_rule_explains_give_a_rule(tmp_path: Path) -> None:
    """The random arm tried `p` where `coalesce` does not hold, and gained at many registers, of which a stop rule speaks."""
    table = (TABLE[0], rule("bloated", ("registers", ">", 500.0), position=2, stop=True, prescription=None))
    coalesced = {"load_eff": 0.9, "time_us": 50.0}
    story: Story = {
        **{name: (coalesced | {"registers": 128.0}, "FASTER") for name in (*EVEN[:3], *ODD[:2])},
        **{name: (coalesced | {"registers": 32.0}, "SAME") for name in (*EVEN[3:5], *ODD[2:3])},
    }
    path = ledger(tmp_path / "old.db", story, table, arm="random", rounds=1)
    found = learn(path)
    (proposal,) = [event for event in found.events if isinstance(event, RuleProposed)]
    made = proposal.rule
    assert (made.name, made.version, made.prescription, made.origin) == ("unexplained_p", 1, "p", "proposed")
    assert made.clauses == (Clause(signal="registers", op=">=", threshold=128.0),)
    assert (proposal.parent, proposal.shadow.kept_successes, proposal.shadow.kept_failures) == (None, 2, 0)
    carried = [event for event in found.events if isinstance(event, EvidenceCarried)]
    assert [(event.rule, len(event.helped), event.failed) for event in carried] == [("unexplained_p", 5, ())]
    assert check_experience(str(written(tmp_path / "new.db", found)), [str(path)])[0] == []


# --- what is carried --------------------------------------------------------------------------------------------------


def test_one_problem_is_one_trial_however_often_it_failed(tmp_path: Path) -> None:
    """Three failing rounds on one problem are one failure: an adversary of one problem cannot retire a rule elsewhere."""
    found = learn(ledger(tmp_path / "old.db", {"hostile": (low(0.9), "SAME")}), None)
    carried = [event for event in found.events if isinstance(event, EvidenceCarried)]
    assert [(event.helped, event.failed) for event in carried] == [((), ("hostile",))]
    plan = replace(plan_of(cell_of("next"), A100, TABLE, 12), carried=tuple(carried))
    world = World({"start": low(0.9)}, lambda firing: Outcome("SAME", "same"), {"start": context_of()})
    events, _ = simulate(plan, world)
    assert firings(events) == ["coalesce"] * 3  # with the one carried, the third is the fourth failure
    (retired,) = [event for event in events if isinstance(event, RuleRetired)]
    assert (retired.failures, len(retired.firings), retired.confidence) == (4, 3, 1 / 6)


def carried_failures(count: int, context: Context) -> EvidenceCarried:
    return EvidenceCarried(
        run="run1",
        rule="coalesce",
        rule_version=1,
        context=context,
        helped=(),
        failed=tuple(f"problem{i}" for i in range(count)),
    )


@pytest.mark.parametrize(("arm", "reasons"), [("on", ["retired"]), ("off", [])])
def test_four_problems_retire_a_rule_before_the_first_round(arm: str, reasons: list[str]) -> None:
    plan = replace(plan_of(cell_of(arm=arm), A100, TABLE), carried=(carried_failures(4, context_of()),))
    state = CellState(cell=plan.cell, incumbent="start", signals={"start": low(0.3)})
    found = ask(plan, state, context_of())
    assert found.fired is not None and found.fired.name == ("shrink" if arm == "on" else "coalesce")
    assert [entry.reason for entry in found.blocked] == reasons
    elsewhere = ask(plan, state, context_of(structure="dot"))
    assert elsewhere.fired is not None and elsewhere.fired.name == "coalesce"


def test_a_table_from_one_chip_keeps_its_guards_on_another(tmp_path: Path) -> None:
    """Learnt on an A100; on an RTX 3090, whose TF32 is no faster, the guard blocks, and the A100's retirements do not count."""
    from gpusolver.events.model import Guard

    guarded = replace(TABLE[0], guards=(Guard(over="tf32", under="fp32", at_least=1.5),))
    story: Story = {name: (low(0.9), "SAME") for name in EVEN[:4]}
    found = learn(ledger(tmp_path / "old.db", story, (guarded,)), None)
    rules = tuple(event.rule for event in found.events if isinstance(event, RuleSeeded))
    carried = tuple(event for event in found.events if isinstance(event, EvidenceCarried))
    assert rules == (guarded,) and len(carried[0].failed) == 4
    for chip, reasons, fires in ((A100, ["retired"], False), (RTX3090, ["guard"], False), (H200, [], True)):
        plan = replace(plan_of(cell_of(), chip, rules), carried=carried)
        state = CellState(cell=plan.cell, incumbent="start", signals={"start": low(0.9)})
        answer = ask(plan, state, context_of(chip))
        assert ([entry.reason for entry in answer.blocked], answer.fired is not None) == (reasons, fires)


# --- both sides -------------------------------------------------------------------------------------------------------

values = st.sampled_from((0.1, 0.3, 0.5, 0.7, 0.9))
signals = st.dictionaries(st.sampled_from(("load_eff", "occupancy", "time_us")), values)
stories = st.dictionaries(
    st.sampled_from(NAMES[:12]),
    st.tuples(signals, st.sampled_from(("FASTER", "SLOWER", "SAME", "AMBIGUOUS"))),
    min_size=1,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    stories,
    st.sampled_from(("off", "on", "random")),
    st.integers(0, 3),
    st.builds(Proposing, support=st.integers(1, 2), purity_num=st.integers(1, 3), purity_den=st.just(3)) | st.none(),
)
def test_both_sides_learn_the_same(story: Story, arm: str, seed: int, bounds: Proposing | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = ledger(Path(folder) / "old.db", story, arm=arm)
        found = learn(path, bounds, seed)
        assert check_experience(str(written(Path(folder) / "new.db", found, seed)), [str(path)])[0] == []


def test_whatever_is_changed_is_found(tmp_path: Path) -> None:
    """A count, a clause, an admission, an order, one left out, one more: and another ledger."""
    path = ledger(tmp_path / "old.db", SEPARABLE)
    found = learn(path)
    events = found.events
    place = {type(event): index for index, event in enumerate(events)}
    proposal, evidence = events[place[RuleProposed]], events[place[EvidenceCarried]]
    assert isinstance(proposal, RuleProposed) and isinstance(evidence, EvidenceCarried)
    bolder = replace(proposal, rule=replace(proposal.rule, clauses=proposal.rule.clauses[:1]))
    forged = {
        "clause": (*events[: place[RuleProposed]], bolder, *events[place[RuleProposed] + 1 :]),
        "count": (*events[:-1], replace(evidence, failed=("made up",))),
        "not admitted": tuple(event for event in events if not isinstance(event, RuleAdmitted)),
        "left out": events[:-1],
        "one more": (*events, replace(evidence, rule="shrink")),
        "order": (*events[1::-1], *events[2:]),
    }
    for what, changed in forged.items():
        findings, _ = check_experience(str(written(tmp_path / f"{what}.db", found, events=changed)), [str(path)])
        assert {finding.kind for finding in findings} == {"experience"}, what
    other = ledger(tmp_path / "other.db", {"problem1": (low(0.3), "SAME")})
    findings, _ = check_experience(str(written(tmp_path / "new.db", found)), [str(other)])
    assert check_experience(str(tmp_path / "new.db"), [str(other), str(path)])[0] == []
    assert [finding.kind for finding in findings] == ["experience"]


def test_a_ledger_that_is_not_at_hand_is_said(tmp_path: Path) -> None:
    found = learn(ledger(tmp_path / "old.db", SEPARABLE))
    new = written(tmp_path / "new.db", found)
    assert check_experience(str(new), []) == (
        [],
        ["run1: the ledger that it learnt from was not read; name it with --experience"],
    )
    assert found.experience.proposing == PROPOSING and found.experience.events > 0


def test_a_run_may_learn_from_earlier_runs_of_its_own_ledger(tmp_path: Path) -> None:
    """The first events are the ledger that was learnt from, so nothing else has to be named."""
    path = ledger(tmp_path / "ledger.db", SEPARABLE)
    found = learnt(f"from:{path}", "run2", 0, PROPOSING)
    first = replace(registered((cell_of(),), "run2"), seed=0, experience=found.experience)
    with LedgerWriter(path) as writer:
        writer.append("run2", 0, [first, *found.events])
    assert check_experience(str(path), []) == ([], [])


def test_what_cannot_be_learnt_from_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="found no file"):
        learn(tmp_path / "none.db")
    with LedgerWriter(tmp_path / "empty.db"):
        pass
    with pytest.raises(BadInput, match="expected a ledger with a run, found none"):
        learn(tmp_path / "empty.db")
