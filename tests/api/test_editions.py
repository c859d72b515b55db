"""`as_of` over HTTP: uploads of the same name keep the older edition, and every route that reads sees one day."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
import pytest_asyncio

from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.delivery.api.app import create_app
from dtrag.regulations import whole_text
from tests.api.confined import House
from tests.api.shape import assert_failure
from tests.integration.test_editions import regulation
from tests.store import Databases

QUESTION = "차량관리규정 제2조의 배차는 하루에 몇 번까지 하나요?"
DAY = "2023-12-31"
PROVISION = quote("차량관리규정 제2조")


@pytest_asyncio.fixture(scope="module")
async def built(databases_of_module: Databases) -> AsyncIterator[House]:
    api = create_app(databases_of_module.settings())
    async with api.router.lifespan_context(api), AsyncExitStack() as exits:
        running = House(api, exits)
        await running.app._writer.ensure_paths([CategoryPath.parse("Rules")])
        editor = await running.client("editor", ["Rules"], "editor")
        for day, count in (("2020. 3. 1.", "서른"), ("2024. 3. 1.", "마흔")):
            text = regulation(day, f"배차는 하루에 {count} 번까지 한다.")
            sent = await editor.post(
                "/documents", files={"files": ("rule.md", text.encode())}, data={"category": "Rules"}
            )
            assert sent.status_code == 201 and sent.json()["counts"]["removed"] == 0
        undated = regulation("공포한 날", "주차는 하루만 한다.", name="주차관리규정")
        form = {"category": "Rules", "effective": "2022-01-01"}
        sent = await editor.post("/documents", files={"files": ("parking.md", undated.encode())}, data=form)
        assert sent.status_code == 201
        yield running


async def client_of(built: House) -> httpx2.AsyncClient:
    return built.clients["editor"]


async def test_every_route_answers_from_the_day(built: House) -> None:
    client = await client_of(built)
    agent = {"version": "1.0.0", "node_paths": [["Rules"]], "name": "Rules"}
    created = await client.post("/agents/from-category", json=agent)
    assert created.status_code == 200, created.text
    agent_id = created.json()["agent_id"]
    messages = [{"role": "user", "content": QUESTION}]
    for path, body in (
        ("/search", {"query": QUESTION, "as_of": DAY}),
        ("/ask", {"question": QUESTION, "as_of": DAY}),
        ("/chat/run", {"message": QUESTION, "context": {"as_of": DAY}}),
        ("/chat/run", {"message": QUESTION, "agent_id": agent_id, "context": {"as_of": DAY}}),
        ("/chat/stream", {"message": QUESTION, "context": {"as_of": DAY}}),
        ("/v1/chat/completions", {"model": "dtrag", "messages": messages, "as_of": DAY}),
        ("/v1/responses", {"model": "dtrag", "input": messages, "as_of": DAY}),
        ("/regulations/search", {"query": QUESTION, "as_of": DAY}),
        (f"/agents/{agent_id}/search", {"query": QUESTION, "as_of": DAY}),
        (f"/agents/{agent_id}/ask", {"question": QUESTION, "as_of": DAY}),
    ):
        response = await client.post(path, json=body)
        assert response.status_code == 200, (path, response.text)
        assert "서른" in response.text and "마흔" not in response.text, path
        now = json.loads(json.dumps(body).replace(f'"{DAY}"', "null"))
        response = await client.post(path, json=now)
        assert "마흔" in response.text and "서른" not in response.text, path
    for path in ("/regulations/show?reference=" + PROVISION, "/regulations/citations?to=" + PROVISION):
        assert (await client.get(f"{path}&as_of={DAY}")).status_code == 200
    shown = (await client.get(f"/regulations/show?reference={PROVISION}&as_of={DAY}")).json()
    assert "서른" in shown["text"] and shown["editions"] == ["2020-03-01", "2024-03-01"]
    assert (shown["effective_from"], shown["superseded_from"]) == ("2020-03-01", "2024-03-01")
    cited = (await client.get(f"/regulations/citations?to={PROVISION}")).json()
    assert [citation["source"] for citation in cited["citations"]] == ["차량관리규정 제3조"]


async def test_a_bad_day_gets_a_sentence(built: House) -> None:
    client = await client_of(built)
    for path, body in (
        ("/search", {"query": "x", "as_of": "yesterday"}),
        ("/ask", {"question": "x", "as_of": "2024-02-30"}),
        ("/chat/run", {"message": "x", "context": {"as_of": "2024"}}),
    ):
        assert_failure(await client.post(path, json=body), 422)
    assert_failure(await client.get("/regulations?as_of=2024"), 422)
    assert_failure(await client.get(f"/regulations/diff?regulation={PROVISION}&before=2020&after=2021-01-01"), 422)


async def test_a_list_has_the_editions_of_the_day(built: House) -> None:
    client = await client_of(built)
    for day, total in (("2019-01-01", 0), ("2021-01-01", 1), ("2022-01-01", 2)):
        assert (await client.get(f"/regulations?as_of={day}")).json()["total"] == total
    assert (await client.get("/documents")).json()["total"]["documents"] == 2
    for query, total in (("name=차량 관리&order=code", 1), ("name=휴학", 0)):
        assert (await client.get(f"/regulations?{query}")).json()["total"] == total
    assert_failure(await client.get("/regulations?order=date"), 422)


async def test_changes_and_stale_citations(built: House) -> None:
    client = await client_of(built)
    name = quote("차량관리규정")
    compared = (await client.get(f"/regulations/diff?regulation={name}&before={DAY}&after=2024-03-01")).json()
    first = compared["changes"][0]
    assert (first["label"], first["change"]) == ("제2조", "amended")
    assert [first["before"][start:end] for start, end in first["before_spans"]] == ["서른"]
    assert (await client.get("/regulations/diff?regulation=x&before=2020-01-01&after=2021-01-01")).status_code == 404
    page = (await client.get("/regulations/stale?limit=1")).json()
    assert page["total"] == 1 and page["stale"][0]["target"] == "차량관리규정 제2조"


async def test_an_outline_has_the_chapters_and_the_editions(built: House) -> None:
    client = await client_of(built)
    text = (
        "# 안전규정\n\n## 제1장 총칙\n\n### 제1조(목적)\n\n이 규정은 안전을 정한다.\n\n### 제2조 삭제 <2020. 1. 1.>\n\n"
        "## 제2장 점검\n\n### 제1절 정기점검\n\n#### 제3조(주기)\n\n매주 점검한다.\n\n"
        "## 부칙\n\n이 규정은 공포한 날부터 시행한다.\n"
    )
    sent = await client.post("/documents", files={"files": ("safety.md", text.encode())}, data={"category": "Rules"})
    assert sent.status_code == 201
    outline = (await client.get(f"/regulations/outline?regulation={quote('안전규정')}")).json()
    assert [(row["label"], row["title"], row["headings"], row["deleted"]) for row in outline["provisions"]] == [
        ("제1조", "목적", ["제1장 총칙"], False),
        ("제2조", "", ["제1장 총칙"], True),
        ("제3조", "주기", ["제2장 점검", "제1절 정기점검"], False),
        ("부칙", "", [], False),
    ]
    stored = (await client.get(f"/documents/{outline['document_id']}")).json()["text"]
    third = outline["provisions"][2]
    assert "매주 점검한다." in stored[third["start"] : third["end"]]
    dated = f"/regulations/outline?regulation={quote('차량관리규정')}"
    for day, edition in (("2021-01-01", 0), ("2025-01-01", 1)):
        shown = (await client.get(f"{dated}&as_of={day}")).json()
        days = [(row["effective_from"], row["superseded_from"]) for row in shown["editions"]]
        assert days == [("2020-03-01", "2024-03-01"), ("2024-03-01", None)]
        assert shown["document_id"] == shown["editions"][edition]["document_id"]
    assert_failure(await client.get(f"/regulations/outline?regulation={quote('없는규정')}"), 404)


async def read(built: House, name: str, day: str = "") -> Any:
    client = await client_of(built)
    response = await client.get(f"/regulations/text?regulation={quote(name)}{day and f'&as_of={day}'}")
    assert response.status_code == 200, response.text
    return response.json()


def shown_in(whole: Any) -> list[tuple[str, str | None]]:
    return [(row["label"], row["text"]) for row in whole["provisions"]]


async def test_the_whole_text_is_that_of_the_day(built: House) -> None:
    client = await client_of(built)
    for day, count, edition in (("2021-01-01", "서른", 0), ("2025-01-01", "마흔", 1)):
        whole = await read(built, "차량관리규정", day)
        assert [row["label"] for row in whole["provisions"]] == ["제1조", "제2조", "제3조", "부칙"]
        assert whole["provisions"][1]["text"] == f"배차는 하루에 {count} 번까지 한다."
        assert whole["document_id"] == whole["editions"][edition]["document_id"]
        assert whole["effective_from"] == whole["editions"][edition]["effective_from"]
        for row in whole["provisions"]:
            reference = f"/regulations/show?as_of={day}&reference={quote(row['name'])}"
            alone = (await client.get(reference)).json()
            assert (alone["text"], alone["citations"]) == (row["text"], row["citations"])
            stored = (await client.get(f"/documents/{row['document_id']}")).json()["text"]
            assert stored[row["start"] : row["end"]] == row["text"]
    assert whole["preface"].strip() == "차량관리규정"
    assert_failure(await client.get(f"/regulations/text?regulation={quote('없는규정')}"), 404)


async def test_an_article_that_takes_effect_later_is_read_in_the_earlier_edition(built: House) -> None:
    client = await client_of(built)
    old = regulation("2020. 3. 1.", "창고는 아홉 시에 연다.", name="창고관리규정")
    more = " 다만, 제2조의 개정규정은 2026. 3. 1.부터 시행한다."
    new = regulation("2024. 3. 1.", "창고는 일곱 시에 연다. <개정 2024. 3. 1.>", name="창고관리규정", more=more)
    for text in (old, new):
        form = {"category": "Rules"}
        sent = await client.post("/documents", files={"files": ("store.md", text.encode())}, data=form)
        assert sent.status_code == 201
    between = await read(built, "창고관리규정", "2025-01-01")
    assert [row["label"] for row in between["provisions"]] == ["제1조", "제2조", "제3조", "부칙"]
    assert between["provisions"][1]["text"] == "창고는 아홉 시에 연다."
    assert {row["document_id"] for row in between["provisions"]} == {row["document_id"] for row in between["editions"]}
    later = await read(built, "창고관리규정", "2026-03-02")
    assert "일곱 시" in later["provisions"][1]["text"]
    assert len(later["provisions"]) == 4


async def test_marks_deleted_articles_and_the_longest_text(built: House, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await client_of(built)
    text = (
        "# 시설규정\n\n제정 2001. 3. 1.\n\n개정 2020. 1. 1.\n\n## 제1장 총칙\n\n"
        "### 제1조(목적)\n\n🙂 시설을 정한다. <개정 2019. 3. 1.>\n② 삭제 <2018. 1. 1.>\n\n"
        "### 제2조 삭제 <2021. 5. 1.>\n\n## 제2장 관리\n\n### 제3조(점검) (매주) 점검한다. [본조신설 2018. 3. 1.]\n\n"
        "## 부칙\n\n이 규정은 2020년 1월 1일부터 시행한다.\n"
    )
    sent = await client.post("/documents", files={"files": ("place.md", text.encode())}, data={"category": "Rules"})
    assert sent.status_code == 201
    whole = await read(built, "시설규정")
    marked = [[row["text"][start:end] for start, end in row["marks"]] for row in whole["provisions"]]
    assert marked == [["<개정 2019. 3. 1.>"], [], ["[본조신설 2018. 3. 1.]"], []]
    assert [row["headings"] for row in whole["provisions"]] == [["제1장 총칙"], ["제1장 총칙"], ["제2장 관리"], []]
    assert [row["deleted"] for row in whole["provisions"]] == [False, True, False, False]
    assert "제정 2001. 3. 1." in whole["preface"]
    before = await read(built, "시설규정", "2020-06-01")
    assert ("제2조", None) in shown_in(before)  # its text of that day is not stored
    monkeypatch.setattr(whole_text, "LONGEST_WHOLE_TEXT", len(whole["provisions"][0]["text"]))
    assert [row["text"] is None for row in (await read(built, "시설규정"))["provisions"]] == [False, True, True, True]
