"""Questions that ask several things, and bare nouns, over real regulations: what is answered, and what is not found."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from dtrag.app import App, open_app
from dtrag.retrieval.engine import HybridSearchEngine
from tests.store import Databases


@pytest_asyncio.fixture(scope="module")
async def app(databases_of_module: Databases, regulation_book: str) -> AsyncIterator[App]:
    async with open_app(databases_of_module.settings(regulation_book)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("question", "labels"),
    [
        ("등록금 반환은 언제까지 신청하고 재입학 허가는 누가 하나요?", ["학칙 제10조", "학칙 제16조"]),
        ("휴학 그리고 복학", ["학칙 제11조", "학칙 제13조"]),
        ("등록금과 장학금", ["학칙 제9조", "장학금지급규정 제2조"]),
    ],
)
async def test_each_part_has_a_provision_with_its_label(app: App, question: str, labels: list[str]) -> None:
    answer = await app.ask(question)
    cited = [citation.label for citation in answer.citations]
    assert [label.partition("(")[0] for label in dict.fromkeys(cited)] == labels
    assert all(label in answer.text for label in cited)
    assert answer.decision in {"answer", "review"} and answer.answer_confidence is not None
    assert len(answer.text) <= 700


async def test_a_part_without_a_provision_is_named_and_the_answer_is_for_review(app: App) -> None:
    answer = await app.ask("휴학은 몇 학기까지 되나요? 셔틀버스 첫차는 몇 시인가요?")
    assert "2학기까지" in answer.text
    assert answer.text.endswith("\n‘셔틀버스 첫차는 몇 시인가요’에 대한 조문은 찾지 못했습니다.")
    assert answer.decision == "review"
    statement = answer.reason_statements[0]
    assert (statement.code, dict(statement.values)) == ("part_not_found", {"part": "셔틀버스 첫차는 몇 시인가요"})


async def test_a_question_of_which_no_part_is_found_is_declined(app: App) -> None:
    answer = await app.ask("셔틀버스 첫차는 몇 시이고 수영장 입장료는 얼마인가요?")
    assert answer.decision == "abstain" and not answer.citations


async def test_parts_that_one_provision_answers_have_one_answer(app: App) -> None:
    answer = await app.ask("일반휴학은 한 번에 몇 학기까지 되고 창업휴학 기간은 몇 학기까지 되나요?")
    labels = [citation.label for citation in answer.citations]
    assert labels[0].startswith("학칙 제12조") and len(labels) == len(set(labels))
    assert "2학기까지" in answer.text and "통산 4학기" in answer.text


async def test_a_part_whose_search_fails_is_not_called_absent(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    search = HybridSearchEngine.search

    async def without_parts(engine: HybridSearchEngine, query: str, *arguments: Any, **options: Any) -> Any:
        if query.startswith("재입학"):
            raise TimeoutError
        return await search(engine, query, *arguments, **options)

    monkeypatch.setattr(HybridSearchEngine, "search", without_parts)
    answer = await app.ask("등록금 반환은 언제까지 신청하고 재입학 허가는 누가 하나요?")
    assert "parts" in answer.degraded and answer.citations and "찾지 못했습니다" not in answer.text


async def test_a_question_that_asks_one_thing_is_searched_once(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    search, queries = HybridSearchEngine.search, list[str]()

    async def counted(engine: HybridSearchEngine, query: str, *arguments: Any, **options: Any) -> Any:
        queries.append(query)
        return await search(engine, query, *arguments, **options)

    monkeypatch.setattr(HybridSearchEngine, "search", counted)
    await app.ask("휴학은 몇 학기까지 되나요?")
    assert queries == ["휴학은 몇 학기까지 되나요?"]


@pytest.mark.parametrize(
    ("question", "first", "further"),
    [
        ("연구년 신청 절차", "신청절차", "선발"),
        ("장학금", "장학금의 구분", "신청자격"),
    ],
)
async def test_bare_nouns_have_the_governing_articles(app: App, question: str, first: str, further: str) -> None:
    answer = await app.ask(question)
    labels = [citation.label for citation in answer.citations]
    assert f"({first})" in labels[0] and any(f"({further})" in label for label in labels[1:])
