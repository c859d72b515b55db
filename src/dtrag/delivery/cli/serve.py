"""`dtrag up`: the HTTP service."""

from __future__ import annotations

import gc
from typing import Annotated

import typer

from dtrag.delivery.cli.context import Json, invocation


def up(
    context: typer.Context,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on (DTRAG_HOST).", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port to listen on (DTRAG_PORT).", show_default="8001")
    ] = None,
    as_json: Json = False,
) -> int:
    """Run the HTTP service until Ctrl-C or SIGTERM."""
    settings = invocation(context).settings(host=host, port=port)
    gc.disable()  # garbage collection during imports takes a tenth of the start time
    from dtrag.delivery.api.server.serve import serve

    gc.freeze()
    gc.enable()

    def show(address: str) -> None:
        from dtrag.delivery.cli.console import show_json

        show_json({"address": address})

    return serve(settings, show if as_json else None)
