"""Units of passages with their terms, cached: one answer needs them for the confidence and for quoting."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from dtrag.core.text.analysis import term_ids, terms
from dtrag.core.text.line_kinds import QUOTABLE, ContextSpan, Unit, UnitKind
from dtrag.core.text.line_wrapping import displayed
from dtrag.core.text.units import units_of

CACHED_PASSAGES = 256
"""Passages in the cache: those of about 50 answers, a few megabytes."""


class AnalysedSentence(NamedTuple):
    """A sentence, list item or table row, or a heading and the like: `passage[start:end]`, the same as `text`.

    `terms` are the ids of its own index terms in order, `context_terms` the terms of its `context`: header and unit of
    a row, lead-in of an item. Their spans are counted from the beginning of the passage and negative where they are
    before it. `display` is the text on one line as an answer shows it.
    """

    start: int
    end: int
    text: str
    terms: tuple[int, ...]
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


NOTHING_BEFORE: Mapping[str, Preceding] = MappingProxyType({})
read_units = functools.lru_cache(maxsize=CACHED_PASSAGES)(units_of)


def begins_inside(passage: str) -> bool:
    """Whether the passage begins with a table or a list, of which something may be in the text before it."""
    return read_units(passage).continued


def beginning_of(start: int, before: Sequence[tuple[int, str]]) -> Preceding | None:
    """What precedes the table or list with which a passage at `start` begins, from the passages before it.

    `before` are their starts and texts, the nearest first. Those wholly inside the table or list are skipped; of the
    one with its first row or item, the passage before it is included, for a unit, a caption or a lead-in.
    """
    end, text = start, ""
    for place, passage in before:
        cut = passage[: end - place]
        units = read_units(cut)
        if units.continued and all(unit.kind in {"row", "item"} for unit in units.units):
            continue
        text = cut + "\n" * max(0, end - place - len(cut)) + text if text else cut
        end = place
        if not units.continued:
            break
    return Preceding(end, text) if text else None


@functools.lru_cache(maxsize=CACHED_PASSAGES)
def analysed_sentences(passage: str) -> tuple[AnalysedSentence, ...]:
    """The units of a passage's text, in order."""
    return _analysed(passage, 0, 0)


@functools.lru_cache(maxsize=CACHED_PASSAGES)
def sentences_after(preceding: Preceding | None, passage: str, start: int) -> tuple[AnalysedSentence, ...]:
    """The units of a passage that begins at `start` of its document, with context from the text before it."""
    if preceding is None:
        return analysed_sentences(passage)
    before = f"{preceding.text.rstrip()}\n"
    return _analysed(before + passage, len(before), start - preceding.start)


def _analysed(text: str, offset: int, distance: int) -> tuple[AnalysedSentence, ...]:
    """The units behind `offset`; `distance`: how far the text begins before the passage in the document."""
    read = read_units(text)
    spans = {span for unit in read.units if unit.end > offset for span in unit.context}
    context_terms = {span: terms(displayed(text[span.start : span.end])) for span in spans}
    return tuple(
        _sentence(text, unit, offset, distance, context_terms, words_broken=read.words_broken)
        for unit in read.units
        if unit.end > offset
    )


def _sentence(
    text: str,
    unit: Unit,
    offset: int,
    distance: int,
    context_terms: Mapping[ContextSpan, Sequence[str]],
    *,
    words_broken: bool,
) -> AnalysedSentence:
    start = max(unit.start, offset)
    display = displayed(text[start : unit.end], words_broken=words_broken)
    return AnalysedSentence(
        start - offset,
        unit.end - offset,
        text[start : unit.end],
        tuple(term_ids(display)),
        unit.kind,
        tuple(_moved(span, offset if span.start >= offset else distance) for span in unit.context),
        tuple(term for span in unit.context for term in context_terms[span]),
        display,
    )


def _moved(span: ContextSpan, by: int) -> ContextSpan:
    return ContextSpan(span.kind, span.start - by, span.end - by)
