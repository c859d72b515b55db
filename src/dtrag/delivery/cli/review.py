"""`dtrag review`: what waits for a person, and the person's word about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.core.taxonomy.review import Item
    from dtrag.governance.review import Review
    from dtrag.settings import Settings

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True, help="Decide what classification left open.")

Limit = Annotated[int, typer.Option(min=1, max=1_000, help="How many at most.")]
Offset = Annotated[int, typer.Option(min=0, help="How many to pass over first.")]
ItemId = Annotated[str, typer.Argument(metavar="ID", help="As the list shows it.", show_default=False)]
Note = Annotated[str, typer.Option(metavar="TEXT", help="A word about it.", show_default=False)]


@app.callback()
def review(context: typer.Context, limit: Limit = 100, offset: Offset = 0, as_json: Json = False) -> int:
    """Decide what classification left open. Without a command: list."""
    if context.invoked_subcommand is None:
        return _list(context, limit, offset, as_json)
    if as_json or (limit, offset) != (100, 0):
        raise typer.BadParameter(f"give the options after `review {context.invoked_subcommand}`")
    return OK


@app.command("list")
def list_items(context: typer.Context, limit: Limit = 100, offset: Offset = 0, as_json: Json = False) -> int:
    """What waits, the least sure first."""
    return _list(context, limit, offset, as_json)


@app.command("show")
def show(context: typer.Context, item_id: ItemId, as_json: Json = False) -> int:
    """One item: what is proposed, why, and what else it might be."""
    item = run_async(_one(invocation(context).settings(), lambda queue: queue.get(item_id)))
    from dtrag.delivery.cli.console import data, facts, show_json

    if as_json:
        show_json(item.as_dict())
        return OK
    rows = [
        ("Id", str(item.item_id)),
        ("Status", item.status + (f", by {item.decided_by}" if item.decided_by else "")),
        ("Confidence", f"{item.confidence:.2f}"),
    ]
    if item.kind == "answer":
        rows += [("Agent", str(item.agent_id)), ("Question", item.proposal["question"])]
        rows.append(("Answer", item.proposal["text"]))
    else:
        rows += [("Document", str(item.document_id)), ("Title", item.title), ("Proposal", _proposed(item))]
        rows += [("Because" if not n else "", reason) for n, reason in enumerate(item.proposal["reasons"])]
        others = item.proposal["alternatives"]
        rows += [
            ("Or" if not n else "", f"{'/'.join(other['path'])} ({other['confidence']:.2f})")
            for n, other in enumerate(others)
        ]
    if item.note:
        rows.append(("Note", item.note))
    data().print(facts(rows))
    return OK


@app.command("approve")
def approve(context: typer.Context, item_id: ItemId, note: Note = "", as_json: Json = False) -> int:
    """As proposed."""
    return _decided(context, lambda queue: queue.approve(item_id, note), as_json)


@app.command("correct")
def correct(
    context: typer.Context,
    item_id: ItemId,
    path: Annotated[str, typer.Argument(metavar="PATH", help='Where it belongs: "HR/Leave".', show_default=False)],
    note: Note = "",
    as_json: Json = False,
) -> int:
    """Into another category."""
    return _decided(context, lambda queue: queue.correct(item_id, path, note), as_json)


@app.command("skip")
def skip(context: typer.Context, item_id: ItemId, note: Note = "", as_json: Json = False) -> int:
    """Out of the queue; the document stays where it is."""
    return _decided(context, lambda queue: queue.skip(item_id, note), as_json)


def _list(context: typer.Context, limit: int, offset: int, as_json: bool) -> int:
    found, total = run_async(_waiting(invocation(context).settings(), limit, offset))
    from dtrag.delivery.cli.console import data, note, plural, show_json, table

    if as_json:
        items = [item.as_dict() for item in found]
        show_json({"items": items, "total": total, "limit": limit, "offset": offset})
        return OK
    if found:
        rows = [(str(item.item_id), f"{item.confidence:.2f}", _about(item), _proposed(item)) for item in found]
        data().print(table(("Id", "Sure", "About", "Proposal"), rows, whole=("Id", "Sure")))
    note(f"{len(found):,} of {plural(total, 'item')}" if total else "Nothing waits for a person.")
    return OK


def _decided(context: typer.Context, decide: Callable[[Review], Awaitable[Item]], as_json: bool) -> int:
    item = run_async(_one(invocation(context).settings(), decide))
    from dtrag.delivery.cli.console import data, safe, show_json

    if as_json:
        show_json(item.as_dict())
    else:
        where = f": {_proposed(item)}" if item.kind == "classification" and item.status != "skipped" else ""
        data().print(safe(f"{item.status.capitalize()} {item.item_id}{where}"), soft_wrap=True)
    return OK


def _about(item: Item) -> str:
    return item.proposal["question"] if item.kind == "answer" else item.title


def _proposed(item: Item) -> str:
    if item.kind == "answer":
        return "an answer"
    return "/".join(item.proposal["path"]) or "no category"


async def _waiting(settings: Settings, limit: int, offset: int) -> tuple[list[Item], int]:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        return await opened.review.waiting(limit, offset)


async def _one(settings: Settings, decide: Callable[[Review], Awaitable[Item]]) -> Item:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        return await decide(opened.review)
