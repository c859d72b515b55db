"""`POST /search` and `POST /ask`: what they answer, and what they refuse."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api.shape import FORM, assert_failure, form
from tests.cases import each

HANDBOOK = b"""# Harbour rules

## Mooring

A sloop may stay at the north pier for nine days without a permit.

## Lamps

Every lamp on the quay is lit at dusk by the warden.
"""


@pytest_asyncio.fixture(scope="module", autouse=True)
async def handbook(client: httpx2.AsyncClient) -> str:
    body = form(("files", b"harbour.md", HANDBOOK), ("category", None, b"Port/Rules"))
    response = await client.post("/documents", content=body, headers=FORM)
    assert response.status_code == 201
    return str(response.json()["documents"][0]["document_id"])


async def test_search_returns_passages_and_metrics(client: httpx2.AsyncClient, handbook: str) -> None:
    response = await client.post("/search", json={"query": "sloop at the north pier", "top_k": 3})
    assert response.status_code == 200
    body = response.json()
    first = body["results"][0]
    assert "nine days" in first["text"]
    assert first["metadata"]["document_id"] == handbook
    assert first["taxonomy_path"] == ["Port", "Rules"]
    assert first["breadcrumb"][-1] == "Mooring"
    assert body["metrics"]["bm25_candidates"] >= 1
    assert body["metrics"]["vector_candidates"] == 0
    assert body["metrics"]["final_results"] == len(body["results"])
    whole = (await client.get(f"/documents/{handbook}")).json()["text"]
    assert whole[first["start"] : first["end"]] == first["text"]


async def test_filters_reach_the_search(client: httpx2.AsyncClient) -> None:
    asked = {"query": "sloop pier", "filters": {"taxonomy_paths": [["Port"]]}}
    assert (await client.post("/search", json=asked)).json()["results"]
    asked = {"query": "sloop pier", "filters": {"taxonomy_paths": [["Nowhere"]]}}
    assert (await client.post("/search", json=asked)).json()["results"] == []
    refused = await client.post("/search", json={"query": "x", "filters": {"bypass_attempt": True}})
    assert "bypass_attempt" in assert_failure(refused, 403)["detail"]


async def test_top_k_limits(client: httpx2.AsyncClient) -> None:
    body = (await client.post("/search", json={"query": "sloop lamp quay", "top_k": 1})).json()
    assert len(body["results"]) == 1


@each("mode", ["hybrid", "lexical", "strict"])
async def test_modes_without_an_embedder(client: httpx2.AsyncClient, mode: str) -> None:
    response = await client.post("/search", json={"query": "sloop", "mode": mode})
    assert response.json()["metrics"]["mode"] == mode
    assert response.json()["results"]


async def test_ask_cites_what_it_quotes(client: httpx2.AsyncClient, handbook: str) -> None:
    question = "How many days may a sloop stay at the north pier?"
    body = (await client.post("/ask", json={"question": question})).json()
    assert body["question"] == question
    assert body["decision"] == "answer"
    assert 0 < body["confidence"] <= 1
    assert set(body["stages"]) >= {"retrieve", "compose", "cite"}
    citation = body["citations"][0]
    assert citation["document_id"] == handbook
    assert f"[{citation['number']}]" in body["text"]
    whole = (await client.get(f"/documents/{handbook}")).json()["text"]
    assert whole[citation["start"] : citation["end"]] == citation["quote"]


async def test_ask_says_when_the_documents_do_not_answer(client: httpx2.AsyncClient) -> None:
    body = (await client.post("/ask", json={"question": "Who invented the zymurgical frobnicator?"})).json()
    assert body["decision"] == "abstain"
    assert body["citations"] == []


@each("raw", ["0", "-1", "1000000000", "1.5", '"10"', "true", "NaN", "1e400", "[]", "{}"])
async def test_top_k_is_a_strict_whole_number(client: httpx2.AsyncClient, raw: str) -> None:
    content = f'{{"query": "sloop", "top_k": {raw}}}'
    response = await client.post("/search", content=content, headers={"content-type": "application/json"})
    assert_failure(response, 422)


@each(
    "path, body, word",
    [
        ("/search", {}, "query"),
        ("/search", {"query": 5}, "query"),
        ("/search", {"query": "x", "size": 3}, "size"),
        ("/search", {"query": "x", "mode": "magic"}, "mode"),
        ("/search", {"query": "x", "filters": []}, "filters"),
        ("/search", {"query": "x", "top_k": "ten", "mode": 3}, "'top_k' should be a valid integer (and 1 more)"),
        ("/search", {"query": "x", "filters": {"date_from": "soon"}}, "date_from"),
        ("/search", {"query": "x", "filters": {"taxonomy_paths": [["a/b"]]}}, "Unsafe"),
        ("/search", [], "object"),
        ("/search", "text", "object"),
        ("/ask", {"question": ""}, "empty"),
        ("/ask", {"question": "   "}, "empty"),
        ("/ask", {"question": None}, "question"),
        ("/ask", {"question": "x", "top_k": 3}, "top_k"),
    ],
)
async def test_a_wrong_body_is_named(client: httpx2.AsyncClient, path: str, body: Any, word: str) -> None:
    assert word in assert_failure(await client.post(path, json=body), 422)["detail"]


@each(
    "query",
    [
        "",
        "   \n\t",
        "🦜🦜",
        "' OR 1=1 --",
        "%",
        "\\",
        "a & b | !c <-> d:*",
        "sloop:* & (",
        "'; drop table chunks; --",
        "\x00sloop",
        "한국어 질문 조항",
        "a" * 10_000,
        "{}[]$1 %s %(x)s :name",
    ],
)
@each("mode", ["hybrid", "strict"])
async def test_unusual_queries_are_answered(client: httpx2.AsyncClient, query: str, mode: str) -> None:
    response = await client.post("/search", json={"query": query, "mode": mode})
    assert response.status_code == 200, response.text
    asked = await client.post("/ask", json={"question": query})
    assert asked.status_code in {200, 422}


@each(
    "content, statuses",
    [
        (b'{"query": "\\ud800"}', (422,)),
        (b'{"query": "x", "\\ud800": 1}', (422,)),
        (b'{"query": "x", "filters": {"\\ud800": 1}}', (422,)),
        (b'{"query": "x", "filters": {"taxonomy_paths": [["\\ud800"]]}}', (422,)),
        (b'{"query": "x", "filters": {"taxonomy_paths": [["\\u0000"]]}}', (403,)),
        (b'{"query": "a", "query": "b"}', (400,)),
        (b'{"query": ', (400,)),
        (b"", (422, 400)),
        (b"null", (422,)),
        (b"[" * 100_000, (400,)),
        (b"[" * 100_000 + b"]" * 100_000, (400,)),
        (b'{"query": "x", "filters": {"content_types": ' + b"[" * 600 + b"]" * 600 + b"}}", (400,)),
        (b'{"a":' * 100_000, (400,)),
        (b'{"query": "x", "top_k": ' + b"9" * 5_000 + b"}", (400, 422)),
        ('{"query": "휴학"}'.encode("cp949"), (400,)),
        ('{"query": "x"}'.encode("utf-16"), (400,)),
        (b'\xef\xbb\xbf{"query": "x"}', (400,)),
        (b'{"query": "' + b"a" * 900_000 + b'"}', (422,)),
        (b'{"query": "' + b"a" * 1_100_000 + b'"}', (413,)),
        (b'{"query": "x", "' + b"k" * 100_000 + b'": 1}', (422,)),
    ],
)
async def test_hostile_bodies(client: httpx2.AsyncClient, content: bytes, statuses: tuple[int, ...]) -> None:
    response = await client.post("/search", content=content, headers={"content-type": "application/json"})
    assert_failure(response, *statuses)


@each("content_type", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=euc-kr", "", "x"])
async def test_only_json_in_utf_8_is_taken(client: httpx2.AsyncClient, content_type: str) -> None:
    headers = {"content-type": content_type} if content_type else {}
    response = await client.post("/search", content=b'{"query": "sloop"}', headers=headers)
    assert_failure(response, 415)


_TEXT = st.text(st.characters(), max_size=40)
_LEAF = st.none() | st.booleans() | st.integers() | st.floats() | _TEXT
_JSON = st.recursive(_LEAF, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4))
_FILTERS = st.dictionaries(
    st.sampled_from(["taxonomy_paths", "canonical_in", "content_types", "date_from", "date_to"]) | _TEXT,
    st.lists(st.lists(_TEXT, max_size=3), max_size=3) | _JSON,
    max_size=3,
)


def _body(field: str) -> st.SearchStrategy[Any]:
    known = st.fixed_dictionaries(
        {field: _TEXT | _JSON},
        optional={"top_k": st.integers(-2, 1100) | _JSON, "mode": st.sampled_from(["lexical", "strict"]) | _JSON}
        | {"filters": _FILTERS | _JSON},
    )
    return known | _JSON


@settings(max_examples=120)
@given(body=_body("query"))
async def test_no_search_body_is_an_internal_error(client: httpx2.AsyncClient, body: Any) -> None:
    await _never_500(client, "/search", body)


@settings(max_examples=80)
@given(body=_body("question"))
async def test_no_ask_body_is_an_internal_error(client: httpx2.AsyncClient, body: Any) -> None:
    await _never_500(client, "/ask", body)


async def _never_500(client: httpx2.AsyncClient, path: str, body: Any) -> None:
    headers = {"content-type": "application/json"}
    response = await client.post(path, content=json.dumps(body).encode(), headers=headers)
    if response.status_code != 200:
        assert_failure(response, 400, 403, 422)
