"""`dtrag reindex`: the index anew from the stored texts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer

from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.settings import Settings


def reindex(context: typer.Context, as_json: Json = False) -> int:
    """Index every document anew from its stored text.

    Needed after a change of the embedder or the analyzer. Search goes on
    meanwhile, over what is indexed already.
    """
    started = time.perf_counter()
    documents = run_async(_reindex(invocation(context).settings()))
    seconds = time.perf_counter() - started
    from dtrag.delivery.cli.console import data, plural, show_json

    if as_json:
        show_json({"documents": documents, "seconds": round(seconds, 3)})
    else:
        data().print(f"{plural(documents, 'document')} indexed anew in {seconds:,.1f} s")
    return OK


async def _reindex(settings: Settings) -> int:
    from dtrag.app import open_app
    from dtrag.core.access.confinement import OWNER
    from dtrag.delivery.cli.console import plural
    from dtrag.delivery.cli.progress import progress

    async with open_app(settings) as app:
        total, _ = await app.counts(scope=OWNER)
        with progress("Indexing anew") as update:
            return await app.reindex(
                lambda done: update(done, total or None, f"{done:,} of {plural(total, 'document')}")
            )
