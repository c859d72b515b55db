"""What every reranker must do."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from dtrag.ports import Reranker

QUERY = "when does the library close"
TEXTS = (
    "Refunds are paid within ten working days.",
    "The library does close at nine in the evening, when the last reader leaves.",
    "The library opens early.",
    "A pump of cast brass.",
)
ANSWER = 1
ODD = {
    "empty": "",
    "white space": " \t\r\n\u00a0\u3000",
    "emoji": "👩‍🔬🧪🇰🇷 😀",
    "a word of 10,000 letters": "a" * 10_000,
    "a long text": "the library does close " * 5_000,
    "control characters": "\x01\x02\x1b[31m\x7f\u202e",
    "a lone surrogate": "broken \ud83d text",
    "another script": "도서관은 몇 시에 닫나요?",
    "special tokens": "[CLS] [SEP] [PAD] <s> </s>",
}


class RerankerContract:
    """Fixture: `reranker`. A score depends on query and text only; late scores are None."""

    def test_has_a_name_and_languages(self, reranker: Reranker) -> None:
        assert reranker.id
        assert reranker.languages

    def test_scores_lie_strictly_between_0_and_1(self, reranker: Reranker) -> None:
        scores = scored(reranker, QUERY, TEXTS)
        assert len(scores) == len(TEXTS)
        assert all(isinstance(score, float) and 0 < score < 1 for score in scores)

    def test_the_passage_that_answers_is_first(self, reranker: Reranker) -> None:
        scores = scored(reranker, QUERY, TEXTS)
        assert max(scores) == scores[ANSWER]
        assert sorted(scores)[-2] < scores[ANSWER]

    def test_the_score_depends_on_the_query_too(self, reranker: Reranker) -> None:
        other = scored(reranker, "within how many days are refunds paid", TEXTS)
        assert max(other) == other[0]

    def test_no_text_no_score(self, reranker: Reranker) -> None:
        assert scored(reranker, QUERY, []) == []

    def test_a_score_does_not_depend_on_the_neighbours_or_their_order(self, reranker: Reranker) -> None:
        together = scored(reranker, QUERY, TEXTS)
        assert scored(reranker, QUERY, TEXTS[::-1])[::-1] == pytest.approx(together, abs=1e-5)
        assert [scored(reranker, QUERY, [text])[0] for text in TEXTS] == pytest.approx(together, abs=1e-5)
        assert scored(reranker, QUERY, [*ODD.values(), *TEXTS])[len(ODD) :] == pytest.approx(together, abs=1e-5)

    @pytest.mark.parametrize("kind", ODD)
    def test_odd_texts_have_scores_on_either_side(self, reranker: Reranker, kind: str) -> None:
        for query, text in ((QUERY, ODD[kind]), (ODD[kind], TEXTS[0]), (ODD[kind], ODD[kind])):
            (score,) = scored(reranker, query, [text])
            assert 0 < score < 1

    def test_what_is_far_behind_in_a_long_text_is_cut_off(self, reranker: Reranker) -> None:
        head = "one two three four " * 600
        first, second = scored(reranker, QUERY, [head, f"{head} {TEXTS[ANSWER]}"])
        assert first == second

    def test_more_than_fifty_texts_have_scores(self, reranker: Reranker) -> None:
        scores = scored(reranker, QUERY, TEXTS * 15)
        assert len(scores) == 60
        assert scores[:4] == pytest.approx(scores[-4:], abs=1e-5)

    def test_past_the_deadline_there_is_nothing(self, reranker: Reranker) -> None:
        assert reranker.score(QUERY, TEXTS, time.monotonic() - 1) is None

    def test_what_is_not_ready_by_the_deadline_is_nothing(
        self, reranker: Reranker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = iter(range(1_000))  # every look at the clock takes a second
        scored(reranker, QUERY, TEXTS[:1])
        monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
        assert reranker.score(QUERY, TEXTS * 10, 5.0) is None
        assert next(clock) < 100

    def test_threads_share_it(self, reranker: Reranker) -> None:
        expected = scored(reranker, QUERY, TEXTS)
        with ThreadPoolExecutor(4) as pool:
            for scores in pool.map(lambda _: scored(reranker, QUERY, TEXTS), range(12)):
                assert scores == pytest.approx(expected, abs=1e-5)


def scored(reranker: Reranker, query: str, texts: Sequence[str]) -> list[float]:
    """The scores, without a deadline."""
    scores = reranker.score(query, texts, math.inf)
    assert scores is not None
    return list(scores)
