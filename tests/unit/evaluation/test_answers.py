"""The measures of answers are those worked out by hand, and add up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.documents import Answer, Citation, SearchResult
from dtrag.core.evaluation_run import EvaluationRun, RunRow
from dtrag.errors import InvalidInput
from dtrag.evaluation import question_limit
from dtrag.evaluation.answers import (
    AnsweredQuestion,
    AnswerMeasures,
    AnswerSet,
    evaluate_answers,
    is_relevant,
    measures,
    rows_of,
)
from dtrag.evaluation.judged_questions import JudgedQuestion, JudgedSet
from dtrag.evaluation.quality import RAGQualityEvaluator
from dtrag.evaluation.quality_set import evaluate_quality
from dtrag.evaluation.report import html, markdown
from dtrag.settings import timeout_multiplier

TEXT = "Valves close at nine. The porter opens them."
FIRST, SECOND = (0, 21), (22, 44)


def _set(*questions: JudgedQuestion, limit: int | None = None) -> AnswerSet:
    return AnswerSet.of(JudgedSet("set", Path(), questions), limit)


def _citation(chunk: str, span: tuple[int, int] = FIRST, quote: str | None = None) -> Citation:
    start, end = span
    return Citation(1, "Rules", chunk, "d", "", TEXT[start:end] if quote is None else quote, start, end)


def _answer(text: str, *citations: Citation, decision: str = "answer", model: str | None = None) -> Answer:
    return Answer("", text, citations, 0.9, decision, "", {}, model=model)


def _article(number: str, **metadata: Any) -> SearchResult:
    return SearchResult(
        "c", title="학칙", metadata={"regulation": "학칙", "code": "1-1", "article": number, **metadata}
    )


PASSAGES = {"d:1": _article("제1조"), "d:2": _article("제2조"), "d:3": _article("제2조", occurrence=2)}


async def _measure(dataset: AnswerSet, answers: Mapping[str, Answer]) -> tuple[AnswerMeasures, list[str]]:
    async def ask(question: str) -> Answer:
        return answers[question]

    async def read_text(document_id: str) -> str:
        assert document_id == "d"
        return TEXT

    async def read_passages(chunk_ids: Sequence[str]) -> Mapping[str, SearchResult]:
        return {chunk_id: PASSAGES[chunk_id] for chunk_id in chunk_ids if chunk_id in PASSAGES}

    steps: list[tuple[int, int]] = []
    measured = await evaluate_answers(
        ask, read_text, read_passages, dataset, lambda done, total: steps.append((done, total))
    )
    assert steps == [(number + 1, len(dataset.questions)) for number in range(len(dataset.questions))]
    return measured


def test_an_answer_set_has_the_judged_questions() -> None:
    judged = [JudgedQuestion(str(number), "q", {}, ("x",)) for number in range(4)]
    relevant, absent = JudgedQuestion("r", "q", {"a": 1}), JudgedQuestion("u", "q", {}, answerable=False)
    unjudged = JudgedQuestion("n", "q", {})
    ids = [question.id for question in _set(*judged, unjudged, relevant, absent).questions]
    assert ids == ["0", "1", "2", "3", "r", "u"]
    assert [question.id for question in _set(*judged, relevant, absent, limit=3).questions] == ["0", "2", "r"]
    with pytest.raises(InvalidInput, match="no question has"):
        _set(unjudged)


async def test_measures_by_hand() -> None:
    relevant = {"1-1:제1조": 1, "1-1:제2조#2": 2}
    dataset = _set(
        JudgedQuestion("1", "both right", relevant, ("at nine",)),
        JudgedQuestion("2", "second right", relevant, ("at nine", "elsewhere")),
        JudgedQuestion("3", "wrong", relevant),
        JudgedQuestion("4", "declined", relevant),
        JudgedQuestion("5", "absent, declined", {}, answerable=False),
        JudgedQuestion("6", "absent, marked", {}, answerable=False),
        JudgedQuestion("7", "absent, answered", {}, answerable=False),
        JudgedQuestion("8", "absent, empty", {}, answerable=False),
    )
    answers = {
        "both right": _answer("Valves close AT  NINE. [1]", _citation("d:1"), _citation("d:3", SECOND)),
        "second right": _answer("Never. [1]", _citation("d:2"), _citation("d:1"), decision="review"),
        "wrong": _answer("Yes [1]", _citation("d:2")),
        "declined": _answer("", decision="abstain"),
        "absent, declined": _answer("", decision="abstain"),
        "absent, marked": _answer("Perhaps [1]", _citation("gone"), decision="review"),
        "absent, answered": _answer("Yes [1]", _citation("d:1")),
        "absent, empty": _answer("x"),
    }
    measured, notes = await _measure(dataset, answers)
    intervals = measured["intervals"]
    assert {name: value for name, value in measured.items() if name != "intervals"} == {
        "contained": 0.5,
        "sentences": 1.4,
        "precision": round(3 / 7, 4),
        "any_right": 0.5,
        "first_right": 0.25,
        "wrong": 0.25,
        "declined_wrongly": 0.25,
        "unanswerable": {"declined": 0.5, "marked": 0.25, "answered": 0.25},
        "counts": {
            "questions": 8,
            "answerable": 4,
            "unanswerable": 4,
            "answered": 5,
            "declined": 3,
            "unfinished": 0,
            "by_model": 0,
            "quotations": 7,
            "right_quotations": 3,
            "exact_quotations": 7,
        },
    }
    assert list(intervals) == [name for name in measured if name not in {"intervals", "counts"}]
    assert intervals["unanswerable"]["declined"] is not None
    assert notes == []
    rows = rows_of("set", measured)
    assert dict(rows)["unanswerable, for review"].startswith("0.250  [")
    assert all(len(value) <= 50 for _, value in rows)


async def test_without_known_answers_or_judgements_there_is_nothing_to_compare() -> None:
    measured, _ = await _measure(_set(JudgedQuestion("1", "q", {"d": 1})), {"q": _answer("x", _citation("d:1"))})
    assert (measured["contained"], measured["intervals"]["contained"]) == (None, None)
    assert measured["unanswerable"] == {"declined": None, "marked": None, "answered": None}
    dataset = _set(JudgedQuestion("1", "q", {}, ("nine",)), JudgedQuestion("2", "r", {}, answerable=False))
    answers = {"q": _answer("nine", _citation("d:1")), "r": _answer("nine", _citation("d:1"))}
    measured, _ = await _measure(dataset, answers)
    assert (measured["contained"], measured["precision"], measured["any_right"]) == (1.0, None, None)
    assert dict(rows_of("set", measured))["precision of quotations"] == "not judged in this set"


async def test_a_quotation_that_is_not_in_the_document_is_counted_and_named() -> None:
    citations = [
        _citation("d:1"),
        _citation("d:1", quote="Valves close at ten."),
        _citation("d:1", (1, 21), "Valves close at nine."),
        _citation("d:1", (3, 3)),
    ]
    measured, notes = await _measure(_set(JudgedQuestion("1", "q", {}, ("x",))), {"q": _answer("x", *citations)})
    assert (measured["counts"]["quotations"], measured["counts"]["exact_quotations"]) == (4, 1)
    assert notes == ["3 quotations are not the text of their document at their span: d 0-21, d 1-21, d 3-3"]


async def test_a_model_may_answer_without_a_quotation() -> None:
    answers = {"q": _answer("At nine [1]. [?]", model="m")}
    measured, _ = await _measure(_set(JudgedQuestion("1", "q", {"a": 1}, ("nine.",))), answers)
    assert (measured["contained"], measured["sentences"], measured["wrong"]) == (1.0, 0.0, 1.0)
    assert (measured["precision"], measured["counts"]["by_model"]) == (None, 1)


async def test_a_question_that_does_not_finish_counts_for_no_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that the pipeline gave up, nor one that does not come back; both were declined before."""
    monkeypatch.setattr(question_limit, "QUESTION_S", 0.05)
    dataset = _set(
        *(JudgedQuestion(text, text, {"a": 1}, ("nine",)) for text in ("right", "given up", "never")),
        JudgedQuestion("absent", "absent", {}, answerable=False),
    )
    answers = {
        "right": _answer("Valves close at nine. [1]", _citation("d:1")),
        "given up": replace(_answer("There was not enough time.", decision="review"), unfinished=True),
        "absent": replace(_answer("", decision="abstain"), unfinished=True),
    }

    async def ask(question: str) -> Answer:
        if question == "never":
            await asyncio.sleep(60)
        assert timeout_multiplier() >= 30, "the limits of single steps are longer, too"
        return answers[question]

    async def read_text(document_id: str) -> str:
        return TEXT

    async def read_passages(chunk_ids: Sequence[str]) -> Mapping[str, SearchResult]:
        return {chunk_id: PASSAGES[chunk_id] for chunk_id in chunk_ids}

    rows: list[RunRow] = []
    measured, _ = await evaluate_answers(ask, read_text, read_passages, dataset, on_row=rows.append)
    assert timeout_multiplier() == 1
    counts = measured["counts"]
    assert (counts["questions"], counts["answered"], counts["declined"], counts["unfinished"]) == (4, 1, 0, 3)
    assert (measured["contained"], measured["declined_wrongly"], measured["wrong"]) == (1.0, 0.0, 1.0)
    assert measured["unanswerable"] == {"declined": None, "marked": None, "answered": None}
    assert ("not finished", "3 in 0.05 s each: in no measure") in rows_of("set", measured)
    run = EvaluationRun("answers", "set", "1", {}, tuple(rows))
    estimate = EvaluationRun.from_dict(json.loads(json.dumps(run.as_dict()))).estimates()["unfinished"]
    assert estimate.value == 0.75
    assert "| unfinished | 0.7500 |" in markdown(run, None)
    assert "unfinished" in html(run, None)

    async def contexts(question: str, top_k: int) -> Sequence[SearchResult]:
        return list(PASSAGES.values())

    quality = await evaluate_quality(ask, contexts, RAGQualityEvaluator(), dataset)
    assert [row.ratios["unfinished"][0] for row in quality] == [0, 1, 1, 1]
    assert sum(row.ratios["accepted"][1] for row in quality) == 1


def test_a_document_is_relevant_by_its_names_and_an_article_by_its_number() -> None:
    assert is_relevant(PASSAGES["d:3"], {"1-1:제2조#2"})
    assert not is_relevant(PASSAGES["d:3"], {"1-1:제2조"})
    assert is_relevant(PASSAGES["d:3"], {"학칙"})
    assert is_relevant(SearchResult("c", source_url="file:///a/leave.md"), {"leave.md"})


@st.composite
def _answered(draw: st.DrawFn) -> AnsweredQuestion:
    answerable = draw(st.booleans())
    question = JudgedQuestion("1", "q", {"a": 1} if answerable else {}, ("x",), answerable)
    decision = draw(st.sampled_from(["answer", "review", "abstain"]))
    right = tuple(draw(st.lists(st.booleans(), max_size=4))) if decision != "abstain" else ()
    if not answerable:
        right = (False,) * len(right)
    contained = draw(st.booleans()) and decision != "abstain"
    return AnsweredQuestion(question, decision, len(right), right if decision != "abstain" else None, (), contained)


@settings(max_examples=25)
@given(st.lists(_answered(), min_size=1, max_size=12))
def test_the_shares_add_up(rows: list[AnsweredQuestion]) -> None:
    measured = measures(rows)
    counts = measured["counts"]
    assert counts["answerable"] + counts["unanswerable"] == counts["answered"] + counts["declined"] == len(rows)
    assert counts["right_quotations"] <= counts["quotations"]
    if counts["answerable"]:
        any_right, first_right, wrong = measured["any_right"], measured["first_right"], measured["wrong"]
        declined = measured["declined_wrongly"]
        assert any_right is not None and first_right is not None and wrong is not None and declined is not None
        assert any_right + wrong + declined == pytest.approx(1, abs=2e-4)
        assert first_right <= any_right
    if counts["unanswerable"]:
        shares = measured["unanswerable"]
        assert sum(shares[name] or 0.0 for name in ("declined", "marked", "answered")) == pytest.approx(1, abs=2e-4)
    for name in ("contained", "precision", "any_right", "first_right", "wrong", "declined_wrongly"):
        value, interval = measured[name], measured["intervals"][name]
        assert (value is None) is (interval is None)
        assert interval is None or 0 <= interval[0] <= interval[1] <= 1
