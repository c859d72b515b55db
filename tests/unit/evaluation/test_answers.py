"""Reading a set says which line is wrong; the counts are those worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from dtrag.core.documents import Answer, Citation
from dtrag.errors import InvalidInput
from dtrag.evaluation.answers import (
    AnswerMeasures,
    AnswerSet,
    GoldQuestion,
    evaluate_answers,
    f1,
    kind_of,
    read_answers,
    rows_of,
)

TEXT = "Valves close at nine. The porter opens them."


def _folder(folder: Path, *rows: object) -> Path:
    (folder / "corpus.jsonl").write_text("", "utf-8")
    (folder / "queries.jsonl").write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    return folder


def _citation(start: int, end: int, quote: str | None = None) -> Citation:
    return Citation(1, "Rules", "c", "d", "", TEXT[start:end] if quote is None else quote, start, end)


def _answer(text: str, *citations: Citation, decision: str = "answer", model: str | None = None) -> Answer:
    return Answer("", text, citations, 0.9, decision, "", {}, model=model)


async def _measure(answers: Mapping[str, Answer], gold: str = "at nine") -> AnswerMeasures:
    async def ask(question: str) -> Answer:
        return answers[question]

    async def read(document_id: str) -> str:
        assert document_id == "d"
        return TEXT

    seen: list[tuple[int, int]] = []
    dataset = AnswerSet("set", Path(), tuple(GoldQuestion(question, (gold, "elsewhere")) for question in answers))
    measured = await evaluate_answers(ask, read, dataset, lambda done, total: seen.append((done, total)))
    assert seen == [(number + 1, len(answers)) for number in range(len(answers))]
    return measured


def test_only_questions_with_an_answer_are_asked_and_a_limit_spreads(tmp_path: Path) -> None:
    rows = [{"text": f"q{n}", "answers": ["x"]} for n in range(10)]
    more: list[object] = [
        {"text": "no"},
        {"text": "un", "answers": ["x"], "answerable": False},
        {"text": "e", "answers": [" "]},
    ]
    folder = _folder(tmp_path, *rows, *more)
    assert [asked.text for asked in read_answers(folder).questions] == [f"q{n}" for n in range(10)]
    assert [asked.text for asked in read_answers(folder, 3).questions] == ["q0", "q3", "q6"]
    assert read_answers(folder).name == tmp_path.name


@pytest.mark.parametrize(
    "row", [5, [], {"answers": ["x"]}, {"text": "q", "answers": "x"}, {"text": "q", "answers": [1]}]
)
def test_a_bad_question_is_named_by_its_line(tmp_path: Path, row: object) -> None:
    with pytest.raises(InvalidInput, match=r"queries\.jsonl, line 2: expected"):
        read_answers(_folder(tmp_path, {"text": "q", "answers": ["x"]}, row))


def test_a_folder_without_files_or_answers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"there is no corpus\.jsonl in it"):
        read_answers(tmp_path)
    with pytest.raises(InvalidInput, match="to look for"):
        read_answers(_folder(tmp_path, {"text": "q"}))


async def test_the_counts() -> None:
    measured = await _measure(
        {
            "When do they close?": _answer("Valves close AT  NINE. [1]", _citation(0, 21)),
            "Who opens them?": _answer("The porter opens them. [1]", _citation(22, 44)),
            "What?": _answer("at nine", decision="abstain"),
            "무엇?": _answer("at nine"),
        }
    )
    assert (measured["questions"], measured["contained"], measured["contained_of_answered"]) == (4, 0.25, 0.5)
    assert (measured["abstained"], measured["sentences"], measured["characters"]) == (2, 1.0, 22.0)
    assert measured["quotes"] == {"total": 2, "exact": 2, "wrong": []}
    assert {name: sums["contained"] for name, sums in measured["kinds"].items()} == {
        "when": 1.0,
        "who": 0.0,
        "what": 0.0,
    }
    assert measured["model"] == {"answers": 0, "contained": None, "f1": None}
    assert dict(rows_of(measured))["quotations exact"] == "2 of 2"


async def test_a_quotation_that_is_not_there_is_counted_and_named() -> None:
    wrong = [_citation(0, 21, "Valves close at ten."), _citation(1, 21, "Valves close at nine."), _citation(3, 3)]
    measured = await _measure({"q": _answer("x", _citation(0, 21), *wrong)})
    assert measured["quotes"] == {"total": 4, "exact": 1, "wrong": ["d 0-21", "d 1-21", "d 3-3"]}


async def test_answers_of_a_model_are_counted_apart() -> None:
    measured = await _measure({"a": _answer("At nine [1]. [?]", model="m"), "b": _answer("nothing", model="m")})
    assert measured["model"] == {"answers": 2, "contained": 0.5, "f1": 0.5}
    assert "by the language model" in dict(rows_of(measured))


def test_f1_and_kinds() -> None:
    assert f1("boilers and valves", "valve boiler") == 1.0
    assert f1("valves", "boilers") == 0.0
    assert f1("red valves", "valves") == pytest.approx(2 / 3)
    for question, kind in (
        ("When?", "when"), ("How many are there?", "number"), ("누구인가?", "who"), ("어디인가?", "where"),
        ("왜 그런가?", "why, how"), ("Which one?", "what"), ("Name it.", "other"),
    ):  # fmt: skip
        assert kind_of(question) == kind
