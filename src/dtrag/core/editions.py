"""Editions of a work: which text of a regulation is valid on which day, passage by passage.

A work is one regulation over time; an edition is its text as amended on a date. An edition is one document. Each of
its articles is valid from the edition's date, or from a later one that its addendum names, until the next edition
replaces or deletes it.
"""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from dtrag.core.statements import Statement, stated
from dtrag.errors import InvalidInput

ADDENDUM = "addendum"
NAMED_WORKS = 3
"""Works that a note names."""
_NOT_LETTERS = re.compile(r"[\s․·ㆍ・‧･•⸱\-()「」『』]+")


@dataclass(frozen=True, slots=True)
class Edition:
    """What a text says about itself: its work by `code` and folded `name`, and its date (None: undated).

    `article_dates` maps labels (제12조, 별표 1) to dates that differ from `effective_from`: later ones that an addendum
    names, and earlier ones since which the text is known to be the same. `repeals` are the folded names of the
    regulations that it abolishes. `work_id` is None until the edition is ingested, and for undated ones.
    `ends_on` is the day on which the text says that it ends; `retained`: the edition is superseded, and its file does
    not contain it any more.
    """

    name: str
    code: str = ""
    effective_from: date | None = None
    article_dates: Mapping[str, date] = field(default_factory=dict)
    repeals: tuple[str, ...] = ()
    work_id: uuid.UUID | None = None
    ends_on: date | None = None
    retained: bool = False

    @property
    def work(self) -> tuple[str, str]:
        """Code and folded name, which identify the work inside a category."""
        return self.code, self.name

    def joined(self, work_id: uuid.UUID) -> Edition:
        """The edition as one of this work."""
        return replace(self, work_id=work_id)


def folded_name(name: str) -> str:
    """A regulation's name without white space, middle dots and brackets, as names are compared."""
    return _NOT_LETTERS.sub("", name)


def edition_id(work_id: uuid.UUID, effective_from: date, taken: Collection[uuid.UUID] = ()) -> uuid.UUID:
    """The document id of the edition of a date: the same date is the same document.

    `taken` are the ids of editions that were moved to another category, and are not replaced.
    """
    names = (effective_from.isoformat() + (f" {number}" if number else "") for number in itertools.count())
    return next(key for name in names if (key := uuid.uuid5(work_id, name)) not in taken)


def new_work_id(
    namespace: uuid.UUID, path: Sequence[str], edition: Edition, taken: Collection[uuid.UUID] = ()
) -> uuid.UUID:
    """The id of a work that begins in the category of this path: the same for all who begin it at the same time.

    It is made of what its readers know, and not of the number of the category: that would tell them how many others
    there are. `taken` are the ids of works that began under this path before their category was moved or renamed.
    """
    paths = ("/".join(path) + (f" {number}" if number else "") for number in itertools.count())
    names = ("\n".join((each, *edition.work)) for each in paths)
    return next(key for name in names if (key := uuid.uuid5(namespace, name)) not in taken)


def parse_date(name: str, value: object) -> date | None:
    """A calendar date such as 2024-03-01; None for None. Raises `InvalidInput`."""
    if value is None or (isinstance(value, date) and type(value) is date):
        return value
    try:
        if not isinstance(value, str) or len(value) != len("2024-03-01"):
            raise ValueError
        return date.fromisoformat(value)
    except ValueError as error:
        raise InvalidInput(f"{name} is a date such as 2024-03-01.") from error


@dataclass(frozen=True, slots=True)
class StoredEdition:
    """An edition in the index. `labels` has the label of each passage's provision, in order of the passages.

    It is "" for text that belongs to one edition as a whole, such as its addenda.
    """

    document_id: uuid.UUID
    effective_from: date
    article_dates: Mapping[str, date]
    ends_on: date | None
    labels: Sequence[str]

    def start_of(self, label: str) -> date:
        """The day on which this edition's text of a provision, or its deletion, takes effect."""
        return self.article_dates.get(label, self.effective_from) if label else self.effective_from

    def after_another(self) -> StoredEdition:
        """The edition as one that follows another: before its date, the text is that of the one before."""
        later = {label: day for label, day in self.article_dates.items() if day > self.effective_from}
        return replace(self, article_dates=later)


@dataclass(frozen=True, slots=True)
class ValidPassages:
    """Passages `first` to `last` of an edition are valid from `start` until the day before `end` (None: open)."""

    first: int
    last: int
    start: date
    end: date | None

    def admits(self, day: date) -> bool:
        """Whether they are valid on the day."""
        return self.start <= day and (self.end is None or day < self.end)


@dataclass(frozen=True, slots=True)
class Validity:
    """When an edition as a whole, and each of its passages, is valid. `end` is exclusive; None: open."""

    start: date
    end: date | None
    passages: tuple[ValidPassages, ...]

    def of(self, ordinal: int) -> ValidPassages | None:
        """The validity of one passage."""
        return next((part for part in self.passages if part.first <= ordinal <= part.last), None)


@dataclass(frozen=True, slots=True)
class WorkBeginning:
    """A work and the day on which its oldest stored edition begins."""

    name: str
    first_day: date


@dataclass(frozen=True, slots=True)
class ChangedText:
    """A text of today that is not the one of an earlier day, which is not stored: `name` (학칙 제12조제2항).

    It is the text since `since`, or was deleted then. `start` and `end` are its span in the passage.
    """

    name: str
    since: str
    start: int
    end: int
    deleted: bool = False


def changed_later(changed: Sequence[ChangedText], day: date, *, korean: bool) -> Statement:
    """Of which texts, that would answer today, the text of the day is not stored."""
    first = sorted({(text.name, text.since, text.deleted) for text in changed[:NAMED_WORKS]})
    named = [f"{name} ({'deleted on' if deleted else 'this text since'} {since})" for name, since, deleted in first]
    english = stated(
        "texts_changed",
        "What applies today, and whose text of {day} is not stored: {names}.",
        day=day,
        names=", ".join(named),
        dated=", ".join(f"{name} {since}" for name, since, _ in first),
    )
    if not korean:
        return english
    named = [f"{name}({since}{' 삭제' if deleted else '부터 지금의 내용'})" for name, since, deleted in first]
    shown = f"{day} 당시의 내용이 저장되어 있지 않은 조문이 있습니다: {', '.join(named)}."
    return replace(english, shown=shown)


def missing_editions_note(works: Sequence[WorkBeginning], day: date, *, korean: bool) -> Statement | None:
    """Which of these works have no text of the day, because their editions begin later; None for none."""
    later = sorted((work.first_day, work.name) for work in works if work.first_day > day)
    if not later:
        return None
    more = len(later) - NAMED_WORKS
    english = _missing_in_english(works, later, day)
    if korean:
        named = ", ".join(f"{name}({first_day}부터)" for first_day, name in later[:NAMED_WORKS])
        rest = f" 외 {more}개" if more > 0 else ""
        shown = (
            f"{day} 당시의 내용이 저장되어 있지 않아 찾아보지 못한 규정이 있습니다(시행일이 있는 {len(works)}개 가운데 "
            f"{len(later)}개): {named}{rest}."
        )
        return replace(english, shown=shown)
    return english


def _missing_in_english(works: Sequence[WorkBeginning], later: Sequence[tuple[date, str]], day: date) -> Statement:
    more = len(later) - NAMED_WORKS
    named = ", ".join(f"{name} (from {first_day} on)" for first_day, name in later[:NAMED_WORKS])
    rest = f" and {more} more" if more > 0 else ""
    count = (
        "any dated regulation" if len(later) == len(works) else f"{len(later)} of the {len(works)} dated regulations"
    )
    return stated(
        "editions_missing",
        "No text of {day} is stored, and none was searched, of " + count + " in scope: {names}.",
        day=day,
        total=len(works),
        missing=len(later),
        names=f"{named}{rest}",
        dated=", ".join(f"{name} {first_day}" for first_day, name in later[:NAMED_WORKS]) + (" …" if more > 0 else ""),
    )


def days(start: date | None, end: date | None) -> dict[str, str]:
    """The validity as metadata of a document or passage: `effective_from` and `superseded_from`, if known."""
    names = (("effective_from", start), ("superseded_from", end))
    return {name: day.isoformat() for name, day in names if day is not None}


def passage_label(kind: object, label: object) -> str:
    """The label by which a passage is followed through the editions; "" for text of one edition, such as addenda."""
    return "" if kind == ADDENDUM or not label else str(label)


def validity(editions: Iterable[StoredEdition], repealed_on: Collection[date] = ()) -> dict[uuid.UUID, Validity]:
    """Document id -> validity, for all editions of one work; each day of `repealed_on` ends those that began before.

    A provision is valid until its text in the first later edition takes effect, or its deletion there. Only texts of
    the oldest edition are valid before its date, as far as they are known to be the same then.
    """
    ordered = sorted(editions, key=lambda edition: edition.effective_from)
    ordered[1:] = [edition.after_another() for edition in ordered[1:]]
    valid: dict[uuid.UUID, Validity] = {}
    for place, edition in enumerate(ordered):
        later = ordered[place + 1 :]
        limits = [edition.ends_on, *(day for day in repealed_on if day > edition.effective_from)]
        ends = {
            label: _earliest([*limits, *(following.start_of(label) for following in later)])
            for label in {"", *edition.labels}
        }
        parts: list[ValidPassages] = []
        for ordinal, label in enumerate(edition.labels):
            start, end = edition.start_of(label), ends[label]
            if parts and (parts[-1].start, parts[-1].end) == (start, end):
                parts[-1] = replace(parts[-1], last=ordinal)
            else:
                parts.append(ValidPassages(ordinal, ordinal, start, end))
        valid[edition.document_id] = Validity(edition.effective_from, ends[""], tuple(parts))
    return valid


def _earliest(days: Iterable[date | None]) -> date | None:
    return min((day for day in days if day is not None), default=None)
