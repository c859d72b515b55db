"""Differences of a regulation between two days, and citations that are older than what they cite."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Sequence
from datetime import date

from dtrag.core.access.scope import Scope
from dtrag.core.provisions import ProvisionCitation, RegulationText
from dtrag.core.regulation_changes import RegulationDiff, StaleCitation
from dtrag.core.text.patterns import explained
from dtrag.errors import InvalidInput, NotFound
from dtrag.ports import IndexSnapshot, RegulationStore
from dtrag.regulations.collection_reader import READ_AT_ONCE, CollectionReader
from dtrag.regulations.korean.changes import difference, provisions_of
from dtrag.regulations.korean.collection import NO_PASSAGE, Collection, Regulation
from dtrag.regulations.korean.provision_days import ProvisionDays, deletion_days, provision_days

REPEALED = "repealed"
ADDENDUM_KIND, APPENDIX_KIND = "addendum", "appendix"
_ONE_PARAGRAPH = explained(
    r"^[^항]*조(?:\s*의\s*\d+)?(?:\s*[(（][^()（）]*[)）])?\s*의?\s*제?\s*(?:\d+|[①-⑳])\s*항[^항]*$",
    finds="제3조(목적) 제2항",
    refuses="제3조 제1항 및 제2항",
)


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
    """The regulation on the day of the scope, and the texts of its editions that are valid then, the main one first.

    Of an edition before its date only a part is known: there is no text of the whole then.
    """
    collection = await collections.read(snapshot, scope)
    regulation = collection.named(name)
    keys = list(dict.fromkeys([regulation.document_id, *_editions(collection, regulation)]))
    texts = {text.document_id: text for text in await collections.store.read(keys, scope)}
    whole = [texts[key] for key in keys if key in texts and _has_begun(texts[key], scope)]
    if not whole:
        raise NotFound(f"No edition of {regulation.name} of {scope.as_of} is stored.")
    return regulation, whole


def _has_begun(text: RegulationText, scope: Scope) -> bool:
    return text.effective_from is None or scope.as_of is None or text.effective_from <= scope.as_of


def _editions(collection: Collection, regulation: Regulation) -> Iterable[uuid.UUID]:
    """The documents of the work that have valid provisions."""
    if regulation.work_id is None:
        return ()
    return (key for key, other in collection.by_chunk.items() if other.work_id == regulation.work_id)


async def stale_citations(
    citations: Sequence[ProvisionCitation], collection: Collection, store: RegulationStore, scope: Scope
) -> list[StaleCitation]:
    """Those whose target was amended after their source was last amended, or was repealed; each pair once.

    Of a citation of one paragraph (제8조제3항), only amendments of that paragraph and of the whole article count.
    Addenda (부칙) are neither sources nor targets: they say how an earlier text changed, and are not kept current. An
    appendix (별표) of the same regulation is no target unless it was repealed: it holds the details of its article.
    """
    days: dict[str, ProvisionDays] = {}
    keys = [regulation.document_id for regulation in collection.regulations if regulation.work_id is not None]
    for first in range(0, len(keys), READ_AT_ONCE):
        editions = await store.editions(keys[first : first + READ_AT_ONCE], scope)
        days |= await asyncio.to_thread(_amended_days, collection, editions)
    unknown = ProvisionDays(None, None, {})
    stale: dict[tuple[str, str], StaleCitation] = {}
    for citation in citations:
        if _is_addendum(collection, citation.source):
            continue
        source_day = days.get(citation.source, unknown).written
        for target in citation.targets:
            target_day = days.get(target, unknown).amended_in(_only_paragraph(citation))
            is_newer = source_day is not None and target_day is not None and target_day > source_day
            if citation.kind != REPEALED and (not is_newer or _is_own_appendix(collection, citation.source, target)):
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


def _is_addendum(collection: Collection, name: str) -> bool:
    source = collection.source(name)
    return source is not None and source.provisions[0].kind == ADDENDUM_KIND


def _is_own_appendix(collection: Collection, source: str, target: str) -> bool:
    cited, citing = collection.source(target), collection.source(source)
    if cited is None or citing is None or cited.provisions[0].kind != APPENDIX_KIND:
        return False
    return cited.regulation.name == citing.regulation.name


def _only_paragraph(citation: ProvisionCitation) -> int | None:
    """The paragraph (항) of its target that a citation means; None when it means more than that."""
    is_only = len(citation.targets) == 1 and _ONE_PARAGRAPH.search(citation.text) is not None
    return citation.paragraph if is_only else None


def _amended_days(collection: Collection, editions: Sequence[RegulationText]) -> dict[str, ProvisionDays]:
    """Name of a provision -> when it was amended, for the works of these editions; without addenda."""
    by_work: dict[uuid.UUID | None, list[RegulationText]] = {}
    for edition in editions:
        by_work.setdefault(edition.work_id, []).append(edition)
    days: dict[str, ProvisionDays] = {}
    named = [
        (source.name, source.regulation, source.provisions[0])
        for source in collection.sources.values()
        if source.provisions[0].kind != ADDENDUM_KIND
    ]
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
        if provision.first == NO_PASSAGE:
            days[name] = deletion_days(known[own].text[provision.start : provision.end])
        else:
            days[name] = provision_days(known[: own + 1], provision.label)  # later editions are not valid yet
    return days
