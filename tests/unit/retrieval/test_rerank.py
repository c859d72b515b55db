"""Reranking: the heuristic of the acceptance document, the order of the model, and a model that is late or fails."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.documents import SearchResult
from dtrag.errors import InvalidInput
from dtrag.retrieval.rerank import CrossEncoderReranker, heuristic_scores

QUERY = "machine learning algorithms"


def _results() -> list[SearchResult]:
    """The results of AC-007."""
    return [
        SearchResult(chunk_id="1", text="ML algorithms...", hybrid_score=0.75),
        SearchResult(chunk_id="2", text="Database systems...", hybrid_score=0.80),
        SearchResult(chunk_id="3", text="Deep learning...", hybrid_score=0.70),
    ]


class Model:
    """Scores texts by a table and records them."""

    id = "table"

    def __init__(self, scores: Sequence[float] | None = None, languages: frozenset[str] = frozenset({"*"})) -> None:
        self.languages = languages
        self.read: list[list[str]] = []
        self.deadlines: list[float] = []
        self._scores = scores

    def score(self, query: str, texts: Sequence[str], deadline: float) -> Sequence[float] | None:
        self.read.append(list(texts))
        self.deadlines.append(deadline)
        return None if self._scores is None else self._scores[: len(texts)]


class Stuck(Model):
    """Ignores the deadline and waits for its gate."""

    def __init__(self) -> None:
        super().__init__([0.1, 0.2, 0.9])
        self.go = threading.Event()
        self.started = threading.Event()

    def score(self, query: str, texts: Sequence[str], deadline: float) -> Sequence[float] | None:
        self.started.set()
        assert self.go.wait(10)
        return super().score(query, texts, deadline)


class Broken(Model):
    """Cannot be loaded."""

    def score(self, query: str, texts: Sequence[str], deadline: float) -> Sequence[float] | None:
        raise RuntimeError("no weights")


def _ids(results: Sequence[SearchResult]) -> list[str]:
    return [result.chunk_id for result in results]


# --- the heuristic ------------------------------------------------------------------------------------------------


def test_ac_007_the_heuristic_is_the_formula_of_the_acceptance_document() -> None:
    shared = 1 + 0.1 * 2 / 10  # one source and one category, both unknown
    expected = [0.75 * (shared + 0.2 / 3 + 0.07), 0.80 * (shared + 0.07), 0.70 * (shared + 0.2 / 3 + 0.07)]
    assert heuristic_scores(QUERY, _results()) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("characters", "length"),
    [(1, 0.7), (49, 0.7), (50, 0.9), (99, 0.9), (100, 1.0), (500, 1.0), (501, 0.9), (1000, 0.9), (1001, 0.8)],
)
def test_the_length_of_a_passage_counts(characters: int, length: float) -> None:
    result = SearchResult("1", "x" * characters, hybrid_score=0.5)
    assert heuristic_scores("query", [result]) == pytest.approx([0.5 * (1 + 0.1 * length + 0.02)])


def test_diversity_is_the_same_for_all_results_and_at_most_one() -> None:
    for number, diversity in ((1, 0.2), (3, 0.6), (5, 1.0), (9, 1.0)):
        results = [
            SearchResult(str(i), "text", source_url=f"file{i}", taxonomy_path=["A", str(i)], hybrid_score=0.5)
            for i in range(number)
        ]
        expected = 0.5 * (1 + 0.07 + 0.1 * diversity)
        assert heuristic_scores("query", results) == pytest.approx([expected] * number)


def test_korean_words_overlap_too() -> None:
    texts = ("등록금을 내야 합니다.", "휴학은 두 학기까지 됩니다.")
    tuition, leave = heuristic_scores("휴학 기간", [SearchResult(text, text, hybrid_score=0.5) for text in texts])
    assert leave > tuition


def test_a_query_without_terms_has_no_overlap() -> None:
    (score,) = heuristic_scores("?!", [SearchResult("1", "text", hybrid_score=0.5)])
    assert score == pytest.approx(0.5 * (1 + 0.07 + 0.02))


words = st.sampled_from(["machine", "learning", "도서관", "휴학", "x" * 600, "?", "the"])
passages = st.lists(
    st.builds(
        SearchResult,
        chunk_id=st.uuids().map(str),
        text=st.lists(words, max_size=8).map(" ".join),
        source_url=st.sampled_from(["", "a", "b"]),
        taxonomy_path=st.lists(st.sampled_from(["A", "B"]), max_size=2),
        hybrid_score=st.floats(0, 1),
    ),
    max_size=12,
)
queries = st.lists(words, max_size=4).map(" ".join)


@given(queries, passages)
def test_heuristic_scores_lie_in_0_to_1_and_never_below_the_hybrid(query: str, results: list[SearchResult]) -> None:
    scores = heuristic_scores(query, results)
    assert len(scores) == len(results)
    for score, result in zip(scores, results, strict=True):
        assert min(1.0, result.hybrid_score) <= score <= min(1.0, result.hybrid_score * 1.4 + 1e-12)
        assert (score > 0) is (result.hybrid_score > 0)


@given(queries, passages, st.randoms(use_true_random=False))
def test_a_heuristic_score_does_not_depend_on_the_order(
    query: str, results: list[SearchResult], chance: random.Random
) -> None:
    scores = dict(zip(_ids(results), heuristic_scores(query, results), strict=True))
    shuffled = list(results)
    chance.shuffle(shuffled)
    assert dict(zip(_ids(shuffled), heuristic_scores(query, shuffled), strict=True)) == scores
    best = CrossEncoderReranker().rerank(query, results)
    assert CrossEncoderReranker().rerank(query, shuffled) == best
    assert sorted(_ids(best)) == sorted(_ids(results))
    assert [-result.rerank_score for result in best] == sorted(-result.rerank_score for result in best)


# --- without a model ----------------------------------------------------------------------------------------------


def test_ac_007_the_example_of_the_acceptance_document(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        reranker = CrossEncoderReranker(model_name="cross-encoder/ms-marco-MiniLM-L-6-v2")
        results = _results()
        reranked = reranker.rerank(QUERY, results, top_k=3)
        assert all(r.rerank_score > 0 for r in reranked)
        assert reranked[0].rerank_score >= reranked[-1].rerank_score

        reranker._model = None
        assert reranker.rerank(QUERY, results, top_k=3) == reranked
    assert results == _results()
    (record,) = caplog.records
    assert "dtrag models pull cross-encoder/ms-marco-MiniLM-L-6-v2" in record.message
    assert reranker.id == "heuristic"
    assert not reranker.applies(QUERY)


def test_ties_are_broken_by_the_hybrid_score_and_then_by_the_id() -> None:
    text = "machine learning algorithms"
    scores = {"d": 0.95, "c": 1.0, "b": 0.95, "a": 0.3}  # the first three reach 1
    reranked = CrossEncoderReranker().rerank(
        QUERY, [SearchResult(key, text, hybrid_score=s) for key, s in scores.items()]
    )
    assert [result.rerank_score for result in reranked[:3]] == [1.0] * 3
    assert _ids(reranked) == ["c", "b", "d", "a"]


def test_an_empty_list_stays_empty() -> None:
    assert CrossEncoderReranker().rerank(QUERY, []) == []
    model = Model([])
    assert CrossEncoderReranker(model=model).rerank(QUERY, []) == []
    assert model.read == []


@pytest.mark.parametrize("top_k", [0, -1])
async def test_an_invalid_top_k_is_rejected(top_k: int) -> None:
    with pytest.raises(InvalidInput, match="top_k must be at least 1"):
        CrossEncoderReranker().rerank(QUERY, _results(), top_k)
    with pytest.raises(InvalidInput, match="top_k must be at least 1"):
        await CrossEncoderReranker().attempt(QUERY, _results(), top_k)


@pytest.mark.parametrize("most", [0, -1, 51])
def test_a_model_reads_at_most_fifty(most: int) -> None:
    with pytest.raises(InvalidInput, match="max_candidates must be from 1 to 50"):
        CrossEncoderReranker(max_candidates=most)


# --- with a model -------------------------------------------------------------------------------------------------


async def test_the_model_decides_the_order() -> None:
    model = Model([0.2, 0.9, 0.4])  # of the best hybrid score first: 2, 1, 3
    reranker = CrossEncoderReranker(model=model)
    assert reranker.id == "table"
    expected = [("1", 0.9), ("3", 0.4), ("2", 0.2)]
    for reranked in (
        reranker.rerank(QUERY, _results()),
        await reranker.rerank_async(QUERY, _results(), timeout=60),
        (await reranker.attempt(QUERY, _results(), timeout=60))[0],
    ):
        assert [(result.chunk_id, result.rerank_score) for result in reranked] == expected
    assert [result.hybrid_score for result in reranked] == [0.75, 0.70, 0.80]
    assert _ids(reranker.rerank(QUERY, _results(), top_k=2)) == ["1", "3"]
    assert (await reranker.attempt(QUERY, _results(), 1, 60))[1] is True
    assert model.deadlines[0] == math.inf
    assert all(math.isfinite(deadline) for deadline in model.deadlines[1:3])


def test_the_model_reads_the_title_unless_the_text_begins_with_it() -> None:
    model = Model([0.5, 0.5, 0.5])
    titled = [
        SearchResult("1", "Body.", title="Leave", hybrid_score=0.9),
        SearchResult("2", "Leave. Body.", title="Leave", hybrid_score=0.8),
        SearchResult("3", "Body.", hybrid_score=0.7),
    ]
    CrossEncoderReranker(model=model).rerank("leave", titled)
    assert model.read == [["Leave\nBody.", "Leave. Body.", "Body."]]


def test_passages_that_the_model_did_not_read_come_last() -> None:
    model = Model([0.3, 0.6])
    results = [SearchResult(str(i), f"text {i}", hybrid_score=i / 100) for i in range(100)]
    reranked = CrossEncoderReranker(model=model, max_candidates=2).rerank("text", results)
    assert model.read == [["text 99", "text 98"]]
    assert _ids(reranked)[:3] == ["98", "99", "97"]
    assert sorted(_ids(reranked), key=int) == _ids(results)
    assert [-result.rerank_score for result in reranked] == sorted(-result.rerank_score for result in reranked)
    assert all(0 < result.rerank_score <= 0.3 for result in reranked[2:-1])


def test_the_model_reads_fifty_of_many_passages() -> None:
    model = Model([0.5] * 50)
    CrossEncoderReranker(model=model).rerank("text", [SearchResult(str(i), "text") for i in range(80)])
    assert [len(texts) for texts in model.read] == [10] * 5


async def test_a_model_is_not_called_for_a_language_that_it_does_not_support() -> None:
    model = Model([0.2, 0.9, 0.4], languages=frozenset({"en"}))
    reranker = CrossEncoderReranker(model=model)
    by_rule = CrossEncoderReranker().rerank("휴학 기간", _results())
    assert reranker.rerank("휴학 기간", _results()) == by_rule
    assert await reranker.attempt("휴학 기간", _results(), timeout=60) == (by_rule, False)
    assert model.read == []
    assert [reranker.applies(query) for query in ("leave", "휴학 기간")] == [True, False]


@pytest.mark.parametrize("scores", [[0.5], [0.5, 0.5, math.nan], [0.5, 0.5, 7.0], [0.5, -0.1, 0.2]])
async def test_invalid_scores_are_an_error(scores: list[float], caplog: pytest.LogCaptureFixture) -> None:
    reranker = CrossEncoderReranker(model=Model(scores))
    with pytest.raises(ValueError, match="the reranker table returned a score outside 0 to 1"):
        reranker.rerank(QUERY, _results())
    for _ in range(3):
        with pytest.raises(ValueError, match="the reranker table returned a score"):
            await reranker.attempt(QUERY, _results(), timeout=60)
    assert len(caplog.records) == 1


async def test_the_failure_of_a_model_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    reranker = CrossEncoderReranker(model=Broken())
    for _ in range(3):
        with pytest.raises(RuntimeError, match="no weights"):
            await reranker.rerank_async(QUERY, _results(), timeout=60)
    assert [record.message for record in caplog.records] == ["The reranker table failed: no weights"]


# --- in time ------------------------------------------------------------------------------------------------------


async def test_the_heuristic_decides_when_the_model_gives_up(caplog: pytest.LogCaptureFixture) -> None:
    by_rule = CrossEncoderReranker().rerank(QUERY, _results())
    reranker = CrossEncoderReranker(model=Model(None))
    for _ in range(3):
        assert await reranker.attempt(QUERY, _results(), timeout=60) == (by_rule, False)
    assert len(caplog.records) == 1
    assert "not finished in time" in caplog.text
    assert reranker.rerank(QUERY, _results()) == by_rule


class Tiring(Model):
    """Reads only its first slice in time; then it gives up, or never returns."""

    def __init__(self, go: threading.Event | None) -> None:
        super().__init__([0.2 + number / 100 for number in range(10)])
        self._go = go

    def score(self, query: str, texts: Sequence[str], deadline: float) -> Sequence[float] | None:
        if not self.read:
            return super().score(query, texts, deadline)
        if self._go is not None:
            assert self._go.wait(10)
        return None


@pytest.mark.parametrize("endless", [False, True])
async def test_passages_read_in_time_are_ordered_by_the_model_and_come_first(
    endless: bool, caplog: pytest.LogCaptureFixture
) -> None:
    go = threading.Event() if endless else None
    results = [SearchResult(str(i), f"text {i}", hybrid_score=i / 30) for i in range(30)]
    reranked, complete = await CrossEncoderReranker(model=Tiring(go)).attempt("text", results, timeout=0.2)
    if go is not None:
        go.set()
    assert not complete
    assert _ids(reranked) == ["28", "29", *(str(i) for i in range(27, -1, -1))]
    assert reranked[1].rerank_score == 0.2
    assert all(0 < result.rerank_score <= 0.2 for result in reranked[2:-1])
    assert "did not read every candidate" in caplog.text


class Paced(Model):
    """Takes a fixed time for each passage, ignores the deadline, and prefers the last passages."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def score(self, query: str, texts: Sequence[str], deadline: float) -> Sequence[float]:
        time.sleep(self._seconds * len(texts))
        self.read.append(list(texts))
        return [0.99 - int(text.split()[1]) / 1000 for text in texts]


@pytest.mark.parametrize("seconds", [0.02, 0.06, 0.1])
async def test_the_passages_that_fit_the_time_are_read_and_the_others_keep_their_fused_order(seconds: float) -> None:
    model = Paced(seconds)
    # Long texts stand last: the heuristic of the contract would not leave them in the fused order.
    results = [SearchResult(str(i), f"text {i}{' word' * 10 * (i % 3)}", hybrid_score=i / 60) for i in range(60)]
    reranker = CrossEncoderReranker(model=model)
    for _ in range(2):  # the second time the rate is known
        model.read.clear()
        reranked, complete = await reranker.attempt("text", results, timeout=0.6)
        read = sum(map(len, model.read))
        assert not complete
        assert 1 <= read <= 0.6 / seconds
        assert _ids(reranked)[:read] == [str(i) for i in range(60 - read, 60)]
        assert _ids(reranked)[read:] == [str(i) for i in range(59 - read, -1, -1)]


async def test_a_model_that_was_too_slow_for_one_passage_is_tried_again() -> None:
    model = Paced(0.3)
    reranker = CrossEncoderReranker(model=model)
    await reranker.attempt("text", [SearchResult("1", "text 1", hybrid_score=0.5)], timeout=60)
    model._seconds = 0.0
    counts = []
    for _ in range(8):
        model.read.clear()
        await reranker.attempt("text", [SearchResult("1", "text 1", hybrid_score=0.5)], timeout=0.1)
        counts.append(len(model.read))
    assert counts[0] == 0
    assert counts[-1] == 1


async def test_a_model_that_ignores_the_deadline_does_not_delay_the_search() -> None:
    model = Stuck()
    reranker = CrossEncoderReranker(model=model)
    by_rule = CrossEncoderReranker().rerank(QUERY, _results())
    # Back although the model never is: the event is set only afterwards. A busy machine starts the thread late.
    assert await reranker.attempt(QUERY, _results(), timeout=1) == (by_rule, False)
    assert model.started.is_set()
    # Another search does not queue behind it for longer than its own limit, nor is it read when nobody waits.
    assert await reranker.attempt(QUERY, _results(), timeout=0.05) == (by_rule, False)
    assert model.read == []
    model.go.set()
    reranked, used = await reranker.attempt(QUERY, _results(), timeout=60)
    assert used
    assert _ids(reranked)[0] == "3"
    assert len(model.read) == 2


async def test_a_cancelled_search_does_not_wait_for_the_model() -> None:
    model = Stuck()
    searching = asyncio.create_task(CrossEncoderReranker(model=model).attempt(QUERY, _results(), timeout=60))
    await asyncio.to_thread(model.started.wait, 10)
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    model.go.set()


async def test_concurrent_searches_have_their_own_orders() -> None:
    class Echo(Model):
        def score(self, query: str, texts: Sequence[str], deadline: float) -> Sequence[float] | None:
            return [0.9 if text == query else 0.1 for text in texts]

    reranker = CrossEncoderReranker(model=Echo())
    results = [SearchResult(str(i), f"text {i}", hybrid_score=0.5) for i in range(20)]
    best = await asyncio.gather(*(reranker.attempt(f"text {i}", results, 1, 60) for i in range(20)))
    assert [(found[0].chunk_id, used) for found, used in best] == [(str(i), True) for i in range(20)]
    assert all(replace(found[0], rerank_score=0.0) in results for found, _ in best)
