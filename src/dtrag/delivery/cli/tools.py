"""`dtrag tools`: list, show and run tools; approve and revoke those of MCP servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.console import Facts, ListFormat, Rows, data, note, plural, safe, show_json, show_result
from dtrag.delivery.cli.context import Form, Json, ListedName, with_app
from dtrag.delivery.cli.exit_codes import FAILURE, OK
from dtrag.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.tools import ToolExecutionResult
    from dtrag.tools.mcp import ServerStatus, ToolStatus

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Tools, and approval of those of MCP servers.")

_PATIENCE_S = 60.0
"""Maximum wait for MCP servers to start, in seconds: longer than for a question."""
_EXAMPLE = """one JSON object, such as '{"query": "rain"}'"""


@app.command("list")
def list_tools(context: typer.Context, as_json: Json = False, form: Form = ListFormat.table) -> int:
    """List the tools, also those that wait for your approval."""
    tools, servers = with_app(context, _load_tools)
    waiting = [tool.name for tool in tools if tool.state in {"new", "changed"}]
    return show_result(
        as_json or form,
        {"tools": tools, "servers": servers},
        Rows(("Name", "State", "What it does"), [(tool.name, _state(tool), _summary(tool)) for tool in tools]),
        notes=[
            *(
                server.problem or f"The MCP server {server.name!r} has not responded yet."
                for server in servers
                if server.problem or server.asking
            ),
            plural(len(tools), "tool"),
            *(f"Review it with `dtrag tools show {name}`, then: dtrag tools approve {name}" for name in waiting[:1]),
        ],
    )


@app.command("show")
def show(context: typer.Context, name: ListedName, as_json: Json = False) -> int:
    """Show one tool with everything that an approval covers."""
    tools, _ = with_app(context, _load_tools)
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        raise NotFound(f"There is no tool {name[:130]!r}. `dtrag tools list` lists all tools.")

    import json

    rows = [("Name", tool.name), ("State", _state(tool))]
    rows += [("Server", tool.server)] if tool.server else []
    rows += [("Reason", tool.reason)] if tool.reason else []
    if tool.approved_by and tool.approved_at:
        rows.append(("Approved", f"by {tool.approved_by} on {tool.approved_at:%Y-%m-%d}"))
    rows += [("Description", tool.description), ("Input", json.dumps(tool.input_schema, ensure_ascii=False, indent=2))]
    rows += [("Fingerprint", tool.fingerprint)] if tool.fingerprint else []
    return show_result(as_json, tool, Facts(rows))


@app.command("run")
def run(
    context: typer.Context,
    name: ListedName,
    tool_input: Annotated[
        str, typer.Option("--input", metavar="JSON", help="The tool's input, one JSON object.", show_default=False)
    ] = "{}",
    as_json: Json = False,
) -> int:
    """Execute one tool, as the pipeline would."""
    parsed_input = _parsed(tool_input)

    async def execute(opened: App) -> ToolExecutionResult:
        from dtrag.tools import execute_tool

        if "." in name:
            await opened.mcp.refresh(_PATIENCE_S)
        return await execute_tool(name, parsed_input, registry=opened.tools)

    result = with_app(context, execute)
    if as_json:
        show_json(result)
    elif result.success:
        data().print(safe(_result_text(result.result)), soft_wrap=True)
        if result.note:
            note(result.note)
    else:
        note(f"Error: {result.error}")
        if result.error == f"Tool '{name}' not found":
            note("`dtrag tools list` lists all tools; those of MCP servers must be approved first.")
    return OK if result.success else FAILURE


@app.command("approve")
def approve(
    context: typer.Context,
    name: ListedName,
    fingerprint: Annotated[
        str | None,
        typer.Option(metavar="HEX", help="Approve only this fingerprint from `show`.", show_default="the current one"),
    ] = None,
    as_json: Json = False,
) -> int:
    """Approve a tool of an MCP server in its current form."""
    approved = with_app(context, lambda opened: opened.mcp.approve(name, fingerprint))
    described = f"Its description: {' '.join(approved.description.split())[:300]}"
    return show_result(
        as_json,
        approved,
        f"Approved {approved.name}",
        notes=[described, f"Fingerprint: {approved.fingerprint}"],
    )


@app.command("revoke")
def revoke(context: typer.Context, name: ListedName, as_json: Json = False) -> int:
    """Revoke an approval, also for running services."""
    with_app(context, lambda opened: opened.mcp.revoke(name))
    return show_result(as_json, {"revoked": name}, f"Revoked {name}")


async def _load_tools(opened: App) -> tuple[list[ToolStatus], list[ServerStatus]]:
    from dtrag.tools.listing import listing

    if opened.settings.mcp_servers is not None:
        note("Requesting the tools of MCP servers …")
    return await listing(opened.tools, opened.mcp, _PATIENCE_S)


def _state(tool: ToolStatus) -> str:
    return tool.state if tool.usable or tool.state not in {"approved", "built-in"} else f"{tool.state}, not usable"


def _summary(tool: ToolStatus) -> str:
    """The beginning of the tool's description, or why it cannot be used."""
    text = " ".join((tool.reason or tool.description).split())
    return text if len(text) <= 120 else text[:119] + "…"


def _parsed(text: str) -> dict[str, Any]:
    import json

    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"--input is not JSON: {error}. Give {_EXAMPLE}.") from error
    if not isinstance(parsed, dict):
        raise InvalidInput(f"--input must be {_EXAMPLE}.")
    return parsed


def _result_text(result: object) -> str:
    import json

    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=2)
