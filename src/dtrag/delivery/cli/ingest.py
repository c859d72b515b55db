"""`dtrag ingest`: files and folders into the index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.exits import OK, SOME_FILES_FAILED
from dtrag.delivery.cli.invocation import Json, invocation, run_async
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.ingestion.ingest import IngestReport
    from dtrag.settings import Settings


def ingest(
    context: typer.Context,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and folders.", show_default=False)],
    category: Annotated[
        str | None,
        typer.Option(metavar="PATH", help='Category of documents that name none, such as "AI/ML".'),
    ] = None,
    as_json: Json = False,
) -> int:
    """Read files and folders into the index.

    Formats: Markdown, plain text, HTML, PDF, DOCX, HWPX, CSV, JSON lines. What is
    there already in the same form is left alone, so the same command may be
    repeated at any time, also after an interruption.
    """
    missing = [path for path in paths if not path.exists()]
    if len(missing) == len(paths):
        raise InvalidInput(f"There is no such file or folder: {', '.join(map(str, missing[:3]))}.")
    report = run_async(_ingest(invocation(context).settings(), paths, category))
    if as_json:
        from dtrag.delivery.cli.console import show_json

        show_json(as_dict(report))
    else:
        show(report)
    return SOME_FILES_FAILED if report.failed else OK


async def _ingest(settings: Settings, paths: Sequence[Path], category: str | None) -> IngestReport:
    from dtrag.app import open_app
    from dtrag.delivery.cli.progress import ingest_progress

    async with open_app(settings) as app:
        with ingest_progress() as update:
            return await app.ingest(paths, category, update)


def as_dict(report: IngestReport) -> dict[str, Any]:
    """The JSON object of a report."""
    return {
        "documents": report.documents,
        "chunks": report.chunks,
        "unchanged": report.unchanged,
        "removed": report.removed,
        "files": report.files,
        "seconds": round(report.seconds, 3),
        "structure": dict(report.structure),
        "failed": [{"path": path, "reason": reason} for path, reason in report.failed],
        "document_ids": report.document_ids,
        "notes": report.notes,
    }


def show(report: IngestReport) -> None:
    """The report for people: counts and failures on stdout, notes on stderr."""
    from dtrag.delivery.cli.console import data, facts, note, plural, table

    rows = [
        ("Documents", f"{report.documents:,} new or changed"),
        ("Chunks", f"{report.chunks:,}"),
        ("Unchanged", f"{report.unchanged:,}"),
        ("Removed", f"{report.removed:,}"),
        ("Seconds", f"{report.seconds:,.1f}"),
    ]
    if report.structure:
        rows.append(("Structure", ", ".join(plural(count, kind) for kind, count in report.structure.items())))
    console = data()
    console.print(facts(rows))
    if report.failed:
        console.print(f"\n{plural(len(report.failed), 'file')} could not be read:", style="bold")
        console.print(table(("File", "Reason"), report.failed))
    for text in report.notes:
        note(text)
