"""`dtrag cbr` for the maintenance of cases: audit, consolidate, reflect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.context import Json, with_app
from dtrag.delivery.cli.exit_codes import FAILURE, OK

if TYPE_CHECKING:
    from dtrag.memory.consolidation import ConsolidationReport
    from dtrag.memory.reflection import ReflectedCase

_SHOWN = 40
"""Findings that are printed; `--json` has all."""

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")]


def audit(context: typer.Context, as_json: Json = False) -> int:
    """Check that every case can be traced to live sources.

    The exit code is 1 when cases need a person: stale ones, duplicates, ones
    that refer to themselves, and ones that a reader voted down.
    """
    report = with_app(context, lambda opened: opened.case_auditor.audit())
    from dtrag.delivery.cli.console import cropped, data, note, plural, safe, show_json, table
    from dtrag.memory.audit import FINDINGS, NEED_A_PERSON

    code = FAILURE if report.needs_a_person else OK
    if as_json:
        show_json(report.as_dict())
        return code
    counts = [(report.count(finding), text) for finding, text in FINDINGS.items()]
    data().print(table(("Cases", "Finding"), [(f"{count:,}", text) for count, text in counts], whole=("Cases",)))
    rows = [row for row in report.rows if row["finding"] in NEED_A_PERSON]
    for row in rows[:_SHOWN]:
        line = f"{row['case_id']}: {row['finding'].replace('_', ' ')}, {row['details']}"
        data().print(safe(cropped(line, 80)))
    if len(rows) > _SHOWN:
        note(f"{len(rows) - _SHOWN:,} more: --json has all of them.")
    note(
        f"{plural(report.examined, 'case')}, {report.archived:,} archived; {report.reusable:,} cite live passages, "
        f"{report.without_sources:,} cite none and are only suggested."
    )
    return code


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
    from dtrag.delivery.cli.console import data, note, plural, safe, show_json, table

    if undo is not None:
        restored = with_app(context, lambda opened: opened.consolidation.undo(undo))
        if as_json:
            show_json({"run": undo, "restored": restored})
        else:
            data().print(safe(f"Restored {plural(restored, 'case')} of {undo}"), soft_wrap=True)
        return OK
    if runs:
        listed = with_app(context, lambda opened: opened.consolidation.runs())
        rows: list[dict[str, Any]] = [{"run": name, **_counted(counts)} for name, counts in listed.items()]
        if as_json:
            show_json({"runs": rows})
        elif rows:
            data().print(table(("Run", "Merged", "Poor", "Unused"), [tuple(row.values()) for row in rows]))
        else:
            note("No run can be undone: none has archived cases.")
        return OK
    report = with_app(context, lambda opened: opened.consolidation.run(dry_run=dry_run))
    if as_json:
        show_json(_report_row(report))
    else:
        _print_report(report)
    return OK


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


def _print_report(report: ConsolidationReport) -> None:
    from dtrag.delivery.cli.console import cropped, data, note, plural, safe

    for archiving in report.archived[:_SHOWN]:
        into = f" into {archiving.into.case_id}" if archiving.into is not None else ""
        data().print(safe(cropped(f"{archiving.case.case_id}: {archiving.reason}{into}", 80)))
    counts = ", ".join(f"{report.count(reason):,} {reason}" for reason in ("merged", "poor", "unused"))
    examined = plural(report.examined, "case")
    if report.made_from_review:
        note(f"{plural(report.made_from_review, 'case')} made from earlier decisions of reviewers.")
    if report.dry_run:
        note(f"{examined} examined; would be archived: {counts}. Nothing was changed.")
    elif not report.archived:
        note(f"{examined} examined; nothing to archive.")
    else:
        note(f"{examined} examined; archived: {counts}. Undo: dtrag cbr consolidate --undo {report.run_id}")
    if report.changed_meanwhile:
        note(f"{plural(report.changed_meanwhile, 'case')} changed meanwhile: run the command again.")


def reflect(context: typer.Context, dry_run: DryRun = False, as_json: Json = False) -> int:
    """Show how often each case helped, and what to correct.

    Cases that failed in most of at least 10 votes get a lower quality, so that
    they are not reused, and their questions wait in the review queue.
    """
    report = with_app(context, lambda opened: opened.reflection.reflect(dry_run=dry_run))
    from dtrag.delivery.cli.console import data, note, plural, show_json, table

    if as_json:
        show_json(
            {
                "dry_run": dry_run,
                "examined": report.examined,
                "votes": report.votes,
                "success_rate": None if report.success_rate is None else round(report.success_rate, 6),
                "cases": [_reflected_row(each) for each in report.cases],
            }
        )
        return OK
    rows = [
        (f"{each.success_rate:.0%}", f"{each.votes:,}", each.case.case_id, each.advice or "It helps.")
        for each in report.cases[:_SHOWN]
    ]
    if rows:
        data().print(table(("Helped", "Votes", "Case", "Advice"), rows, whole=("Helped", "Votes")))
    queued = sum(each.in_review for each in report.cases)
    overall = "" if report.success_rate is None else f", {report.success_rate:.0%} of which report a success"
    note(f"{plural(report.examined, 'case')} with {plural(report.votes, 'vote')}{overall}.")
    if report.bad:
        in_review = "" if dry_run else f" {plural(queued, 'question')} in the review queue: dtrag review"
        note(f"{plural(len(report.bad), 'case')} failed more often than helped.{in_review}")
    elif not report.cases:
        note("No case has 10 votes: too few for a judgement.")
    return OK


def _reflected_row(each: ReflectedCase) -> dict[str, Any]:
    return {
        "case_id": each.case.case_id,
        "votes": each.votes,
        "success_rate": round(each.success_rate, 6),
        "lowered": each.lowered,
        "in_review": each.in_review,
        "advice": each.advice,
    }
