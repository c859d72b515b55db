"""What the service says in Korean: the texts of its statements, and what settings mean."""

from __future__ import annotations

import httpx2
import pytest

from tests.api.shape import assert_failure


async def test_the_texts_of_statements_in_korean(client: httpx2.AsyncClient) -> None:
    texts = (await client.get("/statements/ko")).json()
    assert texts["searched"] == "볼 수 있는 구절 {passages}개를 찾아보았습니다."
    assert_failure(await client.get("/statements/en"), 422)


@pytest.mark.parametrize(("header", "korean"), [("ko", True), ("ko-KR,ko;q=0.9,en", True), ("en", False), ("", False)])
async def test_what_settings_mean_in_the_language_of_the_caller(
    client: httpx2.AsyncClient, header: str, korean: bool
) -> None:
    shown = (await client.get("/settings", headers={"Accept-Language": header})).json()
    described = {row["name"]: row["description"] for row in (*shown["settings"], *shown["flags"])}
    assert described["port"] == (
        "`dtrag up`이 요청을 받는 포트입니다." if korean else "Port that `dtrag up` listens on."
    )
    assert ("사례" in described["cbr_enabled"]) == korean
