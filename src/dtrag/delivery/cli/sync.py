"""`dtrag sync`: keeps branches of the tree in step with sources, rights included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.console import fill_vectors, ingest_progress, show_json
from dtrag.delivery.cli.context import Json, with_app
from dtrag.delivery.cli.exit_codes import OK, SOME_FILES_FAILED
from dtrag.delivery.cli.ingest import as_dict, show, show_plan
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.core.taxonomy.tree import CategoryPath


def sync(
    context: typer.Context,
    address: Annotated[str | None, typer.Argument(metavar="ADDRESS", show_default="all of the setting sources")] = None,
    category: Annotated[
        str | None, typer.Option("--category", metavar="PATH", help='Branch for its documents, such as "Shared drive".')
    ] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, but change nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Even if more than a third of the source is gone.")] = False,
    every: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Again after this time, until Ctrl-C.", min=1, max=86_400)
    ] = None,
    as_json: Json = False,
) -> int:
    """Bring branches of the tree into step with sources.

    Addresses: posix:/FOLDER, a folder with the rights of its users and groups on
    this machine; git+https://HOST/REPOSITORY.git; s3://BUCKET/PREFIX;
    sitemap+https://HOST/sitemap.xml.
    New and changed files are read, renamed ones are followed, and documents of
    deleted ones are removed. Rights come first: what may not be read at the
    source any more is hidden before anything else is done.
    """
    if (address is None) != (category is None):
        raise InvalidInput("Give an address and its category: dtrag sync posix:/srv/shared --category 'Shared drive'")

    async def run(opened: App) -> int:
        import asyncio

        sources = opened.configured_sources() if address is None else [opened.source(address, category or "")]
        while True:
            results = [
                await _sync(opened, *source, dry_run=dry_run, force=force, as_json=as_json) for source in sources
            ]
            if every is None:
                return max(results)
            await asyncio.sleep(every)

    return with_app(context, run)


async def _sync(opened: App, address: str, category: CategoryPath, *, dry_run: bool, force: bool, as_json: bool) -> int:
    if dry_run:
        plan = await opened.plan_sync(address)
        return show_plan(plan, as_json, force=force, changed=plan.changed)
    with ingest_progress() as update:
        report = await opened.sync(address, category, update, force=force)
    if not as_json:
        show(report)
    await fill_vectors(opened)
    if as_json:
        show_json({"category": str(category), **as_dict(report)})
    return SOME_FILES_FAILED if report.failed else OK
