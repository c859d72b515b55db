"""`/regulations` over HTTP: the same JSON as the CLI, in the caller's scope, and in the audit log."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
import pytest_asyncio

from dtrag.core.access.scope import EVERYTHING
from dtrag.delivery.api.app import create_app
from tests.api.confined import House
from tests.api.shape import assert_failure
from tests.integration.test_regulations import HIDDEN_RULE, OPEN_RULE
from tests.store import Databases


@pytest_asyncio.fixture(scope="module")
async def built(
    databases_of_module: Databases, regulation_book: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[House]:
    folder = tmp_path_factory.mktemp("regulations")
    api = create_app(databases_of_module.settings(regulation_book))
    async with api.router.lifespan_context(api), AsyncExitStack() as exits:
        running = House(api, exits)
        for name, text, category in (("open", OPEN_RULE, "Open"), ("hidden", HIDDEN_RULE, "Hidden")):
            (folder / f"{name}.md").write_text(text, "utf-8")
            assert not (await running.app.ingest(folder / f"{name}.md", category)).failed
        await running.client("all", None, "reader")
        await running.client("open", ["Open"], "reader")
        yield running


def plain(value: Any) -> Any:
    """The value as JSON gives it back: lists for tuples."""
    return json.loads(json.dumps(value))


async def test_a_session_says_whether_there_are_regulations(built: House) -> None:
    elsewhere = await built.client("elsewhere", ["Elsewhere"], "reader")
    clients = (built.clients["all"], built.clients["open"], elsewhere)
    assert [(await client.get("/session")).json()["regulations"] for client in clients] == [True, True, False]


async def show(client: httpx2.AsyncClient, reference: str) -> httpx2.Response:
    return await client.get(f"/regulations/show?reference={quote(reference)}")


async def test_the_json_is_that_of_the_command_line(built: House) -> None:
    client, regulations = built.clients["all"], built.app.regulations
    listed = (await client.get("/regulations")).json()
    summaries = await regulations.regulations(scope=EVERYTHING)
    assert listed["regulations"] == plain([asdict(summary) for summary in summaries])
    assert (listed["total"], listed["limit"], listed["offset"]) == (len(summaries), 100, 0)
    page = (await client.get("/regulations?limit=2&offset=1")).json()
    assert page["regulations"] == listed["regulations"][1:3]
    assert page["total"] == len(summaries)
    for reference in ("학칙 제21조", "학칙 부칙", "차량관리규정 제2조"):
        shown = (await show(client, reference)).json()
        expected = plain(asdict(await regulations.show(reference, scope=EVERYTHING)))
        # The address of a file of the server is for its owner.
        assert {**shown, "source_url": ""} == {**expected, "source_url": ""}
    cited = (await client.get("/regulations/citations?regulation=" + quote("차량관리규정"))).json()
    of_vehicles = await regulations.citations("차량관리규정", scope=EVERYTHING)
    assert cited == plain(
        {"citations": [asdict(row) for row in of_vehicles], "total": len(of_vehicles), "limit": 100, "offset": 0}
    )
    everything = (await client.get("/regulations/citations")).json()
    citations = await regulations.citations(scope=EVERYTHING)
    assert everything["total"] == len(everything["citations"]) == len(citations) > len(of_vehicles)
    page = (await client.get("/regulations/citations?limit=3&offset=2")).json()
    assert page["citations"] == everything["citations"][2:5]
    assert (page["total"], page["limit"], page["offset"]) == (len(citations), 3, 2)
    assert (await client.get("/regulations/citations?limit=1001")).status_code == 422
    for kind in ("missing", "appendix"):
        of_kind = (await client.get(f"/regulations/citations?kind={kind}&limit=1000")).json()
        assert of_kind["citations"] == plain([asdict(row) for row in citations if row.kind == kind])
        assert of_kind["total"] == len(of_kind["citations"]) > 0
    assert (await client.get("/regulations/citations?kind=other")).status_code == 422


async def test_a_search_finds_each_article_once(built: House) -> None:
    client = built.clients["all"]
    body = {"query": "학교를 잠깐 쉬고 싶어요"}
    results = (await client.post("/regulations/search", json=body)).json()["results"]
    assert "휴학" in results[0]["metadata"]["article_title"]
    articles = [(row["metadata"]["regulation"], row["metadata"]["article"]) for row in results]
    assert 10 <= len(articles) <= 20
    assert len(set(articles)) == len(articles)
    few = (await client.post("/regulations/search", json={**body, "top_k": 3})).json()["results"]
    assert [row["chunk_id"] for row in few] == [row["chunk_id"] for row in results[:3]]
    assert (await client.post("/regulations/search", json={"query": " "})).json() == {"results": []}
    for refused in ({"query": "휴학", "top_k": 0}, {"query": "휴학", "filters": {}}, {}):
        assert_failure(await client.post("/regulations/search", json=refused), 422)


async def test_a_hidden_branch_does_not_exist_for_the_caller(built: House) -> None:
    client = built.clients["open"]
    listed = (await client.get("/regulations")).json()
    assert [row["name"] for row in listed["regulations"]] == ["차량관리규정"]
    assert listed["total"] == 1
    shown = (await show(client, "차량관리규정 제2조")).json()
    hidden = next(row for row in shown["citations"] if "비밀차고규정" in row["text"])
    assert (hidden["kind"], hidden["targets"]) == ("missing", [])
    assert hidden in (await client.get("/regulations/citations")).json()["citations"]
    whole = (await client.get(f"/regulations/text?regulation={quote('차량관리규정')}")).json()
    assert hidden in [citation for row in whole["provisions"] for citation in row["citations"]]
    for path in ("show?reference={} 제2조", "citations?regulation={}", "text?regulation={}"):
        refusals = [
            assert_failure(await client.get(f"/regulations/{path.format(quote(name))}"), 404)["detail"]
            for name in ("비밀차고규정", "없는차고규정")
        ]
        assert refusals[0].replace("비밀차고규정", "") == refusals[1].replace("없는차고규정", "")
    results = (await client.post("/regulations/search", json={"query": "차고 위치", "top_k": 50})).json()["results"]
    assert {row["metadata"]["regulation"] for row in results} == {"차량관리규정"}


async def test_every_request_is_in_the_audit_log(built: House) -> None:
    client = built.clients["open"]
    document = (await client.get("/regulations")).json()["regulations"][0]["document_id"]
    await show(client, "차량관리규정 제1조")
    await show(client, "비밀차고규정 제1조")
    await client.get("/regulations/citations")
    await client.post("/regulations/search", json={"query": "배차"})
    await built.app.audit.newest()
    lines = [row for row in await built.audited() if row["actor"] == "open"][-5:]
    assert [(row["action"], row["decision"], row["subjects"]) for row in lines] == [
        ("GET /regulations", "allowed", [document]),
        ("GET /regulations/show", "allowed", [document]),
        ("GET /regulations/show", "denied", []),
        ("GET /regulations/citations", "allowed", [document]),
        ("POST /regulations/search", "allowed", [document]),
    ]
    assert "비밀차고규정" not in str(lines)


async def test_errors_name_requests_and_no_commands(built: House) -> None:
    client = built.clients["open"]
    for path in ("show?reference={} 제2조", "citations?regulation={}"):
        response = await client.get(f"/regulations/{path.format(quote('없는규정'))}")
        detail = assert_failure(response, 404)["detail"]
        expected = "There is no regulation '없는규정' that you may see. "
        assert detail == expected + "All of them: GET /regulations"
    await built.client("nothing", ["Nothing"], "reader")
    detail = assert_failure(await show(built.clients["nothing"], "학칙 제1조"), 404)["detail"]
    assert detail == "There are no regulations that you may see. Read a regulation book with: POST /documents"


async def test_references_that_cannot_be_read_are_refused(built: House) -> None:
    client = built.clients["all"]
    assert_failure(await client.get("/regulations/show"), 422)
    assert_failure(await show(client, "가" * 501), 422)
    assert_failure(await show(client, "제5조"), 422)
    assert_failure(await show(client, "학칙"), 422)
    assert_failure(await show(client, "학칙 제999조"), 404)
    assert_failure(await show(client, "학칙\x00 제1조"), 404, 422)


async def test_a_text_is_verified_in_the_scope_of_the_caller(built: House) -> None:
    text = "차량관리규정 제2조(배차), 제3조제9항, 「비밀차고규정」 제2조, 비밀차고규칙 제2조와 학칙 제21조"
    everything = (await built.clients["all"].post("/regulations/verify", json={"text": text})).json()
    statuses = [row["status"] for row in everything["citations"]]
    assert statuses == ["exists", "missing", "exists", "title_mismatch", "exists"]
    assert everything["counts"] == {"exists": 3, "missing": 1, "title_mismatch": 1, "repealed": 0, "unclear": 0}
    for row in everything["citations"]:
        assert text[row["start"] : row["end"]] == row["text"]
    same = await built.app.regulations.verify(text, scope=EVERYTHING)
    assert everything["citations"] == plain([asdict(citation) for citation in same.citations])

    confined = (await built.clients["open"].post("/regulations/verify", json={"text": text})).json()
    assert [row["status"] for row in confined["citations"]] == ["exists", "missing", "missing", "missing", "missing"]
    elsewhere = (
        await built.clients["open"].post("/regulations/verify", json={"text": text.replace("비밀", "없는")})
    ).json()
    assert str(confined).replace("비밀", "") == str(elsewhere).replace("없는", "")
    assert "비밀차고규정" not in str([row["target"] for row in confined["citations"]])


async def test_quotations_are_compared_only_with_what_the_caller_may_see(built: House) -> None:
    open_text = (await show(built.clients["all"], "차량관리규정 제2조")).json()["text"]
    hidden_text = (await show(built.clients["all"], "비밀차고규정 제2조")).json()["text"]
    text = f"차량관리규정 제2조는 “{open_text}”이다.\n비밀차고규정 제2조는 “{hidden_text}”이다."
    seen = {
        name: (await client.post("/regulations/verify", json={"text": text})).json()["quotations"]
        for name, client in built.clients.items()
    }
    assert [row["status"] for row in seen["all"]] == ["verbatim", "verbatim"]
    assert [row["target"] for row in seen["all"]] == ["차량관리규정 제2조", "비밀차고규정 제2조"]
    assert [row["status"] for row in seen["open"]] == ["verbatim", "unchecked"]
    assert seen["open"][1]["target"] is None
    for row in seen["all"]:
        assert text[row["start"] : row["end"]] == row["text"]


async def test_the_regulation_of_bare_references(built: House) -> None:
    client = built.clients["open"]
    body = {"text": "제2조에 따른다.", "regulation": "차량관리규정"}
    assert (await client.post("/regulations/verify", json=body)).json()["citations"][0]["status"] == "exists"
    for name in ("비밀차고규정", "없는차고규정"):
        assert_failure(await client.post("/regulations/verify", json={**body, "regulation": name}), 404)


async def test_texts_that_cannot_be_verified_are_refused(built: House) -> None:
    client = built.clients["all"]
    for body in ({}, {"text": "가" * 150_001}, {"text": "학칙\x00 제1조"}, {"text": "학칙", "top_k": 3}):
        assert_failure(await client.post("/regulations/verify", json=body), 422)
    nothing = (await client.post("/regulations/verify", json={"text": ""})).json()
    assert (nothing["citations"], sum(nothing["counts"].values())) == ([], 0)
