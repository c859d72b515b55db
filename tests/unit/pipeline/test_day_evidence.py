"""Whether an answer as of an earlier day is sure, by the results of today."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dtrag.core.access.scope import EVERYTHING
from dtrag.core.answers.passage_confidence import Confidence
from dtrag.core.documents import SearchMetrics, SearchResult, TodaysResults
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.statements import text_of
from dtrag.pipeline.retrieve import as_of_day
from dtrag.pipeline.run_context import Run

SURE = Confidence(0.9, "answer", ())


def article(number: int, since: str) -> SearchResult:
    metadata = {"regulation": "학칙", "article": f"제{number}조", "effective_from": since}
    return SearchResult(f"d:{number}", "휴학은 두 학기까지 한다.", metadata=metadata, hybrid_score=0.7)


@pytest.mark.parametrize(
    ("first_today", "decision"),
    [(article(1, "2010-01-01"), "answer"), (article(2, "2010-01-01"), "review"), (article(2, "2020-01-01"), "answer")],
    ids=["the same", "another that was the same then", "another edition of a text of the day"],
)
async def test_what_comes_first_today_and_was_the_same_then_must_come_first(
    first_today: SearchResult, decision: str
) -> None:
    run = cast("Run", SimpleNamespace(scope=EVERYTHING.at(date(2015, 1, 1)), policy="balanced"))
    metrics = SearchMetrics(today=TodaysResults((first_today,), None, {}))
    results: tuple[list[SearchResult], SearchMetrics] = [article(1, "2010-01-01")], metrics
    settings: dict[str, Any] = {}
    judged, answer = await as_of_day(SURE, "휴학", results, LexicalStatistics(), settings=settings, run=run)
    assert (judged.decision, answer) == (decision, "")
    assert ("학칙 제2조" in text_of(judged.reason)) == (decision == "review")
