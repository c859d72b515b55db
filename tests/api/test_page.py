"""`GET /` serves the built page under a strict policy, to everybody, and nothing else of the machine."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from fastapi import FastAPI
from httpx2 import AsyncClient

from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.built_page import BuiltPage, built_page
from dtrag.delivery.api.routes.page import POLICY
from dtrag.settings import Settings
from tests.api.shape import assert_failure
from tests.api.test_keys import client_of
from tests.cases import each

SCRIPT = "console.log('dtrag');\n" * 100


@pytest.fixture
def page(tmp_path: Path) -> BuiltPage:
    assets = tmp_path / "page/assets"
    assets.mkdir(parents=True)
    (tmp_path / "secret.js").write_text("secret", "utf-8")
    (tmp_path / "page/index.html").write_text("<!doctype html><title>dtrag</title>", "utf-8")
    (tmp_path / "page/widget.js").write_text("widget", "utf-8")
    (assets / "main-1a2b3c4d.js").write_text(SCRIPT, "utf-8")
    (assets / "main-1a2b3c4d.js.map").write_text("{}", "utf-8")
    (assets / "main-1a2b3c4d.css").write_text("body{}", "utf-8")
    built = built_page(tmp_path / "page")
    assert built is not None
    return built


@pytest_asyncio.fixture
async def api(settings: Settings, page: BuiltPage) -> AsyncIterator[FastAPI]:
    created = create_app(settings)
    created.state.service.page = page
    async with created.router.lifespan_context(created):
        await created.state.service.app.keys.create("first")  # the page needs no key even when there is one
        yield created


@pytest_asyncio.fixture
async def client(api: FastAPI) -> AsyncIterator[AsyncClient]:
    async with client_of(api) as opened:
        yield opened


async def test_the_page_has_a_strict_policy(client: AsyncClient) -> None:
    index = await client.get("/")
    assert (index.status_code, index.text) == (200, "<!doctype html><title>dtrag</title>")
    assert index.headers["content-type"] == "text/html; charset=utf-8"
    assert index.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert "*" not in POLICY
    assert index.headers["x-content-type-options"] == "nosniff"
    assert index.headers["referrer-policy"] == "no-referrer"
    assert index.headers["cross-origin-opener-policy"] == "same-origin"
    assert index.headers["cache-control"] == "no-cache"
    assert "set-cookie" not in index.headers


async def test_the_page_has_the_name_and_colour_of_the_settings(settings: Settings, page: BuiltPage) -> None:
    created = create_app(replace(settings, page_name="학칙 </title><script>", page_colour="#7A1f3d"))
    created.state.service.page = page
    async with created.router.lifespan_context(created), client_of(created) as client:
        index = await client.get("/")
    title, theme = "<title>학칙 &lt;/title&gt;&lt;script&gt;</title>", '<meta name="theme-color" content="#7A1f3d" />'
    assert index.text == f"<!doctype html>{title}{theme}"


async def test_assets_are_kept_by_the_browser(client: AsyncClient) -> None:
    script = await client.get("/assets/main-1a2b3c4d.js", headers={"accept-encoding": "br, gzip;q=0.8"})
    assert (script.status_code, script.text) == (200, SCRIPT)
    assert script.headers["content-encoding"] == "gzip"
    assert int(script.headers["content-length"]) < len(SCRIPT) / 5
    assert "immutable" in script.headers["cache-control"]
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    plain = await client.get("/assets/main-1a2b3c4d.js", headers={"accept-encoding": "gzip;q=0"})
    assert "content-encoding" not in plain.headers
    assert plain.content == SCRIPT.encode()
    style = await client.get("/assets/main-1a2b3c4d.css")
    assert (style.headers["content-type"], style.text) == ("text/css; charset=utf-8", "body{}")


async def test_the_widget_is_for_other_sites(client: AsyncClient) -> None:
    widget = await client.get("/widget.js")
    assert (widget.status_code, widget.text) == (200, "widget")
    assert widget.headers["cross-origin-resource-policy"] == "cross-origin"


@each(
    "path",
    [
        "/assets/../secret.js",
        "/assets/..%2f..%2fsecret.js",
        "/assets/%2e%2e%2fsecret.js",
        "/assets/main-1a2b3c4d.js.map",
        "/assets/",
        "/assets/none.js",
        "/assets/assets/main-1a2b3c4d.js",
        "/assets//etc/passwd",
    ],
)
async def test_nothing_else_is_served(client: AsyncClient, path: str) -> None:
    response = await client.get(path)
    assert "secret" not in response.text
    assert_failure(response, 401, 404, 405)


async def test_page_files_are_not_in_the_audit_log(api: FastAPI, client: AsyncClient) -> None:
    audit = api.state.service.app.audit
    before = await audit.newest(limit=1)
    for path in ("/", "/assets/main-1a2b3c4d.js", "/assets/none.js", "/widget.js"):
        await client.get(path)
    assert [row.number for row in await audit.newest(limit=1)] == [row.number for row in before]


def test_a_folder_without_a_page_has_none(tmp_path: Path) -> None:
    assert built_page(tmp_path) is None


def test_compressed_files_are_the_same_at_every_start(page: BuiltPage) -> None:
    assert gzip.decompress(page.assets["main-1a2b3c4d.js"].gzipped).decode() == SCRIPT
    assert page.assets["main-1a2b3c4d.css"].gzipped == b""
