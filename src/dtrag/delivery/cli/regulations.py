"""`dtrag regulations`: list regulations, show an article, list citations."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.console import Rows, data, facts, note, place, plural, safe, show_json, show_result
from dtrag.delivery.cli.context import AsOf, Direct, Json, invocation, run_async
from dtrag.delivery.cli.exit_codes import FAILURE, OK
from dtrag.delivery.cli.regulation_changes import diff, documents_of, stale
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtrag.core.provisions import Amendment, ProvisionCitation, RegulationSummary, ShownProvision
    from dtrag.core.verification import QuotationStatus, VerifiedCitation, VerifiedQuotation
    from dtrag.settings import Settings

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


app.command("diff")(diff)
app.command("stale")(stale)


@app.command("list")
def list_regulations(
    context: typer.Context, *, as_of: AsOf = None, direct: Direct = False, as_json: Json = False
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
    return show_result(as_json, value, Rows(("Name", "Code", "Articles", "Appendices", "Addenda"), rows), notes=[count])


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
    regulation: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only citations of this regulation.", show_default=False)
    ] = None,
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
