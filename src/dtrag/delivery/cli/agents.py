"""`dtrag agents`: create, show, export and delete agents, and search with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.core.response import plain
from dtrag.delivery.cli.console import Facts, ListFormat, Rows, data, plural, show_json, show_result
from dtrag.delivery.cli.context import Form, Json, ListedId, Offset, with_app
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.core.agent import Agent, SpendingToday
    from dtrag.core.documents import SearchMetrics, SearchResult
    from dtrag.core.taxonomy.tree import Taxonomy

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Agents: experts on branches of your documents.")


@app.command("create")
def create(
    context: typer.Context,
    *,
    path: Annotated[
        list[str],
        typer.Option(metavar="PATH", help='A branch it may use, such as "AI/ML"; 1 to 10 times.', show_default=False),
    ],
    version: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="Version of the tree to which the paths refer.", show_default="active"),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Its name.", show_default="its first path")] = None,
    tool: Annotated[list[str] | None, typer.Option(metavar="TOOL", help="A tool it may use; may be repeated.")] = None,
    as_json: Json = False,
) -> int:
    """Create an agent that sees only these branches."""
    node_paths = [part.split("/") for part in path]
    options = {"mcp_tools": tool} if tool else {}

    async def create_agent(opened: App) -> tuple[Agent, Taxonomy]:
        active = await opened.agents.taxonomy()
        return await opened.agents.create(version or active.version, node_paths, options, name=name), active

    agent, active = with_app(context, create_agent)
    absent = [f"{path} is not in the tree yet; no document belongs to it." for path in agent.unresolved(active)]
    return show_result(as_json, agent.view(active), f"Created {agent.agent_id} ({agent.name})", notes=absent)


@app.command("list")
def list_agents(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of entries.")] = 100,
    offset: Offset = 0,
    as_json: Json = False,
    form: Form = ListFormat.table,
) -> int:
    """List the agents, the newest first."""

    async def page(opened: App) -> tuple[list[Agent], int, Taxonomy]:
        return *(await opened.agents.every(limit, offset)), await opened.agents.taxonomy()

    agents, total, taxonomy = with_app(context, page)
    rows = [agent.view(taxonomy) for agent in agents]
    cells = [(str(agent.agent_id), agent.name, _branches(agent), agent.edition) for agent in agents]
    listed = Rows(("Id", "Name", "Branches", "Edition"), cells, whole=("Id", "Edition"))
    none = 'There are no agents yet. Create one with: dtrag agents create --path "AI/ML"'
    count = f"{len(agents):,} of {plural(total, 'agent')}" if total else none
    value = {"agents": rows, "total": total, "limit": limit, "offset": offset}
    return show_result(as_json or form, value, listed, notes=[count])


@app.command("show")
def show_agent(context: typer.Context, agent_id: ListedId, as_json: Json = False) -> int:
    """Show an agent: its manifest, and today's usage of its models."""

    async def load(opened: App) -> tuple[Agent, SpendingToday, Taxonomy]:
        agent = await opened.agents.get(agent_id)
        return agent, await opened.agents.spending_today(agent), await opened.agents.taxonomy()

    agent, usage, taxonomy = with_app(context, load)
    retrieval, features = agent.manifest.retrieval, agent.manifest.features.as_json()
    rows = [
        ("Name", agent.name),
        ("Id", str(agent.agent_id)),
        ("Edition", f"{agent.edition}, by {agent.created_by}, {agent.updated_at.isoformat()}"),
        ("Branches", _branches(agent)),
        ("Version", agent.manifest.taxonomy_version),
        ("Candidates", f"{retrieval.bm25_topk} by words, {retrieval.vector_topk} by meaning"),
        ("Passages", f"{retrieval.rerank.final_topk} of {retrieval.rerank.candidates} reranked"),
        ("Tools", ", ".join(agent.manifest.mcp_tools_allowlist) or "none"),
        ("Features", ", ".join(f"{name} {_switch_text(value)}" for name, value in features.items())),
        ("Used today", f"{usage.tokens:,} of {usage.tokens_per_day:,} tokens"),
        ("", f"{usage.krw:,g} of {usage.krw_per_day:,g} won"),
    ]
    unresolved = agent.unresolved(taxonomy)
    if unresolved:
        rows.insert(4, ("Not in tree", ", ".join(unresolved)))
    return show_result(as_json, {**plain(agent.view(taxonomy)), "spending": usage}, Facts(rows))


@app.command("export")
def export(
    context: typer.Context,
    agent_id: ListedId,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it to this file.", show_default="stdout")
    ] = None,
    as_json: Json = False,
) -> int:
    """Print the current manifest as YAML, for version control or exchange."""
    agent = with_app(context, lambda opened: opened.agents.get(agent_id))
    from dtrag.governance.agents import manifest_yaml

    if output is not None:
        output.write_text(manifest_yaml(agent.manifest), "utf-8")
    if as_json:
        show_json(agent.manifest)
    elif output is None:
        data().out(manifest_yaml(agent.manifest), end="", highlight=False)
    return OK


@app.command("delete")
def delete(context: typer.Context, agent_id: ListedId, as_json: Json = False) -> int:
    """Delete an agent with all its editions; documents stay."""
    with_app(context, lambda opened: opened.agents.delete(agent_id))
    return show_result(as_json, {"deleted": agent_id}, f"Deleted {agent_id}")


@app.command("search")
def search(
    context: typer.Context,
    agent_id: ListedId,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words or a question.", show_default=False)],
    *,
    top_k: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Number of passages.", show_default="final_topk")
    ] = None,
    as_json: Json = False,
    form: Form = ListFormat.table,
) -> int:
    """Search passages in the branches of an agent."""

    async def run_search(opened: App) -> tuple[list[SearchResult], SearchMetrics]:
        return await opened.agents.search(await opened.agents.get(agent_id), query, top_k)

    results, metrics = with_app(context, run_search)
    from dtrag.delivery.cli.search import as_json_rows, listed, show, show_notes

    if as_json or form is not ListFormat.table:
        value = {"agent_id": agent_id, "query": query, "results": as_json_rows(results), "metrics": metrics}
        show_result(as_json or form, value, listed(results))
    else:
        show(results)
    show_notes(metrics, empty=False)
    return OK


def _branches(agent: Agent) -> str:
    return ", ".join("/".join(path.key) for path in agent.manifest.allowed_category_paths)


def _switch_text(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
