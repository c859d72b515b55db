"""Pages of other origins: those that the settings name may call, with explicit methods and headers; nobody else may."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.middleware.cors import HEADERS, METHODS
from dtrag.delivery.api.origins import origins_of
from dtrag.errors import InvalidInput
from dtrag.settings import Settings
from tests.api.shape import assert_failure

PAGE = "http://localhost:3000"


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
    read = await client.get("/documents", headers={"Origin": PAGE.upper().replace("HTTP", "http")})
    assert read.status_code == 200
    for response in (found, wrong, read):
        assert response.headers["access-control-allow-origin"].lower() == PAGE
        assert "X-Request-ID" in response.headers["access-control-expose-headers"]
        assert "origin" in response.headers["vary"].lower()


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
    assert_failure(preflight, 405)
    assert_failure(written, 403)
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
