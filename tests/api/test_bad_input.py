"""Bad values in every field of every route that takes some: refused in a sentence or harmless, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest_asyncio

from dtrag.delivery.api.dependencies import Service
from tests.api.shape import FORM, assert_failure, file_form, form
from tests.api.standing import assert_standing, rows
from tests.cases import each

JSON = {"content-type": "application/json"}
INJECTIONS = [
    "'; DROP TABLE chunks; --",
    '"; drop table chunks; --',
    "$$; drop table chunks; $$",
    "chunks'); delete from documents; --",
    "%s %(query)s {} \\",
]
ODD_TEXTS = [
    "",
    " \t\n",
    "🦜👩‍👩‍👧",
    "a & b | !c <-> d:*",
    "sloop:* & (",
    "\x00sloop\x00",
    "\ufeff\u200b\u202e",
    "\ud800",
    "ß İ \u212a ﬃ",
    *INJECTIONS,
]
TEXT_FIELDS = ["query", "taxonomy_paths", "content_types", "date_from", "metadata key", "metadata value", "document"]


@pytest_asyncio.fixture(scope="module", autouse=True)
async def nothing_is_lost(client: httpx2.AsyncClient, service_of_all: Service) -> AsyncIterator[None]:
    """A document is in before, and each table has its rows after."""
    body = file_form(b"standing.txt", b"The standing orders of the harbour.")
    assert (await client.post("/documents", content=body, headers=FORM)).status_code == 201
    before = await rows(service_of_all)
    assert before["documents"] and before["chunks"]
    yield
    await assert_standing(client)
    after = await rows(service_of_all)
    kept = ["documents", "chunks", "sources", "index_settings"]
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert set(after) == set(before)


def _search(field: str, text: str) -> dict[str, Any]:
    """A search with the text in one of its fields."""
    searches: dict[str, dict[str, Any]] = {
        "query": {"query": text},
        "taxonomy_paths": {"query": "orders", "filters": {"taxonomy_paths": [[text]]}},
        "content_types": {"query": "orders", "filters": {"content_types": [text]}},
        "date_from": {"query": "orders", "filters": {"date_from": text}},
        "metadata key": {"query": "orders", "filters": {"metadata": {text: 1}}},
        "metadata value": {"query": "orders", "filters": {"metadata": {"language": text}}},
        "document": {"query": "orders", "explain": True, "explain_documents": [text]},
    }
    return searches[field]


@each("mode", ["hybrid", "strict"])
@each("text", ODD_TEXTS)
@each("field", TEXT_FIELDS)
async def test_unusual_texts_in_a_search(client: httpx2.AsyncClient, field: str, text: str, mode: str) -> None:
    response = await _post(client, "/search", {**_search(field, text), "mode": mode})
    if response.status_code != 200:
        assert_failure(response, 422, *([] if field in {"query", "document"} else [403]))


@each("text", ODD_TEXTS)
async def test_unusual_texts_in_a_question(client: httpx2.AsyncClient, text: str) -> None:
    response = await _post(client, "/ask", {"question": text, "filters": {"taxonomy_paths": [["x"]]}})
    if response.status_code != 200:
        assert_failure(response, 422)
    else:
        assert response.json()["decision"] == "abstain"


@each("text", ODD_TEXTS)
async def test_unusual_texts_as_a_document_id(client: httpx2.AsyncClient, text: str) -> None:
    name = httpx2.QueryParams({"x": text.encode("utf-8", "replace").decode()}).__str__().removeprefix("x=") or "%00"
    for method in ("GET", "DELETE"):
        assert_failure(await client.request(method, f"/documents/{name.replace('+', '%20')}"), 404)


@each("text", [text for text in ODD_TEXTS if text.strip() and text != "\ud800"])
async def test_unusual_texts_as_a_category(client: httpx2.AsyncClient, text: str) -> None:
    broken = ("files", b"broken.pdf", b"no PDF at all")
    response = await client.post("/documents", content=form(broken, ("category", None, text.encode())), headers=FORM)
    assert_failure(response, 422)


WHOLE = ["0", "-1", "1000000000", '"10"', "NaN", "Infinity", "-Infinity", "1.5", "1e400", "true", "null", "[1]", "{}"]


@each("raw", WHOLE)
@each("field", ["top_k", "bm25_candidates", "vector_candidates"])
async def test_invalid_numbers(client: httpx2.AsyncClient, field: str, raw: str) -> None:
    for path, body in (
        ("/search", f'{{"query": "orders", "{field}": {raw}}}'),
        ("/search/batch", f'{{"searches": [{{"query": "orders", "{field}": {raw}}}]}}'),
    ):
        response = await client.post(path, content=body, headers=JSON)
        if (field, raw) == ("top_k", "null"):
            assert response.status_code == 200, "as without it"
        elif path == "/search" or response.status_code != 200:
            assert_failure(response, 422)
        else:
            assert response.json()["answers"][0]["status"] == 422


@each("raw", ["-0.1", "1.1", "NaN", '"0.5"', "true", "null", "[]"])
async def test_invalid_min_scores(client: httpx2.AsyncClient, raw: str) -> None:
    response = await client.post("/search", content=f'{{"query": "orders", "min_score": {raw}}}', headers=JSON)
    assert_failure(response, 422)


TEXTS_NO_DATE = ["", "soon", "2025-02-30", "2025-13-01", "0000-00-00", "99999-01-01", "2025-01-01T25:00", "1" * 10_000]
OUT_OF_RANGE = ["0001-01-01T00:00+23:59", "9999-12-31T23:59-23:59"]


@each("value", [*TEXTS_NO_DATE, *OUT_OF_RANGE, 20250101, 1.5, True, [], {}])
@each("field", ["date_from", "date_to"])
async def test_invalid_dates(client: httpx2.AsyncClient, field: str, value: Any) -> None:
    assert (
        field
        in assert_failure(await _post(client, "/search", {"query": "x", "filters": {field: value}}), 422)["detail"]
    )


@each(
    "path, body",
    [
        ("/search", {"query": "x", "size": 3}),
        ("/search", {"query": "x", "limit": 0}),
        ("/search", {"query": "x", "highlights": 1}),
        ("/search", {"query": "x", "explain": "true"}),
        ("/search", {"query": "x", "explain_documents": "all"}),
        ("/search", {"query": "x", "explain_documents": ["x"] * 21}),
        ("/search", {"query": "x", "explain_documents": ["x" * 201]}),
        ("/search", {"query": "x", "mode": "magic"}),
        ("/search", {"query": "x", "filters": {"taxonomy_paths": [["a"]] * 101}}),
        ("/search", {"query": "x", "filters": {"taxonomy_paths": [["a" * 10_000]]}}),
        ("/search", {"query": "x", "filters": {"content_types": [["text/plain"]]}}),
        ("/search", {"query": "x", "filters": {"metadata": ["language"]}}),
        ("/search", {"query": "x", "filters": {"metadata": {"language": {"not": "ko"}}}}),
        ("/search", {"query": "x" * 10_001}),
        ("/search/batch", {}),
        ("/search/batch", {"searches": []}),
        ("/search/batch", {"searches": [{"query": "x"}] * 51}),
        ("/search/batch", {"searches": {"query": "x"}}),
        ("/search/batch", {"searches": [], "at_once": 9}),
        ("/search/batch", [{"query": "x"}]),
        ("/ask", {"question": ["x"]}),
        ("/ask", {"question": "x" * 10_001}),
        ("/ask", {"question": "x", "filters": "all"}),
    ],
)
async def test_bodies_of_another_shape(client: httpx2.AsyncClient, path: str, body: Any) -> None:
    assert_failure(await _post(client, path, body), 422)


@each(
    "content, statuses",
    [
        (b"", (400, 422)),
        (b"null", (422,)),
        (b"{", (400,)),
        (b'{"query": "a", "query": "b"}', (400,)),
        (b'{"searches": [{"query": "a", "query": "b"}]}', (400,)),
        (b'{"question": "a", "filters": {"date_to": "x", "date_to": "y"}}', (400,)),
        (b"[" * 100_000, (400,)),
        (b'{"searches": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", (400,)),
        (b'{"filters":' * 100_000 + b"1" + b"}" * 100_000, (400, 413)),
        (b'{"searches": [' + b"1," * 400_000 + b"1]}", (422,)),
        (b'{"query": "' + b"a" * 900_000 + b'"}', (422,)),
        (b'{"query": "' + b"a" * (1 << 20) + b'"}', (413,)),
        (b'{"query": "\xff\xfe"}', (400,)),
        (b'{"query": "x", "top_k": ' + b"9" * 5_000 + b"}", (400, 422)),
    ],
)
@each("path", ["/search", "/search/batch", "/ask"])
async def test_bodies_that_are_hard_to_read(
    client: httpx2.AsyncClient, path: str, content: bytes, statuses: tuple[int, ...]
) -> None:
    assert_failure(await client.post(path, content=content, headers=JSON), *statuses, 422)


@each("path", ["/search", "/search/batch", "/ask", "/documents"])
@each("given", ["text/plain", "application/xml", "multipart/mixed", "application/json; charset=cp949"])
async def test_wrong_content_types(client: httpx2.AsyncClient, path: str, given: str) -> None:
    assert_failure(await client.post(path, content=b'{"query": "x"}', headers={"content-type": given}), 415)


async def _post(client: httpx2.AsyncClient, path: str, body: Any) -> httpx2.Response:
    """JSON in ASCII, so that a lone surrogate can be sent as an escape."""
    return await client.post(path, content=json.dumps(body).encode("ascii"), headers=JSON)
