"""AC-ORCH-001, 002, 003, 009 and 010 by their ids: the snippets nearly as they are, over HTTP on a real database.

D1, D7 to D9 and D18 say what is built where the text contradicts itself. Times are measured in bench/chat.py.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2
import pytest
import pytest_asyncio

import dtrag
from dtrag import embedding_service, llm_service, step2_retrieve, step5_compose, step7_respond
from dtrag.app import open_app
from dtrag.concurrency import limit_clock
from dtrag.core.answers.passage_confidence import confidence
from dtrag.core.chat import Message
from dtrag.current_app import active
from dtrag.delivery.api.app import create_app
from dtrag.pipeline.execution import LangGraphPipeline
from dtrag.pipeline.state import PipelineRequest, PipelineState
from dtrag.pipeline.timeouts import OPTIONAL_STEP_TIMEOUTS, STEP_TIMEOUTS, execute_with_timeout
from dtrag.retrieval.engine import HybridSearchEngine
from tests.cases import each
from tests.clock import Clock
from tests.model_server import ModelServer
from tests.store import Databases
from tests.toy import ToyEmbedder

pytestmark = pytest.mark.usefixtures("runner")

TEXT = """# Learning machines

Machine learning algorithms find patterns in measurements. Decision trees and neural networks are machine learning
algorithms. A test query is answered by searching documents.
"""


@pytest_asyncio.fixture(scope="module")
async def corpus(databases_of_module: Databases, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(3):
        (folder / f"learning-{number}.md").write_text(TEXT.replace("patterns", f"pattern{number}s"), "utf-8")
    return await databases_of_module.filled(lambda app: app.ingest([folder], category=["AI", "ML"]))


@pytest_asyncio.fixture
async def client(databases: Databases, corpus: str) -> AsyncIterator[httpx2.AsyncClient]:
    api = create_app(databases.settings(corpus))
    async with (
        api.router.lifespan_context(api),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(api), base_url="http://127.0.0.1", timeout=60) as client,
    ):
        yield client


async def test_orch_001_four_steps_lead_to_an_answer(client: httpx2.AsyncClient) -> None:
    request = dtrag.ChatRequest(
        message="What are machine learning algorithms?",
        conversation_id="test-conv-001",
        context={},  # type: ignore[arg-type]
    )
    response = await client.post("/chat/run", json=request.dict())
    data = response.json()

    assert response.status_code == 200
    assert "neural networks" in data["response"]
    assert len(data["sources"]) >= 1
    assert 0.0 <= data["confidence"] <= 1.0
    assert data["metadata"]["intent"] in ["question", "explanation", "search", "general"]
    assert all(step in data["metadata"]["step_timings"] for step in ["intent", "retrieve", "compose", "respond"])


@each(
    "body",
    [
        {"message": "x" * 10_001},
        {"message": "x", "conversation_id": "x" * 129},
        {"message": "x", "agent_id": "x" * 65},
        {"message": "x", "context": {"top_k": 0}},
        {"message": "x", "context": {"agent_id": "x" * 65}},
        {"messages": []},
        {"messages": [{"role": "user", "content": "x"}] * 201},
        {"messages": [{"role": "robot", "content": "x"}, {"role": "user", "content": "x"}]},
        {"messages": [{"role": "user", "content": "x" * 40_001}, {"role": "user", "content": "x"}]},
    ],
)
async def test_orch_001_requests_are_checked_when_they_are_sent(
    client: httpx2.AsyncClient, body: dict[str, object]
) -> None:
    request = dtrag.ChatRequest.model_validate(body)
    response = await client.post("/chat/run", json=request.dict())
    assert response.status_code in {404, 422}
    assert isinstance(response.json()["detail"], str)


async def test_orch_001_the_state_of_the_pipeline(client: httpx2.AsyncClient) -> None:
    pipeline = LangGraphPipeline()  # of the app that the service has opened
    state = await pipeline.execute(query="test query")

    assert state.query == "test query"
    assert state.intent in ["question", "explanation", "search", "general"]
    assert isinstance(state.retrieved_chunks, list)
    assert state.answer is not None
    assert isinstance(state.sources, list)
    assert 0.0 <= state.confidence <= 1.0
    assert state.taxonomy_version is not None
    assert isinstance(state.step_timings, dict)


async def test_orch_001_without_an_app_the_error_says_what_to_do() -> None:
    with pytest.raises(dtrag.NoActiveApp, match=r"dtrag\.open"):
        await LangGraphPipeline().execute(PipelineRequest(query="test query"))
    with pytest.raises(dtrag.NoActiveApp):
        await step2_retrieve(PipelineState(query="test query"))


@pytest.mark.parametrize(
    ("name", "limit", "takes", "real"),
    [("intent", 0.1, 0.2, True), ("retrieve", 2.0, 2.5, False), ("compose", 3.5, 4, False)],
)
async def test_orch_002_a_step_that_is_too_slow_is_stopped(
    clock: Clock, name: str, limit: float, takes: float, *, real: bool
) -> None:
    """One case takes real time; in the others the clock of the limits is moved."""
    reached: list[str] = []

    async def slow(state: PipelineState) -> PipelineState:
        await (asyncio.sleep if real else clock.sleep)(takes)
        reached.append(name)
        return state

    state = PipelineState(query="test")
    started = limit_clock()
    with pytest.raises(asyncio.TimeoutError, match=rf"^Pipeline step '{name}' exceeded timeout of {limit:g}s$"):
        await execute_with_timeout(slow, state, step_name=name, timeout=limit)
    assert limit <= limit_clock() - started < takes + 1
    assert not reached
    assert state.step_timings[name] >= limit


def test_orch_002_the_timeouts() -> None:
    assert STEP_TIMEOUTS == {"intent": 0.1, "retrieve": 2.0, "compose": 3.5, "respond": 0.1}
    assert all(0 < timeout <= 4.0 for timeout in STEP_TIMEOUTS.values())
    assert sum(STEP_TIMEOUTS.values()) <= 6.0
    one_tool_and_a_debate = OPTIONAL_STEP_TIMEOUTS["tools"] + OPTIONAL_STEP_TIMEOUTS["debate"]  # D7
    assert OPTIONAL_STEP_TIMEOUTS["tools_debate"] == one_tool_and_a_debate == 11.0
    assert not STEP_TIMEOUTS.keys() & OPTIONAL_STEP_TIMEOUTS.keys()


@pytest.mark.usefixtures("shipped_limits")
async def test_orch_002_the_multiplier_stretches_what_is_not_given(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(state: PipelineState) -> PipelineState:
        await clock.sleep(0.15)
        return state

    state = PipelineState(query="test")
    with pytest.raises(asyncio.TimeoutError, match=r"timeout of 0\.1s"):
        await execute_with_timeout(slow, state, step_name="intent")
    monkeypatch.setenv("PIPELINE_TIMEOUT_MULTIPLIER", "5")
    assert await execute_with_timeout(slow, state, step_name="intent") is state


@pytest.mark.parametrize(
    ("chunks", "sources", "expected"),
    [
        (
            [{"score": 0.85, "text": "chunk1"}, {"score": 0.75, "text": "chunk2"}],
            [{"doc_id": "1"}, {"doc_id": "2"}],
            0.85,
        ),
        ([{"score": 0.90, "text": "chunk1"}], [{"doc_id": "1"}], 0.45),
        ([], [], 0.0),
    ],
)
async def test_orch_003_the_confidence_of_a_state(chunks: Any, sources: Any, expected: float) -> None:
    state = PipelineState(query="test", retrieved_chunks=chunks, sources=sources)
    assert (await step7_respond(state)).confidence == expected


@pytest.mark.parametrize(
    ("top_score", "sources", "expected"), [(1.2, 3, 1.0), (-0.1, 2, 0.0), (0.5, 0, 0.0), (0.8, 1, 0.4)]
)
def test_orch_003_the_edges(top_score: float, sources: int, expected: float) -> None:
    assert confidence(top_score, sources) == expected


async def test_orch_009_a_hundred_at_once(client: httpx2.AsyncClient) -> None:
    results = await asyncio.gather(
        *(
            client.post("/chat/run", json={"message": f"test query {number}", "conversation_id": f"conv-{number}"})
            for number in range(100)
        )
    )
    assert [result.status_code for result in results] == [200] * 100
    assert len({result.json()["metadata"]["trace_id"] for result in results}) == 100


@pytest.mark.parametrize("configured", [True, False])
async def test_orch_010_a_no_embedding_words_alone(
    client: httpx2.AsyncClient, configured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D36: the facade is called for every query, also when no embedder is configured."""
    if configured:
        app = active()
        monkeypatch.setattr(app.engine._embedder, "embedder", ToyEmbedder())
        monkeypatch.setattr(app, "embedder", ToyEmbedder())
    with mock.patch.object(embedding_service, "generate_embedding", side_effect=Exception("Embedding failed")) as made:
        response = await client.post("/search", json={"query": "test query", "top_k": 10})

        assert response.status_code == 200
        data = response.json()
        assert data["metrics"]["bm25_candidates"] > 0
        assert data["metrics"]["vector_candidates"] == 0
    assert made.await_count == 1
    assert data["metrics"]["degraded"] == ["vector"]
    assert len(data["results"]) == 3


async def test_orch_010_a_without_an_embedder_the_facade_gives_none(client: httpx2.AsyncClient) -> None:
    assert await embedding_service.generate_embedding("test query") is None
    assert (await client.post("/search", json={"query": "test query"})).json()["metrics"]["degraded"] == []


async def test_orch_010_b_no_cross_encoder_the_heuristic_score(client: httpx2.AsyncClient) -> None:
    search_engine = HybridSearchEngine(enable_reranking=False)
    results, metrics = await search_engine.search(query="test", top_k=10)

    assert len(results) > 0
    assert all(r.rerank_score > 0 for r in results)
    assert metrics.rerank_time == 0


async def test_orch_010_d_a_model_that_fails(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dtrag.adapters.llms.http_client.LONGEST_PAUSE_S", 0.01)  # between two attempts
    with ModelServer(fault="500") as server:
        async with open_app(databases.settings(llm="openai:test", llm_base_url=server.url)) as app:
            state = PipelineState(query="test")
            result_state = await step5_compose(state)
            assert result_state.answer is not None
            assert "error" in result_state.answer.lower() or "unavailable" in result_state.answer.lower()

            (tmp_path / "a.md").write_text(TEXT, "utf-8")
            await app.ingest([tmp_path / "a.md"])
            answer = await app.ask("What are machine learning algorithms?")
            assert "unavailable" in answer.text
            assert "neural networks" in answer.text
            assert answer.degraded == ("llm",)
            assert answer.citations


async def test_orch_010_d_the_facade_fails_with_nothing_configured(client: httpx2.AsyncClient) -> None:
    with mock.patch.object(llm_service, "generate_answer", side_effect=Exception("LLM failed")) as made:
        state = PipelineState(query="test")
        result_state = await step5_compose(state)

        assert result_state.answer is not None
        assert "error" in result_state.answer.lower() or "unavailable" in result_state.answer.lower()
        response = await client.post("/chat/run", json={"message": "What are machine learning algorithms?"})
    assert made.await_count == 2
    assert "unavailable" in response.json()["response"]
    assert "neural networks" in response.json()["response"]
    assert response.json()["metadata"]["degraded"] == ["llm"]


async def test_orch_010_d_without_a_model_the_facade_gives_none(client: httpx2.AsyncClient) -> None:
    assert await llm_service.generate_answer([Message("user", "test")]) is None
    response = await client.post("/chat/run", json={"message": "What are machine learning algorithms?"})
    assert response.json()["metadata"]["degraded"] == []
    assert "unavailable" not in response.json()["response"]


async def test_d36_streamed_answers_plans_and_debates_go_through_the_facade(
    databases: Databases, tmp_path: Path
) -> None:
    (tmp_path / "a.md").write_text(TEXT, "utf-8")
    question = "What are machine learning algorithms?"
    with ModelServer("Decision trees and neural networks are machine learning algorithms [1].") as server:
        async with open_app(databases.settings(llm="openai:test", llm_base_url=server.url)) as app:
            await app.ingest([tmp_path / "a.md"])
            told: list[str] = []
            with mock.patch.object(llm_service, "generate_answer", wraps=llm_service.generate_answer) as made:
                await app.pipeline.execute(question, emit=lambda name, data: told.append(name))
                assert made.await_count == len(server.requests) == 1
                await dtrag.DebateEngine().run_debate(question, [TEXT])
                assert made.await_count == len(server.requests) == 6
            assert told.count("token") > 1
            reply = await llm_service.generate_answer([Message("user", "test")])
            assert reply is not None
            assert reply.text.startswith("Decision trees")

            broken = mock.patch.object(llm_service, "generate_answer", side_effect=Exception("LLM failed"))
            with broken:
                response = await app.pipeline.execute(question, emit=lambda name, data: None)
            assert "unavailable" in response.answer
            assert response.degraded == ("llm",)
            assert len(server.requests) == 7


def test_d36_nothing_else_calls_embedders_and_models() -> None:
    """Only adapters, facades and `dtrag.testing` call them, so that replacing a facade reaches every call."""
    package = Path(str(dtrag.__file__)).parent
    own = {package / "embedding_service.py", package / "llm_service.py", package / "isolation" / "worlds.py"}
    own.add(package / "destinations.py")  # a wrapper of models
    called = re.compile(r"\.(embed_documents|embed_queries|complete)\(|model\.stream\(")
    found = [
        f"{file.relative_to(package)}: {line.strip()}"
        for file in package.rglob("*.py")
        if file not in own and not {"adapters", "testing"} & set(file.parts)
        for line in file.read_text("utf-8").splitlines()
        if called.search(line) and not line.lstrip().startswith("async def")
    ]
    assert found == []


async def test_orch_010_the_health_check(client: httpx2.AsyncClient) -> None:
    response = await client.get("/health")
    assert response.status_code == 200
    data = response.json()
    assert data["status"] in ["healthy", "degraded", "unhealthy"]
    assert all(feature in data["features"] for feature in ["B-O1", "B-O2", "B-O3", "B-O4"])
