"""The 항, 호 and 목 of an article, read from its text, with those that were deleted (삭제)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dtrag.packs.regulation_ko.catalog import Number
from dtrag.packs.regulation_ko.verification.references import SUBITEMS

_MARK = re.compile(r"[①-⑳㉑-㉟㊱-㊿]")
_DELETED = r"[\s*]*+[<〈(（\[]?\s*+삭\s*+제"
_IS_DELETED = re.compile(_DELETED)
_FURTHER_MARK = re.compile(
    rf"\s*+(?:[~∼～\-,·ㆍ]|내지|부터|및|와|과)\s*+([①-⑳㉑-㉟㊱-㊿])\s*+(?:까지)?\s*+(?:항)?(?={_DELETED})"
)
_ITEM = re.compile(r"(?m)^[ \t\u3000*]*+(?:\(?)(\d{1,3})(?:\s?의\s?(\d{1,2}))?\s?([.)])(?!\d)")
_FURTHER_ITEM = re.compile(rf"\s*+(?:[~∼～\-,·ㆍ]|내지|부터|및)\s*+(\d{{1,3}})\s*+[.)]?\s*+(?:까지)?(?={_DELETED})")
_INLINE_ITEM = re.compile(r"(?<![\d.])(?<!\d[. ])(?<!\d\.\s)(\d{1,3})\.\s?(?=[가-힣A-Za-z「“(<])")
"""An item inside a line; not a month or day."""
_SUBITEM = re.compile(rf"(?m)^[ \t\u3000*]*+([{SUBITEMS}])\s?[.)]")
_INLINE_SUBITEM = re.compile(rf"(?<![가-힣])([{SUBITEMS}])[.)]\s")


@dataclass(slots=True)
class Item:
    """A 호: its 목 by number, each with whether it was deleted."""

    deleted: bool = False
    subitems: dict[int, bool] = field(default_factory=dict)


@dataclass(slots=True)
class Paragraph:
    """A 항, or the text outside of any."""

    deleted: bool = False
    items: dict[Number, Item] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ArticleText:
    """The parts of an article. Without marked paragraphs, `whole` has its items."""

    paragraphs: dict[int, Paragraph]
    whole: Paragraph

    def paragraph(self, number: int | None) -> list[Paragraph]:
        """The paragraph of this number; with None all in which an item without a paragraph may be."""
        if number is not None:
            return [self.paragraphs[number]] if number in self.paragraphs else []
        return [self.whole, *self.paragraphs.values()]


def read_article(text: str) -> ArticleText:
    """The parts of an article from its text without the heading."""
    marks = list(_paragraph_marks(text))
    first = marks[0][0] if marks else len(text)
    paragraphs: dict[int, Paragraph] = {}
    head = text[:first]
    if marks and marks[0][1] == 2 and head.strip():  # ① is missing, or was part of the heading
        paragraphs[1] = _paragraph(head)
    for (start, number), (end, _) in itertools.pairwise([*marks, (len(text), 0)]):
        body = text[start + 1 : end]
        further = _FURTHER_MARK.match(body)
        deleted = further is not None or _IS_DELETED.match(body) is not None
        for each in range(number, (_circled(further[1]) if further else number) + 1):
            paragraphs[each] = Paragraph(True) if deleted else _paragraph(body)
    return ArticleText(paragraphs, _paragraph(head if marks else text))


def _paragraph_marks(text: str) -> Iterator[tuple[int, int]]:
    """Position and number of the marks that begin a paragraph: in order, at a line's start or after a sentence."""
    last = 0
    for match in _MARK.finditer(text):
        before = text[max(0, match.start() - 40) : match.start()].rstrip(" \t\u3000*")
        number = _circled(match.group())
        if number > last and (not before or before[-1] in "\n.>〉)）]】|:"):
            last = number
            yield match.start(), number


def _paragraph(body: str) -> Paragraph:
    """The items of a paragraph: those with a period, or if there are none, those with a bracket."""
    heads = list(_ITEM.finditer(body))
    dotted = [match for match in heads if match[3] == "."]
    heads = list(_in_order(dotted or heads)) or _consecutive(_INLINE_ITEM.finditer(body))
    paragraph = Paragraph()
    for match, following in itertools.zip_longest(heads, heads[1:]):
        text = body[match.end() : following.start() if following else len(body)]
        minor = int(match[2] or 0) if match.re is _ITEM else 0
        further = _FURTHER_ITEM.match(text)
        deleted = further is not None or _IS_DELETED.match(text) is not None
        paragraph.items[int(match[1]), minor] = Item(deleted, _subitems(text))
        for number in range(int(match[1]) + 1, (int(further[1]) if further else 0) + 1):
            paragraph.items[number, 0] = Item(True)
    return paragraph


def _in_order(heads: list[re.Match[str]]) -> Iterator[re.Match[str]]:
    """The heads whose numbers grow, from 1: years and amounts in a text are none."""
    last = (0, 0)
    for match in heads:
        number = (int(match[1]), int(match[2] or 0) if match.re is _ITEM else 0)
        if last < number and number[0] - last[0] <= (20 if last[0] else 1):
            last = number
            yield match


def _consecutive(heads: Iterable[re.Match[str]]) -> list[re.Match[str]]:
    """The heads numbered 1, 2, 3 …; none if there is only one, which is hardly a list."""
    chosen: list[re.Match[str]] = []
    for match in heads:
        if int(match[1]) == len(chosen) + 1:
            chosen.append(match)
    return chosen if len(chosen) > 1 else []


def _subitems(text: str) -> dict[int, bool]:
    subitems: dict[int, bool] = {}
    inline = not _SUBITEM.search(text)
    for match in (_INLINE_SUBITEM if inline else _SUBITEM).finditer(text):
        number = SUBITEMS.index(match[1]) + 1
        if inline and number != len(subitems) + 1:
            continue
        subitems.setdefault(number, _IS_DELETED.match(text, match.end()) is not None)
    return subitems


def _circled(mark: str) -> int:
    """The number of ①, ㉑ or ㊱."""
    for first, number in (("㊱", 36), ("㉑", 21), ("①", 1)):
        if mark >= first:
            return ord(mark) - ord(first) + number
    raise ValueError(mark)
