"""Provisions of regulations: articles (조), appendices (별표, 별지), addenda (부칙), and what they cite."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from dtrag.core.documents import Chunk
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
    """One amendment of a provision: `kind` as written without blanks (개정, 신설, 삭제, 전문개정), `date` in ISO form.

    `paragraph` is the amended 항; None for the whole provision.
    """

    kind: str
    date: str | None
    paragraph: int | None = None


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


@dataclass(frozen=True, slots=True)
class RegulationSummary:
    """A regulation in a list, with its number of provisions by kind."""

    name: str
    code: str
    document_id: str
    articles: int
    appendices: int
    addenda: int


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
    """A citation in the provision `source` (`학칙 제21조`): `text` is `[start:end]` of the text that `show` returns.

    `targets` are `규정명 제N조`, `규정명 별표 2`, `규정명 부칙` or `규정명`; empty for laws outside the collection
    and for missing provisions. `paragraph` and `item` are the first 항 and 호 of the citation.
    """

    source: str
    start: int
    end: int
    text: str
    kind: str
    targets: tuple[str, ...]
    paragraph: int | None
    item: int | None


@dataclass(frozen=True, slots=True)
class ShownProvision:
    """A provision with its full text. `name` is how citations refer to it, `학칙 제21조`.

    `spans` are its ranges in the document's text; several provisions with one label (addenda of several years) are
    shown together, with a blank line between them. `deleted`: only its number and mark remain (`삭제 <2020. 1. 1.>`).
    `repealed`: the whole regulation is marked as 폐지. `effective_dates` are those of an addendum, `effective_date` is
    the newest of the regulation; both in ISO form. This text is valid from `effective_from` until the day before
    `superseded_from`; `editions` are the dates of all editions of the regulation in the index. `names` are the
    provisions that it cites, `named_by` the provisions of the same regulation that cite it.
    """

    name: str
    regulation: str
    code: str
    article: str
    title: str
    kind: str
    text: str
    document_id: str
    source_url: str
    taxonomy_path: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    citations: tuple[ProvisionCitation, ...]
    amendments: tuple[Amendment, ...] = ()
    deleted: bool = False
    repealed: bool = False
    effective_dates: tuple[str, ...] = ()
    effective_date: str | None = None
    effective_from: str | None = None
    superseded_from: str | None = None
    editions: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    named_by: tuple[str, ...] = ()


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
    """A provision in the outline of its regulation: `headings` are those above it (제1장 총칙, 제1절 배차).

    `chunk_id` is its first passage; "" for a deleted one, of which only a mark remains.
    """

    kind: str
    label: str
    title: str
    headings: tuple[str, ...]
    start: int
    end: int
    chunk_id: str

    @property
    def deleted(self) -> bool:
        """Whether only the mark of the deleted provision remains."""
        return not self.chunk_id


@dataclass(frozen=True, slots=True)
class EditionDays:
    """An edition of a regulation: valid as a whole from `effective_from` until the day before `superseded_from`."""

    document_id: str
    effective_from: str | None
    superseded_from: str | None


@dataclass(frozen=True, slots=True)
class RegulationOutline:
    """The provisions of a regulation in the order of its text, and its editions, the oldest first."""

    name: str
    code: str
    document_id: str
    provisions: tuple[OutlinedProvision, ...]
    editions: tuple[EditionDays, ...]


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
