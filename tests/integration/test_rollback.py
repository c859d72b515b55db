"""docs/how-to/rollback.md, rehearsed: parts of a running service are switched off, and changes are taken back."""

from __future__ import annotations

import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dtrag import LangGraphPipeline, get_env_manager
from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.server.programs import wheel_folder
from dtrag.app import App, open_app
from dtrag.delivery.api.app import create_app
from dtrag.ports import Models
from dtrag.settings import FLAGS, Settings
from tests.model_server import Messages, ModelServer
from tests.store import Databases
from tests.toy import ToyEmbedder
from tests.unit.adapters.rerankers.tiny import write_model

ROOT = Path(__file__).parents[2]
LEAVE = "# Leave\n\nAnnual leave is ten days for all members of staff. Unpaid leave is asked for in writing."
QUESTION = {"message": "How many days is annual leave for members of staff?"}


def reply(messages: Messages) -> str:
    return "Annual leave is ten days for all members of staff [1]."


@asynccontextmanager
async def service(settings: Settings) -> AsyncIterator[tuple[App, httpx2.AsyncClient]]:
    """A running service and a client of it."""
    api = create_app(settings)
    async with (
        api.router.lifespan_context(api),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(api), base_url="http://127.0.0.1", timeout=60) as client,
    ):
        yield api.state.service.app, client


@pytest.fixture
def leave(tmp_path: Path) -> Path:
    file = tmp_path / "leave.md"
    file.write_text(LEAVE, "utf-8")
    return file


@pytest.fixture(autouse=True)
def switches() -> Iterator[None]:
    """No flag stays switched."""
    yield
    for declared in FLAGS:
        get_env_manager().set_feature_flag(declared.name, None)


async def answered(client: httpx2.AsyncClient) -> dict[str, Any]:
    response = await client.post("/chat/run", json=QUESTION)
    assert response.status_code == 200
    metadata: dict[str, Any] = response.json()["metadata"]
    assert "ten days" in response.json()["response"]
    return metadata


async def test_debates_tools_and_planner_are_switched_off_under_a_running_service(
    databases: Databases, leave: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the environment and by the flag of the process; from the next question on, and back again."""
    with ModelServer(reply) as server:
        settings = databases.settings(llm="openai:test", llm_base_url=server.url)
        async with service(settings) as (app, client):
            await app.ingest([leave])
            for name in ("DEBATE_MODE", "FEATURE_META_PLANNER", "FEATURE_MCP_TOOLS"):
                monkeypatch.setenv(name, "true")
            steps = (await answered(client))["step_timings"]
            assert {"plan", "tools_debate", "debate"} <= set(steps)

            monkeypatch.setenv("DEBATE_MODE", "false")
            monkeypatch.setenv("FEATURE_MCP_TOOLS", "false")
            off = await answered(client)
            assert {"tools_debate", "debate"}.isdisjoint(off["step_timings"]) and "plan" in off["step_timings"]

            get_env_manager().set_feature_flag("meta_planner", False)
            off = await answered(client)
            assert {"plan", "tools_debate", "debate"}.isdisjoint(off["step_timings"])
            assert {"intent", "retrieve", "compose", "respond"} <= set(off["step_timings"])
            assert off["degraded"] == []
            assert (await client.get("/health")).json()["status"] == "healthy"

            get_env_manager().set_feature_flag("debate_mode", True)
            assert "debate" in (await answered(client))["step_timings"]


async def test_model_reranker_and_langgraph_are_switched_off_by_a_restart(
    databases: Databases, leave: Path, tmp_path: Path
) -> None:
    with ModelServer(reply) as server:
        reranker = write_model(tmp_path / "cross-encoder")
        settings = databases.settings(
            llm="openai:test", llm_base_url=server.url, reranker=str(reranker), pipeline="langgraph"
        )
        async with service(settings) as (app, client):
            await app.ingest([leave])
            await answered(client)
            assert server.requests
            assert isinstance(app.pipeline, LangGraphPipeline)
            assert app.engine.get_config()["reranker"] != "heuristic"
        server.requests.clear()
        without = Settings.load(
            environ={},
            data_dir=settings.data_dir,
            database_name=settings.database_name,
            embedder="none",
            reranker="none",
        )
        async with service(without) as (app, client):
            assert not isinstance(app.pipeline, LangGraphPipeline)
            assert app.engine.get_config()["reranker"] == "heuristic"
            assert (await answered(client))["degraded"] == []
            search = (await client.post("/search", json={"query": "annual leave"})).json()
            assert search["results"][0]["rerank_score"] > 0 and search["metrics"]["degraded"] == []
            assert (await client.get("/health")).json()["status"] == "healthy"
        assert server.requests == []


async def test_without_its_embedder_an_index_is_searched_by_words_and_with_it_as_before(
    databases: Databases, leave: Path
) -> None:
    settings, toy = databases.settings(), ToyEmbedder(languages=frozenset({"*"}))
    async with connected(settings, toy) as app:
        await app.ingest([leave])
        assert (await app.search("annual leave"))[1].vector_candidates == 1
    async with connected(settings, None) as app:
        results, metrics = await app.search("annual leave")
        assert results and metrics.vector_candidates == 0 and metrics.degraded == ()
    async with connected(settings, toy) as app:
        assert (await app.search("annual leave"))[1].vector_candidates == 1


@asynccontextmanager
async def connected(settings: Settings, embedder: ToyEmbedder | None) -> AsyncIterator[App]:
    async with (
        connect(settings) as database,
        App(settings, database, Models(embedder)) as app,
    ):
        yield app


async def test_the_tree_is_rolled_back_under_a_running_service(settings: Settings, leave: Path) -> None:
    async with service(settings) as (app, client):
        await app.ingest([leave], category="HR")

        async def paths() -> list[list[str]]:
            response = await client.post("/search", json={"query": "annual leave"})
            assert response.status_code == 200
            return [row["taxonomy_path"] for row in response.json()["results"]]

        assert await paths() == [["HR"]]
        change = {"operations": [{"op": "rename", "path": ["HR"], "name": "Staff"}], "rationale": "a new name"}
        version = (await client.post("/taxonomy", json=change)).json()["version"]
        assert (await client.post(f"/taxonomy/{version}/activate", json={})).status_code == 200
        assert await paths() == [["Staff"]]
        assert (await client.post("/taxonomy/1.0.0/rollback", json={})).status_code == 200
        assert await paths() == [["HR"]]
        assert (await client.post(f"/taxonomy/{version}/rollback", json={})).status_code == 200
        assert await paths() == [["Staff"]]


async def test_a_dump_is_restored_beside_the_database_and_used(
    databases: Databases, leave: Path, tmp_path: Path
) -> None:
    """With the commands of docs/how-to/operations.md; the restored database answers, has its vectors and is whole."""
    settings, restored = databases.settings(), databases.settings()
    async with open_app(settings) as app:
        await app.ingest([leave], category="HR")
    binaries = wheel_folder() / "pginstall18" / "bin"
    where = ["-h", host_of(databases), "-U", "dtrag_owner"]
    dump = tmp_path / "dtrag.dump"

    def run(program: str, *arguments: str) -> None:
        done = subprocess.run([binaries / program, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    run("pg_dump", "--enable-row-security", *where, "-Fc", "-f", str(dump), settings.database_name)
    run("dropdb", *where, restored.database_name)
    run("createdb", *where, restored.database_name)
    run("pg_restore", "--enable-row-security", *where, "-d", restored.database_name, str(dump))
    async with open_app(settings) as app:
        for document in await app.documents():
            await app.delete_document(document.document_id)
        assert (await app.search("annual leave"))[0] == []
    async with open_app(restored) as app:
        assert (await app.search("annual leave"))[0][0].taxonomy_path == ["HR"]
    databases.store(restored).assert_whole()


def host_of(databases: Databases) -> str:
    """Where the server's socket is."""
    found = re.search(r"host='?([^' ]+)", databases.address.conninfo("dtrag_owner", "postgres"))
    assert found is not None
    return found[1]


def test_the_page_names_every_flag_and_the_settings_of_the_rehearsals() -> None:
    page = (ROOT / "docs" / "how-to" / "rollback.md").read_text("utf-8")
    for declared in FLAGS:
        assert f"FEATURE_{declared.name.upper()}=" in page
    for name in ("DTRAG_LLM", "DTRAG_RERANKER=none", "DTRAG_EMBEDDER=none", "DTRAG_DATABASE_NAME", "SENTRY_DSN"):
        assert name in page
