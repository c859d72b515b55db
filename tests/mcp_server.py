"""An MCP server for the tests: what it does stands in a JSON file that it reads at every request.

`python mcp_server.py BEHAVIOUR.json` speaks over its pipes; with a second argument, a file that it writes its port to,
over HTTP on the loopback address. The SDK speaks HTTP, and over pipes when the file has `"sdk": true`; otherwise
a few lines here speak the protocol, which saves more than a second of imports each time a program is started.
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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

BEHAVIOUR = Path(sys.argv[1])
ADD = {
    "type": "object",
    "properties": {"first": {"type": "integer"}, "second": {"type": "integer"}},
    "required": ["first", "second"],
}
VERSION = "2026-07-28"


def behaviour() -> dict[str, Any]:
    return dict(json.loads(BEHAVIOUR.read_text("utf-8")))


def remember(now: dict[str, Any], name: str, arguments: Any) -> None:
    if "log" in now:
        with Path(now["log"]).open("a", encoding="utf-8") as opened:
            opened.write(json.dumps([os.getpid(), name, arguments]) + "\n")


def say(text: str) -> None:
    """What programs print that were not written for pipes."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def die(last_words: str) -> None:
    sys.stderr.write(f"Traceback\n  {last_words}\n")
    sys.stderr.flush()
    os._exit(3)


def tools() -> dict[str, Any] | None:
    """The result of a request for the tools; None: it is never answered."""
    now = behaviour()
    if now.get("list") == "hang":
        return None
    return {"tools": now.get("tools", [{"name": "add", "description": "Adds two numbers.", "inputSchema": ADD}])}


def called(name: str, arguments: dict[str, Any] | None) -> dict[str, Any] | None:
    """The result of a call; None: it is never answered."""
    now = behaviour()
    remember(now, name, arguments)
    how = now.get("call", "add")
    given = arguments or {}
    text = str(given.get("first", 0) + given.get("second", 0))
    if how == "hang":
        return None
    if how == "stuck":  # answers nothing any more, not even pings
        time.sleep(600)
    if how == "die":
        die("the disk is on fire")
    if how == "environment":
        return {"content": [], "structuredContent": {"names": sorted(os.environ)}}
    if how == "picture":
        picture = {"type": "image", "data": "aGFsbG8=", "mimeType": "image/png"}
        return {"content": [{"type": "text", "text": "Look:"}, picture]}
    if how in {"huge", "long"}:
        text = "x" * (100 << 20 if how == "huge" else 1 << 20)
    if how == "fail":
        text = "no such folder"
    return {"content": [{"type": "text", "text": text}], "isError": how == "fail"}


def over_pipes() -> None:
    """The protocol in lines of JSON: what the client asks for has an id."""
    for line in sys.stdin:
        request = json.loads(line)
        params = request.get("params", {})
        result: dict[str, Any] | None = None
        if request["method"] == "server/discover":
            result = {"capabilities": {"tools": {"listChanged": False}}, "supportedVersions": [VERSION]}
        elif request["method"] == "tools/list":
            result = tools()
        elif request["method"] == "tools/call":
            result = called(params["name"], params.get("arguments"))
        if "id" in request and result is not None:
            if request["method"] != "tools/call":
                result |= {"cacheScope": "private", "ttlMs": 0}
            result["resultType"] = "complete"
            result["_meta"] = {"io.modelcontextprotocol/serverInfo": {"name": "tests", "version": ""}}
            say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}))


def of_the_sdk() -> Server:
    import mcp_types as types
    from mcp.server.lowlevel import Server

    async def on_list(context: Any, params: Any) -> types.ListToolsResult:
        if (result := tools()) is None:
            await asyncio.sleep(600)
        return types.ListToolsResult.model_validate(result)

    async def on_call(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if (result := called(params.name, params.arguments)) is None:
            await asyncio.sleep(600)
        return types.CallToolResult.model_validate(result)

    return Server("tests", on_list_tools=on_list, on_call_tool=on_call)


async def over_pipes_by_the_sdk() -> None:
    from mcp.server.stdio import stdio_server

    server = of_the_sdk()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def over_http(port_file: Path) -> None:
    import uvicorn

    application = of_the_sdk().streamable_http_app(json_response=bool(behaviour().get("json")))
    listening = socket.create_server(("127.0.0.1", 0))
    port_file.with_suffix(".new").write_text(str(listening.getsockname()[1]), "utf-8")
    port_file.with_suffix(".new").rename(port_file)

    async def asked(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            remember(behaviour(), "(headers)", {name.decode(): value.decode() for name, value in scope["headers"]})
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
    elif behaviour().get("sdk"):
        asyncio.run(over_pipes_by_the_sdk())
    else:
        over_pipes()
    if start == "stubborn":
        time.sleep(600)
