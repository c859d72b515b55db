"""The retrievers for LangChain, LlamaIndex and Haystack give the passages of a search, over HTTP and of an app."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from haystack import Pipeline
from haystack.core.errors import PipelineRuntimeError

import dtrag
from dtrag.errors import DtragError, FetchFailed, Forbidden, InvalidInput, Overloaded, TooManyRequests, Unauthorized
from dtrag.integrations import haystack, langchain, llama_index
from dtrag.integrations.passages import PassageSource, RetrievedPassage
from dtrag.opening import SyncApp
from tests.api.confined import House, house, listening
from tests.cases import each
from tests.store import Databases

QUERY = "machine learning finds rules"
Row = tuple[str, str, float, str, int, int]


@pytest_asyncio.fixture(scope="module")
async def built(houses_of_module: Databases) -> AsyncIterator[House]:
    async with house(houses_of_module.settings()) as running:
        await running.client("owner", None, "admin")
        await running.client("ml", ["AI/ML"], "reader")
        yield running


@pytest_asyncio.fixture(scope="module")
async def address(built: House) -> AsyncIterator[str]:
    async with listening(built.api) as listened:
        yield listened


def key_of(built: House, name: str) -> str:
    return built.clients[name].headers["authorization"].removeprefix("Bearer ")


def of_langchain(found: Any) -> list[Row]:
    return [
        (d.id, d.page_content, d.metadata["score"], d.metadata["category"], d.metadata["start"], d.metadata["end"])
        for d in found
    ]


def of_llama_index(found: Any) -> list[Row]:
    nodes = [(each.node, each.score) for each in found]
    return [(n.node_id, n.text, s, n.metadata["category"], n.start_char_idx, n.end_char_idx) for n, s in nodes]


def of_haystack(found: Any) -> list[Row]:
    return [(d.id, d.content, d.score, d.meta["category"], d.meta["start"], d.meta["end"]) for d in found["documents"]]


def of_search(body: Any) -> list[Row]:
    return [
        (r["chunk_id"], r["text"], h["score"], "/".join(r["taxonomy_path"]), r["start"], r["end"])
        for r, h in zip(body["results"], body["hits"], strict=True)
    ]


async def in_langchain(asynchronous: bool, query: str, **options: Any) -> list[Row]:
    retriever = langchain.DtragRetriever(**options)
    return of_langchain(
        await (retriever.ainvoke(query) if asynchronous else asyncio.to_thread(retriever.invoke, query))
    )


async def in_llama_index(asynchronous: bool, query: str, **options: Any) -> list[Row]:
    retriever = llama_index.DtragRetriever(**options)
    return of_llama_index(
        await (retriever.aretrieve(query) if asynchronous else asyncio.to_thread(retriever.retrieve, query))
    )


async def in_haystack(asynchronous: bool, query: str, **options: Any) -> list[Row]:
    pipeline = Pipeline()
    pipeline.add_component("passages", haystack.DtragRetriever(**options))
    data = {"passages": {"query": query}}
    if asynchronous:
        return of_haystack((await pipeline.run_async(data))["passages"])
    return of_haystack((await asyncio.to_thread(pipeline.run, data))["passages"])


Library = Callable[..., Awaitable[list[Row]]]
LIBRARIES: list[Library] = [in_langchain, in_llama_index, in_haystack]


@each("library", LIBRARIES)
@each("asynchronous", [False, True])
async def test_over_http_they_give_the_results_of_a_search(
    built: House, address: str, library: Library, asynchronous: bool
) -> None:
    for name in ("owner", "ml"):
        for options in ({}, {"top_k": 2}, {"filters": {"taxonomy_paths": [["AI", "ML"]]}}, {"mode": "strict"}):
            body = {"query": QUERY, **options}
            searched = of_search((await built.clients[name].post("/search", json=body)).json())
            found = await library(asynchronous, QUERY, base_url=address, api_key=key_of(built, name), **options)
            assert found == searched
            assert found or options.get("mode") == "strict"
            assert name == "owner" or {row[3] for row in found} <= {"AI/ML"}


@each("library", LIBRARIES)
async def test_of_an_app_they_give_the_same(built: House, library: Library) -> None:
    searched = of_search((await built.clients["owner"].post("/search", json={"query": QUERY})).json())
    assert await library(True, QUERY, app=built.app) == searched
    scope = await built.app.branch("AI/ML")
    confined = of_search((await built.clients["ml"].post("/search", json={"query": QUERY})).json())
    assert await library(True, QUERY, app=built.app, scope=scope) == confined
    with pytest.raises((InvalidInput, PipelineRuntimeError), match=r"dtrag\.open_sync"):
        await library(False, QUERY, app=built.app)


async def test_of_a_synchronous_app_they_give_the_same(houses: Databases, built: House) -> None:
    searched = of_search((await built.clients["owner"].post("/search", json={"query": QUERY})).json())
    app = await asyncio.to_thread(SyncApp, houses.settings())
    try:
        for library in LIBRARIES:
            for asynchronous in (False, True):
                found = await library(asynchronous, QUERY, app=app)
                assert found == searched
    finally:
        await asyncio.to_thread(app.close)


async def test_haystack_takes_the_number_of_passages_of_a_run(built: House, address: str) -> None:
    retriever: Any = haystack.DtragRetriever(base_url=address, api_key=key_of(built, "owner"), top_k=3)
    assert len((await retriever.run_async(query=QUERY))["documents"]) == 3
    assert len((await retriever.run_async(query=QUERY, top_k=1))["documents"]) == 1


async def both(source: PassageSource) -> Sequence[list[RetrievedPassage] | BaseException]:
    return await asyncio.gather(
        asyncio.to_thread(source.passages, QUERY), source.apassages(QUERY), return_exceptions=True
    )


async def test_errors_say_what_to_do(built: House, address: str) -> None:
    limited = (await built.app.keys.create("limited", None, "reader", rate=1)).secret
    assert (await PassageSource(base_url=address, api_key=limited).apassages(QUERY))[0].text
    public = await built.app.agents.create("1.0.0", [["AI"]], name="Public")
    asking = (await built.app.keys.create("page", None, "public", agent=public)).secret
    owner = key_of(built, "owner")
    cases: list[tuple[PassageSource, type[DtragError], str]] = [
        (PassageSource(base_url=address), Unauthorized, "needs an api_key.*dtrag keys create"),
        (PassageSource(base_url=address, api_key="dtrag_wrong"), Unauthorized, "does not accept this api_key"),
        (PassageSource(base_url=address, api_key=limited), TooManyRequests, r"Try again in \d+ seconds"),
        (PassageSource(base_url=address, api_key=asking), Forbidden, "does not allow"),
        (PassageSource(base_url=address, api_key=owner, top_k=0), InvalidInput, "from 1 to 1000"),
        (PassageSource(base_url=f"{address}/nowhere", api_key=owner), FetchFailed, "Check base_url"),
        (PassageSource(base_url="http://127.0.0.1:9", timeout_s=2), FetchFailed, "dtrag up"),
    ]
    for source, kind, words in cases:
        for error in await both(source):
            assert isinstance(error, kind), (words, error)
            with pytest.raises(kind, match=words):
                raise error
        assert "dtrag_" not in repr(source)


def test_a_busy_service_is_an_error_with_its_time() -> None:
    response = httpx2.Response(503, json={"detail": "The service is overloaded."}, headers={"retry-after": "7"})
    with pytest.raises(Overloaded, match=r"The service is overloaded\. Try again in 7 seconds"):
        PassageSource(base_url="http://127.0.0.1:8001")._read(response)
    with pytest.raises(FetchFailed, match="not a service of dtrag"):
        PassageSource(base_url="http://127.0.0.1:8001")._read(httpx2.Response(200, text="<html>"))


@each("options", [{}, {"base_url": "localhost:8001"}, {"base_url": "http://127.0.0.1:1", "scope": dtrag.Scope(None)}])
def test_a_source_that_is_none_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        PassageSource(**options)


@each(
    "module, package, extra",
    [
        ("langchain", "langchain_core", "langchain"),
        ("llama_index", "llama_index", "llama-index"),
        ("haystack", "haystack", "haystack"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(module: str, package: str, extra: str) -> None:
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
from dtrag.errors import MissingExtra
try:
    import dtrag.integrations.{module}
except MissingExtra as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"pip install 'dtrag[{extra}]'" in ran.stdout, ran.stderr[-500:]
