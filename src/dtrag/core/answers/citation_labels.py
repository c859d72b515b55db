"""Labels of passages in citations, and what is shown above a quotation."""

from __future__ import annotations

from collections.abc import Sequence

from dtrag.core.documents import Citation, SearchResult
from dtrag.core.page_starts import page_at
from dtrag.core.text.hidden_characters import visible
from dtrag.core.text.line_wrapping import displayed


def cited_label(passage: SearchResult, offset: int = 0) -> str:
    """As `label`; for an article that was retrieved through a citation, with the citing article:
    `학칙 제24조에 따라 제20조(제목)`."""
    source = passage.metadata.get("cited_by")
    name = label(passage, offset)
    if not source:
        return name
    regulation = f"{passage.metadata.get('regulation') or passage.title} "
    return f"{source}에 따라 {name.removeprefix(regulation) if str(source).startswith(regulation) else name}"


def label(passage: SearchResult, offset: int = 0) -> str:
    """`규정명 제N조(제목)` for an article of a regulation, else title and headings, or the page of the character at
    `offset` in the passage."""
    article = passage.metadata.get("article")
    if article:
        name = passage.metadata.get("regulation") or passage.title
        title = passage.metadata.get("article_title")
        return f"{name} {article}({title})" if title else f"{name} {article}"
    headings = [heading for heading in passage.breadcrumb if heading != passage.title]
    page = page_at(passage.metadata, offset)
    place = " › ".join(headings) or (f"p. {page}" if page else "")
    return f"{passage.title}, {place}" if place else passage.title


def context_lines(citation: Citation, before: Sequence[Citation] = ()) -> list[str]:
    """What a reader sees above the quotation: lead-in and unit on one line, then the headers of a table on another.

    Without what the citations `before` quote.
    """
    quoted = [(other.start, other.end) for other in before if other.document_id == citation.document_id]
    context = [
        part for part in citation.context if not any(start <= part.start and part.end <= end for start, end in quoted)
    ]
    lead = ""
    for part in context:
        text = displayed(part.text)
        if part.kind != "header" and text not in lead:
            lead = f"{lead} {text}".strip()
    headers = " / ".join(displayed(part.text) for part in context if part.kind == "header")
    return [visible(line) for line in (lead, headers) if line]
