"""`dtrag review`: list and decide the items of the review queue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.console import Facts, ListFormat, Rows, plural, show_result
from dtrag.delivery.cli.context import Form, Json, ListedId, Offset, with_app
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from dtrag.core.taxonomy.review import PassageView, ReviewItem
    from dtrag.governance.review import Review

app = typer.Typer(
    rich_markup_mode=None, invoke_without_command=True, help="Decide uncertain classifications and answers."
)

_SHOWN = 300
"""Characters of a passage that `show` prints; `--json` has the whole text."""
HASH_DIGITS = 12
"""Digits of the content hash that `show` prints."""

Limit = Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of entries.")]
Note = Annotated[str, typer.Option(metavar="TEXT", help="A comment.", show_default=False)]


@app.callback()
def review(context: typer.Context, limit: Limit = 100, offset: Offset = 0, as_json: Json = False) -> int:
    """Decide uncertain classifications and answers. Without a command: list."""
    if context.invoked_subcommand is None:
        return list_items(context, limit, offset, as_json)
    if as_json or (limit, offset) != (100, 0):
        raise typer.BadParameter(f"give the options after `review {context.invoked_subcommand}`")
    return OK


@app.command("list")
def list_items(
    context: typer.Context, limit: Limit = 100, offset: Offset = 0, as_json: Json = False, form: Form = ListFormat.table
) -> int:
    """List the pending items, least confident first."""
    items, total = with_app(context, lambda opened: opened.review.waiting(limit, offset))
    value = {"items": items, "total": total, "limit": limit, "offset": offset}
    cells = [(str(item.item_id), f"{item.confidence:.2f}", _subject(item), _proposal(item)) for item in items]
    listed = Rows(("Id", "Sure", "About", "Proposal"), cells, whole=("Id", "Sure"))
    count = f"{len(items):,} of {plural(total, 'item')}" if total else "The review queue is empty."
    return show_result(as_json or form, value, listed, notes=[count])


@app.command("show")
def show(
    context: typer.Context,
    item_id: ListedId,
    passage: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHUNK_ID",
            help="For an answer: a further passage to show; may be repeated.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Show one item: the proposal, its reasons and the alternatives."""
    item = with_app(context, lambda opened: opened.review.get(item_id, passages=passage or ()))
    rows = [
        ("Id", str(item.item_id)),
        ("Status", item.status + (f", by {item.decided_by}" if item.decided_by else "")),
        ("Confidence", f"{item.confidence:.2f}"),
    ]
    if item.kind == "answer":
        rows += _answer_rows(item)
    else:
        rows += [("Document", str(item.document_id)), ("Title", item.title), ("Proposal", _proposal(item))]
        rows += [("Because" if not n else "", reason) for n, reason in enumerate(item.proposal["reasons"])]
        others = item.proposal["alternatives"]
        rows += [
            ("Or" if not n else "", f"{'/'.join(other['path'])} ({other['confidence']:.2f})")
            for n, other in enumerate(others)
        ]
    if item.note:
        rows.append(("Note", item.note))
    return show_result(as_json, item, Facts(rows))


@app.command("approve")
def approve(
    context: typer.Context,
    item_id: ListedId,
    passage: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHUNK_ID@HASH",
            help="For an answer: a cited passage as `show` printed it; refused if its text has changed.",
            show_default=False,
        ),
    ] = None,
    note: Note = "",
    as_json: Json = False,
) -> int:
    """Accept the proposal."""
    keys, hashes = _with_hashes(passage or ())
    if len(hashes) < len(keys):
        raise typer.BadParameter("give --passage with the hash, as CHUNK_ID@HASH: `dtrag review show` prints it")
    return _decide(context, lambda queue: queue.approve(item_id, note, content_hashes=hashes or None), as_json)


@app.command("correct")
def correct(
    context: typer.Context,
    item_id: ListedId,
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH]",
            help='Category of the document, such as "HR/Leave". With --passage it publishes the question of the answer '
            "to all who see this category and the passages.",
            show_default=False,
        ),
    ] = None,
    *,
    passage: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHUNK_ID[@HASH]",
            help="For an answer: a passage that answers its question; may be repeated. With the hash that `show` "
            "prints, the decision is refused if the text has changed.",
            show_default=False,
        ),
    ] = None,
    note: Note = "",
    as_json: Json = False,
) -> int:
    """Choose another category for a document, or the passages that answer the question of an answer."""
    if path is None and not passage:
        raise typer.BadParameter("give PATH, for a document, or --passage, for an answer")
    keys, hashes = _with_hashes(passage or ())
    if hashes and len(hashes) < len(keys):
        raise typer.BadParameter("give the hash of every --passage or of none")
    return _decide(
        context,
        lambda queue: queue.correct(item_id, path, note, passages=keys, content_hashes=hashes or None),
        as_json,
    )


@app.command("skip")
def skip(context: typer.Context, item_id: ListedId, note: Note = "", as_json: Json = False) -> int:
    """Remove it from the queue; the document keeps its category."""
    return _decide(context, lambda queue: queue.skip(item_id, note), as_json)


def _decide(context: typer.Context, decision: Callable[[Review], Awaitable[ReviewItem]], as_json: bool) -> int:
    item = with_app(context, lambda opened: decision(opened.review))
    where = f": {_proposal(item)}" if item.kind == "classification" and item.status != "skipped" else ""
    return show_result(as_json, item, f"{item.status.capitalize()} {item.item_id}{where}")


def _with_hashes(passages: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The ids of `CHUNK_ID@HASH`, and the hashes of those that have one."""
    parts = [passage.partition("@") for passage in passages]
    return [key for key, _, _ in parts], {key: content_hash for key, _, content_hash in parts if content_hash}


def _answer_rows(item: ReviewItem) -> list[tuple[str, str]]:
    proposal = item.proposal
    rows = [("Agent", str(item.agent_id))] if item.agent_id else []
    rows.append(("Question", proposal["question"]))
    if proposal["as_of"]:
        rows.append(("As of", proposal["as_of"]))
    rows += [("Because" if not n else "", reason) for n, reason in enumerate(proposal["reasons"])]
    rows.append(("Answer", proposal["text"]))
    for n, passage in enumerate(proposal["passages"]):
        marks = [word for word, holds in _marks(passage, proposal).items() if holds]
        cited = f" ({', '.join(marks)})" if marks else ""
        identified = f"{passage['chunk_id']}@{passage['content_hash'][:HASH_DIGITS]}"
        rows.append(("Passages" if not n else "", f"{identified}{cited}"))
        rows.append(("", f"{passage['label']}: {_shortened(passage['text'])}"))
    return rows


def _marks(passage: PassageView, proposal: Mapping[str, Any]) -> dict[str, bool]:
    return {"cited": passage["cited"], "chosen": passage["chunk_id"] in proposal["chosen"]}


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def _subject(item: ReviewItem) -> str:
    return item.proposal["question"] if item.kind == "answer" else item.title


def _proposal(item: ReviewItem) -> str:
    if item.kind == "answer":
        return "an answer"
    return "/".join(item.proposal["path"]) or "no category"
