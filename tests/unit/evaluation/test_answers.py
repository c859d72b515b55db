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

from dtrag.core.documents import Answer, Citation, CitationContext, SearchResult
from dtrag.core.evaluation_run import EvaluationRun, RunRow
from dtrag.core.response import plain
from dtrag.errors import InvalidInput
from dtrag.evaluation import judged_questions as question_limit
from dtrag.evaluation.answers import (
    AnswerMeasures,
    AnswerSet,
    JudgedAnswer,
    evaluate_answers,
    is_relevant,
    measures,
    rows_of,
)
from dtrag.evaluation.judged_questions import JudgedQuestion, JudgedSet
from dtrag.evaluation.quality import RAGQualityEvaluator, evaluate_quality
from dtrag.evaluation.report import html, markdown
from dtrag.settings import timeout_multiplier

TEXT = "Valves close at nine. The porter opens them."
FIRST, SECOND = (0, 21), (22, 44)


def _set(*questions: JudgedQuestion, limit: int | None = None) -> AnswerSet:
    return AnswerSet.of(JudgedSet("set", Path(), questions), limit)


def _citation(chunk: str, span: tuple[int, int] = FIRST, quote: str | None = None) -> Citation:
    start, end = span
    return Citation(1, "Rules", chunk, "d", "", TEXT[start:end] if quote is None else quote, start, end)


def _answer(
    text: str,
    *citations: Citation,
    decision: str = "answer",
    model: str | None = None,
    confidence: float = 0.9,
) -> Answer:
    return Answer("", text, citations, confidence, decision, {}, model=model)


def _article(number: str, **metadata: Any) -> SearchResult:
    return SearchResult(
        "c", title="학칙", metadata={"regulation": "학칙", "code": "1-1", "article": number, **metadata}
    )


PASSAGES = {"d:1": _article("제1조"), "d:2": _article("제2조"), "d:3": _article("제2조", occurrence=2)}


async def _measure(
    dataset: AnswerSet, answers: Mapping[str, Answer], rows: list[RunRow] | None = None
) -> tuple[AnswerMeasures, list[str]]:
    async def ask(question: str) -> Answer:
        return answers[question]

    async def read_text(document_id: str) -> str:
        assert document_id == "d"
        return TEXT

    async def read_passages(chunk_ids: Sequence[str]) -> Mapping[str, SearchResult]:
        return {chunk_id: PASSAGES[chunk_id] for chunk_id in chunk_ids if chunk_id in PASSAGES}

    steps: list[tuple[int, int]] = []
    measured = await evaluate_answers(
        ask,
        read_text,
        read_passages,
        dataset,
        lambda done, total: steps.append((done, total)),
        on_row=rows.append if rows is not None else None,
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


MUST = (("at nine", "9 o'clock"), ("porter",))


async def test_measures_by_hand() -> None:
    relevant = {"1-1:제1조": 1, "1-1:제2조#2": 2}
    dataset = _set(
        JudgedQuestion("1", "both shown", relevant, must=MUST),
        JudgedQuestion("2", "one shown", relevant, must=MUST),
        JudgedQuestion("3", "elsewhere", relevant, must=MUST),
        JudgedQuestion("4", "declined", relevant, must=MUST),
        JudgedQuestion("5", "absent, declined", {}, answerable=False),
        JudgedQuestion("6", "absent, marked", {}, answerable=False),
        JudgedQuestion("7", "absent, answered", {}, answerable=False),
        JudgedQuestion("8", "absent, empty", {}, answerable=False),
        JudgedQuestion("9", "no words known", relevant, ("never looked for",), must=()),
        JudgedQuestion("10", "marked", relevant, ("at nine",)),
    )
    answers = {
        "both shown": _answer("Valves close AT  <amended 2024> NINE. [1]", _citation("d:1"), _citation("d:3", SECOND)),
        "one shown": _answer("Valves close at nine [1].", _citation("d:1"), _citation("d:2"), confidence=0.8),
        "elsewhere": _answer("Yes [1]", _citation("d:2"), _citation("d:1"), confidence=0.7),
        "declined": _answer("", decision="abstain", confidence=0.1),
        "absent, declined": _answer("", decision="abstain", confidence=0.1),
        "absent, marked": _answer("Perhaps [1]", _citation("gone"), decision="review", confidence=0.5),
        "absent, answered": _answer("Yes [1]", _citation("d:1"), confidence=0.8),
        "absent, empty": _answer("x"),
        "no words known": _answer("Never. [1]", _citation("d:1")),
        "marked": _answer("It depends. [1]", _citation("d:1"), decision="review", confidence=0.6),
    }
    measured, notes = await _measure(dataset, answers)
    intervals = measured["intervals"]
    assert {name: value for name, value in measured.items() if name != "intervals"} == {
        "sufficient": 0.4,
        "sentences": round(10 / 7, 4),
        "precision": 0.6,
        "first_right": round(4 / 6, 4),
        "declined_wrongly": round(1 / 6, 4),
        "answer": {"share": 0.5, "sufficient": round(1 / 3, 4), "right": 0.25, "wrong": 0.5},
        "review": {"share": 0.2, "sufficient": 1.0, "right": 0.5, "wrong": 0.0},
        "abstain": {"share": 0.3, "right": round(2 / 3, 4), "wrong": round(1 / 3, 4)},
        "unanswerable": {"declined": 0.5, "marked": 0.25, "answered": 0.25},
        "characters": {"median": 11, "p90": 31},
        "risk_coverage": {
            "area": round((0 + 2 / 3 * 2 + 3 / 4 + 3 / 5 + 4 / 6) / 6, 4),
            "points": [
                {"confidence": 0.9, "coverage": round(1 / 9, 4), "risk": 0.0},
                {"confidence": 0.8, "coverage": round(3 / 9, 4), "risk": round(2 / 3, 4)},
                {"confidence": 0.7, "coverage": round(4 / 9, 4), "risk": 0.75},
                {"confidence": 0.6, "coverage": round(5 / 9, 4), "risk": 0.6},
                {"confidence": 0.5, "coverage": round(6 / 9, 4), "risk": round(4 / 6, 4)},
            ],
        },
        "counts": {
            "questions": 10,
            "answerable": 6,
            "unanswerable": 4,
            "judged": 5,
            "answered": 7,
            "declined": 3,
            "unfinished": 0,
            "by_model": 0,
            "quotations": 10,
            "right_quotations": 6,
            "exact_quotations": 10,
        },
    }
    assert list(intervals) == [
        name for name in measured if name not in {"characters", "risk_coverage", "intervals", "counts"}
    ]
    assert intervals["unanswerable"]["declined"] is not None
    assert notes == []
    rows = rows_of("set", measured)
    assert dict(rows)["unanswerable, for review"].startswith("0.250  [")
    assert dict(rows)["verdict answer"] == "0.500 of the questions, right 0.250, wrong 0.500"
    assert all(len(value) <= 50 for _, value in rows)


async def test_a_row_has_what_a_reader_needs_to_judge_the_answer() -> None:
    unit = CitationContext("unit", "opening hours", 0, 13)
    citation = replace(_citation("d:1"), context=(unit,))
    dataset = _set(JudgedQuestion("1", "q", {"1-1:제1조": 1}, must=(("opening hours",), ("ten", "eleven"))))
    rows: list[RunRow] = []
    await _measure(dataset, {"q": _answer("At nine [1].", citation)}, rows)
    assert rows[0].details == {
        "answer": "At nine [1].",
        "decision": "answer",
        "confidence": 0.9,
        "first": "1-1:제1조",
        "quotations": ["opening hours", "Valves close at nine."],
        "missing": ["ten | eleven"],
        "answerable": True,
        "must": ["opening hours", "ten | eleven"],
    }
    run = EvaluationRun("answers", "set", "1", {}, tuple(rows))
    assert "not right over share answered" in html(run, None)


async def test_without_known_answers_or_judgements_there_is_nothing_to_compare() -> None:
    measured, _ = await _measure(_set(JudgedQuestion("1", "q", {"d": 1})), {"q": _answer("x", _citation("d:1"))})
    assert (measured["sufficient"], measured["intervals"]["sufficient"]) == (None, None)
    assert (measured["answer"]["share"], measured["answer"]["right"]) == (1.0, None)
    assert measured["risk_coverage"] == {"area": None, "points": []}
    assert measured["unanswerable"] == {"declined": None, "marked": None, "answered": None}
    dataset = _set(JudgedQuestion("1", "q", {}, ("nine",)), JudgedQuestion("2", "r", {}, answerable=False))
    answers = {"q": _answer("nine", _citation("d:1")), "r": _answer("nine", _citation("d:1"))}
    measured, _ = await _measure(dataset, answers)
    assert (measured["sufficient"], measured["precision"], measured["first_right"]) == (1.0, None, None)
    assert measured["answer"] == {"share": 1.0, "sufficient": 1.0, "right": 0.5, "wrong": 0.5}
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
    assert (measured["sufficient"], measured["sentences"], measured["first_right"]) == (1.0, 0.0, 0.0)
    assert (measured["precision"], measured["counts"]["by_model"]) == (None, 1)


@pytest.mark.usefixtures("shipped_limits")
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
    assert (measured["sufficient"], measured["declined_wrongly"], measured["answer"]["right"]) == (1.0, 0.0, 1.0)
    assert measured["unanswerable"] == {"declined": None, "marked": None, "answered": None}
    assert ("not finished", "3 in 0.05 s each: in no measure") in rows_of("set", measured)
    run = EvaluationRun("answers", "set", "1", {}, tuple(rows))
    estimate = EvaluationRun.from_dict(json.loads(json.dumps(plain(run.report())))).estimates()["unfinished"]
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
def _answered(draw: st.DrawFn) -> JudgedAnswer:
    answerable = draw(st.booleans())
    question = JudgedQuestion("1", "q", {"a": 1} if answerable else {}, ("x",), answerable)
    answer = _answer("x", decision=draw(st.sampled_from(["answer", "review", "abstain"])), model="m")
    if answer.decision == "abstain":
        return JudgedAnswer(question, answer)
    right = tuple(draw(st.lists(st.booleans(), max_size=4)))
    answer = replace(answer, citations=(_citation("d:1"),) * len(right))
    missing = tuple(draw(st.lists(st.just("x"), max_size=1)))
    return JudgedAnswer(question, answer, right if answerable else (False,) * len(right), missing=missing)


@settings(max_examples=25)
@given(st.lists(_answered(), min_size=1, max_size=12))
def test_the_shares_add_up(rows: list[JudgedAnswer]) -> None:
    measured = measures(rows)
    counts = measured["counts"]
    assert counts["answerable"] + counts["unanswerable"] == counts["answered"] + counts["declined"] == len(rows)
    assert counts["right_quotations"] <= counts["quotations"]
    verdicts = [measured[verdict] for verdict in ("answer", "review", "abstain")]
    assert sum(verdict["share"] for verdict in verdicts) == pytest.approx(1, abs=2e-4)
    assert all(verdict["right"] is None or verdict["right"] + verdict["wrong"] < 1.0002 for verdict in verdicts)
    if counts["answerable"]:
        assert measured["sufficient"] + measured["declined_wrongly"] <= 1.0002
    if counts["unanswerable"]:
        shares = measured["unanswerable"]
        assert sum(shares[name] for name in ("declined", "marked", "answered")) == pytest.approx(1, abs=2e-4)
    if points := measured["risk_coverage"]["points"]:
        answered = [row for row in rows if row.answered]
        assert points[-1]["coverage"] == pytest.approx(len(answered) / len(rows), abs=1e-4)
        wrong = sum(not (row.sufficient and row.question.answerable) for row in answered)
        assert points[-1]["risk"] == pytest.approx(wrong / len(answered), abs=1e-4)
    for name in ("sufficient", "precision", "first_right", "declined_wrongly"):
        value, interval = measured[name], measured["intervals"][name]
        assert (value is None) is (interval is None)
        assert interval is None or 0 <= interval[0] <= interval[1] <= 1
