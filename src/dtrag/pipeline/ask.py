"""One question: retrieve, weigh whether the passages answer, compose, cite. Each stage is timed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dtrag.core.confidence import Confidence, confidence_of
from dtrag.core.documents import Answer, SearchMetrics, SearchResult
from dtrag.core.query import content_terms, weighted_terms
from dtrag.core.scope import Viewer
from dtrag.core.scoring import LexicalStatistics
from dtrag.core.text import language
from dtrag.errors import InvalidInput
from dtrag.pipeline.cite import cite
from dtrag.pipeline.compose import Quote, extract, nothing_found
from dtrag.ports import Embedder, Index, speaks
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.retrieval.request import CANDIDATES

_LOG = logging.getLogger(__name__)

PASSAGES = 10
"""Passages retrieved for an answer; the composer quotes from the first five, the rest are evidence of agreement."""


async def ask(
    question: str,
    engine: HybridSearchEngine,
    index: Index,
    embedder: Embedder | None,
    *,
    scope: Viewer,
    filters: Mapping[str, Any] | None = None,
    retrieved: int = PASSAGES,
    candidates: tuple[int, int] = (CANDIDATES, CANDIDATES),
) -> Answer:
    """The answer with its citations. Raises `InvalidInput` for an empty question.

    `retrieved` is the number of passages that it is made from, `candidates` how many the words and the vectors propose.
    """
    if not isinstance(question, str) or not question.strip():
        raise InvalidInput("The question is empty.")
    stages: dict[str, float] = {}
    started = time.perf_counter()
    passages, metrics = await engine.search(
        question, retrieved, filters, *candidates, scope=scope, highlight=False, exact_candidates=True
    )
    caller = scope.resolved((await index.snapshot()).taxonomy)
    asked = {*content_terms(question), *(term for term, _ in weighted_terms(question))}
    statistics = await index.statistics(asked, caller)
    stages["retrieve"] = _milliseconds(started)
    started = time.perf_counter()
    confidence = confidence_of(question, passages, statistics)
    stages["weigh"] = _milliseconds(started)
    if confidence.decision == "abstain":
        return _answer(
            question,
            text=nothing_found(question),
            citations=(),
            confidence=confidence,
            stages=stages,
            metrics=metrics,
        )
    started = time.perf_counter()
    speaker = embedder if speaks(embedder, language(question)) and "vector" not in metrics.degraded else None
    quotes, failed = await _composed(question, passages, statistics, speaker)
    if failed:
        metrics = replace(metrics, degraded=(*metrics.degraded, "compose"))
    stages["compose"] = _milliseconds(started)
    started = time.perf_counter()
    text, citations = cite(quotes, passages)
    stages["cite"] = _milliseconds(started)
    return _answer(
        question,
        text=text or nothing_found(question),
        citations=citations,
        confidence=confidence,
        stages=stages,
        metrics=metrics,
    )


async def _composed(
    question: str, passages: Sequence[SearchResult], statistics: LexicalStatistics, embedder: Embedder | None
) -> tuple[list[Quote], bool]:
    """The named seam where the embedder may fail while sentences are chosen: they are chosen without it then."""
    if embedder is not None:
        try:
            return await asyncio.to_thread(extract, question, passages, statistics, embedder), False
        except Exception:  # noqa: BLE001 - the seam: the failure is shown as `degraded`
            _LOG.warning("the embedder failed while composing", exc_info=True)
    return await asyncio.to_thread(extract, question, passages, statistics), embedder is not None


def _answer(
    question: str,
    *,
    text: str,
    citations: tuple[Any, ...],
    confidence: Confidence,
    stages: Mapping[str, float],
    metrics: SearchMetrics,
) -> Answer:
    return Answer(
        question=question,
        text=text,
        citations=citations,
        confidence=confidence.value,
        decision=confidence.decision if citations else "abstain",
        reason=confidence.reason,
        stages=stages,
        degraded=metrics.degraded,
        notes=metrics.notes,
    )


def _milliseconds(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 2)
