"""Pages of other origins: those that the settings name may call, with explicit methods and headers; nobody else may.

The service of these tests has no key, so that every caller who is let in is the local administrator. The same in a real
browser, with and without keys: web/e2e/origins.test.ts.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import httpx2
import pytest

from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.authentication import OTHER_PAGE
from dtrag.delivery.api.origins import HEADERS, METHODS, origins_of
from dtrag.errors import InvalidInput
from dtrag.settings import Settings
from tests.api.shape import assert_failure
from tests.api.test_route_matrix import ROUTES, Address, send
from tests.cases import each

PAGE = "http://localhost:3000"
ASKING = {
    ("POST", "/search"),
    ("POST", "/search/batch"),
    ("POST", "/search/neural"),
    ("POST", "/ask"),
    ("POST", "/chat/run"),
    ("POST", "/chat/stream"),
    ("POST", "/agents/{agent_id}/search"),
    ("POST", "/agents/{agent_id}/ask"),
    ("POST", "/regulations/search"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/responses"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{model:path}"),
}


def marks(response: httpx2.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name.startswith("access-control")}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
@pytest.mark.parametrize("port", [3000, 3001, 8080])
async def test_a_preflight_of_a_named_origin(client: httpx2.AsyncClient, host: str, port: int) -> None:
    origin = f"http://{host}:{port}"
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, content-type",
    }
    response = await client.options("/chat/run", headers=asked)
    assert response.status_code == 204
    assert response.headers["access-control-allow-origin"] == origin
    assert response.headers["access-control-allow-methods"] == "GET, POST, PUT, DELETE, PATCH, OPTIONS"
    assert response.headers["access-control-allow-headers"] == ", ".join(HEADERS)
    assert {"Authorization", "Content-Type", "X-API-Key", "X-Request-ID"} <= set(HEADERS)
    assert "access-control-allow-credentials" not in response.headers
    assert response.headers["vary"] == "Origin"
    assert "*" not in "".join(marks(response).values())


async def test_answers_are_readable_by_named_origins(client: httpx2.AsyncClient) -> None:
    found = await client.post("/search", json={"query": "x"}, headers={"Origin": PAGE})
    assert found.status_code == 200
    wrong = await client.post("/search", json={"nothing": "x"}, headers={"Origin": PAGE})
    assert_failure(wrong, 422)
    read = await client.get("/v1/models", headers={"Origin": PAGE.upper().replace("HTTP", "http")})
    assert read.status_code == 200
    for response in (found, wrong, read):
        assert response.headers["access-control-allow-origin"].lower() == PAGE
        assert "X-Request-ID" in response.headers["access-control-expose-headers"]
        assert "origin" in response.headers["vary"].lower()
        assert response.headers["cross-origin-resource-policy"] == "cross-origin"


async def by_page(client: httpx2.AsyncClient, address: Address, headers: dict[str, str]) -> httpx2.Response:
    async with httpx2.AsyncClient(transport=client._transport, base_url=client.base_url, headers=headers) as page:
        return await send(page, address, str(uuid.uuid4()))


@each("address", ROUTES)
async def test_listed_pages_only_ask_and_search_while_there_is_no_key(
    client: httpx2.AsyncClient, address: Address
) -> None:
    listed = await by_page(client, address, {"Origin": PAGE})
    if address in ASKING:
        assert listed.status_code != 403, listed.text
    else:
        assert assert_failure(listed, 403)["type"] == "Forbidden"
        assert listed.headers["access-control-allow-origin"] == PAGE  # so that its author can read why


@each("address", ROUTES)
@each(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://localhost:30000"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_other_pages_may_do_nothing_while_there_is_no_key(
    client: httpx2.AsyncClient, address: Address, headers: dict[str, str]
) -> None:
    refused = await by_page(client, address, headers)
    assert_failure(refused, 403)
    assert marks(refused) == {}
    assert refused.headers["cross-origin-resource-policy"] == "same-origin"


async def test_own_pages_and_programs_may_do_everything(client: httpx2.AsyncClient) -> None:
    own = {"Origin": str(client.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    for headers in (own, {}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}):
        for path in ("/documents", "/keys", "/openapi.json"):
            answer = await client.get(path, headers=headers)
            assert answer.status_code == 200
            assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    refused = await client.get("/keys", headers={"Sec-Fetch-Site": "cross-site"})
    assert refused.json()["detail"].startswith(OTHER_PAGE[:60])


async def test_links_lead_to_the_page_and_other_sites_include_the_widget(client: httpx2.AsyncClient) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert (await client.get("/", headers=link)).status_code == 200
    script = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}
    assert (await client.get("/widget.js", headers=script)).status_code in {200, 404}  # 404 where it is not built


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://localhost:3000.evil.example",
        "http://localhost:30000",
        "https://localhost:3000",
        "http://evil@localhost:3000",
        "null",
        "http://localhost:3000/",
        "*",
        "",
    ],
)
async def test_other_origins_get_nothing(client: httpx2.AsyncClient, origin: str) -> None:
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-api-key"}
    preflight = await client.options("/chat/run", headers=asked)
    read = await client.get("/documents", headers={"Origin": origin})
    written = await client.post("/search", json={"query": "x"}, headers={"Origin": origin})
    for response in (preflight, read, written):
        assert_failure(response, 403)
    for response in (preflight, read, written):
        assert marks(response) == {}


async def test_a_foreign_host_stays_foreign(client: httpx2.AsyncClient) -> None:
    asked = {"Origin": PAGE, "Access-Control-Request-Method": "POST", "Host": "evil"}
    response = await client.options("/chat/run", headers=asked)
    assert_failure(response, 400)
    assert marks(response) == {}


async def test_requests_that_pages_may_not_send(client: httpx2.AsyncClient) -> None:
    method = {"Origin": PAGE, "Access-Control-Request-Method": "TRACE"}
    assert_failure(await client.options("/chat/run", headers=method), 400)
    header = {"Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "X-Evil"}
    assert_failure(await client.options("/chat/run", headers=header), 400)


@pytest.mark.parametrize(
    "given",
    [
        "*",
        "http://localhost:3000,*",
        "https://*.example.org",
        "localhost:3000",
        "ftp://example.org",
        "https://example.org/chat",
        "https://example.org/",
        "https://a@example.org",
        "https://example.org:99999999",
        "https://exa mple.org",
        "https://",
        "null",
    ],
)
def test_an_invalid_origin_is_refused_at_the_start(tmp_path: Path, given: str) -> None:
    with pytest.raises(InvalidInput, match="CORS_ALLOWED_ORIGINS"):
        create_app(Settings.load(environ={"CORS_ALLOWED_ORIGINS": given}, data_dir=tmp_path))


def test_spellings_of_origins() -> None:
    assert origins_of(" https://Chat.example.org , http://[::1]:3000,") == {
        "https://chat.example.org",
        "http://[::1]:3000",
    }
    assert origins_of("none") == origins_of("") == frozenset()
    assert "*" not in METHODS + HEADERS


def test_both_names_of_the_setting() -> None:
    own, other = {"DTRAG_CORS_ALLOWED_ORIGINS": "https://a.example"}, {"CORS_ALLOWED_ORIGINS": "https://b.example"}
    assert Settings.load(environ=own | other).cors_allowed_origins == "https://a.example"
    assert Settings.load(environ=other).cors_allowed_origins == "https://b.example"
    assert Settings.load(environ={}).cors_allowed_origins.count("http://") == 6
