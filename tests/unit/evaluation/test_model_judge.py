"""A language model as judge, over real HTTP: good replies, garbage, and a server that never answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from dtrag.adapters.llms.langchain import choose
from dtrag.errors import LanguageModelFailed
from dtrag.evaluation.judges import ModelJudge
from dtrag.evaluation.quality import RAGQualityEvaluator
from dtrag.ports import ChatModel
from dtrag.settings import Settings
from tests.model_server import ModelServer

QUERY = "How many days of leave are there?"
CONTEXTS = ["The library opens at nine.", "Employees have 26 days of leave."]
ANSWER = "Employees have 26 days of leave."


def scripted(messages: list[dict[str, Any]]) -> str:
    """Judges as a model would, in a sentence around the JSON."""
    prompt = messages[-1]["content"]
    if "Reply with a JSON list" in prompt or "목록으로" in prompt:
        rows = [{"claim": 1, "supported": True, "score": 0.9, "passages": [2, 7], "reason": ""}]
        return f"Here it is:\n```json\n{json.dumps(rows)}\n```"
    return '{"score": 0.8, "reason": ""}'


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(scripted) as running:
        yield running


@pytest_asyncio.fixture
async def model(server: ModelServer, tmp_path: Path) -> AsyncIterator[ChatModel]:
    settings = Settings.load(
        environ={}, data_dir=tmp_path, llm="openai:test", llm_base_url=server.url, llm_api_key="none"
    )
    chosen, _ = choose(settings)
    assert chosen is not None
    yield chosen
    await chosen.close()


async def test_a_good_model_decides(server: ModelServer, model: ChatModel) -> None:
    result = await RAGQualityEvaluator(ModelJudge(model)).evaluate(QUERY, ANSWER, CONTEXTS, "26 days of leave.")
    assert (result.judge, result.degraded) == ("openai:test", "")
    assert (result.faithfulness, result.answer_relevancy, result.contextual_recall) == (0.9, 0.8, 1.0)
    assert result.claims[0].contexts == (1,), "a passage that was not sent is left out"
    assert len(server.requests) == 4
    prompt = server.requests[0]["messages"][-1]["content"]
    assert CONTEXTS[1] in prompt and ANSWER in prompt


async def test_korean_questions_have_korean_prompts(server: ModelServer, model: ChatModel) -> None:
    await ModelJudge(model).support(["휴학은 6학기까지이다."], ["휴학은 6학기까지이다."], "휴학은 몇 학기까지?")
    assert "자료" in server.requests[0]["messages"][0]["content"]
    assert "주장마다" in server.requests[0]["messages"][1]["content"]


@pytest.mark.parametrize(
    "garbage",
    [
        "I would say yes.",
        "[",
        "[]",
        '[{"claim": 2, "supported": true, "score": 1}]',
        '[{"claim": 1, "supported": "yes", "score": 1}]',
        '[{"claim": 1, "supported": true, "score": 7}]',
        '[{"claim": 1, "supported": true, "score": NaN}]',
        '{"claim": 1}',
        '[{"claim": [1], "supported": true, "score": 1}]',
        '[{"claim": {"1": 1}, "supported": true, "score": 1}]',
        '[{"claim": true, "supported": true, "score": 1}]',
        '[{"claim": "9999", "supported": true, "score": 1}]',
        '{"claims": [], "other": []}',
    ],
)
async def test_garbage_is_refused_and_words_decide(server: ModelServer, model: ChatModel, garbage: str) -> None:
    server.reply = lambda messages: garbage
    with pytest.raises(LanguageModelFailed, match="as a judge its reply cannot be used"):
        await ModelJudge(model).support(["It is so."], CONTEXTS, QUERY)
    result = await RAGQualityEvaluator(ModelJudge(model)).evaluate(QUERY, ANSWER, CONTEXTS)
    assert result.judge == "lexical" and "as a judge" in result.degraded


@pytest.mark.parametrize(
    "reply",
    [
        '[{"claim": "1", "supported": true, "score": 0.7}]',
        '{"claims": [{"claim": 1, "supported": true, "score": 0.7}]}',
        '{"note": "checked", "claims": [{"claim": "1", "supported": true, "score": 0.7, "passages": [2]}]}',
        '{"claim": 1, "supported": true, "score": 0.7, "passages": [2]}',
    ],
)
async def test_other_forms_of_the_list_are_read(server: ModelServer, model: ChatModel, reply: str) -> None:
    server.reply = lambda messages: reply
    (judged,) = await ModelJudge(model).support(["It is so."], CONTEXTS, QUERY)
    assert (judged.supported, judged.score) == (True, 0.7)


async def test_a_reply_without_all_claims_counts_those_that_it_judges(server: ModelServer, model: ChatModel) -> None:
    server.reply = lambda messages: '[{"claim": 1, "supported": true}, {"claim": 7, "supported": true}]'
    with pytest.raises(LanguageModelFailed, match="it judges 1 of 2 claims"):
        await ModelJudge(model).support(["It is so.", "It was so."], CONTEXTS, QUERY)


async def test_a_model_that_never_answers_does_not_hold_up_the_evaluation(
    server: ModelServer, model: ChatModel
) -> None:
    server.fault = "hang"
    result = await RAGQualityEvaluator(ModelJudge(model, seconds=0.3)).evaluate(QUERY, ANSWER, CONTEXTS)
    assert result.judge == "lexical" and "openai:test" in result.degraded
