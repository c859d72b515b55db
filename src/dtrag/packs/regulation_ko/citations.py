"""Citations in the text of regulations: what is cited, of which regulation, and whether it exists.

Reads 제15조제2항제3호, ranges (제13조 내지 제17조, 제13조부터 제17조까지), lists, 같은 조, 전조, 전항, 이 규정 제N조,
names with or without quotation marks, blanks and middle dots, 별표, 별지, 부칙, and laws outside the book with 같은 법.
"""

from __future__ import annotations

import bisect
import functools
import re
from dataclasses import dataclass
from typing import Literal

from dtrag.packs.regulation_ko import citation_patterns as patterns
from dtrag.packs.regulation_ko.catalog import (
    Catalog,
    Number,
    Outline,
    appendix_label,
    appendix_labels,
    article_label,
    article_number,
    folded_appendix,
)
from dtrag.packs.regulation_ko.cited_articles import ReferenceReader, References
from dtrag.packs.regulation_ko.cited_names import CitedName, NameFinder

Kind = Literal["internal", "other-regulation", "appendix", "addendum", "external-law", "repealed", "missing"]
WIDEST_RANGE = 200
ORDERED_OUTLINES = 512
"""Regulations whose articles stay cached in order."""
FARTHEST_ITEM = 80
"""Characters between an item and a further one of the same paragraph (1호는 …, 5호는)."""


@dataclass(frozen=True, slots=True)
class Citation:
    """One citation; `text` is `source_text[start:end]`.

    `targets` are `규정명 제N조`, `규정명 별표 2`, `규정명 부칙` or `규정명`; empty for laws outside the collection and
    for missing provisions. `paragraph` and `item` are the first cited 항 and 호.
    """

    start: int
    end: int
    text: str
    kind: Kind
    targets: tuple[str, ...] = ()
    paragraph: int | None = None
    item: int | None = None


def citations(text: str, source: Outline, label: str, catalog: Catalog) -> list[Citation]:
    """The citations of an article, appendix or addendum (`label`) of the regulation `source`, in reading order."""
    return _Reader(text, source, label, catalog).read()


def cited_texts(text: str) -> list[str]:
    """The citations in a passage of an unknown collection, as text: articles (제15조), or names with articles."""
    return list(dict.fromkeys(match.group().strip() for match in patterns.PLAIN.finditer(patterns.masked(text))))


class _Reader:
    """Reads one text from left to right, and tracks what `같은 조` and `같은 법` refer to."""

    def __init__(self, text: str, source: Outline, label: str, catalog: Catalog) -> None:
        self._text = text
        self._source = source
        self._own = article_number(label)
        self._is_addendum = re.match(r"부\s*칙", label) is not None
        self._first_mark = text.find("①")
        self._catalog = catalog
        self._masked = patterns.masked(text)
        self._names = {name.start: name for name in NameFinder(self._masked, source, catalog).find()}
        self._references = ReferenceReader(self._masked, self._names)
        self._last_owner: Outline | None = source
        self._last_number: Number | None = self._own
        self._cited_law = False
        self._paragraph_marks = [match.start() for match in re.finditer(r"[①-⑳]", text)]
        self._citations: list[Citation] = []

    def read(self) -> list[Citation]:
        starts = {match.start() for match in patterns.STARTS.finditer(self._masked)}
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
        if self._masked[position].isdigit() and (bare := patterns.BARE_ARTICLE.match(self._masked, position)):
            read = References(bare.end(), [(int(bare[1]), int(bare[2] or 0))])
            self._references.read_paragraphs(read)
            self._cite(position, read, self._source)
            return read.end
        if further := self._further_item(position):
            return further
        for pattern, action in _ACTIONS:
            match = pattern.match(self._masked, position)
            if match:
                end = action(self, match)
                if end > position:
                    return end
        return position

    def _further_item(self, position: int) -> int:
        """5호 after 제1항의 1호 in the same line; 0 when there is none."""
        before = self._citations[-1] if self._citations else None
        match = patterns.FURTHER_ITEM.match(self._masked, position)
        if match is None or before is None or before.item is None or self._masked[position - 1] not in " ,":
            return 0
        between = self._masked[before.end : min(position, before.end + FARTHEST_ITEM + 1)]
        if len(between) > FARTHEST_ITEM or "\n" in between:
            return 0
        self._add(position, match.end(), before.kind, before.targets, before.paragraph, int(match[1]))
        return match.end()

    def _named(self, name: CitedName) -> int:
        end = self._name_with_references(name)
        return self._further_decrees(end) if name.is_law else end

    def _further_decrees(self, end: int) -> int:
        """시행령 and 시행규칙 after a law or its decree."""
        while following := patterns.FURTHER_DECREE.match(self._masked, end):
            if following.start(1) in self._names:
                break
            self._add(following.start(1), following.end(), "external-law")
            end = following.end()
        return end

    def _name_with_references(self, name: CitedName) -> int:
        self._last_owner = name.owner
        if name.is_law or name.owner is None:
            self._cited_law = True
        after = patterns.AFTER_NAME.match(self._masked, name.end)
        if after:
            place = after.end()
            while place < len(self._masked) and self._masked[place] in "(（ ":
                place += 1
            if end := self._references_of(name.start, place, name.owner, is_law=name.is_law):
                return end
            while place < len(self._masked) and self._masked[place] in "<〈[(（【「 ":
                place += 1
            appended = patterns.APPENDIX.match(self._masked, place)
            if appended and name.owner is not None:
                return self._appendix_of(name.start, appended, name.owner)
            if appended:
                self._add(name.start, appended.end(), "external-law" if name.is_law else "missing")
                return appended.end()
            if name.owner is not None and (addendum := patterns.ADDENDUM.match(self._masked, place)):
                return self._addendum_of(name.start, addendum.end(), name.owner)
        if name.owner is self._source:
            return name.end
        if name.owner is not None:
            self._add(name.start, name.end, "other-regulation", (name.owner.name,))
        else:
            self._add(name.start, name.end, "external-law" if name.is_law else "missing")
        return name.end

    def _article(self, match: re.Match[str]) -> int:
        if not self._text[: match.start()].strip() and article_number(match.group()) == self._own:
            titled = patterns.TITLE.match(self._masked, match.end())
            if titled:  # the article's own heading
                return titled.end()
        if self._is_addendum and not self._text[: match.start()].rpartition("\n")[2].strip(" \t#*"):
            titled = patterns.TITLE.match(self._masked, match.end())
            if titled:  # an article of the addendum itself
                return titled.end()
        return self._references_of(match.start(), match.start(), self._source)

    def _references_of(self, start: int, place: int, owner: Outline | None, *, is_law: bool = False) -> int:
        """The citations of a list of articles from `place` on; the first begins at `start`. 0 when there is none."""
        references = self._references.articles(place)
        if references is None:
            return 0
        self._cite(start, references, owner, is_law=is_law)
        end = references.end
        while following := patterns.AND.match(self._masked, end):
            references = self._references.articles(following.end())
            if references is None or following.end() in self._names:
                break
            self._cite(following.end(), references, owner, is_law=is_law)
            end = references.end
        return end

    def _cite(self, start: int, read: References, owner: Outline | None, *, is_law: bool = False) -> None:
        if owner is None:
            self._add(start, read.end, "external-law" if is_law else "missing", (), read.paragraph, read.item)
            self._last_owner, self._last_number = None, None
            return
        numbers = list(read.numbers)
        for first, last in read.ranges:
            articles = _ordered(owner.articles)
            place, end = bisect.bisect_left(articles, first), bisect.bisect_right(articles, last)
            numbers += articles[place : min(end, place + WIDEST_RANGE)] or [first, last]
        present = [number for number in sorted(set(numbers)) if number in owner.articles]
        self._last_owner, self._last_number = owner, numbers[-1] if numbers else None
        targets = tuple(f"{owner.name} {article_label(number)}" for number in present)
        if present:
            kind: Kind = "internal" if owner is self._source else "other-regulation"
        elif any(number in owner.repealed for number in numbers):
            kind = "repealed"
            targets = tuple(f"{owner.name} {article_label(number)}" for number in numbers if number in owner.repealed)
        else:
            kind = "missing"
        self._add(start, read.end, kind, targets, read.paragraph, read.item)

    def _same_article(self, match: re.Match[str]) -> int:
        read = References(match.end(), [self._last_number] if self._last_number else [])
        self._references.read_paragraphs(read)
        if self._last_owner is None or self._last_number is None:
            self._add(match.start(), read.end, "external-law", (), read.paragraph, read.item)
            return read.end
        self._cite(match.start(), read, self._last_owner)
        return read.end

    def _own_article(self, match: re.Match[str]) -> int:
        return self._cite_own(match, self._own)

    def _previous_article(self, match: re.Match[str]) -> int:
        if self._own is None:
            return 0
        articles = _ordered(self._source.articles)
        place = bisect.bisect_left(articles, self._own)
        return self._cite_own(match, articles[place - 1] if place else None)

    def _cite_own(self, match: re.Match[str], number: Number | None) -> int:
        if number is None:
            return 0
        read = References(match.end(), [number])
        self._references.read_paragraphs(read)
        self._cite(match.start(), read, self._source)
        return read.end

    def _own_paragraph(self, match: re.Match[str]) -> int:
        """제2항, 제1호 without an article: of the article that stands here."""
        before = self._masked[match.start() - 1 : match.start()]
        if before.isalpha() or before.isdecimal():  # ② before 제1항 is neither
            return 0
        if self._own is None:
            return self._addendum_paragraph(match)
        if patterns.DIVISION_BEFORE.search(self._masked[max(0, match.start() - 12) : match.start()]):
            return match.end()
        read = References(match.start(), [self._own])
        self._references.read_paragraphs(read)
        if read.end == match.start():
            return 0
        self._cite(match.start(), read, self._source)
        return read.end

    def _addendum_paragraph(self, match: re.Match[str]) -> int:
        """제1항 in an addendum whose provisions have paragraphs: of the addendum."""
        read = References(match.start())
        self._references.read_paragraphs(read)
        if not self._is_addendum or read.paragraph is None or not 0 <= self._first_mark < match.start():
            return read.end
        self._add(match.start(), read.end, "addendum", (f"{self._source.name} 부칙",), read.paragraph, read.item)
        return read.end

    def _previous_paragraph(self, match: re.Match[str]) -> int:
        if self._own is None:
            return 0
        read = References(match.end(), [self._own])
        self._references.read_paragraphs(read)
        read.paragraph = self._paragraph_before(match.start()) if read.paragraph is None else read.paragraph
        self._cite(match.start(), read, self._source)
        return read.end

    def _same_paragraph(self, match: re.Match[str]) -> int:
        if self._last_number is None or self._last_owner is None:
            return 0
        read = References(match.end(), [self._last_number])
        self._references.read_paragraphs(read)
        self._cite(match.start(), read, self._last_owner)
        return read.end

    def _paragraph_before(self, position: int) -> int | None:
        place = bisect.bisect_left(self._paragraph_marks, position)
        number = ord(self._text[self._paragraph_marks[place - 1]]) - ord("①") if place else 0
        return number or None

    def _self_rule(self, match: re.Match[str]) -> int:
        """이 규정 제5조 cites; 이 규정 alone does not."""
        return self._rule_reference(match, self._source)

    def _same_rule(self, match: re.Match[str]) -> int:
        return self._rule_reference(match, self._last_owner)

    def _rule_reference(self, match: re.Match[str], owner: Outline | None) -> int:
        after = patterns.AFTER_NAME.match(self._masked, match.end())
        if not after:
            return match.end()
        place = after.end()
        while place < len(self._masked) and self._masked[place] in "(（ ":
            place += 1
        if end := self._references_of(match.start(), place, owner):
            return end
        appended = patterns.APPENDIX.match(self._masked, place)
        if appended and owner is not None:
            return self._appendix_of(match.start(), appended, owner)
        addendum = patterns.ADDENDUM.match(self._masked, place)
        if addendum and owner is not None:
            return self._addendum_of(match.start(), addendum.end(), owner)
        return match.end()

    def _same_law(self, match: re.Match[str]) -> int:
        self._last_owner, self._last_number = None, None
        after = patterns.AFTER_NAME.match(self._masked, match.end())
        if after and (end := self._references_of(match.start(), after.end(), None, is_law=True)):
            return end
        if self._cited_law:
            self._add(match.start(), match.end(), "external-law")
        return self._further_decrees(match.end())

    def _appendix(self, match: re.Match[str]) -> int:
        return self._appendix_of(match.start(1), match, self._source)

    def _appendix_of(self, start: int, match: re.Match[str], owner: Outline) -> int:
        end = match.end()
        is_bare = not match[2] and not match[3] and re.match(r"[가-힣]{2}", self._masked[end : end + 2])
        if is_bare and not patterns.PARTICLE_AFTER.match(self._masked, end):
            return end
        label = "".join(part for part in (match[1], match[2], match[3]) if part)
        targets = appendix_labels(owner, label)
        if not targets and owner is self._source and (cited := self._cited_before(start)):
            owner, targets = cited, appendix_labels(cited, label)
        if targets:
            self._add(start, end, "appendix", tuple(f"{owner.name} {target}" for target in targets))
        elif match[2] or patterns.APPENDIX_CITED.match(self._masked, end):
            self._add(start, end, *_appendix_kind(owner, label))
        while following := patterns.FURTHER_APPENDIX.match(self._masked, end):
            target = appendix_label(owner, match[1] + following[1] + following[2])
            self._add(
                following.start(1),
                following.end(),
                *(("appendix", (f"{owner.name} {target}",)) if target else ("missing",)),
            )
            end = following.end()
        return end

    def _cited_before(self, start: int) -> Outline | None:
        """The other regulation that is named directly before its appendix (…규정에 따른 [별표])."""
        before = self._citations[-1] if self._citations else None
        if before is None or before.kind != "other-regulation":
            return None
        between = patterns.CITES_APPENDIX.fullmatch(self._masked, before.end, start)
        return self._last_owner if between else None

    def _addendum(self, match: re.Match[str]) -> int:
        return self._addendum_of(match.start(), match.end(), self._source)

    def _addendum_of(self, start: int, end: int, owner: Outline) -> int:
        read = self._references.article(self._after_blanks(end))
        if read is not None:
            end = read.end
        elif owner is self._source and not patterns.AFTER_OWN_ADDENDUM.match(self._masked, end):
            return end
        if read is None and (before := patterns.ADDENDUM_PARAGRAPH.match(self._masked, end)):
            read = References(before.end())
            self._references.read_paragraphs(read)
            end = read.end
        if owner.has_addendum:
            paragraph, item = (read.paragraph, read.item) if read else (None, None)
            self._add(start, end, "addendum", (f"{owner.name} 부칙",), paragraph, item)
        else:
            self._add(start, end, "missing")
        return end

    def _after_blanks(self, position: int) -> int:
        blanks = patterns.BLANKS.match(self._masked, position)
        return blanks.end() if blanks else position

    def _add(  # noqa: PLR0917 - in the order of the fields of `Citation`
        self,
        start: int,
        end: int,
        kind: Kind,
        targets: tuple[str, ...] = (),
        paragraph: int | None = None,
        item: int | None = None,
    ) -> None:
        text = self._text[start:end].rstrip()
        self._citations.append(Citation(start, start + len(text), text, kind, targets, paragraph, item))


_ACTIONS = (
    (patterns.ARTICLE, _Reader._article),
    (patterns.SAME_LAW, _Reader._same_law),
    (patterns.SAME_ARTICLE, _Reader._same_article),
    (patterns.SAME_PARAGRAPH, _Reader._same_paragraph),
    (patterns.SAME_RULE, _Reader._same_rule),
    (patterns.SELF, _Reader._self_rule),
    (patterns.OWN_ARTICLE, _Reader._own_article),
    (patterns.PREVIOUS_ARTICLE, _Reader._previous_article),
    (patterns.PREVIOUS_PARAGRAPH, _Reader._previous_paragraph),
    (patterns.OWN_PARAGRAPH, _Reader._own_paragraph),
    (patterns.OWN_ITEM, _Reader._own_paragraph),
    (patterns.APPENDIX, _Reader._appendix),
    (patterns.ADDENDUM, _Reader._addendum),
)


@functools.lru_cache(ORDERED_OUTLINES)
def _ordered(articles: frozenset[Number]) -> list[Number]:
    return sorted(articles)


def _appendix_kind(owner: Outline, label: str) -> tuple[Kind, tuple[str, ...]]:
    """The kind and target of an appendix that does not exist: deleted, or missing."""
    if folded_appendix(label) in owner.repealed_appendices:
        return "repealed", (f"{owner.name} {' '.join(label.split())}",)
    return "missing", ()
