"""`dtrag regulations`: list, show, compare and verify regulations and their citations."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.core.regulation_changes import pieces
from dtrag.delivery.cli.console import ListFormat, Rows, data, facts, note, place, plural, safe, show_json, show_result
from dtrag.delivery.cli.context import AsOf, Direct, Form, Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import FAILURE, OK
from dtrag.errors import InvalidInput, ParseFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console
    from rich.text import Text

    from dtrag.core.documents import ChunkedDocument, ParsedDocument
    from dtrag.core.provisions import Amendment, ProvisionCitation, RegulationSummary, ShownProvision
    from dtrag.core.regulation_changes import ProvisionChange, RegulationDiff, Span, StaleCitation
    from dtrag.core.verification import QuotationStatus, VerifiedCitation, VerifiedQuotation
    from dtrag.settings import Settings

OfRegulation = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only citations of this regulation.", show_default=False)
]
MOST_AMENDMENTS = 5
"""Amendments in the terminal, the newest ones; `--json` has all."""

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help="List, show and compare regulations and their citations.",
)


@app.command("verify")
def verify(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A text or document; - reads standard input.", show_default=False)
    ],
    *,
    regulation: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The regulation of references before any name.", show_default=False),
    ] = None,
    as_of: AsOf = None,
    direct: Direct = False,
    as_json: Json = False,
) -> int:
    """Check whether the articles and regulations that a text cites exist.

    Exit code 1: at least one citation is missing, repealed, unclear, or has
    another name or title.
    """
    from dtrag.delivery.cli.reading import read

    text = _standard_input() if file == "-" else run_async(_file_text(invocation(context).settings(), Path(file)))
    verified = read(context, lambda source: source.verify(text, regulation, as_of), direct=direct)
    if as_json:
        show_json(verified)
    else:
        line_starts = [0, *(place + 1 for place, character in enumerate(text) if character == "\n")]
        for citation in verified.citations:
            line = bisect_right(line_starts, citation.start)
            style = "dim" if citation.status == "exists" else None
            data().print(safe(_verified(citation, line)), soft_wrap=True, style=style)
        for quotation in verified.quotations:
            line = bisect_right(line_starts, quotation.start)
            style = "dim" if quotation.status == "verbatim" else None
            data().print(safe(_compared(quotation, line)), soft_wrap=True, style=style)
    if not verified.citations:
        note(f"The text has no citations of regulations ({plural(len(text), 'character')} read).")
    else:
        counts = ", ".join(f"{number:,} {status}" for status, number in verified.counts.items() if number)
        note(f"{plural(len(verified.citations), 'citation')}: {counts}")
    return OK if verified.all_exist else FAILURE


@app.command("list")
def list_regulations(
    context: typer.Context,
    *,
    as_of: AsOf = None,
    direct: Direct = False,
    as_json: Json = False,
    form: Form = ListFormat.table,
) -> int:
    """List the regulations with their codes and numbers of articles, by name."""
    from dtrag.delivery.cli.reading import Source, is_empty, read

    async def listed(source: Source) -> tuple[list[RegulationSummary], bool]:
        regulations = await source.regulations(as_of)
        return regulations, not regulations and await is_empty(source)

    regulations, empty = read(context, listed, direct=direct)
    rows = [
        (summary.name, summary.code, summary.articles, summary.appendices, summary.addenda) for summary in regulations
    ]
    articles = sum(summary.articles for summary in regulations)
    count = f"{plural(len(rows), 'regulation')} with {plural(articles, 'article')}"
    if not regulations and empty:
        count = "There are no documents yet. Index a regulation book with: dtrag ingest FILE"
    elif not regulations and as_of is not None:
        count = f"No regulation with a text of {as_of} is stored. Without --as-of, the list has those of today."
    elif not regulations:
        count = "None of the documents is a regulation. Index a regulation book with: dtrag ingest FILE"
    value = {"regulations": regulations}
    return show_result(
        as_json or form, value, Rows(("Name", "Code", "Articles", "Appendices", "Addenda"), rows), notes=[count]
    )


@app.command("show")
def show_provision(
    context: typer.Context,
    reference: Annotated[
        list[str],
        typer.Argument(
            metavar="REFERENCE", help='Such as "학칙 제21조", "학칙 별표 1", "학칙 부칙".', show_default=False
        ),
    ],
    *,
    as_of: AsOf = None,
    direct: Direct = False,
    as_json: Json = False,
) -> int:
    """Show one article in full, with its amendments and citations.

    The name of the regulation may be shortened if it stays unique; its code
    works, too.
    """
    from dtrag.delivery.cli.reading import read

    shown = read(context, lambda source: source.provision(" ".join(reference), as_of), direct=direct)
    if as_json:
        show_json(shown)
        return OK
    rows = [
        ("Article", f"{shown.name}({shown.title})" if shown.title else shown.name),
        *([("Code", shown.code)] if shown.code else []),
        ("Category", "/".join(shown.taxonomy_path) or "no category"),
        ("Source", place(shown.source_url)),
        *((name, text) for name, text in _details(shown) if text),
    ]
    console = data()
    console.print(facts(rows))
    console.print()
    console.print(safe(shown.text), soft_wrap=True)
    if shown.citations:
        console.print()
        for citation in shown.citations:
            console.print(safe(f"  {_one_line(citation.text)}: {_meaning(citation)}"), soft_wrap=True, style="dim")
    return OK


@app.command("citations")
def show_citations(
    context: typer.Context,
    *,
    regulation: OfRegulation = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="REFERENCE", help='Only citations of this provision in others ("학칙 제21조").', show_default=False
        ),
    ] = None,
    as_of: AsOf = None,
    direct: Direct = False,
    as_json: Json = False,
) -> int:
    """List citations in articles, appendices and addenda, and their targets."""
    from dtrag.delivery.cli.reading import read

    citations = read(context, lambda source: source.citations(regulation, to, as_of), direct=direct)
    lines = [f"{citation.source}: {_one_line(citation.text)}: {_meaning(citation)}" for citation in citations]
    kinds = Counter(citation.kind for citation in citations)
    counted = ", ".join(f"{number:,} {kind}" for kind, number in kinds.most_common())
    count = f"{plural(len(citations), 'citation')}" + (f": {counted}" if counted else "")
    return show_result(as_json, {"citations": citations}, *lines, notes=[count])


def _details(shown: ShownProvision) -> Iterator[tuple[str, str]]:
    """Rows with the state, the dates and the links of a provision; "" for what it does not have."""
    yield "State", ", ".join(["deleted (삭제)"] * shown.deleted + ["regulation repealed (폐지)"] * shown.repealed)
    yield "Amended", _amended(shown.amendments)
    yield "Effective", ", ".join(shown.effective_dates)
    yield "Valid", _validity(shown.effective_from, shown.superseded_from)
    yield "Editions", ", ".join(shown.editions) if len(shown.editions) > 1 else ""
    yield "Names", ", ".join(_within(shown.regulation, name) for name in shown.names)
    yield "Named by", ", ".join(_within(shown.regulation, name) for name in shown.named_by)


def _validity(start: str | None, end: str | None) -> str:
    """from 2020-03-01 until 2024-03-01; the last day is the one before."""
    return f"from {start}" + (f", replaced on {end}" if end else "") if start else ""


def _amended(amendments: Sequence[Amendment]) -> str:
    """The newest amendments: `2024-03-01 개정 제1항`."""
    newest = sorted(amendments, key=lambda amendment: amendment.date or "", reverse=True)
    parts = [
        " ".join(filter(None, (entry.date, entry.kind, f"제{entry.paragraph}항" if entry.paragraph else "")))
        for entry in newest[:MOST_AMENDMENTS]
    ]
    return ", ".join(parts) + (f" and {len(newest) - MOST_AMENDMENTS} more" if len(newest) > MOST_AMENDMENTS else "")


def _within(regulation: str, name: str) -> str:
    """The name of a provision, without that of its own regulation."""
    return name.removeprefix(f"{regulation} ")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _meaning(citation: ProvisionCitation) -> str:
    """The kind, and the targets if any."""
    return f"{citation.kind} → {', '.join(citation.targets)}" if citation.targets else citation.kind


MOST_CHARACTERS = 1_000_000
"""Maximum read from standard input or a file; how much is verified at once is decided later."""

IN_WORDS: dict[QuotationStatus, str] = {
    "verbatim": "verbatim in",
    "same_letters": "in other blanks or punctuation in",
    "different": "not in the text of",
}


def _verified(citation: VerifiedCitation, line: int) -> str:
    """Line 3: 학칙 제99조: missing. 학칙 has no 제99조. There are 제1조–제23조."""
    described = f"line {line}: {' '.join(citation.text.split())}: {citation.status}"
    if citation.status == "exists":
        return f"{described} → {citation.target}" + (f"({citation.title})" if citation.title else "")
    described += f". {citation.reason}" if citation.reason else ""
    return described + (f" There are {citation.range}." if citation.range else "")


def _compared(quotation: VerifiedQuotation, line: int) -> str:
    """Line 3: “휴학은 4학기까지로 한다.”: verbatim in 학칙 제2조."""
    described = f"line {line}: “{' '.join(quotation.text.split())}”"
    if quotation.target is None:
        return f"{described}: not compared: there is no text of what is cited beside it"
    return f"{described}: {IN_WORDS[quotation.status]} {quotation.target}"


def _standard_input() -> str:
    """The text of standard input. Raises `InvalidInput` when it is not UTF-8."""
    try:
        return sys.stdin.read(MOST_CHARACTERS)
    except UnicodeDecodeError as error:
        raise InvalidInput("Standard input is not UTF-8 text.") from error


async def _file_text(settings: Settings, path: Path) -> str:
    """The text of a file. Raises `InvalidInput` for one that cannot be read."""
    return "\n\n".join(document.text for document in await documents_of(settings, path, MOST_CHARACTERS))


WIDTH = 80
"""Columns of a comparison; on a wide terminal up to twice as many."""
STYLES = {"amended": "yellow", "added": "green", "deleted": "red"}


@app.command("diff")
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
    style = STYLES[change.change]
    return (
        _cell(_heading(change), change.before, change.before_spans, style),
        _cell("", change.after, change.after_spans, style),
    )


def _heading(change: ProvisionChange) -> str:
    title = f"({change.title})" if change.title else ""
    return f"{change.label}{title}: {change.change}"


def _cell(heading: str, text: str, spans: Sequence[Span], style: str) -> Text:
    from rich.text import Text

    cell = Text()
    if heading:
        cell.append(f"{safe(heading)}\n", style="bold")
    for part, is_changed in pieces(text, spans):
        cell.append(safe(part), style=style if is_changed else None)
    return cell


@app.command("stale")
def stale(
    context: typer.Context,
    *,
    regulation: OfRegulation = None,
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
    before, after = _marked(change.before, change.before_spans, "del"), _marked(change.after, change.after_spans, "ins")
    return (
        f'<tr><th scope="row" colspan="2">{_shown(_heading(change))}</th></tr>\n'
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
