"""The cases whose questions are most similar to a question: for suggestions, and to find those that ask the same.

Questions are compared by words and by vectors of the model for their language (`SimilarityMethod.SEMANTIC`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from dtrag import embedding_service
from dtrag.core.access.scope import Scope
from dtrag.core.cases.case import Case, CaseQuery, QuestionVector, ScoredCases, SimilarityMethod
from dtrag.core.cases.similarity import comparable, cosine, order, similarity, with_words
from dtrag.core.statements import Statement, Statements, stated
from dtrag.core.text.analysis import language
from dtrag.errors import DtragError
from dtrag.ports import Embedder, model_for
from dtrag.ports import similarity as share_of
from dtrag.ports.cases import CaseStore

EMBEDDER_FAILED = stated("words_compared", "The embedder failed: words were compared.")
CANDIDATES = 4
"""Candidates of embeddings and of words for one suggestion by SEMANTIC."""
BATCH = 64
"""Questions that are embedded between two changes of the store."""
FIRST_S = 1.0
"""Longest time that the first suggestion of a process waits for missing vectors, in seconds: 300 questions or more."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QuestionVectors:
    """Embeds questions with one embedder; each within `seconds`."""

    embedder: Embedder | None
    seconds: float = 5.0

    def model(self, question: str) -> Embedder | None:
        """The model for the question's language."""
        return model_for(self.embedder, language(question))

    def unsupported_reason(self, question: str) -> Statement | None:
        """Why the question cannot be embedded, as a sentence; None when it can."""
        if self.embedder is None:
            return Statement("", "No embedder is available: questions were compared by words. See `dtrag models list`.")
        if self.model(question) is not None:
            return None
        code = language(question)
        text = f"The embedder {self.embedder.id} does not support the language of the question ({code}): words."
        return Statement("", text)

    @property
    def spaces(self) -> frozenset[str]:
        """The ids of its models, as far as they are known: those for English, for Korean and for other languages."""
        models = (model_for(self.embedder, code) for code in ("en", "ko", "und"))
        return frozenset(model.id for model in models if model is not None)

    async def of(self, question: str) -> QuestionVector | None:
        """The vector; None when the question cannot be embedded, or the embedder fails."""
        model = self.model(question)
        if model is None:
            return None
        try:
            async with asyncio.timeout(self.seconds):
                vector = await embedding_service.generate_embedding(question, embedder=model)
        except (DtragError, OSError, RuntimeError, ValueError) as error:  # also `TimeoutError`: words are compared
            _LOG.warning("a question could not be embedded (%s)", type(error).__name__)
            return None
        if vector is None or not np.isfinite(vector).all():
            return None
        return QuestionVector(model.id, np.ascontiguousarray(vector, np.float32).tobytes())


@dataclass(frozen=True, slots=True)
class Nearest:
    """The most similar cases, the similarity that was used, and notes for the reader."""

    cases: ScoredCases
    method: SimilarityMethod
    notes: Statements = ()


@dataclass(frozen=True, slots=True)
class CandidateCases:
    """The cases nearest by words and by meaning, the latter by `model`. None: the question has no vector."""

    query: CaseQuery
    by_words: ScoredCases
    by_meaning: ScoredCases = ()
    model: Embedder | None = None

    def combined(self) -> list[tuple[Case, float]]:
        """All of them with the combined similarity, best first; of a case without a comparable vector that of words."""
        cases = {case.case_id: case for case, _ in (*self.by_meaning, *self.by_words)}
        near = {case.case_id: score for case, score in self.by_meaning}
        vector = self.query.vector
        cosines = {
            key: near[key] if key in near else cosine(vector, case.vector)
            for key, case in cases.items()
            if comparable(vector, case.vector)
        }
        meaning: Mapping[str, float] = share_of(self.model, cosines)
        words = {case.case_id: score for case, score in self.by_words}
        scored = [
            (case, with_words(meaning.get(key), _shared_words(self.query, case, words))) for key, case in cases.items()
        ]
        return sorted(scored, key=lambda pair: order(*pair))


class Suggester:
    """Finds similar cases in one store.

    Cases without a vector of the current models get one in the background, once for each process: those of an earlier
    version or another embedder, and those that were added while it failed.
    """

    def __init__(self, store: CaseStore, vectors: QuestionVectors = QuestionVectors(None)) -> None:
        self.vectors = vectors
        self._store = store
        self._embedding: asyncio.Task[None] | None = None

    async def nearest(self, query: CaseQuery, scope: Scope) -> Nearest:
        """The cases nearest to the query, in its scope.

        SEMANTIC is combined with the similarity of words, over the best candidates of both. Without a vector of the
        question only words are compared (COSINE), with a note.
        """
        if query.method is not SimilarityMethod.SEMANTIC:
            return Nearest(await self._store.nearest(query, scope), query.method)
        vector = await self.vectors.of(query.text)
        if vector is not None:
            await asyncio.wait([self._embed_missing()], timeout=FIRST_S)
        candidates = await self.candidates(replace(query, limit=query.limit * CANDIDATES, vector=vector), scope)
        if vector is None:
            reason = self.vectors.unsupported_reason(query.text) or EMBEDDER_FAILED
            return Nearest(candidates.by_words[: query.limit], SimilarityMethod.COSINE, (reason,))
        return Nearest(candidates.combined()[: query.limit], SimilarityMethod.SEMANTIC)

    async def candidates(self, query: CaseQuery, scope: Scope) -> CandidateCases:
        """The `limit` nearest by words, and as many by the query's vector."""
        by_words = await self._store.nearest(replace(query, method=SimilarityMethod.COSINE, vector=None), scope)
        if query.vector is None:
            return CandidateCases(query, by_words)
        self._embed_missing()
        by_meaning = await self._store.nearest(replace(query, method=SimilarityMethod.SEMANTIC), scope)
        return CandidateCases(query, by_words, by_meaning, self.vectors.model(query.text))

    async def close(self) -> None:
        """End the embedding in the background; the next process goes on with it."""
        if self._embedding is not None:
            self._embedding.cancel()
            await asyncio.wait([self._embedding])

    def _embed_missing(self) -> asyncio.Task[None]:
        if self._embedding is None:
            self._embedding = asyncio.create_task(self._embed())
        return self._embedding

    async def _embed(self) -> None:
        after = None
        with suppress(asyncio.CancelledError):
            try:
                while cases := await self._store.without_vector(self.vectors.spaces, BATCH, after):
                    after = cases[-1].case_id
                    embedded = [(case, await self.vectors.of(case.query)) for case in cases]
                    vectors = [(case, vector) for case, vector in embedded if vector is not None]
                    if vectors:
                        await self._store.put_vectors(vectors)
            except DtragError as error:
                _LOG.warning("not all questions of cases got a vector; the next process goes on", exc_info=error)


def _shared_words(query: CaseQuery, case: Case, words: Mapping[str, float]) -> float:
    if case.case_id in words:
        return words[case.case_id]
    return similarity(query.text, case.query, SimilarityMethod.COSINE)
