"""Reads the citations of any text: of provisions of a regulation, and of texts that cite some (a memorandum, a draft).

A name counts for the references after it, until another one is named: 교원인사규정 제8조 … 제9조 … 같은 조 제2항. In a
regulation's own text, references without a name are to its own articles.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dtrag.core.text.patterns import CIRCLED
from dtrag.regulations.korean import citation_patterns as patterns
from dtrag.regulations.korean.catalog import Name, Number, Outline, article_number, ordered_articles
from dtrag.regulations.korean.citation_grammar import (
    WHOLE,
    Labelled,
    Member,
    Part,
    read_appendices,
    read_divisions,
    read_members,
    read_parts,
)

Kind = Literal["regulation", "article", "appendix", "addendum", "division", "unknown"]
AMBIGUOUS = Name(0, 0, "")
"""The name of a reference that could be of any of several regulations."""
FARTHEST_ITEM = 80
"""Characters between an item and a further one of the same paragraph (1호는 …, 5호는)."""


@dataclass(frozen=True, slots=True)
class Token:
    """A citation as it is written: of the regulation `name`, None when the text names none.

    `number`, `until`, `title`, `part` and `last_part` are those of an article (or of an addendum's), `label` is the
    label of an appendix (and of its division) up to `last`, or the heading of an addendum. `joined`: it continues the
    list of the one before. `is_named`: a name or 이 규정 precedes it. `unknown` is 같은 조 with nothing to refer to.
    """

    start: int
    end: int
    kind: Kind
    name: Name | None
    number: Number | None = None
    until: Number | None = None
    title: str | None = None
    part: Part = WHOLE
    last_part: Part = WHOLE
    label: str = ""
    last: str = ""
    joined: bool = False
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """What a text is: `default` is the regulation of references before any name.

    A provision (`kind`) of a regulation is its own text: there it is that of all references without a name. `article`
    is the article whose text this is, `previous` the one before it.
    """

    default: Name | None = None
    kind: Literal["", "article", "appendix", "addendum"] = ""
    article: Number | None = None
    previous: Number | None = None


def place_of(label: str, outline: Outline) -> Place:
    """What the text of a provision of a regulation is."""
    number = article_number(label)
    ordered = ordered_articles(outline.articles) if number else []
    at = bisect_left(ordered, number) if number else 0
    kind: Literal["article", "addendum", "appendix"] = (
        "article" if number else "addendum" if "".join(label.split()).startswith("부칙") else "appendix"
    )
    return Place(Name(0, 0, outline.name, outline), kind, number, ordered[at - 1] if at else None)


def read_citations(text: str, names: Iterable[Name], place: Place) -> list[Token]:
    """The citations in a text without amendment marks, with its names, in reading order."""
    return _Reader(text, names, place).read()


class _Reader:
    """Reads from left to right, and tracks what 같은 조, 같은 규정 and bare references refer to."""

    def __init__(self, text: str, names: Iterable[Name], place: Place) -> None:
        self._text = text
        self._place = place
        self._is_own = place.kind != ""
        self._names = {name.start: name for name in names}
        self._last_name = place.default
        self._last_rule = place.default
        self._last_law: Name | None = None
        self._last_article = place.article
        self._last_paragraph: int | None = None
        self._last_end = -1
        self._resolved_end = -1
        self._candidates: list[Name] = []
        self._candidates_end = -1
        self._marks = [match.start() for match in CIRCLED.finditer(text)]
        self._tokens: list[Token] = []

    def read(self) -> list[Token]:
        starts = {match.start() for match in patterns.STARTS.finditer(self._text)}
        position = 0
        for start in sorted(starts | self._names.keys()):
            if start >= position:
                position = max(self._at(start), start + 1)
        return self._tokens

    def _at(self, position: int) -> int:
        """Read the citation that starts at `position`; its end, or `position` when there is none."""
        name = self._names.get(position)
        if name is not None:
            return self._further_decrees(self._named(name), name)
        first = self._text[position]
        for pattern, action in _BY_FIRST["0" if first.isdecimal() else first]:
            match = pattern.match(self._text, position)
            if match and (end := action(self, match)) > position:
                return end
        return position

    def _named(self, name: Name) -> int:
        """A name with what is cited of it. A law that is only mentioned does not change what bare references mean."""
        after = patterns.AFTER_NAME.match(self._text, name.end)
        before = self._last_name, self._last_article, self._last_paragraph
        candidates = list(self._candidates)
        self._remember(name)
        if end := self._reference(name.start, after.end() if after else name.end, name):
            return end
        if name.is_law:
            self._last_name, self._last_article, self._last_paragraph = before
            self._candidates = candidates
        self._add(Token(name.start, name.end, "regulation", name, is_named=True))
        return name.end

    def _further_decrees(self, end: int, name: Name) -> int:
        """시행령 and 시행규칙 after a law or its decree."""
        while name.is_law and (following := patterns.FURTHER_DECREE.match(self._text, end)):
            if following.start(1) in self._names:
                break
            start, end = following.span(1)
            self._add(Token(start, end, "regulation", Name(start, end, following[1], is_law=True), is_named=True))
        return end

    def _remember(self, name: Name) -> None:
        if self._last_name is None or self._last_name.owner is not name.owner or name.owner is None:
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

    def _reference(self, start: int, place: int, name: Name | None) -> int:
        """What is cited at `place` of the regulation `name`; 0 when nothing is."""
        divisions = read_divisions(self._text, place)
        inside = patterns.INSIDE_DIVISION.match(self._text, divisions[-1].end) if divisions else None
        if inside and (end := self._articles(start, inside.end(), name, without_mark=True, is_named=True)):
            return end
        if divisions:
            return self._labelled("division", start, divisions, name, is_named=True)
        if end := self._articles(start, place, name, without_mark=True, is_named=True):
            return end
        if appendices := read_appendices(self._text, place):
            return self._appendices(start, appendices, name, is_named=True)
        if addendum := patterns.ADDENDUM.match(self._text, place):
            return self._addendum(start, addendum.end(), name, is_named=True)
        return 0

    def _labelled(
        self,
        kind: Literal["appendix", "division"],
        start: int,
        members: Sequence[Labelled],
        name: Name | None,
        *,
        is_named: bool = False,
    ) -> int:
        for index, member in enumerate(members):
            begin = member.start if index else start
            self._add(Token(begin, member.end, kind, name, label=member.label, last=member.last, is_named=is_named))
        return members[-1].end

    def _appendices(self, start: int, members: Sequence[Labelled], name: Name | None, *, is_named: bool = False) -> int:
        """Appendices, a single one with the title in brackets behind it."""
        end = members[-1].end
        titled = patterns.APPENDIX_TITLE.match(self._text, end) if len(members) == 1 and not members[0].last else None
        if titled is None or self._is_own or patterns.NO_APPENDIX_TITLE.search(titled[1]):
            return self._labelled("appendix", start, members, name, is_named=is_named)
        title = titled[1].strip()
        self._add(Token(start, titled.end(), "appendix", name, label=members[0].label, title=title, is_named=is_named))
        return titled.end()

    def _articles(
        self, start: int, place: int, name: Name | None, *, without_mark: bool = False, is_named: bool = False
    ) -> int:
        members = read_members(self._text, place, self._names, after_name=without_mark)
        for index, member in enumerate(members):
            self._article(member.start if index else start, member, name, joined=index > 0, is_named=is_named)
        return members[-1].end if members else 0

    def _article(self, start: int, member: Member, name: Name | None, *, joined: bool, is_named: bool) -> None:
        self._last_article = (member.until or member.number) if name is not AMBIGUOUS else None
        self._last_paragraph = member.part.paragraph
        if name is not AMBIGUOUS:
            self._last_name = name
        self._add(
            Token(
                start, member.end, "article", name, member.number, member.until, member.title, member.part,
                member.last_part, joined=joined, is_named=is_named,
            )
        )  # fmt: skip

    def _bare_article(self, match: re.Match[str]) -> int:
        if self._is_own_heading(match):
            heading = patterns.TITLE.match(self._text, match.end())
            return heading.end() if heading else match.end()
        name = self._implied(match.start())
        return self._articles(match.start(), match.start(), name, without_mark=not match[0].startswith("제"))

    def _implied(self, position: int) -> Name | None:
        """The regulation of a reference without a name: the last one that its sentence or its paragraph names.

        When the paragraph of the last name contains several and the sentence none, it could be any of them.
        """
        if self._is_own:
            return self._place.default
        if patterns.OF_SEVERAL.search(self._text, max(0, position - 12), position):
            return AMBIGUOUS
        if (
            len(self._candidates) < 2
            or patterns.SENTENCE_END.search(self._text, max(0, self._resolved_end), position) is None
        ):
            return self._last_name
        return AMBIGUOUS

    def _is_own_heading(self, match: re.Match[str]) -> bool:
        """제1조(시행일) at the start of a line of an addendum, or the heading of the article itself."""
        if not self._is_own or not patterns.TITLE.match(self._text, match.end()):
            return False
        if self._place.kind == "article":
            is_own_number = match.re is patterns.ARTICLE and (int(match[1]), int(match[2] or 0)) == self._place.article
            return is_own_number and not self._text[: match.start()].strip()
        return not self._text[: match.start()].rpartition("\n")[2].strip(" \t#*")

    def _same_article(self, match: re.Match[str]) -> int:
        if self._last_article is None:
            return self._unknown(match.start(), self._parts_end(match.end()))
        return self._part_of(match.start(), match.end(), self._last_article, None)

    def _same_paragraph(self, match: re.Match[str]) -> int:
        if self._last_article is None or (self._last_paragraph is None and not self._is_own):
            return self._unknown(match.start(), self._parts_end(match.end()))
        return self._part_of(match.start(), match.end(), self._last_article, self._last_paragraph)

    def _part_of(self, start: int, place: int, number: Number, paragraph: int | None) -> int:
        """항, 호 and 목 behind 같은 조 or 같은 항."""
        if same := patterns.SAME_PARAGRAPH.match(self._text, self._after_blanks(place)):
            place, paragraph = same.end(), self._last_paragraph
        parts = read_parts(self._text, place) or [(start, place, WHOLE)]
        return self._add_parts("article", start, self._last_name, number, parts, paragraph=paragraph)

    def _add_parts(
        self,
        kind: Literal["article", "addendum"],
        start: int,
        name: Name | None,
        number: Number | None,
        parts: Sequence[tuple[int, int, Part]],
        *,
        paragraph: int | None = None,
        label: str = "",
        is_named: bool = False,
    ) -> int:
        """One token for each of the parts; those without a 항 are of `paragraph`."""
        for index, (first, end, part) in enumerate(parts):
            whole = replace(part, paragraph=paragraph) if part.paragraph is None else part
            self._last_paragraph = whole.paragraph
            begin = first if index else start
            self._add(
                Token(begin, end, kind, name, number, part=whole, label=label, joined=index > 0, is_named=is_named)
            )
        return parts[-1][1]

    def _own_paragraph(self, match: re.Match[str]) -> int:
        """제2항 without an article: of the article that was cited before, or whose text this is."""
        if self._is_inside_word(match.start()):
            return match.end()
        if self._is_own:
            self._last_name, self._last_article = self._place.default, self._place.article
        number = self._last_article
        parts = read_parts(self._text, match.start(), needs_mark=True)
        if number is None and self._place.kind == "addendum" and parts:
            return self._paragraph_of_addendum(parts)
        if number is None:
            return match.end() if self._is_own else self._unknown(match.start(), self._parts_end(match.start()))
        return self._add_parts("article", match.start(), self._last_name, number, parts) if parts else match.end()

    def _is_inside_word(self, position: int) -> bool:
        """Whether a letter or digit precedes (② before 제1항 is neither), or a division or number of a decree does."""
        before = self._text[position - 1 : position]
        return (
            before.isalpha()
            or before.isdecimal()
            or before == "-"
            or patterns.DIVISION_BEFORE.search(self._text, max(0, position - 12), position) is not None
        )

    def _paragraph_of_addendum(self, parts: Sequence[tuple[int, int, Part]]) -> int:
        """제1항 in an addendum whose provisions have marked paragraphs: of the addendum."""
        if self._marks and self._marks[0] < parts[0][0]:
            return self._add_parts("addendum", parts[0][0], self._place.default, None, parts)
        return parts[-1][1]

    def _own_item(self, match: re.Match[str]) -> int:
        """제3호 without an article: a citation only in the sentence that cites one (제2024-3호 is none)."""
        if self._is_inside_word(match.start()):
            return match.end()
        if self._is_own:
            self._last_name, self._last_article = self._place.default, self._place.article
            self._last_paragraph = None
        is_same_sentence = self._last_end >= 0 and not patterns.SENTENCE_END.search(
            self._text, self._last_end, match.start()
        )
        if self._last_article is None or not (self._is_own or is_same_sentence):
            return match.end()
        parts = read_parts(self._text, match.start(), needs_mark=True)
        if not parts:
            return match.end()
        return self._add_parts(
            "article", match.start(), self._last_name, self._last_article, parts, paragraph=self._last_paragraph
        )

    def _further_item(self, match: re.Match[str]) -> int:
        """5호 after 제1항의 1호 in the same line."""
        before = self._tokens[-1] if self._tokens else None
        if before is None or before.part.item is None or self._text[match.start() - 1] not in " ,":
            return 0
        between = self._text[before.end : min(match.start(), before.end + FARTHEST_ITEM + 1)]
        if len(between) > FARTHEST_ITEM or "\n" in between:
            return 0
        part = Part(before.part.paragraph, (int(match[1]), 0), None, int(match[2]) if match[2] else None)
        self._add(Token(match.start(), match.end(), before.kind, before.name, before.number, part=part))
        return match.end()

    def _own_article(self, match: re.Match[str]) -> int:
        """이 조, in the text of an article."""
        return self._of_own(match, self._place.article)

    def _previous_article(self, match: re.Match[str]) -> int:
        """전조, in the text of an article."""
        return self._of_own(match, self._place.previous)

    def _of_own(self, match: re.Match[str], number: Number | None, paragraph: int | None = None) -> int:
        if number is None:
            return match.end()
        self._last_name, self._last_article = self._place.default, number
        return self._part_of(match.start(), match.end(), number, paragraph)

    def _previous_paragraph(self, match: re.Match[str]) -> int:
        """전항, in the text of an article; its number where the paragraphs are marked."""
        place = bisect_left(self._marks, match.start())
        number = ord(self._text[self._marks[place - 1]]) - ord("①") if place else 0
        return self._of_own(match, self._place.article, number or None)

    def _same_rule(self, match: re.Match[str]) -> int:
        """같은 규정 제5조 and 이 규정 별표 1; without a reference it is no citation."""
        after = patterns.AFTER_NAME.match(self._text, match.end())
        place = after.end() if after else match.end()
        if not match[0].startswith(("같", "동")):
            return self._reference(match.start(), place, self._implied(match.start())) or match.end()
        if self._last_rule is not None and self._last_rule is not self._last_name:
            self._remember(self._last_rule)
        return self._reference(match.start(), place, self._last_rule) or match.end()

    def _same_law(self, match: re.Match[str]) -> int:
        if self._last_law is None and not patterns.ARTICLE_AFTER.match(self._text, match.end()):
            return match.end()
        name = Name(match.start(), match.end(), match.group(), is_law=True)
        return self._further_decrees(self._named(name), name)

    def _bare_appendix(self, match: re.Match[str]) -> int:
        if not match[2] and not patterns.APPENDIX_CITED.match(self._text, match.end()):
            return match.end()
        members = read_appendices(self._text, match.start())
        return self._appendices(match.start(), members, self._implied(match.start()))

    def _bare_division(self, match: re.Match[str]) -> int:
        """제3장에서, in a regulation's own text; the headings of divisions are none."""
        members = read_divisions(self._text, match.start()) if self._is_own else []
        if not members:
            return match.end()
        end = members[-1].end
        if inside := patterns.INSIDE_DIVISION.match(self._text, end):
            return inside.end()
        if members[-1].last or patterns.DIVISION_CITED.match(self._text, end):
            self._labelled("division", match.start(), members, self._place.default)
        return end

    def _bare_addendum(self, match: re.Match[str]) -> int:
        if not patterns.AFTER_OWN_ADDENDUM.match(self._text, match.end()):
            return match.end()
        return self._addendum(match.start(), match.end(), self._implied(match.start()))

    def _addendum(self, start: int, place: int, name: Name | None, *, is_named: bool = False) -> int:
        after = patterns.AFTER_ADDENDUM.match(self._text, place)
        heading = (after["heading"] or "") if after else ""
        beyond = after.end() if after else place
        members = read_members(self._text, beyond, self._names, after_name=False)
        for index, member in enumerate(members):
            self._add(
                Token(
                    member.start if index else start, member.end, "addendum", name, member.number, member.until,
                    part=member.part, label=heading, joined=index > 0, is_named=is_named,
                )
            )  # fmt: skip
        if members:
            return members[-1].end
        parts = read_parts(self._text, beyond, needs_mark=True)
        if parts:
            return self._add_parts("addendum", start, name, None, parts, label=heading, is_named=is_named)
        end = after.end("heading") + 1 if after and heading else place
        self._add(Token(start, end, "addendum", name, label=heading, is_named=is_named))
        return end

    def _parts_end(self, place: int) -> int:
        parts = read_parts(self._text, place)
        return parts[-1][1] if parts else place

    def _after_blanks(self, place: int) -> int:
        match = patterns.BLANKS.match(self._text, place)
        return match.end() if match else place

    def _unknown(self, start: int, end: int) -> int:
        self._add(Token(start, end, "unknown", self._last_name))
        return end

    def _add(self, token: Token) -> None:
        self._tokens.append(token)
        self._last_end = token.end
        if token.name is not AMBIGUOUS:
            self._resolved_end = token.end


_ACTIONS: tuple[tuple[str, re.Pattern[str], Callable[[_Reader, re.Match[str]], int]], ...] = (
    ("제", patterns.ARTICLE, _Reader._bare_article),
    ("0", patterns.BARE_ARTICLE, _Reader._bare_article),
    ("0", patterns.FURTHER_ITEM, _Reader._further_item),
    ("같동위이본현해상전그", patterns.SAME_RULE, _Reader._same_rule),
    ("같동위이본", patterns.SAME_LAW, _Reader._same_law),
    ("같동위", patterns.SAME_ARTICLE, _Reader._same_article),
    ("같동위", patterns.SAME_PARAGRAPH, _Reader._same_paragraph),
    ("이본", patterns.OWN_ARTICLE, _Reader._own_article),
    ("전", patterns.PREVIOUS_ARTICLE, _Reader._previous_article),
    ("전", patterns.PREVIOUS_PARAGRAPH, _Reader._previous_paragraph),
    ("제", patterns.PARAGRAPH_MARK, _Reader._own_paragraph),
    ("제", patterns.ITEM_MARK, _Reader._own_item),
    ("제", patterns.DIVISION, _Reader._bare_division),
    ("별", patterns.APPENDIX, _Reader._bare_appendix),
    ("부", patterns.ADDENDUM, _Reader._bare_addendum),
)
"""What a citation without a name may begin with ("0" for any digit), how it is found, and what reads it."""
_BY_FIRST = {
    first: tuple((pattern, action) for firsts, pattern, action in _ACTIONS if first in firsts)
    for first in "0제같동위이본현해상전그별부"
}


def _same(name: Name, other: Name) -> bool:
    if name.owner is not None or other.owner is not None:
        return name.owner is other.owner
    return name.text == other.text
