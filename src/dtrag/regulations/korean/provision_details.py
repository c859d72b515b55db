"""Facts of a provision from its regulation: amendments, effective dates, and the provisions it is linked with."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dtrag.core.provisions import Amendment, RegulationText
from dtrag.regulations.korean.amendments import (
    amendments,
    effective_date,
    effective_dates,
    heading_before,
    is_repealed,
    preface,
)
from dtrag.regulations.korean.citations import citations
from dtrag.regulations.korean.collection import CitableProvision, Collection

_RELATED = re.compile(r"[(（]([^()（）]{2,80}?)\s*+관련\s*+[)）]")
"""제8조 in the title of an appendix: 배차 기준(제8조 관련)."""


@dataclass(frozen=True, slots=True)
class ProvisionDetails:
    """`names` are the provisions that it cites, `named_by` those of the same regulation that cite it."""

    amendments: tuple[Amendment, ...]
    repealed: bool
    effective_dates: tuple[str, ...]
    effective_date: str | None
    names: tuple[str, ...]
    named_by: tuple[str, ...]


def details(collection: Collection, source: CitableProvision, regulation: RegulationText) -> ProvisionDetails:
    """The details of a provision of the regulation, whose citations in `collection` are followed."""
    text = regulation.text
    addenda = [
        (text[provision.start : provision.end], provision.title)
        for provision in regulation.provisions
        if provision.kind == "addendum"
    ]
    own = {(text[provision.start : provision.end], provision.title) for provision in source.provisions}
    before = preface(text)
    return ProvisionDetails(
        amendments=tuple(
            dict.fromkeys(
                amendment
                for provision in source.provisions
                if provision.kind != "addendum"
                for amendment in amendments(
                    text[provision.start : provision.end], heading_before(text, provision.start)
                )
            )
        ),
        repealed=is_repealed(before),
        effective_dates=tuple(
            dict.fromkeys(date for addendum in addenda if addendum in own for date in effective_dates(*addendum))
        ),
        effective_date=effective_date(addenda, before),
        names=_names(collection, source, text),
        named_by=tuple(
            other.name
            for other in collection.sources.values()
            if other.regulation is source.regulation
            and other.name != source.name
            and source.name in _names(collection, other, text)
        ),
    )


def _names(collection: Collection, source: CitableProvision, text: str) -> tuple[str, ...]:
    """The provisions that the text or the title (`별표 1`, 제8조 관련) of a provision cites, each once."""
    names: dict[str, None] = {}
    for provision in source.provisions:
        for part in (*_RELATED.findall(provision.title), text[provision.start : provision.end]):
            for citation in citations(part, source.regulation.outline, provision.label, collection.catalog):
                names |= dict.fromkeys(citation.targets)
    names.pop(source.name, None)
    return tuple(names)
