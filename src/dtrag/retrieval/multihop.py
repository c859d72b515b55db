"""The second hop: documents that the best passages mention by their titles are put among the results.

A question that needs two documents often shares its words with only one of them, which names the other. With the
documents that the best passages mention at the eighth to tenth place, all supports of a question were among the first
ten for 95 % of hotpotqa100-dev with wiki-distractors instead of 78 %; the first seven never move, and sets whose
passages name no titles keep their figures to the last digit (bench/README.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dtrag.core.documents import SearchResult
from dtrag.core.text.title_mentions import mentioned_numbers
from dtrag.ports import Index
from dtrag.retrieval.request import Reach
from dtrag.retrieval.results import Ranking
from dtrag.retrieval.retrievers import Leg

SOURCES = 3
"""Documents whose best passages' mentions are followed; 1 gives .02 less."""
FIRST_PLACE = 7
"""Results that stay before what is mentioned: the first places belong to what answers the question itself."""
MOST = 3
"""Mentioned documents that are put in."""
PASSAGES = 20
"""Passages of a mentioned document that are looked at for the best."""


@dataclass(frozen=True, slots=True)
class Mention:
    """The best passage of a mentioned document, with its scores, and the title of the document that mentions it.

    `relation` is the key of the result's metadata that has the title.
    """

    chunk_id: str
    bm25_score: float
    vector_score: float
    source: str
    relation: str = "mentioned_by"


async def mentioned(
    index: Index, reach: Reach, ranking: Ranking, best: Sequence[SearchResult], weights: tuple[float, float]
) -> list[Mention]:
    """The documents that the first of `best` mention, the most relevant first.

    `weights` are those of words and meaning. Documents of the first places themselves, and those that share their
    title with another, are left out.
    """
    named: dict[int, str] = {}
    own: dict[str, SearchResult] = {}
    for result in best[:FIRST_PLACE]:
        own.setdefault(result.chunk_id.rpartition(":")[0], result)
    for result in list(own.values())[:SOURCES]:
        for number in mentioned_numbers(result.text):
            named.setdefault(number, result.title)
    linked = {
        number: [key for key in passages[:PASSAGES] if key.rpartition(":")[0] not in own]
        for number, passages in (await index.titled(list(named), reach.scope)).items()
    }
    passages = [key for found in linked.values() for key in found]
    if not passages:
        return []
    lexical = await lexical_shares(index, reach, ranking.lexical, passages)
    vector = await vector_shares(index, reach, ranking.vector, passages)
    mixed = {key: weights[0] * lexical.get(key, 0.0) + weights[1] * vector.get(key, 0.0) for key in lexical}
    chosen = [
        (max((key for key in found if key in mixed), key=lambda key: (mixed[key], key), default=None), number)
        for number, found in linked.items()
    ]
    ranked = sorted((-mixed[key], key, number) for key, number in chosen if key is not None)
    return [Mention(key, lexical[key], vector.get(key, 0.0), named[number]) for _, key, number in ranked[:MOST]]


async def inserted(
    index: Index, reach: Reach, results: Sequence[SearchResult], found: Sequence[Mention]
) -> list[SearchResult]:
    """The results with the mentioned passages behind the first places; they take the score of the one before them."""
    if not found:
        return list(results)
    keys = [mention.chunk_id for mention in found]
    there = await index.fetch(keys, reach.scope, reach.snapshot.taxonomy, reach.filters)
    score = results[FIRST_PLACE - 1].hybrid_score if len(results) >= FIRST_PLACE else results[-1].hybrid_score
    extra = [
        replace(
            there[mention.chunk_id],
            bm25_score=mention.bm25_score,
            vector_score=mention.vector_score,
            hybrid_score=score,
            metadata={**there[mention.chunk_id].metadata, mention.relation: mention.source},
        )
        for mention in found
        if mention.chunk_id in there
    ]
    moved = {result.chunk_id for result in extra}
    rest = [result for result in results if result.chunk_id not in moved]
    return [*rest[:FIRST_PLACE], *extra, *rest[FIRST_PLACE:]]


async def lexical_shares(index: Index, reach: Reach, leg: Leg, passages: Sequence[str]) -> dict[str, float]:
    """Chunk id -> lexical score in [0, 1] of those of the passages that are in reach."""
    if leg.asked is None:
        return dict.fromkeys(passages, 0.0)
    found = await index.lexical_scores(leg.asked, passages, reach.scope)
    return {key: leg.asked.share(score) for key, score in found.items()}


async def vector_shares(index: Index, reach: Reach, leg: Leg, passages: Sequence[str]) -> dict[str, float]:
    """Chunk id -> cosine in [0, 1] of those of the passages that are in reach and have a vector."""
    if leg.vector is None:
        return {}
    found = await index.vector_scores(leg.vector, passages, reach.scope)
    return {key: min(1.0, max(0.0, score)) for key, score in found.items()}
