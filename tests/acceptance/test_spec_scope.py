"""D37: what needs no scope from a program of its own, and why nothing is wider inside a run, request or tool call."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2
import pytest
import pytest_asyncio

import dtrag
from dtrag import HybridSearchEngine, LangGraphPipeline, Scope
from dtrag.app import App
from dtrag.core.access import confinement
from dtrag.core.access.confinement import bounded, confined
from dtrag.core.access.scope import Access, Grant
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.delivery.api.app import create_app
from dtrag.pipeline.retrieve import step2_retrieve
from dtrag.settings import Settings, get_env_manager
from dtrag.tools import Tool

PACKAGE = Path(str(dtrag.__file__)).parent
QUESTION = "How many days of leave are there?"


async def fill(app: App, folder: Path) -> None:
    for name, category in (("leave", ["HR"]), ("kettles", ["Kitchen"])):
        (folder / f"{name}.md").write_text(f"# {name}\n\nThe {name} take ten days of leave.", "utf-8")
        await app.ingest([folder / f"{name}.md"], category=category)


@pytest_asyncio.fixture
async def filled(app: App, tmp_path: Path) -> App:
    await fill(app, tmp_path)
    return app


async def hr(app: App) -> Access:
    tree = (await app.index.snapshot()).taxonomy
    return Access((Grant.of([CategoryPath.parse(["HR"])], tree),))


def titles(results: list[dtrag.SearchResult]) -> set[str]:
    return {result.title for result in results}


async def test_d37_alone_functions_and_constructors_read_as_the_owner(filled: App) -> None:
    """The snippets of SEARCH-003, 008, 010 and ORCH-010 B name no scope."""
    search_engine = HybridSearchEngine(enable_caching=True)
    results, metrics = await search_engine.search("days of leave", 10, {})
    assert titles(results) == {"leave", "kettles"}
    assert metrics.bm25_candidates == 2
    assert len((await search_engine._perform_bm25_search(query="days", top_k=10, filters={}))[0]) == 2
    assert search_engine._build_filter_clause({"content_types": ["text/markdown"]})[0]
    for function in (dtrag.hybrid_search, dtrag.keyword_search):
        assert len((await function("days of leave"))[0]) == 2
    assert (await dtrag.vector_search("days of leave"))[0] == []  # no embedder here
    assert (await dtrag.get_search_statistics())["database_stats"]["documents"] == 2
    response = await LangGraphPipeline().execute(query=QUESTION)
    assert len(response.retrieved_chunks) == 2


@pytest.mark.parametrize("wider", [None, Scope.everything()])
async def test_d37_inside_they_read_no_more_than_what_surrounds_them(filled: App, wider: Scope | None) -> None:
    search_engine = HybridSearchEngine(scope=wider)
    with confined(await hr(filled)):
        assert titles((await search_engine.search("days of leave"))[0]) == {"leave"}
        assert titles((await filled.search("days of leave", scope=wider))[0]) == {"leave"}
        assert [row["title"] for row in (await dtrag.hybrid_search("days of leave", scope=wider))[0]] == ["leave"]
        assert (await dtrag.get_search_statistics(scope=wider))["database_stats"]["documents"] == 1
        assert [document.title for document in await filled.documents(scope=wider)] == ["leave"]
        assert len((await LangGraphPipeline().execute(QUESTION, scope=wider)).retrieved_chunks) == 1
        state = await step2_retrieve(dtrag.PipelineState(query=QUESTION))
        assert len(state.retrieved_chunks) == 1
    assert len((await search_engine.search("days of leave"))[0]) == 2


async def test_d37_a_tool_reads_what_the_question_may_read(filled: App) -> None:
    seen: list[set[str]] = []

    async def look(given: dict[str, Any]) -> str:
        rows, _ = await dtrag.hybrid_search("days of leave", scope=Scope.everything())
        seen.append({row["title"] for row in rows})
        seen.append(titles((await filled.search("days of leave"))[0]))
        return "done"

    filled.tools.register(Tool("look", "Looks around.", {"type": "object"}, look))
    plan = {"tools": ["look"], "inputs": {"look": {}}, "steps": [], "strategy": "", "reasoning": "", "notes": []}
    for name in ("meta_planner", "mcp_tools"):
        get_env_manager().set_feature_flag(name, True)
    try:
        with mock.patch("dtrag.pipeline.planner.plan", mock.AsyncMock(return_value=plan)):
            await filled.pipeline.execute(QUESTION, scope=await hr(filled))
    finally:
        for name in ("meta_planner", "mcp_tools"):
            get_env_manager().set_feature_flag(name, None)
    assert seen == [{"leave"}, {"leave"}]


async def test_d37_confinement_only_narrows_and_ends(filled: App) -> None:
    tree = (await filled.index.snapshot()).taxonomy
    narrow = await hr(filled)
    nodes = narrow.resolved(tree).nodes
    with confined(narrow):
        assert bounded() is narrow
        assert bounded(Access()).resolved(tree).nodes == nodes
        with confined(Scope.everything()):
            assert bounded().resolved(tree).nodes == nodes
        with confined(Scope(frozenset())):
            assert bounded(Scope.everything()).resolved(tree).nodes == frozenset()
    assert bounded() == Scope.everything()


@pytest_asyncio.fixture
async def client(settings: Settings, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    api = create_app(settings)
    async with (
        api.router.lifespan_context(api),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(api), base_url="http://127.0.0.1") as client,
    ):
        await fill(api.state.service.app, tmp_path)
        yield client


async def test_d37_over_http_the_scope_always_comes_from_the_caller(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every read is called with a scope: the default may be taken by a program of its own only."""

    def strict(scope: Any = None) -> Any:
        assert scope is not None, "the default scope was taken"
        return bounded(scope)

    monkeypatch.setattr(confinement, "bounded", strict)
    [document, _] = (await client.get("/documents")).json()["documents"]
    requests: list[tuple[str, str, Any]] = [
        ("GET", f"/documents/{document['document_id']}", None),
        ("POST", "/search", {"query": QUESTION}),
        ("POST", "/search/batch", {"searches": [{"query": QUESTION}]}),
        ("POST", "/ask", {"question": QUESTION}),
        ("POST", "/chat/run", {"message": QUESTION}),
        ("POST", "/chat/stream", {"message": QUESTION}),
        ("POST", "/v1/chat/completions", {"model": "dtrag", "messages": [{"role": "user", "content": QUESTION}]}),
        ("DELETE", f"/documents/{document['document_id']}", None),
    ]
    for method, path, body in requests:
        response = await client.request(method, path, json=body)
        assert response.status_code in {200, 204}, (path, response.text)
        assert "event: error" not in response.text


READS = {
    "select_documents",
    "delete_documents",
    "search",
    "ask",
    "documents",
    "counts",
    "document",
    "delete_document",
    "execute",
    "ingest_sources",
}
FUNCTIONS = {"hybrid_search", "keyword_search", "vector_search", "get_search_statistics"}
RECEIVERS = {"app", "_app", "opened", "engine", "_engine", "pipeline", "_pipeline", "app_of()"}


def _receiver(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return f"{_receiver(node.func)}()"
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_read(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr in FUNCTIONS or (function.attr in READS and _receiver(function.value) in RECEIVERS)
    return isinstance(function, ast.Name) and function.id in FUNCTIONS


def _without_scope(text: str) -> list[str]:
    """Reads without `scope=` or `**options`."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and _is_read(node.func)]
    scoped = {id(call) for call in calls for keyword in call.keywords if keyword.arg in {"scope", None}}
    return [f"line {call.lineno}" for call in calls if id(call) not in scoped]


def test_d37_delivery_and_tools_never_rely_on_the_default() -> None:
    assert _without_scope("app.search('x')\nservice.app.ask('x')\nhybrid_search('x')\napp.search('x', scope=s)") == [
        "line 1", "line 2", "line 3",
    ]  # fmt: skip
    files = [
        *(PACKAGE / "delivery").rglob("*.py"),
        *(PACKAGE / "tools").rglob("*.py"),
        *(PACKAGE / "pipeline").rglob("*.py"),
        *(PACKAGE / "evaluation").rglob("*.py"),
        *(PACKAGE / "governance").rglob("*.py"),
    ]
    found = {str(file.relative_to(PACKAGE)): _without_scope(file.read_text("utf-8")) for file in files}
    assert {name: lines for name, lines in found.items() if lines} == {}
