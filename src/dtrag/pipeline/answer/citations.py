"""Numbered citations of quotations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dtrag.core.answers.answer_words import answer_words
from dtrag.core.answers.citation_labels import cited_label, context_lines
from dtrag.core.documents import Citation, CitationContext, SearchResult, UncertainFigure
from dtrag.core.page_starts import page_at
from dtrag.core.recognised_text import uncertain_figures
from dtrag.core.text.hidden_characters import visible
from dtrag.core.text.line_kinds import ContextSpan
from dtrag.core.text.line_wrapping import displayed
from dtrag.core.text.sentences import (
    NOTHING_BEFORE,
    AnalysedSentence,
    Preceding,
    analysed_sentences,
    sentences_after,
)
from dtrag.pipeline.answer.candidates import Quote, Span, has_words
from dtrag.pipeline.answer.citation_marks import rounded


def cite(
    quotes: Sequence[Quote],
    passages: Sequence[SearchResult],
    preceding: Mapping[str, Preceding] = NOTHING_BEFORE,
    *,
    first: int = 1,
) -> tuple[str, tuple[Citation, ...], tuple[Span, ...]]:
    """The answer's text, each quotation followed by its number, from `first` on; the citations by number; what
    is marked in the text.

    Each citation quotes one span exactly; `start` and `end` are offsets in the document's text. In the answer, header
    and unit of rows and the lead-in of items are lines above them, unless they are quoted already, and a further
    provision begins with its label. A passage's own `[7]` is shown as `(7)`.
    """
    citations: list[Citation] = []
    lines: list[str] = []
    marked: list[Span] = []
    shown: list[str] = []
    for number, quote in enumerate(quotes, start=first):
        passage = passages[quote.passage]
        before = preceding.get(passage.chunk_id)
        citation = citation_of(number, passage, quote.start, quote.end, before)
        if quote.marked is not None:
            begin, end = quote.marked
            citation = replace(citation, marked=((passage.start + begin, passage.start + end),))
        above = [rounded(line) for line in context_lines(citation, citations)]
        lines += [rounded(citation.label)] if quote.further and (above or "\n" in citation.display) else []
        lines += above if above != shown or quote.further else []
        shown = above
        is_line = not above and "\n" not in citation.display
        label = f"{rounded(citation.label)}: " if quote.further and is_line else ""
        start = sum(len(line) + 1 for line in lines) + len(label)
        spans = _marked(passage, quote, before)
        marked += [(start + begin, start + end) for begin, end in spans]
        lines.append(f"{label}{rounded(citation.display)} [{number}]")
        citations.append(citation)
    return "\n".join(lines), tuple(citations), tuple(marked)


def citation_of(
    number: int, passage: SearchResult, start: int, end: int, preceding: Preceding | None = None
) -> Citation:
    """The citation of a span of a passage, `start` and `end` counted in the passage's text."""
    quote = passage.text[start:end]
    units = _units(passage, start, end, preceding)
    whole = bool(units) and start <= units[0].start and units[-1].end <= end
    shown = "".join(text for text, _ in _shown(passage.text, units)) if whole else visible(displayed(quote))
    return Citation(
        number=number,
        label=cited_label(passage, start),
        chunk_id=passage.chunk_id,
        document_id=str(passage.metadata.get("document_id", "")),
        source_url=passage.source_url,
        quote=quote,
        start=passage.start + start,
        end=passage.start + end,
        display=shown,
        context=_context(passage, units, start, preceding),
        page=page_at(passage.metadata, start),
        ocr_confidence=passage.metadata.get("ocr_confidence"),
        uncertain_figures=_uncertain(passage, start, end),
        title=passage.title,
        date=str(passage.metadata.get("processed_at", "")),
        version=str(passage.metadata.get("version", "")),
    )


def _uncertain(passage: SearchResult, start: int, end: int) -> tuple[UncertainFigure, ...]:
    return tuple(
        UncertainFigure(passage.text[first:last], passage.start + first, passage.start + last, confidence)
        for first, last, confidence in uncertain_figures(passage.metadata, start, end)
    )


def _units(passage: SearchResult, start: int, end: int, preceding: Preceding | None) -> list[AnalysedSentence]:
    return [
        unit
        for unit in sentences_after(preceding, passage.text, passage.start)
        if unit.start < end and unit.end > start
    ]


def _shown(text: str, units: Sequence[AnalysedSentence]) -> Iterator[tuple[str, AnalysedSentence]]:
    """The units as an answer shows them, with the blank or line end before each; deleted provisions are left out."""
    before: AnalysedSentence | None = None
    for unit in [unit for unit in units if has_words(unit)] or units:
        joint = "" if before is None else "\n" if "\n" in text[before.end : unit.start] else " "
        yield joint + visible(unit.display), unit
        before = unit


def _marked(passage: SearchResult, quote: Quote, preceding: Preceding | None) -> Iterator[Span]:
    """The spans of the marked sentences in the quotation as the answer shows it, each on one line."""
    if quote.marked is None:
        return
    position = 0
    for text, unit in _shown(passage.text, _units(passage, quote.start, quote.end, preceding)):
        if quote.marked[0] <= unit.start and unit.end <= quote.marked[1]:
            yield position + len(text) - len(text.lstrip()), position + len(text)
        position += len(text)


def _context(
    passage: SearchResult, units: Sequence[AnalysedSentence], start: int, preceding: Preceding | None
) -> tuple[CitationContext, ...]:
    """The context of all quoted units that is not quoted itself, in the order of the document."""
    spans = {span for unit in units for span in unit.context if span.end <= start or span.start >= units[-1].end}
    ordered = sorted(spans, key=lambda span: (span.start, span.end))
    return tuple(_located(passage, span, preceding) for span in ordered)


def _located(passage: SearchResult, span: ContextSpan, preceding: Preceding | None) -> CitationContext:
    start, end = passage.start + span.start, passage.start + span.end
    if span.start >= 0 or preceding is None:
        return CitationContext(span.kind, passage.text[span.start : span.end], start, end)
    return CitationContext(span.kind, preceding.text[start - preceding.start : end - preceding.start], start, end)


def quoted_passage(
    answer: str, citations: Sequence[Citation], passages: Sequence[SearchResult]
) -> tuple[str, tuple[Span, ...]] | None:
    """The whole passage that a quoted answer is from, as answers show text, each `[n]` after its quotation; and the
    spans in it of the sentences that answer, in code points.

    None if the quotations are from several passages, or `answer` is all of it or says anything else.
    """
    cited = {citation.chunk_id for citation in citations}
    passage = next((each for each in passages if cited == {each.chunk_id}), None)
    if passage is None:
        return None
    text, marked = "", list[Span]()
    for piece, unit in _shown(passage.text, analysed_sentences(passage.text)):
        start, end = passage.start + unit.start, passage.start + unit.end
        quoted = [each for each in citations if each.start < end and start < each.end]
        begin = len(text) + len(piece) - len(piece.lstrip())
        text += rounded(piece)
        spans = [span for each in quoted for span in each.marked or ((each.start, each.end),)]
        if any(first <= start and end <= last for first, last in spans):
            marked.append((begin, len(text)))
        text += "".join(f" [{each.number}]" for each in quoted if each.end <= end)
    is_part = text != answer and all(line in text for line in answer.split("\n"))
    return (text, tuple(marked)) if is_part else None


def highlighted(question: str, citations: Sequence[Citation]) -> tuple[Citation, ...]:
    """The citations with the spans of the words that answer the question, in code points of the document."""
    return tuple(
        replace(
            citation,
            highlights=tuple(
                (citation.start + start, citation.start + end) for start, end in answer_words(question, citation.quote)
            ),
        )
        for citation in citations
    )
