"""The second hop: documents that the best passages mention by their titles are inserted into the results.

A question that needs two documents often shares its words with only one of them, which names the other. With the
documents that the best passages mention at ranks eight to ten, all supports of a question were among the first ten
results for 95 % of hotpotqa100-dev with wiki-distractors instead of 78 %. The first seven results never move, and the
figures of data sets whose passages mention no titles stay the same to the last digit (bench/README.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from dtrag.core.documents import SearchResult
from dtrag.core.text.passage_title_mentions import mentioned_numbers
from dtrag.ports import CitedProvision, Index, similarity
from dtrag.retrieval.config import LINKED_AFTER, LINKED_PASSAGES
from dtrag.retrieval.hybrid import Ranking
from dtrag.retrieval.request import SearchTarget
from dtrag.retrieval.results import Passages
from dtrag.retrieval.retrievers import RetrieverOutcome

SOURCE_DOCUMENTS = 3
"""Documents whose mentions are followed; with 1 the share above is .02 lower."""
PASSAGES_PER_DOCUMENT = 20
"""Passages of a mentioned document that are scored; the best one is inserted."""
MAX_HOPS = 2
MIN_RELEVANCE = 0.5
"""Cited passages less relevant to the question than this are left out (SPEC-RAG-SEARCH-001, TAG-004)."""
MAX_SOURCES = 20
"""Passages whose citations are followed in one hop."""


@dataclass(frozen=True, slots=True)
class LinkedPassage:
    """The best passage of a mentioned document, with its scores, and the title of the document that mentions it.

    `relation` is the metadata key of the result that holds the title.
    """

    chunk_id: str
    bm25_score: float
    vector_score: float
    source: str
    relation: str = "mentioned_by"


async def mentioned_passages(
    index: Index, target: SearchTarget, ranking: Ranking, results: Sequence[SearchResult], weights: tuple[float, float]
) -> list[LinkedPassage]:
    """The best passages of documents that the first results mention, the most relevant first.

    `weights` are those of the lexical and the vector score. Left out: documents that have a passage among the first
    results already, and documents that share their title with another one.
    """
    first_of_document: dict[str, SearchResult] = {}
    for result in results[:LINKED_AFTER]:
        first_of_document.setdefault(result.chunk_id.rpartition(":")[0], result)
    sources = [
        (result.title, mentioned_numbers(result.text)) for result in list(first_of_document.values())[:SOURCE_DOCUMENTS]
    ]
    titled = await index.titled(np.concatenate([numbers for _, numbers in sources]), target.scope) if sources else {}
    documents = {
        number: [key for key in keys[:PASSAGES_PER_DOCUMENT] if key.rpartition(":")[0] not in first_of_document]
        for number, keys in titled.items()
    }
    passages = [key for keys in documents.values() for key in keys]
    if not passages:
        return []
    lexical = await lexical_shares(index, target, ranking.lexical, passages)
    vector = await vector_shares(index, target, ranking.vector, passages)
    scores = {key: weights[0] * lexical.get(key, 0.0) + weights[1] * vector.get(key, 0.0) for key in lexical}
    best_passages = [
        (max((key for key in keys if key in scores), key=lambda key: (scores[key], key), default=None), number)
        for number, keys in documents.items()
    ]
    ranked = sorted((-scores[key], key, number) for key, number in best_passages if key is not None)
    return [
        LinkedPassage(key, lexical[key], vector.get(key, 0.0), next(title for title, own in sources if number in own))
        for _, key, number in ranked[:LINKED_PASSAGES]
    ]


async def cited_passages(
    index: Index,
    target: SearchTarget,
    ranking: Ranking,
    results: Sequence[SearchResult],
    cited: Sequence[CitedProvision],
    *,
    weights: tuple[float, float],
) -> list[LinkedPassage]:
    """The best passages of the cited provisions, the most relevant first.

    The relevance is the weighted sum of lexical and vector score, as a share of the highest among the first results.
    Of a provision that has a passage among the results, that passage is chosen.
    """
    keys = list(dict.fromkeys(key for provision in cited for key in provision.chunk_ids))
    highest = max(
        (_weighted(weights, result.bm25_score, result.vector_score) for result in results[:LINKED_AFTER]), default=0.0
    )
    if not keys or highest <= 0:
        return []
    lexical = await lexical_shares(index, target, ranking.lexical, keys)
    vector = await vector_shares(index, target, ranking.vector, keys)
    scores = {key: _weighted(weights, share, vector.get(key, 0.0)) / highest for key, share in lexical.items()}
    present = {result.chunk_id for result in results}
    pieces = {provision.name: [key for key in provision.chunk_ids if key in scores] for provision in cited}
    relevance = {name: max((scores[key] for key in keys), default=0.0) for name, keys in pieces.items()}
    graph = CitationGraph(cited, relevance)
    reached = CitationWalk(graph, graph, cited=graph.cited).retrieve("", graph.initial()).hops
    passages = []
    for hop in sorted(reached, key=lambda hop: (-hop.relevance, hop.chunk_id))[:LINKED_PASSAGES]:
        best = max(pieces[hop.chunk_id], key=lambda key: (key in present, scores[key], key))
        passages.append(LinkedPassage(best, lexical[best], vector.get(best, 0.0), hop.source_id, "cited_by"))
    return passages


async def with_linked(
    texts: Passages, target: SearchTarget, results: Sequence[SearchResult], linked: Sequence[LinkedPassage]
) -> list[SearchResult]:
    """The results with the linked passages after the first `LINKED_AFTER`, with the score of the result before them."""
    if not linked:
        return list(results)
    keys = [passage.chunk_id for passage in linked]
    passages = await texts.of_day(keys, target)
    score = results[min(LINKED_AFTER, len(results)) - 1].hybrid_score
    inserted = [
        replace(
            passages[link.chunk_id],
            bm25_score=link.bm25_score,
            vector_score=link.vector_score,
            hybrid_score=score,
            metadata={**passages[link.chunk_id].metadata, link.relation: link.source},
        )
        for link in linked
        if link.chunk_id in passages
    ]
    moved = {result.chunk_id for result in inserted}
    rest = [result for result in results if result.chunk_id not in moved]
    return [*rest[:LINKED_AFTER], *inserted, *rest[LINKED_AFTER:]]


async def lexical_shares(
    index: Index, target: SearchTarget, outcome: RetrieverOutcome, passages: Sequence[str]
) -> dict[str, float]:
    """Chunk id -> lexical score in [0, 1], of the passages in scope."""
    query = outcome.lexical_query
    if query is None:
        return dict.fromkeys(passages, 0.0)
    return query.shares(await index.lexical_scores(query, passages, target.scope))


async def vector_shares(
    index: Index, target: SearchTarget, outcome: RetrieverOutcome, passages: Sequence[str]
) -> dict[str, float]:
    """Chunk id -> vector score in [0, 1], of the passages in scope that have a vector."""
    if outcome.vector is None or outcome.model is None:
        return {}
    cosines = await index.vector_scores(outcome.vector, outcome.model.id, passages, target.scope)
    return similarity(outcome.model, cosines)


def _weighted(weights: tuple[float, float], lexical: float, vector: float) -> float:
    return weights[0] * lexical + weights[1] * vector


class RelevanceStore(Protocol):
    """Scores how relevant passages are to a question."""

    def similarity(self, query: str, ids: Sequence[str]) -> Mapping[str, float]:
        """Id -> relevance in [0, 1]; an unknown id may be missing."""


class ChunkStore(Protocol):
    """Contains passages, and resolves citations to passages."""

    def get(self, chunk_id: str) -> str | None:
        """The text of a passage; None when it is not in scope."""

    def resolve(self, citation: str, source_id: str) -> str | None:
        """The id of the passage that `citation` (`제15조`, `학칙 제20조`) in the passage `source_id` means, or None."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A passage that a citation leads to: `citation` is the text of the citation in the passage `source_id`."""

    chunk_id: str
    source_id: str
    citation: str
    relevance: float
    number: int


@dataclass(frozen=True, slots=True)
class MultiHopResult:
    """`all_results` are the initial results and then those of the hops, each once; `hop_results` the latter."""

    initial_results: tuple[str, ...]
    hop_results: tuple[str, ...] = ()
    hops_performed: int = 0
    hops: tuple[Hop, ...] = field(default=())

    @property
    def all_results(self) -> list[str]:
        """Ids, the initial results first."""
        return [*self.initial_results, *self.hop_results]


class CitationWalk:
    """Follows the citations of passages; cycles end because no passage is read twice."""

    def __init__(
        self,
        vector_store: RelevanceStore,
        chunk_store: ChunkStore,
        *,
        cited: Callable[[str], Iterable[str]],
        max_hops: int = MAX_HOPS,
        least_relevance: float = MIN_RELEVANCE,
    ) -> None:
        self._vector_store = vector_store
        self._chunk_store = chunk_store
        self._cited = cited
        self._max_hops = min(max_hops, MAX_HOPS)
        self._min_relevance = least_relevance

    def retrieve(self, query: str, initial_results: Sequence[str]) -> MultiHopResult:
        """The results with the passages that they cite, the more relevant first within a hop."""
        initial = tuple(dict.fromkeys(initial_results))
        visited, frontier, hops = set(initial), list(initial), list[Hop]()
        performed = 0
        for number in range(1, self._max_hops + 1):
            reached = self._reached(query, frontier[:MAX_SOURCES], visited, number)
            if not reached:
                break
            performed = number
            hops += reached
            frontier = [hop.chunk_id for hop in reached]
            visited |= set(frontier)
        return MultiHopResult(initial, tuple(hop.chunk_id for hop in hops), performed, tuple(hops))

    def _reached(self, query: str, sources: Sequence[str], visited: set[str], number: int) -> list[Hop]:
        targets: dict[str, tuple[str, str]] = {}
        for source in sources:
            for citation in self._cited(self._chunk_store.get(source) or ""):
                target = self._chunk_store.resolve(citation, source)
                if target is not None and target not in visited:
                    targets.setdefault(target, (source, citation))
        if not targets:
            return []
        relevance = self._vector_store.similarity(query, list(targets))
        reached = [
            Hop(target, source, citation, relevance.get(target, 0.0), number)
            for target, (source, citation) in targets.items()
            if relevance.get(target, 0.0) >= self._min_relevance
        ]
        return sorted(reached, key=lambda hop: (-hop.relevance, hop.chunk_id))


class CitationGraph:
    """Citations in the form of the stores of a `CitationWalk`; ids are names of provisions (`학칙 제21조`)."""

    def __init__(self, cited: Sequence[CitedProvision], relevance: Mapping[str, float]) -> None:
        self._targets: dict[str, list[str]] = {}
        for provision in cited:
            self._targets.setdefault(provision.source, []).append(provision.name)
        self._relevance = relevance

    def initial(self) -> list[str]:
        return [name for name in self._targets if name not in self._relevance]

    def get(self, chunk_id: str) -> str:
        return chunk_id

    def cited(self, text: str) -> Sequence[str]:
        return self._targets.get(text, ())

    def resolve(self, citation: str, source_id: str) -> str:
        return citation

    def similarity(self, query: str, ids: Sequence[str]) -> Mapping[str, float]:
        return {name: self._relevance[name] for name in ids}
