"""What the acceptance documents ask of the foundation, by their ids (SEARCH = hybrid search, ORCH = orchestration)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio

import dtrag
from dtrag.adapters.postgres.queries import queries
from dtrag.app import open_app
from dtrag.delivery.api.app import create_app
from dtrag.settings import Settings
from tests.cases import each
from tests.store import Databases

TEXTS = {
    "algorithms.md": "# Algorithms\n\nMachine learning algorithms find patterns in measurements.",
    "networks.md": "# Networks\n\nDeep neural networks are one family of learning methods.",
    "storage.txt": "A database keeps tables and indexes on disk.",
}


@pytest_asyncio.fixture(scope="module")
async def corpus(databases_of_module: Databases, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("corpus")
    for name, text in TEXTS.items():
        (folder / name).write_text(text, "utf-8")

    async def fill(app: dtrag.App) -> None:
        await app.ingest([folder / "algorithms.md", folder / "networks.md"], category=["AI", "ML"])
        await app.ingest([folder / "storage.txt"], category=["Database"])

    return await databases_of_module.filled(fill)


@pytest_asyncio.fixture
async def filled(databases: Databases, corpus: str) -> AsyncIterator[dtrag.App]:
    async with open_app(databases.settings(corpus)) as opened:
        yield opened


@pytest_asyncio.fixture
async def client(settings: Settings) -> AsyncIterator[httpx2.AsyncClient]:
    api = create_app(settings)
    async with (
        api.router.lifespan_context(api),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(api), base_url="http://127.0.0.1") as client,
    ):
        yield client


async def test_search_001_the_strict_ranker_is_the_text_s(filled: dtrag.App) -> None:
    """AC-001 and D11: every word must occur, 0 < score <= 1, best first; natural questions are another ranker's."""
    results, _ = await filled.search("machine learning algorithms", mode="strict")
    assert [result.title for result in results] == ["Algorithms"]
    assert all(0 < result.bm25_score <= 1 for result in results)
    question = "Which machine learning algorithms are there for customers?"
    assert (await filled.search(question, mode="strict"))[0] == []
    assert (await filled.search(question))[0][0].title == "Algorithms"


def test_search_001_the_query_is_parameterised() -> None:
    """AC-001: the words of the ranker, and the question only ever as a parameter."""
    migration = Path(str(dtrag.__file__)).parent / "adapters/postgres/migrations/0001_foundation.sql"
    text = migration.read_text("utf-8")
    for part in ("to_tsvector('english', c.text)", "plainto_tsquery('english'", "ts_rank_cd", "32|1"):
        assert part in text
    assert "%(query)s" in queries("search")["strict"]


async def test_search_009_taxonomy_paths_filter_by_prefix(filled: dtrag.App) -> None:
    """AC-009 A and D5: any spelling of a path is the same path; results show the first one."""
    results, _ = await filled.search("learning database", filters={"taxonomy_paths": [["ai"]]})
    assert {tuple(result.taxonomy_path) for result in results} == {("AI", "ML")}
    results, _ = await filled.search("learning database", filters={"taxonomy_paths": [["ＡＩ", "ml"], ["Database"]]})
    assert len(results) == 3


@each("path", [["'; DROP TABLE chunks; --"], ["AI", ".."], ["A\u200bI"], [""], ["АІ mixed with AI"], ["x" * 10_000]])
async def test_search_009_bad_paths_are_refused(filled: dtrag.App, path: list[str]) -> None:
    """AC-009 and D16: letters, digits and marks of any script, blank, _ and -; everything else is a ValueError."""
    with pytest.raises(ValueError, match=r"category|characters|names"):
        await filled.search("algorithms", filters={"taxonomy_paths": [path]})
    assert (await filled.search("algorithms"))[0]


async def test_orch_010_health_has_the_four_features(client: httpx2.AsyncClient) -> None:
    """ORCH-010: 200, one of three states, the four features; without an embedder by choice `healthy` (D30)."""
    response = await client.get("/health")
    data = response.json()
    assert (response.status_code, data["status"]) == (200, "healthy")
    assert {"B-O1", "B-O2", "B-O3", "B-O4"} <= set(data["features"])
    assert "embedder" in str(data["checks"])


@each(
    "method, path, body, status",
    [
        ("POST", "/search", {"query": "x", "top_k": 0}, 422),
        ("POST", "/search", {"query": "x", "filters": {"taxonomy_paths": [["a/b"]]}}, 422),
        ("POST", "/ask", {"question": " "}, 422),
        ("GET", "/documents/none", None, 404),
        ("GET", "/nowhere", None, 404),
        ("POST", "/chat/run", {"message": "x" * 10_001}, 422),
        ("POST", "/chat/run", {"message": "x", "conversation_id": "x" * 129}, 422),
        ("POST", "/chat/run", {"messages": []}, 422),
        ("POST", "/search/batch", {"searches": []}, 422),
    ],
)
async def test_orch_006_every_refusal_is_one_sentence(
    client: httpx2.AsyncClient, method: str, path: str, body: dict[str, object] | None, status: int
) -> None:
    """D6: `detail` is a sentence, never a list."""
    response = await client.request(method, path, json=body)
    assert response.status_code == status
    detail = response.json()["detail"]
    assert isinstance(detail, str)
    assert detail.rstrip().endswith((".", "`")) or len(detail.split()) > 2
    assert not re.search(r"' [A-Z]", detail), "a sentence within a sentence"
