"""Official words that a language model suggests for everyday questions about regulations: they join the lexicon's, and
an answer never depends on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from dtrag.app import App, open_app
from dtrag.core.chat import Message
from dtrag.errors import InvalidInput
from dtrag.pipeline.state import PipelineResponse
from tests.model_server import ModelServer
from tests.store import Databases

QUESTION = "뽀로로 이야기 들려줄래"
"""No word of it is in the book or in the lexicon."""
WORDS = "수업연한, 재학연한, 3. 「휴학」"


def asks_for_words(messages: list[dict[str, Any]]) -> bool:
    return "official Korean words" in str(messages[0]["content"])


def replying(words: str) -> Callable[[list[dict[str, Any]]], str]:
    return lambda messages: words if asks_for_words(messages) else "답이 없습니다."


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(replying(WORDS)) as running:
        yield running


@pytest_asyncio.fixture
async def app(databases: Databases, regulation_book: str, server: ModelServer) -> AsyncIterator[App]:
    settings = databases.settings(
        regulation_book, llm="openai:test", llm_base_url=server.url, llm_api_key="k", trace_text="on"
    )
    async with open_app(settings) as opened:
        assert opened.model is not None
        await opened.model.complete([Message("user", "Hello")], max_tokens=5, seconds=60)
        yield opened


def titles(response: PipelineResponse) -> list[str]:
    return [chunk.text for chunk in response.retrieved_chunks]


def requests_for_words(server: ModelServer) -> int:
    return sum(asks_for_words(body["messages"]) for body in server.requests)


async def test_suggested_words_join_the_search(app: App, server: ModelServer) -> None:
    found = await app.pipeline.execute(QUESTION)
    assert "official_words" not in found.degraded
    assert any("수업연한" in text for text in titles(found))
    trace = await app.traces.get(found.trace_id)
    [step] = [step for step in trace.steps if step.name == "rewrite"]
    assert (step.outcome, step.facts["official_words"]) == ("done", "수업연한, 재학연한, 휴학")
    assert trace.calls[0].step == "rewrite"
    server.reply = replying("졸업논문")
    other = await app.pipeline.execute(QUESTION)
    assert titles(other) != titles(found), "the words are a part of the key of cached results"


@pytest.mark.parametrize(
    "reply", ["죄송합니다. 저는 규정을 모릅니다.", "I cannot help with that.", "1. 2. 3. !!", "가" * 300]
)
async def test_a_reply_without_words_changes_nothing(app: App, server: ModelServer, reply: str) -> None:
    server.reply = replying(reply)
    found = await app.pipeline.execute("등록금 반환은 언제까지인가요")
    assert "official_words" in found.degraded
    plain, _ = await app.search("등록금 반환은 언제까지인가요", top_k=10)
    assert titles(found) == [result.text for result in plain]


async def test_wrong_words_leave_the_first_article_of_a_clear_question(app: App, server: ModelServer) -> None:
    server.reply = replying("기숙사, 주차장, 도서관, 실험실")
    found = await app.pipeline.execute("등록금 반환은 언제까지인가요")
    plain, _ = await app.search("등록금 반환은 언제까지인가요", top_k=10)
    assert "official_words" not in found.degraded
    assert titles(found)[0] == plain[0].text


async def test_a_model_that_hangs_or_fails_is_done_without(
    app: App, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.fault = lambda body: "500" if asks_for_words(body["messages"]) else None
    failed = await app.pipeline.execute("휴학은 몇 학기까지 돼요")
    assert "official_words" in failed.degraded and failed.retrieved_chunks
    monkeypatch.setenv("PIPELINE_TIMEOUT_MULTIPLIER", "1")
    server.fault = lambda body: "hang" if asks_for_words(body["messages"]) else None
    late = await app.pipeline.execute("휴학은 몇 학기까지 돼요")
    assert {"official_words", "rewrite"} & set(late.degraded)
    trace = await app.traces.get(late.trace_id)
    [step] = [step for step in trace.steps if step.name == "rewrite"]
    assert step.seconds < 3 * step.budget


async def test_the_model_is_not_asked_where_its_words_cannot_help(app: App, server: ModelServer) -> None:
    for question in ("학칙 제21조 알려줘", "안녕하세요", "How long is the leave?"):
        await app.pipeline.execute(question)
    assert requests_for_words(server) == 0
    await app.pipeline.execute("휴학은 몇 학기까지 돼요")
    assert requests_for_words(server) == 1


async def test_without_regulations_in_scope_the_model_is_not_asked(
    databases: Databases, server: ModelServer, tmp_path: Path
) -> None:
    settings = databases.settings(llm="openai:test", llm_base_url=server.url, llm_api_key="k")
    async with open_app(settings) as app:
        (tmp_path / "page.md").write_text("# 안내\n\n구내식당은 아침 8시에 연다.", "utf-8")
        await app.ingest(tmp_path / "page.md", "Pages")
        await app.pipeline.execute("구내식당은 언제 열어요")
    assert requests_for_words(server) == 0


async def test_suggestions_of_a_program_are_checked(app: App) -> None:
    for words in ("수업연한", ["수업연한"] * 21, [7], ["가" * 201]):
        with pytest.raises(InvalidInput, match="official_words"):
            await app.engine.search("휴학", official_words=words)  # type: ignore[arg-type]
