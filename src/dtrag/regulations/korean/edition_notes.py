"""What the reader of an article should know about its time: amendments, changes to come, transitional provisions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from dtrag.core.provisions import RegulationText
from dtrag.core.statements import Statement, stated
from dtrag.regulations.korean.amendments import amended_after, amendments, effective_dates
from dtrag.regulations.korean.catalog import article_number
from dtrag.regulations.korean.deletions import deletions
from dtrag.regulations.korean.provision_days import deletion_days

LONGEST_QUOTE = 240
"""Characters of a transitional provision that are quoted."""
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
    if as_of is None and (changed := provision.changed_on()):
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
    amended_then = provision.changed_on() == day.isoformat()
    for clause in transitional(provision.regulation, provision.label, day, amended=amended_then):
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
        text = regulation.text[provision.start : provision.end]
        if provision.kind != "addendum" or day.isoformat() not in effective_dates(text, provision.title):
            continue
        for clause in _ADDENDUM_ARTICLE.split(text):
            body = clause.strip().partition(")")[2] if clause.strip().startswith("제") else clause
            named = {article_number("".join(match.split())) for match in _ARTICLE.findall(body)}
            if _TRANSITIONAL.search(clause) and (number in named or (amended and not named)):
                quoted = " ".join(clause.split())
                yield quoted if len(quoted) <= LONGEST_QUOTE else f"{quoted[:LONGEST_QUOTE].rstrip()} …"


def _folded(text: str) -> str:
    return "".join(text.split())
