"""Provisions of regulations: articles (조), appendices (별표, 별지), addenda (부칙), and what they cite."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from dtrag.core.documents import Chunk
from dtrag.core.response import response
from dtrag.core.text.analysis import normalise


@dataclass(frozen=True, slots=True)
class Provision:
    """One provision in the text of its regulation: `text[start:end]`, indexed as the passages `first` to `last`.

    `kind` is `article`, `appendix` or `addendum`; `label` is 제15조의2, 별표 1 or 부칙. `occurrence` counts provisions
    with the same label in one regulation.
    """

    kind: str
    label: str
    title: str
    occurrence: int
    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Amendment:
    """One amendment mark of a provision."""

    __pydantic_config__ = response("AmendmentShape")

    kind: str
    """As written, without blanks: 개정, 신설, 삭제, 전문개정, 제목개정, 이동."""
    date: str | None
    """Its date (YYYY-MM-DD); null without one."""
    paragraph: int | None = None
    """The amended paragraph (항); null for the whole provision."""


BETWEEN_HEADINGS = " › "
"""Between the headings of a book in the metadata of a regulation."""


@dataclass(frozen=True, slots=True)
class RegulationText:
    """A regulation as it is stored: one document with its provisions in the order of the text.

    Of a dated edition these are the provisions that are valid on the day of the read; it is valid as a whole from
    `effective_from` until the day before `superseded_from`.
    """

    document_id: uuid.UUID
    name: str
    code: str
    text: str
    provisions: tuple[Provision, ...]
    work_id: uuid.UUID | None = None
    effective_from: date | None = None
    superseded_from: date | None = None
    headings: tuple[str, ...] = ()
    """Headings of its book above it, outermost first: 제3편 행정, 제1장 일반 행정."""


@dataclass(frozen=True, slots=True)
class RegulationSummary:
    """A regulation without its text."""

    __pydantic_config__ = response("RegulationShape")

    name: str
    """Its name."""
    code: str
    """Its code in the book; empty without one."""
    document_id: str
    """Its document."""
    articles: int
    """Number of its articles."""
    appendices: int
    """Number of its appendices."""
    addenda: int
    """Number of its addenda."""
    headings: tuple[str, ...]
    """Headings of its book above it, outermost first: 제3편 행정, 제1장 일반 행정; [] without a book, and for one that
    an earlier version has read."""


def listed(
    regulations: Iterable[RegulationSummary], containing: str = "", *, by_code: bool = False
) -> list[RegulationSummary]:
    """Those with these letters in their name or code, in their order, or by code (3-2-9 before 3-10-1)."""
    letters = _letters(containing)
    chosen = [row for row in regulations if letters in _letters(row.name) or letters in _letters(row.code)]
    return sorted(chosen, key=_place_in_book) if by_code else chosen


def _letters(text: str) -> str:
    return "".join(normalise(text).split())


def _place_in_book(regulation: RegulationSummary) -> tuple[bool, list[tuple[int, str]]]:
    """Sorts by the numbers of the code; regulations without one come last."""
    parts = re.findall(r"\d+|[^\W\d_]+", regulation.code)
    return not parts, [(int(part), "") if part.isdecimal() else (0, part) for part in parts]


@dataclass(frozen=True, slots=True)
class ProvisionCitation:
    """A citation in a provision."""

    __pydantic_config__ = response("ProvisionCitationShape")

    source: str
    """The provision that cites, such as 학칙 제21조."""
    start: int
    """Start of the citation, in code points of the text of the source."""
    end: int
    """End of the citation (exclusive)."""
    text: str
    """The citation, verbatim."""
    kind: str
    """internal, other-regulation, appendix, addendum, external-law, repealed or missing; provisions that you may not
    see are missing."""
    targets: tuple[str, ...]
    """The cited provisions: 규정명 제N조, 규정명 별표 2, 규정명 부칙 or 규정명; [] for missing ones and laws."""
    paragraph: int | None
    """The first cited paragraph (항)."""
    item: int | None
    """The first cited item (호)."""


@dataclass(frozen=True, slots=True)
class ShownProvision:
    """An article, appendix or addendum with its whole text.

    Several provisions with one label (addenda of several years) are shown together.
    """

    __pydantic_config__ = response("ProvisionShape")

    name: str
    """Its name in citations, such as 학칙 제21조."""
    regulation: str
    """Its regulation."""
    code: str
    """The code of the regulation; empty without one."""
    article: str
    """Its label, such as 제21조, 별표 1 or 부칙."""
    title: str
    """Its title; empty without one."""
    kind: str
    """article, appendix or addendum."""
    text: str
    """The text without the heading; several addenda with a blank line between them."""
    document_id: str
    """The document of the regulation."""
    source_url: str
    """Source address of the document."""
    taxonomy_path: tuple[str, ...]
    """Category of the document, outermost name first; [] for none."""
    spans: tuple[tuple[int, int], ...]
    """Its spans [start, end) in code points of the document's text."""
    citations: tuple[ProvisionCitation, ...]
    """What it cites."""
    amendments: tuple[Amendment, ...] = ()
    """Its amendment marks, in the order of the text."""
    deleted: bool = False
    """Whether it was deleted: the text is what remains, such as 삭제 <2020. 1. 1.>."""
    repealed: bool = False
    """Whether the whole regulation is marked as abolished (폐지)."""
    effective_dates: tuple[str, ...] = ()
    """Of addenda: the dates (YYYY-MM-DD) on which they make the regulation effective; else []."""
    effective_date: str | None = None
    """The newest date on which the regulation became effective; null if its text has none."""
    effective_from: str | None = None
    """First day of this text; null without dates."""
    superseded_from: str | None = None
    """The day on which another text replaces it; null if none does."""
    editions: tuple[str, ...] = ()
    """Dates of all editions of the regulation in the index."""
    names: tuple[str, ...] = ()
    """The provisions that it cites, each once."""
    named_by: tuple[str, ...] = ()
    """The provisions of the same regulation that cite it."""


def provisions_of(chunks: Iterable[Chunk]) -> tuple[Provision, ...]:
    """The provisions of the passages; the pieces of a long one follow each other."""
    provisions: list[Provision] = []
    for chunk in chunks:
        kind, label = str(chunk.metadata.get("kind") or ""), str(chunk.metadata.get("article") or "")
        if not kind or not label:
            continue
        occurrence = int(chunk.metadata.get("occurrence") or 1)
        title = str(chunk.metadata.get("article_title") or "")
        last = provisions[-1] if provisions else None
        if last is not None and (last.kind, last.label, last.occurrence) == (kind, label, occurrence):
            provisions[-1] = replace(last, end=chunk.end, last=chunk.ordinal)
        else:
            place = chunk.start, chunk.end, chunk.ordinal, chunk.ordinal
            provisions.append(Provision(kind, label, title, occurrence, *place))
    return tuple(provisions)


@dataclass(frozen=True, slots=True)
class OutlinedProvision:
    """A provision in the outline of its regulation."""

    __pydantic_config__ = response("OutlinedProvisionShape")

    kind: str
    """article, appendix or addendum."""
    label: str
    """제15조의2, 별표 1 or 부칙."""
    title: str
    """Its title; empty without one."""
    headings: tuple[str, ...]
    """Headings above it, outermost first, such as 제1장 총칙."""
    start: int
    """Its start, in code points of the document's text."""
    end: int
    """Its end (exclusive)."""
    chunk_id: str
    """Its first passage; empty for a deleted provision."""
    deleted: bool
    """Whether only the mark of the deleted provision remains."""


@dataclass(frozen=True, slots=True)
class EditionDays:
    """An edition of a regulation."""

    __pydantic_config__ = response("EditionDaysShape")

    document_id: str
    """Its document."""
    effective_from: str | None
    """The first day on which it is valid as a whole."""
    superseded_from: str | None
    """The day on which the next edition replaces it; null for none."""


@dataclass(frozen=True, slots=True)
class RegulationOutline:
    """The outline of a regulation."""

    __pydantic_config__ = response("OutlineShape")

    name: str
    """Its name."""
    code: str
    """Its code in the book; empty without one."""
    document_id: str
    """The document of the edition that is shown."""
    provisions: tuple[OutlinedProvision, ...]
    """Its provisions, in the order of the text."""
    editions: tuple[EditionDays, ...]
    """Its dated editions that you may see, the oldest first."""


@dataclass(frozen=True, slots=True)
class ReadProvision:
    """A provision in the text of its regulation."""

    __pydantic_config__ = response("ReadProvisionShape")

    name: str
    """Its name in citations, such as 학칙 제21조; addenda share one."""
    kind: str
    """article, appendix or addendum."""
    label: str
    """제15조의2, 별표 1 or 부칙."""
    title: str
    """Its title; empty without one."""
    headings: tuple[str, ...]
    """Headings above it, outermost first, such as 제1장 총칙."""
    text: str | None
    """The text without the heading; null for one that is not stored for the day, and beyond the longest text that is
    sent at once: `GET /regulations/show` has it, or says why not."""
    deleted: bool
    """Whether it was deleted: the text is what remains."""
    citations: tuple[ProvisionCitation, ...]
    """What it cites."""
    marks: tuple[tuple[int, int], ...]
    """Spans [start, end) of its amendment marks, in code points of the text."""
    document_id: str
    """The document of its edition."""
    start: int
    """Its start, in code points of the document's text."""
    end: int
    """Its end (exclusive)."""


@dataclass(frozen=True, slots=True)
class WholeRegulation:
    """The text of a regulation."""

    __pydantic_config__ = response("WholeRegulationShape")

    name: str
    """Its name."""
    code: str
    """Its code in the book; empty without one."""
    document_id: str
    """The document of the edition that is shown."""
    preface: str
    """What precedes the first article or chapter: its name and its history."""
    effective_from: str | None
    """The first day on which this edition is valid; null without dates."""
    superseded_from: str | None
    """The day on which the next edition replaces it; null for none."""
    provisions: tuple[ReadProvision, ...]
    """Its provisions, in the order of the text."""
    editions: tuple[EditionDays, ...]
    """Its dated editions that you may see, the oldest first."""


def provision_names(metadata: Mapping[str, Any]) -> list[str]:
    """`code:제N조` and `규정명:제N조` of a passage with this metadata, with `#2` for the second article of one number.

    [] outside of regulations.
    """
    article = metadata.get("article")
    if not article or not metadata.get("regulation"):
        return []
    occurrence = int(metadata.get("occurrence") or 1)
    label = str(article) if occurrence == 1 else f"{article}#{occurrence}"
    return [f"{name}:{label}" for name in (metadata.get("code"), metadata["regulation"]) if name]
