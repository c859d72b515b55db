"""`/mcp` with the client of the protocol's own library, in both of its forms: tools, scopes and refusals."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx2
import jsonschema
import pytest
import pytest_asyncio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from dtrag.core.agent import Agent
from dtrag.delivery.api.routes import mcp as mcp_routes
from dtrag.delivery.api.routes import mcp_tools
from dtrag.isolation.worlds import RecordingModel
from dtrag.settings import set_feature_flag
from tests.api.confined import CANARY, House, house
from tests.api.shape import assert_failure
from tests.api.test_keys import client_of
from tests.cases import each
from tests.integration.test_regulations import OPEN_RULE
from tests.store import Databases

LEGACY, MODERN = "2025-11-25", "2026-07-28"
VERSIONS = [LEGACY, MODERN]
QUESTION = "What does machine learning find?"
ASKED = {
    "search": {"query": "machine learning"},
    "ask": {"question": QUESTION},
    "get_article": {"reference": "차량관리규정 제2조"},
    "list_categories": {},
    "verify_citations": {"text": "차량관리규정 제2조, 학칙 제999조"},
    "suggest_cases": {"query": QUESTION},
}
"""Arguments of every tool but fetch, which needs an id."""
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"accept": "application/json, text/event-stream"}


@pytest_asyncio.fixture(scope="module")
async def built(houses_of_module: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    file = tmp_path_factory.mktemp("rule") / "rule.md"
    file.write_text(OPEN_RULE, "utf-8")
    set_feature_flag("cbr_enabled", True)
    async with house(houses_of_module.settings(regulations="auto")) as running:
        assert not (await running.app.ingest(file, "AI/Rules")).failed
        await running.app.cases.add(QUESTION, ["AI", "ML"], "See the book of trees.")
        await running.client("admin", None, "admin")
        await running.client("reader", ["AI"], "reader")
        await running.client("other", ["HR"], "reader")
        yield running
    set_feature_flag("cbr_enabled", None)


@pytest_asyncio.fixture(scope="module")
async def desk(built: House) -> Agent:
    return await built.app.agents.create("1.0.0", [["AI", "ML"]], name="Desk")


@asynccontextmanager
async def connected(http: httpx2.AsyncClient, version: str = MODERN, path: str = "/mcp") -> AsyncIterator[Client]:
    """A client that speaks this version of the protocol."""
    transport = streamable_http_client(f"http://localhost:8001{path}", http_client=http)
    async with Client(transport, mode="legacy" if version == LEGACY else "auto") as client:
        assert client.protocol_version == version
        yield client


async def result_of(client: Client, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The structured result, of which the text is the JSON."""
    called = await client.call_tool(tool, dict(arguments))
    assert not called.is_error, called.content
    assert [part.type for part in called.content] == ["text"]
    assert called.structured_content is not None
    assert json.loads(called.content[0].text) == called.structured_content  # type: ignore[union-attr]
    return dict(called.structured_content)


async def refusal_of(client: Client, tool: str, arguments: Mapping[str, Any]) -> str:
    """The text of a refusal."""
    called = await client.call_tool(tool, dict(arguments))
    assert called.is_error
    assert called.structured_content is None
    return str(called.content[0].text)  # type: ignore[union-attr]


async def first_id(client: Client, query: str = "machine learning") -> str:
    found = await result_of(client, "search", {"query": query})
    return str(found["results"][0]["id"])


def lasting(answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer without its times and its id."""
    return {name: value for name, value in answer.items() if name not in {"trace_id", "stages"}}


@each("version", VERSIONS)
async def test_every_tool_keeps_to_its_schemas(built: House, version: str) -> None:
    async with connected(built.clients["reader"], version) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {*ASKED, "fetch"} == set(mcp_tools.TOOLS)
        for name, arguments in (*ASKED.items(), ("fetch", {"id": await first_id(client)})):
            tool = tools[name]
            assert tool.output_schema is not None
            for schema in (tool.input_schema, tool.output_schema):
                jsonschema.Draft202012Validator.check_schema(schema)
                assert schema["type"] == "object"
            assert tool.description
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint
            jsonschema.validate(arguments, tool.input_schema)
            jsonschema.validate(await result_of(client, name, arguments), tool.output_schema)
            wrongs: list[dict[str, Any]] = [{**arguments, "another": 1}, {key: [None] for key in arguments} or {"x": 1}]
            for wrong in wrongs:
                with pytest.raises(jsonschema.ValidationError):
                    jsonschema.validate(wrong, tool.input_schema)
                assert await refusal_of(client, name, wrong)
        assert tools["search"].input_schema["required"] == ["query"]
        assert tools["fetch"].input_schema["required"] == ["id"]


async def test_search_and_fetch_have_the_form_of_chat_programs(built: House) -> None:
    async with connected(built.clients["reader"]) as client:
        [first, *_] = (await result_of(client, "search", ASKED["search"]))["results"]
        assert set(first) == {"id", "title", "url"}
        fetched = await result_of(client, "fetch", {"id": first["id"]})
        assert set(fetched) == {"id", "title", "text", "url", "metadata"}
        assert (fetched["id"], fetched["title"], fetched["url"]) == (first["id"], first["title"], first["url"])
        document = await result_of(client, "fetch", {"id": fetched["metadata"]["document_id"]})
        start, end = (int(fetched["metadata"][name]) for name in ("start", "end"))
        assert document["text"][start:end] == fetched["text"]
        assert document["metadata"] | {"start": "0"} == {
            **fetched["metadata"],
            "start": "0",
            "end": str(len(document["text"])),
        }


@each("version", VERSIONS)
async def test_results_are_those_of_the_other_routes(built: House, version: str) -> None:
    http = built.clients["reader"]
    async with connected(http, version) as client:
        answer = await result_of(client, "ask", ASKED["ask"])
        assert lasting(answer) == lasting((await http.post("/ask", json=ASKED["ask"])).json())
        assert answer["citations"]
        passages = (await http.post("/search", json=ASKED["search"])).json()["results"]
        found = (await result_of(client, "search", ASKED["search"]))["results"]
        assert [row["id"] for row in found] == [row["chunk_id"] for row in passages]
        assert [row["url"] for row in found] == [row["source_url"] for row in passages]
        spans = [(await result_of(client, "fetch", {"id": row["id"]})) for row in found]
        assert [row["text"] for row in spans] == [row["text"] for row in passages]
        assert [int(row["metadata"]["start"]) for row in spans] == [row["start"] for row in passages]
        categories = await result_of(client, "list_categories", {})
        assert categories == (await http.get("/taxonomy/active/tree")).json()
        reference = quote(ASKED["get_article"]["reference"])
        article = (await http.get(f"/regulations/show?reference={reference}")).json()
        assert await result_of(client, "get_article", ASKED["get_article"]) == article
        verified = (await http.post("/regulations/verify", json=ASKED["verify_citations"])).json()
        assert await result_of(client, "verify_citations", ASKED["verify_citations"]) == verified
        suggested = await result_of(client, "suggest_cases", ASKED["suggest_cases"])
        same = (await http.post("/cbr/suggest", json=ASKED["suggest_cases"])).json()
        assert suggested["suggestions"] == same["suggestions"] != []


@each("version", VERSIONS)
async def test_what_a_caller_may_not_see_is_like_what_does_not_exist(built: House, version: str) -> None:
    unknown = str(uuid.UUID(int=9))
    async with connected(built.clients["admin"], version) as everything:
        passage = await first_id(everything, CANARY)
        document = passage.partition(":")[0]
        assert CANARY in (await result_of(everything, "fetch", {"id": passage}))["text"]
        assert CANARY in (await everything.read_resource(f"dtrag://documents/{document}")).contents[0].text  # type: ignore[union-attr]
    async with connected(built.clients["other"], version) as owner:
        assert await first_id(owner, CANARY) == passage
    async with connected(built.clients["reader"], version) as client:
        assert (await result_of(client, "search", {"query": CANARY}))["results"] == []
        assert CANARY not in json.dumps(await result_of(client, "list_categories", {}))
        assert not (await result_of(client, "ask", {"question": f"Who pays {CANARY}?"}))["citations"]
        for hidden, absent in ((passage, f"{unknown}:0"), (document, unknown)):
            texts = [await refusal_of(client, "fetch", {"id": key}) for key in (hidden, absent)]
            assert texts[0].replace(hidden, "ID") == texts[1].replace(absent, "ID")
        errors = []
        for key in (document, unknown):
            with pytest.raises(MCPError) as raised:
                await client.read_resource(f"dtrag://documents/{key}")
            errors.append(json.dumps(raised.value.error.model_dump()).replace(key, "ID"))
        assert errors[0] == errors[1]
        listed = [resource.uri for resource in (await client.list_resources()).resources]
        assert f"dtrag://documents/{document}" not in listed
        filters = {"question": QUESTION, "filters": {"taxonomy_paths": [["HR"]]}}
        assert "scope" in await refusal_of(client, "ask", filters)


async def test_documents_are_resources(built: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtrag.delivery.api.routes.mcp.PAGE", 2)
    http = built.clients["reader"]
    expected = {row["document_id"]: row["title"] for row in (await http.get("/documents")).json()["documents"]}
    async with connected(http) as client:
        listed: dict[str, str] = {}
        cursor = None
        while True:
            page = await client.list_resources(cursor=cursor)
            assert len(page.resources) <= 2
            listed |= {resource.uri.removeprefix("dtrag://documents/"): resource.name for resource in page.resources}
            if (cursor := page.next_cursor) is None:
                break
        assert listed == expected
        for document_id in expected:
            [content] = (await client.read_resource(f"dtrag://documents/{document_id}")).contents
            assert content.text == (await http.get(f"/documents/{document_id}")).json()["text"]  # type: ignore[union-attr]
        [template] = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "dtrag://documents/{document_id}"
        for uri in ("file:///etc/passwd", "dtrag://documents/", "dtrag://documents/../x"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)
        with pytest.raises(MCPError):
            await client.list_resources(cursor="nonsense")


async def test_results_are_private(built: House) -> None:
    async with connected(built.clients["reader"]) as client:
        uri = (await client.list_resources()).resources[0].uri
        for result in (
            await client.list_tools(),
            await client.list_resources(),
            await client.list_resource_templates(),
            await client.read_resource(uri),
        ):
            assert (result.cache_scope, result.ttl_ms) == ("private", 0)
    response = await built.clients["reader"].post("/mcp", json=PING, headers=ACCEPT)
    assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")
    assert "mcp-session-id" not in response.headers


async def test_only_an_agent_calls_a_language_model(built: House, desk: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Counting(RecordingModel):
        async def complete(self, *values: Any, **more: Any) -> Any:
            calls.append("complete")
            return await super().complete(*values, **more)

    model = Counting()
    monkeypatch.setattr(built.app, "run", replace(built.app.run, model=model, critic=model))
    http = built.clients["reader"]
    async with connected(http) as client:
        for name, arguments in ASKED.items():
            await result_of(client, name, arguments)
        assert calls == []
    async with connected(http, path=f"/mcp/agents/{desk.agent_id}") as client:
        await result_of(client, "search", ASKED["search"])
        assert calls == []
        answer = await result_of(client, "ask", ASKED["ask"])
    assert calls
    assert answer["agent_id"] == str(desk.agent_id)


@each("version", VERSIONS)
async def test_an_agent_is_a_server_of_its_own(built: House, desk: Agent, version: str) -> None:
    path = f"/mcp/agents/{desk.agent_id}"
    async with connected(built.clients["admin"], version, path) as client:
        assert client.server_info is not None
        assert client.server_info.title == "Desk"
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == set(mcp_tools.TOOLS)
        answer = await result_of(client, "ask", ASKED["ask"])
        jsonschema.validate(answer, tools["ask"].output_schema)  # type: ignore[arg-type]
        assert (await result_of(client, "search", {"query": CANARY}))["results"] == []
        names = [resource.name for resource in (await client.list_resources()).resources]
        assert sorted(names) == ["Descent", "Trees"]
        assert "Salary" not in json.dumps(await result_of(client, "list_categories", {}))
        assert "no regulation" in (await refusal_of(client, "get_article", ASKED["get_article"])).lower()
    for agent in (str(desk.agent_id), str(uuid.UUID(int=9)), "nonsense"):
        refused = await built.clients["other"].post(f"/mcp/agents/{agent}", json=PING, headers=ACCEPT)
        assert_failure(refused, 404)


async def test_a_public_key_may_ask_its_agent_only(built: House, desk: Agent) -> None:
    created = await built.app.keys.create("page", role="public", agent=desk, rate=1_000_000)
    async with client_of(built.api, {"x-api-key": created.secret}) as http:
        assert_failure(await http.post("/mcp", json=PING, headers=ACCEPT), 403)
        async with connected(http, path=f"/mcp/agents/{desk.agent_id}") as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["ask"]
            assert client.server_capabilities.resources is None
            assert (await result_of(client, "ask", ASKED["ask"]))["citations"]
            with pytest.raises(MCPError, match="no such tool"):
                await client.call_tool("search", ASKED["search"])


async def test_each_call_is_in_the_audit_log(built: House) -> None:
    async with connected(built.clients["reader"]) as client:
        await result_of(client, "search", ASKED["search"])
        await refusal_of(client, "fetch", {"id": str(uuid.UUID(int=9))})
    await built.clients["admin"].get("/audit/verify")  # writes the lines of reads, which wait
    lines = [line for line in await built.audited() if (line["action"], line["actor"]) == ("POST /mcp", "reader")]
    tools = {line["details"]["tool"]: line for line in lines if "tool" in line["details"]}
    assert tools["search"]["decision"] == "allowed"
    assert tools["search"]["details"]["status"] == 200
    assert tools["search"]["subjects"]
    assert tools["fetch"]["decision"] == "denied"
    assert tools["fetch"]["details"]["status"] == 404
    assert tools["fetch"]["subjects"] == [str(uuid.UUID(int=9))]
    assert "machine" not in json.dumps([line["details"] for line in lines])


async def test_keys_and_rates_are_those_of_the_service(built: House) -> None:
    async with client_of(built.api, {"authorization": f"Bearer dtrag_aaaaaaaa_{'x' * 43}"}) as http:
        assert_failure(await http.post("/mcp", json=PING, headers=ACCEPT), 401)
    created = await built.app.keys.create("slow", ["AI"], "reader", rate=2)
    async with client_of(built.api, {"authorization": f"Bearer {created.secret}"}) as http:
        statuses = [(await http.post("/mcp", json=PING, headers=ACCEPT)).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]


HOSTILE: tuple[tuple[object, int], ...] = (
    (b"{", 400),
    (b'{"jsonrpc": "2.0", "jsonrpc": "2.0"}', 400),
    (b"[" * 100, 400),
    ([PING], 422),
    ("ping", 422),
    ({}, 400),
    ({"jsonrpc": "2.0", "id": 1, "method": {}}, 400),
    ({"jsonrpc": "2.0", "method": "notifications/initialized"}, 202),
    ({**PING, "method": "no/method"}, 200),
    ({**PING, "method": "tools/call", "params": {"name": "\ud800", "arguments": {}}}, 400),
    ({**PING, "method": "tools/call", "params": {"name": "ask", "arguments": []}}, 200),
)


async def test_broken_messages_are_refused(built: House) -> None:
    http = built.clients["reader"]
    for body, status in HOSTILE:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {**ACCEPT, "content-type": "application/json"}
        response = await http.post("/mcp", content=content, headers=headers)
        assert response.status_code == status, (body, response.text)
        assert status != 200 or "error" in response.json()
    for version in ("1999-01-01", MODERN):
        response = await http.post("/mcp", json=PING, headers={**ACCEPT, "mcp-protocol-version": version})
        assert response.status_code == 400, response.text
    assert_failure(await http.post("/mcp", content=b"x", headers={**ACCEPT, "content-type": "text/plain"}), 415)
    assert (await http.post("/mcp", json=PING, headers={"accept": "text/html"})).status_code == 406
    for method in ("GET", "DELETE"):
        assert_failure(await http.request(method, "/mcp", headers=ACCEPT), 405)


async def test_the_work_ends_when_the_client_disconnects(built: House, monkeypatch: pytest.MonkeyPatch) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def endless(*values: object, **more: object) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(built.app, "search", endless)
    secret = built.clients["reader"].headers["authorization"]
    for version in VERSIONS:
        began.clear()
        ended.clear()
        meta: dict[str, Any] = {f"io.modelcontextprotocol/{name}": {} for name in ("clientInfo", "clientCapabilities")}
        params: dict[str, Any] = {"name": "search", "arguments": ASKED["search"]}
        headers = {"host": "localhost", "authorization": secret, "content-type": "application/json", **ACCEPT}
        if version == MODERN:
            meta["io.modelcontextprotocol/clientInfo"] = {"name": "test", "version": "1"}
            params["_meta"] = {**meta, "io.modelcontextprotocol/protocolVersion": version}
            headers |= {"mcp-method": "tools/call", "mcp-name": "search"}
        headers["mcp-protocol-version"] = version
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        body = [{"type": "http.request", "body": json.dumps(message).encode(), "more_body": False}]

        async def receive(body: list[dict[str, Any]] = body) -> dict[str, Any]:
            if body:
                return body.pop()
            await began.wait()
            return {"type": "http.disconnect"}

        async def send(sent: object) -> None:
            """To nobody."""

        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "root_path": "",
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 8001),
        }
        async with asyncio.timeout(30):
            await built.api(scope, receive, send)
        assert ended.is_set()


async def test_a_bug_says_nothing_of_itself(built: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*values: object, **more: object) -> None:
        raise RuntimeError("the secret of the bug")

    monkeypatch.setattr(built.app, "passage", broken)
    monkeypatch.setattr(built.app, "document", broken)
    for version in VERSIONS:
        async with connected(built.clients["reader"], version) as client:
            for call in (
                client.call_tool("fetch", {"id": f"{uuid.UUID(int=9)}:0"}),
                client.read_resource(f"dtrag://documents/{uuid.UUID(int=9)}"),
            ):
                with pytest.raises(MCPError, match="Internal error; the request id is"):
                    await call


async def test_without_the_library_the_route_says_what_to_install(
    built: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    mcp_routes._import_library.cache_clear()
    monkeypatch.setitem(sys.modules, "mcp.server.streamable_http_manager", None)
    failure = assert_failure(await built.clients["reader"].post("/mcp", json=PING, headers=ACCEPT), 501)
    assert "dtrag[mcp]" in failure["detail"]
