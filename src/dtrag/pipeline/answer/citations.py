"""Numbers for the quotations, and the names by which people cite: `규정명 제N조(제목)`, or title and heading."""

from __future__ import annotations

from collections.abc import Sequence

from dtrag.core.answers.citation_labels import label
from dtrag.core.documents import Citation, SearchResult
from dtrag.core.text.hidden_characters import visible
from dtrag.pipeline.answer.citation_marks import rounded
from dtrag.pipeline.answer.extractive import Quote


def cite(quotes: Sequence[Quote], passages: Sequence[SearchResult]) -> tuple[str, tuple[Citation, ...]]:
    """The answer's text, each quotation followed by its number, and the citations in the order of the numbers.

    Quotations of one passage share a number when they are the same span only: each citation quotes one span, byte for
    byte, and `start`/`end` point into the document's text. In the text, a passage's own `[7]` is shown as `(7)`.
    """
    parts: list[str] = []
    citations: list[Citation] = []
    for number, quote in enumerate(quotes, start=1):
        passage = passages[quote.passage]
        shown = visible(quote.text)
        parts.append(f"{rounded(shown)} [{number}]")
        citations.append(
            Citation(
                number=number,
                label=label(passage),
                chunk_id=passage.chunk_id,
                document_id=str(passage.metadata.get("document_id", "")),
                source_url=passage.source_url,
                quote=quote.text,
                start=passage.start + quote.start,
                end=passage.start + quote.end,
                display=shown if shown != quote.text else "",
            )
        )
    return "\n".join(parts), tuple(citations)
