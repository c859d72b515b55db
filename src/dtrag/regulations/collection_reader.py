"""Reads and caches the regulations that a caller may see, as citations need them: names and outlines, no texts.

`read_ahead` fills the caches at the start and `IndexReading` after a write, so that the first questions are as fast as
later ones.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b

from cachetools import LRUCache

from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.documents import SearchResult
from dtrag.core.provisions import RegulationText
from dtrag.errors import DtragError
from dtrag.ports import Index, IndexSnapshot, RegulationStore, valid_day
from dtrag.regulations.citation_hops import read_cited_names
from dtrag.regulations.dated_texts import addendum_of
from dtrag.regulations.korean.collection import CitableProvision, Collection, Regulation
from dtrag.regulations.korean.term_coverage import CACHED_PIECES, piece_terms

CACHED_COLLECTIONS = 64
"""Scopes whose collections are cached."""
CACHED_REGULATIONS = 20_000
"""Regulations that are cached without their texts, for all scopes together."""
CACHED_WORKS = 1_024
"""Documents, by scope, of which the editions are cached."""
READ_AT_ONCE = 64
"""Regulations per read: what has been read stays cached when the caller's time limit ends the rest."""


class CollectionReader:
    """Collections by state of the index and scope.

    After every change of the index or the taxonomy, and on another day, the database lists the regulations of a scope
    again. Where they are the same, so is the collection, with all that was read in it; a regulation itself is read
    again only when its document was written again.
    """

    def __init__(self, store: RegulationStore) -> None:
        self._store = store
        self._collections: LRUCache[Hashable, Collection] = LRUCache(CACHED_COLLECTIONS)
        self._by_versions: LRUCache[bytes, Collection] = LRUCache(CACHED_COLLECTIONS)
        self._regulations: LRUCache[tuple[uuid.UUID, bytes], Regulation] = LRUCache(CACHED_REGULATIONS)
        self._editions: LRUCache[Hashable, Sequence[RegulationText]] = LRUCache(CACHED_WORKS)
        self._reading = asyncio.Lock()

    @property
    def store(self) -> RegulationStore:
        """Where the regulations are read from."""
        return self._store

    @property
    def in_use(self) -> bool:
        """Whether a collection was read in this process."""
        return bool(self._collections)

    async def read(self, snapshot: IndexSnapshot, scope: Scope) -> Collection:
        """The regulations in scope."""
        key = (snapshot.generation, snapshot.taxonomy.version, scope.nodes, valid_day(scope))
        if key not in self._collections:
            async with self._reading:  # a hundred questions after a start read them once, not a hundred times
                if key not in self._collections:
                    self._collections[key] = await self._read(scope)
        return self._collections[key]

    async def editions(
        self, document_ids: Sequence[uuid.UUID], snapshot: IndexSnapshot, scope: Scope
    ) -> list[RegulationText]:
        """As `RegulationStore.editions`, read once for each state of the index and scope."""
        state = (snapshot.generation, snapshot.taxonomy.version, scope.nodes)
        by_document = {key: self._editions[state, key] for key in document_ids if (state, key) in self._editions}
        unread = [key for key in document_ids if key not in by_document]
        if unread:
            of_work: dict[uuid.UUID | None, list[RegulationText]] = {}
            for edition in await self._store.editions(unread, scope):
                of_work.setdefault(edition.work_id, []).append(edition)
            for editions in of_work.values():
                for edition in editions:
                    if edition.document_id in unread:
                        by_document[edition.document_id] = self._editions[state, edition.document_id] = editions
        distinct = {editions[0].work_id: editions for editions in by_document.values()}
        return [edition for editions in distinct.values() for edition in editions]

    async def _read(self, scope: Scope) -> Collection:
        versions = await self._store.versions(scope)
        key = _digest(versions)
        collection = self._by_versions.get(key)
        if collection is None:
            collection = await self._of_versions(versions, scope)
            if len(collection.by_chunk) == len(versions):  # none was deleted in between
                self._by_versions[key] = collection
        return collection

    async def _of_versions(self, versions: Mapping[uuid.UUID, bytes], scope: Scope) -> Collection:
        regulations = {
            key: regulation
            for key, version in versions.items()
            if (regulation := self._regulations.get((key, version))) is not None
        }
        unread = [key for key in versions if key not in regulations]
        for first in range(0, len(unread), READ_AT_ONCE):
            texts = await self._store.read(unread[first : first + READ_AT_ONCE], scope)
            for regulation in await asyncio.to_thread(_without_texts, texts):
                regulations[regulation.document_id] = regulation
                self._regulations[regulation.document_id, versions[regulation.document_id]] = regulation
        present = [regulations[key] for key in versions if key in regulations]
        return await asyncio.to_thread(Collection.of, present, list(self._by_versions.values()))


def _digest(versions: Mapping[uuid.UUID, bytes]) -> bytes:
    """Of the regulations and their versions, in their order."""
    digest = blake2b(digest_size=32)
    for key, version in versions.items():
        digest.update(key.bytes + len(version).to_bytes(4, "big") + version)
    return digest.digest()


def _without_texts(texts: Sequence[RegulationText]) -> list[Regulation]:
    return [Regulation.of(text) for text in texts]


SETTLED_SECONDS = 0.1
"""Time after a write until the index is read again: several writes are read at once."""


class IndexReading:
    """Reads the index, and the collection of regulations, in the background after a write of this process.

    The next question then finds them read. A process that has not searched reads nothing.
    """

    def __init__(self, index: Index, collections: CollectionReader) -> None:
        self._index = index
        self._collections = collections
        self._is_stale = False
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Something was written."""
        self._is_stale = self._index.latest is not None
        if self._is_stale and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._read())

    async def close(self) -> None:
        """Stop reading."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _read(self) -> None:
        while self._is_stale:
            await asyncio.sleep(SETTLED_SECONDS)
            self._is_stale = False
            with suppress(DtragError, TimeoutError):  # the next question reads them, or reports why not
                snapshot = await self._index.snapshot()
                await self._index.statistics((), EVERYTHING)
                if self._collections.in_use:
                    await self._collections.read(snapshot, EVERYTHING)


ANALYSED_AT_ONCE = 50
"""Provisions per read: some 20 ms of processor time in a thread."""
PAUSE_SECONDS = 0.02
"""Pause after each read, for requests that arrive meanwhile."""


async def read_ahead(index: Index, collections: CollectionReader) -> int:
    """Fill the caches of passages, their terms and citations, and of addenda; returns the number of provisions.

    A larger collection than the caches can hold is not read. What the caches contain is never shown without a check
    in the scope of a caller.
    """
    snapshot = await index.snapshot()
    if not await index.holds_kind("regulation", EVERYTHING):
        return 0
    collection = await collections.read(snapshot, EVERYTHING)
    sources = list(collection.sources.values())
    if sum(len(source.chunk_ids) for source in sources) > CACHED_PIECES:
        return 0
    for first in range(0, len(sources), ANALYSED_AT_ONCE):
        part = sources[first : first + ANALYSED_AT_ONCE]
        keys = [key for source in part for key in source.chunk_ids]
        passages = await index.fetch(keys, EVERYTHING, snapshot.taxonomy)
        await asyncio.to_thread(_analyse, collection, part, passages)
        await asyncio.sleep(PAUSE_SECONDS)
    dated = [regulation.document_id for regulation in collection.regulations if regulation.work_id is not None]
    for first in range(0, len(dated), READ_AT_ONCE):
        editions = await collections.store.editions(dated[first : first + READ_AT_ONCE], EVERYTHING)
        await asyncio.to_thread(_read_addenda, editions)
        await asyncio.sleep(PAUSE_SECONDS)
    return len(sources)


def _read_addenda(editions: Sequence[RegulationText]) -> None:
    for edition in editions:
        for provision in edition.provisions:
            if provision.kind == "addendum":
                addendum_of(edition.text[provision.start : provision.end], provision.title)


def _analyse(collection: Collection, sources: Sequence[CitableProvision], passages: Mapping[str, SearchResult]) -> None:
    for passage in passages.values():
        piece_terms(passage.text)
    read_cited_names(collection, sources, passages, None)
