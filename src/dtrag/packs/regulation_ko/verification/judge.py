"""Judges the citations of a text against the regulations that the caller may see."""

from __future__ import annotations

import itertools
import re
import unicodedata
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from dtrag.core.provisions import Provision, RegulationText
from dtrag.core.verification import CitationStatus, VerifiedCitation
from dtrag.packs.regulation_ko import citation_patterns as patterns
from dtrag.packs.regulation_ko.amendments import dates, is_repealed, preface
from dtrag.packs.regulation_ko.catalog import Number, appendix_labels, article_label, article_number, folded_appendix
from dtrag.packs.regulation_ko.collection import ADDENDUM, Regulation
from dtrag.packs.regulation_ko.heads import division_head
from dtrag.packs.regulation_ko.verification.article_text import ArticleText, Paragraph, read_article
from dtrag.packs.regulation_ko.verification.reader import AMBIGUOUS, Citation
from dtrag.packs.regulation_ko.verification.references import SUBITEMS, WHOLE, Part, numbers_of

WIDEST_RANGE = 400
"""Articles of a range that are checked one by one; the ends of a wider one are."""
MOST_RUNS = 12
"""Runs of numbers in `range`."""
_ADDENDUM_ARTICLE = re.compile(
    r"(?m)^[ \t#*]*+(?:제\s?(?P<article>\d{1,3})\s?조(?:\s?의\s?(?P<minor>\d{1,2}))?|(?P<number>\d{1,3})\s?\.(?!\s?\d))"
)
"""제2조 of an addendum, which older ones number 2."""
_NO_DOTS = dict.fromkeys(map(ord, patterns.DOTS))
_SEVERITY: tuple[CitationStatus, ...] = ("missing", "repealed", "title_mismatch", "unclear", "exists")


Key = TypeVar("Key", int, Number)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Status of a citation with what the reader of the text should know."""

    status: CitationStatus
    target: str | None = None
    range: str | None = None
    title: str | None = None
    reason: str = ""


class Judge:
    """Judges citations; `texts` are the regulations that they name, by document."""

    def __init__(self, texts: Mapping[uuid.UUID, RegulationText]) -> None:
        self._texts = texts
        self._articles: dict[tuple[uuid.UUID, Number], list[ArticleText]] = {}
        self._repealed: dict[uuid.UUID, bool] = {}

    def verified(self, citation: Citation, start: int, end: int, text: str) -> VerifiedCitation:
        """The verified citation, whose span in the original text is `[start, end)`."""
        judged = self._judge(citation)
        return VerifiedCitation(
            start, end, text[start:end], judged.status, judged.target, judged.range, judged.title, judged.reason
        )

    def _judge(self, citation: Citation) -> Judgement:
        name = citation.name
        if citation.kind == "unknown" or name is None or name is AMBIGUOUS or name.is_law:
            return Judgement("unclear", reason=_why_unclear(citation))
        if name.regulation is None:
            return self._of_wrong_name(citation)
        judged = self._of_regulation(citation, name.regulation)
        if name.other_code and judged.status == "exists":
            reason = f"The code of {name.regulation.name} is {name.regulation.code}, not {name.other_code}."
            return replace(judged, status="title_mismatch", reason=reason)
        return judged

    def _of_wrong_name(self, citation: Citation) -> Judgement:
        assert citation.name is not None  # noqa: S101 - the caller has checked it
        written, near = _short(citation.name.text), citation.name.near
        if near is None:
            return Judgement("missing", reason=f"There is no regulation {written} that you may see.")
        reason = f"There is no regulation {written} that you may see; the nearest is {near.name}."
        judged = self._of_regulation(citation, near)
        status: CitationStatus = "title_mismatch" if judged.status in {"exists", "title_mismatch"} else "missing"
        return replace(judged, status=status, reason=reason)

    def _of_regulation(self, citation: Citation, regulation: Regulation) -> Judgement:
        if citation.kind == "regulation":
            judged = Judgement("exists", regulation.name)
        elif citation.kind == "article":
            judged = self._article(citation, regulation)
        elif citation.kind == "appendix":
            judged = self._appendix(citation, regulation)
        elif citation.kind == "addendum":
            judged = self._addendum(citation, regulation)
        else:
            judged = self._division(citation, regulation)
        if judged.status in {"exists", "title_mismatch"} and self._is_repealed(regulation):
            return replace(judged, status="repealed", reason=f"{regulation.name} has been abolished (폐지).")
        return judged

    def _article(self, citation: Citation, regulation: Regulation) -> Judgement:
        assert citation.number is not None  # noqa: S101 - articles have one
        if citation.until is not None:
            return self._range(citation, regulation, *numbers_of(citation.number, citation.until))
        return self._single(regulation, citation.number, citation.title, citation.part)

    def _single(self, regulation: Regulation, number: Number, title: str | None, part: Part) -> Judgement:
        name = f"{regulation.name} {article_label(number)}"
        if number in regulation.outline.repealed:
            return Judgement("repealed", name, reason=f"{name} has been deleted (삭제).")
        if number not in regulation.outline.articles:
            articles = article_runs(regulation.outline.articles)
            return Judgement("missing", None, articles, reason=f"{regulation.name} has no {article_label(number)}.")
        provisions = [
            provision
            for provision in regulation.provisions
            if provision.kind == "article" and article_number(provision.label) == number
        ]
        written = next((provision.title for provision in provisions if provision.title), None)
        if part != WHOLE:
            judged = _part_of_any(name, part, self._article_texts(regulation, number, provisions))
            if judged.status != "exists":
                return replace(judged, title=written)
            name = judged.target or name
        if title is not None and not any(_folded(provision.title) == _folded(title) for provision in provisions):
            return self._other_title(regulation, name, title, written)
        return Judgement("exists", name, title=written)

    @staticmethod
    def _other_title(regulation: Regulation, name: str, title: str, written: str | None) -> Judgement:
        if written is None:
            return Judgement("unclear", name, reason=f"{name} has no title in the collection.")
        others = [
            provision.label
            for provision in regulation.provisions
            if provision.kind == "article" and _folded(provision.title) == _folded(title)
        ]
        elsewhere = f" {', '.join(others[:3])} has the title {_short(title)}." if others else ""
        reason = f"The title of {name} is {written}, not {_short(title)}.{elsewhere}"
        return Judgement("title_mismatch", name, title=written, reason=reason)

    def _range(self, citation: Citation, regulation: Regulation, first: Number, last: Number) -> Judgement:
        """Every article of the range; with more than one fault, the worst."""
        forward = citation.number == first
        ends = [(first, citation.title if forward else None, citation.part), (last, None, citation.last_part)]
        numbers = [(number, 0) for number in range(first[0] + 1, last[0] + (last[1] > 0))]
        if first[0] == last[0]:
            numbers = [(first[0], minor) for minor in range(max(2, first[1] + 1), last[1])]
        judged = [self._single(regulation, *end) for end in ends]
        if all(one.status in {"exists", "title_mismatch"} for one in judged):
            judged += [self._single(regulation, number, None, WHOLE) for number in numbers[:WIDEST_RANGE]]
        worst = _worst(judged)
        if worst.status == "exists":
            return Judgement("exists", f"{regulation.name} {article_label(first)}–{article_label(last)}")
        return worst

    def _article_texts(
        self, regulation: Regulation, number: Number, provisions: Sequence[Provision]
    ) -> list[ArticleText]:
        key = (regulation.document_id, number)
        if key not in self._articles:
            text = self._texts[regulation.document_id].text
            self._articles[key] = [read_article(text[provision.start : provision.end]) for provision in provisions]
        return self._articles[key]

    def _appendix(self, citation: Citation, regulation: Regulation) -> Judgement:
        outline, label = regulation.outline, citation.label
        labels = appendix_labels(outline, label) or _same_kind(outline.appendices, label)
        if labels:
            provisions = [provision for provision in regulation.provisions if provision.label == labels[0]]
            title = next((provision.title for provision in provisions if provision.title), None)
            name = f"{regulation.name} {labels[0]}" + (f"–{labels[-1]}" if len(labels) > 1 else "")
            if citation.title and title and len(labels) == 1 and not _agree(citation.title, title):
                reason = f"The title of {name} is {title}, not {_short(citation.title)}."
                return Judgement("title_mismatch", name, title=title, reason=reason)
            return Judgement("exists", name, title=title if len(labels) == 1 else None)
        if _same_kind(dict(zip(outline.repealed_appendices, outline.repealed_appendices, strict=True)), label):
            return Judgement("repealed", f"{regulation.name} {label}", reason=f"{label} has been deleted (삭제).")
        existing = _same_kind(outline.appendices, label[:2])
        return Judgement("missing", None, _listed(existing) or None, reason=f"{regulation.name} has no {label}.")

    def _addendum(self, citation: Citation, regulation: Regulation) -> Judgement:
        name = f"{regulation.name} {ADDENDUM}"
        addenda = [provision for provision in regulation.provisions if provision.kind == "addendum"]
        if not addenda:
            return Judgement("missing", reason=f"{regulation.name} has no {ADDENDUM}.")
        text = self._texts[regulation.document_id].text
        if wanted := dates(citation.label):
            dated = [
                provision
                for provision in addenda
                if set(wanted) & set(dates(f"{provision.title} {text[provision.start : provision.end]}"))
            ]
            if not dated:
                return Judgement("missing", reason=f"{regulation.name} has no {ADDENDUM} of {wanted[0]}.")
            addenda = dated
        bodies = [text[provision.start : provision.end] for provision in addenda]
        if citation.number is not None:
            return _addendum_article(name, citation, bodies)
        if citation.part != WHOLE:
            return _part_of_any(name, citation.part, [_addendum_parts(body) for body in bodies])
        return Judgement("exists", name)

    def _division(self, citation: Citation, regulation: Regulation) -> Judgement:
        text = self._texts[regulation.document_id].text
        kind = citation.label[-1]
        present = {
            re.sub(r"\s", "", head[1])[: head[1].replace(" ", "").find(kind) + 1]: None
            for line in text.split("\n")
            if (head := division_head(line.strip(" \t#*"))) is not None and kind in head[1]
        }
        if citation.label in present:
            return Judgement("exists", f"{regulation.name} {citation.label}")
        return Judgement(
            "missing", None, _listed(list(present)) if present else None,
            reason=f"{regulation.name} has no {citation.label}.",
        )  # fmt: skip

    def _is_repealed(self, regulation: Regulation) -> bool:
        key = regulation.document_id
        if key not in self._repealed:
            self._repealed[key] = is_repealed(preface(self._texts[key].text))
        return self._repealed[key]


def _why_unclear(citation: Citation) -> str:
    name = citation.name
    if citation.kind == "unknown":
        return "The text does not say which article this is."
    if name is None:
        return "The text does not say of which regulation this is."
    if name is AMBIGUOUS:
        return "The text names several regulations before; this could be of any of them."
    return f"{_short(name.text)} is outside the collection."


def article_runs(articles: Iterable[Number]) -> str:
    """제1조–제7조, 제9조: neighbouring articles as runs."""
    runs: list[list[Number]] = []
    for number in sorted(articles):
        before = runs[-1][-1] if runs else None
        if before is not None and (number[0] == before[0] or number == (before[0] + 1, 0)):
            runs[-1].append(number)
        else:
            runs.append([number])
    return _listed([_run(article_label(run[0]), article_label(run[-1])) for run in runs])


def _same_kind(appendices: Mapping[str, str], label: str) -> tuple[str, ...]:
    """The appendices of the kind of a label (별표, 별지) with its numbers, or all of the kind if it has none."""
    folded = folded_appendix(label)
    numbers = _numbers(folded)
    return tuple(
        written
        for other, written in sorted(appendices.items(), key=lambda item: [int(number) for number in _numbers(item[0])])
        if other[:2] == folded[:2] and (not numbers or _numbers(other) == numbers)
    )


def _addendum_article(name: str, citation: Citation, bodies: Sequence[str]) -> Judgement:
    """An article of an addendum, in any of the addenda."""
    present: set[Number] = set()
    for body in bodies:
        heads = list(_ADDENDUM_ARTICLE.finditer(body))
        heads = [head for head in heads if head["article"]] or heads
        for head, following in itertools.zip_longest(heads, heads[1:]):
            number = (int(head["article"] or head["number"]), int(head["minor"] or 0))
            present.add(number)
            if number == citation.number and citation.part != WHOLE:
                part = read_article(body[head.end() : following.start() if following else len(body)])
                if _part_of(name, citation.part, part).status == "exists":
                    return Judgement("exists", f"{name} {article_label(number)}")
    assert citation.number is not None  # noqa: S101 - the caller has checked it
    label = article_label(citation.number)
    if citation.number in present and citation.part == WHOLE:
        return Judgement("exists", f"{name} {label}")
    if citation.number in present:
        return Judgement("missing", f"{name} {label}", reason=f"{name} {label} has no {part_label(citation.part)}.")
    return Judgement("missing", None, article_runs(present) or None, reason=f"{name} has no {label}.")


def _addendum_parts(body: str) -> ArticleText:
    """Paragraphs of an addendum: ① or, in older ones, 1."""
    read = read_article(body)
    if not read.paragraphs:
        read.paragraphs.update({number: Paragraph() for number, _ in read.whole.items})
    return read


def _part_of_any(name: str, part: Part, articles: Sequence[ArticleText]) -> Judgement:
    """The best judgement about provisions with the same label."""
    judged = [_part_of(name, part, article) for article in articles]
    return max(judged, key=lambda one: _SEVERITY.index(one.status))


def _part_of(name: str, part: Part, article: ArticleText) -> Judgement:
    """Whether the article has the 항, 호 and 목, each of a range; with more than one fault, the worst."""
    judged = [_paragraphs_of(name, part, article)] if part.paragraph is not None else []
    if part.item is None and part.subitem is None:
        return _worst(judged)
    if not judged or judged[0].status == "exists":
        judged.append(_items_of(name, part, article.paragraph(part.paragraph)))
    return _worst(judged)


def _paragraphs_of(name: str, part: Part, article: ArticleText) -> Judgement:
    assert part.paragraph is not None  # noqa: S101 - the caller has checked it
    is_range = part.item is None and part.subitem is None and part.until is not None
    last = part.until if is_range and part.until else part.paragraph
    states = {number: paragraph.deleted for number, paragraph in article.paragraphs.items()}
    wanted = [(number, f"제{number}항") for number in _between(part.paragraph, last)]
    return _each(name, part, wanted, states, _runs(states, "항"))


def _items_of(name: str, part: Part, holders: Sequence[Paragraph]) -> Judgement:
    items = {number: item for holder in holders for number, item in reversed(holder.items.items())}
    if part.item is not None:
        last = part.until if part.subitem is None and part.until else part.item[0]
        wanted = [part.item] + [(number, 0) for number in _between(part.item[0], last) if number != part.item[0]]
        states = {number: item.deleted for number, item in items.items()}
        existing = _runs((number for number, minor in items if not minor), "호")
        judged = _each(name, part, [(number, _item_label(number)) for number in wanted], states, existing)
        if part.subitem is None or judged.status != "exists":
            return judged
        items = {part.item: items[part.item]}
    assert part.subitem is not None  # noqa: S101 - a part without 호 has a 목
    subitems = {number: deleted for item in items.values() for number, deleted in item.subitems.items()}
    letters = ", ".join(f"{SUBITEMS[number - 1]}목" for number in sorted(subitems)) or None
    last = max(part.subitem, part.until or 0)
    return _each(
        name,
        part,
        [(number, f"{SUBITEMS[number - 1]}목") for number in _between(part.subitem, last)],
        subitems,
        letters,
    )


def _each(
    name: str, part: Part, wanted: Sequence[tuple[Key, str]], states: Mapping[Key, bool], existing: str | None
) -> Judgement:
    """The worst judgement about the wanted parts; `states` has the existing ones, and whether each was deleted."""
    target = f"{name}{part_label(part)}"
    judged = [Judgement("exists", target)]
    for number, label in wanted:
        if number not in states:
            undivided = "" if existing else " It is not divided in this way."
            judged.append(Judgement("missing", name, existing, reason=f"{name} has no {label}.{undivided}"))
        elif states[number]:
            judged.append(Judgement("repealed", target, reason=f"{label} of {name} has been deleted (삭제)."))
    return _worst(judged)


def _worst(judged: Iterable[Judgement]) -> Judgement:
    return min(judged, key=lambda one: _SEVERITY.index(one.status))


def _between(first: int, last: int) -> range:
    """The numbers of a range in either order, at most `WIDEST_RANGE`."""
    return (
        range(first, min(last, first + WIDEST_RANGE) + 1)
        if first <= last
        else range(last, min(first, last + WIDEST_RANGE) + 1)
    )


def part_label(part: Part) -> str:
    """제2항제3호가목 of a part."""
    paragraph = f"제{part.paragraph}항" if part.paragraph is not None else ""
    item = _item_label(part.item) if part.item is not None else ""
    subitem = f"{SUBITEMS[part.subitem - 1]}목" if part.subitem is not None else ""
    if part.until is None:
        return paragraph + item + subitem
    last = f"{SUBITEMS[part.until - 1]}목" if subitem else f"제{part.until}호" if item else f"제{part.until}항"
    return f"{paragraph}{item}{subitem}–{last}"


def _item_label(number: Number) -> str:
    return f"제{number[0]}호의{number[1]}" if number[1] else f"제{number[0]}호"


def _runs(numbers: Iterable[int], unit: str) -> str | None:
    """제1항–제3항, 제5항."""
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return _listed([_run(f"제{first}{unit}", f"제{last}{unit}") for first, last in runs]) or None


def _run(first: str, last: str) -> str:
    return first if first == last else f"{first}–{last}"


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(labels[:MOST_RUNS]) + (" …" if len(labels) > MOST_RUNS else "")


def _numbers(label: str) -> list[str]:
    return re.findall(r"\d+", label)


def _folded(title: str) -> str:
    """Letters and digits only; one of the middle dots (U+318D) counts as a letter in Unicode."""
    composed = unicodedata.normalize("NFKC", title.translate(_NO_DOTS))
    return "".join(character for character in composed if character.isalnum()).casefold()


def _agree(written: str, title: str) -> bool:
    """Whether titles of appendices are the same, or one is part of the other."""
    one, other = _folded(written), _folded(title)
    return one in other or other in one


def _short(text: str) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= 60 else folded[:60] + "…"
