"""Differences of a regulation between two days, and citations that are older than what they cite."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Sequence
from datetime import date

from dtrag.core.access.scope import Scope
from dtrag.core.provisions import ProvisionCitation, RegulationText
from dtrag.core.regulation_changes import RegulationDiff, StaleCitation
from dtrag.errors import InvalidInput, NotFound
from dtrag.packs.regulation_ko.changes import amended_on, difference, provisions_of
from dtrag.packs.regulation_ko.collection import NO_PASSAGE, Collection, Regulation
from dtrag.ports import IndexSnapshot, RegulationStore
from dtrag.retrieval.regulation_collection import READ_AT_ONCE, CollectionReader

REPEALED = "repealed"


async def compare_days(
    name: str, days: tuple[date, date], collections: CollectionReader, snapshot: IndexSnapshot, scope: Scope
) -> RegulationDiff:
    """What changed in a regulation between two days.

    Raises `NotFound` when it was valid on neither of them, and `InvalidInput` when it has no dates.
    """
    sides: list[tuple[Regulation | None, list[RegulationText]]] = []
    missing: NotFound | None = None
    for day in days:
        try:
            sides.append(await _texts(name, collections, snapshot, scope.at(day)))
        except NotFound as error:
            missing = error
            sides.append((None, []))
    regulation = sides[1][0] or sides[0][0]
    if regulation is None:
        raise missing or NotFound(f"There is no regulation {name[:60]!r} that you may see.")
    texts = [*sides[0][1], *sides[1][1]]
    if any(text.effective_from is None for text in texts):
        raise InvalidInput(
            f"{regulation.name} has no dates: it has one text only. Compare two files, or ingest its editions again "
            "with --effective."
        )
    documents = tuple(dict.fromkeys(str(text.document_id) for text in texts))
    before, after = ((day.isoformat(), provisions_of(side)) for day, (_, side) in zip(days, sides, strict=True))
    return await asyncio.to_thread(difference, regulation.name, before, after, documents)


async def _texts(
    name: str, collections: CollectionReader, snapshot: IndexSnapshot, scope: Scope
) -> tuple[Regulation, list[RegulationText]]:
    """The regulation on the day of the scope, and the texts of its editions that are valid then, the main one first."""
    collection = await collections.read(snapshot, scope)
    regulation = collection.named(name)
    keys = list(dict.fromkeys([regulation.document_id, *_editions(collection, regulation)]))
    texts = {text.document_id: text for text in await collections.store.read(keys, scope)}
    return regulation, [texts[key] for key in keys if key in texts]


def _editions(collection: Collection, regulation: Regulation) -> Iterable[uuid.UUID]:
    """The documents of the work that have valid provisions."""
    if regulation.work_id is None:
        return ()
    return (key for key, other in collection.by_chunk.items() if other.work_id == regulation.work_id)


async def stale_citations(
    citations: Sequence[ProvisionCitation], collection: Collection, store: RegulationStore, scope: Scope
) -> list[StaleCitation]:
    """Those whose target was amended after their source was last amended, or was repealed; each pair once."""
    days: dict[str, str | None] = {}
    keys = [regulation.document_id for regulation in collection.regulations if regulation.work_id is not None]
    for first in range(0, len(keys), READ_AT_ONCE):
        editions = await store.editions(keys[first : first + READ_AT_ONCE], scope)
        days |= await asyncio.to_thread(_amended_days, collection, editions)
    stale: dict[tuple[str, str], StaleCitation] = {}
    for citation in citations:
        for target in citation.targets:
            source_day, target_day = days.get(citation.source), days.get(target)
            is_newer = source_day is not None and target_day is not None and target_day > source_day
            if citation.kind != REPEALED and not is_newer:
                continue
            row = StaleCitation(
                citation.source,
                source_day,
                target,
                target_day,
                "repealed" if citation.kind == REPEALED else "amended",
                citation.text,
            )
            stale.setdefault((citation.source, target), row)
    return list(stale.values())


def _amended_days(collection: Collection, editions: Sequence[RegulationText]) -> dict[str, str | None]:
    """Name of a provision -> day of its last amendment, for the works of these editions."""
    by_work: dict[uuid.UUID | None, list[RegulationText]] = {}
    for edition in editions:
        by_work.setdefault(edition.work_id, []).append(edition)
    days: dict[str, str | None] = {}
    named = [(source.name, source.regulation, source.provisions[0]) for source in collection.sources.values()]
    named += [
        (f"{regulation.name} {provision.label}", regulation, provision)
        for regulation in collection.regulations
        for provision in regulation.deleted
    ]
    for name, regulation, provision in named:
        known = by_work.get(regulation.work_id) if regulation.work_id is not None else None
        places = {text.document_id: place for place, text in enumerate(known or ())}
        own = places.get(regulation.document_id)
        if known is None or own is None or name in days:
            continue
        is_deleted = provision.first == NO_PASSAGE
        mark = known[own].text[provision.start : provision.end] if is_deleted else None
        days[name] = amended_on(known[: own + 1], provision.label, mark)  # later editions are not valid yet
    return days
