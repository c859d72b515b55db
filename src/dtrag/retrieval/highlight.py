"""Highlights: the characters of a passage that match words of the query.

The index compares folded text (NFKC, lower case), but a span must point into the original passage. So the passage is
folded piece by piece, with the origin of each folded character.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator

from dtrag.core.text.analysis import (
    CJK,
    LATIN_OR_OTHER,
    Analyzer,
    normalise,
    terms,
    without_apostrophes,
    without_possessive,
)
from dtrag.core.text.questions import content

Span = tuple[int, int]

_WORD = re.compile(rf"(?P<article>제 *\d{{1,4}} *조(?:의 *\d{{1,3}})?)|(?P<run>[가-힣]+|[{CJK}]+)|{LATIN_OR_OTHER}")
"""The words that `core/text/analysis.py` makes terms of, in a text that keeps its blanks; a test compares the two."""
_PART = re.compile(r"[a-z0-9]+(?:['’][a-z0-9]+)*")
_SPACE = re.compile(r"\s")
_SIMPLE = re.compile(r"[ -~가-힣]+")
"""Characters that fold alone, to one character: ASCII without control characters, and syllables of Hangul."""
_terms = functools.lru_cache(maxsize=20_000)(terms)


def highlights(query: str, text: str, analyzer: Analyzer = Analyzer()) -> tuple[Span, ...]:
    """Spans `[start, end)` in code points of `text` that match content words of the query, sorted and disjoint.

    English words match by their stem. Korean words match by pairs of syllables, merged into the longest runs; pairs of
    question words and of particles do not count. Identifiers match as a whole. Linear in the length of the text.
    """
    query_terms = _query_terms(query, analyzer)
    if not query_terms or not text:
        return ()
    folded, origins = _folded(text)
    spans = _matches(folded, query_terms)
    if origins is None:
        return _merged(spans)
    return _merged((origins[start][0], origins[end - 1][1]) for start, end in spans)


@functools.lru_cache(maxsize=256)
def _query_terms(query: str, analyzer: Analyzer) -> frozenset[str]:
    """The terms of the query's content words; cached, since every passage of a result list needs them."""
    return frozenset(analyzer.terms(content(query)))


def _matches(folded: str, query_terms: frozenset[str]) -> Iterator[Span]:
    initials = {term[0] for term in query_terms}  # folding, stems and pairs keep the first character
    for word in _WORD.finditer(folded):
        start, end = word.span()
        kind, token = word.lastgroup, word.group()
        if kind == "run":
            if initials.isdisjoint(token):
                continue
            width = min(2, end - start)
            for at in range(start, end - width + 1):
                if folded[at] in initials and folded[at : at + width] in query_terms:
                    yield at, at + width
        elif kind == "latin" and not token.isalnum():
            if not query_terms.isdisjoint(_terms(token)):
                yield from ((start + first, start + last) for first, last in _inside(token, query_terms))
        elif token[0] in initials and not query_terms.isdisjoint(_terms(token)):
            yield start, end


def _inside(token: str, query_terms: frozenset[str]) -> Iterator[Span]:
    """The matching spans of a Latin word with signs: the whole word if it is one term, else its matching parts."""
    whole = without_possessive(token)
    first = _terms(token)[0]
    if first in query_terms and (not first.isalnum() or without_apostrophes(whole).isalnum()):
        yield 0, len(whole)
        return
    for part in _PART.finditer(whole):
        if not query_terms.isdisjoint(_terms(without_apostrophes(part.group()))):
            yield part.span()


def _merged(spans: Iterator[Span]) -> tuple[Span, ...]:
    """The spans, sorted by start, with those that touch or overlap merged."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


def _folded(text: str) -> tuple[str, list[Span] | None]:
    """The text as `normalise` folds it, but with every blank, and the span of `text` that each character comes from.

    None instead of the spans means that character n comes from character n.
    """
    if text.isascii():
        return _SPACE.sub(" ", text.lower()), None
    if unicodedata.is_normalized("NFKC", text):
        lowered = text.casefold()
        if len(lowered) == len(text) and unicodedata.is_normalized("NFKC", lowered):
            return _SPACE.sub(" ", lowered), None
    folded: list[str] = []
    origins: list[Span] = []
    position = 0
    while position < len(text):
        run = _SIMPLE.match(text, position)
        if run is not None:
            # Its last character may combine with the next one.
            end = run.end() - (run.end() < len(text) and _joins(text[run.end()]))
            folded.append(text[position:end].lower())
            origins.extend(zip(range(position, end), range(position + 1, end + 1), strict=True))
            if end > position:
                position = end
                continue
        end = position + 1
        while end < len(text) and _joins(text[end]):
            end += 1
        piece = _piece(text[position:end])
        folded.append(piece)
        if len(piece) == end - position > 1 and all(len(_piece(character)) == 1 for character in text[position:end]):
            origins.extend((at, at + 1) for at in range(position, end))
        else:
            origins.extend([(position, end)] * len(piece))
        position = end
    return "".join(folded), origins


@functools.lru_cache(maxsize=20_000)
def _piece(piece: str) -> str:
    """The folding of a piece of text that does not depend on its neighbours; white space becomes a blank."""
    return normalise(f"|{piece}|")[1:-1]  # the bars protect blanks at the ends


@functools.lru_cache(maxsize=20_000)
def _joins(character: str) -> bool:
    """Whether the character can combine with the one before it: marks, and the later letters of a syllable."""
    if character.isascii():
        return False
    first = unicodedata.normalize("NFKD", character)[0]
    return unicodedata.category(first)[0] == "M" or "\u1160" <= first <= "\u11ff"
