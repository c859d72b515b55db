"""`dtrag documents`: what is in the index; one document; away with it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.exits import OK
from dtrag.delivery.cli.invocation import Json, invocation, run_async

if TYPE_CHECKING:
    from dtrag.core.documents import DocumentSummary
    from dtrag.settings import Settings

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True, help="List, show and delete documents.")

Limit = Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")]
Offset = Annotated[int, typer.Option(min=0, help="How many to pass over first.")]
DocumentId = Annotated[str, typer.Argument(metavar="ID", help="As the list shows it.", show_default=False)]


@app.callback()
def documents(context: typer.Context, limit: Limit = 100, offset: Offset = 0, as_json: Json = False) -> int:
    """List, show and delete documents. Without a command: list."""
    if context.invoked_subcommand is None:
        return _list(context, limit, offset, as_json)
    if as_json or (limit, offset) != (100, 0):
        raise typer.BadParameter(f"give the options after `documents {context.invoked_subcommand}`")
    return OK


@app.command("list")
def list_documents(context: typer.Context, limit: Limit = 100, offset: Offset = 0, as_json: Json = False) -> int:
    """The documents, the newest first."""
    return _list(context, limit, offset, as_json)


@app.command("show")
def show_document(context: typer.Context, document_id: DocumentId, as_json: Json = False) -> int:
    """One document with its text."""
    summary, text = run_async(_document(invocation(context).settings(), document_id))
    from dtrag.delivery.cli.console import data, facts, place, safe, show_json

    if as_json:
        show_json({**asdict(summary), "text": text})
        return OK
    rows = [
        ("Title", summary.title),
        ("Id", summary.document_id),
        ("Source", place(summary.source_url)),
        ("Type", summary.content_type),
        ("Category", "/".join(summary.taxonomy_path) or "no category"),
        ("Language", summary.language),
        ("Size", f"{summary.characters:,} characters in {summary.chunks:,} chunks"),
        ("Read", summary.processed_at),
    ]
    rows += [(str(name), str(value)) for name, value in summary.metadata.items()]
    console = data()
    console.print(facts(rows))
    console.print()
    console.print(safe(text), soft_wrap=True)
    return OK


@app.command("delete")
def delete_document(context: typer.Context, document_id: DocumentId, as_json: Json = False) -> int:
    """Delete a document and everything made from it; the file itself stays."""
    run_async(_delete(invocation(context).settings(), document_id))
    from dtrag.delivery.cli.console import data, show_json

    if as_json:
        show_json({"deleted": document_id})
    else:
        data().print(f"Deleted {document_id}")
    return OK


def _list(context: typer.Context, limit: int, offset: int, as_json: bool) -> int:
    found, (total, chunks) = run_async(_documents(invocation(context).settings(), limit, offset))
    from dtrag.delivery.cli.console import data, note, plural, show_json, table

    if as_json:
        rows = [asdict(summary) for summary in found]
        show_json(
            {"documents": rows, "total": {"documents": total, "chunks": chunks}, "limit": limit, "offset": offset}
        )
        return OK
    if found:
        listed = [(s.document_id, s.title, "/".join(s.taxonomy_path), s.chunks) for s in found]
        data().print(table(("Id", "Title", "Category", "Chunks"), listed, whole=("Id", "Chunks")))
    if total:
        note(f"{len(found):,} of {plural(total, 'document')}")
    else:
        note("There are no documents yet. Read some with: dtrag ingest FOLDER")
    return OK


async def _documents(settings: Settings, limit: int, offset: int) -> tuple[list[DocumentSummary], tuple[int, int]]:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        return await opened.documents(limit, offset), await opened.counts()


async def _document(settings: Settings, document_id: str) -> tuple[DocumentSummary, str]:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        return await opened.document(document_id)


async def _delete(settings: Settings, document_id: str) -> None:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        await opened.delete_document(document_id)
