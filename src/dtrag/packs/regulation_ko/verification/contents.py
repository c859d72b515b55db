"""What a regulation contains, as its citations are judged: titles, 항, appendices, addenda and chapters."""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from dtrag.core.provisions import Provision, RegulationText
from dtrag.packs.regulation_ko import citation_patterns as patterns
from dtrag.packs.regulation_ko.amendments import dates, is_repealed, preface
from dtrag.packs.regulation_ko.catalog import Number, article_label, article_number, folded_appendix
from dtrag.packs.regulation_ko.collection import Regulation
from dtrag.packs.regulation_ko.heads import division_head
from dtrag.packs.regulation_ko.verification.article_text import ArticleText, Paragraph, read_article

MOST_RUNS = 12
"""Runs of numbers in a list of what exists."""
_ADDENDUM_ARTICLE = re.compile(
    r"(?m)^[ \t#*]*+(?:제\s?(?P<article>\d{1,3})\s?조(?:\s?의\s?(?P<minor>\d{1,2}))?|(?P<number>\d{1,3})\s?\.(?!\s?\d))"
)
"""제2조 of an addendum, which older ones number 2."""
_DIVISION_NUMBER = re.compile(r"제\s*\d{1,3}\s*[편장절관]")
_WORDS = re.compile(r"^[^|]*[가-힣A-Za-z][^|]*$")
_NO_DOTS = dict.fromkeys(map(ord, patterns.DOTS))
AppendixKey = tuple[str, tuple[str, ...]]
"""The kind of an appendix (별표) and its numbers."""


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

    def texts_labelled(self, labels: Collection[str]) -> list[str]:
        """The texts of the provisions with one of these labels."""
        return [
            text.text[provision.start : provision.end]
            for text in self._texts
            for provision in text.provisions
            if provision.label in labels
        ]

    @property
    def addendum_texts(self) -> list[str]:
        """The texts of all addenda."""
        return [
            text.text[provision.start : provision.end]
            for text in self._texts
            for provision in text.provisions
            if provision.kind == "addendum"
        ]

    @property
    def whole_texts(self) -> list[str]:
        """The texts of the valid editions."""
        return [text.text for text in self._texts]

    @functools.cached_property
    def _appendices(self) -> dict[AppendixKey, list[str]]:
        return _by_key(self._outline.appendices.items())

    @functools.cached_property
    def _repealed_appendices(self) -> dict[AppendixKey, list[str]]:
        return _by_key((folded, folded) for folded in self._outline.repealed_appendices)

    def appendices(self, label: str) -> list[str]:
        """The appendices with the kind and numbers of a label, parts of it (별표 1-1 of 별표 1), or all of the kind."""
        kind, numbers = _appendix_key(folded_appendix(label))
        if not numbers:
            return self._appendices.get((kind, ()), []) or self._by_kind.get(kind, [])
        parts = self._parts_of.get((kind, numbers), [])
        return self._appendices.get((kind, numbers), parts)

    @functools.cached_property
    def _parts_of(self) -> dict[AppendixKey, list[str]]:
        """The parts (별표 1-1, 별표 1-2) of what has one number less (별표 1)."""
        parts: dict[AppendixKey, list[str]] = defaultdict(list)
        for (kind, numbers), labels in self._appendices.items():
            parts[kind, numbers[:-1]] += labels
        return parts

    @functools.cached_property
    def _by_kind(self) -> dict[str, list[str]]:
        by_kind: dict[str, list[str]] = defaultdict(list)
        for (kind, _), labels in sorted(
            self._appendices.items(), key=lambda item: [int(number) for number in item[0][1]]
        ):
            by_kind[kind] += labels
        return by_kind

    def appendices_of_kind(self, label: str) -> list[str]:
        """All appendices of the kind of a label, by number."""
        return self._by_kind.get(label[:2], [])

    def is_repealed_appendix(self, label: str) -> bool:
        """Whether the appendix was deleted."""
        return _appendix_key(folded_appendix(label)) in self._repealed_appendices

    def appendix_title(self, label: str) -> str | None:
        """The title of an appendix, if it has words."""
        return self._appendix_titles.get(label)

    @functools.cached_property
    def _appendix_titles(self) -> dict[str, str]:
        return {
            provision.label: provision.title
            for text in reversed(self._texts)
            for provision in reversed(text.provisions)
            if provision.kind == "appendix" and _WORDS.search(provision.title)
        }

    @functools.cached_property
    def addenda(self) -> list[Addendum]:
        """The addenda, in the order of the text."""
        return [
            _addendum(provision.title, text.text[provision.start : provision.end])
            for text in self._texts
            for provision in text.provisions
            if provision.kind == "addendum"
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
    def divisions(self) -> dict[str, list[str]]:
        """장 -> 제1장, 제2장: the headings of divisions, by kind."""
        divisions: dict[str, dict[str, None]] = defaultdict(dict)
        for text in self._texts:
            for line in text.text.split("\n"):
                head = division_head(line.strip(" \t#*"))
                number = _DIVISION_NUMBER.match(head[1]) if head else None
                if number:
                    label = re.sub(r"\s", "", number.group())
                    divisions[label[-1]][label] = None
        return {kind: list(labels) for kind, labels in divisions.items()}

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


def _by_key(appendices: Iterable[tuple[str, str]]) -> dict[AppendixKey, list[str]]:
    by_key: dict[AppendixKey, list[str]] = defaultdict(list)
    for folded, written in sorted(appendices):
        by_key[_appendix_key(folded)].append(written)
    return by_key


def _appendix_key(folded: str) -> AppendixKey:
    return folded[:2], tuple(str(int(number)) for number in re.findall(r"\d+", folded))


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
