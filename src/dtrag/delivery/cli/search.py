"""`dtrag search`: passages for a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.core.response import plain
from dtrag.delivery.cli.console import (
    ListFormat,
    Rows,
    data,
    is_about_settings,
    note,
    paragraph,
    place,
    plural,
    safe,
    show_result,
)
from dtrag.delivery.cli.context import AsOf, Categories, Direct, Form, Json, question_of
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
    form: Form = ListFormat.table,
) -> int:
    """Search passages.

    Modes: hybrid (words and meaning), lexical (words), strict (every word must
    occur; of Korean words without their particles), vector (meaning).
    """
    from dtrag.delivery.cli.reading import Source, check_categories, is_empty, read
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

    async def passages(source: Source) -> tuple[list[SearchResult], SearchMetrics, bool]:
        await check_categories(source, category)
        results, metrics = await source.search(text, top_k, options)
        return results, metrics, not results and await is_empty(source)

    results, metrics, empty = read(context, passages, direct=direct)
    if as_json or form is not ListFormat.table:
        value = {"query": text, "mode": metrics.mode, "results": as_json_rows(results), "metrics": metrics}
        show_result(as_json or form, value, listed(results))
    else:
        show(results)
        _show_expansions(metrics)
        _show_absent(metrics)
    show_notes(metrics, empty=empty)
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


def as_json_rows(results: Sequence[SearchResult]) -> list[Mapping[str, object]]:
    """The JSON objects of the passages."""
    from dtrag.core.answers.citation_labels import label

    return [{"rank": rank, "label": label(result), **plain(result)} for rank, result in enumerate(results, start=1)]


def listed(results: Sequence[SearchResult]) -> Rows:
    """The passages as rows."""
    from dtrag.core.answers.citation_labels import label

    rows = [
        (
            rank,
            label(each),
            "/".join(each.taxonomy_path),
            round(each.score, 4),
            each.chunk_id,
            each.source_url,
            each.text,
        )
        for rank, each in enumerate(results, start=1)
    ]
    return Rows(("Rank", "Label", "Category", "Score", "Id", "Source", "Text"), rows)


def show(results: Sequence[SearchResult]) -> None:
    """Print the passages."""
    from rich.text import Text

    from dtrag.core.answers.citation_labels import label

    console = data()
    for rank, result in enumerate(results, start=1):
        excerpt = snippet(result.text, result.highlights)
        passage = Text(excerpt.text)
        for start, end in excerpt.matches:
            passage.stylize("bold yellow", start, end)
        scores = f"score {result.hybrid_score:.3f} · words {result.bm25_score:.3f} · meaning {result.vector_score:.3f}"
        category = "/".join(result.taxonomy_path) or "no category"
        paragraph(console, f"{rank}. {safe(label(result))}", style="bold")
        paragraph(console, passage, 3)
        paragraph(console, f"{scores} · {category}", 3, style="cyan")
        paragraph(console, place(result.source_url), 3, style="dim")
        if result.explanation is not None:
            paragraph(console, _reasons(result.explanation), 3, style="green")
        console.print()


def _show_expansions(metrics: SearchMetrics) -> None:
    console = data()
    if metrics.entities:
        entities = ", ".join(f"{entity.text} ({entity.kind})" for entity in metrics.entities)
        paragraph(console, f"Entities: {entities}")
    if not metrics.expansions:
        return
    paragraph(console, "Added by the lexicon:", style="bold")
    for expansion in metrics.expansions:
        words = " ".join(expansion.words)
        official = ", ".join(f"{term.text} {term.weight:.2f}" for term in expansion.official)
        entry = f"{expansion.form!r} in {expansion.field}, matched by {expansion.matched_by}"
        paragraph(console, f"{words} → {official} ({entry})", 3)
    console.print()


def _show_absent(metrics: SearchMetrics) -> None:
    console = data()
    for absent in metrics.absent:
        paragraph(console, f"Not found: {absent.document_id}", style="bold")
        paragraph(console, absent.reason, 3)
        if absent.explanation is not None:
            paragraph(console, _reasons(absent.explanation), 3, style="green")
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


LENGTH = 240
"""Characters: three lines of an 80-column terminal."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """An excerpt on one line, with the spans `[start, end)` in it that match the query."""

    text: str
    matches: tuple[tuple[int, int], ...]


def snippet(passage: str, highlights: Sequence[tuple[int, int]], length: int = LENGTH) -> Snippet:
    """About `length` characters around the densest highlights, with ellipses where text was cut.

    `highlights` are sorted, disjoint spans of the passage. Control characters are removed.
    """
    text, positions = _on_one_line(passage)
    moved = [(positions[start], positions[end]) for start, end in highlights]
    matches = [(start, end) for start, end in moved if start < end]
    start = _best_start(text, matches, length)
    end = min(len(text), start + length)
    if end < len(text):
        end = max(text.rfind(" ", start + length // 2, end), start + length // 2)
    before, after = "… " if start else "", " …" if end < len(text) else ""
    shift = len(before) - start
    inside = tuple((first + shift, last + shift) for first, last in matches if start <= first and last <= end)
    return Snippet(before + text[start:end] + after, inside)


def _on_one_line(passage: str) -> tuple[str, list[int]]:
    """The passage with single spaces, and for each of its positions (and its end) the position on the line."""
    characters: list[str] = []
    positions: list[int] = []
    for character in passage:
        positions.append(len(characters))
        if character.isspace():
            if characters and characters[-1] != " ":
                characters.append(" ")
        elif safe(character):
            characters.append(character)
    text = "".join(characters).rstrip()
    return text, [min(position, len(text)) for position in [*positions, len(characters)]]


def _best_start(text: str, matches: list[tuple[int, int]], length: int) -> int:
    """Start of the window with the most distinct matching words, slightly before the first of them."""
    if len(text) <= length or not matches:
        return 0
    best, best_count = 0, 0
    for first, _ in matches:
        inside = {
            text[start:end].lower() for start, end in matches if first <= start and end <= first + length * 3 // 4
        }
        if len(inside) > best_count:
            best, best_count = first, len(inside)
    if best < length // 4:
        return 0
    blank = text.rfind(" ", 0, best - length // 8)
    return blank + 1
