"""Finds the words that a text quotes from a provision, and compares them with its text."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dtrag.core.text.patterns import explained
from dtrag.core.verification import QuotationStatus
from dtrag.regulations.korean.citation_reader import Token

SHORTEST = 8
"""Characters of a quotation; a shorter one is a term, not words of a provision."""
LONGEST = 4_000
_QUOTATION = re.compile(rf"“([^“”\n]{{{SHORTEST},{LONGEST}}})”|\"([^\"\n]{{{SHORTEST},{LONGEST}}})\"")
_DEFINED = re.compile(r"\s*(?:이?라\s*(?:한다|칭한다|함|하며|하고))")
_SHORT_NAME = ("이하", "약칭")
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
    if len(text[start:end].split()) < 2:
        return False
    if text[max(0, match.start() - 8) : match.start()].rstrip().endswith(_SHORT_NAME):
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


SHORTEST_WRAPPED = 20
"""Characters from which on a line may continue in the next one."""
_GROUP = explained(
    r"[\u1100-\u115f][\u1160-\u11a7]*[\u11a8-\u11ff]*|[^\u0300-\u036f][\u0300-\u036f]*|.",
    finds=("가", "한"),
    refuses="",
    flags=re.DOTALL,
)
_MARK = explained(
    r"[<〈\[【「][^<>〈〉()（）\[\]【】「」\n]{0,120}?(?:개\s?정|신\s?설|삭\s?제|이\s?동|전문|본조|제\s?정)"
    r"[^<>〈〉()（）\[\]【】「」\n]{0,60}?\d{4}[^<>〈〉()（）\[\]【】「」\n]{0,200}[>〉\]】」]"
    r"|[(（](?:[^<>〈〉()（）\[\]【】\n]{0,60}?(?<!\d)(?:19|20)\d{2}\s?[.년-][^<>〈〉()（）\[\]【】\n]{0,200}?)?"
    r"(?:개\s?정|신\s?설|이\s?동|전문|본조|제\s?정)[^<>〈〉()（）\[\]【】\n]{0,60}?(?<!\d)(?:19|20)\d{2}\s?[.년-]"
    r"[^<>〈〉()（）\[\]【】\n]{0,200}[)）]",
    finds=("<개정 2020. 3. 1.>", "(개정 2020. 3. 1.)"),
    refuses=("(이하 같다)", "<개정>"),
)
_WRAP = re.compile(r"(?<=[^\s.。:;!?>〉\])】」』|다요음함임됨])[ \t]*\n(?=[ \t]*[가-힣A-Za-z0-9「『(])")
_NEW_LINE = explained(
    r"[ \t]*(?:[①-⑳]|\d{1,3}[.)]\s|[가-하][.)]\s|제\s?\d{1,4}\s?[조장편절관]\s?[(（]|[-*•·○□■▪※▶]|부\s?칙|별\s?[표지])",
    finds=("① ", "제3조(임용)", "별표"),
    refuses=("이 규정", "제3조에"),
)


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A text as it is read: `composed`, and `prepared` of the same length.

    `places` are the positions in the original of each of its characters and of its end; None if they are the same.
    """

    original: str
    composed: str
    prepared: str
    places: tuple[int, ...] | None

    @classmethod
    def of(cls, text: str) -> WrittenText:
        """Positions differ from the original only where letters were composed."""
        composed, places = _composed(text)
        return cls(text, composed, _with_joined_lines(_without_marks(composed)), places)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The span in the original."""
        return (start, end) if self.places is None else (self.places[start], self.places[end])


def _composed(text: str) -> tuple[str, tuple[int, ...] | None]:
    if unicodedata.is_normalized("NFC", text):
        return text, None
    pieces: list[str] = []
    places: list[int] = []
    for group in _GROUP.finditer(text):
        composed = unicodedata.normalize("NFC", group.group())
        pieces.append(composed)
        places += [group.start()] * len(composed)
    return "".join(pieces), (*places, len(text))


def _without_marks(text: str) -> str:
    """Marks with a date (`<개정 2020. 3. 1.>`) cite nothing; they become blanks."""
    return _MARK.sub(lambda match: " " * len(match.group()), text)


def _with_joined_lines(text: str) -> str:
    """With a blank for each line break inside a sentence, as PDF and plain text have them at the margin."""

    def joined(match: re.Match[str]) -> str:
        start = text.rfind("\n", max(0, match.start() - 200), match.start()) + 1
        is_short = match.start() - start < SHORTEST_WRAPPED
        return match.group() if is_short or _NEW_LINE.match(text, match.end()) else " " * len(match.group())

    return _WRAP.sub(joined, text)
