"""`dtrag models`: list installed models and download models."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from dtrag.delivery.cli.context import Json, invocation
from dtrag.delivery.cli.exit_codes import OK

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True, help="List and download models.")


@app.callback()
def models(context: typer.Context, as_json: Json = False) -> int:
    """List and download models. Without a command: list."""
    if context.invoked_subcommand is None:
        return _list(context, as_json)
    if as_json:
        raise typer.BadParameter(f"give --json after `models {context.invoked_subcommand}`")
    return OK


@app.command("list")
def list_models(context: typer.Context, as_json: Json = False) -> int:
    """List the known models, and whether they are installed and undamaged."""
    return _list(context, as_json)


@app.command("pull")
def pull(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name from the list.", show_default=False)],
    as_json: Json = False,
) -> int:
    """Download a model into the model folder and verify it. Uses the network."""
    settings = invocation(context).settings()
    from dtrag.adapters.embedders import fastembed, fastembed_models
    from dtrag.adapters.embedders.models import MODELS
    from dtrag.adapters.embedders.models import pull as embedder
    from dtrag.adapters.rerankers.models import PUBLISHED, published
    from dtrag.adapters.rerankers.models import pull as reranker
    from dtrag.delivery.cli.console import data, note, show_json
    from dtrag.errors import ModelNotFound

    if published(name) is not None:
        path = reranker(name, settings, note)
    elif name in {model.name for model in MODELS}:
        path = embedder(name, settings, note)
    elif fastembed_models.published(name) is not None:
        path = fastembed_models.pull(name, settings, note, fastembed.try_out)
    else:
        names = [model.name for model in MODELS]
        names += [model.name for model in fastembed_models.PUBLISHED] + [model.name for model in PUBLISHED]
        known = ", ".join(names)
        raise ModelNotFound(f"There is no model {name!r} that dtrag can download. Known: {known}.")
    if as_json:
        show_json({"model": name, "path": str(path)})
    else:
        data().print(str(path), soft_wrap=True)
    return OK


def _list(context: typer.Context, as_json: bool) -> int:
    settings = invocation(context).settings()
    from dtrag.adapters.embedders.factory import LOCAL
    from dtrag.adapters.embedders.fastembed_models import list_models as fastembed_embedders
    from dtrag.adapters.embedders.models import list_models as embedders
    from dtrag.adapters.rerankers.models import list_models as rerankers
    from dtrag.delivery.cli.console import data, megabytes, note, show_json, table

    known = [*embedders(settings), *fastembed_embedders(settings), *rerankers(settings)]
    if as_json:
        rows = [{**asdict(model), "path": str(model.path) if model.path else None} for model in known]
        show_json({"models": rows})
        return OK
    cells = [
        (
            model.name,
            ", ".join("any" if code == "*" else code for code in model.languages),
            megabytes(model.size),
            model.licence,
            model.state,
        )
        for model in known
    ]
    data().print(table(("Name", "Lang.", "Size", "Licence", "State"), cells, whole=("Size", "State")))
    used = {embedder.model.name for embedder in LOCAL.get(settings.embedder, ())}
    for model in known:
        # The other models are optional: no note if they are absent.
        if model.state == "damaged" or (model.name in used and model.state == "absent"):
            note(f"{model.name} is {model.state}. Download it with: dtrag models pull {model.name}")
    return OK
