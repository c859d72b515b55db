"""`dtrag cbr` for figures, interactions and whole collections: stats, logs, export, migrate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.context import Json, with_app
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.core.cases.evidence import CollectionEvidence
    from dtrag.core.cases.statistics import CaseStatistics
    from dtrag.memory.maintenance import Migrated

FILE = "cbr_system.db"


def stats(context: typer.Context, as_json: Json = False) -> int:
    """Show the numbers of cases and interactions, their success and the speed of suggestions."""
    from dtrag.core.access.scope import EVERYTHING

    async def read(opened: App) -> tuple[CaseStatistics, CollectionEvidence]:
        return await opened.cases.statistics(), await opened.reuse.evidence(EVERYTHING)

    statistics, evidence = with_app(context, read)
    from dtrag.core.cases.statistics import Readiness
    from dtrag.delivery.cli.console import data, facts, show_json
    from dtrag.memory.case_results import statistics_row

    readiness = Readiness.of(statistics)
    if as_json:
        show_json({**statistics_row(statistics), "neural_selector_ready": readiness.ready, "reuse": evidence.as_dict()})
        return OK
    largest = sorted(statistics.category_distribution.items(), key=lambda row: (-row[1], row[0]))
    rows = [
        ("Cases", f"{statistics.total_cases:,} active, {statistics.archived_cases:,} archived"),
        ("Quality", f"{statistics.average_quality_score:.2f} on average"),
        ("Votes", f"{statistics.total_usage_count:,}"),
        ("Most votes", statistics.most_used_case or "none yet"),
        ("Interactions", f"{statistics.total_interactions:,}, {statistics.success_rate:.0%} successful"),
        ("Suggestions", f"{statistics.average_response_time_ms:.1f} ms on average"),
        ("Selector", "ready to be trained" if readiness.ready else readiness.missing),
        ("Reuse", ("allowed. " if evidence.allowed else "not allowed. ") + evidence.reason),
        *(("" if number else "Categories", f"{name}: {count:,}") for number, (name, count) in enumerate(largest)),
    ]
    data().print(facts(rows))
    return OK


def logs(
    context: typer.Context,
    *,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of entries.")] = 100,
    success_only: Annotated[
        bool, typer.Option("--success-only", help="Only interactions that ended with success.")
    ] = False,
    as_json: Json = False,
) -> int:
    """List the newest interactions, newest first."""
    newest = with_app(context, lambda opened: opened.cases.logs(limit, success_only=success_only))
    from dtrag.delivery.cli.console import data, note, plural, show_json, table
    from dtrag.memory.case_results import log_row

    if as_json:
        show_json({"logs": [log_row(log) for log in newest], "limit": limit})
        return OK
    if newest:
        rows = [
            (
                f"{log.timestamp:%Y-%m-%d %H:%M:%S}",
                log.query or "(without text)",
                len(log.suggested_case_ids),
                log.feedback.value if log.feedback else "",
                log.log_id,
            )
            for log in newest
        ]
        data().print(table(("Time (UTC)", "Question", "Cases", "Vote", "Id"), rows, whole=("Cases",)))
    note(plural(len(newest), "interaction") if newest else "There are no such interactions.")
    return OK


def export(
    context: typer.Context,
    *,
    limit: Annotated[
        int, typer.Option(min=1, max=100_000, help="Maximum number of cases, and of interactions.")
    ] = 10_000,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to this file.", show_default="standard output")
    ] = None,
    as_json: Json = False,
) -> int:
    """Export cases and interactions as training data, in JSON.

    The export contains questions as far as they are stored: treat it like the
    database.
    """
    exported = with_app(context, lambda opened: opened.cases.export(limit))
    import json
    from datetime import UTC, datetime

    from dtrag.delivery.cli.console import note, plural, show_json
    from dtrag.memory.case_results import training_data

    rows = training_data(exported, datetime.now(UTC).isoformat())
    if output is None:
        show_json(rows)
    else:
        output.write_text(json.dumps(rows, ensure_ascii=False, indent=2) + "\n", "utf-8")
        if as_json:
            show_json({"file": str(output), "metadata": rows["training_data"]["metadata"]})
    cases, interactions = plural(len(exported.cases), "case"), plural(len(exported.interactions), "interaction")
    note(f"{cases}, {interactions}" + ("" if exported.complete else "; there are more, raise --limit"))
    return OK


def migrate(
    context: typer.Context,
    *,
    to_sqlite: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Copy from the database to cbr_system.db there.", show_default=False),
    ] = None,
    from_sqlite: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Copy from cbr_system.db there to the database.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> int:
    """Copy the case memory between the database and an SQLite file.

    Cases are copied with their votes and decisions, and interactions. What the
    target has already stays as it is there; nothing is deleted.
    """
    folder = to_sqlite or from_sqlite
    if folder is None or (to_sqlite and from_sqlite):
        raise typer.BadParameter("give either --to-sqlite or --from-sqlite")
    if from_sqlite and not (from_sqlite / FILE).is_file():
        from dtrag.errors import InvalidInput

        raise InvalidInput(f"There is no {FILE} in {folder}. Give the folder that was CBR_DATA_DIR.")

    async def copy(opened: App) -> Migrated:
        from dtrag.assembly import both_case_stores
        from dtrag.core.access.api_key import LOCAL
        from dtrag.memory.maintenance import migrate

        in_database, in_file = both_case_stores(opened.settings, opened.database, folder.absolute())
        try:
            done = await (migrate(in_file, in_database) if from_sqlite else migrate(in_database, in_file))
        finally:
            await in_file.close()
        details = {"to": "database" if from_sqlite else "sqlite", "cases": done.cases, "logs": done.logs}
        await opened.audit.record(
            LOCAL.name, "cases.migrate", scope=None, subjects=(), decision="done", details=details
        )
        return done

    migrated = with_app(context, copy)
    from dtrag.delivery.cli.console import data, note, plural, show_json

    if as_json:
        show_json(
            {
                "cases": migrated.cases,
                "known_cases": migrated.known_cases,
                "interactions": migrated.logs,
                "known_interactions": migrated.known_logs,
            }
        )
        return OK
    copied = f"{plural(migrated.cases, 'case')} and {plural(migrated.logs, 'interaction')}"
    data().print(f"Copied {copied}")
    if migrated.known_cases or migrated.known_logs:
        note(f"There already: {plural(migrated.known_cases, 'case')}, {plural(migrated.known_logs, 'interaction')}")
    return OK
