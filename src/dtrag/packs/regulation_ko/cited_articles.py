"""Reads references to articles: 제15조제2항제3호, ranges and lists, with their 항 and 호."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field

from dtrag.packs.regulation_ko import citation_patterns as patterns
from dtrag.packs.regulation_ko.catalog import Number


@dataclass(slots=True)
class References:
    """The cited articles that were read up to `end`."""

    end: int
    numbers: list[Number] = field(default_factory=list)
    ranges: list[tuple[Number, Number]] = field(default_factory=list)
    paragraph: int | None = None
    item: int | None = None


class ReferenceReader:
    """Reads references in one text. A list ends before a position of `names`, where the name of a rule starts."""

    def __init__(self, text: str, names: Container[int]) -> None:
        self._text = text
        self._names = names

    def articles(self, place: int) -> References | None:
        """An article with its 항 and 호, or a range or list of bare articles."""
        first = self.article(place)
        if first is None:
            return None
        while first.paragraph is None and first.item is None:
            span = patterns.TO.match(self._text, first.end)
            following = self.article(span.end()) if span else None
            if following is not None:
                begin = first.numbers.pop() if first.numbers else first.ranges.pop()[0]
                first.ranges.append((begin, following.numbers[0]))
            else:
                listed = patterns.AND.match(self._text, first.end)
                following = self._further_article(listed.end()) if listed and listed.end() not in self._names else None
                if following is None or following.paragraph is not None or following.item is not None:
                    break
                first.numbers.append(following.numbers[0])
            first.end = following.end
            first.paragraph, first.item = following.paragraph, following.item
            if until := patterns.UNTIL.match(self._text, first.end):
                first.end = until.end()
            if span and following.paragraph is not None:
                break
        return first

    def article(self, place: int) -> References | None:
        match = patterns.ARTICLE.match(self._text, place)
        if match is None:
            return None
        read = References(match.end(), [(int(match[1]), int(match[2] or 0))])
        titled = patterns.TITLE.match(self._text, read.end)
        if titled and not re.search(r"제\s*\d", titled.group()):
            read.end = titled.end()
        self.read_paragraphs(read)
        return read

    def _further_article(self, place: int) -> References | None:
        """As `article`, also 22조 without 제."""
        read = self.article(place)
        if read is None and (bare := patterns.FURTHER_ARTICLE.match(self._text, place)):
            read = References(bare.end(), [(int(bare[1]), int(bare[2] or 0))])
            self.read_paragraphs(read)
        return read

    def read_paragraphs(self, read: References) -> None:
        """항 and 호 behind an article, their ranges and lists included; the first of each is kept."""
        for pattern, name in ((patterns.PARAGRAPH, "paragraph"), (patterns.ITEM, "item"), (patterns.SUBITEM, "")):
            match = pattern.match(self._text, read.end)
            if match is None:
                continue
            if name:
                setattr(read, name, _numeral(match))
            read.end = match.end()
            while joined := patterns.JOINED_PARTS.match(self._text, read.end):
                further = pattern.match(self._text, joined.end())
                if further is None or patterns.ARTICLE.match(self._text, joined.end()):
                    break
                read.end = further.end()
                if until := patterns.UNTIL.match(self._text, read.end):
                    read.end = until.end()


def _numeral(match: re.Match[str]) -> int:
    """The number of 제2항 or 제②항."""
    return int(match[1]) if match[1] else ord(match[2]) - ord("①") + 1
