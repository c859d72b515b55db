"""`POST /search/batch`: in order, a few at a time, each with an answer or a failure of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from dtrag.core.documents import SearchMetrics, SearchResult
from dtrag.delivery.api.dependencies import Service
from dtrag.delivery.api.routes.search import AT_ONCE, MAX_PASSAGES
from dtrag.delivery.api.routing import MAX_SEARCHES
from dtrag.errors import DatabaseUnavailable
from tests.api.shape import FORM, assert_failure, form

MENU = b"# Menu\n\n## Soup\n\nThe soup is lentil.\n\n## Pie\n\nThe pie is rhubarb.\n"


@pytest_asyncio.fixture(scope="module", autouse=True)
async def menu(client: httpx2.AsyncClient) -> None:
    response = await client.post("/documents", content=form(("files", b"menu.md", MENU)), headers=FORM)
    assert response.status_code == 201


async def ask(client: httpx2.AsyncClient, *searches: Any) -> list[dict[str, Any]]:
    response = await client.post("/search/batch", json={"searches": searches})
    assert response.status_code == 200, response.text
    answers: list[dict[str, Any]] = response.json()["answers"]
    assert len(answers) == len(searches)
    return answers


async def test_results_are_in_the_order_of_the_searches(client: httpx2.AsyncClient) -> None:
    first, second = await ask(client, {"query": "rhubarb", "top_k": 1}, {"query": "lentil", "top_k": 1})
    assert "rhubarb" in first["results"][0]["text"]
    assert "lentil" in second["results"][0]["text"]
    alone = (await client.post("/search", json={"query": "rhubarb", "top_k": 1})).json()
    assert first["results"] == alone["results"]
    assert first.keys() == alone.keys()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"query": "x", "top_k": 0}, "top_k"),
        ({"query": "x", "filters": {"date_from": "soon"}}, "date_from"),
        ({"query": "x", "filters": {"nonsense": 1}}, "Known filters: allowed_category_paths"),
        ({"query": "x", "top": 1}, "'top'"),
        ({}, "'query'"),
        ("rhubarb", "JSON object"),
        (None, "JSON object"),
        ([], "JSON object"),
    ],
)
async def test_a_wrong_search_does_not_stop_the_others(client: httpx2.AsyncClient, wrong: Any, said: str) -> None:
    before, failed, after = await ask(client, {"query": "rhubarb"}, wrong, {"query": "lentil"})
    assert before["results"] and after["results"]
    assert set(failed) == {"detail", "type", "status"}
    assert (failed["status"], failed["type"]) == (422, "InvalidInput")
    assert said in failed["detail"]
    assert failed["detail"].endswith(".")


async def test_a_search_without_a_database_fails_in_its_place(
    client: httpx2.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def sometimes(query: str, *_: Any, **__: Any) -> tuple[list[SearchResult], SearchMetrics]:
        if query == "away":
            raise DatabaseUnavailable(reason="it is down.")
        return [], SearchMetrics()

    monkeypatch.setattr(service.app, "search", sometimes)
    there, away = await ask(client, {"query": "there"}, {"query": "away"})
    assert there["results"] == []
    assert (away["status"], away["type"]) == (503, "DatabaseUnavailable")


async def test_a_bug_in_one_search_is_an_internal_error(
    client: httpx2.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("the secret passage")

    monkeypatch.setattr(service.app, "search", fail)
    response = await client.post("/search/batch", json={"searches": [{"query": "x"}, {"query": "y"}]})
    assert "secret" not in assert_failure(response, 500)["detail"]


async def test_only_some_run_at_a_time(
    client: httpx2.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, most = 0, 0

    async def slow(query: str, *_: Any, **__: Any) -> tuple[list[SearchResult], SearchMetrics]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _turn in range(20 - int(query)):
            await asyncio.sleep(0)
        running -= 1
        return [SearchResult(query, query)], SearchMetrics()

    monkeypatch.setattr(service.app, "search", slow)
    answers = await ask(client, *({"query": str(number)} for number in range(20)))
    assert [answer["results"][0]["chunk_id"] for answer in answers] == [str(number) for number in range(20)]
    assert most == AT_ONCE


@pytest.mark.parametrize(("count", "status"), [(0, 422), (1, 200), (MAX_SEARCHES, 200), (MAX_SEARCHES + 1, 422)])
async def test_the_number_of_searches_is_limited(client: httpx2.AsyncClient, count: int, status: int) -> None:
    response = await client.post("/search/batch", json={"searches": [{"query": "soup"}] * count})
    assert response.status_code == status
    if status != 200:
        assert "'searches'" in assert_failure(response, 422)["detail"]


async def test_the_total_of_passages_is_limited(client: httpx2.AsyncClient) -> None:
    whole = {"searches": [{"query": "soup", "top_k": 1000}] * (MAX_PASSAGES // 1000)}
    assert (await client.post("/search/batch", json=whole)).status_code == 200
    whole["searches"].append({"query": "soup", "top_k": 1})
    assert "5,000" in assert_failure(await client.post("/search/batch", json=whole), 422)["detail"]


@pytest.mark.parametrize("field", ["top_k", "limit"])
async def test_numbers_out_of_range_do_not_count(client: httpx2.AsyncClient, field: str) -> None:
    """A negative number makes no place for more passages; one that is too large fails alone."""
    too_many = [{"query": "soup", "top_k": 1000}] * (MAX_PASSAGES // 1000 + 1)
    response = await client.post("/search/batch", json={"searches": [*too_many, {"query": "soup", field: -1_000}]})
    assert "5,000" in assert_failure(response, 422)["detail"]
    before, failed = await ask(client, {"query": "rhubarb"}, {"query": "x", field: 10_000})
    assert before["results"]
    assert failed["status"] == 422
