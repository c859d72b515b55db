"""Articles as of a day: what was the same then, and notes for the reader of an answer.

The notes say what was amended, what will change, which transitional provisions apply, and which dates are missing.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from dtrag.core.access.scope import NO_FILTERS, Scope, SearchFilters
from dtrag.core.documents import SearchResult
from dtrag.core.editions import ChangedText
from dtrag.core.provisions import RegulationText
from dtrag.core.statements import Statement, stated
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.core.text.analysis import language
from dtrag.ports import Index, RegulationStore, valid_day
from dtrag.regulations.korean.amendments import (
    amended_after,
    amendments,
    deletion_days,
    effective_dates,
    text_of,
    text_of_day,
)
from dtrag.regulations.korean.catalog import Number, article_number, deletions

MOST_ARTICLES = 5
"""Articles whose history is read: an answer quotes the first five passages."""


EditionsOf = Callable[[Sequence[uuid.UUID]], Awaitable[Sequence[RegulationText]]]
"""Ids of documents -> all editions, in the caller's scope, of their works, those of a work oldest first."""


async def notes_on(
    query: str, passages: Sequence[SearchResult], editions_of: EditionsOf, caller: Scope
) -> dict[str, list[Statement]]:
    """Chunk id -> notes, for the regulations among the passages; `caller.as_of` is the day of the question, if any."""
    korean, notes = language(query) == "ko", dict[str, list[Statement]]()
    dated: dict[tuple[uuid.UUID, str], list[SearchResult]] = {}
    for passage in passages:
        label = str(passage.metadata.get("article") or "")
        if not passage.metadata.get("regulation"):
            continue
        if "effective_from" not in passage.metadata:
            if caller.as_of is not None:
                notes[passage.chunk_id] = [undated_note(passage.title, caller.as_of, korean=korean)]
        elif label and passage.metadata.get("kind") != "addendum":
            dated.setdefault((uuid.UUID(str(passage.metadata["document_id"])), label), []).append(passage)
    first = dict(list(dated.items())[:MOST_ARTICLES])
    editions = await editions_of(sorted({key for key, _ in first})) if first else []
    today = valid_day(Scope(caller.nodes))
    for (document_id, label), pieces in first.items():
        text = _edition_text(document_id, label, pieces[0], editions)
        if text is not None:
            article_notes = list(edition_notes(text, caller.as_of, today, korean=korean))
            notes |= {piece.chunk_id: article_notes for piece in pieces}
    return notes


def _edition_text(
    document_id: uuid.UUID, label: str, passage: SearchResult, editions: Sequence[RegulationText]
) -> EditionText | None:
    """The cited article in its edition, with its text in the one before; None when it was replaced meanwhile."""
    own = next((edition for edition in editions if edition.document_id == document_id), None)
    if own is None:
        return None
    start, end = passage.metadata["effective_from"], passage.metadata.get("superseded_from")
    earlier = [
        edition
        for edition in editions
        if edition.work_id == own.work_id
        and edition.effective_from is not None
        and own.effective_from is not None
        and edition.effective_from < own.effective_from
    ]
    return EditionText(
        regulation=own,
        label=label,
        text=text_of(own, label),
        effective_from=date.fromisoformat(start),
        superseded_from=date.fromisoformat(end) if end else None,
        before=text_of(earlier[-1], label) if earlier else None,
    )


LONGEST_QUOTE = 240
"""Characters of a transitional provision that are quoted."""
CACHED_ADDENDA = 2_048
"""Addenda whose days and transitional provisions are cached; a book of 371 regulations has 372."""
_ADDENDUM_ARTICLE = re.compile(r"(?=제\s?\d{1,3}\s?조\s?[(（])|\n")
_TRANSITIONAL = re.compile(r"경과\s?조치|적용\s?례|적용\s?특례|종전의|종전\s규정|시행\s?당시")
_ARTICLE = re.compile(r"제\s?\d{1,4}\s?조(?:\s?의\s?\d{1,3}(?!\s?[항호\d]))?")


@dataclass(frozen=True, slots=True)
class EditionText:
    """A provision in the edition that is read.

    `before` is its text in the edition before, "" if that does not have it, None without an earlier edition.
    `superseded_from` is the day on which another text replaces this one.
    """

    regulation: RegulationText
    label: str
    text: str
    effective_from: date
    superseded_from: date | None
    before: str | None

    @property
    def name(self) -> str:
        """Such as 학칙 제21조."""
        return f"{self.regulation.name} {self.label}"

    def changed_on(self) -> str | None:
        """The date of the newest amendment if it changed this provision: by its marks, or by the edition before."""
        marks = [mark.date for mark in amendments(self.text) if mark.date]
        day = self.effective_from.isoformat()
        if marks and max(marks) >= day:
            return max(marks)
        if self.before is not None and _folded(self.before) != _folded(self.text):
            return day
        return None


def edition_notes(provision: EditionText, as_of: date | None, today: date, *, korean: bool) -> Iterator[Statement]:
    """The notes on an article that an answer cites. `as_of` is the day that was asked for, if any."""
    name, end = provision.name, provision.superseded_from
    if as_of is not None and (provision.regulation.effective_from or provision.effective_from) > as_of:
        yield from _proven_notes(provision, as_of, korean=korean)
        return
    changed = provision.changed_on()
    if as_of is None and changed:
        shown = f"{name}: 이 조문은 {changed} 개정되었습니다." if korean else ""
        yield stated("article_amended", "{name} was amended on {day}.", shown, name=name, day=changed)
    if end is not None and end > (as_of or today):
        if end > today:
            shown = f"{name}: 이 조문은 {end}부터 바뀝니다." if korean else ""
            yield stated("article_changes", "{name} changes on {day}.", shown, name=name, day=end)
        else:
            shown = f"{name}: {end} 전까지 시행되던 내용이며, 그 뒤에 바뀌었습니다." if korean else ""
            former = "{name} is the text until {day}; it has changed since."
            yield stated("article_was", former, shown, name=name, day=end)
    day = provision.regulation.effective_from or provision.effective_from
    for clause in transitional(provision.regulation, provision.label, day, amended=changed == day.isoformat()):
        yield Statement("", f"{provision.regulation.name} 부칙({day}): {clause}")


def _proven_notes(provision: EditionText, as_of: date, *, korean: bool) -> Iterator[Statement]:
    """The notes on a text before the date of its edition: since when it is the same, and what is not."""
    name, day = provision.name, as_of.isoformat()
    marks = [mark.date for mark in amendments(provision.text) if mark.date and mark.date <= day]
    since = max([provision.effective_from.isoformat(), *marks])
    shown = f"{name}: 개정 표시에 따르면 {since}부터 이 내용입니다." if korean else ""
    same = "{name} has had this text since {day}, by its amendment marks."
    yield stated("article_since", same, shown, name=name, day=since)
    later = [(f"제{number}항", changed) for _, _, number, changed in amended_after(provision.text, day)]
    if later:
        dated = ", ".join(f"{paragraph} {changed}" for paragraph, changed in later)
        text = "{name}: paragraphs that were amended later, and whose text of {day} is not stored: {dated}."
        shown = f"{name}: 그 뒤에 개정되어 {day} 당시 내용이 저장되어 있지 않은 항: {dated}." if korean else ""
        yield stated("paragraphs_changed", text, shown, name=name, day=day, dated=dated)
    deleted = [
        (deletion.label, on)
        for deletion in deletions(provision.regulation.text)
        if (on := deletion_days(provision.regulation.text[deletion.start : deletion.end]).written) and on > day
    ]
    if deleted:
        regulation, dated = provision.regulation.name, ", ".join(f"{label} {on}" for label, on in deleted)
        text = "{name}: articles of {day} that were deleted later, and whose text is not stored: {dated}."
        existed = f"{regulation}: {day}에는 있었으나 그 뒤에 삭제되어 내용이 저장되어 있지 않은 조문: {dated}."
        yield stated("articles_deleted", text, existed if korean else "", name=regulation, day=day, dated=dated)


def undated_note(name: str, as_of: date, *, korean: bool) -> Statement:
    """The note on a regulation without dates when a day was asked for."""
    text = "{name} has no dates: whether this was its text on {day} is unknown."
    shown = f"{name}에는 시행일이 없어, {as_of} 당시의 내용인지 알 수 없습니다." if korean else ""
    return stated("article_undated", text, shown, name=name, day=as_of)


def transitional(regulation: RegulationText, label: str, day: date, *, amended: bool) -> Iterator[str]:
    """The transitional provisions of the addendum of a day that name the article.

    Those that name no article count for the articles that were `amended` on that day.
    """
    number = article_number(label)
    for provision in regulation.provisions:
        if provision.kind != "addendum":
            continue
        addendum = addendum_of(regulation.text[provision.start : provision.end], provision.title)
        if day.isoformat() in addendum.days:
            yield from (quoted for quoted, named in addendum.transitional if number in named or (amended and not named))


class Addendum(NamedTuple):
    """The days on which an addendum makes the whole regulation effective, and its transitional provisions.

    Each of these is quoted, with the numbers of the articles that it names.
    """

    days: tuple[str, ...]
    transitional: tuple[tuple[str, frozenset[Number | None]], ...]


@lru_cache(CACHED_ADDENDA)
def addendum_of(text: str, title: str) -> Addendum:
    """What an addendum says about time; cached, because every answer from its regulation needs it (.3 ms)."""
    transitional: list[tuple[str, frozenset[Number | None]]] = []
    for clause in _ADDENDUM_ARTICLE.split(text):
        if _TRANSITIONAL.search(clause) is None:
            continue
        body = clause.strip().partition(")")[2] if clause.strip().startswith("제") else clause
        named = frozenset(article_number("".join(match.split())) for match in _ARTICLE.findall(body))
        quoted = " ".join(clause.split())
        shown = quoted if len(quoted) <= LONGEST_QUOTE else f"{quoted[:LONGEST_QUOTE].rstrip()} …"
        transitional.append((shown, named))
    return Addendum(effective_dates(text, title), tuple(transitional))


def _folded(text: str) -> str:
    return "".join(text.split())


async def fetch_of_day(
    index: Index, chunk_ids: Sequence[str], scope: Scope, taxonomy: Taxonomy, filters: SearchFilters = NO_FILTERS
) -> dict[str, SearchResult]:
    """The passages as `Index.fetch` returns them, without the words of paragraphs amended after the day."""
    passages = await index.fetch(chunk_ids, scope, taxonomy, filters)
    if scope.as_of is None:
        return passages
    return {key: of_day(passage, scope.as_of) for key, passage in passages.items()}


def of_day(passage: SearchResult, day: date) -> SearchResult:
    """The passage with blanks in place of the paragraphs of an article that were amended after the day."""
    if not _is_article(passage):
        return passage
    text = text_of_day(passage.text, day.isoformat())
    return passage if text == passage.text else replace(passage, text=text)


async def changed_texts(
    index: Index, store: RegulationStore, passages: Sequence[SearchResult], scope: Scope, taxonomy: Taxonomy
) -> Mapping[str, Sequence[ChangedText]]:
    """Chunk id -> what of these passages of today is not the text of the scope's day, which is not stored."""
    if scope.as_of is None:
        return {}
    dated = {passage.chunk_id: passage for passage in passages if "effective_from" in passage.metadata}
    same = await index.fetch(list(dated), scope, taxonomy)
    in_part = {
        key: [
            ChangedText(f"{_name(passage)}제{number}항", since, start, end)
            for start, end, number, since in amended_after(passage.text, scope.as_of.isoformat())
        ]
        for key, passage in dated.items()
        if key in same and _is_article(passage)
    }
    others = [passage for key, passage in dated.items() if key not in same]
    replaced = await _in_other_editions(index, store, others, scope, taxonomy)
    whole = {
        passage.chunk_id: [ChangedText(_name(passage), passage.metadata["effective_from"], 0, len(passage.text))]
        for passage in others
        if passage.chunk_id not in replaced
    }
    return whole | {key: texts for key, texts in in_part.items() if texts}


async def _in_other_editions(
    index: Index, store: RegulationStore, passages: Sequence[SearchResult], scope: Scope, taxonomy: Taxonomy
) -> set[str]:
    """Ids of the passages whose provision has a text of the day in another edition."""
    ids = sorted({uuid.UUID(str(passage.metadata["document_id"])) for passage in passages})
    editions = await store.editions(ids, scope) if ids else []
    works = {edition.document_id: edition.work_id for edition in editions}
    alternatives = {
        passage.chunk_id: [
            f"{edition.document_id}:{provision.first}"
            for edition in editions
            if edition.work_id == works.get(uuid.UUID(str(passage.metadata["document_id"])))
            for provision in edition.provisions
            if provision.label == passage.metadata.get("article")
        ]
        for passage in passages
    }
    valid = await index.fetch(sorted({key for keys in alternatives.values() for key in keys}), scope, taxonomy)
    return {chunk_id for chunk_id, keys in alternatives.items() if any(key in valid for key in keys)}


def _is_article(passage: SearchResult) -> bool:
    return bool(passage.metadata.get("regulation")) and passage.metadata.get("kind") == "article"


def _name(passage: SearchResult) -> str:
    return f"{passage.metadata.get('regulation') or passage.title} {passage.metadata.get('article') or ''}".rstrip()
