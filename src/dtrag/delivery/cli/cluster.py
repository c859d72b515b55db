"""`dtrag cluster convert`: the database of the settings distributed over the servers of a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from dtrag.delivery.cli.console import Rows, note, show_result
from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import OK

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Distribute the database over a cluster (Citus).")


@app.callback()
def cluster() -> None:
    """Distribute the database over a cluster (Citus)."""


@app.command()
def convert(
    context: typer.Context,
    shards: Annotated[
        int | None, typer.Option(min=1, max=256, help="Parts of each table; 8 unless given.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")] = False,
    as_json: Json = False,
) -> int:
    """Distribute the documents over the servers of a cluster.

    DTRAG_DATABASE_URL is the coordinator, as a superuser; nothing else may be connected. What is done already is left
    as it is: run it again after an interruption, and after an upgrade where `dtrag doctor` requests it.
    """
    from dtrag.adapters.postgres import cluster

    settings = invocation(context).settings()
    converting = cluster.convert(settings, shards=shards or cluster.SHARDS, dry_run=dry_run, tell=note)
    conversion = run_async(converting)
    if not conversion.steps:
        notes = ["Nothing to do: the database is distributed."]
    elif dry_run:
        notes = ["Nothing was changed. These are the steps of a conversion."]
    else:
        notes = ["Converted. Check it with: dtrag doctor"]
    notes += [f"{address}: {shards} shards of documents" for address, shards in conversion.shards.items()]
    rows = [(table, f"{count:,}") for table, count in conversion.rows.items()]
    show_result(as_json, conversion, Rows(("Table", "Rows"), rows), notes=notes)
    return OK
