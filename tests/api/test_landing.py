"""Where the web page is not built, `GET /` leads a browser to the API's page, in its language."""

from __future__ import annotations

import pytest
from httpx2 import AsyncClient

from dtrag.delivery.api.dependencies import Service
from dtrag.delivery.api.routes.page import preferred


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("ko", "ko"),
        ("ko-KR,ko;q=0.9,en-US;q=0.8,en;q=0.7", "ko"),
        ("en-US,en;q=0.9,ko;q=0.8", "en"),
        ("en;q=0.1, ko;q=0.2", "ko"),
        ("fr, ko;q=0.1", "ko"),
        ("ko;q=x", "en"),
        ("*", "en"),
    ],
)
def test_the_preferred_language(header: str, language: str) -> None:
    assert preferred(header) == language


async def test_without_a_built_page_there_are_links_to_the_api(
    client: AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "page", None)
    english = await client.get("/")
    assert (english.status_code, english.headers["content-language"]) == (200, "en")
    assert english.headers["content-type"].startswith("text/html")
    assert "href=/docs" in english.text
    assert "make web" in english.text
    korean = await client.get("/", headers={"Accept-Language": "ko-KR,ko;q=0.9"})
    assert "lang=ko" in korean.text
    assert "실행 중" in korean.text
    assert korean.headers["vary"] == "Accept-Language"
