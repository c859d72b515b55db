"""`dtrag cbr` for the maintenance of cases: audit, consolidate, reflect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.console import Rows, cropped, plural, safe, show_result
from dtrag.delivery.cli.context import Json, with_app
from dtrag.delivery.cli.exit_codes import FAILURE, OK

if TYPE_CHECKING:
    from dtrag.cases.maintenance import ConsolidationReport, ReflectedCase

_SHOWN = 40
"""Findings that are printed; `--json` has all."""

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")]


def audit(context: typer.Context, as_json: Json = False) -> int:
    """Check that every case can be traced to live sources.

    The exit code is 1 when cases need a person: stale ones, duplicates, ones
    that refer to themselves, and ones that a reader voted down.
    """
    report = with_app(context, lambda opened: opened.case_auditor.audit())
    from dtrag.cases.maintenance import FINDINGS, NEED_A_PERSON

    counts = [(f"{report.count(finding):,}", text) for finding, text in FINDINGS.items()]
    rows = [row for row in report.rows if row["finding"] in NEED_A_PERSON]
    lines = [f"{row['case_id']}: {row['finding'].replace('_', ' ')}, {row['details']}" for row in rows[:_SHOWN]]
    show_result(
        as_json,
        report.as_dict(),
        Rows(("Cases", "Finding"), counts, whole=("Cases",)),
        *(cropped(safe(line), 80) for line in lines),
        notes=[
            f"{len(rows) - _SHOWN:,} more: --json has all of them." if len(rows) > _SHOWN else "",
            f"{plural(report.examined, 'case')}, {report.archived:,} archived; {report.reusable:,} cite live passages, "
            f"{report.without_sources:,} cite none and are only suggested.",
        ],
    )
    return FAILURE if report.needs_a_person else OK


def consolidate(
    context: typer.Context,
    *,
    dry_run: DryRun = False,
    undo: Annotated[
        str | None, typer.Option(metavar="RUN", help="Restore what this run archived.", show_default=False)
    ] = None,
    runs: Annotated[bool, typer.Option("--runs", help="List the runs that can be undone.")] = False,
    as_json: Json = False,
) -> int:
    """Merge duplicate cases, and archive poor and unused ones.

    A run that was interrupted is continued by the next one.
    """
    if sum((dry_run, undo is not None, runs)) > 1:
        raise typer.BadParameter("give only one of --dry-run, --undo and --runs")

    if undo is not None:
        restored = with_app(context, lambda opened: opened.consolidation.undo(undo))
        done = f"Restored {plural(restored, 'case')} of {undo}"
        return show_result(as_json, {"run": undo, "restored": restored}, done)
    if runs:
        listed = with_app(context, lambda opened: opened.consolidation.runs())
        rows: list[dict[str, Any]] = [{"run": name, **_counted(counts)} for name, counts in listed.items()]
        shown = Rows(("Run", "Merged", "Poor", "Unused"), [tuple(row.values()) for row in rows])
        none = "" if rows else "No run can be undone: none has archived cases."
        return show_result(as_json, {"runs": rows}, shown, notes=[none])
    report = with_app(context, lambda opened: opened.consolidation.run(dry_run=dry_run))
    lines = [
        f"{each.case.case_id}: {each.reason}" + (f" into {each.into.case_id}" if each.into is not None else "")
        for each in report.archived[:_SHOWN]
    ]
    return show_result(
        as_json, _report_row(report), *(cropped(safe(line), 80) for line in lines), notes=_report_notes(report)
    )


def _counted(counts: Any) -> dict[str, int]:
    return {reason: counts[reason] for reason in ("merged", "poor", "unused")}


def _report_row(report: ConsolidationReport) -> dict[str, Any]:
    return {
        "run": report.run_id,
        "dry_run": report.dry_run,
        "examined": report.examined,
        "made_from_review": report.made_from_review,
        "changed_meanwhile": report.changed_meanwhile,
        "archived": [
            {
                "case_id": archiving.case.case_id,
                "reason": archiving.reason,
                "into": archiving.into.case_id if archiving.into is not None else None,
            }
            for archiving in report.archived
        ],
    }


def _report_notes(report: ConsolidationReport) -> Iterator[str]:
    counts = ", ".join(f"{report.count(reason):,} {reason}" for reason in ("merged", "poor", "unused"))
    examined = plural(report.examined, "case")
    if report.made_from_review:
        yield f"{plural(report.made_from_review, 'case')} made from earlier decisions of reviewers."
    if report.dry_run:
        yield f"{examined} examined; would be archived: {counts}. Nothing was changed."
    elif not report.archived:
        yield f"{examined} examined; nothing to archive."
    else:
        yield f"{examined} examined; archived: {counts}. Undo: dtrag cbr consolidate --undo {report.run_id}"
    if report.changed_meanwhile:
        yield f"{plural(report.changed_meanwhile, 'case')} changed meanwhile: run the command again."


def reflect(context: typer.Context, dry_run: DryRun = False, as_json: Json = False) -> int:
    """Show how often each case helped, and what to correct.

    Cases that failed in most of at least 10 votes get a lower quality, so that
    they are not reused, and their questions wait in the review queue.
    """
    report = with_app(context, lambda opened: opened.reflection.reflect(dry_run=dry_run))
    rows = [
        (f"{each.success_rate:.0%}", f"{each.votes:,}", each.case.case_id, each.advice or "It helps.")
        for each in report.cases[:_SHOWN]
    ]
    queued = sum(each.in_review for each in report.cases)
    overall = "" if report.success_rate is None else f", {report.success_rate:.0%} of which report a success"
    in_review = "" if dry_run else f" {plural(queued, 'question')} in the review queue: dtrag review"
    judged = "" if report.cases else "No case has 10 votes: too few for a judgement."
    if report.bad:
        judged = f"{plural(len(report.bad), 'case')} failed more often than helped.{in_review}"
    return show_result(
        as_json,
        {
            "dry_run": dry_run,
            "examined": report.examined,
            "votes": report.votes,
            "success_rate": None if report.success_rate is None else round(report.success_rate, 6),
            "cases": [_reflected_row(each) for each in report.cases],
        },
        Rows(("Helped", "Votes", "Case", "Advice"), rows, whole=("Helped", "Votes")),
        notes=[f"{plural(report.examined, 'case')} with {plural(report.votes, 'vote')}{overall}.", judged],
    )


def _reflected_row(each: ReflectedCase) -> dict[str, Any]:
    return {
        "case_id": each.case.case_id,
        "votes": each.votes,
        "success_rate": round(each.success_rate, 6),
        "lowered": each.lowered,
        "in_review": each.in_review,
        "advice": each.advice,
    }
