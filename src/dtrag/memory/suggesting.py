"""Suggestions: the cases whose questions are most similar to a question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dtrag.core.access.scope import Scope
from dtrag.core.cases.case import Case, CaseQuery, ScoredCases, SimilarityMethod
from dtrag.core.cases.similarity import cosine, order, similarity, with_words
from dtrag.core.statements import stated
from dtrag.memory.question_vectors import QuestionVectors
from dtrag.ports import Embedder
from dtrag.ports import similarity as share_of
from dtrag.ports.cases import CaseStore

EMBEDDER_FAILED = stated("words_compared", "The embedder failed: words were compared.")
CANDIDATES = 4
"""Candidates of embeddings and of words for one suggestion by SEMANTIC."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """The most similar cases, the similarity that was used, and notes for the reader."""

    cases: ScoredCases
    method: SimilarityMethod
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suggester:
    """Finds similar cases in one store."""

    store: CaseStore
    vectors: QuestionVectors

    async def nearest(self, query: CaseQuery, scope: Scope) -> Nearest:
        """The cases nearest to the query, in its scope.

        SEMANTIC is combined with the similarity of words, over the best candidates of both. Without a vector of the
        question only words are compared (COSINE), with a note.
        """
        if query.method is not SimilarityMethod.SEMANTIC:
            return Nearest(await self.store.nearest(query, scope), query.method)
        by_words = replace(query, method=SimilarityMethod.COSINE)
        vector = await self.vectors.of(query.text)
        if vector is None:
            reason = self.vectors.unsupported_reason(query.text) or EMBEDDER_FAILED
            return Nearest(await self.store.nearest(by_words, scope), SimilarityMethod.COSINE, (reason,))
        query = replace(query, vector=vector)
        more = query.limit * CANDIDATES
        combined = _combined(
            query,
            await self.store.nearest(replace(query, limit=more), scope),
            await self.store.nearest(replace(by_words, limit=more), scope),
            self.vectors.model(query.text),
        )
        return Nearest(combined[: query.limit], SimilarityMethod.SEMANTIC)


def _combined(
    query: CaseQuery, by_meaning: ScoredCases, by_words: ScoredCases, model: Embedder | None
) -> list[tuple[Case, float]]:
    """All candidates with the combined similarity, best first."""
    cases = {case.case_id: case for case, _ in (*by_meaning, *by_words)}
    near = {case.case_id: score for case, score in by_meaning}
    meaning = share_of(
        model, {key: near[key] if key in near else cosine(query.vector, case.vector) for key, case in cases.items()}
    )
    words = {case.case_id: score for case, score in by_words}
    scored = [(case, with_words(meaning[key], _shared_words(query, case, words))) for key, case in cases.items()]
    return sorted(scored, key=lambda pair: order(*pair))


def _shared_words(query: CaseQuery, case: Case, words: Mapping[str, float]) -> float:
    if case.case_id in words:
        return words[case.case_id]
    return similarity(query.text, case.query, SimilarityMethod.COSINE)
