"""`dtrag mcp`: the client of the protocol's library starts it, beside a running service and alone."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from dtrag.app import App
from dtrag.settings import Settings
from tests.api.conftest import Served
from tests.integration.cli_process import PROGRAM, Cli
from tests.integration.test_local_service import call, serving
from tests.store import Databases

CANARY = "zymurgite"
PASSAGES = {
    "AI": "# Trees\n\nMachine learning finds rules in tables.",
    "HR": f"# Pay\n\nThe machine shop pays {CANARY} for learning a trade.",
}


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dtrag-m-") as path:
        yield Path(path)


@pytest.fixture
def settings(databases: Databases) -> Settings:
    return databases.settings()


@pytest.fixture
def cli(app: App) -> Cli:
    mine = app.settings
    return Cli(mine.data_dir, (("DTRAG_EMBEDDER", mine.embedder), ("DTRAG_DATABASE_NAME", mine.database_name)))


async def fill(app: App, folder: Path) -> None:
    for category, text in PASSAGES.items():
        file = folder / f"{category}.md"
        file.write_text(text, "utf-8")
        assert not (await app.ingest(file, category)).failed


@asynccontextmanager
async def started(cli: Cli, *arguments: str, mode: str = "auto", **environment: str) -> AsyncIterator[Client]:
    """A client of the command in a process of its own, which ends with it."""
    own = StdioServerParameters(command=str(PROGRAM), args=["mcp", *arguments], env=cli.environment(**environment))
    async with Client(own, mode=mode) as client:
        yield client


async def titles(client: Client, query: str = "machine learning") -> set[str]:
    found = await client.call_tool("search", {"query": query})
    assert found.structured_content is not None
    return {row["title"] for row in found.structured_content["results"]}


async def actors(app: App) -> list[dict[str, Any]]:
    async with app.database.connection("owner") as connection:
        lines = await connection.execute(
            "select actor, details from audit_log where action = 'POST /mcp' and details ? 'tool' order by number"
        )
        return await lines.fetchall()


async def test_a_key_decides_what_the_running_service_shows(app: App, cli: Cli, folder: Path) -> None:
    await fill(app, folder)
    narrow, wide = await app.keys.create("narrow", ["AI"], "reader"), await app.keys.create("wide", None, "reader")
    async with serving(app):
        async with started(cli, mode="legacy", DTRAG_MCP_KEY=narrow.secret) as client:
            assert client.protocol_version == "2025-11-25"
            assert {"search", "fetch", "ask"} <= {tool.name for tool in (await client.list_tools()).tools}
            assert await titles(client) == {"Trees"}
            assert await titles(client, CANARY) == set()
            [only] = (await client.list_resources()).resources
            assert "finds rules" in (await client.read_resource(only.uri)).contents[0].text  # type: ignore[union-attr]
        async with started(cli, DTRAG_MCP_KEY=wide.secret) as client:
            assert client.protocol_version == "2026-07-28"
            assert await titles(client) == {"Trees", "Pay"}
            assert (await client.list_tools()).cache_scope == "private"
            refused = await client.call_tool("fetch", {"id": "nonsense"})
            assert refused.is_error
            answer = await client.call_tool("ask", {"question": "What finds rules in tables?"})
            assert answer.structured_content is not None
            assert answer.structured_content["citations"]
        for secret, problem in ((f"dtrag_aaaaaaaa_{'x' * 43}", "key"), (narrow.secret, "There is no agent")):
            refusal = await call(cli, "mcp", "--agent", "none", DTRAG_MCP_KEY=secret)
            assert (refusal.code != 0, refusal.out) == (True, "")
            assert problem in refusal.err
        await app.audit.verify()  # writes the lines of reads, which wait
    assert {line["actor"] for line in await actors(app)} == {"narrow", "wide"}


async def test_over_http_any_worker_answers_each_caller_for_itself(app: App, folder: Path) -> None:
    await fill(app, folder)
    secrets = {key: (await app.keys.create(key, [key], "reader", rate=100_000)).secret for key in PASSAGES}
    mine = app.settings
    served = Served(
        data_dir=str(mine.data_dir), database_name=mine.database_name, embedder="none", port="0", workers="2"
    )

    async def ask(category: str, mode: str) -> None:
        """Ask again and again, beside the other callers."""
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {secrets[category]}"}, timeout=60) as http,
            Client(streamable_http_client(f"{served.address}/mcp", http_client=http), mode=mode) as client,
        ):
            for _ in range(10):
                assert await titles(client) == {"Trees" if category == "AI" else "Pay"}
                assert await titles(client, CANARY) == ({"Pay"} if category == "HR" else set())

    try:
        served.until_ready()
        async with asyncio.TaskGroup() as group:
            for category in secrets:
                for mode in ("legacy", "auto"):
                    group.create_task(ask(category, mode))
        with httpx2.Client(base_url=served.address) as unknown:
            assert unknown.post("/mcp", json={}).status_code == 401
    finally:
        code, log = await asyncio.to_thread(served.stop)
    assert code == 0, log


async def test_alone_it_opens_the_app_with_the_rights_of_the_owner(app: App, cli: Cli, folder: Path) -> None:
    await fill(app, folder)
    agent = await app.agents.create("1.0.0", [["AI"]], name="Desk")
    async with started(cli) as client:
        assert await titles(client) == {"Trees", "Pay"}
    async with started(cli, "--direct", "--agent", str(agent.agent_id)) as client:
        assert client.server_info is not None
        assert client.server_info.title == "Desk"
        assert await titles(client) == {"Trees"}


async def test_it_ends_at_a_signal_and_at_the_end_of_input(app: App, cli: Cli) -> None:
    async with serving(app):
        ended = await asyncio.to_thread(cli.run, "mcp")  # its input is /dev/null
        assert (ended.code, ended.out, ended.err) == (0, "", "")
        for end in ("signal", "input"):
            pipe = asyncio.subprocess.PIPE
            process = await asyncio.create_subprocess_exec(
                PROGRAM, "mcp", env=cli.environment(), stdin=pipe, stdout=pipe, stderr=pipe
            )
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
            assert b'"id":1' in await process.stdout.readline()
            if end == "signal":
                process.send_signal(signal.SIGTERM)
                await asyncio.wait_for(process.wait(), 30)  # while its standard input is open
            process.stdin.close()
            _, err = await asyncio.wait_for(process.communicate(), 30)
            assert b"Traceback" not in err, err
            assert (process.returncode == 0) == (end == "input")
