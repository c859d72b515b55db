"""Prepares a text for reading: composed letters, lines of a wrapped paragraph joined, amendment marks blanked."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from dtrag.core.text.patterns import explained

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
