"""The outline of a regulation: its provisions under their chapters and sections (장, 절), and its editions."""

from __future__ import annotations

from collections.abc import Mapping

from dtrag.core.access.scope import Scope
from dtrag.core.provisions import EditionDays, OutlinedProvision, Provision, RegulationOutline
from dtrag.packs.regulation_ko.collection import NO_PASSAGE, Regulation
from dtrag.ports import DocumentIndex, RegulationStore

PASSAGES_AT_ONCE = 1_000


async def read_outline(
    regulation: Regulation, index: DocumentIndex, store: RegulationStore, within: Scope
) -> RegulationOutline:
    """The outline of the regulation. A deleted provision stands under the headings of the one before it."""
    above = await _headings(regulation, index, within)
    provisions: list[OutlinedProvision] = []
    headings: tuple[str, ...] = ()
    for provision in sorted((*regulation.provisions, *regulation.deleted), key=lambda provision: provision.start):
        headings = above.get(provision.first, headings)
        provisions.append(_outlined(regulation, provision, headings))
    editions = await store.editions([regulation.document_id], within) if regulation.work_id is not None else []
    return RegulationOutline(
        regulation.name,
        regulation.code,
        str(regulation.document_id),
        tuple(provisions),
        tuple(
            EditionDays(
                str(edition.document_id),
                edition.effective_from.isoformat() if edition.effective_from else None,
                edition.superseded_from.isoformat() if edition.superseded_from else None,
            )
            for edition in editions
        ),
    )


async def _headings(regulation: Regulation, index: DocumentIndex, within: Scope) -> Mapping[int, tuple[str, ...]]:
    """Ordinal of a passage -> the headings above its provision, without the name of the regulation."""
    headings: dict[int, tuple[str, ...]] = {}
    while True:
        page = await index.passage_spans(regulation.document_id, PASSAGES_AT_ONCE, len(headings), within)
        if not page or not page[0]:
            return headings
        for span in page[0]:
            names = span.breadcrumb[1:] if span.breadcrumb[:1] == (regulation.name,) else span.breadcrumb
            headings[span.ordinal] = tuple(names[:-1])


def _outlined(regulation: Regulation, provision: Provision, headings: tuple[str, ...]) -> OutlinedProvision:
    deleted = provision.first == NO_PASSAGE
    chunk_id = "" if deleted else f"{regulation.document_id}:{provision.first}"
    return OutlinedProvision(
        provision.kind, provision.label, provision.title, headings, provision.start, provision.end, chunk_id, deleted
    )
