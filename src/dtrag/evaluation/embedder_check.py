"""Measures an embedder, and a reranker, on a sample of the stored passages with questions made from them; in memory.

The questions are imagined ones, where there are some, headings, and first sentences of passages, which are removed from
what is searched (the inverse cloze task: Lee, Chang & Toutanova 2019). They compare models and weights on these
documents; how well questions of users are answered, they do not show.
"""

from __future__ import annotations

import asyncio
import mmap
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from random import Random
from typing import Any, Literal

import numpy as np

from dtrag.core.access.scope import Scope
from dtrag.core.documents import Chunk, ParsedDocument, SearchResult, Vector
from dtrag.core.metrics.intervals import paired_differences
from dtrag.core.metrics.ranking import ndcg_at
from dtrag.core.ranking.bm25 import LexicalQuery, LexicalStatistics, bm25_weight
from dtrag.core.ranking.fusion import HybridScoreFusion
from dtrag.core.ranking.segments import FREQUENCY_UNIT
from dtrag.core.text.analysis import Analyzer, language, normalise, sentences
from dtrag.core.text.questions import weighted_terms
from dtrag.embedding_service import embed_passages, embed_questions
from dtrag.errors import InvalidInput
from dtrag.ingestion.analysis import analyse, embedded_text
from dtrag.ports import DocumentIndex, Embedder, Loadable, Reranker, Tokenizing, model_for, similarity
from dtrag.retrieval.request import CANDIDATES
from dtrag.retrieval.rerank import CrossEncoderReranker

FETCHED = 200
"""Passages of one read."""
TIMED, RERANKED, RERANKED_QUESTIONS = 40, 20, 40
"""Texts that are timed one by one, passages that a reranker reads for a question, and its questions."""
FEWEST = 20
"""Questions below which nothing is measured."""
MOST_SHARING = 5
"""Passages under a heading that is a question: of one that more share it is unknown which is meant."""
SHORTEST, LONGEST = 20, 300
"""Characters of a sentence that is a question."""
PAGE_BYTES = mmap.PAGESIZE
WEIGHTS = tuple(step / 10 for step in range(11))
Kind = Literal["imagined", "heading", "sentence"]


@dataclass(frozen=True, slots=True)
class CheckQuestion:
    """A question, and the rows of the passages that are relevant to it."""

    text: str
    relevant: frozenset[int]
    kind: Kind


@dataclass(frozen=True, slots=True)
class LanguageReport:
    """nDCG@10 of the questions in one language. `unknown_tokens` is a share; None where no tokenizer is here."""

    language: str
    supported: bool
    passages: int
    questions: int
    unknown_tokens: float | None
    words: float
    vectors: float
    fused: float


@dataclass(frozen=True, slots=True)
class RerankerReport:
    """nDCG@10 before and after a reranker has read the first fused passages."""

    model: str
    questions: int
    fused: float
    reranked: float
    ms_per_passage: float


@dataclass(frozen=True, slots=True)
class EmbedderReport:
    """The result of `check_embedder`. nDCG@10 are means over the questions, `fused` with the present weight.

    `held_out` is the mean where the weight is chosen on one half of the questions and judged on the other, `gain` its
    difference to the present weight with its 95 % interval. `kinds` counts the questions. `memory_bytes`
    is None where it cannot be measured.
    """

    model: str
    dim: int
    max_tokens: int
    floor: float
    passages: int
    kinds: Mapping[str, int]
    ms_per_question: float
    ms_per_passage: float
    memory_bytes: int | None
    words: float
    vectors: float
    fused: float
    weight: float
    by_weight: Sequence[float]
    best_weight: float
    held_out: float
    gain: float
    gain_interval: tuple[float, float]
    recommended_weight: float
    languages: tuple[LanguageReport, ...]
    reranker: RerankerReport | None


async def sampled(index: DocumentIndex, scope: Scope, most: int, seed: int) -> tuple[list[SearchResult], list[str]]:
    """Up to `most` stored passages, chosen by the seed, and an imagined question of each, or ""."""
    taxonomy = (await index.snapshot()).taxonomy
    ids = await index.sample(most, seed, scope)
    passages: list[SearchResult] = []
    imagined: dict[str, list[str]] = {}
    for first in range(0, len(ids), FETCHED):
        part = ids[first : first + FETCHED]
        fetched = await index.fetch(part, scope, taxonomy)
        passages += [fetched[name] for name in part if name in fetched]
        imagined |= await index.imagined_questions(part, scope)
    return passages, [next(iter(imagined.get(passage.chunk_id, ())), "") for passage in passages]


async def check_embedder(
    index: DocumentIndex,
    scope: Scope,
    embedder: Embedder,
    *,
    analyzer: Analyzer,
    reranker: Reranker | None = None,
    weight: float = 0.5,
    passages: int = 1_000,
    questions: int = 200,
    seed: int = 0,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> EmbedderReport:
    """Measure the embedder on up to that many passages and questions. Writes nothing.

    Raises `InvalidInput` for too few documents, and what the models raise.
    """
    stored, imagined = await sampled(index, scope, passages, seed)
    searched, chosen = questions_of(stored, imagined, questions, seed)
    if len(chosen) < FEWEST:
        raise InvalidInput(
            f"Only {len(chosen)} questions can be made from {len(stored)} passages; {FEWEST} are needed: ingest more."
        )
    measuring = _Measuring(embedder, analyzer, searched, chosen, on_progress)
    return await asyncio.to_thread(measuring.report, reranker, weight, seed)


def questions_of(
    passages: Sequence[SearchResult], imagined: Sequence[str], most: int, seed: int
) -> tuple[list[SearchResult], list[CheckQuestion]]:
    """The passages without the texts that are questions now, and up to `most` questions in random order."""
    searched = list(passages)
    under: defaultdict[str, set[int]] = defaultdict(set)
    for row, passage in enumerate(passages):
        for head in (passage.title, *passage.breadcrumb):
            under[normalise(head)].add(row)
    kinds: dict[Kind, list[CheckQuestion]] = {"imagined": [], "heading": [], "sentence": []}
    used: set[str] = set()
    rows = list(range(len(passages)))
    Random(seed).shuffle(rows)  # nosec B311  # noqa: S311 - a sample, no secret
    for place, row in enumerate(rows):
        passage = passages[row]
        head = passage.breadcrumb[-1] if passage.breadcrumb else passage.title
        name, spans = normalise(head), list(sentences(passage.text))
        first = passage.text[slice(*spans[0])] if spans else ""
        if imagined[row]:
            kinds["imagined"].append(CheckQuestion(imagined[row], frozenset({row}), "imagined"))
        elif place % 2 and len(name.split()) > 1 and len(under[name]) <= MOST_SHARING and name not in used:
            used.add(name)
            kinds["heading"].append(CheckQuestion(head, frozenset(under[name]), "heading"))
        elif len(spans) > 2 and SHORTEST <= len(first) <= LONGEST:
            kinds["sentence"].append(CheckQuestion(first, frozenset({row}), "sentence"))
    mixed = chain.from_iterable(zip_longest(*kinds.values()))
    chosen = [question for question in mixed if question is not None][:most]
    used &= {normalise(question.text) for question in chosen}
    for question in chosen:
        for row in question.relevant if question.kind != "imagined" else ():
            searched[row] = _without(question, searched[row], used)
    return searched, chosen


def _without(question: CheckQuestion, passage: SearchResult, used: set[str]) -> SearchResult:
    """The passage without the sentence that is the question, or without headings that are questions."""
    if question.kind == "sentence":
        return replace(passage, text=passage.text.replace(question.text, "", 1).lstrip())
    heads, text = [head for head in (passage.title, *passage.breadcrumb) if normalise(head) in used], passage.text
    for head in heads:
        text = text.removeprefix(head).lstrip()
    breadcrumb = tuple(head for head in passage.breadcrumb if head not in heads)
    return replace(passage, title="" if passage.title in heads else passage.title, breadcrumb=breadcrumb, text=text)


class _Measuring:
    """Ranks a sample by words, by vectors and by both. Blocking."""

    def __init__(
        self,
        embedder: Embedder,
        analyzer: Analyzer,
        passages: Sequence[SearchResult],
        questions: Sequence[CheckQuestion],
        on_progress: Callable[[int, int], None],
    ) -> None:
        self._embedder, self._analyzer, self._on_progress = embedder, analyzer, on_progress
        self._passages, self._questions = passages, questions
        self._language = [language(passage.text) for passage in passages]
        self._texts = [embedded_text(each.title, each.breadcrumb, each.text) for each in passages]
        self._done = 0

    def report(self, reranker: Reranker | None, weight: float, seed: int) -> EmbedderReport:
        """All measures."""
        memory = self._load()
        tables: dict[str, dict[str, float]] = {"passage": {}, "question": {}}
        by_vectors = self._by_vectors(tables)
        by_words = self._by_words()
        weights = sorted({*WEIGHTS, weight})
        pairs = list(zip(by_words, by_vectors, strict=True))
        table = np.array([[self._ndcg(row, _fused(pair, at)) for at in weights] for row, pair in enumerate(pairs)])
        words = np.array([self._ndcg(row, pair[0]) for row, pair in enumerate(pairs)])
        vectors = np.array([self._ndcg(row, pair[1] or {}) for row, pair in enumerate(pairs)])
        present = weights.index(weight)
        held_out, gain, interval = folds(table, present, seed)
        best = best_weight(table, present)
        codes = [language(question.text) for question in self._questions]
        languages = tuple(
            self._of_language(code, np.array([each == code for each in codes]), words, vectors, table[:, present])
            for code, _ in Counter(self._language).most_common()
        )
        return EmbedderReport(
            model=self._embedder.id,
            dim=self._embedder.dim,
            max_tokens=self._embedder.max_tokens,
            floor=self._embedder.floor,
            passages=len(self._passages),
            kinds=Counter(question.kind for question in self._questions),
            ms_per_question=tables["question"]["ms"],
            ms_per_passage=tables["passage"]["ms"],
            memory_bytes=memory,
            words=_mean(words),
            vectors=_mean(vectors),
            fused=_mean(table[:, present]),
            weight=weight,
            by_weight=[_mean(table[:, weights.index(at)]) for at in WEIGHTS],
            best_weight=weights[best],
            held_out=held_out,
            gain=gain,
            gain_interval=interval,
            recommended_weight=weights[best] if interval[0] > 0.0 else weight,
            languages=languages,
            reranker=self._reranked(reranker, [_fused(pair, weight) for pair in pairs]) if reranker else None,
        )

    def _load(self) -> int | None:
        """Bytes that the process grows by when the model loads and reads its first texts."""
        before = resident()
        embedder: object = self._embedder
        if isinstance(embedder, Loadable):
            embedder.load()
        embed_questions([self._questions[0].text], embedder=self._embedder)
        embed_passages(self._texts[:2], embedder=self._embedder)
        after = resident()
        return max(0, after - before) if before is not None and after is not None else None

    def _by_words(self) -> list[dict[str, float]]:
        """For each question: row -> share of the highest BM25, of the best candidates."""
        postings: defaultdict[int, list[tuple[str, float]]] = defaultdict(list)
        lengths: dict[str, tuple[int, int]] = {}
        chunks = []
        for row, passage in enumerate(self._passages):
            document = ParsedDocument(passage.title, passage.text, "text/plain")
            chunk = analyse(document, Chunk(0, 0, 0, passage.text, passage.breadcrumb), self._analyzer)
            chunks.append(chunk)
            count, total = lengths.get(chunk.language, (0, 0))
            lengths[chunk.language] = (count + 1, total + chunk.length)
            for term, units in zip(chunk.term_ids.tolist(), chunk.frequencies.tolist(), strict=True):
                postings[term].append((str(row), units * FREQUENCY_UNIT))
        ids = np.array(sorted(postings), np.int64)
        known = LexicalStatistics(ids, np.array([len(postings[term]) for term in ids.tolist()]), len(chunks), lengths)
        ranked = []
        for question in self._questions:
            query = LexicalQuery.of(weighted_terms(question.text, self._analyzer), known)
            scores: defaultdict[str, float] = defaultdict(float)
            for term, weight in query.weights.items():
                for row_name, frequency in postings[term]:
                    chunk = chunks[int(row_name)]
                    mean = query.mean_lengths[chunk.language]
                    scores[row_name] += weight * bm25_weight(frequency, chunk.length, mean)
            ranked.append(_best(query.shares(scores)))
        return ranked

    def _by_vectors(self, times: Mapping[str, dict[str, float]]) -> list[dict[str, float] | None]:
        """For each question: row -> similarity of the nearest passages; None where no model reads its language."""
        ranked: list[dict[str, float] | None] = [None] * len(self._questions)
        by_model = self._by_model([language(question.text) for question in self._questions])
        total = len(self._passages) + len(self._questions)
        for model_id, (model, rows) in self._by_model(self._language).items():
            passages = self._embed(
                partial(embed_passages, embedder=model), [self._texts[row] for row in rows], times["passage"], total
            )
            chosen = by_model.get(model_id, (model, []))[1]
            texts = [self._questions[place].text for place in chosen]
            for place, vector in zip(
                chosen,
                self._embed(partial(embed_questions, embedder=model), texts, times["question"], total),
                strict=True,
            ):
                cosines = {str(row): float(cosine) for row, cosine in zip(rows, passages @ vector, strict=True)}
                ranked[place] = similarity(model, _best(cosines))
        return ranked

    def _by_model(self, codes: Sequence[str]) -> dict[str, tuple[Embedder, list[int]]]:
        models: dict[str, tuple[Embedder, list[int]]] = {}
        for place, code in enumerate(codes):
            if (model := model_for(self._embedder, code)) is not None:
                models.setdefault(model.id, (model, []))[1].append(place)
        return models

    def _embed(
        self, embed: Callable[[Sequence[str]], Vector], texts: Sequence[str], times: dict[str, float], total: int
    ) -> Vector:
        """The vectors; the median milliseconds of the first ones, each computed alone, in `times`."""
        vectors, seconds = [], []
        for text in texts[:TIMED]:
            started = time.perf_counter()
            vectors.append(embed([text]))
            seconds.append(time.perf_counter() - started)
        times.setdefault("ms", round(1000 * statistics.median(seconds), 2) if seconds else 0.0)
        for first in range(TIMED, len(texts), TIMED):
            vectors.append(embed(texts[first : first + TIMED]))
            self._done += TIMED
            self._on_progress(min(self._done, total), total)
        return np.concatenate(vectors) if vectors else embed([])

    def _ndcg(self, place: int, scores: Mapping[str, float]) -> float:
        ranking = sorted(scores, key=lambda row: (-scores[row], int(row)))
        return ndcg_at(10, ranking, {str(row): 1 for row in self._questions[place].relevant})

    def _of_language(self, code: str, own: Any, words: Any, vectors: Any, fused: Any) -> LanguageReport:
        texts = [text for text, each in zip(self._texts, self._language, strict=True) if each == code]
        model: object = model_for(self._embedder, code)
        unknown, tokens = model.unknown_tokens(texts[:FETCHED]) if isinstance(model, Tokenizing) else (0, 0)
        share = round(unknown / tokens, 4) if tokens else None
        measured = [_mean(values[own]) if own.any() else 0.0 for values in (words, vectors, fused)]
        return LanguageReport(code, model is not None, len(texts), int(own.sum()), share, *measured)

    def _reranked(self, reranker: Reranker, fused: Sequence[Mapping[str, float]]) -> RerankerReport:
        ordering = CrossEncoderReranker(model=reranker)
        before, after, seconds, passages = [], [], 0.0, 0
        chosen = [place for place, each in enumerate(self._questions) if ordering.applies(each.text)]
        for place in chosen[:RERANKED_QUESTIONS]:
            scores = fused[place]
            first = sorted(scores, key=lambda row: (-scores[row], int(row)))[:RERANKED]
            results = [replace(self._passages[int(row)], chunk_id=row, hybrid_score=scores[row]) for row in first]
            started = time.perf_counter()
            ordered = ordering.rerank(self._questions[place].text, results)
            seconds, passages = seconds + time.perf_counter() - started, passages + len(results)
            before.append(self._ndcg(place, scores))
            after.append(self._ndcg(place, {each.chunk_id: -rank for rank, each in enumerate(ordered)}))
        ms = round(1000 * seconds / max(1, passages), 2)
        return RerankerReport(reranker.id, len(after), _mean(np.array(before)), _mean(np.array(after)), ms)


def folds(table: Any, present: int, seed: int) -> tuple[float, float, tuple[float, float]]:
    """Of nDCGs, shape (questions, weights): the mean with weights chosen on the other half of the questions, and its
    difference to the present weight with its interval."""
    order = np.random.default_rng(seed).permutation(len(table))
    halves = order[::2], order[1::2]
    judged = np.empty(len(table))
    for own, other in (halves, halves[::-1]):
        judged[own] = table[own, best_weight(table[other], present)]
    rows = [[{"ndcg": (float(value), 1.0)} for value in values] for values in (judged, table[:, present])]
    difference = paired_differences(rows[0], rows[1])["ndcg"]
    low, high = difference.interval or (0.0, 0.0)
    return _mean(judged), round(difference.value or 0.0, 4), (round(low, 4), round(high, 4))


def best_weight(table: Any, present: int) -> int:
    """The column with the highest mean; of equal ones that nearest to the present one."""
    means = table.mean(axis=0)
    return min(np.flatnonzero(means >= means.max() - 1e-9).tolist(), key=lambda column: abs(column - present))


def resident() -> int | None:
    """Bytes of this process in memory; None where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * PAGE_BYTES
    except OSError:
        return None


def _fused(pair: tuple[dict[str, float], dict[str, float] | None], weight: float) -> dict[str, float]:
    return HybridScoreFusion(1.0 - weight, weight, "absolute").fuse(*pair)


def _best(scores: Mapping[str, float]) -> dict[str, float]:
    ordered = sorted(scores, key=lambda row: (-scores[row], int(row)))[:CANDIDATES]
    return {row: scores[row] for row in ordered}


def _mean(values: Any) -> float:
    return round(float(values.mean()), 4) if len(values) else 0.0
