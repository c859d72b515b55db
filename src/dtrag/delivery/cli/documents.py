"""`dtrag documents`: list, show, move and delete documents."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict
from enum import Enum
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urldefrag

import typer

from dtrag.delivery.cli.console import (
    Facts,
    ListFormat,
    Rows,
    cropped,
    cropped_before,
    data,
    note,
    notes,
    place,
    plural,
    safe,
    show_result,
    table,
)
from dtrag.delivery.cli.context import Category, Direct, Form, Json, ListedId, Offset, Yes, confirmed, with_app
from dtrag.delivery.cli.exit_codes import OK
from dtrag.delivery.cli.taxonomy import Lowering, Widening, impact_tables
from dtrag.errors import NotFound

if TYPE_CHECKING:
    from rich.console import Console

    from dtrag.app import App
    from dtrag.core.document_changes import DocumentsEffect
    from dtrag.core.documents import DocumentSummary
    from dtrag.delivery.cli.reading import Documents

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True, help="List, show, move and delete documents.")


class Order(Enum):
    """The orders of a list."""

    newest = "newest"
    oldest = "oldest"
    title = "title"
    largest = "largest"
    smallest = "smallest"


SHOWN = 10
"""Number of documents in a preview."""

Targets = Annotated[
    list[str] | None,
    typer.Argument(metavar="TARGET...", help='Ids, files, folders, or patterns such as "*.md".', show_default=False),
]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of entries.")]


@app.callback()
def documents(
    context: typer.Context, limit: Limit = 100, offset: Offset = 0, direct: Direct = False, as_json: Json = False
) -> int:
    """List, show, move and delete documents. Without a command: list."""
    if context.invoked_subcommand is None:
        return list_documents(context, limit=limit, offset=offset, direct=direct, as_json=as_json)
    if as_json or direct or (limit, offset) != (100, 0):
        raise typer.BadParameter(f"give the options after `documents {context.invoked_subcommand}`")
    return OK


@app.command("list")
def list_documents(
    context: typer.Context,
    text: Annotated[
        str, typer.Argument(metavar="[TEXT]", help="Text in the title or in the path of the file, in any case.")
    ] = "",
    *,
    category: Category = None,
    content_type: Annotated[
        list[str] | None,
        typer.Option(
            "--type", metavar="TYPE", help="Only this content type, such as application/pdf; may be repeated."
        ),
    ] = None,
    sort: Annotated[Order, typer.Option(help="The order; sizes are numbers of characters.")] = Order.newest,
    after: Annotated[str, typer.Option(metavar="NEXT", help="The `next` of the page before, from --json.")] = "",
    limit: Limit = 100,
    offset: Offset = 0,
    direct: Direct = False,
    as_json: Json = False,
    form: Form = ListFormat.table,
) -> int:
    """List the documents with their files, the newest first."""
    from dtrag.delivery.cli.reading import Listing, Source, check_categories, read

    async def page_of(source: Source) -> Documents:
        await check_categories(source, [category] if category else None)
        return await source.documents(Listing(limit, offset, text, category, content_type or (), sort.value, after))

    page = read(context, page_of, direct=direct)
    if as_json or form is not ListFormat.table:
        total = {"documents": page.total, "chunks": page.chunks, "vectors_pending": page.vectors_pending}
        value = {"documents": page.documents, "total": total, "limit": limit, "offset": offset, "next": page.next}
        return show_result(as_json or form, value, _rows(page.documents))
    _show_page(page, selects=bool(text or category or content_type))
    return OK


@app.command("show")
def show_document(context: typer.Context, document_id: ListedId, direct: Direct = False, as_json: Json = False) -> int:
    """Show one document with its text."""
    from dtrag.delivery.cli.reading import read

    summary, text = read(context, lambda source: source.document(document_id), direct=direct)
    rows = [
        ("Title", summary.title),
        ("Id", summary.document_id),
        ("Source", place(summary.source_url)),
        ("Type", summary.content_type),
        ("Category", "/".join(summary.taxonomy_path) or "no category"),
        ("Language", summary.language),
        ("Size", f"{summary.characters:,} characters in {summary.chunks:,} chunks"),
        ("Indexed", summary.processed_at),
    ]
    rows += [(str(name), str(value)) for name, value in summary.metadata.items()]
    return show_result(as_json, {**asdict(summary), "text": text}, Facts(rows), f"\n{text}")


@app.command("delete")
def delete_documents(
    context: typer.Context,
    targets: Targets = None,
    *,
    category: Category = None,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted, but delete nothing.")] = False,
    as_json: Json = False,
) -> int:
    """Delete documents with everything derived from them; the files stay.

    Shows what would be deleted and asks, unless only ids are given. A pattern
    without "/" matches file names, other patterns match whole paths; "*" stays
    within a folder, "**" crosses folders.
    """
    from dtrag.core.access.confinement import OWNER

    requested = targets or []
    # A list of ids is exact; paths, patterns and categories may select more than was meant.
    ask = not (yes or dry_run) and (bool(category) or not all(map(_is_id, requested)))

    async def select(opened: App) -> tuple[list[DocumentSummary], int]:
        selected = await _selected(opened, requested, category)
        return selected, 0 if ask or dry_run else await delete(opened, selected)

    async def delete(opened: App, documents: Sequence[DocumentSummary]) -> int:
        return await opened.delete_documents([document.document_id for document in documents], scope=OWNER)

    selected, deleted = with_app(context, select)
    if selected and ask:
        _preview(selected)
        refusal = "Nothing was deleted: there is no terminal to ask on. Add --yes to delete these documents."
        if not confirmed("Delete these documents?", refusal):
            return OK
        deleted = with_app(context, lambda opened: delete(opened, selected))
    if dry_run and not as_json:
        _preview(selected)
        return OK
    rows = [{"document_id": d.document_id, "title": d.title, "source_url": d.source_url} for d in selected]
    return show_result(as_json, {"deleted": deleted, "documents": rows}, f"Deleted {plural(deleted, 'document')}")


@app.command("move")
def move_documents(
    context: typer.Context,
    targets: Targets = None,
    *,
    to: Annotated[str, typer.Option(metavar="PATH", help='Their new category, such as "HR/Leave".')],
    category: Category = None,
    accept_widening: Widening = False,
    accept_lowering: Lowering = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be moved, but move nothing.")] = False,
    as_json: Json = False,
) -> int:
    """Move documents to another category, all of them or none.

    Later ingests of the files leave them there. Targets as for delete.
    """
    from dtrag.core.document_changes import ManyDocuments

    async def move(opened: App) -> DocumentsEffect:
        selected = await _selected(opened, targets or [], category)
        selection = ManyDocuments.parse([document.document_id for document in selected], to)
        if dry_run:
            return await opened.document_changes.preview(selection)
        return await opened.document_changes.change(
            selection, accept_widening=accept_widening, accept_lowering=accept_lowering
        )

    effect = with_app(context, move)
    refused = [(row.title or row.document_id, str(row.reason)) for row in effect.refused]
    before = [("/".join(row.path) or "no category", f"{row.documents:,}") for row in effect.categories]
    done = f"{plural(effect.documents, 'document')} {'would move' if dry_run else 'moved'} to {to}"
    return show_result(
        as_json,
        effect,
        Rows(("From", "Documents"), before, whole=("Documents",)),
        *impact_tables(effect.access or (), effect.lowered),
        Rows(("Stays", "Why"), refused),
        notes=[f"{done}, {effect.unchanged:,} there already."],
    )


async def _selected(opened: App, targets: Sequence[str], category: str | None) -> list[DocumentSummary]:
    from dtrag.core.access.confinement import OWNER

    selected, unmatched = await opened.select_documents(targets, category, scope=OWNER)
    if unmatched:
        raise NotFound(kind="document", name=unmatched[0][:60])
    return selected


def _is_id(target: str) -> bool:
    try:
        uuid.UUID(target)
    except ValueError:
        return False
    return True


def _preview(selected: Sequence[DocumentSummary]) -> None:
    rows = [(document.title, "/".join(document.taxonomy_path), place(document.source_url)) for document in selected]
    notes().print(table(("Title", "Category", "Source"), rows[:SHOWN]))
    more = f", {len(rows) - SHOWN:,} of them not shown (--dry-run --json lists all)" if len(rows) > SHOWN else ""
    note(f"{plural(len(rows), 'document')}{more}")


def _rows(documents: Sequence[DocumentSummary]) -> Rows:
    rows = [
        (
            document.document_id,
            document.title,
            "/".join(document.taxonomy_path),
            document.language,
            document.chunks,
            document.characters,
            document.processed_at,
            document.source_url,
        )
        for document in documents
    ]
    return Rows(("Id", "Title", "Category", "Language", "Chunks", "Characters", "Indexed", "Source"), rows)


def _show_page(page: Documents, *, selects: bool) -> None:
    console = data()
    for summary in page.documents:
        _show_row(summary, console)
    if page.total:
        files = {urldefrag(summary.source_url).url for summary in page.documents}
        shown = f"{len(page.documents):,} of {plural(page.total, 'document')}"
        note(f"{shown}, from {plural(len(files), 'file')}; {plural(page.chunks, 'chunk')} altogether")
        if page.vectors_pending:
            note(f"The vectors of {plural(page.vectors_pending, 'chunk')} are still to be made: found by words only")
    elif selects:
        note("No document matches. Try another text, or fewer filters.")
    else:
        note("There are no documents yet. Index some with: dtrag ingest FOLDER")


def _show_row(summary: DocumentSummary, console: Console) -> None:
    """Two lines: title, category and number of chunks; id and file."""
    from rich.cells import cell_len
    from rich.text import Text

    facts = f" · {'/'.join(summary.taxonomy_path) or 'no category'} · {plural(summary.chunks, 'chunk')}"
    # Lines are cropped to the width of a terminal only.
    width = console.width if console.is_terminal else 1_000_000
    title = cropped(" ".join(summary.title.split()), max(20, width - cell_len(facts)))
    file = cropped_before(place(summary.source_url), max(20, width - len(summary.document_id) - 4))
    console.print(Text(safe(title), style="bold") + Text(safe(facts)), soft_wrap=True)
    console.print(Text(f"  {summary.document_id}  {file}", style="dim"), soft_wrap=True)
