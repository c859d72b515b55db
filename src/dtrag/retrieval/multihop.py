"""The second hop: documents that the best passages mention by their titles are inserted into the results.

A question that needs two documents often shares its words with only one of them, which names the other. With the
documents that the best passages mention at ranks eight to ten, all supports of a question were among the first ten
results for 95 % of hotpotqa100-dev with wiki-distractors instead of 78 %. The first seven results never move, and the
figures of data sets whose passages mention no titles stay the same to the last digit (bench/README.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dtrag.core.documents import SearchResult
from dtrag.core.text.passage_title_mentions import mentioned_numbers
from dtrag.ports import Index, similarity
from dtrag.retrieval.day_texts import fetch_of_day
from dtrag.retrieval.hybrid import Ranking
from dtrag.retrieval.request import SearchTarget
from dtrag.retrieval.retrievers import RetrieverOutcome
from dtrag.retrieval.stage_sizes import LINKED_AFTER, LINKED_PASSAGES

SOURCE_DOCUMENTS = 3
"""Documents whose mentions are followed; with 1 the share above is .02 lower."""
PASSAGES_PER_DOCUMENT = 20
"""Passages of a mentioned document that are scored; the best one is inserted."""


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
    source_titles: dict[int, str] = {}
    first_of_document: dict[str, SearchResult] = {}
    for result in results[:LINKED_AFTER]:
        first_of_document.setdefault(result.chunk_id.rpartition(":")[0], result)
    for result in list(first_of_document.values())[:SOURCE_DOCUMENTS]:
        for number in mentioned_numbers(result.text):
            source_titles.setdefault(number, result.title)
    documents = {
        number: [key for key in keys[:PASSAGES_PER_DOCUMENT] if key.rpartition(":")[0] not in first_of_document]
        for number, keys in (await index.titled(list(source_titles), target.scope)).items()
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
        LinkedPassage(key, lexical[key], vector.get(key, 0.0), source_titles[number])
        for _, key, number in ranked[:LINKED_PASSAGES]
    ]


async def with_linked(
    index: Index, target: SearchTarget, results: Sequence[SearchResult], linked: Sequence[LinkedPassage]
) -> list[SearchResult]:
    """The results with the linked passages after the first `LINKED_AFTER`, with the score of the result before them."""
    if not linked:
        return list(results)
    keys = [passage.chunk_id for passage in linked]
    passages = await fetch_of_day(index, keys, target.scope, target.snapshot.taxonomy, target.filters)
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
    sums = await index.lexical_scores(query, passages, target.scope)
    return {key: query.share(score) for key, score in sums.items()}


async def vector_shares(
    index: Index, target: SearchTarget, outcome: RetrieverOutcome, passages: Sequence[str]
) -> dict[str, float]:
    """Chunk id -> vector score in [0, 1], of the passages in scope that have a vector."""
    if outcome.vector is None or outcome.model is None:
        return {}
    cosines = await index.vector_scores(outcome.vector, outcome.model.id, passages, target.scope)
    return similarity(outcome.model, cosines)
