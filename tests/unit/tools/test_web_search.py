"""Web search as a tool, on each kind of service, against a real server on loopback."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dtrag.adapters.web.fetch import WebFetcher
from dtrag.errors import EgressBlocked, InvalidInput
from dtrag.settings import Settings
from dtrag.tools import ToolExecutionResult, ToolRegistry, execute_tool
from dtrag.tools.builtin import registry_of
from dtrag.tools.builtin.web_search import NO_SERVICE, SearchService, choose
from tests.web_server import WebServer, always, answer, web_server

ROWS = [
    {"title": "First", "url": "https://one.example/a", "content": "An excerpt."},
    {"title": "Second", "url": "http://two.example/", "content": "Another."},
]


class NoParser:
    """Documents are not read in these tests."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError("the parser was used")


def searching(server: WebServer, provider: str = "auto", key: str | None = None) -> ToolRegistry:
    settings = Settings.load(
        environ={},
        web_search_provider=provider,
        web_search_url=server.address,
        web_search_key=key,
        egress_allow=f"127.0.0.1:{server.port}",
    )
    return registry_of(settings, NoParser(), WebFetcher)


@asynccontextmanager
async def service(said: Any, **options: Any) -> AsyncIterator[WebServer]:
    async with web_server(always(answer(body=json.dumps(said).encode(), **options))) as server:
        yield server


async def search(registry: ToolRegistry, **given: Any) -> ToolExecutionResult:
    return await execute_tool("web_search", given, registry=registry)


async def test_without_a_service_nothing_is_found_and_it_says_why() -> None:
    registry = registry_of(Settings.load(environ={}), NoParser(), WebFetcher)
    done = await search(registry, query="휴학")
    assert (done.success, done.result) == (True, {"results": [], "note": NO_SERVICE})


async def test_results_of_searxng_are_returned() -> None:
    async with service({"results": ROWS}) as server:
        done = await search(searching(server), query="휴학 절차 & co")
    assert done.result == {
        "results": [
            {"title": "First", "url": "https://one.example/a", "snippet": "An excerpt."},
            {"title": "Second", "url": "http://two.example/", "snippet": "Another."},
        ],
        "note": "",
    }
    asked = server.requests[0]
    assert asked.path == "/search?q=%ED%9C%B4%ED%95%99+%EC%A0%88%EC%B0%A8+%26+co&format=json"
    assert "authorization" not in asked.headers


async def test_searxng_behind_a_key() -> None:
    async with service({"results": []}) as server:
        done = await search(searching(server, "searxng", "k"), query="x")
    assert done.result == {"results": [], "note": "Nothing was found."}
    assert server.requests[0].headers["authorization"] == "Bearer k"


async def test_the_request_and_the_results_of_tavily() -> None:
    async with service({"results": ROWS}) as server:
        done = await search(searching(server, "tavily", "k"), query="x", count=1)
    assert [row["title"] for row in done.result["results"]] == ["First"]
    asked = server.requests[0]
    assert (asked.method, asked.path, asked.headers["authorization"]) == ("POST", "/search", "Bearer k")
    assert json.loads(asked.body) == {"query": "x", "max_results": 1}


async def test_the_request_and_the_results_of_brave() -> None:
    rows = [{"title": "First", "url": "https://one.example/", "description": "<strong>An</strong> excerpt."}]
    async with service({"web": {"results": rows}}) as server:
        done = await search(searching(server, "brave", "k"), query="x", count=3)
    assert done.result["results"] == [{"title": "First", "url": "https://one.example/", "snippet": "An excerpt."}]
    assert server.requests[0].path == "/res/v1/web/search?q=x&count=3"
    assert server.requests[0].headers["x-subscription-token"] == "k"


@pytest.mark.parametrize("provider", ["searxng", "tavily", "brave"])
@pytest.mark.parametrize(
    "said",
    [{}, [], None, "x", {"results": None}, {"results": [None, 3, "x", {}]}, {"web": {"results": {}}}, {"web": 1}],
)
async def test_a_response_of_another_shape_has_no_results(provider: str, said: Any) -> None:
    async with service(said) as server:
        done = await search(searching(server, provider, "k"), query="x")
    assert done.result == {"results": [], "note": "Nothing was found."}


async def test_results_are_plain_text_with_http_addresses() -> None:
    rows = [
        {
            "title": "<b>Bold</b> &amp;\n plain \u202eevil\u200b\x07",
            "url": "https://one.example/",
            "content": "x" * 9_999,
        },
        {"title": "a", "url": "javascript:alert(1)"},
        {"title": "b", "url": "file:///etc/passwd"},
        {"title": "c", "url": "https://one.example/ with spaces"},
        {"title": "d", "url": "https://one.example/" + "x" * 3_000},
        {"title": None, "url": "https://two.example/", "content": ["no", "text"]},
    ]
    async with service({"results": rows}) as server:
        done = await search(searching(server), query="x")
    assert done.result["results"] == [
        {"title": "Bold & plain evil", "url": "https://one.example/", "snippet": "x" * 600},
        {"title": "", "url": "https://two.example/", "snippet": "['no', 'text']"},
    ]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (answer(429), "searxng returned no usable response: it answered with status 429."),
        (answer(body=b"<html>"), "its answer is not JSON."),
        (answer(body=b"[" * 100_000), "its answer is not JSON."),
        (answer(body=b"\xff\xfe\xfa"), "its answer is not JSON."),
        (answer(content_type="text/html"), "its response is of the type 'text/html'."),
        (answer(302, Location="http://169.254.169.254/latest"), "it is not a public address."),
    ],
)
async def test_a_failing_service_fails_only_the_tool(said: bytes, reason: str) -> None:
    async with web_server(always(said)) as server:
        done = await search(searching(server), query="x")
    assert not done.success
    assert reason in str(done.error)


@pytest.mark.parametrize("given", [{"query": "x" * 401}, {"query": "x", "count": 11}, {"q": "x"}])
async def test_queries_have_limits(given: dict[str, Any]) -> None:
    registry = registry_of(Settings.load(environ={}), NoParser(), WebFetcher)
    assert str((await search(registry, **given)).error).startswith("Input validation failed: ")


# --- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "url", "key", "reason"),
    [
        ("google", None, None, "There is no search service 'google'"),
        ("searxng", None, None, "set DTRAG_WEB_SEARCH_URL"),
        ("tavily", None, None, "set DTRAG_WEB_SEARCH_KEY"),
        ("brave", None, "", "set DTRAG_WEB_SEARCH_KEY"),
        ("tavily", "http://tavily.example", "k", "by https only"),
    ],
)
def test_invalid_settings_are_reported_at_once(name: str, url: str | None, key: str | None, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        choose(name, url, key, frozenset())


def test_an_internal_service_needs_an_exception() -> None:
    with pytest.raises(EgressBlocked, match="egress_allow"):
        choose("auto", "http://10.0.0.7:8080", None, frozenset())
    allowed = frozenset({("10.0.0.7", 8080)})
    assert choose("auto", "http://10.0.0.7:8080/", "k", allowed) == SearchService(
        "searxng", "http://10.0.0.7:8080", "k"
    )


def test_the_usual_services_have_their_addresses_and_keys_are_not_shown() -> None:
    provider = choose("tavily", None, "secret-key", frozenset())
    assert provider is not None
    assert provider.base == "https://api.tavily.com"
    assert "secret-key" not in repr(provider)
    assert "secret-key" not in repr(provider.request("x", 1))
    assert choose("none", "https://searx.example", None, frozenset()) is None
    assert choose("auto", None, None, frozenset()) is None
