"""`dtrag search`: the passages that match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.context import Categories, Direct, Json
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.core.documents import Explanation, SearchMetrics, SearchResult


class Mode(StrEnum):
    """The rankers, by name."""

    hybrid = "hybrid"
    lexical = "lexical"
    strict = "strict"
    vector = "vector"


def search(
    context: typer.Context,
    query: Annotated[
        list[str],
        typer.Argument(metavar="QUERY", help="Words or a question; - reads standard input.", show_default=False),
    ],
    *,
    top_k: Annotated[int, typer.Option(min=1, max=1000, help="How many passages.")] = 10,
    mode: Annotated[
        Mode | None, typer.Option(help="How to rank; hybrid where nothing is said.", show_default=False)
    ] = None,
    category: Categories = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Only documents of which this fact holds, such as author=Kim; numbers, true and false count as such, "
            'KEY="7" is the text. May be repeated.',
        ),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each passage stands where it stands.")] = False,
    why: Annotated[
        list[str] | None,
        typer.Option(metavar="DOCUMENT_ID", help="Say why this document is not found; may be repeated."),
    ] = None,
    direct: Direct = False,
    as_json: Json = False,
) -> int:
    """Find passages.

    hybrid: words and meaning together. lexical: words. strict: every word must
    occur. vector: meaning.
    """
    from dtrag.delivery.cli.question import question_of
    from dtrag.delivery.cli.reading import read
    from dtrag.delivery.local.results import Passages
    from dtrag.settings import flag

    options: dict[str, Any] = {
        "mode": mode.value if mode else "strict" if flag("strict_lexical") else "hybrid",
        "filters": _filters(category, metadata),
    }
    if explain or why:
        options |= {"explain": True, "explain_documents": tuple(why or ())}
    text = question_of(query)
    arguments = {"query": text, "top_k": top_k, "categories": category, "options": options}
    read_passages = read(context, "search", arguments, Passages, direct=direct)
    results, metrics = read_passages.results, read_passages.metrics
    if as_json:
        from dtrag.delivery.cli.console import show_json

        show_json({"query": text, "mode": metrics.mode, "results": as_json_rows(results), "metrics": asdict(metrics)})
    else:
        show(results)
        _show_absent(metrics)
    tell(metrics, empty=read_passages.empty)
    return OK


def _filters(categories: Sequence[str] | None, metadata: Sequence[str] | None) -> dict[str, Any] | None:
    filters: dict[str, Any] = {"taxonomy_paths": list(categories)} if categories else {}
    for pair in metadata or ():
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint="--metadata")
        filters.setdefault("metadata", {})[key] = _scalar(value)
    return filters or None


def _scalar(value: str) -> str | int | float | bool:
    """A number, a truth value or a text in quotes as JSON has them; every other text as it stands."""
    import json

    try:
        read = json.loads(value)
    except ValueError:
        return value
    return read if isinstance(read, str | int | float) else value


def as_json_rows(results: Sequence[SearchResult]) -> list[dict[str, Any]]:
    """The passages as JSON shows them."""
    from dtrag.core.answers.citation_labels import label

    return [{"rank": rank, "label": label(result), **asdict(result)} for rank, result in enumerate(results, start=1)]


def show(results: Sequence[SearchResult]) -> None:
    """The passages for people."""
    from rich.text import Text

    from dtrag.core.answers.citation_labels import label
    from dtrag.delivery.cli.console import data, paragraph, place, safe
    from dtrag.delivery.cli.snippet import snippet

    console = data()
    for rank, result in enumerate(results, start=1):
        found = snippet(result.text, result.highlights)
        passage = Text(found.text)
        for start, end in found.matches:
            passage.stylize("bold yellow", start, end)
        scores = f"score {result.hybrid_score:.3f} · words {result.bm25_score:.3f} · meaning {result.vector_score:.3f}"
        where = "/".join(result.taxonomy_path) or "no category"
        paragraph(console, Text(f"{rank}. {safe(label(result))}", style="bold"))
        paragraph(console, passage, 3)
        paragraph(console, Text(safe(f"{scores} · {where}"), style="cyan"), 3)
        paragraph(console, Text(place(result.source_url), style="dim"), 3)
        if result.explanation is not None:
            paragraph(console, Text(safe(_reasons(result.explanation)), style="green"), 3)
        console.print()


def _show_absent(metrics: SearchMetrics) -> None:
    from rich.text import Text

    from dtrag.delivery.cli.console import data, paragraph, safe

    console = data()
    for absent in metrics.absent:
        paragraph(console, Text(safe(f"Not found: {absent.document_id}"), style="bold"))
        paragraph(console, Text(safe(absent.reason)), 3)
        if absent.explanation is not None:
            paragraph(console, Text(safe(_reasons(absent.explanation)), style="green"), 3)
        console.print()


def _reasons(explanation: Explanation) -> str:
    """Scores and ranks in each list, and the words that match, on one line."""

    def ranked(rank: int | None) -> str:
        return "not a candidate" if rank is None else f"rank {rank:,}"

    parts = [
        f"words {explanation.bm25_score:.3f} (sum {explanation.bm25:.2f}), {ranked(explanation.lexical_rank)}",
        "meaning: no vector"
        if explanation.cosine is None
        else f"meaning {explanation.cosine:.3f}, {ranked(explanation.vector_rank)}",
    ]
    if explanation.fused is not None:
        parts.append(f"together {explanation.fused:.3f}, {ranked(explanation.fused_rank)}")
    if explanation.rerank is not None:
        parts.append(f"reranked {explanation.rerank:.3f}")
    parts.append(f"matches {', '.join(explanation.terms)}" if explanation.terms else "no word matches")
    return " · ".join(parts)


def tell(metrics: SearchMetrics, *, empty: bool) -> None:
    """What a reader should know about how the search went, on stderr; `empty` when there is no document at all."""
    from dtrag.delivery.cli.console import is_about_settings, note, plural

    if empty:
        note("The index is empty. Fill it with: dtrag ingest FOLDER")
    elif not metrics.final_results:
        note("Nothing was found. Try fewer or other words, another --mode, or fewer filters.")
    for text in metrics.notes:
        if not metrics.final_results or not is_about_settings(text):
            note(text)
    for name in metrics.degraded:
        if name in {"lexical", "vector"}:
            note(f"The {name} half of the search failed; the other half decided alone. See: dtrag doctor")
        else:
            note(f"The search did without a stage that failed: {name}. See: dtrag doctor")
    stages = {
        "words": metrics.bm25_time,
        "meaning": metrics.vector_time,
        "fusion": metrics.fusion_time,
        "reranking": metrics.rerank_time,
        "fetch": metrics.fetch_time,
    }
    times = ", ".join(f"{name} {seconds * 1000:.1f}" for name, seconds in stages.items() if seconds)
    note(f"{plural(metrics.final_results, 'passage')} in {metrics.total_time * 1000:.1f} ms ({times}); {metrics.mode}")
