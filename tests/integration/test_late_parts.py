"""A part of the search that is late is left out and named; "not found" is never said of what was not searched.

Through every way to ask: `App.ask`, `dtrag ask`, `/ask`, `/chat/run` and `/v1`.
"""

from __future__ import annotations

import asyncio
import importlib.machinery
import sys
import threading
import time
import types
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dtrag.adapters.embedders.factory import EmbedderOnDemand
from dtrag.adapters.postgres.index_reader import PostgresIndex
from dtrag.app import App, open_app
from dtrag.core.documents import Vector
from dtrag.delivery.api.app import create_app
from dtrag.pipeline.timeouts import STEP_TIMEOUTS
from dtrag.settings import Settings
from tests.integration.cli_process import Cli
from tests.store import Databases
from tests.toy import ToyEmbedder

QUESTION = "How many days of parental leave are there?"
LOADING_S = 1.2
KOREAN = "휴학은 최대 몇 학기까지 할 수 있나요?"
TEXTS = (
    "# Leave\n\nEveryone has leave. Parental leave takes at most 90 days. It is paid in full.\n",
    "# 휴학\n\n휴학은 통산 네 학기를 초과할 수 없다. 휴학하려면 신청서를 낸다.\n",
)


@dataclass(frozen=True)
class Asked:
    """What a caller got, by whichever way."""

    text: str
    decision: str
    degraded: list[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two documents that answer, and as many others as a reranker reads at most."""
    made = tmp_path / "documents"
    made.mkdir()
    for number, text in enumerate(TEXTS):
        (made / f"answer{number}.md").write_text(text, "utf-8")
    for number in range(60):
        (made / f"other{number}.md").write_text(f"# Days\n\nThere are many days in year {1900 + number}.\n", "utf-8")
    return made


@asynccontextmanager
async def _serving(settings: Settings) -> AsyncIterator[tuple[App, httpx2.AsyncClient]]:
    api = create_app(settings)
    transport = httpx2.ASGITransport(api)
    async with (
        api.router.lifespan_context(api),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client,
    ):
        yield api.state.service.app, client


async def _everywhere(app: App, client: httpx2.AsyncClient, question: str) -> list[Asked]:
    """The answers of all ways, asked at the same time."""

    async def posted(route: str, body: dict[str, Any]) -> Any:
        response = await client.post(route, json=body)
        assert response.status_code == 200, response.text
        return response.json()

    messages = [{"role": "user", "content": question}]
    answer, asked, chat, completion = await asyncio.gather(
        app.ask(question),
        posted("/ask", {"question": question}),
        posted("/chat/run", {"message": question, "conversation_id": "late"}),
        posted("/v1/chat/completions", {"model": "dtrag", "messages": messages}),
    )
    return [
        Asked(answer.text, answer.decision, list(answer.degraded)),
        Asked(asked["text"], asked["decision"], asked["degraded"]),
        Asked(chat["response"], chat["metadata"]["decision"], chat["metadata"]["degraded"]),
        Asked(completion["choices"][0]["message"]["content"], completion["decision"], completion["degraded"]),
    ]


class HangingEmbedder(ToyEmbedder):
    """Makes vectors of documents; one of a query it never finishes, until it is released."""

    released = threading.Event()

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        self.released.wait(60)
        return super().embed_queries(texts)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[HangingEmbedder]:
    """What every app is opened with."""
    embedder = HangingEmbedder()
    embedder.released.clear()
    monkeypatch.setattr("dtrag.assembly.embedders.choose", lambda settings: embedder)
    yield embedder
    embedder.released.set()


@pytest.mark.usefixtures("shipped_limits")
async def test_an_embedder_that_hangs_costs_the_vectors(
    databases: Databases, folder: Path, hanging: HangingEmbedder
) -> None:
    async with _serving(databases.settings()) as (app, client):
        await app.ingest([folder])
        await app.search(QUESTION, mode="lexical")  # connections and caches are there
        started = time.perf_counter()
        for asked in await _everywhere(app, client, QUESTION):
            assert "90 days" in asked.text
            assert asked.degraded == ["vector"]
        assert time.perf_counter() - started < 3 * STEP_TIMEOUTS["retrieve"]
        # Words alone find nothing for this, and meaning was not asked: that is not "the documents do not answer".
        for asked in await _everywhere(app, client, "Zzyzx qwrt?"):
            assert asked.text.startswith("The search was not finished")
            assert (asked.decision, asked.degraded) == ("review", ["vector"])
        conversation = await client.get("/conversations/late")
        assert [turn["question"] for turn in conversation.json()["messages"]] == [QUESTION]
        # Nothing of it was kept: the next question is answered with vectors.
        hanging.released.set()
        for asked in await _everywhere(app, client, QUESTION):
            assert (asked.decision, asked.degraded) == ("answer", [])


def test_the_command_line_says_that_a_search_was_not_finished(
    databases: Databases, folder: Path, hanging: HangingEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = databases.settings()
    cli = Cli(settings.data_dir, (("DTRAG_DATABASE_NAME", settings.database_name),))
    assert cli.call("ingest", folder).code == 0
    answered = cli.call("ask", QUESTION, "--json", DTRAG_EMBED_QUERY_MS="100")
    assert (answered.code, answered.json["degraded"]) == (0, ["vector"])
    assert cli.call("ask", "체스 대회의 우승자는 누구인가요?").code == 0  # searched, and not found: that is an answer

    async def hang(self: PostgresIndex, *arguments: object) -> dict[str, float]:
        await asyncio.sleep(60)
        return {}

    monkeypatch.setattr(PostgresIndex, "lexical", hang)
    for question, beginning in ((QUESTION, "The search was not finished"), (KOREAN, "검색을 끝내지 못해")):
        unfinished = cli.call("ask", question, "--json", PIPELINE_TIMEOUT_MULTIPLIER="0.3")
        assert unfinished.code == 5
        assert unfinished.json["text"].startswith(beginning)
        assert (unfinished.json["decision"], unfinished.json["unfinished"]) == ("review", True)
        assert unfinished.json["degraded"] == ["retrieve"]


class SlowReranker:
    """A cross-encoder that takes so long for each passage, and prefers the one that answers."""

    id = "slow"
    languages = frozenset({"*"})

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def score(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        time.sleep(self._seconds * len(texts))
        return [0.9 if "Parental" in text else 0.1 for text in texts]


@pytest.mark.parametrize("milliseconds", [100, 300, 500])
async def test_a_slow_cross_encoder_reads_what_fits(
    databases: Databases, folder: Path, monkeypatch: pytest.MonkeyPatch, milliseconds: int
) -> None:
    reranker = SlowReranker(milliseconds / 1000)
    monkeypatch.setattr("dtrag.assembly.rerankers.choose", lambda settings: reranker)
    monkeypatch.setenv("PIPELINE_TIMEOUT_MULTIPLIER", "5")  # 3 s for the reranker, 10 s for the search
    async with _serving(databases.settings()) as (app, client):
        await app.ingest([folder])
        await app.search(QUESTION, mode="lexical")  # connections and caches are there
        for asked in await _everywhere(app, client, QUESTION):
            assert "90 days" in asked.text
            assert asked.degraded == ["rerank"]


@pytest.fixture
def kiwi(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """A `kiwipiepy` that takes longer to load than a search may; returns how often it was loaded."""
    loads = []

    class Kiwi:
        def __init__(self, num_workers: int) -> None:
            loads.append(num_workers)
            time.sleep(LOADING_S)

        def tokenize(self, text: str) -> list[object]:
            return [types.SimpleNamespace(form=word, tag="NNG") for word in text.split()]

    module = types.ModuleType("kiwipiepy")
    module.__spec__ = importlib.machinery.ModuleSpec("kiwipiepy", None)
    module.Kiwi = Kiwi  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "kiwipiepy", module)
    return lambda: len(loads)


async def test_kiwi_is_loaded_before_the_time_of_a_question_begins(
    databases: Databases, folder: Path, kiwi: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = databases.settings(morphemes="kiwi")
    async with open_app(settings) as app:
        await app.ingest([folder])
    monkeypatch.setenv("PIPELINE_TIMEOUT_MULTIPLIER", "0.5")  # one second for the retrieve step
    async with _serving(settings) as (app, client):
        for asked in await _everywhere(app, client, KOREAN):
            assert "네 학기" in asked.text
            assert (asked.decision, asked.degraded) == ("answer", [])
    assert kiwi() == 2  # once for each app, however many questions wait for it


async def test_an_embedder_is_loaded_before_the_time_of_a_question_begins(
    databases: Databases, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load() -> ToyEmbedder:
        time.sleep(LOADING_S)
        return ToyEmbedder()

    monkeypatch.setattr("dtrag.assembly.embedders.choose", lambda settings: EmbedderOnDemand(ToyEmbedder, load))  # type: ignore[arg-type]
    settings = databases.settings()
    async with open_app(settings) as app:
        await app.ingest([folder])
    async with _serving(settings) as (app, client):
        await app.search(KOREAN, mode="lexical")  # connections and caches are there, the embedder is not
        for asked in await _everywhere(app, client, QUESTION):
            assert "90 days" in asked.text
            assert asked.degraded == []


async def test_a_database_that_answers_too_late_is_not_an_absence(
    databases: Databases, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(self: PostgresIndex, *arguments: object) -> dict[str, float]:
        await asyncio.sleep(60)
        return {}

    options = {"override_settings": {"features": {"hitl_below_conf": 0.9}}}
    async with _serving(databases.settings()) as (app, client):
        await app.ingest([folder], category=["Rules"])
        agent = await app.agents.create("1.0.0", [["Rules"]], options)
        with monkeypatch.context() as patched:
            patched.setenv("PIPELINE_TIMEOUT_MULTIPLIER", "0.3")
            patched.setattr(PostgresIndex, "lexical", hang)
            for question, beginning in ((QUESTION, "The search was not finished"), (KOREAN, "검색을 끝내지 못해")):
                for asked in await _everywhere(app, client, question):
                    assert asked.text.startswith(beginning)
                    assert (asked.decision, asked.degraded) == ("review", ["retrieve"])
            assert (await app.agents.ask(agent, QUESTION)).hitl_required is False
        assert (await client.get("/conversations/late")).status_code == 404
        assert await app.review.waiting() == ([], 0)
        for asked in await _everywhere(app, client, QUESTION):
            assert "90 days" in asked.text
