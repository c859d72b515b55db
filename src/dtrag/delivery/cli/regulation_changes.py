"""`dtrag regulations diff` and `dtrag regulations stale`: what changed, and which citations are older than that."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.context import AsOf, Direct, Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import OK
from dtrag.delivery.cli.file_documents import documents_of
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.text import Text

    from dtrag.core.documents import ChunkedDocument
    from dtrag.core.regulation_changes import ProvisionChange, RegulationDiff, Span, StaleCitation
    from dtrag.settings import Settings

WIDTH = 80
"""Columns of a comparison; on a wide terminal up to twice as many."""
STYLES = {"amended": "yellow", "added": "green", "deleted": "red"}


def diff(
    context: typer.Context,
    compared: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME DATE DATE | FILE FILE",
            help='A regulation and two days ("학칙" 2023-03-01 2024-03-01), or two files.',
            show_default=False,
        ),
    ],
    *,
    as_html: Annotated[bool, typer.Option("--html", help="Print an HTML page instead of text.")] = False,
    direct: Direct = False,
    as_json: Json = False,
) -> int:
    """Compare a regulation on two days, or the regulations of two files.

    The first text is on the left. Files need not be in the index.
    """
    if as_html and as_json:
        raise InvalidInput("Use --html or --json, not both.")
    differences = _differences(context, compared, direct=direct)
    from dtrag.delivery.cli.console import data, note, plural, show_json

    if as_json:
        show_json({"differences": [asdict(each) for each in differences]})
    elif as_html:
        from dtrag.delivery.cli.regulation_changes_html import page

        data().file.write(page(differences))
    else:
        for each in differences:
            show_difference(each, data())
    changes = sum(len(each.changes) for each in differences)
    unchanged = sum(each.unchanged for each in differences)
    note(f"{plural(changes, 'change')}, {plural(unchanged, 'provision')} unchanged")
    return OK


def _differences(context: typer.Context, compared: Sequence[str], *, direct: bool) -> list[RegulationDiff]:
    from dtrag.delivery.cli.reading import read
    from dtrag.delivery.local.results import RegulationDifferences

    if len(compared) == 2:
        paths = [Path(name) for name in compared]
        for path in paths:
            if not path.is_file():
                raise InvalidInput(f"There is no file {path}. With a regulation: dtrag regulations diff NAME DATE DATE")
        from dtrag.packs.regulation_ko.changes import file_differences

        settings = invocation(context).settings()
        before, after = (run_async(_regulations(settings, path)) for path in paths)
        return file_differences((str(paths[0]), before), (str(paths[1]), after))
    if len(compared) < 3:
        raise InvalidInput("Give a regulation and two days, or two files.")
    arguments = {"regulation": " ".join(compared[:-2]), "before": compared[-2], "after": compared[-1]}
    return read(context, "regulation_diff", arguments, RegulationDifferences, direct=direct).differences


async def _regulations(settings: Settings, path: Path) -> list[ChunkedDocument]:
    """The regulations in a file. Raises `InvalidInput` for a file without any, or that cannot be read."""
    from dtrag.packs.regulation_ko.structure import split

    documents = await documents_of(settings, path)
    regulations = [regulation for document in documents for regulation in split(document) or ()]
    if not regulations:
        raise InvalidInput(f"{path.name} contains no regulation.")
    return regulations


def show_difference(compared: RegulationDiff, console: Console) -> None:
    """Print the changes of one regulation side by side."""
    from rich.table import Table

    from dtrag.delivery.cli.console import safe

    if not compared.changes:
        console.print(safe(f"{compared.regulation}: no changes between {compared.before} and {compared.after}"))
        return
    table = Table(
        title=safe(compared.regulation),
        title_justify="left",
        width=max(WIDTH, min(console.width, 2 * WIDTH)) if console.is_terminal else WIDTH,
        show_lines=True,
        pad_edge=False,
    )
    table.add_column(safe(compared.before), ratio=1, overflow="fold")
    table.add_column(safe(compared.after), ratio=1, overflow="fold")
    for change in compared.changes:
        table.add_row(*_cells(change))
    console.print(table)


def _cells(change: ProvisionChange) -> tuple[Text, Text]:
    heading = f"{change.label}({change.title})" if change.title else change.label
    style = STYLES[change.change]
    return (
        _cell(f"{heading}: {change.change}", change.before, change.before_spans, style),
        _cell("", change.after, change.after_spans, style),
    )


def _cell(heading: str, text: str, spans: Sequence[Span], style: str) -> Text:
    from rich.text import Text

    from dtrag.delivery.cli.console import safe

    cell = Text()
    if heading:
        cell.append(f"{safe(heading)}\n", style="bold")
    from dtrag.core.regulation_changes import pieces

    for part, is_changed in pieces(text, spans):
        cell.append(safe(part), style=style if is_changed else None)
    return cell


def stale(
    context: typer.Context,
    *,
    regulation: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only citations of this regulation.", show_default=False)
    ] = None,
    as_of: AsOf = None,
    direct: Direct = False,
    as_json: Json = False,
) -> int:
    """List articles that cite something amended or repealed after them."""
    from dtrag.delivery.cli.reading import read
    from dtrag.delivery.local.results import StaleCitations

    arguments = {"regulation": regulation, "as_of": as_of}
    citations = read(context, "stale", arguments, StaleCitations, direct=direct).citations
    from dtrag.delivery.cli.console import data, note, plural, safe, show_json

    if as_json:
        show_json({"stale": [asdict(citation) for citation in citations]})
        return OK
    for citation in citations:
        data().print(safe(_described(citation)), soft_wrap=True)
    note(f"{plural(len(citations), 'citation')} older than what they cite")
    return OK


def _described(citation: StaleCitation) -> str:
    """학칙 제3조 (2019-03-01) cites 학칙 제5조: amended on 2024-03-01."""
    source = f"{citation.source} ({citation.source_amended})" if citation.source_amended else citation.source
    day = f" on {citation.target_amended}" if citation.target_amended else ""
    return f"{source} cites {citation.target}: {citation.change}{day}"
