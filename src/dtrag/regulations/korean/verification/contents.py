"""What a regulation contains, as its citations are judged: titles, 항, appendices, addenda and chapters."""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dtrag.core.provisions import Provision, RegulationText
from dtrag.core.text.patterns import HANGUL, LATIN, PARAGRAPH, explained
from dtrag.regulations.korean import citation_patterns as patterns
from dtrag.regulations.korean.amendments import circled_number, dates, is_repealed, preface
from dtrag.regulations.korean.catalog import (
    Number,
    appendices_between,
    appendix_key,
    appendix_labels,
    article_label,
    article_number,
    folded_appendix,
)
from dtrag.regulations.korean.citation_grammar import SUBITEMS
from dtrag.regulations.korean.collection import Regulation

MOST_RUNS = 12
"""Runs of numbers in a list of what exists."""
_ADDENDUM_ARTICLE = explained(
    r"(?m)^[ \t#*]*+"
    r"(?:제\s?(?P<article>\d{1,3})\s?조(?:\s?의\s?(?P<minor>\d{1,2}))?|(?P<number>\d{1,3})\s?\.(?!\s?\d))",
    finds=("제2조의2(적용)", "2. 시행"),
    refuses=("2. 3. 시행", "이 규정 제2조"),
)
"""제2조 of an addendum, which older ones number 2."""
_NO_DOTS = dict.fromkeys(map(ord, patterns.DOTS))
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


@dataclass(frozen=True, slots=True)
class Addendum:
    """One addendum: the dates in it, its articles, and its 항."""

    dates: frozenset[str]
    articles: dict[Number, ArticleText]
    parts: ArticleText


class RegulationContents:
    """The contents of a regulation; `texts` are those of its editions that are valid together, its own first."""

    def __init__(self, regulation: Regulation, texts: Sequence[RegulationText]) -> None:
        self._outline = regulation.outline
        self._texts = texts
        self._article_texts: dict[Number, list[ArticleText]] = {}

    @functools.cached_property
    def _articles(self) -> dict[Number, list[tuple[Provision, str]]]:
        """Number -> provisions with that number and their texts, of the first edition that has it."""
        articles: dict[Number, list[tuple[Provision, str]]] = {}
        for text in self._texts:
            own: dict[Number, list[tuple[Provision, str]]] = defaultdict(list)
            for provision in text.provisions:
                number = article_number(provision.label) if provision.kind == "article" else None
                if number is not None:
                    own[number].append((provision, text.text[provision.start : provision.end]))
            articles = dict(own) | articles
        return articles

    @functools.cached_property
    def _by_title(self) -> dict[str, list[str]]:
        by_title: dict[str, list[str]] = defaultdict(list)
        for provisions in self._articles.values():
            for provision, _ in provisions:
                by_title[folded_title(provision.title)].append(provision.label)
        return by_title

    @functools.cached_property
    def article_numbers(self) -> str:
        """제1조–제7조, 제9조: the existing articles as runs."""
        return article_runs(self._outline.articles)

    def titles(self, number: Number) -> list[str]:
        """The titles of the articles with a number, usually one."""
        return [provision.title for provision, _ in self._articles.get(number, ()) if provision.title]

    def titled(self, title: str) -> list[str]:
        """The labels of the articles with a title."""
        return self._by_title.get(folded_title(title), [])

    def article_texts(self, number: Number) -> list[ArticleText]:
        """The parts of the articles with a number."""
        if number not in self._article_texts:
            self._article_texts[number] = [read_article(text) for _, text in self._articles.get(number, ())]
        return self._article_texts[number]

    def provision_texts(self, numbers: Iterable[Number]) -> list[str]:
        """The texts of the articles with these numbers."""
        return [text for number in numbers for _, text in self._articles.get(number, ())]

    def _provisions(self) -> Iterator[tuple[Provision, str]]:
        """All provisions with their texts, in the order of the editions."""
        for text in self._texts:
            yield from ((provision, text.text[provision.start : provision.end]) for provision in text.provisions)

    def texts_labelled(self, labels: Collection[str]) -> list[str]:
        """The texts of the provisions with one of these labels."""
        return [text for provision, text in self._provisions() if provision.label in labels]

    @property
    def addendum_texts(self) -> list[str]:
        """The texts of all addenda."""
        return [text for provision, text in self._provisions() if provision.kind == "addendum"]

    @property
    def whole_texts(self) -> list[str]:
        """The texts of the valid editions."""
        return [text.text for text in self._texts]

    def appendices(self, label: str, last: str = "") -> Sequence[str]:
        """The appendices that a label means, or those of a range up to `last`."""
        return appendices_between(self._outline, label, last) if last else appendix_labels(self._outline, label)

    def is_repealed_appendix(self, label: str) -> bool:
        """Whether the appendix was deleted."""
        return appendix_key(folded_appendix(label)) in map(appendix_key, self._outline.repealed_appendices)

    def appendix_title(self, label: str) -> str | None:
        """The title of an appendix, if it has words."""
        return self._appendix_titles.get(label)

    @functools.cached_property
    def _appendix_titles(self) -> dict[str, str]:
        return {
            provision.label: provision.title
            for text in reversed(self._texts)
            for provision in reversed(text.provisions)
            if provision.kind == "appendix" and _has_words(provision.title)
        }

    @functools.cached_property
    def addenda(self) -> list[Addendum]:
        """The addenda, in the order of the text."""
        return [
            _addendum(provision.title, text) for provision, text in self._provisions() if provision.kind == "addendum"
        ]

    @functools.cached_property
    def _addenda_by_date(self) -> dict[str, list[Addendum]]:
        by_date: dict[str, list[Addendum]] = defaultdict(list)
        for addendum in self.addenda:
            for date in addendum.dates:
                by_date[date].append(addendum)
        return by_date

    def addenda_of(self, day: str) -> list[Addendum]:
        """The addenda that contain a date."""
        return self._addenda_by_date.get(day, [])

    @functools.cached_property
    def is_abolished(self) -> bool:
        """Whether the whole regulation is marked as 폐지."""
        return is_repealed(preface(self._texts[0].text))


def article_runs(articles: Iterable[Number]) -> str:
    """제1조–제7조, 제9조: neighbouring articles as runs."""
    runs: list[list[Number]] = []
    for number in sorted(articles):
        before = runs[-1][-1] if runs else None
        if before is not None and (number[0] == before[0] or number == (before[0] + 1, 0)):
            runs[-1].append(number)
        else:
            runs.append([number])
    return listed([run(article_label(numbers[0]), article_label(numbers[-1])) for numbers in runs])


def run(first: str, last: str) -> str:
    """제1조–제7조, or 제9조 for a run of one."""
    return first if first == last else f"{first}–{last}"


def listed(labels: Sequence[str]) -> str:
    """The first of the labels, separated by commas."""
    return ", ".join(labels[:MOST_RUNS]) + (" …" if len(labels) > MOST_RUNS else "")


def folded_title(title: str) -> str:
    """Letters and digits only; one of the middle dots (U+318D) counts as a letter in Unicode."""
    composed = unicodedata.normalize("NFKC", title.translate(_NO_DOTS))
    return "".join(character for character in composed if character.isalnum()).casefold()


def _addendum(heading: str, body: str) -> Addendum:
    heads = list(_ADDENDUM_ARTICLE.finditer(body))
    heads = [head for head in heads if head["article"]] or heads
    articles: dict[Number, ArticleText] = {}
    for head, following in itertools.zip_longest(heads, heads[1:]):
        number = (int(head["article"] or head["number"]), int(head["minor"] or 0))
        articles.setdefault(number, read_article(body[head.end() : following.start() if following else len(body)]))
    parts = read_article(body)
    if not parts.paragraphs:  # older addenda number their paragraphs 1., 2.
        parts.paragraphs.update({number: Paragraph() for number, _ in parts.whole.items})
    return Addendum(frozenset(dates(f"{heading} {body}")), articles, parts)


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
        for each in range(number, (circled_number(further[1]) if further else number) + 1):
            paragraphs[each] = Paragraph(True) if deleted else _paragraph(body)
    return ArticleText(paragraphs, _paragraph(head if marks else text))


def _paragraph_marks(text: str) -> Iterator[tuple[int, int]]:
    """Position and number of the marks that begin a paragraph: in order, at a line's start or after a sentence."""
    last = 0
    for match in PARAGRAPH.finditer(text):
        before = text[max(0, match.start() - 40) : match.start()].rstrip(" \t\u3000*")
        number = circled_number(match.group())
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


def _has_words(title: str) -> bool:
    """Whether the title has letters, and is not a row of a table."""
    return "|" not in title and bool(HANGUL.search(title) or LATIN.search(title))
