"""`dtrag search`: the passages that match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.exits import OK
from dtrag.delivery.cli.invocation import Categories, Json, invocation, run_async

if TYPE_CHECKING:
    from dtrag.core.documents import SearchMetrics, SearchResult
    from dtrag.settings import Settings


class Mode(StrEnum):
    """The rankers, by name."""

    hybrid = "hybrid"
    lexical = "lexical"
    strict = "strict"
    vector = "vector"


def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words or a question.", show_default=False)],
    *,
    top_k: Annotated[int, typer.Option(min=1, max=1000, help="How many passages.")] = 10,
    mode: Annotated[
        Mode | None, typer.Option(help="How to rank; hybrid where nothing is said.", show_default=False)
    ] = None,
    category: Categories = None,
    as_json: Json = False,
) -> int:
    """Find passages.

    hybrid: words and meaning together. lexical: words. strict: every word must
    occur. vector: meaning.
    """
    from dtrag.settings import flag

    chosen = mode.value if mode else "strict" if flag("strict_lexical") else "hybrid"
    settings = invocation(context).settings()
    results, metrics, empty = run_async(_search(settings, query, top_k, chosen, category))
    if as_json:
        from dtrag.delivery.cli.console import show_json

        show_json({"query": query, "mode": metrics.mode, "results": _rows(results), "metrics": asdict(metrics)})
    else:
        _show(query, results)
    _tell(metrics, empty)
    return OK


async def _search(
    settings: Settings, query: str, top_k: int, mode: str, category: Sequence[str] | None
) -> tuple[list[SearchResult], SearchMetrics, bool]:
    from dtrag.app import open_app

    async with open_app(settings) as app:
        filters = {"taxonomy_paths": list(category)} if category else None
        results, metrics = await app.search(query, top_k, filters, mode=mode)
        return results, metrics, not results and (await app.counts())[0] == 0


def _rows(results: Sequence[SearchResult]) -> list[dict[str, Any]]:
    from dtrag.pipeline.cite import label

    return [{"rank": rank, "label": label(result), **asdict(result)} for rank, result in enumerate(results, start=1)]


def _show(query: str, results: Sequence[SearchResult]) -> None:
    from rich.text import Text

    from dtrag.delivery.cli.console import data, paragraph, place, safe
    from dtrag.delivery.cli.snippet import snippet
    from dtrag.pipeline.cite import label

    console = data()
    for rank, result in enumerate(results, start=1):
        found = snippet(safe(result.text), query)
        passage = Text(found.text)
        for start, end in found.matches:
            passage.stylize("bold yellow", start, end)
        scores = f"score {result.hybrid_score:.3f} · words {result.bm25_score:.3f} · meaning {result.vector_score:.3f}"
        where = "/".join(result.taxonomy_path) or "no category"
        paragraph(console, Text(f"{rank}. {safe(label(result))}", style="bold"))
        paragraph(console, passage, 3)
        paragraph(console, Text(safe(f"{scores} · {where}"), style="cyan"), 3)
        paragraph(console, Text(place(result.source_url), style="dim"), 3)
        console.print()


def _tell(metrics: SearchMetrics, empty: bool) -> None:
    from dtrag.delivery.cli.console import note, plural

    if empty:
        note("The index is empty. Fill it with: dtrag ingest FOLDER")
    elif not metrics.final_results:
        note("Nothing was found. Try fewer or other words, another --mode, or no --category.")
    for text in metrics.notes:
        note(text)
    for name in metrics.degraded:
        note(f"The {name} half of the search failed; the other half decided alone. See: dtrag doctor")
    stages = {
        "words": metrics.bm25_time,
        "meaning": metrics.vector_time,
        "fusion": metrics.fusion_time,
        "fetch": metrics.fetch_time,
    }
    times = ", ".join(f"{name} {seconds * 1000:.1f}" for name, seconds in stages.items() if seconds)
    note(f"{plural(metrics.final_results, 'passage')} in {metrics.total_time * 1000:.1f} ms ({times}); {metrics.mode}")
