"""Splits a book of Korean regulations, or a single one, into regulations and their articles (조).

Works on any parsed document: format attributes (style names, heading levels, tables) are evidence, the text itself
decides. `split` returns None for documents that are not regulations.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from dtrag.core.documents import Block, Chunk, ChunkedDocument, ParsedDocument, Scalar
from dtrag.core.page_starts import page_metadata, page_starts_within
from dtrag.core.provisions import BETWEEN_HEADINGS
from dtrag.core.recognised_text import ocr_metadata, words_within
from dtrag.core.text.token_counts import KOREAN_CHARACTERS_PER_TOKEN
from dtrag.regulations.korean.book import Span, find_regulations, read_contents
from dtrag.regulations.korean.editions import edition_of
from dtrag.regulations.korean.heads import DocumentLine, has_name_ending, lines_of
from dtrag.regulations.korean.provisions import ParsedProvision, ProvisionReader

MAX_TOKENS = 400
MIN_ARTICLES = 3
"""A text with fewer articles is not a regulation, unless its name ends like one (`…규정`) and it has two."""
MIN_SHARE = 0.5
"""The regulations must be at least this share of the document's characters, contents tables aside: a report that quotes
a few articles is not a regulation book. (Covers, indexes and abolished regulations of a real book: a hundredth.)"""
MAX_LAST_SHARE = 0.6
"""The last article may be at most this share of them: a text that goes on after a few quoted articles is not the last
of them. An addendum or an appendix behind it proves that the article ended where it should."""
_ORDER = tuple(
    re.compile(begins, re.M)
    for begins in (
        r"^[ \t]*(?=[①-⑳㉑-㉟㊱-㊿]|\(\d{2,3}\))|(?<=[.>〉)\]])[ ](?=[①-⑳])",  # paragraphs (항)
        r"^[ \t]*(?=\d{1,3}\.|\d{1,3}\))",  # items (호)
        r"^",  # sub-items, rows of a table
        r"(?<=[.?!])[ ]+",  # sentences
        r"[ ]+",
    )
)


def split(
    document: ParsedDocument, *, max_tokens: int = MAX_TOKENS, most: int | None = None
) -> Iterator[ChunkedDocument] | None:
    """One `Passages` a regulation, in order; None if the document is not the text of regulations.

    Of a regulation at most the first `most` passages.

    The documents' `part` is the regulation's code or else its name, unique within the file; `start` and `end` of the
    chunks count from the beginning of the regulation's own text.
    """
    if "조" not in document.text:
        return None
    lines = lines_of(document)
    contents = read_contents(lines)
    wrapped = _is_wrapped(document)
    regulations = []
    for span in find_regulations(lines, contents, document.title):
        provisions = _provisions(document, lines, span, wrapped)
        if any(provision.kind == "article" for provision in provisions):
            regulations.append((span, provisions))
    front = sum(len(lines[row].text) for row in contents.rows)
    if not _is_mostly_regulations(len(document.text.strip()) - front, lines, regulations):
        return None
    return _passages(document, lines, regulations, max_tokens, most)


def _is_mostly_regulations(
    length: int, lines: list[DocumentLine], regulations: list[tuple[Span, list[ParsedProvision]]]
) -> bool:
    """Whether the regulations make up a document of `length` characters (without contents tables)."""
    articles = [provision for _, provisions in regulations for provision in provisions if provision.kind == "article"]
    named = any(has_name_ending(span.name) for span, _ in regulations)
    if len(articles) < (2 if named else MIN_ARTICLES):
        return False
    covered = sum(lines[span.last - 1].end - lines[span.first].start for span, _ in regulations)
    if covered < MIN_SHARE * length:
        return False
    last = regulations[-1][1][-1]
    return last.kind != "article" or last.end - last.start <= max(MAX_LAST_SHARE * covered, MAX_TOKENS)


def _is_wrapped(document: ParsedDocument) -> bool:
    """Whether a line may continue the line above: PDF and plain text are broken at the margin."""
    return not any(block.style for block in document.blocks)


def _provisions(
    document: ParsedDocument, lines: list[DocumentLine], span: Span, wrapped: bool
) -> list[ParsedProvision]:
    reader = ProvisionReader(document.text, wrapped)
    return reader.read(lines[span.body : span.last], lines[span.last - 1].end)


def _passages(
    document: ParsedDocument,
    lines: list[DocumentLine],
    regulations: list[tuple[Span, list[ParsedProvision]]],
    max_tokens: int,
    most: int | None,
) -> Iterator[ChunkedDocument]:
    parts: dict[str, int] = {}
    for span, provisions in regulations:
        start, end = lines[span.first].start, lines[span.last - 1].end
        part = span.code or span.name
        parts[part] = parts.get(part, 0) + 1
        metadata = {
            **document.metadata,
            "kind": "regulation",
            "regulation": span.name,
            **({"code": span.code} if span.code else {}),
            **({"book_headings": BETWEEN_HEADINGS.join(span.headings)} if span.headings else {}),
        }
        regulation = replace(
            document,
            title=span.name,
            text=document.text[start:end],
            blocks=_moved(document.blocks, start, end),
            part=part if parts[part] == 1 else f"{part}#{parts[part]}",
            metadata=metadata,
            page_starts=page_starts_within(document.page_starts, start, end),
            ocr_words=words_within(document.ocr_words, start, end),
        )
        chunks = tuple(islice(_chunks(regulation, span, provisions, start, max_tokens), most))
        preface = document.text[lines[span.body].start : provisions[0].start] if provisions else ""
        edition = edition_of(span.name, span.code, preface, chunks, regulation.text)
        yield ChunkedDocument(regulation, chunks, edition)


def _moved(blocks: tuple[Block, ...], start: int, end: int) -> tuple[Block, ...]:
    """The blocks of a span, counted from its beginning."""
    first = bisect_right(blocks, start, key=lambda block: block.end)
    last = bisect_left(blocks, end, lo=first, key=lambda block: block.start)
    return tuple(
        replace(block, start=max(block.start, start) - start, end=min(block.end, end) - start)
        for block in blocks[first:last]
    )


def _chunks(
    regulation: ParsedDocument, span: Span, provisions: list[ParsedProvision], offset: int, max_tokens: int
) -> Iterator[Chunk]:
    ordinal = 0
    for provision in provisions:
        metadata: dict[str, Scalar] = {
            "regulation": span.name,
            "article": provision.label,
            "article_title": provision.title,
            "kind": provision.kind,
        }
        if span.code:
            metadata["code"] = span.code
        if provision.occurrence > 1:
            metadata["occurrence"] = provision.occurrence
        heading = f"{provision.label}({provision.title})" if provision.title else provision.label
        breadcrumb = (span.name, *provision.divisions, *([heading] if heading else []))
        spans = cut(regulation.text, provision.start - offset, provision.end - offset, max_tokens)
        for number, (start, end) in enumerate(spans, start=1):
            piece: dict[str, Scalar] = {"piece": number} if len(spans) > 1 else {}
            piece |= page_metadata(regulation.page_starts, start, end)
            piece |= ocr_metadata(regulation.ocr_words, regulation.text, start, end)
            yield Chunk(ordinal, start, end, regulation.text[start:end], breadcrumb, {**metadata, **piece})
            ordinal += 1


def cut(text: str, start: int, end: int, max_tokens: int) -> list[tuple[int, int]]:
    """Spans of at most `max_tokens` each (tokens as counted here), in order, without overlap and without outer blanks.

    They cover everything between `start` and `end` except white space. A span is cut at paragraphs if that is enough,
    else at items, lines, sentences or blanks, and inside a word only when it has none of them.
    """
    budget = max(1, max_tokens) * KOREAN_CHARACTERS_PER_TOKEN
    return [span for span in (_stripped(text, *s) for s in _cut(text, start, end, budget, 0)) if span[0] < span[1]]


def _cut(text: str, start: int, end: int, budget: int, level: int) -> Iterator[tuple[int, int]]:
    if end - start <= budget:
        yield start, end
        return
    if level == len(_ORDER):
        for at in range(start, end, budget):
            yield at, min(at + budget, end)
        return
    edges = [start, *_edges(text, start, end, level), end]
    for first, last in _packed(edges, budget):
        yield from _cut(text, first, last, budget, level + 1)


def _edges(text: str, start: int, end: int, level: int) -> list[int]:
    return [match.end() for match in _ORDER[level].finditer(text, start, end) if start < match.end() < end]


def _packed(edges: Sequence[int], budget: int) -> Iterator[tuple[int, int]]:
    """Neighbouring parts, merged as long as they fit the budget."""
    first = edges[0]
    for index in range(1, len(edges)):
        if edges[index] - first > budget and edges[index - 1] > first:
            yield first, edges[index - 1]
            first = edges[index - 1]
    yield first, edges[-1]


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
