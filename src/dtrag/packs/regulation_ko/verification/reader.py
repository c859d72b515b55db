"""Reads the citations of any text (a memorandum, a contract, a draft), whose regulation each one names or implies.

A name counts for the references after it, until another one is named: 교원인사규정 제8조 … 제9조 … 같은 조 제2항.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from dtrag.packs.regulation_ko import citation_patterns as patterns
from dtrag.packs.regulation_ko.catalog import Number
from dtrag.packs.regulation_ko.verification import reading_patterns as reading
from dtrag.packs.regulation_ko.verification.references import (
    WHOLE,
    Member,
    Part,
    read_members,
    read_parts,
)
from dtrag.packs.regulation_ko.verification.rule_names import WrittenName

Kind = Literal["regulation", "article", "appendix", "addendum", "division", "unknown"]
AMBIGUOUS = WrittenName(0, 0, "")
"""The name of a reference that could be of any of several regulations."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation as it is written: of the regulation `name`, None when the text names none.

    `number`, `until`, `title`, `part` and `last_part` are those of an article (or of an addendum's), `label` is the
    label of an appendix or the heading of an addendum or division; `ambiguous` if 같은 조 has nothing to refer to.
    """

    start: int
    end: int
    kind: Kind
    name: WrittenName | None
    number: Number | None = None
    until: Number | None = None
    title: str | None = None
    part: Part = WHOLE
    last_part: Part = WHOLE
    label: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """What a text is: `default` is the regulation of references before any name.

    In a regulation's own text (`is_own`) it is that of all references without a name. `article` is the article whose
    text this is. An addendum or form that `has_articles` (제1조(시행일)) does not cite them.
    """

    default: WrittenName | None = None
    is_own: bool = False
    article: Number | None = None
    has_articles: bool = False


def read_citations(text: str, names: Iterable[WrittenName], place: Place) -> list[Citation]:
    """The citations in a prepared text with its names, in reading order."""
    return _Reader(text, names, place).read()


class _Reader:
    """Reads from left to right, and tracks what 같은 조, 같은 규정 and bare references refer to."""

    def __init__(self, text: str, names: Iterable[WrittenName], place: Place) -> None:
        self._text = text
        self._place = place
        self._names = {name.start: name for name in names}
        self._last_name = place.default
        self._last_rule = place.default
        self._last_law: WrittenName | None = None
        self._last_article = place.article
        self._last_paragraph: int | None = None
        self._last_end = -1
        self._resolved_end = -1
        self._candidates: list[WrittenName] = []
        self._candidates_end = -1
        self._marks = [match.start() for match in reading.CIRCLED.finditer(text)]
        self._citations: list[Citation] = []

    def read(self) -> list[Citation]:
        starts = {match.start() for match in reading.STARTS.finditer(self._text)}
        position = 0
        for start in sorted(starts | self._names.keys()):
            if start >= position:
                position = max(self._at(start), start + 1)
        return self._citations

    def _at(self, position: int) -> int:
        """Read the citation that starts at `position`; its end, or `position` when there is none."""
        name = self._names.get(position)
        if name is not None:
            return self._named(name)
        for pattern, action in _ACTIONS:
            match = pattern.match(self._text, position)
            if match and (end := action(self, match)) > position:
                return end
        return position

    def _named(self, name: WrittenName) -> int:
        """A name with what is cited of it. A law that is only mentioned does not change what bare references mean."""
        after = reading.AFTER_NAME.match(self._text, name.end)
        before = self._last_name, self._last_article, self._last_paragraph
        candidates = list(self._candidates)
        self._remember(name)
        if end := self._reference(name.start, after.end() if after else name.end, name):
            return end
        if name.is_law:
            self._last_name, self._last_article, self._last_paragraph = before
            self._candidates = candidates
        self._add(Citation(name.start, name.end, "regulation", name))
        return name.end

    def _remember(self, name: WrittenName) -> None:
        if self._last_name is None or self._last_name.regulation is not name.regulation or name.regulation is None:
            self._last_article = self._last_paragraph = None
        if self._candidates_end < 0 or "\n" in self._text[self._candidates_end : name.start]:
            self._candidates = []
        if len(self._candidates) < 2 and not any(_same(name, other) for other in self._candidates):
            self._candidates.append(name)
        self._candidates_end = name.end
        self._last_name = name
        if name.is_law:
            self._last_law = name
        else:
            self._last_rule = name

    def _reference(self, start: int, place: int, name: WrittenName | None) -> int:
        """What is cited at `place` of the regulation `name`; 0 when nothing is."""
        if end := self._articles(start, place, name, after_name=True):
            return end
        if appendix := patterns.APPENDIX.match(self._text, place) or reading.OTHER_APPENDIX.match(self._text, place):
            return self._appendix(start, appendix, name)
        if addendum := reading.ADDENDUM.match(self._text, place):
            return self._addendum(start, addendum.end(), name)
        if division := reading.DIVISION.match(self._text, place):
            label = f"제{division[1]}{division[2]}"
            self._add(Citation(start, division.end(), "division", name, label=label))
            return division.end()
        return 0

    def _articles(self, start: int, place: int, name: WrittenName | None, *, after_name: bool) -> int:
        members = read_members(self._text, place, self._names, after_name=after_name)
        for index, member in enumerate(members):
            self._article(start if index == 0 else member.start, member, name)
        return members[-1].end if members else 0

    def _article(self, start: int, member: Member, name: WrittenName | None) -> None:
        self._last_article = (member.until or member.number) if name is not AMBIGUOUS else None
        self._last_paragraph = member.part.paragraph
        if name is not AMBIGUOUS:
            self._last_name = name
        self._add(
            Citation(
                start, member.end, "article", name, member.number, member.until, member.title, member.part,
                member.last_part,
            )
        )  # fmt: skip

    def _bare_article(self, match: re.Match[str]) -> int:
        if self._is_own_heading(match):
            heading = patterns.TITLE.match(self._text, match.end())
            return heading.end() if heading else match.end()
        name = self._implied(match.start())
        return self._articles(match.start(), match.start(), name, after_name=not match[0].startswith("제"))

    def _implied(self, position: int) -> WrittenName | None:
        """The regulation of a reference without a name: the last one that its sentence or its paragraph names.

        When the paragraph of the last name contains several and the sentence none, it could be any of them.
        """
        if self._place.is_own:
            return self._place.default
        if reading.OF_SEVERAL.search(self._text, max(0, position - 12), position):
            return AMBIGUOUS
        if (
            len(self._candidates) < 2
            or reading.SENTENCE_END.search(self._text, max(0, self._resolved_end), position) is None
        ):
            return self._last_name
        return AMBIGUOUS

    def _is_own_heading(self, match: re.Match[str]) -> bool:
        """제1조(시행일) at the start of a line of an addendum."""
        line = self._text[: match.start()].rpartition("\n")[2]
        return (
            self._place.has_articles
            and not line.strip(" \t#*")
            and self._text[match.end() : match.end() + 2].strip()[:1] in "(（"
        )

    def _same_article(self, match: re.Match[str]) -> int:
        if self._last_article is None:
            return self._unknown(match.start(), self._parts_end(match.end()))
        return self._part_of(match.start(), match.end(), self._last_article, None)

    def _same_paragraph(self, match: re.Match[str]) -> int:
        if self._last_article is None or self._last_paragraph is None:
            return self._unknown(match.start(), self._parts_end(match.end()))
        return self._part_of(match.start(), match.end(), self._last_article, self._last_paragraph)

    def _part_of(self, start: int, place: int, number: Number, paragraph: int | None) -> int:
        """항, 호 and 목 behind 같은 조 or 같은 항."""
        if same := reading.SAME_PARAGRAPH.match(self._text, _blanks(self._text, place)):
            place, paragraph = same.end(), self._last_paragraph
        parts = read_parts(self._text, place) or [(start, place, WHOLE)]
        for index, (first, end, part) in enumerate(parts):
            whole = Part(paragraph, part.item, part.subitem, part.until) if part.paragraph is None else part
            self._last_paragraph = whole.paragraph
            begin = start if index == 0 else first
            self._add(Citation(begin, end, "article", self._last_name, number, part=whole))
        return self._citations[-1].end

    def _own_paragraph(self, match: re.Match[str]) -> int:
        """제2항 without an article: of the article that was cited before, or whose text this is."""
        if match.start() and (self._text[match.start() - 1].isalnum()):
            return match.end()
        if self._place.is_own:
            self._last_name, self._last_article = self._place.default, self._place.article
        number = self._last_article
        if number is None:
            return match.end() if self._place.is_own else self._unknown(match.start(), self._parts_end(match.start()))
        parts = read_parts(self._text, match.start(), needs_mark=True)
        for start, end, part in parts:
            self._last_paragraph = part.paragraph
            self._add(Citation(start, end, "article", self._last_name, number, part=part))
        return parts[-1][1] if parts else match.end()

    def _own_item(self, match: re.Match[str]) -> int:
        """제3호 without an article: a citation only in the sentence that cites one (제2024-3호 is none)."""
        if match.start() and (self._text[match.start() - 1].isalnum() or self._text[match.start() - 1] == "-"):
            return match.end()
        if self._place.is_own:
            self._last_name, self._last_article = self._place.default, self._place.article
            self._last_paragraph = None
        is_same_sentence = self._last_end >= 0 and not reading.SENTENCE_END.search(
            self._text, self._last_end, match.start()
        )
        is_near = self._place.is_own or is_same_sentence
        if self._last_article is None or not is_near:
            return match.end()
        parts = read_parts(self._text, match.start(), needs_mark=True)
        for start, end, part in parts:
            whole = Part(self._last_paragraph, part.item, part.subitem, part.until)
            self._add(Citation(start, end, "article", self._last_name, self._last_article, part=whole))
        return parts[-1][1] if parts else match.end()

    def _own_article(self, match: re.Match[str]) -> int:
        """이 조, in the text of an article."""
        if self._place.article is None:
            return match.end()
        self._last_name = self._place.default
        return self._part_of(match.start(), match.end(), self._place.article, None)

    def _previous_paragraph(self, match: re.Match[str]) -> int:
        """전항, in the text of an article with marked paragraphs."""
        place = bisect_left(self._marks, match.start())
        number = ord(self._text[self._marks[place - 1]]) - ord("①") if place else 0
        if self._place.article is None or not number:
            return match.end()
        self._last_name = self._place.default
        return self._part_of(match.start(), match.end(), self._place.article, number)

    def _same_rule(self, match: re.Match[str]) -> int:
        """같은 규정 제5조 and 이 규정 별표 1; without a reference it is no citation."""
        after = reading.AFTER_NAME.match(self._text, match.end())
        place = after.end() if after else match.end()
        if not match[0].startswith(("같", "동")):
            return self._reference(match.start(), place, self._implied(match.start())) or match.end()
        if self._last_rule is not None and self._last_rule is not self._last_name:
            self._remember(self._last_rule)
        return self._reference(match.start(), place, self._last_rule) or match.end()

    def _same_law(self, match: re.Match[str]) -> int:
        if self._last_law is None:
            return match.end()
        return self._named(WrittenName(match.start(), match.end(), match.group(), is_law=True))

    def _bare_appendix(self, match: re.Match[str]) -> int:
        if not match[2] and not patterns.APPENDIX_CITED.match(self._text, match.end()):
            return match.end()
        return self._appendix(match.start(), match, self._implied(match.start()))

    def _appendix(self, start: int, match: re.Match[str], name: WrittenName | None) -> int:
        label = "".join(part for part in (match[1], match[2], match[3]) if part)
        titled = reading.APPENDIX_TITLE.match(self._text, match.end())
        title = titled[1].strip() if titled and not re.search(r"\d{4}|제\s*\d|이하|참조|참고", titled[1]) else None
        end = titled.end() if titled and title else match.start() + len(match.group().rstrip())
        self._add(Citation(start, end, "appendix", name, label=" ".join(label.split()), title=title))
        while joined := reading.ENUMERATED.match(self._text, end):
            number = re.compile(
                r"제?\s?(\d{1,3}(?:\s?[-의]\s?\d{1,3})?)\s?(호)?\s?(서식|양식)?(?![가-힣\d](?<![의에은을과와및로]))"
            ).match(self._text, joined.end())
            is_further = number is not None and (bool(number[3]) == bool(match[3])) and (match[2] is not None)
            if (
                number is None
                or not is_further
                or re.match(r"\s*[조항호]", self._text[number.end() : number.end() + 2])
            ):
                break
            further = f"{match[1]} {number.group().strip()}"
            self._add(Citation(joined.end(), number.end(), "appendix", name, label=further))
            end = number.end()
        return end

    def _bare_addendum(self, match: re.Match[str]) -> int:
        """부칙 제2조; 부칙 alone is the word."""
        if self._place.has_articles:
            return match.end()
        before = len(self._citations)
        end = self._addendum(match.start(), match.end(), self._implied(match.start()))
        if self._citations[before].number is None and self._citations[before].part == WHOLE:
            del self._citations[before:]
        return end

    def _addendum(self, start: int, place: int, name: WrittenName | None) -> int:
        after = reading.AFTER_ADDENDUM.match(self._text, place)
        heading = (after["heading"] or "") if after else ""
        beyond = after.end() if after else place
        members = read_members(self._text, beyond, self._names, after_name=False)
        for index, member in enumerate(members):
            begin = start if index == 0 else member.start
            self._add(
                Citation(
                    begin, member.end, "addendum", name, member.number, member.until, None, member.part, label=heading
                )
            )
        if members:
            return members[-1].end
        parts = read_parts(self._text, beyond, needs_mark=True)
        for index, (first, end, part) in enumerate(parts):
            self._add(Citation(start if index == 0 else first, end, "addendum", name, part=part, label=heading))
        if parts:
            return parts[-1][1]
        end = after.end("heading") + 1 if after and heading else place
        self._add(Citation(start, end, "addendum", name, label=heading))
        return end

    def _parts_end(self, place: int) -> int:
        parts = read_parts(self._text, place)
        return parts[-1][1] if parts else place

    def _unknown(self, start: int, end: int) -> int:
        self._add(Citation(start, end, "unknown", self._last_name))
        return end

    def _add(self, citation: Citation) -> None:
        self._citations.append(citation)
        self._last_end = citation.end
        if citation.name is not AMBIGUOUS:
            self._resolved_end = citation.end


_ACTIONS: tuple[tuple[re.Pattern[str], Callable[[_Reader, re.Match[str]], int]], ...] = (
    (patterns.ARTICLE, _Reader._bare_article),
    (reading.BARE_ARTICLE, _Reader._bare_article),
    (reading.SAME_RULE, _Reader._same_rule),
    (reading.SAME_LAW, _Reader._same_law),
    (reading.SAME_ARTICLE, _Reader._same_article),
    (reading.SAME_PARAGRAPH, _Reader._same_paragraph),
    (patterns.OWN_ARTICLE, _Reader._own_article),
    (patterns.PREVIOUS_PARAGRAPH, _Reader._previous_paragraph),
    (reading.PARAGRAPH_MARK, _Reader._own_paragraph),
    (reading.ITEM_MARK, _Reader._own_item),
    (patterns.APPENDIX, _Reader._bare_appendix),
    (reading.ADDENDUM, _Reader._bare_addendum),
)


def _same(name: WrittenName, other: WrittenName) -> bool:
    if name.regulation is not None or other.regulation is not None:
        return name.regulation is other.regulation
    return name.text == other.text


def _blanks(text: str, place: int) -> int:
    match = patterns.BLANKS.match(text, place)
    return match.end() if match else place
