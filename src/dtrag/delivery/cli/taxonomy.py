"""`dtrag taxonomy`: versions of the category tree: show, propose, activate and roll back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.console import ListFormat, Rows, Verbatim, plural, show_result
from dtrag.delivery.cli.context import Form, Json, text_of, with_app

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtrag.app import App
    from dtrag.core.access.taxonomy_impact import AccessChange, Preview, TreeVersion
    from dtrag.core.taxonomy.grades import TreeGrades
    from dtrag.core.taxonomy.operations import OperationRow
    from dtrag.core.taxonomy.versions import GradeChange

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="The category tree, in versions.")

Version = Annotated[str, typer.Argument(metavar="VERSION", help="Such as 1.4.0.", show_default=False)]
OptionalVersion = Annotated[str, typer.Argument(metavar="VERSION", help="Such as 1.4.0.")]
Input = Annotated[Path, typer.Argument(metavar="FILE", help="A YAML file.", show_default=False)]
Lowering = Annotated[bool, typer.Option("--accept-lowering", help="Accept that documents get a lower grade.")]
Widening = Annotated[bool, typer.Option("--accept-widening", help="Accept that a key or agent gains access.")]


@app.command("list")
def list_versions(context: typer.Context, as_json: Json = False, form: Form = ListFormat.table) -> int:
    """List all versions, the newest first."""
    versions = with_app(context, lambda opened: opened.taxonomy.versions())
    rows = [
        (row.version, _state(row), row.parent or "", f"{row.created_at:%Y-%m-%d}", row.rationale) for row in versions
    ]
    listed = Rows(("Version", "State", "Parent", "Created", "Why"), rows, whole=("Version", "State", "Parent"))
    value = {"versions": versions}
    return show_result(as_json or form, value, listed, notes=[plural(len(versions), "version")])


@app.command("tree")
def show_tree(
    context: typer.Context, version: OptionalVersion = "active", as_json: Json = False, form: Form = ListFormat.table
) -> int:
    """Show the tree with the current number of documents in each category."""

    async def load(opened: App) -> tuple[TreeGrades, dict[int, int]]:
        return opened.taxonomy.grades.of(await opened.taxonomy.tree(version)), await opened.taxonomy.counts()

    grades, counts = with_app(context, load)
    taxonomy = grades.taxonomy
    rows = sorted((taxonomy.path(node), counts.get(node, 0), grades.name(node)) for node in taxonomy.nodes)
    nodes = [{"path": list(path), "documents": number, "grade": grade} for path, number, grade in rows]
    lines = [
        f"{'  ' * (len(path) - 1)}{path[-1]}{f' ({number:,})' if number else ''}{f' [{grade}]' if grade else ''}"
        for path, number, grade in rows
    ]
    summary = f"Version {taxonomy.version}, {plural(len(rows), 'category')}"
    listed = Rows(("Category", "Documents", "Grade"), [("/".join(path), number, grade) for path, number, grade in rows])
    parts = lines if form is ListFormat.table else [listed]
    return show_result(as_json or form, {"version": taxonomy.version, "nodes": nodes}, *parts, notes=[summary])


@app.command("diff")
def show_diff(
    context: typer.Context,
    version: Version,
    base: Annotated[str, typer.Argument(metavar="BASE", help="The version to compare with.")] = "active",
    as_json: Json = False,
) -> int:
    """Show the differences between a version and its base."""
    changes = with_app(context, lambda opened: opened.taxonomy.diff(version, base))
    lines = [f"added    {'/'.join(path)}" for path in changes.added]
    lines += [f"removed  {'/'.join(path)}" for path in changes.removed]
    for kind in ("moved", "renamed", "merged"):
        lines += [f"{kind:8} {'/'.join(pair.before)} -> {'/'.join(pair.to)}" for pair in getattr(changes, kind)]
    lines += [f"graded   {'/'.join(row.path)}: {row.before or 'none'} -> {row.to or 'none'}" for row in changes.graded]
    same = "" if lines else f"{changes.base} and {changes.version} are the same tree."
    return show_result(as_json, changes, *lines, notes=[same])


@app.command("propose")
def propose(context: typer.Context, file: Input, as_json: Json = False) -> int:
    """Store the change in a file as a new version, not active yet."""
    text = _read(file)
    return _show_proposed(with_app(context, lambda opened: opened.taxonomy.propose_file(text)), as_json)


@app.command("grade")
def grade(
    context: typer.Context,
    path: Annotated[str, typer.Argument(metavar="CATEGORY", help="Such as HR/Pay.", show_default=False)],
    name: Annotated[str, typer.Argument(metavar="GRADE", help="Such as S; none takes it away.", show_default=False)],
    as_json: Json = False,
) -> int:
    """Propose a grade for a branch, as a new version that is not active yet."""
    change: OperationRow = {"op": "grade", "path": path.split("/"), "grade": "" if name == "none" else name}
    return _show_proposed(with_app(context, lambda opened: opened.taxonomy.propose([change])), as_json)


@app.command("preview")
def preview(context: typer.Context, version: Version, as_json: Json = False) -> int:
    """Show which documents would move, and whose access would change."""
    effects = with_app(context, lambda opened: opened.taxonomy.preview(version))
    return _show_effects(effects, as_json, done=False)


@app.command("activate")
def activate(
    context: typer.Context,
    version: Version,
    *,
    accept_widening: Widening = False,
    accept_lowering: Lowering = False,
    as_json: Json = False,
) -> int:
    """Activate a proposed version."""
    effects = with_app(
        context,
        lambda opened: opened.taxonomy.activate(
            version, accept_widening=accept_widening, accept_lowering=accept_lowering
        ),
    )
    return _show_effects(effects, as_json, done=True)


@app.command("rollback")
def rollback(
    context: typer.Context,
    version: Version,
    *,
    accept_widening: Widening = False,
    accept_lowering: Lowering = False,
    as_json: Json = False,
) -> int:
    """Return to an earlier active version."""
    effects = with_app(
        context,
        lambda opened: opened.taxonomy.rollback(
            version, accept_widening=accept_widening, accept_lowering=accept_lowering
        ),
    )
    return _show_effects(effects, as_json, done=True)


@app.command("export")
def export(context: typer.Context, version: OptionalVersion = "active", as_json: Json = False) -> int:
    """Print the tree of a version as YAML."""
    text = with_app(context, lambda opened: opened.taxonomy.export(version))
    return show_result(as_json, {"yaml": text}, Verbatim(text))


@app.command("import")
def import_tree(context: typer.Context, file: Input, as_json: Json = False) -> int:
    """Propose the categories of a YAML tree that are not in the active tree."""
    text = _read(file)
    proposed = with_app(context, lambda opened: opened.taxonomy.import_tree(text, f"From {file.name}"))
    return _show_proposed(proposed, as_json)


def _show_proposed(proposed: TreeVersion, as_json: bool) -> int:
    advice = f"Not active yet. Its effects: dtrag taxonomy preview {proposed.version}"
    return show_result(as_json, proposed, proposed.version, notes=[advice])


def _show_effects(effects: Preview, as_json: bool, *, done: bool) -> int:
    moved = [(f"{row.documents:,}", _path(row.before), _path(row.to), row.titles[0]) for row in effects.moved]
    examples = [
        f"{row.name} {sign} {example.title} ({_path(example.path)})"
        for row in effects.access
        for sign, examples in (("+", row.gains), ("-", row.losses))
        for example in examples
    ]
    replaced = f"{effects.version} {'has replaced' if done else 'would replace'} {effects.active}"
    counts = f"{plural(effects.documents, 'document')} moved, access of {len(effects.access)} changed"
    return show_result(
        as_json,
        effects,
        Rows(("Documents", "From", "To", "Such as"), moved, whole=("Documents",)),
        *impact_tables(effects.access, effects.lowered),
        *examples,
        notes=[f"{replaced}: {counts}."],
    )


def impact_tables(access: Sequence[AccessChange], lowered: Sequence[GradeChange]) -> tuple[Rows, Rows]:
    """Who gains or loses how many documents, and which categories get a lower grade."""
    reach = [(str(row), f"+{row.gained:,}", f"-{row.lost:,}") for row in access]
    falls = [(_path(row.path), row.before, row.to) for row in lowered]
    return (
        Rows(("Who", "Gains", "Loses"), reach, whole=("Gains", "Loses")),
        Rows(("Lower grade", "From", "To"), falls, whole=("From", "To")),
    )


def _path(path: tuple[str, ...]) -> str:
    return "/".join(path) or "no category"


def _state(row: TreeVersion) -> str:
    return "active" if row.active else ("was active" if row.activated_at else "proposed")


def _read(file: Path) -> str:
    from dtrag.governance.taxonomy import MAX_CHARACTERS

    return text_of(file, 4 * MAX_CHARACTERS, "a tree or a change of it.", "Give a YAML file.")
