"""The whole text of a regulation for one page, provision by provision, as it is valid on a day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import NamedTuple

from dtrag.core.provisions import Provision, ReadProvision, RegulationText
from dtrag.regulations.korean.amendments import mark_spans, text_of_day
from dtrag.regulations.korean.catalog import article_number
from dtrag.regulations.korean.collection import Collection, Regulation, cited_name

LONGEST_WHOLE_TEXT = 500_000
"""Characters of a regulation that are read at once."""


class PlacedProvision(NamedTuple):
    """A provision in the order of the text, with the edition that has its text and the headings above it."""

    edition: Regulation
    provision: Provision
    headings: tuple[str, ...]


def in_force(
    collection: Collection, regulation: Regulation, headings: Mapping[int, tuple[str, ...]]
) -> list[PlacedProvision]:
    """The provisions in the order of the text, with what remains of deleted ones.

    `headings` are those above the passages of the regulation. An article that another edition of the work has in force
    stands behind the article with the number before it.
    """
    borrowed = [
        (source.regulation, provision)
        for source in collection.sources.values()
        if source.regulation.work_id == regulation.work_id is not None
        and source.regulation.document_id != regulation.document_id
        and not source.is_deleted
        for provision in source.provisions
    ]
    replaced = {provision.label for _, provision in borrowed}
    deleted = [provision for provision in regulation.deleted if provision.label not in replaced]
    ordered: list[PlacedProvision] = []
    above: tuple[str, ...] = ()  # a deleted provision stands under those of the one before it
    for provision in sorted((*regulation.provisions, *deleted), key=lambda provision: provision.start):
        above = headings.get(provision.first, above)
        ordered.append(PlacedProvision(regulation, provision, above))
    for edition, provision in borrowed:
        place = _place(provision, ordered)
        ordered.insert(place, PlacedProvision(edition, provision, ordered[place - 1].headings if place else ()))
    return ordered


def _place(provision: Provision, ordered: Sequence[PlacedProvision]) -> int:
    """Behind the last article with a lower number; at the end for what has no number."""
    number = article_number(provision.label) if provision.kind == "article" else None
    if number is None:
        return len(ordered)
    numbers = [article_number(other.label) if other.kind == "article" else None for _, other, _ in ordered]
    return max((place for place, other in enumerate(numbers, start=1) if other and other < number), default=0)


def read_whole(
    collection: Collection, ordered: Sequence[PlacedProvision], texts: Mapping[str, RegulationText], day: date | None
) -> list[ReadProvision]:
    """The provisions with their texts, citations and amendment marks; takes a second for a very long regulation.

    `texts` are those of the editions by document id.
    """
    read: list[ReadProvision] = []
    left = LONGEST_WHOLE_TEXT
    for edition, provision, headings in ordered:
        document_id = str(edition.document_id)
        text = _text(edition, provision, texts[document_id], day)
        left -= len(text or "")
        shown = text if left >= 0 else None
        name = cited_name(edition, provision)
        citations = collection.citations_in(edition, provision.label, shown) if shown else ()
        read.append(
            ReadProvision(
                name=name,
                kind=provision.kind,
                label=provision.label,
                title=provision.title,
                headings=headings,
                text=shown,
                deleted=provision in edition.deleted,
                citations=tuple(replace(citation, source=name) for citation in citations),
                marks=tuple(mark_spans(shown or "")),
                document_id=document_id,
                start=provision.start,
                end=provision.end,
            )
        )
    return read


def _text(edition: Regulation, provision: Provision, whole: RegulationText, day: date | None) -> str | None:
    """The text on the day; None for a provision that was deleted after it, whose text then is not stored."""
    text = whole.text[provision.start : provision.end]
    if day is None:
        return text
    deleted_on = edition.deleted_on.get(provision.label) if provision in edition.deleted else None
    if deleted_on is not None and deleted_on > day.isoformat():
        return None
    return text_of_day(text, day.isoformat()) if provision.kind == "article" else text
