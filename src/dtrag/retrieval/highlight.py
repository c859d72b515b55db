"""Which characters of a passage hold words of the query: for people who want to see at once why it was found.

The index compares folded text (NFKC, lower case), but a span must point into the passage as it stands there. So the
passage is folded piece by piece, and each folded character remembers the characters that it came from.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator

from dtrag.core.text.analysis import Analyzer, normalise, terms
from dtrag.core.text.questions import content

Span = tuple[int, int]

_CJK = "\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(
    r"(?P<article>제 *\d{1,4} *조(?:의 *\d{1,3})?)"
    rf"|(?P<run>[가-힣]+|[{_CJK}]+)"
    r"|(?P<latin>[a-z0-9]+(?:[._+#/&'’-]+[a-z0-9]+)*(?:\+\+|#)?)"
    rf"|(?P<other>(?:(?![가-힣{_CJK}a-z0-9_])\w)+)"
)
"""The words that `core/text/analysis.py` makes terms of, in a text with its blanks; a test compares the two."""
_PART = re.compile(r"[a-z0-9]+(?:['’][a-z0-9]+)*")
_APOSTROPHE = re.compile("['’]")
_POSSESSIVE = re.compile(r"['’]s$")
_SPACE = re.compile(r"\s")
_SIMPLE = re.compile(r"[ -~가-힣]+")
"""Characters that fold alone, to one character: ASCII without control characters, and syllables of Hangul."""
_terms = functools.lru_cache(maxsize=20_000)(terms)


def highlights(query: str, text: str, analyzer: Analyzer = Analyzer()) -> tuple[Span, ...]:
    """Spans `[start, end)` in code points of `text` that hold words the query is about: sorted, apart from each other.

    English words match by their stem. Of Korean words the pairs of syllables match, shown as the longest runs they
    make; pairs of words that only ask, and of particles, do not count. Identifiers are shown whole. Takes time in
    proportion to the text.
    """
    wanted = _wanted(query, analyzer)
    if not wanted or not text:
        return ()
    folded, origins = _folded(text)
    found = _matches(folded, wanted)
    if origins is None:
        return _merged(found)
    return _merged((origins[start][0], origins[end - 1][1]) for start, end in found)


@functools.lru_cache(maxsize=256)
def _wanted(query: str, analyzer: Analyzer) -> frozenset[str]:
    """The terms that a word must give; those of a list of results are asked for once for each of its passages."""
    return frozenset(analyzer.terms(content(query)))


def _matches(folded: str, wanted: frozenset[str]) -> Iterator[Span]:
    initials = {term[0] for term in wanted}  # folding, stems and pairs all keep the first character
    for word in _WORD.finditer(folded):
        start, end = word.span()
        kind, token = word.lastgroup, word.group()
        if kind == "run":
            width = min(2, end - start)
            for at in range(start, end - width + 1):
                if folded[at] in initials and folded[at : at + width] in wanted:
                    yield at, at + width
        elif kind == "latin" and not token.isalnum():
            if not wanted.isdisjoint(_terms(token)):
                yield from ((start + first, start + last) for first, last in _inside(token, wanted))
        elif token[0] in initials and not wanted.isdisjoint(_terms(token)):
            yield start, end


def _inside(token: str, wanted: frozenset[str]) -> Iterator[Span]:
    """What matches of a Latin word with signs in it: all if it is one term or was asked for as it is, else parts."""
    whole = _POSSESSIVE.sub("", token)
    first = _terms(token)[0]
    if first in wanted and (not first.isalnum() or _APOSTROPHE.sub("", whole).isalnum()):
        yield 0, len(whole)
        return
    for part in _PART.finditer(whole):
        if not wanted.isdisjoint(_terms(_APOSTROPHE.sub("", part.group()))):
            yield part.span()


def _merged(spans: Iterator[Span]) -> tuple[Span, ...]:
    """The spans, which begin in order, as one where they touch or overlap."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


def _folded(text: str) -> tuple[str, list[Span] | None]:
    """The text as `normalise` folds it, but with every blank kept, and the span of `text` behind each character.

    None instead of the spans: character n comes from character n.
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
            # Its last character may be one with what follows.
            end = run.end() - (run.end() < len(text) and _joins(text[run.end()]))
            folded.append(text[position:end].lower())
            origins.extend(zip(range(position, end), range(position + 1, end + 1), strict=True))
            if end > position:
                position = end
                continue
        end = position + 1
        while end < len(text) and _joins(text[end]):
            end += 1
        made = _piece(text[position:end])
        folded.append(made)
        if len(made) == end - position > 1 and all(len(_piece(character)) == 1 for character in text[position:end]):
            origins.extend((at, at + 1) for at in range(position, end))
        else:
            origins.extend([(position, end)] * len(made))
        position = end
    return "".join(folded), origins


@functools.lru_cache(maxsize=20_000)
def _piece(piece: str) -> str:
    """The folding of a piece of a text that does not depend on its neighbours; white space is a blank, also alone."""
    return normalise(f"|{piece}|")[1:-1]  # the marks keep blanks at the ends


@functools.lru_cache(maxsize=20_000)
def _joins(character: str) -> bool:
    """Whether the character can be one with the character before it: marks, and the later letters of a syllable."""
    if character.isascii():
        return False
    first = unicodedata.normalize("NFKD", character)[0]
    return unicodedata.category(first)[0] == "M" or "\u1160" <= first <= "\u11ff"
