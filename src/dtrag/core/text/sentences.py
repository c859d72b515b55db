"""Units of passages with their terms, cached: one answer needs them for the confidence and for quoting."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from dtrag.core.text.analysis import terms
from dtrag.core.text.line_wrapping import displayed
from dtrag.core.text.units import QUOTABLE, ContextSpan, TextUnits, Unit, UnitKind, units_of

CACHED_PASSAGES = 256
"""Passages in the cache: those of about 50 answers, a few megabytes."""


@dataclass(frozen=True, slots=True)
class AnalysedSentence:
    """A sentence, list item or table row, or a heading and the like: `passage[start:end]`, the same as `text`.

    `terms` are its own index terms in order, `context_terms` those of its `context`: header and unit of a row, lead-in
    of an item. Their spans are counted from the beginning of the passage and negative where they are before it.
    `display` is the text on one line as an answer shows it.
    """

    start: int
    end: int
    text: str
    terms: tuple[str, ...]
    kind: UnitKind = "sentence"
    context: tuple[ContextSpan, ...] = ()
    context_terms: tuple[str, ...] = ()
    display: str = ""

    @property
    def quotable(self) -> bool:
        """Whether it can be quoted alone: not a heading, a lead-in, a header, a unit or a page number."""
        return self.kind in QUOTABLE


@dataclass(frozen=True, slots=True)
class Preceding:
    """Text of the document before a passage that continues a table or a list: `text` begins at `start`.

    It holds the beginning of the table or list, and not necessarily all that is between it and the passage.
    """

    start: int
    text: str


@functools.lru_cache(maxsize=CACHED_PASSAGES)
def analysed_sentences(
    passage: str, preceding: Preceding | None = None, passage_start: int = 0
) -> tuple[AnalysedSentence, ...]:
    """The units of a passage's text, in order; `passage_start` is its offset in the document."""
    before = preceding.text + "\n" if preceding is not None else ""
    text = before + passage
    read = units_of(text)
    distance = passage_start - preceding.start if preceding is not None else 0
    return tuple(_analysed(text, unit, read, len(before), distance) for unit in read.units if unit.end > len(before))


def _analysed(text: str, unit: Unit, read: TextUnits, offset: int, distance: int) -> AnalysedSentence:
    start = max(unit.start, offset)
    display = displayed(text[start : unit.end], words_broken=read.words_broken)
    context_terms = [
        term
        for span in unit.context
        for term in terms(displayed(text[span.start : span.end], words_broken=read.words_broken))
    ]
    return AnalysedSentence(
        start - offset,
        unit.end - offset,
        text[start : unit.end],
        tuple(terms(display)),
        unit.kind,
        tuple(
            ContextSpan(
                span.kind, *((at - offset if span.start >= offset else at - distance) for at in (span.start, span.end))
            )
            for span in unit.context
        ),
        tuple(context_terms),
        display,
    )
