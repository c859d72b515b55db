"""Reads regulations ahead, so that the first questions about them are as fast as later ones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from dtrag.core.access.scope import EVERYTHING
from dtrag.core.documents import SearchResult
from dtrag.packs.regulation_ko.collection import CitableProvision, Collection
from dtrag.packs.regulation_ko.term_coverage import CACHED_ARTICLES, article_terms
from dtrag.ports import Index
from dtrag.retrieval.regulation_collection import CollectionReader
from dtrag.retrieval.regulation_references import chunk_ids

READ_AT_ONCE = 50
"""Provisions per read: some 20 ms of processor time in a thread."""
PAUSE_SECONDS = 0.02
"""Pause after each read, for requests that arrive meanwhile."""


async def read_ahead(index: Index, collections: CollectionReader) -> int:
    """Fill the caches of passages, of the terms of articles and of their citations; returns the number of provisions.

    A larger collection than the caches can hold is not read. What the caches contain is never shown without a check
    in the scope of a caller.
    """
    snapshot = await index.snapshot()
    if not await index.holds_kind("regulation", EVERYTHING):
        return 0
    collection = await collections.read(snapshot, EVERYTHING)
    sources = list(collection.sources.values())
    if len(sources) > CACHED_ARTICLES:
        return 0
    for first in range(0, len(sources), READ_AT_ONCE):
        part = sources[first : first + READ_AT_ONCE]
        keys = [key for source in part for key in chunk_ids(source)]
        passages = await index.fetch(keys, EVERYTHING, snapshot.taxonomy)
        await asyncio.to_thread(_analyse, collection, part, passages)
        await asyncio.sleep(PAUSE_SECONDS)
    return len(sources)


def _analyse(collection: Collection, sources: Sequence[CitableProvision], passages: Mapping[str, SearchResult]) -> None:
    for source in sources:
        pieces = [passages[key] for key in chunk_ids(source) if key in passages]
        text = "\n".join(piece.text for piece in pieces)
        if pieces:
            metadata = pieces[0].metadata
            article_terms(str(metadata.get("regulation") or ""), str(metadata.get("article_title") or ""), "", text)
        if collection.cached_cited_names(source) is None:
            collection.cited_names(source, text)
