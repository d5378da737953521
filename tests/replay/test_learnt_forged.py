"""What a run says it learnt, forged, and looked at without the ledger that it learnt from: what its own events show. No number was measured."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gpusolver.events.model import (
    Clause,
    Event,
    EvidenceCarried,
    Proposing,
    RuleAdmitted,
    RuleProposed,
    RuleSeeded,
    Separation,
)
from gpusolver.replay.verify import verify

from .test_experience import ODD, SEPARABLE, Story, learn, ledger, low, stories, written

Events = tuple[Event, ...]
LOSES: Story = {**SEPARABLE, ODD[4]: (low(0.51), "FASTER")}
"""Of low occupancy one problem of the testing half gains, so that what is proposed is not admitted."""


def told(path: Path, *experience: Path) -> list[str]:
    findings = verify(path, True, experience=[str(other) for other in experience]).findings
    return [finding.expected for finding in findings if finding.kind == "experience"]


def changed(kind: type[Event], **fields: object) -> Callable[[Events], Events]:
    """The first event of a kind with other values; a value may be a function of what is there."""

    def change(events: Events) -> Events:
        at = next(place for place, event in enumerate(events) if isinstance(event, kind))
        old = events[at]
        made = {name: value(getattr(old, name)) if callable(value) else value for name, value in fields.items()}
        return (*events[:at], replace(old, **made), *events[at + 1 :])

    return change


def without(kind: type[Event]) -> Callable[[Events], Events]:
    return lambda events: tuple(event for event in events if not isinstance(event, kind))


def admitted_later(events: Events) -> Events:
    """After the evidence: no longer at once."""
    (admission,) = [event for event in events if isinstance(event, RuleAdmitted)]
    return (*without(RuleAdmitted)(events), admission)


def evidence_first(events: Events) -> Events:
    carried = tuple(event for event in events if isinstance(event, EvidenceCarried))
    return (*carried, *without(EvidenceCarried)(events))


def seeded_last(events: Events) -> Events:
    return (*without(RuleSeeded)(events), *(event for event in events if isinstance(event, RuleSeeded)))


def proposed_twice(events: Events) -> Events:
    return tuple(e for event in events for e in ((event, event) if isinstance(event, RuleProposed) else (event,)))


NONE = Separation(kept_successes=3, kept_failures=3, lost_successes=0, avoided_failures=0)
SPARES_NONE = Separation(kept_successes=2, kept_failures=6, lost_successes=0, avoided_failures=0)
BY_ANOTHER_SIGNAL = (Clause(signal="load_eff", op="<", threshold=0.7), Clause(signal="moon", op=">=", threshold=0.6))
FORGED = {
    "shadow says no": changed(RuleProposed, shadow=SPARES_NONE),
    "not admitted": without(RuleAdmitted),
    "admitted later": admitted_later,
    "evidence first": evidence_first,
    "table last": seeded_last,
    "proposed twice": proposed_twice,
    "separates nothing": changed(RuleProposed, learnt=NONE),
    "too few problems": changed(RuleProposed, learnt=replace(NONE, kept_successes=1, kept_failures=0, avoided_failures=3)),
    "another tier": changed(RuleProposed, rule=lambda rule: replace(rule, tier=0)),
    "a version too far": changed(RuleProposed, rule=lambda rule: replace(rule, version=9)),
    "no clause more": changed(RuleProposed, rule=lambda rule: replace(rule, clauses=rule.clauses[:1])),
    "a signal of no rule": changed(RuleProposed, rule=lambda rule: replace(rule, clauses=BY_ANOTHER_SIGNAL)),
    "by hand": changed(RuleProposed, rule=lambda rule: replace(rule, origin="seed")),
    "of nothing": changed(RuleProposed, parent="moonlight"),
    "new, of an old name": changed(RuleProposed, parent=None),
    "evidence of no rule": changed(EvidenceCarried, rule="moonlight"),
    "problems in another order": changed(EvidenceCarried, helped=lambda names: names[::-1]),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_what_the_events_alone_show(tmp_path: Path, name: str) -> None:
    """Before the change there is no finding; the ledger that was learnt from is not there to look into."""
    found = learn(ledger(tmp_path / "old.db", SEPARABLE))
    assert told(written(tmp_path / "new.db", found)) == []
    assert told(written(tmp_path / "forged.db", found, events=FORGED[name](found.events)))


def test_an_admission_against_the_shadow_test_is_found(tmp_path: Path) -> None:
    found = learn(ledger(tmp_path / "old.db", LOSES))
    (at,) = [place for place, event in enumerate(found.events) if isinstance(event, RuleProposed)]
    rule = found.events[at].rule  # type: ignore[attr-defined]
    admission = RuleAdmitted(run="run1", rule=rule.name, rule_version=rule.version)
    events = (*found.events[: at + 1], admission, *found.events[at + 1 :])
    assert told(written(tmp_path / "new.db", found)) == []
    assert told(written(tmp_path / "forged.db", found, events=events)) == [
        "coalesce version 2 not admitted, by its shadow test"
    ]


def test_proposals_where_none_were_registered(tmp_path: Path) -> None:
    found = learn(ledger(tmp_path / "old.db", SEPARABLE))
    silent = replace(found, experience=replace(found.experience, proposing=None))
    assert "no proposals, as registered" in told(written(tmp_path / "new.db", silent))


def test_the_verdicts_count_what_the_other_ledger_shows(tmp_path: Path) -> None:
    """A problem too many in the evidence shows beside the first ledger alone, and provenance no longer holds."""
    old = ledger(tmp_path / "old.db", SEPARABLE)
    found = learn(old)
    more = changed(EvidenceCarried, failed=lambda names: (*names, "zero"))(found.events)
    path = written(tmp_path / "new.db", found, events=more)
    assert told(path) == [] and told(path, old) != []
    kinds = {finding.kind for finding in verify(path, True, experience=[str(old)]).findings}
    report = verify(path, True, experience=[str(old)])
    assert "experience" in kinds and report.provenance == f"does not hold: {len(report.findings)} findings"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    stories,
    st.sampled_from(("off", "random")),
    st.builds(Proposing, support=st.integers(1, 2), purity_num=st.integers(1, 3), purity_den=st.just(3)) | st.none(),
)
def test_whatever_is_learnt_by_the_page_has_no_finding(story: Story, arm: str, bounds: Proposing | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = learn(ledger(Path(folder) / "old.db", story, arm=arm), bounds)
        assert told(written(Path(folder) / "new.db", found)) == []
