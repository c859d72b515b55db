"""Judges the 항, 호 and 목 of a citation against the text of an article."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dtrag.core.verification import CitationStatus
from dtrag.packs.regulation_ko.catalog import Number
from dtrag.packs.regulation_ko.verification.article_text import ArticleText, Paragraph
from dtrag.packs.regulation_ko.verification.contents import listed, run
from dtrag.packs.regulation_ko.verification.references import SUBITEMS, Part

WIDEST_RANGE = 400
"""Members of a range that are checked one by one; of a wider one the first."""
WORST_FIRST: tuple[CitationStatus, ...] = ("missing", "repealed", "title_mismatch", "unclear", "exists")
Key = TypeVar("Key", int, Number)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Status of a citation with what the reader of the text should know."""

    status: CitationStatus
    target: str | None = None
    range: str | None = None
    title: str | None = None
    reason: str = ""


def part_of_any(name: str, part: Part, articles: Sequence[ArticleText]) -> Judgement:
    """The best judgement about provisions with the same label."""
    judged = [part_of(name, part, article) for article in articles]
    if not judged:
        return Judgement("unclear", name, reason=f"The text of {name} cannot be read.")
    return max(judged, key=lambda one: WORST_FIRST.index(one.status))


def part_of(name: str, part: Part, article: ArticleText) -> Judgement:
    """Whether the article has the 항, 호 and 목, each of a range; with more than one fault, the worst."""
    judged = [_paragraphs_of(name, part, article)] if part.paragraph is not None else []
    if part.item is None and part.subitem is None:
        return worst(judged)
    if not judged or judged[0].status == "exists":
        judged.append(_items_of(name, part, article.paragraph(part.paragraph)))
    return worst(judged)


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
    return worst(judged)


def worst(judged: Iterable[Judgement]) -> Judgement:
    return min(judged, key=lambda one: WORST_FIRST.index(one.status))


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
    return listed([run(f"제{first}{unit}", f"제{last}{unit}") for first, last in runs]) or None
