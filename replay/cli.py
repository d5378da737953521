"""The command `replay`: words and exit codes (0 clean, 1 findings, 2 unreadable). Never decides."""

from __future__ import annotations

from typing import NoReturn

import click
import msgspec

from ..events.errors import GpuSolverError
from .cli_counterfactual import counterfactual, print_counterfactual
from .finals import ClaimView
from .findings import encodable, printable
from .seal import Anchors, read_note
from .verify import Report, verify
from .views import RoundRow, RuleRow, RunView
from .withheld import read_list
from .words import print_examination, printed_table, say

_MOST_FINDINGS = 50


@click.command("replay")
@click.argument("ledger")
@click.option("--verify", "deep", is_flag=True, help="Also re-derive every signal, match, verdict and claim.")
@click.option("--head", metavar="HASH", help="Demand that the last event has this hash, kept elsewhere.")
@click.option(
    "--checkpoint", "checkpoints", metavar="FILE", multiple=True, help="A checkpoint kept elsewhere; repeatable."
)
@click.option("--vkey", metavar="KEY", help="The sealer's verifier key, from its holder: seals must be signed by it.")
@click.option(
    "--origin", metavar="FILE", help="The ledger that this one answers from, or reproduces: must be the one it names."
)
@click.option("--file-digest", metavar="HEX", help="Demand that the file has this SHA-256, kept elsewhere.")
@click.option(
    "--policy", "played", metavar="off|on|tabu|FILE", help="Play the measurements under another evolution policy."
)
@click.option(
    "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes for a check without --verify."
)
@click.option("--experience", metavar="LEDGER", multiple=True, help="A ledger that a run learnt from; repeatable.")
@click.option("--withheld", metavar="FILE", help="What gpusolver withhold has left out: its absence is no finding.")
@click.option("--json", "as_json", is_flag=True, help="Write the whole report as JSON.")
@click.pass_context
def replay_command(
    context: click.Context, ledger: str, deep: bool, head: str | None, checkpoints: tuple[str, ...], vkey: str | None,
    origin: str | None, file_digest: str | None, played: str | None, experience: tuple[str, ...], withheld: str | None, jobs: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Replay LEDGER: check its chain and artifacts, print its rules, rounds, claims and examinations.

    Exit code 0: no findings; 1: findings; 2: the ledger cannot be read.
    """
    try:
        anchors = Anchors(checkpoints=tuple(map(read_note, checkpoints)), vkey=vkey, file_digest=file_digest)
        left_out = None if withheld is None else read_list(withheld)
        report = verify(
            ledger, deep, head=head, anchors=anchors, origin=origin, experience=experience, withheld=left_out, jobs=jobs
        )
        other = None if played is None else counterfactual(ledger, played, len(report.findings))
    except GpuSolverError as error:
        unreadable(context, error, as_json)
    if as_json:
        click.echo(msgspec.json.encode(report if other is None else other).decode())
    elif other is not None:
        print_counterfactual(other)
    else:
        _print_report(report)
    context.exit(1 if report.findings else 0)


def unreadable(context: click.Context, error: GpuSolverError, as_json: bool) -> NoReturn:
    """Say why, and exit 2."""
    if as_json:
        click.echo(msgspec.json.encode({"error": encodable(str(error))}).decode())
    else:
        click.echo(f"gpusolver: {printable(str(error))}", err=True)
    context.exit(2)


def _print_report(report: Report) -> None:
    counted = ", ".join(f"{number} {name if number != 1 else name[:-1]}" for name, number in report.counts.items())
    say(f"{report.path}: {counted}")
    for run in report.runs:
        click.echo()
        _print_run(run, report.deep)
    for exam in report.examinations:
        click.echo()
        print_examination(exam)
    click.echo()
    _print_findings(report)
    say(f"provenance: {report.provenance}")
    say(f"merit: {report.merit}")
    for seal in report.seals:
        say(
            f"seal: event {seal.seq} over the first {seal.size}, root {seal.root}, origin {seal.origin}: {seal.signature}"
        )
    say(f"root: {report.root} over {report.counts['events']} events")
    say(f"head: {report.head} at event {report.head_seq} (compare with one kept elsewhere)")
    for note in report.notes:
        say(f"note: {note}")


def _print_run(run: RunView, deep: bool) -> None:
    end = run.stopped or "unfinished"
    say(f"{run.run}: executor {run.executor}, {run.cells} cells, {end}")
    if run.origin is not None:
        say(f"recorded, not pre-registered; origin head {run.origin}", 2)
    printed_table("rules that fired", [_rule(row) for row in run.rules if row.fired])
    printed_table("rounds", [_round(row) for row in run.rounds])
    for claim in run.claims:
        _print_claim(claim, deep)


def _rule(row: RuleRow) -> tuple[str, ...]:
    state = "promoted" if row.promoted else ""
    if row.retired:
        state = f"{state} retired in {', '.join(row.retired)}".strip()
    outcome = f"{row.successes} of {row.successes + row.failures}"
    return row.cell, row.rule, f"fired {row.fired}", outcome, f"{row.confidence:.3f}", state


def _round(row: RoundRow) -> tuple[str, ...]:
    ratio = "" if row.median is None else f"{row.median:.3f}x [{row.lower:.3f}, {row.upper:.3f}]"
    return row.cell, str(row.round), row.rule, row.verdict, ratio, row.reason


def _print_claim(claim: ClaimView, deep: bool) -> None:
    say(f"claim {claim.claim}: {claim.text} (registered: {claim.comparison} at least {claim.at_least:g})", 2)
    medians = ", ".join(f"{median:.4g}x" for median in claim.stated_medians)
    say(f"stated      {claim.stated}  {medians}", 4)
    if claim.derived is None:
        say("re-derived  not possible, see the findings" if deep else "re-derived  no: use --verify", 4)
        return
    found = claim.derived
    parts = zip(found.medians, found.lowers, found.uppers, strict=True)
    ratios = ", ".join(f"{median:.4g}x [{lower:.4g}, {upper:.4g}]" for median, lower, upper in parts)
    say(f"re-derived  {found.answer}  {ratios}", 4)
    say({True: "they agree", False: "THEY DIFFER", None: "nothing stated to compare with"}[claim.agree], 4)


def _print_findings(report: Report) -> None:
    if not report.findings:
        say("findings: none")
        return
    say(f"findings: {len(report.findings)}")
    for finding in report.findings[:_MOST_FINDINGS]:
        where = f"event {finding.seq}" if finding.seq else "file"
        say(f"{where}: {finding.kind}: expected {finding.expected}; found {finding.found}", 2)
    if len(report.findings) > _MOST_FINDINGS:
        say(f"... {len(report.findings) - _MOST_FINDINGS} more: use --json", 2)
