"""`dtrag regulations`: list regulations, show an article, list citations."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.context import AsOf, Direct, Json
from dtrag.delivery.cli.exit_codes import OK
from dtrag.delivery.cli.regulation_changes import diff, stale
from dtrag.delivery.cli.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtrag.core.provisions import Amendment, ProvisionCitation, ShownProvision

MOST_AMENDMENTS = 5
"""Amendments in the terminal, the newest ones; `--json` has all."""

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help="List, show and compare regulations and their citations.",
)

app.command("verify")(verify)
app.command("diff")(diff)
app.command("stale")(stale)


@app.command("list")
def list_regulations(
    context: typer.Context, *, as_of: AsOf = None, direct: Direct = False, as_json: Json = False
) -> int:
    """List the regulations with their codes and numbers of articles, by name."""
    from dtrag.delivery.cli.reading import read
    from dtrag.delivery.local.results import RegulationList

    listing = read(context, "regulations", {"as_of": as_of}, RegulationList, direct=direct)
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
    elif as_of is not None:
        note(f"No regulation with a text of {as_of} is stored. Without --as-of, the list has those of today.")
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
    *,
    as_of: AsOf = None,
    direct: Direct = False,
    as_json: Json = False,
) -> int:
    """Show one article in full, with its amendments and citations.

    The name of the regulation may be shortened if it stays unique; its code
    works, too.
    """
    from dtrag.core.provisions import ShownProvision
    from dtrag.delivery.cli.reading import read

    arguments = {"reference": " ".join(reference), "as_of": as_of}
    shown = read(context, "provision", arguments, ShownProvision, direct=direct)
    from dtrag.delivery.cli.console import data, facts, place, safe, show_json

    if as_json:
        show_json(asdict(shown))
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
    from dtrag.delivery.local.results import CitationList

    arguments = {"regulation": regulation, "to": to, "as_of": as_of}
    citations = read(context, "citations", arguments, CitationList, direct=direct).citations
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
