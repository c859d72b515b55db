"""What the best passages of regulations cite: the citations are followed, and the best cited provisions inserted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Generic, TypeVar, cast, overload

from dtrag.core.access.scope import Scope
from dtrag.core.documents import FollowedCitation, SearchResult, uuid_or_none
from dtrag.core.ranking.bm25 import LexicalQuery
from dtrag.core.text.questions import weighted_terms
from dtrag.current_app import active
from dtrag.errors import InvalidInput
from dtrag.ports import CitedProvision, Index, IndexSnapshot
from dtrag.regulations.dated_texts import fetch_of_day
from dtrag.regulations.korean.citations import cited_texts
from dtrag.regulations.korean.collection import CitableProvision, Collection
from dtrag.retrieval.config import LINKED_AFTER
from dtrag.retrieval.multihop import (
    MAX_HOPS,
    MIN_RELEVANCE,
    ChunkStore,
    CitationGraph,
    CitationWalk,
    MultiHopResult,
    RelevanceStore,
)

SOURCE_ARTICLES = 3
"""Articles among the first results whose citations are followed."""
MAX_CITED = 24
"""Provisions of one hop."""
INLINE_CHARACTERS = 5_000
"""Longest text whose citations are read at once (about 5 ms); longer ones are read in a thread."""
MAX_PIECES = 12
"""Passages of a cited provision from which an answer quotes."""
FORM = "별지"
FOLLOWED_KINDS = frozenset({"article", "appendix"})


async def follow_citations(
    index: Index, collection: Collection, results: Sequence[SearchResult], snapshot: IndexSnapshot, caller: Scope
) -> list[CitedProvision]:
    """The provisions that the first results cite, and those that these cite; without the first results themselves."""
    first = [source for result in results[:LINKED_AFTER] if (source := collection.source_at(result.chunk_id))]
    visited = {source.name for source in first}
    frontier = first[:SOURCE_ARTICLES]
    cited: list[CitedProvision] = []
    for _ in range(MAX_HOPS):
        names = await _cited_names(index, collection, frontier, snapshot, caller)
        reached: dict[str, CitableProvision] = {}
        for source in frontier:
            for target in _cited_sources(collection, source, names[source.name]):
                if target.name in visited or (len(reached) >= MAX_CITED and target.name not in reached):
                    continue
                reached[target.name] = target
                cited.append(CitedProvision(target.name, source.name, target.chunk_ids))
        frontier = list(reached.values())
        visited |= set(reached)
        if not frontier:
            break
    return cited


def followed_citations(collection: Collection, passages: Sequence[SearchResult]) -> list[FollowedCitation]:
    """The citations of other articles and appendices (but not forms) in the texts of the passages."""
    followed = []
    for passage in passages:
        source = collection.source_at(passage.chunk_id)
        if source is None:
            continue
        for citation in collection.citations_of(source, [passage.text]):
            for target in _cited_sources(collection, source, citation.targets):
                if not target.provisions[0].label.startswith(FORM):
                    keys = target.chunk_ids[:MAX_PIECES]
                    followed.append(FollowedCitation(source.name, passage.chunk_id, citation.start, citation.end, keys))
    return followed


Result_co = TypeVar("Result_co", bound="MultiHopResult | Awaitable[MultiHopResult]", covariant=True)


class MultiHopRetriever(Generic[Result_co]):
    """A `CitationWalk` over regulations; without stores it follows citations in the open app, and is
    awaited.

    `await MultiHopRetriever().retrieve("휴학", [result.chunk_id for result in results])`
    """

    @overload
    def __init__(
        self: MultiHopRetriever[MultiHopResult],
        vector_store: RelevanceStore,
        chunk_store: ChunkStore,
        *,
        cited: Callable[[str], Iterable[str]] = ...,
        max_hops: int = ...,
        least_relevance: float = ...,
    ) -> None: ...

    @overload
    def __init__(
        self: MultiHopRetriever[Awaitable[MultiHopResult]],
        *,
        max_hops: int = ...,
        least_relevance: float = ...,
    ) -> None: ...

    def __init__(
        self,
        vector_store: RelevanceStore | None = None,
        chunk_store: ChunkStore | None = None,
        *,
        cited: Callable[[str], Iterable[str]] = cited_texts,
        max_hops: int = MAX_HOPS,
        least_relevance: float = MIN_RELEVANCE,
    ) -> None:
        if (vector_store is None) != (chunk_store is None):
            raise InvalidInput("Pass vector_store and chunk_store, or neither of them to use the open app.")
        self._options = (max_hops, least_relevance)
        self._retriever: CitationWalk | None = None
        if vector_store is not None and chunk_store is not None:
            self._retriever = CitationWalk(
                vector_store, chunk_store, cited=cited, max_hops=max_hops, least_relevance=least_relevance
            )

    def retrieve(self, query: str, initial_results: Sequence[str]) -> Result_co:
        """The results with the passages that they cite, the more relevant first within a hop; ids are chunk ids.

        Raises `NoActiveApp`, of the open app.
        """
        if self._retriever is not None:
            return cast("Result_co", self._retriever.retrieve(query, initial_results))
        max_hops, least_relevance = self._options
        return cast("Result_co", active().regulations.hops(query, initial_results, max_hops, least_relevance))


async def hops_from(
    index: Index,
    collection: Collection,
    query: str,
    initial_results: Sequence[str],
    *,
    snapshot: IndexSnapshot,
    caller: Scope,
    max_hops: int = MAX_HOPS,
    least_relevance: float = MIN_RELEVANCE,
) -> MultiHopResult:
    """The passages that the initial passages cite, and those that these cite.

    The relevance is the lexical score as a share of the highest of the initial passages, at most 1.
    """
    keys = [key for key in initial_results if _is_chunk_id(key)]
    passages = await fetch_of_day(index, keys, caller, snapshot.taxonomy)
    results = [passages[key] for key in keys if key in passages]
    cited = await follow_citations(index, collection, results, snapshot, caller)
    terms = weighted_terms(query)
    lexical = LexicalQuery.of(terms, await index.statistics([term for term, _ in terms], caller))
    pieces = {provision.name: list(provision.chunk_ids) for provision in cited}
    scores = await index.lexical_scores(
        lexical, [*passages, *(key for each in pieces.values() for key in each)], caller
    )
    highest = max((scores.get(key, 0.0) for key in passages), default=0.0)
    best = {name: max(each, key=lambda key: (scores.get(key, 0.0), key)) for name, each in pieces.items()}
    relevance = {name: min(1.0, scores.get(key, 0.0) / highest) if highest else 0.0 for name, key in best.items()}
    graph = CitationGraph(cited, relevance)
    retriever = CitationWalk(graph, graph, cited=graph.cited, max_hops=max_hops, least_relevance=least_relevance)
    traversal = retriever.retrieve(query, graph.initial())
    sources = {source.name: result.chunk_id for result in results if (source := collection.source_at(result.chunk_id))}
    reached = tuple(
        replace(hop, chunk_id=best[hop.chunk_id], source_id=best.get(hop.source_id) or sources[hop.source_id])
        for hop in traversal.hops
    )
    return MultiHopResult(
        tuple(dict.fromkeys(initial_results)), tuple(hop.chunk_id for hop in reached), traversal.hops_performed, reached
    )


def _is_chunk_id(key: str) -> bool:
    document_id, _, ordinal = key.rpartition(":")
    return uuid_or_none(document_id) is not None and ordinal.isdecimal()


async def _cited_names(
    index: Index, collection: Collection, sources: Sequence[CitableProvision], snapshot: IndexSnapshot, caller: Scope
) -> dict[str, Sequence[str]]:
    """Name -> names of the provisions that it cites; none for one that has been deleted since.

    The text of a provision is read once for each collection. Long texts are read in a thread, so that other requests
    need not wait; when the caller's time ends before that, a later search finds the result.
    """
    cached = {source.name: collection.cached_cited_names(source, caller.as_of) for source in sources}
    names = {name: cited for name, cited in cached.items() if cited is not None}
    unread = [source for source in sources if source.name not in names]
    if unread:
        keys = [key for source in unread for key in source.chunk_ids]
        passages = await fetch_of_day(index, keys, caller, snapshot.taxonomy)
        if sum(len(passage.text) for passage in passages.values()) > INLINE_CHARACTERS:
            names |= await asyncio.to_thread(read_cited_names, collection, unread, passages, caller.as_of)
        else:
            names |= read_cited_names(collection, unread, passages, caller.as_of)
    return names


def read_cited_names(
    collection: Collection,
    sources: Sequence[CitableProvision],
    passages: Mapping[str, SearchResult],
    day: date | None,
) -> dict[str, Sequence[str]]:
    """Name -> names of the provisions that it cites; cached where all its passages are there."""
    names: dict[str, Sequence[str]] = {}
    for source in sources:
        pieces = [passages[key].text for key in source.chunk_ids if key in passages]
        names[source.name] = collection.cited_names(source, "\n".join(pieces))
        if len(pieces) == len(source.chunk_ids):
            collection.remember_cited_names(source, day, names[source.name])
    return names


def _cited_sources(
    collection: Collection, source: CitableProvision, names: Sequence[str]
) -> Iterator[CitableProvision]:
    """The articles and appendices of these names, each as often as it is cited."""
    for name in names:
        target = collection.source(name)
        if target is not None and target.provisions[0].kind in FOLLOWED_KINDS and target.name != source.name:
            yield target
