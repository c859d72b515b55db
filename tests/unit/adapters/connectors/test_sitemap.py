"""Sites: which pages are taken, how often the server is asked, and what is never followed."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from dtrag.adapters.connectors import sitemap
from dtrag.adapters.connectors.sitemap import Robots
from dtrag.errors import EgressBlocked, InvalidInput, SourceUnavailable
from tests.sources import Page, Site, site_server

OLD = "2020-05-01"
HTML = b"<html><body><p>Text</p></body></html>"
TEXT = "text/plain"


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    async with site_server() as running:
        yield running


async def paths(site: Site, tmp_path: Path, **options: Any) -> list[str]:
    return [item.path for item in await site.connector(tmp_path, **options).items()]


async def test_an_unchanged_site_costs_two_requests(site: Site, tmp_path: Path) -> None:
    site.pages = {
        "/": Page(HTML, stated=OLD),
        "/about": Page(HTML, stated=OLD),
        "/rules/leave.pdf": Page(b"%PDF-", "application/pdf", OLD),
        "/view.do?id=3&back=/x/": Page(HTML, stated=OLD),
        "/notice/": Page(HTML, stated=OLD),
        "/form.do": Page(b"x", "application/x-hwp", OLD),
        "/logo": Page(b"x", "image/webp", OLD),
    }
    expected = ["index.html", "about.html", "form.do.hwp", "logo", "notice/index.html", "rules/leave.pdf"]
    expected.append("view.do?id=3&back=%2Fx%2F.html")
    assert await paths(site, tmp_path) == expected
    first = site.requests
    assert first[:2] == ["GET /robots.txt", "GET /sitemap.xml"]
    assert all(each.startswith("HEAD ") for each in first[2:]) and "HEAD /rules/leave.pdf" not in first
    assert await paths(site, tmp_path) == expected
    assert site.requests[len(first) :] == ["GET /robots.txt", "GET /sitemap.xml"]


async def test_a_date_that_another_change_may_have_is_not_trusted(site: Site, tmp_path: Path) -> None:
    now = datetime(2026, 3, 2, 12, tzinfo=UTC)
    site.pages = {"/a.html": Page(b"one", stated="2026-03-01", etag=True)}
    site.pages["/b.html"] = Page(b"one", stated="2026-02-20T10:00:00+09:00")
    site.pages["/c.html"] = Page(b"one", stated="soon")
    before = await site.connector(tmp_path, now=lambda: now).items()
    site.pages["/a.html"].body = b"two"
    after = await site.connector(tmp_path, now=lambda: now).items()
    assert after[0].mark != before[0].mark
    assert after[1].mark == before[1].mark != ""
    assert after[2].mark == before[2].mark == ""
    assert [each for each in site.requests if "b.html" in each] == []


async def test_robots_txt_decides_also_for_redirects(site: Site, tmp_path: Path) -> None:
    site.files["/robots.txt"] = Page(b"User-agent: *\nDisallow: /private\nAllow: /private/open\n", TEXT)
    site.files["/private/secret.html"] = Page(HTML)
    site.pages = {
        "/a": Page(HTML),
        "/moved": Page(b"", status=302, location="/a"),
        "/led": Page(b"", status=302, location="/private/secret.html"),
        "/private/x.html": Page(HTML, stated=OLD),
        "/private/open.html": Page(HTML, stated=OLD),
        "/public/../private/y.html": Page(HTML, stated=OLD),
        "/public/%2e%2e/private/z.html": Page(HTML, stated=OLD),
    }
    connector = site.connector(tmp_path)
    assert [item.path for item in await connector.items()] == ["a.html", "moved.html", "private/open.html"]
    assert connector.left_out == {"robots.txt": 2, "other host": 1, sitemap._answered(None): 1}
    assert not any("secret" in each or "y.html" in each for each in site.requests)


@pytest.mark.parametrize(
    ("reply", "readable"),
    [(Page(b"", status=404), True), (Page(b"", status=500), False), (Page(b"", status=429), False)],
)
async def test_without_robots_txt(site: Site, tmp_path: Path, reply: Page, readable: bool) -> None:
    site.files["/robots.txt"] = reply
    site.pages = {"/a.html": Page(HTML, stated=OLD)}
    if readable:
        assert await paths(site, tmp_path) == ["a.html"]
        return
    with pytest.raises(SourceUnavailable, match="robots"):
        await site.connector(tmp_path).items()
    assert site.requests == ["GET /robots.txt"]


@pytest.mark.parametrize(
    ("text", "path", "permitted"),
    [
        ("User-agent: *\nDisallow:", "/x", True),
        ("User-agent: *\nDisallow: /", "/x", False),
        ("User-agent: *\nAllow: /\nDisallow: /x", "/x/y", False),
        ("User-agent: *\nDisallow: /x\nAllow: /x", "/x", True),
        ("User-agent: *\nDisallow: /\n\nUser-agent: DTRAG\nDisallow: /x", "/y", True),
        ("User-agent: dtrag\nUser-agent: other\nDisallow: /x # no\n", "/x", False),
        ("User-agent: dtrag\nDisallow: /x\nUser-agent: dtrag\nDisallow: /y\n", "/x", False),
        ("User-agent: other\nDisallow: /", "/x", True),
        ("Disallow: /", "/x", True),
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf?x", True),
        ("User-agent: *\nDisallow: /a*b*c", "/a-b-c-d", False),
        ("User-agent: *\nDisallow: /a*ab$", "/ab", True),
        ("User-agent: *\nDisallow: /*?", "/list.do?page=2", False),
        ("User-agent: *\nDisallow: /학칙", "/%ED%95%99%EC%B9%99/1", False),
        ("\ufeffuser-agent : *\r\nDISALLOW : /x", "/x", False),
        ("User-agent: *\nSitemap: /s\nDisallow: /x", "/x", False),
    ],
)
def test_rules_of_robots_txt(text: str, path: str, permitted: bool) -> None:
    assert Robots.parse(text).permit(path) is permitted


async def test_requests_are_a_second_apart_or_what_robots_txt_demands(site: Site, tmp_path: Path) -> None:
    time, pauses = 0.0, list[float]()

    async def sleep(seconds: float) -> None:
        nonlocal time
        pauses.append(seconds)
        time += seconds

    site.pages = {"/a": Page(HTML), "/b": Page(HTML)}
    await paths(site, tmp_path, sleep=sleep, clock=lambda: time)
    assert pauses == [0.0, 1.0, 1.0, 1.0]
    site.files["/robots.txt"] = Page(b"User-agent: *\nCrawl-delay: 2.5", TEXT)
    pauses.clear()
    await paths(site, tmp_path, sleep=sleep, clock=lambda: time)
    assert pauses == [0.0, 1.0, 2.5, 2.5]
    site.files["/robots.txt"] = Page(b"User-agent: *\nCrawl-delay: 3600", TEXT)
    with pytest.raises(SourceUnavailable, match="3600 s"):
        await site.connector(tmp_path, sleep=sleep).items()


async def test_other_hosts_are_left_out_and_not_asked(site: Site, tmp_path: Path) -> None:
    async with site_server() as other:
        site.pages = {"/a": Page(HTML), "/away": Page(b"", status=301, location=f"{other.server.address}/x")}
        site.extra = [f"{other.server.address}/y", "ftp://127.0.0.1/z", "https://127.0.0.1/z", "http://[::1]/"]
        site.extra += [f"{site.server.address}/a#part", f"http://kim@127.0.0.1:{site.server.port}/a"]
        connector = site.connector(tmp_path)
        connector._allowed |= other.server.allowed
        (item,) = await connector.items()
        assert item.uri == f"{site.server.address}/a"
        assert connector.left_out["other host"] == 5
        assert other.server.connections == 0


async def test_an_index_and_packed_sitemaps(site: Site, tmp_path: Path) -> None:
    def page(path: str) -> str:
        return f"<url><loc>{site.server.address}{path}</loc><lastmod>{OLD}</lastmod></url>"

    def part(path: str) -> str:
        return f"<sitemap><loc> {site.server.address}{path}\n</loc></sitemap>"

    site.files["/sitemap.xml"] = Page(
        f"<sitemapindex>{part('/1.xml.gz')}{part('/2.xml')}{part('/sitemap.xml')}</sitemapindex>".encode()
    )
    site.files["/1.xml.gz"] = Page(gzip.compress(f"<urlset>{page('/a.html')}</urlset>".encode()), "application/gzip")
    site.files["/2.xml"] = Page(f"<urlset>{page('/b.html')}{page('/a.html')}</urlset>".encode(), "text/xml")
    assert await paths(site, tmp_path) == ["a.html", "b.html"]
    site.files["/2.xml"].body = b'\r\n<?xml version="1.0"?>' + site.files["/2.xml"].body
    (tmp_path / "a file").write_bytes(b"")
    assert await paths(site, tmp_path / "a file") == ["a.html", "b.html"]  # nothing can be stored there
    site.files["/2.xml"].status = 404
    with pytest.raises(SourceUnavailable, match=r"2\.xml answered 404"):
        await site.connector(tmp_path).items()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html/>",
        b"<urlset>",
        b"<urlset/>",
        b"<urlset><url><loc>https://other.example/</loc></url></urlset>",
        b'<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>&x;</loc></url></urlset>',
        gzip.compress(b"<urlset/>" + b" " * (3 << 20), mtime=0),
        gzip.compress(b"<urlset/>", mtime=0)[:-9],
        b"\x1f\x8bnothing",
    ],
)
async def test_what_is_not_a_sitemap_with_pages_is_an_error(
    site: Site, tmp_path: Path, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sitemap, "SITEMAP_BYTES", 1 << 20)
    site.files["/sitemap.xml"] = Page(body, "application/xml")
    with pytest.raises(SourceUnavailable):
        await site.connector(tmp_path).items()


async def test_pages_that_are_gone_forbidden_too_large_or_cannot_be_had(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sitemap, "PAGE_BYTES", 1_000)
    site.pages = {"/gone": Page(b"", status=410), "/closed": Page(b"", status=403), "/a": Page(b"x" * 1_001)}
    connector = site.connector(tmp_path)
    (item,) = await connector.items()
    with pytest.raises(SourceUnavailable, match="longer than"):
        await connector.fetch(item, tmp_path / "out.html")
    site.pages["/a"].body = b"x"
    monkeypatch.setattr(sitemap, "TOTAL_BYTES", 1)
    await connector.fetch(item, tmp_path / "out.html")
    with pytest.raises(SourceUnavailable, match="GiB"):
        await connector.fetch(item, tmp_path / "out.html")
    site.pages["/b"] = Page(b"", status=500)
    with pytest.raises(SourceUnavailable, match="/b answered 500"):
        await connector.items()


async def test_more_pages_than_the_limit_are_an_error_and_not_cut(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.pages = {f"/{number}.html": Page(HTML, stated=OLD) for number in range(3)}
    monkeypatch.setattr(sitemap, "MAX_PAGES", 3)
    assert len(await paths(site, tmp_path)) == 3
    monkeypatch.setattr(sitemap, "MAX_PAGES", 2)
    with pytest.raises(SourceUnavailable, match="more than 2 pages"):
        await site.connector(tmp_path).items()


async def test_a_listing_that_broke_off_continues_where_it_was(site: Site, tmp_path: Path) -> None:
    site.pages = {f"/{name}": Page(HTML, stated=OLD) for name in "abc"}
    site.pages["/c"].status = 500
    with pytest.raises(SourceUnavailable):
        await site.connector(tmp_path).items()
    site.pages["/c"].status = 200
    asked = len(site.requests)
    assert await paths(site, tmp_path) == ["a.html", "b.html", "c.html"]
    assert [each for each in site.requests[asked:] if "HEAD" in each] == ["HEAD /c"]
    for damaged in (b"", b"[]", b'{"x": 1}'):
        connector = site.connector(tmp_path)
        assert connector._types.exists()
        connector._types.write_bytes(damaged)
        assert await paths(site, tmp_path) == ["a.html", "b.html", "c.html"]


@pytest.mark.parametrize("address", ["sitemap+ftp://host/s.xml", "sitemap+http://10.0.0.1/s.xml", "sitemap+http://"])
def test_addresses_that_are_refused(address: str, tmp_path: Path) -> None:
    from dtrag.adapters.connectors.factory import connector

    with pytest.raises(EgressBlocked):
        connector(address, cache=tmp_path, allowed=frozenset())
    with pytest.raises(InvalidInput, match="git\\+https://"):
        connector("http://host/s.xml", cache=tmp_path, allowed=frozenset())
