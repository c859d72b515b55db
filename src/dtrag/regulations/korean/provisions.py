"""Splits one regulation into its provisions: articles under their 편/장/절/관, addenda, appendices, a preamble.

A head is accepted when its number can follow the previous one, so that a line that only begins with a citation
(`제14조의 규정에 의거 …`) does not start an article.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dtrag.regulations.korean.heads import (
    ArticleHead,
    DocumentLine,
    addendum_head,
    appendix_head,
    article_head,
    cites,
    division_head,
    is_empty_body,
    is_history,
    may_be_name,
    without_marks,
)

Kind = Literal["article", "addendum", "appendix", "preamble"]
WIDEST_GAP = 40
"""Articles that may be missing between two neighbours (ranges are deleted together); a wider gap is a citation."""
SHORTEST_PREAMBLE = 80
"""Characters of prose before 제1조 that make a preamble (of a charter)."""

_RANGE = re.compile(r"\s*(?:[,~∼\-및]|내지|부터)")
_SENTENCE_END = (".", ":", "。", ">", "〉", ")", "]", "】", "｣", "」", "|")
_DELETED_WORD = re.compile(r"삭\s*제|폐\s*지")


@dataclass(frozen=True, slots=True)
class ParsedProvision:
    """A part of a regulation that is searched on its own. `[start, end)` is its text without its heading.

    `label` is `제15조`, `부칙`, `별표 1`; `occurrence` counts equal labels of one regulation from 1.
    """

    kind: Kind
    label: str
    title: str
    divisions: tuple[str, ...]
    start: int
    end: int
    occurrence: int = 1


@dataclass(slots=True)
class _Open:
    kind: Kind
    label: str
    title: str
    divisions: tuple[str, ...]
    start: int
    heading: int


class ProvisionReader:
    """Reads the lines of one regulation in order, with the current provision as its state."""

    def __init__(self, text: str, wrapped: bool) -> None:
        self._text = text
        self._wrapped = wrapped
        self._done: list[ParsedProvision] = []
        self._open: _Open | None = None
        self._divisions: dict[int, str] = {}
        self._last = (0, 0)
        self._above: DocumentLine | None = None

    def read(self, lines: Sequence[DocumentLine], end: int) -> list[ParsedProvision]:
        """The provisions of the lines, whose last character is before `end`."""
        if lines:
            self._open = _Open("preamble", "", "", (), lines[0].start, lines[0].start)
        for line in lines:
            self._line(line)
            self._above = line
        self._close(end)
        return _numbered(self._done)

    def _line(self, line: DocumentLine) -> None:
        if line.text[0] in _FIRST_CHARACTERS and not (line.table and "|" in line.text):
            if (appendix := appendix_head(line.text)) and not self._mid_sentence(line):
                self._begin("appendix", *appendix, line, self._row_end(line) if line.table else line.end)
                return
            if line.table:
                return
            if addendum := addendum_head(line.text):
                self._begin("addendum", "부칙", addendum[0], line, line.start + addendum[1])
                return
            if self._kind in ("article", "preamble") and self._article_or_division(line):
                return
        if self._open is None:
            return
        self._set_appendix_title(line)

    @property
    def _kind(self) -> Kind:
        return self._open.kind if self._open else "article"

    def _article_or_division(self, line: DocumentLine) -> bool:
        head = article_head(line.text)
        if head is not None:
            if not self._is_next_article(head, line):
                return False
            self._begin("article", head.label, head.title, line, line.start + head.body)
            self._last = (head.number, head.minor)
            return True
        division = division_head(line.text)
        if division is None:
            return False
        rank, heading = division
        self._close(line.start)
        self._divisions = {r: h for r, h in self._divisions.items() if r < rank} | {rank: heading}
        return True

    def _is_next_article(self, head: ArticleHead, line: DocumentLine) -> bool:
        number, minor = head.number, head.minor
        last, last_minor = self._last
        is_successor = (number, minor) in ((last + 1, 0), (last, last_minor + 1), (last + 1, 1))
        forward = (number, minor) > self._last and number - last <= WIDEST_GAP
        deleted = bool(_DELETED_WORD.search(line.text)) and is_empty_body(line.text)
        if deleted and (_RANGE.match(head.tail) or not head.title):
            return forward
        attached = cites(head.tail)
        if not head.title:
            return (
                is_successor
                and (not head.tail or head.tail[0].isspace())
                and not attached
                and not self._mid_sentence(line)
            )
        if attached and not head.tail[:1].isspace():
            return is_successor and not self._mid_sentence(line)
        if forward:
            return is_successor or not self._mid_sentence(line)
        return line.level > 0 or not self._mid_sentence(line)

    def _mid_sentence(self, line: DocumentLine) -> bool:
        """Whether the line may continue a wrapped one; only in documents with wrapped paragraphs."""
        above = self._above
        if not self._wrapped or above is None or line.level or above.level or above.table:
            return False
        if self._text.count("\n", above.end, line.start) > 1:
            return False
        return not above.text.endswith(_SENTENCE_END) and len(above.text) >= 20

    def _begin(self, kind: Kind, label: str, title: str, line: DocumentLine, start: int) -> None:
        self._close(line.start)
        divisions = tuple(self._divisions[r] for r in sorted(self._divisions)) if kind == "article" else ()
        self._open = _Open(kind, label, title, divisions, start, line.start)

    def _row_end(self, line: DocumentLine) -> int:
        """The end of the row, behind its empty cells."""
        end = self._text.find("\n", line.end)
        return end if end >= 0 else len(self._text)

    def _set_appendix_title(self, line: DocumentLine) -> None:
        """Take the line below the mark of an appendix as its title."""
        opened = self._open
        if opened is None or opened.kind != "appendix" or opened.title or line.table:
            return
        if not self._text[opened.start : line.start].strip(" *\n") and may_be_name(line.text):
            opened.title = " ".join(without_marks(line.text).split()).strip(" *")

    def _close(self, end: int) -> None:
        opened, self._open = self._open, None
        if opened is None:
            return
        start, end = _trimmed(self._text, opened.start, end)
        if start == end and opened.kind == "appendix" and opened.title:
            start, end = _trimmed(self._text, opened.heading, end)  # a picture: only the heading is text
        body = self._text[start:end]
        if opened.kind == "preamble":
            if not _is_prose(body):
                return
        elif opened.kind == "article" and is_empty_body(body):
            return
        if body:
            self._done.append(ParsedProvision(opened.kind, opened.label, opened.title, opened.divisions, start, end))


_FIRST_CHARACTERS = frozenset("제부별[<〈(（【「〔［붙서양■□◆●▣※")


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without the white space and Markdown marks around it."""
    while start < end and text[start] in " \t\n*_#":
        start += 1
    while start < end and text[end - 1] in " \t\n#":
        end -= 1
    return start, end


def _is_prose(body: str) -> bool:
    prose = [line for line in body.split("\n") if line.strip() and not is_history(line.strip()) and "|" not in line]
    text = " ".join(prose)
    return len(text) >= SHORTEST_PREAMBLE and "다." in text


def _numbered(provisions: list[ParsedProvision]) -> list[ParsedProvision]:
    seen: dict[tuple[str, str], int] = {}
    numbered = []
    for provision in provisions:
        key = (provision.kind, provision.label)
        seen[key] = seen.get(key, 0) + 1
        numbered.append(replace(provision, occurrence=seen[key]) if seen[key] > 1 else provision)
    return numbered
