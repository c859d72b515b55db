"""The Typer application: all commands and the global options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dtrag import __version__
from dtrag.delivery.cli import (
    agents,
    answers,
    ask,
    audit,
    backup,
    cbr,
    cluster,
    documents,
    embedder,
    evaluate,
    imagine,
    ingest,
    installation,
    jobs,
    keys,
    lexicon,
    mcp,
    regulations,
    review,
    search,
    sign_in,
    sync,
    taxonomy,
    tools,
    trace,
    watch,
)
from dtrag.delivery.cli.context import invocation

# Plain help, not Rich panels: it fits 80 columns and saves 0.1 s of imports.
app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"dtrag {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of all data (DTRAG_DATA_DIR).")
    ] = None,
    database_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="External PostgreSQL (DTRAG_DATABASE_URL)."),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of unexpected errors.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Answers questions over your documents, with proof.

    First steps: `dtrag demo`, or `dtrag ingest FOLDER` and `dtrag ask "…"`.
    """
    current = invocation(context)
    current.data_dir, current.database_url, current.debug = data_dir, database_url, debug


app.command()(ingest.ingest)
app.command()(watch.watch)
app.command()(sync.sync)
app.command()(search.search)
app.command()(ask.ask)
app.command()(trace.trace)
app.command()(trace.feedback)
app.command()(trace.replay)
app.add_typer(answers.app, name="answers")
app.command()(answers.verify)
app.add_typer(documents.app, name="documents")
app.add_typer(agents.app, name="agents")
app.add_typer(jobs.app, name="jobs")
app.add_typer(keys.app, name="keys")
app.add_typer(sign_in.app, name="sign-in")
app.add_typer(audit.app, name="audit")
app.add_typer(review.app, name="review")
app.add_typer(cbr.app, name="cbr")
app.add_typer(taxonomy.app, name="taxonomy")
app.add_typer(regulations.app, name="regulations")
app.add_typer(lexicon.app, name="lexicon")
app.add_typer(imagine.app, name="imagine")
app.add_typer(tools.app, name="tools")
app.command()(mcp.mcp)
app.command()(backup.backup)
app.command()(backup.restore)
app.command()(backup.upgrade)
app.command()(backup.export)
app.command("up")(installation.up)
app.command()(ingest.demo)
app.command()(installation.doctor)
app.command()(installation.settings)
app.add_typer(installation.config_app, name="config")
app.add_typer(installation.models_app, name="models")
app.add_typer(embedder.app, name="embedder")
app.command()(installation.licences)
app.add_typer(evaluate.app, name="eval")
app.add_typer(cluster.app, name="cluster")
app.command()(ingest.reindex)
app.command()(evaluate.calibrate)
