"""Finds the words that a text quotes from a provision, and compares them with its text."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dtrag.core.verification import QuotationStatus
from dtrag.regulations.korean.citation_reader import Token
from dtrag.regulations.korean.verification.written_text import WrittenText

SHORTEST = 8
"""Characters of a quotation; a shorter one is a term, not words of a provision."""
LONGEST = 4_000
_QUOTATION = re.compile(rf"“([^“”\n]{{{SHORTEST},{LONGEST}}})”|\"([^\"\n]{{{SHORTEST},{LONGEST}}})\"")
_WORDS = re.compile(r"\S\s+\S")
_DEFINED = re.compile(r"\s*(?:이?라\s*(?:한다|칭한다|함|하며|하고))")
_SHORT_NAME = re.compile(r"(?:이하|약칭)\s*$")
_BRACKET = re.compile(r"\s*[(（\[]\s*")
"""Between a quotation and its citation: “…” (학칙 제21조)."""
_HEAD = re.compile(r"\s*제\s?\d{1,4}\s?조(?:\s?의\s?\d{1,3})?\s*(?:[(（][^()（）]{0,100}[)）])?\s*")
"""제21조(학위의 수여) at the start of a quotation: the text of a provision is without its heading."""


@dataclass(frozen=True, slots=True)
class Quotation:
    """Words in quotation marks, `[start:end]` of the prepared text, and the place of their citation in its list."""

    start: int
    end: int
    citation: int


def read_quotations(text: WrittenText, citations: Sequence[Token]) -> Iterator[Quotation]:
    """The quotations whose line has a citation, in the order of the text.

    A citation in brackets behind the quotation is its own; otherwise the last before it, then the first behind it.
    """
    order = sorted(range(len(citations)), key=lambda place: citations[place].start)
    ordered = [citations[place] for place in order]
    starts = [citation.start for citation in ordered]
    for match in _QUOTATION.finditer(text.prepared):
        start, end = match.span(1) if match[1] is not None else match.span(2)
        if not _is_quoted_text(text.prepared, match, start, end):
            continue
        first, last = bisect_left(starts, match.start()), bisect_left(starts, match.end())
        if _is_name(ordered[max(0, first - 1) : last], match.start(), match.end()):
            continue
        before = first - 1 if first and _on_one_line(text.prepared, starts[first - 1], start) else None
        behind = last if last < len(starts) and _on_one_line(text.prepared, end, starts[last]) else None
        bracket = _BRACKET.match(text.prepared, match.end())
        is_in_bracket = behind is not None and bracket is not None and starts[behind] == bracket.end()
        chosen = behind if before is None or is_in_bracket else before
        if chosen is not None:
            yield Quotation(start, end, order[chosen])


def compared(quoted: str, cited: Sequence[str]) -> QuotationStatus:
    """How the quoted words are in the texts of the cited provisions."""
    head = _HEAD.match(quoted)
    written = [quoted, *([quoted[head.end() :]] if head and head.end() < len(quoted) else [])]
    if any(words in text for words in written for text in cited):
        return "verbatim"
    folded = [_folded(text) for text in cited]
    if any(letters and letters in text for letters in map(_folded, written) for text in folded):
        return "same_letters"
    return "different"


def _is_quoted_text(text: str, match: re.Match[str], start: int, end: int) -> bool:
    """Whether these are several words, and not a short name that is defined (이하 “인사규정”이라 한다)."""
    if not _WORDS.search(text, start, end):
        return False
    if _SHORT_NAME.search(text, max(0, match.start() - 8), match.start()):
        return False
    return _DEFINED.match(text, match.end()) is None


def _is_name(citations: Sequence[Token], start: int, end: int) -> bool:
    """Whether the marks only surround a citation or are a part of it: “교원 인사 규정” 제8조."""
    inside = sum(each.end - each.start for each in citations if start <= each.start < each.end <= end)
    is_part = any(each.start <= start < each.end for each in citations)
    return is_part or 2 * inside >= end - start


def _on_one_line(text: str, start: int, end: int) -> bool:
    return "\n" not in text[start:end]


def _folded(text: str) -> str:
    """Letters and digits only, in one form."""
    return "".join(character for character in unicodedata.normalize("NFKC", text) if character.isalnum()).casefold()
