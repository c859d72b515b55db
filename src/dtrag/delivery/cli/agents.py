"""`dtrag agents`: make agents of branches, look at them, hand their manifests on, search with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.core.agent import Agent, AgentView
    from dtrag.core.documents import SearchMetrics, SearchResult
    from dtrag.settings import Settings


app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Agents: experts on the branches you give them.")

AgentId = Annotated[str, typer.Argument(metavar="ID", help="As the list shows it.", show_default=False)]


@app.command("create")
def create(
    context: typer.Context,
    *,
    path: Annotated[
        list[str],
        typer.Option(metavar="PATH", help='A branch it may use, such as "AI/ML"; 1 to 10 of them.', show_default=False),
    ],
    version: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="Version of the tree that the paths are meant in.", show_default="active"),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Its name.", show_default="after its first path")] = None,
    tool: Annotated[list[str] | None, typer.Option(metavar="TOOL", help="A tool it may use; may be repeated.")] = None,
    as_json: Json = False,
) -> int:
    """Make an agent that sees these branches and nothing else."""
    options = {"mcp_tools": tool} if tool else {}
    asked = {"version": version, "node_paths": [part.split("/") for part in path], "options": options, "name": name}
    made = run_async(_create(invocation(context).settings(), asked))
    from dtrag.delivery.cli.console import data, note, show_json

    if as_json:
        show_json(made)
    else:
        data().print(f"Created {made['agent_id']} ({made['name']})", soft_wrap=True)
        for unresolved in made["unresolved_paths"]:
            note(f"{unresolved} leads nowhere yet; it holds nothing until it does.")
    return OK


@app.command("list")
def list_agents(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 100,
    offset: Annotated[int, typer.Option(min=0, help="How many to pass over first.")] = 0,
    as_json: Json = False,
) -> int:
    """The agents, the newest first."""
    found, total = run_async(_list(invocation(context).settings(), limit, offset))
    from dtrag.delivery.cli.console import data, note, plural, show_json, table

    if as_json:
        show_json({"agents": found, "total": total, "limit": limit, "offset": offset})
        return OK
    if found:
        rows = [(agent["agent_id"], agent["name"], _branches(agent), agent["edition"]) for agent in found]
        data().print(table(("Id", "Name", "Branches", "Edition"), rows, whole=("Id", "Edition")))
    if total:
        note(f"{len(found):,} of {plural(total, 'agent')}")
    else:
        note('There are no agents yet. Make one with: dtrag agents create --path "AI/ML"')
    return OK


@app.command("show")
def show_agent(context: typer.Context, agent_id: AgentId, as_json: Json = False) -> int:
    """An agent: its manifest, and what its models used today."""
    agent = run_async(_show(invocation(context).settings(), agent_id))
    from dtrag.delivery.cli.console import data, facts, show_json

    if as_json:
        show_json(agent)
        return OK
    retrieval, features, spent = agent["retrieval"], agent["features"], agent["spending"]
    rows = [
        ("Name", agent["name"]),
        ("Id", agent["agent_id"]),
        ("Edition", f"{agent['edition']}, by {agent['created_by']}, {agent['updated_at']}"),
        ("Branches", _branches(agent)),
        ("Version", agent["taxonomy_version"]),
        ("Candidates", f"{retrieval['bm25_topk']} by words, {retrieval['vector_topk']} by meaning"),
        ("Passages", f"{retrieval['rerank']['final_topk']} of {retrieval['rerank']['candidates']} reranked"),
        ("Tools", ", ".join(agent["mcp_tools_allowlist"]) or "none"),
        ("Features", ", ".join(f"{name} {_word(value)}" for name, value in features.items())),
        ("Used today", f"{spent['tokens']:,} of {spent['tokens_per_day']:,} tokens"),
        ("", f"{spent['krw']:,g} of {spent['krw_per_day']:,g} won"),
    ]
    if agent["unresolved_paths"]:
        rows.insert(4, ("Leads nowhere", ", ".join(agent["unresolved_paths"])))
    data().print(facts(rows))
    return OK


@app.command("export")
def export(
    context: typer.Context,
    agent_id: AgentId,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it there.", show_default="to stdout")
    ] = None,
    as_json: Json = False,
) -> int:
    """The manifest in force as YAML, to keep beside code or to hand on."""
    agent = run_async(_agent(invocation(context).settings(), agent_id))
    from dtrag.delivery.cli.console import data, show_json
    from dtrag.governance.agents import manifest_yaml

    if output is not None:
        output.write_text(manifest_yaml(agent.manifest), "utf-8")
    if as_json:
        show_json(agent.manifest.as_dict())
    elif output is None:
        data().out(manifest_yaml(agent.manifest), end="", highlight=False)
    return OK


@app.command("delete")
def delete(context: typer.Context, agent_id: AgentId, as_json: Json = False) -> int:
    """Delete an agent with all its editions; documents stay."""
    run_async(_delete(invocation(context).settings(), agent_id))
    from dtrag.delivery.cli.console import data, show_json

    if as_json:
        show_json({"deleted": agent_id})
    else:
        data().print(f"Deleted {agent_id}")
    return OK


@app.command("search")
def search(
    context: typer.Context,
    agent_id: AgentId,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words or a question.", show_default=False)],
    top_k: Annotated[
        int | None, typer.Option(min=1, max=1000, help="How many passages.", show_default="all it may have")
    ] = None,
    as_json: Json = False,
) -> int:
    """Find passages in the branches of an agent."""
    results, metrics = run_async(_search(invocation(context).settings(), agent_id, query, top_k))
    from dtrag.delivery.cli.search import as_json_rows, show, tell

    if as_json:
        from dataclasses import asdict

        from dtrag.delivery.cli.console import show_json

        show_json({"agent_id": agent_id, "query": query, "results": as_json_rows(results), "metrics": asdict(metrics)})
    else:
        show(results)
    tell(metrics, empty=False)
    return OK


def _branches(agent: Mapping[str, Any]) -> str:
    return ", ".join("/".join(path) for path in agent["allowed_category_paths"])


def _word(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


async def _create(settings: Settings, asked: dict[str, Any]) -> AgentView:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        active = await opened.agents.taxonomy()
        asked["version"] = asked["version"] or active.version
        return (await opened.agents.create(**asked)).as_dict(active)


async def _list(settings: Settings, limit: int, offset: int) -> tuple[list[AgentView], int]:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        found, total = await opened.agents.every(limit, offset)
        taxonomy = await opened.agents.taxonomy()
        return [agent.as_dict(taxonomy) for agent in found], total


async def _show(settings: Settings, agent_id: str) -> dict[str, Any]:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        agent = await opened.agents.get(agent_id)
        used, budget = await opened.agents.spending(agent), opened.agents.budget(agent)
        return {
            **agent.as_dict(await opened.agents.taxonomy()),
            "spending": {
                "day": used.day.isoformat(),
                "calls": used.calls,
                "tokens": used.tokens,
                "krw": used.krw,
                "tokens_per_day": budget.tokens,
                "krw_per_day": budget.krw,
            },
        }


async def _agent(settings: Settings, agent_id: str) -> Agent:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        return await opened.agents.get(agent_id)


async def _delete(settings: Settings, agent_id: str) -> None:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        await opened.agents.delete(agent_id)


async def _search(
    settings: Settings, agent_id: str, query: str, top_k: int | None
) -> tuple[list[SearchResult], SearchMetrics]:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        return await opened.agents.search(await opened.agents.get(agent_id), query, top_k)
