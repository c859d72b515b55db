"""An MCP server for the tests, made with the SDK: what it does stands in a JSON file that it reads at every request.

`python mcp_server.py BEHAVIOUR.json` speaks over its pipes; with a second argument, a file that it writes its port to,
over HTTP on the loopback address.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

BEHAVIOUR = Path(sys.argv[1])
ADD = {
    "type": "object",
    "properties": {"first": {"type": "integer"}, "second": {"type": "integer"}},
    "required": ["first", "second"],
}


def behaviour() -> dict[str, Any]:
    return dict(json.loads(BEHAVIOUR.read_text("utf-8")))


def remember(now: dict[str, Any], params: types.CallToolRequestParams) -> None:
    if "log" in now:
        with Path(now["log"]).open("a", encoding="utf-8") as opened:
            opened.write(json.dumps([os.getpid(), params.name, params.arguments]) + "\n")


def say(text: str) -> None:
    """What programs print that were not written for pipes."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def stuck() -> None:
    """Answers nothing any more, not even pings."""
    time.sleep(600)


def die(last_words: str) -> None:
    sys.stderr.write(f"Traceback\n  {last_words}\n")
    sys.stderr.flush()
    os._exit(3)


async def on_list(context: Any, params: Any) -> types.ListToolsResult:
    now = behaviour()
    if now.get("list") == "hang":
        await asyncio.sleep(600)
    tools = now.get("tools", [{"name": "add", "description": "Adds two numbers.", "inputSchema": ADD}])
    return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in tools])


async def on_call(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    now = behaviour()
    remember(now, params)
    how = now.get("call", "add")
    if how == "hang":
        await asyncio.sleep(600)
    if how == "stuck":
        stuck()
    if how == "die":
        die("the disk is on fire")
    if how == "huge":
        return types.CallToolResult(content=[types.TextContent(type="text", text="x" * (100 << 20))])
    if how == "long":
        return types.CallToolResult(content=[types.TextContent(type="text", text="x" * (1 << 20))])
    if how == "fail":
        return types.CallToolResult(content=[types.TextContent(type="text", text="no such folder")], is_error=True)
    if how == "environment":
        return types.CallToolResult(content=[], structured_content={"names": sorted(os.environ)})
    if how == "picture":
        picture = types.ImageContent(type="image", data="aGFsbG8=", mime_type="image/png")
        return types.CallToolResult(content=[types.TextContent(type="text", text="Look:"), picture])
    given = params.arguments or {}
    total = str(given.get("first", 0) + given.get("second", 0))
    return types.CallToolResult(content=[types.TextContent(type="text", text=total)])


server = Server("tests", on_list_tools=on_list, on_call_tool=on_call)


async def over_pipes() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def over_http(port_file: Path) -> None:
    import uvicorn

    application = server.streamable_http_app(json_response=bool(behaviour().get("json")))
    listening = socket.create_server(("127.0.0.1", 0))
    port_file.with_suffix(".new").write_text(str(listening.getsockname()[1]), "utf-8")
    port_file.with_suffix(".new").rename(port_file)

    async def asked(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            remember(behaviour(), types.CallToolRequestParams(name="(headers)", arguments=headers))
        await application(scope, receive, send)

    uvicorn.Server(uvicorn.Config(asked, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    start = behaviour().get("start")
    if start == "hang":
        time.sleep(600)
    if start == "die":
        die("the licence has expired")
    if start == "noise":
        for _ in range(5_000):
            say("Loading the model ...")
        time.sleep(600)
    if start == "chatty":
        say("Welcome!")
    if start == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(behaviour()["log"]).write_text(json.dumps([os.getpid(), child.pid]), "utf-8")
    if len(sys.argv) > 2:
        over_http(Path(sys.argv[2]))
    else:
        asyncio.run(over_pipes())
    if start == "stubborn":
        time.sleep(600)
