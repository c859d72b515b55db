"""Finds past cases by meaning and words: `POST /search/neural`.

Cosine of the questions and BM25, fused 7 to 3 after min-max normalisation (the acceptance text NEURAL-001). The vectors
count once there is enough feedback; until then, and whenever they are late, words alone decide.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dtrag.cases.views import shown
from dtrag.core.access.scope import Scope, Viewer
from dtrag.core.cases.case import Case, CaseQuery, QuestionVector, SimilarityMethod
from dtrag.core.cases.statistics import Readiness
from dtrag.core.ranking.bm25 import LexicalQuery, bm25_weight
from dtrag.core.ranking.fusion import ScoreNormalizer
from dtrag.core.text.analysis import Analyzer, language, term_id
from dtrag.core.text.questions import weighted_terms
from dtrag.errors import DtragError, InvalidInput
from dtrag.ports import CaseStore, Embedder, Index, model_for
from dtrag.settings import timeout_multiplier

VECTOR_SHARE = 0.7
CANDIDATES = 50
MAX_HITS = 50
SECONDS = 0.1
"""Time for the vectors, times PIPELINE_TIMEOUT_MULTIPLIER."""
MODES = ("hybrid", "neural", "bm25")


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
    """Searches the cases of one app."""

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
        return await self._cases.nearest(CaseQuery(text=query, limit=CANDIDATES, category_path=category), scope)

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
                    limit=CANDIDATES,
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
