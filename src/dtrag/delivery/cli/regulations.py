"""`dtrag regulations`: list regulations, show an article, list citations."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.context import Direct, Json
from dtrag.delivery.cli.exit_codes import OK

if TYPE_CHECKING:
    from dtrag.core.provisions import ProvisionCitation

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="List regulations, show articles and citations.")


@app.command("list")
def list_regulations(context: typer.Context, direct: Direct = False, as_json: Json = False) -> int:
    """List the regulations with their codes and numbers of articles, by name."""
    from dtrag.delivery.cli.reading import read
    from dtrag.delivery.local.results import RegulationList

    listing = read(context, "regulations", {}, RegulationList, direct=direct)
    from dtrag.delivery.cli.console import data, note, plural, show_json, table

    if as_json:
        show_json({"regulations": [asdict(summary) for summary in listing.regulations]})
        return OK
    if listing.regulations:
        rows = [
            (summary.name, summary.code, summary.articles, summary.appendices, summary.addenda)
            for summary in listing.regulations
        ]
        data().print(table(("Name", "Code", "Articles", "Appendices", "Addenda"), rows))
        articles = sum(summary.articles for summary in listing.regulations)
        note(f"{plural(len(rows), 'regulation')} with {plural(articles, 'article')}")
    elif listing.empty:
        note("There are no documents yet. Index a regulation book with: dtrag ingest FILE")
    else:
        note("None of the documents is a regulation. Index a regulation book with: dtrag ingest FILE")
    return OK


@app.command("show")
def show_provision(
    context: typer.Context,
    reference: Annotated[
        list[str],
        typer.Argument(
            metavar="REFERENCE", help='Such as "학칙 제21조", "학칙 별표 1", "학칙 부칙".', show_default=False
        ),
    ],
    direct: Direct = False,
    as_json: Json = False,
) -> int:
    """Show one article in full, with its citations.

    The name of the regulation may be shortened if it stays unique; its code
    works, too.
    """
    from dtrag.delivery.cli.reading import read
    from dtrag.delivery.local.results import ShownProvision

    shown = read(context, "provision", {"reference": " ".join(reference)}, ShownProvision, direct=direct)
    from dtrag.delivery.cli.console import data, facts, place, safe, show_json

    if as_json:
        show_json({**asdict(shown), "citations": [asdict(citation) for citation in shown.citations]})
        return OK
    rows = [
        ("Article", f"{shown.name}({shown.title})" if shown.title else shown.name),
        *([("Code", shown.code)] if shown.code else []),
        ("Category", "/".join(shown.taxonomy_path) or "no category"),
        ("Source", place(shown.source_url)),
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
    direct: Direct = False,
    as_json: Json = False,
) -> int:
    """List citations in articles, appendices and addenda, and their targets."""
    from dtrag.delivery.cli.reading import read
    from dtrag.delivery.local.results import CitationList

    citations = read(context, "citations", {"regulation": regulation}, CitationList, direct=direct).citations
    from dtrag.delivery.cli.console import data, note, plural, safe, show_json

    if as_json:
        show_json({"citations": [asdict(citation) for citation in citations]})
        return OK
    console = data()
    for citation in citations:
        line = f"{citation.source}: {_one_line(citation.text)}: {_meaning(citation)}"
        console.print(safe(line), soft_wrap=True)
    kinds = Counter(citation.kind for citation in citations)
    counted = ", ".join(f"{number:,} {kind}" for kind, number in kinds.most_common())
    note(f"{plural(len(citations), 'citation')}" + (f": {counted}" if counted else ""))
    return OK


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _meaning(citation: ProvisionCitation) -> str:
    """The kind, and the targets if any."""
    return f"{citation.kind} → {', '.join(citation.targets)}" if citation.targets else citation.kind
