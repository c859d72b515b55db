"""Judges the citations of a text against the regulations that the caller may see."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from dtrag.core.editions import folded_name
from dtrag.core.provisions import RegulationText
from dtrag.core.verification import CitationStatus, VerifiedCitation, VerifiedQuotation
from dtrag.regulations.korean.amendments import dates
from dtrag.regulations.korean.catalog import (
    Name,
    Number,
    Outline,
    appendices_of_kind,
    appendix_range,
    article_label,
    has_division,
)
from dtrag.regulations.korean.citation_grammar import SUBITEMS, WHOLE, Part
from dtrag.regulations.korean.citation_reader import AMBIGUOUS, Token
from dtrag.regulations.korean.collection import ADDENDUM, Regulation
from dtrag.regulations.korean.verification.contents import (
    Addendum,
    ArticleText,
    Paragraph,
    RegulationContents,
    article_runs,
    folded_title,
    listed,
    run,
)
from dtrag.regulations.korean.verification.quotations import compared

MIN_AGREEMENT = 0.5
"""Dice coefficient of the pairs of letters of two titles of appendices that agree."""


WIDEST_RANGE = 400
"""Members of a range that are checked one by one; of a wider one the first."""
WORST_FIRST: tuple[CitationStatus, ...] = ("missing", "repealed", "title_mismatch", "unclear", "exists")
Key = TypeVar("Key", int, Number)


@dataclass(frozen=True, slots=True)
class CitationJudgement:
    """Status of a citation with what the reader of the text should know."""

    status: CitationStatus
    target: str | None = None
    range: str | None = None
    title: str | None = None
    reason: str = ""


class CitationJudge:
    """Judges citations; `texts` are the valid editions of the regulations that they name, found by their outlines."""

    def __init__(
        self, texts: Mapping[uuid.UUID, Sequence[RegulationText]], regulations: Mapping[int, Regulation]
    ) -> None:
        self._texts = texts
        self._regulations = regulations
        self._contents: dict[uuid.UUID, RegulationContents] = {}

    def verified(self, citation: Token, start: int, end: int, text: str) -> VerifiedCitation:
        """The verified citation, whose span in the original text is `[start, end)`."""
        judged = self._judge(citation)
        return VerifiedCitation(
            start, end, text[start:end], judged.status, judged.target, judged.range, judged.title, judged.reason
        )

    def quoted(self, citation: Token, verified: VerifiedCitation, start: int, end: int, text: str) -> VerifiedQuotation:
        """The words `[start, end)` of the original text, compared with what is cited."""
        cited = self._texts_of(citation) if verified.status in {"exists", "title_mismatch"} else []
        if not cited:
            return VerifiedQuotation(start, end, text[start:end], "unchecked")
        return VerifiedQuotation(start, end, text[start:end], compared(text[start:end], cited), verified.target)

    def _texts_of(self, citation: Token) -> list[str]:
        """The texts of the cited provisions; that of the whole regulation for its name or a chapter."""
        outline = citation.name and (citation.name.owner or citation.name.near)
        if not outline:
            return []
        contents = self._of(outline)
        if citation.kind == "article" and citation.number is not None:
            first, last = sorted((citation.number, citation.until or citation.number))
            return contents.provision_texts(dict.fromkeys([first, *_articles_between(first, last), last]))
        if citation.kind == "appendix":
            return contents.texts_labelled(contents.appendices(citation.label, citation.last))
        if citation.kind == "addendum":
            return contents.addendum_texts
        return contents.whole_texts

    def _judge(self, citation: Token) -> CitationJudgement:
        name = citation.name
        if citation.kind == "unknown" or name is None or name is AMBIGUOUS or name.is_law:
            return CitationJudgement("unclear", reason=_why_unclear(citation))
        if name.owner is None:
            return self._of_wrong_name(name, citation)
        judged = self._of_regulation(citation, name.owner)
        if name.other_code and judged.status == "exists":
            reason = f"The code of {name.owner.name} is {name.owner.code}, not {name.other_code}."
            return replace(judged, status="title_mismatch", reason=reason)
        if judged.status == "exists" and folded_name(name.text) in map(folded_name, name.owner.renamed):
            reason = f"The name of {_short(name.text)} is now {name.owner.name}."
            return replace(judged, status="title_mismatch", reason=reason)
        return judged

    def _of_wrong_name(self, name: Name, citation: Token) -> CitationJudgement:
        written, near = _short(name.text), name.near
        if name.successor is not None:
            successor = name.successor.name
            return CitationJudgement("repealed", successor, reason=f"{written} has been replaced by {successor}.")
        if near is None:
            return CitationJudgement("missing", reason=f"There is no regulation {written} that you may see.")
        reason = f"There is no regulation {written} that you may see; the nearest is {near.name}."
        judged = self._of_regulation(citation, near)
        status: CitationStatus = "title_mismatch" if judged.status in {"exists", "title_mismatch"} else "missing"
        return replace(judged, status=status, reason=reason)

    def _of_regulation(self, citation: Token, regulation: Outline) -> CitationJudgement:
        if citation.kind == "regulation":
            judged = CitationJudgement("exists", regulation.name)
        elif citation.kind == "article":
            judged = self._article(citation, regulation)
        elif citation.kind == "appendix":
            judged = self._appendix(citation, regulation)
        elif citation.kind == "addendum":
            judged = self._addendum(citation, regulation)
        else:
            judged = self._division(citation, regulation)
        if judged.status in {"exists", "title_mismatch"} and self._of(regulation).is_abolished:
            return replace(judged, status="repealed", reason=f"{regulation.name} has been abolished (폐지).")
        return judged

    def _article(self, citation: Token, regulation: Outline) -> CitationJudgement:
        assert citation.number is not None  # noqa: S101 - articles have one
        if citation.until is not None:
            return self._range(citation, regulation, *sorted((citation.number, citation.until)))
        return self._single(regulation, citation.number, citation.title, citation.part)

    def _single(self, regulation: Outline, number: Number, title: str | None, part: Part) -> CitationJudgement:
        name = f"{regulation.name} {article_label(number)}"
        contents = self._of(regulation)
        if number in regulation.repealed:
            return CitationJudgement("repealed", name, reason=f"{name} has been deleted (삭제).")
        if number not in regulation.articles:
            reason = f"{regulation.name} has no {article_label(number)}."
            return CitationJudgement("missing", None, contents.article_numbers or None, reason=reason)
        titles = contents.titles(number)
        written = titles[0] if titles else None
        if part != WHOLE:
            judged = _part_of_any(name, part, contents.article_texts(number))
            if judged.status != "exists":
                return replace(judged, title=written)
            name = judged.target or name
        if title is None or folded_title(title) in map(folded_title, titles):
            return CitationJudgement("exists", name, title=written)
        if written is None:
            return CitationJudgement("unclear", name, reason=f"{name} has no title in the collection.")
        others = contents.titled(title)
        elsewhere = f" {', '.join(others[:3])} has the title {_short(title)}." if others else ""
        reason = f"The title of {name} is {written}, not {_short(title)}.{elsewhere}"
        return CitationJudgement("title_mismatch", name, title=written, reason=reason)

    def _range(self, citation: Token, regulation: Outline, first: Number, last: Number) -> CitationJudgement:
        """Every article of the range; with more than one fault, the worst."""
        forward = citation.number == first
        ends = [(first, citation.title if forward else None, citation.part), (last, None, citation.last_part)]
        judged = [self._single(regulation, *end) for end in ends]
        if all(judgement.status in {"exists", "title_mismatch"} for judgement in judged):
            judged += [self._single(regulation, number, None, WHOLE) for number in _articles_between(first, last)]
        fault = _worst(judged)
        if fault.status == "exists":
            return CitationJudgement("exists", f"{regulation.name} {article_label(first)}–{article_label(last)}")
        return fault

    def _appendix(self, citation: Token, regulation: Outline) -> CitationJudgement:
        contents, label = self._of(regulation), citation.label
        if citation.last:
            range_of = appendix_range(label, citation.last)
            fault = _worst(self._appendix(replace(citation, label=each, last=""), regulation) for each in range_of)
            if fault.status != "exists":
                return fault
        labels = contents.appendices(label, citation.last)
        if labels:
            title = contents.appendix_title(labels[0]) if len(labels) == 1 else None
            name = f"{regulation.name} {labels[0]}" + (f"–{labels[-1]}" if len(labels) > 1 else "")
            if citation.title and title and not _agree(citation.title, title):
                reason = f"The title of {name} is {title}, not {_short(citation.title)}."
                return CitationJudgement("title_mismatch", name, title=title, reason=reason)
            return CitationJudgement("exists", name, title=title)
        if contents.is_repealed_appendix(label):
            return CitationJudgement(
                "repealed", f"{regulation.name} {label}", reason=f"{label} has been deleted (삭제)."
            )
        existing = [written for _, written in appendices_of_kind(regulation, label[:2])]
        return CitationJudgement("missing", None, listed(existing) or None, reason=f"{regulation.name} has no {label}.")

    def _addendum(self, citation: Token, regulation: Outline) -> CitationJudgement:
        name = f"{regulation.name} {ADDENDUM}"
        addenda: Sequence[Addendum] = self._of(regulation).addenda
        if not addenda:
            return CitationJudgement("missing", reason=f"{regulation.name} has no {ADDENDUM}.")
        if cited_dates := dates(citation.label):
            addenda = self._of(regulation).addenda_of(cited_dates[0])
            if not addenda:
                return CitationJudgement("missing", reason=f"{regulation.name} has no {ADDENDUM} of {cited_dates[0]}.")
        if citation.number is not None:
            return _addendum_article(name, citation.number, citation.part, addenda)
        if citation.part != WHOLE:
            return _part_of_any(name, citation.part, [addendum.parts for addendum in addenda])
        return CitationJudgement("exists", name)

    def _division(self, citation: Token, regulation: Outline) -> CitationJudgement:
        label = citation.last or citation.label
        existing = list(dict.fromkeys(path[-1] for path in regulation.divisions if path[-1][-1] == label[-1]))
        for each in filter(None, (citation.label, citation.last)):
            if not has_division(regulation, each):
                return CitationJudgement(
                    "missing", None, listed(existing) or None, reason=f"{regulation.name} has no {each}."
                )
        return CitationJudgement("exists", f"{regulation.name} {run(citation.label, label)}")

    def _of(self, outline: Outline) -> RegulationContents:
        regulation = self._regulations[id(outline)]
        contents = self._contents.get(regulation.document_id)
        if contents is None:
            contents = RegulationContents(regulation, self._texts[regulation.document_id])
            self._contents[regulation.document_id] = contents
        return contents


def _why_unclear(citation: Token) -> str:
    name = citation.name
    if citation.kind == "unknown":
        return "The text does not say which article this is."
    if name is None:
        return "The text does not say of which regulation this is."
    if name is AMBIGUOUS:
        return "The text names several regulations before; this could be of any of them."
    return f"{_short(name.text)} is outside the collection."


def _articles_between(first: Number, last: Number) -> list[Number]:
    """The articles between the ends of a range, at most `WIDEST_RANGE`."""
    if first[0] == last[0]:
        return [(first[0], minor) for minor in range(max(2, first[1] + 1), last[1])][:WIDEST_RANGE]
    end = last[0] + (last[1] > 0)
    return [(number, 0) for number in range(first[0] + 1, min(end, first[0] + WIDEST_RANGE))]


def _addendum_article(name: str, number: Number, part: Part, addenda: Sequence[Addendum]) -> CitationJudgement:
    """An article of an addendum, in any of the addenda."""
    label = article_label(number)
    articles = [addendum.articles[number] for addendum in addenda if number in addendum.articles]
    if not articles:
        present = {other for addendum in addenda for other in addendum.articles}
        return CitationJudgement("missing", None, article_runs(present) or None, reason=f"{name} has no {label}.")
    if part == WHOLE:
        return CitationJudgement("exists", f"{name} {label}")
    return _part_of_any(f"{name} {label}", part, articles)


def _agree(written: str, title: str) -> bool:
    """Whether titles of appendices are similar, which are less formal than those of articles."""
    folded, other = folded_title(written), folded_title(title)
    if folded in other or other in folded:
        return True
    pairs, others = ({text[at : at + 2] for at in range(len(text) - 1)} for text in (folded, other))
    return 2 * len(pairs & others) >= MIN_AGREEMENT * (len(pairs) + len(others))


def _short(text: str) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= 60 else folded[:60] + "…"


def _part_of_any(name: str, part: Part, articles: Sequence[ArticleText]) -> CitationJudgement:
    """The best judgement about provisions with the same label."""
    judged = [_part_of(name, part, article) for article in articles]
    if not judged:
        return CitationJudgement("unclear", name, reason=f"The text of {name} cannot be read.")
    return max(judged, key=lambda judgement: WORST_FIRST.index(judgement.status))


def _part_of(name: str, part: Part, article: ArticleText) -> CitationJudgement:
    """Whether the article has the 항, 호 and 목, each of a range; with more than one fault, the worst."""
    judged = [_paragraphs_of(name, part, article)] if part.paragraph is not None else []
    if part.item is None and part.subitem is None:
        return _worst(judged)
    if not judged or judged[0].status == "exists":
        judged.append(_items_of(name, part, article.paragraph(part.paragraph)))
    return _worst(judged)


def _paragraphs_of(name: str, part: Part, article: ArticleText) -> CitationJudgement:
    assert part.paragraph is not None  # noqa: S101 - the caller has checked it
    is_range = part.item is None and part.subitem is None and part.until is not None
    last = part.until if is_range and part.until else part.paragraph
    states = {number: paragraph.deleted for number, paragraph in article.paragraphs.items()}
    paragraphs = [(number, f"제{number}항") for number in _numbers_between(part.paragraph, last)]
    return _each(name, part, paragraphs, states, _runs(states, "항"))


def _items_of(name: str, part: Part, holders: Sequence[Paragraph]) -> CitationJudgement:
    items = {number: item for holder in holders for number, item in reversed(holder.items.items())}
    if part.item is not None:
        last = part.until if part.subitem is None and part.until else part.item[0]
        keys = [part.item] + [(number, 0) for number in _numbers_between(part.item[0], last) if number != part.item[0]]
        states = {number: item.deleted for number, item in items.items()}
        existing = _runs((number for number, minor in items if not minor), "호")
        judged = _each(name, part, [(number, _item_label(number)) for number in keys], states, existing)
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
        [(number, f"{SUBITEMS[number - 1]}목") for number in _numbers_between(part.subitem, last)],
        subitems,
        letters,
    )


def _each(
    name: str, part: Part, cited_parts: Sequence[tuple[Key, str]], states: Mapping[Key, bool], existing: str | None
) -> CitationJudgement:
    """The worst judgement about the cited parts; `states` has the existing ones, and whether each was deleted."""
    target = f"{name}{_part_label(part)}"
    judged = [CitationJudgement("exists", target)]
    for number, label in cited_parts:
        if number not in states:
            undivided = "" if existing else " It is not divided in this way."
            judged.append(CitationJudgement("missing", name, existing, reason=f"{name} has no {label}.{undivided}"))
        elif states[number]:
            judged.append(CitationJudgement("repealed", target, reason=f"{label} of {name} has been deleted (삭제)."))
    return _worst(judged)


def _worst(judged: Iterable[CitationJudgement]) -> CitationJudgement:
    return min(judged, key=lambda judgement: WORST_FIRST.index(judgement.status))


def _numbers_between(first: int, last: int) -> range:
    """The numbers of a range in either order, at most `WIDEST_RANGE`."""
    return (
        range(first, min(last, first + WIDEST_RANGE) + 1)
        if first <= last
        else range(last, min(first, last + WIDEST_RANGE) + 1)
    )


def _part_label(part: Part) -> str:
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
    return listed([run(f"제{first}{unit}", f"제{last}{unit}") for first, last in runs]) or None
