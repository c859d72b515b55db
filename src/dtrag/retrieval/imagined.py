"""Passages whose imagined questions are like the question: by the vectors of both, else by their words.

The questions themselves are not read here: only keys and similarities of passages in the scope of the target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dtrag.core.ranking.bm25 import idf
from dtrag.core.text.analysis import Analyzer
from dtrag.core.text.questions import content, weighted_terms
from dtrag.ports import Index, similarity
from dtrag.retrieval.config import TimeLimits
from dtrag.retrieval.request import SearchArguments, SearchTarget
from dtrag.retrieval.retrievers import RetrieverOutcome

NEAREST_QUESTIONS = 20
"""Imagined questions nearest to the question, whose passages become candidates if they are near enough."""
NEAR, SAME = 0.52, 0.76
"""Similarities from which an imagined question is near, and means the same; chosen with the questions of
bench/README.md."""
NEAR_BY_WORDS, SAME_BY_WORDS = 0.4, 0.85
"""As `NEAR` and `SAME`, for the share of the question's words."""
WORDS = 2 / 3
"""What shared words count, compared with vectors: measured as the best of .33, .67 and 1."""


@dataclass(slots=True)
class ImaginedMatches(RetrieverOutcome):
    """Chunk id -> similarity of its nearest imagined question; nothing where no passage in scope has any.

    `scores` are the similarities in [0, 1] of those that are near, `raw_scores` their cosines or shares of words.
    """

    by_words: bool = False


class ImaginedRetriever:
    """Finds the passages whose imagined questions are nearest to the question."""

    def __init__(self, index: Index, analyzer: Analyzer) -> None:
        self._index = index
        self._analyzer = analyzer

    async def retrieve(
        self, request: SearchArguments, target: SearchTarget, limits: TimeLimits, vector: RetrieverOutcome
    ) -> ImaginedMatches:
        """The passages of the nearest questions; by words where the question has no vector."""
        outcome = ImaginedMatches(vector=vector.vector, model=vector.model)
        if request.mode != "hybrid" or not target.snapshot.has_imagined(target.scope):
            outcome.skipped = True
            return outcome
        outcome.by_words = vector.vector is None or vector.model is None
        async with outcome.isolated(limits.vector):
            index, scope, filters = self._index, target.scope, target.filters
            if outcome.by_words:
                terms = await self._shares(request.query, target)
                outcome.raw_scores = await index.imagined_by_words(terms, scope, filters, NEAREST_QUESTIONS)
                outcome.scores = _near(outcome.raw_scores, NEAR_BY_WORDS)
            elif vector.vector is not None and vector.model is not None:
                outcome.raw_scores = await index.imagined(
                    vector.vector, vector.model.id, scope, filters, NEAREST_QUESTIONS
                )
                outcome.scores = _near(similarity(vector.model, outcome.raw_scores), NEAR)
        return outcome

    async def _shares(self, query: str, target: SearchTarget) -> list[tuple[int, float]]:
        """The terms of the question's content with their shares of its weight, in the caller's statistics."""
        weighted = dict(weighted_terms(content(query), self._analyzer))
        statistics = await self._index.statistics(list(weighted), target.caller)
        frequencies = statistics.document_frequencies(list(weighted))
        chunks = max(1, statistics.chunks)
        weights = {
            term: weight * idf(frequency, chunks)
            for (term, weight), frequency in zip(weighted.items(), frequencies, strict=True)
        }
        total = sum(weights.values()) or 1.0
        return [(term, weight / total) for term, weight in weights.items()]


def _near(scores: Mapping[str, float], least: float) -> dict[str, float]:
    return {key: min(1.0, score) for key, score in scores.items() if score >= least}


async def nearness(
    index: Index, target: SearchTarget, matches: ImaginedMatches, passages: Sequence[str]
) -> dict[str, float]:
    """Chunk id -> how near its imagined questions are, from 0 (not near) to 1, of those of these passages with some.

    Nothing where no imagined question is near. By words of the nearest passages only.
    """
    if not matches.candidates:
        return {}
    if matches.by_words or matches.vector is None or matches.model is None:
        return {key: WORDS * _share(score, NEAR_BY_WORDS, SAME_BY_WORDS) for key, score in matches.scores.items()}
    cosines = await index.imagined_scores(matches.vector, matches.model.id, passages, target.scope)
    return {key: _share(score, NEAR, SAME) for key, score in similarity(matches.model, cosines).items()}


def _share(score: float, least: float, most: float) -> float:
    return min(1.0, max(0.0, (score - least) / (most - least)))
