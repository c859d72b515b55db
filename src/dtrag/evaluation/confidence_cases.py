"""Cases for fitting and measuring the confidence: judged questions, with and without the passages that answer them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from dtrag.core.access.scope import EVERYTHING, Scope, SearchFilters
from dtrag.core.answers.evidence import READ, by_words
from dtrag.core.answers.passage_confidence import judged_signals, model_name
from dtrag.core.documents import SearchMetrics, SearchResult, Vector
from dtrag.core.ranking.bm25 import LexicalQuery, LexicalStatistics
from dtrag.core.text.analysis import Analyzer, language, normalise, term_id
from dtrag.core.text.questions import content_terms, weighted_terms
from dtrag.evaluation.judged_questions import document_names
from dtrag.ingestion.imagine import MOST_QUESTIONS
from dtrag.ports import Embedder, Index, speaks
from dtrag.regulations.pack import RegulationRanking
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.retrieval.request import CANDIDATES

PASSAGES = 10
HIDDEN_OF = 50
"""Number of retrieved passages among which the answering ones are hidden."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A question, whether the documents answer it, and which `documents` (ids, titles or addresses) or `answers` do.

    Without both, `answerable` is trusted. Questions of one `group`, such as those about one article, are used either
    for fitting or for measuring, never for both.
    """

    question: str
    answerable: bool
    documents: frozenset[str] = frozenset()
    answers: frozenset[str] = frozenset()
    group: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredQuestion:
    """A question with the signals of its results. `kind`: answerable, hidden (its answers were removed), absent.

    `label` is 1 if one of the first `READ` passages answers. `model` is the name of the confidence model for it.
    """

    question: str
    group: str
    kind: str
    label: float
    signals: dict[str, float]
    model: str


async def cases(
    judged: Iterable[Judged],
    index: Index,
    embedder: Embedder | None,
    analyzer: Analyzer,
    regulations: str = "off",
) -> AsyncIterator[list[MeasuredQuestion]]:
    """For each question its case; if its known answer was retrieved, also the case without it.

    `regulations` is the mode of the regulation pack, whose signals decide where it ranks the passages.
    """
    hiding = HidingIndex(index, analyzer)
    engine = hiding_engine(hiding, embedder, analyzer, regulations)

    async def retrieve(question: str, top_k: int, mode: str = "hybrid") -> tuple[list[SearchResult], SearchMetrics]:
        return await engine.search(
            question, top_k, None, CANDIDATES, CANDIDATES, scope=EVERYTHING, highlight=False, mode=mode
        )

    async def case(
        row: Judged, kind: str, retrieved: tuple[list[SearchResult], SearchMetrics], label: float
    ) -> MeasuredQuestion:
        passages, metrics = retrieved
        terms = {*content_terms(row.question), *(term for term, _ in weighted_terms(row.question))}
        statistics = await hiding.statistics(terms, EVERYTHING)
        decides = speaks(embedder, language(row.question), deciding=True)
        decided_by = passages[:PASSAGES] if decides else by_words(passages[:PASSAGES])
        values = judged_signals(row.question, decided_by, statistics, metrics.pack)
        return MeasuredQuestion(
            row.question, row.group or row.question, kind, label, values, model_name(row.question, values)
        )

    for row in judged:
        retrieved = await retrieve(row.question, HIDDEN_OF)
        if not row.answerable:
            yield [await case(row, "absent", retrieved, 0.0)]
            continue
        passages, metrics = retrieved
        known = bool(row.documents or row.answers)
        gold = [passage for passage in passages if answers(passage, row)]
        read = not known or any(passage in gold for passage in passages[:READ])
        row_cases = [await case(row, "answerable", retrieved, float(read))]
        if gold:
            if metrics.pack is not None:  # the pack returns one piece of an article: hide the others, too
                pieces, _ = await retrieve(row.question, HIDDEN_OF, "lexical")
                gold += [piece for piece in pieces if answers(piece, row)]
            with hiding.without(gold):
                row_cases.append(await case(row, "hidden", await retrieve(row.question, PASSAGES), 0.0))
        yield row_cases


def answers(passage: SearchResult, row: Judged) -> bool:
    """Whether the passage is from one of the documents, or contains one of the answers, ignoring white space."""
    if not row.documents.isdisjoint(document_names(passage)):
        return True
    return _contains_any(passage.text, row.answers)


def _contains_any(text: str, answers: Collection[str]) -> bool:
    if not answers:
        return False
    compact = normalise(text).replace(" ", "")
    return any(normalise(answer).replace(" ", "") in compact for answer in answers)


class HidingIndex:
    """Reads from `index` without the currently hidden passages; delegates everything else."""

    def __init__(self, index: Index, analyzer: Analyzer) -> None:
        self._index = index
        self._analyzer = analyzer
        self._hidden: dict[str, frozenset[int]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    @contextmanager
    def without(self, passages: Collection[SearchResult]) -> Iterator[None]:
        """Hide these passages inside the block."""
        self._hidden = {passage.chunk_id: self._terms(passage) for passage in passages}
        try:
            yield
        finally:
            self._hidden = {}

    async def lexical(self, query: LexicalQuery, scope: Scope, filters: SearchFilters, top_k: int) -> dict[str, float]:
        """See `Index.lexical`."""
        return self._visible(await self._index.lexical(query, scope, filters, top_k + len(self._hidden)), top_k)

    async def vectors(
        self, query: Vector, space: str, scope: Scope, filters: SearchFilters, top_k: int
    ) -> dict[str, float]:
        """See `Index.vectors`."""
        return self._visible(await self._index.vectors(query, space, scope, filters, top_k + len(self._hidden)), top_k)

    async def imagined(
        self, query: Vector, space: str, scope: Scope, filters: SearchFilters, limit: int
    ) -> dict[str, float]:
        """See `Index.imagined`."""
        more = limit + MOST_QUESTIONS * len(self._hidden)
        return self._visible(await self._index.imagined(query, space, scope, filters, more), limit)

    async def imagined_by_words(
        self, terms: Sequence[tuple[int, float]], scope: Scope, filters: SearchFilters, limit: int
    ) -> dict[str, float]:
        """See `Index.imagined_by_words`."""
        more = limit + len(self._hidden)
        return self._visible(await self._index.imagined_by_words(terms, scope, filters, more), limit)

    async def statistics(self, terms: Collection[int], scope: Scope) -> LexicalStatistics:
        """See `Index.statistics`; document frequencies exclude hidden passages."""
        whole = await self._index.statistics(terms, scope)
        hidden_counts = {term: sum(term in passage for passage in self._hidden.values()) for term in terms}
        affected = sorted(term for term, count in hidden_counts.items() if count)
        if not affected:
            return whole
        negative = np.array([-hidden_counts[term] for term in affected], np.int64)
        correction = LexicalStatistics(np.array(affected, np.int64), negative)
        return LexicalStatistics(chunks=whole.chunks, lengths=whole.lengths, parts=(whole, correction))

    def _terms(self, passage: SearchResult) -> frozenset[int]:
        text = "\n".join((passage.title, *passage.breadcrumb, passage.text))
        return frozenset(map(term_id, self._analyzer.terms(text)))

    def _visible(self, scores: Mapping[str, float], top_k: int) -> dict[str, float]:
        visible = [(key, score) for key, score in scores.items() if key not in self._hidden]
        return dict(visible[:top_k])


def hiding_engine(
    index: HidingIndex, embedder: Embedder | None, analyzer: Analyzer, regulations: str = "off"
) -> HybridSearchEngine:
    """An engine that ranks like that of an app, without reranker and cache; `regulations` is the mode of the pack."""
    reader = cast("Index", index)
    return HybridSearchEngine(
        embedder,
        reader,
        enable_caching=False,
        enable_reranking=False,
        normalization="absolute",
        analyzer=analyzer,
        pack=RegulationRanking(reader, mode=regulations, analyzer=analyzer),
    )
