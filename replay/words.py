"""Lines of text for people: tables and examinations. Never decides, and never lets a ledger's content steer a terminal."""

from __future__ import annotations

import click

from .exam_derive import Matrix
from .exams import ExamView, PairRow, SubjectRow
from .findings import printable
from .reproduced import StatementRow

_MOST_WRONG = 20


def say(text: str, indent: int = 0) -> None:
    """One line."""
    click.echo(" " * indent + printable(text))


def printed_table(title: str, rows: list[tuple[str, ...]]) -> None:
    """Columns as wide as their widest cell; the first is printed where it changes."""
    if not rows:
        return
    say(title, 2)
    widths = [max(len(printable(row[i])) for row in rows) for i in range(len(rows[0]))]
    before: str | None = None
    for row in rows:
        if row[0] != before:
            say(row[0], 4)
            before = row[0]
        cells = (printable(cell).ljust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        click.echo((" " * 6 + "  ".join(cells)).rstrip())


def print_examination(exam: ExamView) -> None:
    """Subjects, pairs with their verdicts, the confusion matrix by half, and counters beside each other."""
    say(
        f"{exam.exam}: {exam.purpose}, {len(exam.subjects)} subjects, {len(exam.pairs)} pairs, {exam.stopped or 'unfinished'}"
    )
    printed_table("subjects", [_subject(row) for row in exam.subjects])
    printed_table("pairs", [_pair(row) for row in exam.pairs])
    if exam.origin is not None:
        say(f"reproduces statements of the ledger with head {exam.origin}", 2)
        printed_table("statements", [_statement(row) for row in exam.statements])
    for half in exam.matrices:
        _print_matrix(half)
    if exam.compared:
        say(f"counters: {exam.within} of {exam.compared} within their bounds of what Nsight Compute reads", 2)
    if exam.ncu_rules:
        say(f"Nsight Compute's own rules are recorded of {exam.ncu_rules} subjects", 2)


def _subject(row: SubjectRow) -> tuple[str, ...]:
    time = "" if row.time_us is None else f"{row.time_us:.1f} us"
    fires = f"fires {', '.join(row.fires)}" if row.fires else "no rule fires" if row.outcome == "passed" else ""
    return row.half or "in no half", row.subject, row.outcome, row.tier or "", time, fires


def _pair(row: PairRow) -> tuple[str, ...]:
    counts = "  ".join(f"{verdict} {number}" for verdict, number in row.verdicts.items())
    told = sum(row.verdicts.values())
    as_true = f"{row.verdicts.get(row.truth, 0)} of {told} as registered"
    return (
        f"on {row.subject}",
        row.pair,
        f"truth {row.truth}",
        counts,
        as_true if told == row.times else f"{as_true}, {row.times} due",
    )


def _statement(row: StatementRow) -> tuple[str, ...]:
    there, here = (", ".join(f"{median:.4g}x" for median in medians) for medians in (row.stated, row.measured))
    return (
        row.kind,
        f"event {row.seq}",
        row.text,
        f"{row.stands} {there} on {row.chip}",
        f"here {here or 'none'}",
        row.answer or "not yet",
    )


def _print_matrix(half: Matrix) -> None:
    say(f"answers of the half {half.half}: {half.right} of {half.expected} as expected", 2)
    say(f"must fire       {half.must_fire}: {half.fired} fire, {half.must_fire - half.fired} do not", 4)
    say(f"must be silent  {half.must_be_silent}: {half.silent} are, {half.must_be_silent - half.silent} fire", 4)
    say(f"fired on a missing signal: {half.fired_on_missing}", 4)
    for wrong in half.wrong[:_MOST_WRONG]:
        say(wrong, 6)
    if len(half.wrong) > _MOST_WRONG:
        say(f"... {len(half.wrong) - _MOST_WRONG} more: use --json", 6)
