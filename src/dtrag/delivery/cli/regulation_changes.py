"""`dtrag regulations diff` and `dtrag regulations stale`: what changed, and which citations are older than that."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.core.regulation_changes import pieces
from dtrag.delivery.cli.console import data, note, plural, safe, show_json, show_result
from dtrag.delivery.cli.context import AsOf, Direct, Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import OK
from dtrag.errors import InvalidInput, ParseFailed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from dtrag.core.documents import ChunkedDocument, ParsedDocument
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

    if as_json:
        show_json({"differences": differences})
    elif as_html:
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

    if len(compared) == 2:
        paths = [Path(name) for name in compared]
        for path in paths:
            if not path.is_file():
                raise InvalidInput(f"There is no file {path}. With a regulation: dtrag regulations diff NAME DATE DATE")
        from dtrag.regulations.changes import file_differences

        settings = invocation(context).settings()
        before, after = (run_async(_regulations(settings, path)) for path in paths)
        return file_differences((str(paths[0]), before), (str(paths[1]), after))
    if len(compared) < 3:
        raise InvalidInput("Give a regulation and two days, or two files.")
    name, before_day, after_day = " ".join(compared[:-2]), compared[-2], compared[-1]
    return [read(context, lambda source: source.difference(name, before_day, after_day), direct=direct)]


async def _regulations(settings: Settings, path: Path) -> list[ChunkedDocument]:
    """The regulations in a file. Raises `InvalidInput` for a file without any, or that cannot be read."""
    from dtrag.regulations.korean.structure import split

    documents = await documents_of(settings, path)
    regulations = [regulation for document in documents for regulation in split(document) or ()]
    if not regulations:
        raise InvalidInput(f"{path.name} contains no regulation.")
    return regulations


def show_difference(compared: RegulationDiff, console: Console) -> None:
    """Print the changes of one regulation side by side."""
    from rich.table import Table

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

    cell = Text()
    if heading:
        cell.append(f"{safe(heading)}\n", style="bold")
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

    citations = read(context, lambda source: source.stale(regulation, as_of), direct=direct)
    count = f"{plural(len(citations), 'citation')} older than what they cite"
    value = {"stale": citations}
    return show_result(as_json, value, *map(_described, citations), notes=[count])


def _described(citation: StaleCitation) -> str:
    """학칙 제3조 (2019-03-01) cites 학칙 제5조: amended on 2024-03-01."""
    source = f"{citation.source} ({citation.source_amended})" if citation.source_amended else citation.source
    day = f" on {citation.target_amended}" if citation.target_amended else ""
    return f"{source} cites {citation.target}: {citation.change}{day}"


_STYLE = """
body { font: 15px/1.6 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
table { border-collapse: collapse; table-layout: fixed; width: 100%; }
td, th { border: 1px solid #8886; padding: .5rem; text-align: left; vertical-align: top; white-space: pre-wrap; }
th[scope=row] { background: #8882; }
del { background: #f006; text-decoration: none; }
ins { background: #0a06; text-decoration: none; }
"""


def page(differences: Sequence[RegulationDiff]) -> str:
    """A page with the changes side by side, a table for each regulation."""
    title = ", ".join(dict.fromkeys(each.regulation for each in differences))[:200]
    body = "\n".join(_section(each) for each in differences)
    return (
        '<!doctype html>\n<html lang="ko">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{_shown(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _section(compared: RegulationDiff) -> str:
    heading = f"<h1>{_shown(compared.regulation)}</h1>"
    if not compared.changes:
        return f"{heading}\n<p>No changes between {_shown(compared.before)} and {_shown(compared.after)}.</p>"
    rows = "\n".join(_rows(change) for change in compared.changes)
    days = f"<tr><th>{_shown(compared.before)}</th><th>{_shown(compared.after)}</th></tr>"
    return f"{heading}\n<table>\n{days}\n{rows}\n</table>\n<p>{compared.unchanged:,} provisions unchanged.</p>"


def _rows(change: ProvisionChange) -> str:
    heading = f"{change.label}({change.title})" if change.title else change.label
    before, after = _marked(change.before, change.before_spans, "del"), _marked(change.after, change.after_spans, "ins")
    return (
        f'<tr><th scope="row" colspan="2">{_shown(heading)}: {change.change}</th></tr>\n'
        f"<tr><td>{before}</td><td>{after}</td></tr>"
    )


def _marked(text: str, spans: Sequence[Span], tag: str) -> str:
    return "".join(
        f"<{tag}>{_shown(part)}</{tag}>" if is_changed else _shown(part) for part, is_changed in pieces(text, spans)
    )


def _shown(text: str) -> str:
    from dtrag.core.text.hidden_characters import visible

    return escape(visible(text))


async def documents_of(settings: Settings, path: Path, most_characters: int | None = None) -> list[ParsedDocument]:
    """The documents in a file of any format that `dtrag ingest` reads, up to a number of characters.

    Raises `InvalidInput` with the reason for a file that cannot be read.
    """
    from dtrag.assembly import parser_process

    parser = parser_process(settings, settings.max_file_mb)
    documents: list[ParsedDocument] = []
    characters = 0
    try:
        async with aclosing(parser.parse(path, path.name)) as parsed:
            async for document in parsed:
                documents.append(document)
                characters += len(document.text)
                if most_characters is not None and characters > most_characters:
                    break
    except ParseFailed as error:
        raise InvalidInput(f"{path.name} cannot be read: {error}") from error
    finally:
        await parser.close()
    return documents
