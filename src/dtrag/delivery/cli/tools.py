"""`dtrag tools`: which tools there are, try one, and decide about those of MCP servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import FAILURE, OK

if TYPE_CHECKING:
    from dtrag.settings import Settings
    from dtrag.tools import ToolExecutionResult
    from dtrag.tools.mcp import ServerStatus, ToolStatus

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Tools: see, try, approve those of MCP servers.")

_PATIENCE_S = 60.0
"""A person at a terminal waits longer for a server that starts than a question does."""
_EXAMPLE = """one JSON object, such as '{"query": "rain"}'"""
Name = Annotated[str, typer.Argument(metavar="NAME", help="As the list shows it.", show_default=False)]


@app.command("list")
def list_tools(context: typer.Context, as_json: Json = False) -> int:
    """The tools there are, and those that wait for your word."""
    settings = invocation(context).settings()
    from dtrag.delivery.cli.console import data, note, plural, show_json, table

    if settings.mcp_servers is not None:
        note("Asking the MCP servers …")
    found, servers = run_async(_listing(settings))
    if as_json:
        from dataclasses import asdict

        show_json({"tools": [tool.as_dict() for tool in found], "servers": [asdict(server) for server in servers]})
        return OK
    rows = [(tool.name, _stands(tool), _first(tool)) for tool in found]
    data().print(table(("Name", "State", "What it does"), rows))
    for server in servers:
        if server.problem or server.asking:
            note(server.problem or f"The MCP server {server.name!r} has not answered yet.")
    note(plural(len(found), "tool"))
    waiting = [tool.name for tool in found if tool.state in {"new", "changed"}]
    if waiting:
        note(f"Look at one with `dtrag tools show {waiting[0]}`, then: dtrag tools approve {waiting[0]}")
    return OK


@app.command("show")
def show(context: typer.Context, name: Name, as_json: Json = False) -> int:
    """All about one tool: what an approval is about."""
    found, _ = run_async(_listing(invocation(context).settings()))
    tool = next((tool for tool in found if tool.name == name), None)
    if tool is None:
        from dtrag.errors import NotFound

        raise NotFound(f"There is no tool {name[:130]!r}. `dtrag tools list` lists what there is.")
    from dtrag.delivery.cli.console import data, facts, show_json

    if as_json:
        show_json(tool.as_dict())
        return OK
    import json

    rows = [("Name", tool.name), ("State", _stands(tool))]
    rows += [("Server", tool.server)] if tool.server else []
    rows += [("Reason", tool.reason)] if tool.reason else []
    if tool.approved_by and tool.approved_at:
        rows.append(("Approved", f"by {tool.approved_by} on {tool.approved_at:%Y-%m-%d}"))
    rows += [("Description", tool.description), ("Input", json.dumps(tool.input_schema, ensure_ascii=False, indent=2))]
    rows += [("Fingerprint", tool.fingerprint)] if tool.fingerprint else []
    data().print(facts(rows))
    return OK


@app.command("run")
def run(
    context: typer.Context,
    name: Name,
    given: Annotated[
        str, typer.Option("--input", metavar="JSON", help="The tool's input, one JSON object.", show_default=False)
    ] = "{}",
    as_json: Json = False,
) -> int:
    """Execute one tool, as the pipeline would."""
    result = run_async(_run(invocation(context).settings(), name, _parsed(given)))
    from dtrag.delivery.cli.console import data, note, safe, show_json

    if as_json:
        from dataclasses import asdict

        show_json(asdict(result))
    elif result.success:
        data().print(safe(_shown(result.result)), soft_wrap=True)
        if result.note:
            note(result.note)
    else:
        note(f"Error: {result.error}")
        if result.error == f"Tool '{name}' not found":
            note("`dtrag tools list` lists what there is; those of MCP servers wait until somebody approves them.")
    return OK if result.success else FAILURE


@app.command("approve")
def approve(
    context: typer.Context,
    name: Name,
    fingerprint: Annotated[
        str | None,
        typer.Option(metavar="HEX", help="Approve only this, as `show` told it.", show_default="what it is now"),
    ] = None,
    as_json: Json = False,
) -> int:
    """Allow a tool of an MCP server as it is now."""
    done = run_async(_approve(invocation(context).settings(), name, fingerprint))
    from dtrag.delivery.cli.console import data, note, safe, show_json

    if as_json:
        show_json(done.as_dict())
        return OK
    data().print(safe(f"Approved {done.name}"), soft_wrap=True)
    note(f"It says: {' '.join(done.description.split())[:300]}")
    note(f"Fingerprint: {done.fingerprint}")
    return OK


@app.command("revoke")
def revoke(context: typer.Context, name: Name, as_json: Json = False) -> int:
    """Take an approval back; running services heed it, too."""
    run_async(_revoke(invocation(context).settings(), name))
    from dtrag.delivery.cli.console import data, safe, show_json

    if as_json:
        show_json({"revoked": name})
    else:
        data().print(safe(f"Revoked {name}"), soft_wrap=True)
    return OK


def _stands(tool: ToolStatus) -> str:
    return tool.state if tool.usable or tool.state not in {"approved", "built-in"} else f"{tool.state}, not usable"


def _first(tool: ToolStatus) -> str:
    """The first sentence or so of what the tool says of itself, or why it cannot be used."""
    text = " ".join((tool.reason or tool.description).split())
    return text if len(text) <= 120 else text[:119] + "…"


def _parsed(given: str) -> dict[str, Any]:
    import json

    from dtrag.errors import InvalidInput

    try:
        parsed = json.loads(given)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"--input is not JSON: {error}. Give {_EXAMPLE}.") from error
    if not isinstance(parsed, dict):
        raise InvalidInput(f"--input must be {_EXAMPLE}.")
    return parsed


def _shown(result: Any) -> str:
    import json

    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=2)


async def _listing(settings: Settings) -> tuple[list[ToolStatus], list[ServerStatus]]:
    from dtrag.app import open_app
    from dtrag.tools.listing import listing

    async with open_app(settings) as opened:
        return await listing(opened.tools, opened.mcp, _PATIENCE_S)


async def _run(settings: Settings, name: str, given: dict[str, Any]) -> ToolExecutionResult:
    from dtrag.app import open_app
    from dtrag.tools import execute_tool

    async with open_app(settings) as opened:
        if "." in name:
            await opened.mcp.refresh(_PATIENCE_S)
        return await execute_tool(name, given, registry=opened.tools)


async def _approve(settings: Settings, name: str, fingerprint: str | None) -> ToolStatus:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        return await opened.mcp.approve(name, fingerprint)


async def _revoke(settings: Settings, name: str) -> None:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        await opened.mcp.revoke(name)
