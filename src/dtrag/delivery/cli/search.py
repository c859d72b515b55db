"""`dtrag search`: passages for a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.context import AsOf, Categories, Direct, Json
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.core.documents import Explanation, SearchMetrics, SearchResult


class Mode(StrEnum):
    """The search modes."""

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
    top_k: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="Number of passages; default: 10, or as many as a question about regulations needs.",
            show_default=False,
        ),
    ] = None,
    mode: Annotated[Mode | None, typer.Option(help="The search mode; default: hybrid.", show_default=False)] = None,
    category: Categories = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Only documents with this metadata field, such as author=Kim. Numbers, true and false are typed, "
            'KEY="7" is a string. May be repeated.',
        ),
    ] = None,
    as_of: AsOf = None,
    explain: Annotated[bool, typer.Option("--explain", help="Explain the rank of each passage.")] = False,
    why: Annotated[
        list[str] | None,
        typer.Option(metavar="DOCUMENT_ID", help="Explain why this document is missing; may be repeated."),
    ] = None,
    direct: Direct = False,
    as_json: Json = False,
) -> int:
    """Search passages.

    Modes: hybrid (words and meaning), lexical (words), strict (every word must
    occur; of Korean words without their particles), vector (meaning).
    """
    from dtrag.delivery.cli.question import question_of
    from dtrag.delivery.cli.reading import read
    from dtrag.delivery.local.results import SearchResults
    from dtrag.settings import flag

    options: dict[str, object] = {
        "mode": mode.value if mode else "strict" if flag("strict_lexical") else "hybrid",
        "filters": _filters(category, metadata),
    }
    if as_of is not None:
        options["as_of"] = as_of
    if explain or why:
        options |= {"explain": True, "explain_documents": tuple(why or ())}
    text = question_of(query)
    arguments = {"query": text, "top_k": top_k, "categories": category, "options": options}
    page = read(context, "search", arguments, SearchResults, direct=direct)
    results, metrics = page.results, page.metrics
    if as_json:
        from dtrag.delivery.cli.console import show_json

        rows, metrics_row = as_json_rows(results), as_json_metrics(metrics)
        show_json({"query": text, "mode": metrics.mode, "results": rows, "metrics": metrics_row})
    else:
        show(results)
        _show_expansions(metrics)
        _show_absent(metrics)
    show_notes(metrics, empty=page.empty)
    return OK


def _filters(categories: Sequence[str] | None, metadata: Sequence[str] | None) -> Mapping[str, object] | None:
    fields = {}
    for pair in metadata or ():
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint="--metadata")
        fields[key] = _scalar(value)
    filters: dict[str, object] = {"taxonomy_paths": list(categories)} if categories else {}
    return (filters | {"metadata": fields} if fields else filters) or None


def _scalar(value: str) -> str | int | float | bool:
    """A JSON number, boolean or quoted string; any other text unchanged."""
    import json

    try:
        parsed = json.loads(value)
    except ValueError:
        return value
    return parsed if isinstance(parsed, str | int | float) else value


def as_json_metrics(metrics: SearchMetrics) -> dict[str, object]:
    """The metrics for `--json`, without what only answers use; missing editions are one of the notes."""
    left_out = {"pack", "query", "missing_editions", "today"}
    return {name: value for name, value in asdict(metrics).items() if name not in left_out}


def as_json_rows(results: Sequence[SearchResult]) -> list[Mapping[str, object]]:
    """The JSON objects of the passages."""
    from dtrag.core.answers.citation_labels import label

    return [{"rank": rank, "label": label(result), **asdict(result)} for rank, result in enumerate(results, start=1)]


def show(results: Sequence[SearchResult]) -> None:
    """Print the passages."""
    from rich.text import Text

    from dtrag.core.answers.citation_labels import label
    from dtrag.delivery.cli.console import data, paragraph, place, safe
    from dtrag.delivery.cli.snippet import snippet

    console = data()
    for rank, result in enumerate(results, start=1):
        excerpt = snippet(result.text, result.highlights)
        passage = Text(excerpt.text)
        for start, end in excerpt.matches:
            passage.stylize("bold yellow", start, end)
        scores = f"score {result.hybrid_score:.3f} · words {result.bm25_score:.3f} · meaning {result.vector_score:.3f}"
        category = "/".join(result.taxonomy_path) or "no category"
        paragraph(console, Text(f"{rank}. {safe(label(result))}", style="bold"))
        paragraph(console, passage, 3)
        paragraph(console, Text(safe(f"{scores} · {category}"), style="cyan"), 3)
        paragraph(console, Text(place(result.source_url), style="dim"), 3)
        if result.explanation is not None:
            paragraph(console, Text(safe(_reasons(result.explanation)), style="green"), 3)
        console.print()


def _show_expansions(metrics: SearchMetrics) -> None:
    from rich.text import Text

    from dtrag.delivery.cli.console import data, paragraph, safe

    console = data()
    if metrics.entities:
        entities = ", ".join(f"{entity.text} ({entity.kind})" for entity in metrics.entities)
        paragraph(console, Text(safe(f"Entities: {entities}")))
    if not metrics.expansions:
        return
    paragraph(console, Text("Added by the lexicon:", style="bold"))
    for expansion in metrics.expansions:
        words = " ".join(expansion.words)
        official = ", ".join(f"{term.text} {term.weight:.2f}" for term in expansion.official)
        entry = f"{expansion.form!r} in {expansion.field}, matched by {expansion.matched_by}"
        paragraph(console, Text(safe(f"{words} → {official} ({entry})")), 3)
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
    """Scores and ranks in each list, and the matching words, on one line."""

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
    if explanation.expansions:
        parts.append(f"added by the lexicon: {', '.join(explanation.expansions)}")
    if explanation.imagined is not None:
        questions = " / ".join(explanation.imagined_questions)
        parts.append(
            f"found by an imagined question ({explanation.imagined:.3f}), not text of the document: {questions}"
        )
    return " · ".join(parts)


def show_notes(metrics: SearchMetrics, *, empty: bool) -> None:
    """Print the notes on a search on stderr; `empty` when the index has no documents."""
    from dtrag.delivery.cli.console import is_about_settings, note, plural

    if empty:
        note("The index is empty. Fill it with: dtrag ingest FOLDER")
    elif not metrics.final_results:
        note("No passage matches. Try fewer or other words, another --mode, or fewer filters.")
    for text in metrics.notes:
        if not metrics.final_results or not is_about_settings(text):
            note(text)
    for name in metrics.degraded:
        if name in {"lexical", "vector"}:
            note(f"The {name} retrieval failed; only the other one was used. See: dtrag doctor")
        else:
            note(f"A stage of the search failed and was left out: {name}. See: dtrag doctor")
    stages = {
        "words": metrics.bm25_time,
        "meaning": metrics.vector_time,
        "fusion": metrics.fusion_time,
        "reranking": metrics.rerank_time,
        "fetch": metrics.fetch_time,
    }
    times = ", ".join(f"{name} {seconds * 1000:.1f}" for name, seconds in stages.items() if seconds)
    note(f"{plural(metrics.final_results, 'passage')} in {metrics.total_time * 1000:.1f} ms ({times}); {metrics.mode}")
