"""`dtrag taxonomy`: versions of the category tree, and which one is in force."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from dtrag.delivery.cli.context import Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.core.access.taxonomy_impact import Preview, TreeVersion
    from dtrag.core.taxonomy.tree import Taxonomy
    from dtrag.governance.taxonomy import TaxonomyVersions
    from dtrag.settings import Settings

T = TypeVar("T")
app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="The category tree, in versions.")

Version = Annotated[str, typer.Argument(metavar="VERSION", help="Such as 1.4.0.", show_default=False)]
Wanted = Annotated[str, typer.Argument(metavar="VERSION", help="Such as 1.4.0; without one the tree in force.")]
Input = Annotated[Path, typer.Argument(metavar="FILE", help="A YAML file.", show_default=False)]
Widening = Annotated[bool, typer.Option("--accept-widening", help="Although somebody comes to see more.")]


@app.command("list")
def list_versions(context: typer.Context, as_json: Json = False) -> int:
    """All versions, the newest first."""
    found = _asked(context, lambda tree: tree.versions())
    from dtrag.delivery.cli.console import data, note, plural, show_json, table

    if as_json:
        show_json({"versions": [row.as_dict() for row in found]})
        return OK
    rows = [(row.version, _state(row), row.parent or "", f"{row.created_at:%Y-%m-%d}", row.rationale) for row in found]
    data().print(table(("Version", "State", "Parent", "Made", "Why"), rows, whole=("Version", "State", "Parent")))
    note(plural(len(found), "version"))
    return OK


@app.command("tree")
def show_tree(context: typer.Context, version: Wanted = "active", as_json: Json = False) -> int:
    """The tree, with the numbers of documents that hang on each category now."""

    async def both(tree: TaxonomyVersions) -> tuple[Taxonomy, dict[int, int]]:
        return await tree.tree(version), await tree.counts()

    taxonomy, counts = _asked(context, both)
    from dtrag.delivery.cli.console import data, note, plural, safe, show_json

    rows = sorted((taxonomy.path(node), counts.get(node, 0)) for node in taxonomy.nodes)
    if as_json:
        nodes = [{"path": list(path), "documents": number} for path, number in rows]
        show_json({"version": taxonomy.version, "nodes": nodes})
        return OK
    for path, number in rows:
        data().print(safe(f"{'  ' * (len(path) - 1)}{path[-1]}{f' ({number:,})' if number else ''}"), soft_wrap=True)
    note(f"Version {taxonomy.version}, {plural(len(rows), 'category')}")
    return OK


@app.command("diff")
def show_diff(
    context: typer.Context,
    version: Version,
    base: Annotated[str, typer.Argument(metavar="BASE", help="Without one the tree in force.")] = "active",
    as_json: Json = False,
) -> int:
    """What a version has and its base has not, and the other way round."""
    found = _asked(context, lambda tree: tree.diff(version, base))
    from dtrag.delivery.cli.console import data, note, safe, show_json

    if as_json:
        show_json(found.as_dict())
        return OK
    lines = [f"added    {'/'.join(path)}" for path in found.added]
    lines += [f"removed  {'/'.join(path)}" for path in found.removed]
    for kind in ("moved", "renamed", "merged"):
        lines += [f"{kind:8} {'/'.join(before)} -> {'/'.join(after)}" for before, after in getattr(found, kind)]
    for line in lines:
        data().print(safe(line), soft_wrap=True)
    if not lines:
        note(f"{found.base} and {found.version} are the same tree.")
    return OK


@app.command("propose")
def propose(context: typer.Context, file: Input, as_json: Json = False) -> int:
    """Keep the change of a file as a new version; it is not in force yet."""
    text = _read(file)
    return _proposed(_asked(context, lambda tree: tree.propose_file(text)), as_json)


@app.command("preview")
def preview(context: typer.Context, version: Version, as_json: Json = False) -> int:
    """Which documents would move, and who would see more or less."""
    return _previewed(_asked(context, lambda tree: tree.preview(version)), as_json, done=False)


@app.command("activate")
def activate(
    context: typer.Context, version: Version, *, accept_widening: Widening = False, as_json: Json = False
) -> int:
    """Bring a proposed version into force."""
    done = _asked(context, lambda tree: tree.activate(version, accept_widening=accept_widening))
    return _previewed(done, as_json, done=True)


@app.command("rollback")
def rollback(
    context: typer.Context, version: Version, *, accept_widening: Widening = False, as_json: Json = False
) -> int:
    """Go back to a version that was in force."""
    done = _asked(context, lambda tree: tree.rollback(version, accept_widening=accept_widening))
    return _previewed(done, as_json, done=True)


@app.command("export")
def export(context: typer.Context, version: Wanted = "active", as_json: Json = False) -> int:
    """Print the tree of a version as YAML."""
    text = _asked(context, lambda tree: tree.export(version))
    if as_json:
        from dtrag.delivery.cli.console import show_json

        show_json({"yaml": text})
        return OK
    typer.echo(text, nl=False)
    return OK


@app.command("import")
def import_tree(context: typer.Context, file: Input, as_json: Json = False) -> int:
    """Propose the categories of a YAML tree that are not in the tree in force."""
    text = _read(file)
    return _proposed(_asked(context, lambda tree: tree.import_tree(text, f"From {file.name}")), as_json)


def _proposed(found: TreeVersion, as_json: bool) -> int:
    from dtrag.delivery.cli.console import data, note, show_json

    if as_json:
        show_json(found.as_dict())
        return OK
    data().print(found.version)
    note(f"Not in force yet. What it would do: dtrag taxonomy preview {found.version}")
    return OK


def _previewed(found: Preview, as_json: bool, *, done: bool) -> int:
    from dtrag.delivery.cli.console import data, note, plural, safe, show_json, table

    if as_json:
        show_json(found.as_dict())
        return OK
    if found.moved:
        rows = [(f"{row.documents:,}", _named(row.before), _named(row.after), row.titles[0]) for row in found.moved]
        data().print(table(("Documents", "From", "To", "Such as"), rows, whole=("Documents",)))
    if found.access:
        seen = [(f"{row.kind} {row.name}", f"+{row.gained:,}", f"-{row.lost:,}") for row in found.access]
        data().print(table(("Who", "Gains", "Loses"), seen, whole=("Gains", "Loses")))
        for row in found.access:
            for sign, examples in (("+", row.gains), ("-", row.losses)):
                for example in examples:
                    data().print(safe(f"{row.name} {sign} {example.title} ({_named(example.path)})"), soft_wrap=True)
    said = f"{found.version} is in force in the place of" if done else f"{found.version} in the place of"
    note(f"{said} {found.active}: {plural(found.documents, 'document')} elsewhere, {len(found.access)} see other ones.")
    return OK


def _named(path: tuple[str, ...]) -> str:
    return "/".join(path) or "no category"


def _state(row: TreeVersion) -> str:
    return "in force" if row.active else ("was in force" if row.activated_at else "proposed")


def _read(file: Path) -> str:
    from dtrag.errors import InvalidInput
    from dtrag.governance.taxonomy_yaml import MAX_CHARACTERS

    try:
        if file.stat().st_size > 4 * MAX_CHARACTERS:
            raise InvalidInput(f"{file.name} is too large for a tree or a change of it.")
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file.name} cannot be read as a text in UTF-8. Name a YAML file.") from error


def _asked(context: typer.Context, ask: Callable[[TaxonomyVersions], Awaitable[T]]) -> T:
    return run_async(_with_tree(invocation(context).settings(), ask))


async def _with_tree(settings: Settings, ask: Callable[[TaxonomyVersions], Awaitable[T]]) -> T:
    from dtrag.app import open_app

    async with open_app(settings) as opened:
        return await ask(opened.taxonomy)
