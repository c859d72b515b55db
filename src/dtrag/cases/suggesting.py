"""The cases whose questions are most similar to a question: for suggestions, and to find those that ask the same.

Questions are compared by words and by vectors of the model for their language (`SimilarityMethod.SEMANTIC`).
`NeuralSelector` searches the cases for `POST /search/neural`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from dtrag import embedding_service
from dtrag.cases.views import shown
from dtrag.core.access.scope import Scope, Viewer
from dtrag.core.cases.case import Case, CaseQuery, QuestionVector, ScoredCases, SimilarityMethod
from dtrag.core.cases.index import comparable, cosine, order, similarity, with_words
from dtrag.core.cases.statistics import Readiness
from dtrag.core.ranking.bm25 import LexicalQuery, bm25_weight
from dtrag.core.ranking.fusion import ScoreNormalizer
from dtrag.core.statements import Statement, Statements, stated
from dtrag.core.text.analysis import Analyzer, language, term_id
from dtrag.core.text.questions import weighted_terms
from dtrag.errors import DtragError, InvalidInput
from dtrag.ports import Embedder, Index, model_for
from dtrag.ports import similarity as share_of
from dtrag.ports.cases import CaseStore
from dtrag.settings import timeout_multiplier

EMBEDDER_FAILED = stated("words_compared", "The embedder failed: words were compared.")
CANDIDATES = 4
"""Candidates of embeddings and of words for one suggestion by SEMANTIC."""
BATCH = 64
"""Questions that are embedded between two changes of the store."""
FIRST_S = 1.0
"""Longest time that the first suggestion of a process waits for missing vectors, in seconds: 300 questions or more."""
VECTOR_SHARE = 0.7
"""Of the cosine in a search by `NeuralSelector`; BM25 has the rest (the acceptance text NEURAL-001)."""
FUSED = 50
"""Candidates of words, and of vectors, for one search by `NeuralSelector`."""
MAX_HITS = 50
SECONDS = 0.1
"""Time for the vectors, times PIPELINE_TIMEOUT_MULTIPLIER."""
MODES = ("hybrid", "neural", "bm25")
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


@dataclass(frozen=True, slots=True)
class CaseHit:
    """A case with its scores in [0, 1]: fused, cosine, and normalised BM25; None where one did not count."""

    case: Case
    score: float
    vector_score: float | None
    bm25_score: float | None


@dataclass(frozen=True, slots=True)
class CaseSearch:
    """The hits, best first. `mode` is hybrid, neural, bm25 or bm25_fallback, with the reason for the last."""

    hits: Sequence[CaseHit]
    mode: str
    reason: str
    seconds: float


class NeuralSelector:
    """Searches the cases of one app: cosine of the questions and BM25, fused 7 to 3 after min-max normalisation.

    The vectors count once there is enough feedback; until then, and whenever they are late, words alone decide.
    """

    def __init__(self, cases: CaseStore, index: Index, embedder: Embedder | None, analyzer: Analyzer) -> None:
        self._cases = cases
        self._index = index
        self._embedder = embedder
        self._analyzer = analyzer

    async def search(
        self,
        query: str,
        limit: int = 10,
        category_path: Sequence[str] | None = None,
        mode: str = "hybrid",
        *,
        viewer: Viewer,
    ) -> CaseSearch:
        """The best cases that the viewer may see. Raises `InvalidInput` and `DatabaseUnavailable`."""
        started = time.perf_counter()
        if not query.strip():
            raise InvalidInput("The query is empty: send a question.")
        if not 1 <= limit <= MAX_HITS or mode not in MODES:
            raise InvalidInput(f"limit must be from 1 to {MAX_HITS}, and mode one of {', '.join(MODES)}.")
        snapshot = await self._index.snapshot()
        scope = viewer.resolved(snapshot.taxonomy)
        category = None if category_path is None else tuple(category_path)
        lexical = await self._by_words(query, category, scope)
        vectors: dict[str, tuple[Case, float]] = {}
        reason = ""
        if mode != "bm25":
            reason = Readiness.of(await self._cases.statistics(scope)).missing
            if not reason:
                vectors, reason = await self._by_vectors(query, category, scope)
        ran = "bm25_fallback" if reason else mode
        candidates = {case_id: case for case_id, (case, _) in vectors.items()}
        if ran != "neural":
            candidates |= {case.case_id: case for case, _ in lexical}
        bm25 = {} if ran == "neural" else await self._bm25(query, list(candidates.values()), scope)
        cosines = {case_id: score for case_id, (_, score) in vectors.items()}
        shown_cases = {key: shown(case, snapshot.taxonomy) for key, case in candidates.items()}
        return CaseSearch(_hits(shown_cases, cosines, bm25, ran)[:limit], ran, reason, time.perf_counter() - started)

    async def _by_words(
        self, query: str, category: tuple[str, ...] | None, scope: Scope
    ) -> Sequence[tuple[Case, float]]:
        return await self._cases.nearest(CaseQuery(text=query, limit=FUSED, category_path=category), scope)

    async def _by_vectors(
        self, query: str, category: tuple[str, ...] | None, scope: Scope
    ) -> tuple[dict[str, tuple[Case, float]], str]:
        """The nearest cases by meaning; or why there are none."""
        embedder = model_for(self._embedder, language(query))
        if embedder is None or not embedder.decides:
            return {}, "No embedder supports the language of the query."
        try:
            async with asyncio.timeout(SECONDS * timeout_multiplier()):
                [vector] = await asyncio.to_thread(embedder.embed_queries, [query])
                request = CaseQuery(
                    text=query,
                    limit=FUSED,
                    method=SimilarityMethod.SEMANTIC,
                    category_path=category,
                    vector=QuestionVector(embedder.id, np.asarray(vector, np.float32).tobytes()),
                )
                nearest = await self._cases.nearest(request, scope)
        except TimeoutError:
            return {}, f"The vectors took longer than {SECONDS * 1000:.0f} ms."
        except (DtragError, OSError, ValueError) as error:  # a model that fails; words still answer
            return {}, f"The embedder failed ({type(error).__name__})."
        return {case.case_id: (case, score) for case, score in nearest if score > 0.0}, ""

    async def _bm25(self, query: str, cases: Sequence[Case], scope: Scope) -> dict[str, float]:
        """Case id -> BM25 of its question; frequencies of terms are those of the passages in scope."""
        terms = weighted_terms(query, self._analyzer)
        statistics = await self._index.statistics([term for term, _ in terms], scope)
        # Every term counts, also one that no document contains: the questions are not documents.
        weights = {term: LexicalQuery.of([(term, share)], statistics).ceiling for term, share in terms}
        counts = [Counter(term_id(term) for term in self._analyzer.terms(case.query)) for case in cases]
        mean = sum(count.total() for count in counts) / len(counts) if counts else 1.0
        return {
            case.case_id: sum(
                weight * bm25_weight(count[term], count.total(), max(1.0, mean))
                for term, weight in weights.items()
                if count[term]
            )
            for case, count in zip(cases, counts, strict=True)
        }


def _hits(
    candidates: Mapping[str, Case], cosines: Mapping[str, float], bm25: Mapping[str, float], mode: str
) -> list[CaseHit]:
    ids = list(candidates)
    words = dict(zip(ids, ScoreNormalizer.min_max_normalize([bm25.get(key, 0.0) for key in ids]), strict=True))
    words = {key: share if bm25.get(key, 0.0) > 0.0 else 0.0 for key, share in words.items()}
    meaning = dict(zip(ids, ScoreNormalizer.min_max_normalize([cosines.get(key, 0.0) for key in ids]), strict=True))
    hits = []
    for key in ids:
        if mode == "neural":
            score = meaning[key]
        elif mode == "hybrid":
            score = VECTOR_SHARE * meaning[key] + (1 - VECTOR_SHARE) * words[key]
        else:
            score = words[key]
        hits.append(CaseHit(candidates[key], score, cosines.get(key), words[key] if key in bm25 else None))
    return sorted(hits, key=lambda hit: (-hit.score, -hit.case.quality_score, hit.case.case_id))
