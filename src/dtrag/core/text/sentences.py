"""Sentences of passages with their terms, cached: one answer needs them for the confidence and for quoting."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from dtrag.core.text.analysis import sentences, terms

CACHED_PASSAGES = 256
"""Passages in the cache: those of about 50 answers, a few megabytes."""


@dataclass(frozen=True, slots=True)
class AnalysedSentence:
    """`passage[start:end]`, the same as `text`, and its index terms in order."""

    start: int
    end: int
    text: str
    terms: tuple[str, ...]


@functools.lru_cache(maxsize=CACHED_PASSAGES)
def analysed_sentences(passage: str) -> tuple[AnalysedSentence, ...]:
    """The sentences of a passage's text, in order."""
    spans = ((start, end, passage[start:end]) for start, end in sentences(passage))
    return tuple(AnalysedSentence(start, end, text, tuple(terms(text))) for start, end, text in spans)
