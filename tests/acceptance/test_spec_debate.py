"""DEBATE-1 to 5 and the edge cases by their ids: the snippets nearly as they are, with a real server of a model.

D19 to D21 say what is built where the text contradicts itself. Times are measured in bench/debate.py.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, replace
from typing import Any
from unittest.mock import patch

import pytest
import pytest_asyncio

from dtrag import DebateEngine, LangGraphPipeline, PipelineRequest, PipelineState, get_env_manager
from dtrag.app import App, open_app
from dtrag.errors import InvalidInput
from dtrag.pipeline.answer.generative import NO_ANSWER
from dtrag.pipeline.steps import step4_tools_debate
from dtrag.settings import Settings
from tests.cases import each
from tests.model_server import Messages, ModelServer
from tests.store import Databases

pytestmark = pytest.mark.usefixtures("runner")

TEXT = """# RAG

RAG is Retrieval-Augmented Generation, which answers questions from retrieved passages. RAG combines retrieval and
generation in one system. What a model has not read it can look up.
"""
QUESTION = "What is RAG?"
UNKNOWN: Any = [{"text": "..."}]
GIVEN: Any = [{"chunk_id": "c1", "text": TEXT}]
"""Passages as the acceptance text writes them."""
CONTEXT = [
    {"text": "RAG is Retrieval-Augmented Generation..."},
    {"text": "RAG combines retrieval and generation..."},
]
DEFINITION = "RAG is Retrieval-Augmented Generation [1]."


def speaker(messages: Messages) -> str:
    """Each side says something of its own, more in the second round, and the synthesis takes up both."""
    task, asked = messages[0]["content"], messages[1]["content"]
    if "Two agents have answered" in task:
        return f"{DEFINITION} RAG combines retrieval and generation [1]."
    again = " It answers questions from retrieved passages [1]." if "The other agent's answer" in asked else ""
    critical = "too many quick answers" in task
    return ("RAG combines retrieval and generation [1]." if critical else DEFINITION) + again


def _bare(answer: str) -> str:
    """The words of an answer, without its citations."""
    return " ".join(re.sub(r"\[\d+\]|\.", " ", answer).split())


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(speaker) as serving:
        yield serving


@pytest_asyncio.fixture(scope="module")
async def corpus(databases_of_module: Databases, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of a database with the text in it: no test looks for what another one leaves there."""
    path = tmp_path_factory.mktemp("corpus") / "rag.md"
    path.write_text(TEXT, "utf-8")
    return databases_of_module.settings(await databases_of_module.filled(lambda app: app.ingest([path])))


@pytest_asyncio.fixture
async def app(corpus: Settings, server: ModelServer) -> AsyncIterator[App]:
    async with open_app(replace(corpus, llm="openai:test", llm_base_url=server.url)) as opened:
        yield opened


@pytest.fixture
def on() -> Iterator[None]:
    """debate_mode is on for the test."""
    get_env_manager().set_feature_flag("debate_mode", True)
    yield
    get_env_manager().set_feature_flag("debate_mode", None)


async def test_debate_1_two_agents_answer_independently(app: App) -> None:
    engine = DebateEngine()
    result = await engine.run_debate(query=QUESTION, context=CONTEXT, max_rounds=1)

    assert result.affirmative_answer is not None
    assert result.critical_answer is not None
    assert len(result.affirmative_answer.split()) <= 500
    assert len(result.critical_answer.split()) <= 500
    assert result.llm_calls == 2
    assert result.rounds == 1
    assert result.affirmative_answer != result.critical_answer


async def test_debate_1_the_agents_are_asked_at_the_same_time(app: App, server: ModelServer) -> None:
    await DebateEngine().run_debate(QUESTION, CONTEXT, max_rounds=1)  # what is imported on first use
    server.delay = 0.4
    result = await DebateEngine().run_debate(QUESTION, CONTEXT, max_rounds=1)

    assert server.most_running == 2
    assert result.elapsed < 2 * server.delay


async def test_debate_2_each_agent_improves_its_answer_with_the_others(app: App, server: ModelServer) -> None:
    engine = DebateEngine()
    result = await engine.run_debate(query=QUESTION, context=[{"text": "RAG is..."}], max_rounds=2)

    assert result.calls_by_phase["round_1"] + result.calls_by_phase["round_2"] == 4
    assert result.rounds == 2
    assert result.affirmative_answer is not None
    assert result.critical_answer is not None
    assert len(result.affirmative_answer.split()) <= 500
    assert len(result.critical_answer.split()) <= 500
    assert result.affirmative_answers[1] != result.affirmative_answers[0]
    assert result.critical_answers[1] != result.critical_answers[0]
    second = [str(request["messages"]) for request in server.requests[2:4]]
    assert all(
        first in said for said in second for first in (result.affirmative_answers[0], result.critical_answers[0])
    )


async def test_debate_3_the_synthesis_brings_both_together(app: App) -> None:
    engine = DebateEngine()
    result = await engine.run_debate(query=QUESTION, context=[{"text": "RAG is..."}], max_rounds=2)

    assert result.final_answer is not None
    assert len(result.final_answer.split()) <= 800
    assert result.llm_calls == 5
    assert "Augmented" in result.affirmative_answer
    assert "combines" in result.critical_answer
    assert "Augmented" in result.final_answer
    assert "combines" in result.final_answer


async def test_debate_3_the_pipeline_answers_with_it(app: App, on: None) -> None:
    response = await LangGraphPipeline().execute(PipelineRequest(query=QUESTION))

    assert response.debate is not None
    assert response.debate.llm_calls == response.usage.calls == 5
    assert _bare(response.answer) == _bare(response.debate.final_answer or "")  # step 6 has checked and renumbered it
    assert response.model == "openai:test"
    assert response.citations
    assert 0 < response.step_timings["debate"] <= response.step_timings["tools_debate"]


async def test_d19_calls_are_told_by_phase(app: App) -> None:
    one = await DebateEngine().run_debate(QUESTION, CONTEXT, max_rounds=1)
    two = await DebateEngine().run_debate(QUESTION, CONTEXT, max_rounds=2)

    assert one.calls_by_phase == {"round_1": 2}
    assert two.calls_by_phase == {"round_1": 2, "round_2": 2, "synthesis": 1}


async def test_d19_one_round_has_no_final_answer_and_compose_answers(app: App, on: None) -> None:
    one = await DebateEngine().run_debate(QUESTION, CONTEXT, max_rounds=1)
    assert one.final_answer is None

    with patch("dtrag.pipeline.debate.engine.DebateEngine.run_debate", return_value=one):
        response = await LangGraphPipeline().execute(QUESTION)
    assert _bare(DEFINITION) in _bare(response.answer)
    assert response.debate is None
    assert response.step_timings["compose"] > 0
    assert "debate" not in response.step_timings
    assert response.degraded == ("debate",)


@each("context", [None, 7, "RAG is...", {"text": "RAG is..."}, [None]])
async def test_debate_gate_the_context_is_checked(app: App, server: ModelServer, context: Any) -> None:
    with pytest.raises(InvalidInput, match=r"[Pp]assage"):
        await DebateEngine().run_debate("x", context)
    assert server.requests == []


async def test_debate_4_a_debate_that_takes_too_long_is_ended(app: App, server: ModelServer) -> None:
    engine = DebateEngine()
    with pytest.raises(TimeoutError):
        await engine.run_debate(query="Complex query...", context=[{"text": "..."}], timeout=0.001)

    server.fault = "hang"
    started = time.perf_counter()
    with pytest.raises(TimeoutError):
        await engine.run_debate(query="Complex query...", context=[{"text": "..."}], timeout=0.3)
    assert 0.25 < time.perf_counter() - started < 1.5
    assert server.wait_until_idle()


async def test_debate_4_the_initial_answer_is_given_then(app: App, on: None, caplog: pytest.LogCaptureFixture) -> None:
    with patch("dtrag.pipeline.debate.engine.DebateEngine.run_debate") as mock_debate, caplog.at_level(logging.WARNING):
        mock_debate.side_effect = TimeoutError("Debate timeout")
        pipeline = LangGraphPipeline()
        response = await pipeline.execute(PipelineRequest(query=QUESTION))

    assert mock_debate.called
    assert _bare(DEFINITION) in _bare(response.answer)
    assert "debate" not in response.step_timings
    assert response.debate is None
    assert "Debate timeout - using initial answer" in caplog.text


async def test_d20_compose_runs_only_where_the_debate_gave_no_answer(app: App, server: ModelServer, on: None) -> None:
    await LangGraphPipeline().execute(QUESTION)
    assert len(server.requests) == 5

    with patch("dtrag.pipeline.debate.engine.DebateEngine.run_debate", side_effect=TimeoutError):
        await LangGraphPipeline().execute(QUESTION)
    assert len(server.requests) == 6


@pytest.mark.parametrize("variable", ["DEBATE_MODE", "FEATURE_DEBATE_MODE"])
async def test_debate_5_when_it_is_switched_off_nothing_happens(
    app: App,
    server: ModelServer,
    variable: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv(variable, "false")
    state = PipelineState(query=QUESTION, retrieved_chunks=UNKNOWN)
    before = PipelineState(query=QUESTION, retrieved_chunks=UNKNOWN)
    with caplog.at_level(logging.INFO):
        result = await step4_tools_debate(state)

    assert result == state == before
    assert not hasattr(result, "debate_result")
    assert "Step 4 (debate) skipped (feature flag OFF)" in caplog.text
    assert server.requests == []


async def test_debate_5_the_switch_counts_from_the_next_question_on(
    app: App, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    for value in ("true", "false", "true"):
        monkeypatch.setenv("DEBATE_MODE", value)
        server.requests.clear()
        response = await LangGraphPipeline().execute(QUESTION)
        asked.append((len(server.requests), response.debate is not None))
    assert asked == [(5, True), (1, False), (5, True)]


async def test_d21_a_finished_debate_is_in_the_state(app: App, on: None) -> None:
    state = PipelineState(query=QUESTION, retrieved_chunks=GIVEN)
    result = await step4_tools_debate(state)

    assert result.debate_result.llm_calls == 5
    assert result.answer == result.debate_result.final_answer


async def test_d21_a_state_is_data_with_and_without_a_debate(app: App, on: None) -> None:
    state = PipelineState(query="q")
    assert not hasattr(state, "debate_result")
    assert asdict(state)["query"] == "q"
    assert state == PipelineState(query="q", start_time=0.0)

    after = await step4_tools_debate(PipelineState(query=QUESTION, retrieved_chunks=GIVEN))
    assert after.debate_result.llm_calls == 5
    assert asdict(after)["answer"] == after.answer
    assert not {"run", "debate_result"} & asdict(after).keys()
    assert "debate_result" not in repr(after)
    assert replace(after, answer="other").run is after.run


async def test_debate_edge_1_without_passages_the_agents_are_told_so(app: App, server: ModelServer) -> None:
    result = await DebateEngine().run_debate(QUESTION, [])

    assert result.llm_calls == 5
    assert any("no passages" in str(note) for note in result.notes)
    assert all("There are no passages." in str(request["messages"]) for request in server.requests)


async def test_debate_edge_2_a_long_question_is_trimmed(app: App, server: ModelServer) -> None:
    result = await DebateEngine().run_debate("why? " * 1_000, CONTEXT)

    assert any("trimmed" in str(note) for note in result.notes)
    assert all(str(request["messages"]).count("why?") == 200 for request in server.requests)


async def test_debate_edge_3_a_failing_model_leaves_quotations(
    app: App, server: ModelServer, on: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dtrag.adapters.llms.http_client.LONGEST_PAUSE_S", 0.01)  # between two attempts
    server.fault = "500"
    response = await LangGraphPipeline().execute(QUESTION)

    assert "Retrieval-Augmented Generation" in response.answer
    assert "unavailable" in response.answer
    assert response.degraded == ("debate", "llm")
    assert response.debate is None
    assert "debate" not in response.step_timings


async def test_debate_edge_3_one_failure_on_the_way_is_tried_again(app: App, server: ModelServer) -> None:
    server.fault = ["500", None]
    result = await DebateEngine().run_debate(QUESTION, CONTEXT)

    assert result.llm_calls == 5
    assert len(server.requests) == 6
    assert result.notes == ()


async def test_debate_edge_4_equal_answers_are_merged(app: App, server: ModelServer) -> None:
    server.reply = DEFINITION
    result = await DebateEngine().run_debate(QUESTION, CONTEXT)

    assert result.llm_calls == 5
    assert str(server.requests[-1]["messages"]).count(DEFINITION) == 1
    assert result.final_answer == DEFINITION


async def test_debate_edge_5_there_are_three_rounds_at_most(app: App, server: ModelServer) -> None:
    """D19: three rounds on request, seven calls; fewer where `max_calls` holds them back."""
    result = await DebateEngine().run_debate(QUESTION, CONTEXT, max_rounds=10)
    assert (result.rounds, result.llm_calls, len(server.requests)) == (3, 7, 7)
    assert any("at most 3 rounds" in str(note) for note in result.notes)

    three = await DebateEngine().run_debate(QUESTION, CONTEXT, max_rounds=3)
    assert three.calls_by_phase == {"round_1": 2, "round_2": 2, "round_3": 2, "synthesis": 1}
    assert not any("at most 3 rounds" in str(note) for note in three.notes)

    bounded = await DebateEngine(max_calls=5).run_debate(QUESTION, CONTEXT, max_rounds=3)
    assert (bounded.rounds, bounded.llm_calls) == (2, 5)


async def test_debate_gate_answers_are_short_whatever_the_model_does(app: App, server: ModelServer) -> None:
    server.reply = "word " * 3_000
    result = await DebateEngine().run_debate(QUESTION, CONTEXT)

    assert [request.get("max_completion_tokens") or request["max_tokens"] for request in server.requests] == [
        500, 500, 500, 500, 800,
    ]  # fmt: skip
    assert len(result.affirmative_answer.split()) == len(result.critical_answer.split()) == 500
    assert len((result.final_answer or "").split()) == 800


async def test_debate_gate_logs_hold_no_text(app: App, on: None, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="dtrag"):
        await LangGraphPipeline().execute(QUESTION)

    assert "Debate finished: 2 rounds, 5 calls" in caplog.text
    assert "Augmented" not in caplog.text
    assert QUESTION not in caplog.text


@pytest.mark.parametrize(("sure", "debated"), [(0.0, False), (1.01, True)])
async def test_debate_auto_debates_only_in_doubt(
    *,
    corpus: Settings,
    server: ModelServer,
    on: None,
    monkeypatch: pytest.MonkeyPatch,
    sure: float,
    debated: bool,
) -> None:
    monkeypatch.setattr("dtrag.pipeline.debate.engine.SURE", sure)
    async with open_app(replace(corpus, llm="openai:test", llm_base_url=server.url, debate="auto")) as opened:
        response = await opened.pipeline.execute(QUESTION)

    assert response.decision == "answer"
    assert (response.debate is not None) is debated
    assert len(server.requests) == (5 if debated else 1)


async def test_without_a_model_there_is_no_debate_and_an_answer(
    corpus: Settings, on: None, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_app(corpus) as opened:
        with caplog.at_level(logging.INFO):
            response = await opened.pipeline.execute(QUESTION)

    assert "Retrieval-Augmented Generation" in response.answer
    assert response.debate is None
    assert "Step 4 (debate) skipped (no language model)" in caplog.text


async def test_a_debate_that_finds_no_answer_abstains(app: App, server: ModelServer, on: None) -> None:
    server.reply = NO_ANSWER
    response = await LangGraphPipeline().execute(QUESTION)

    assert response.decision == "abstain"
    assert response.answer == "The documents do not answer this question."
    assert response.sources == []
    assert len(server.requests) == 2


async def test_debate_two_models_argue_where_two_are_configured(corpus: Settings, server: ModelServer) -> None:
    settings = replace(corpus, llm="openai:first", llm_critic="openai:second", llm_base_url=server.url)
    async with open_app(settings):
        result = await DebateEngine().run_debate(QUESTION, CONTEXT)

    assert result.models == ("openai:first", "openai:second")
    assert sorted(request["model"] for request in server.requests) == ["first"] * 3 + ["second"] * 2
