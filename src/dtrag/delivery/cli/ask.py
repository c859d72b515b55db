"""`dtrag ask`: an answer with its citations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.exits import OK
from dtrag.delivery.cli.invocation import Categories, Json, invocation, run_async

if TYPE_CHECKING:
    from rich.console import Console

    from dtrag.core.documents import Answer
    from dtrag.settings import Settings

NO_LANGUAGE_MODEL = (
    "No language model is configured: answers are quoted from the documents. "
    "With one they are written by it: DTRAG_LLM=ollama:llama3.2, for example."
)


def ask(
    context: typer.Context,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="In plain words.", show_default=False)],
    category: Categories = None,
    as_json: Json = False,
) -> int:
    """Answer a question from the documents, with citations."""
    settings = invocation(context).settings()
    answer, empty = run_async(_ask(settings, question, category))
    configured = bool(settings.llm)
    from dtrag.delivery.cli.console import data, note, show_json

    if as_json:
        show_json(as_dict(answer))
    else:
        show(answer, data())
    if empty:
        note("The index is empty. Fill it with: dtrag ingest FOLDER")
    tell(answer)
    if not configured:
        note(NO_LANGUAGE_MODEL)
    return OK


async def _ask(settings: Settings, question: str, category: Sequence[str] | None) -> tuple[Answer, bool]:
    import asyncio

    from dtrag.app import open_app
    from dtrag.core.confinement import OWNER
    from dtrag.pipeline import graph

    warming = asyncio.create_task(asyncio.to_thread(graph.warm))  # while PostgreSQL starts
    async with open_app(settings) as app:
        await warming
        answer = await app.ask(question, {"taxonomy_paths": list(category)} if category else None, scope=OWNER)
        return answer, not answer.citations and (await app.counts(scope=OWNER))[0] == 0


def as_dict(answer: Answer) -> dict[str, Any]:
    """The JSON object of an answer."""
    return asdict(answer)


def show(answer: Answer, console: Console) -> None:
    """Answer, citations, confidence and how it was reached, and the times of the stages."""
    from rich.text import Text

    from dtrag.delivery.cli.console import paragraph, place, safe

    paragraph(console, Text(safe(answer.text)))
    for citation in answer.citations:
        console.print()
        paragraph(console, Text(f"[{citation.number}] {safe(citation.label)}", style="bold"))
        quote = " ".join(safe(citation.quote).split())
        paragraph(console, Text(f"“{quote}”"), 4)
        where = f"{place(citation.source_url)}, characters {citation.start:,}–{citation.end:,}"
        paragraph(console, Text(where, style="dim"), 4)
    console.print()
    paragraph(
        console, Text(f"Confidence {answer.confidence:.2f} ({answer.decision}). {safe(answer.reason)}", style="cyan")
    )
    stages = " · ".join(f"{name} {milliseconds:.1f} ms" for name, milliseconds in answer.stages.items())
    paragraph(console, Text(f"Stages: {stages}", style="dim"))
    if answer.model is not None:
        cost = f", {answer.cost:.2f} won" if answer.cost else ""
        paragraph(console, Text(f"Written by {safe(answer.model)}{cost}", style="dim"))


def tell(answer: Answer) -> None:
    """What a reader should know about how the answer came about, on stderr."""
    from dtrag.delivery.cli.console import note

    for text in answer.notes:
        note(text)
    for name in answer.degraded:
        if name in {"lexical", "vector"}:
            note(f"The {name} half of the search failed; the other half decided alone. See: dtrag doctor")
