"""`dtrag lexicon`: everyday words and the official words for them in Korean regulations."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from dtrag.delivery.cli.context import Json
from dtrag.delivery.cli.exit_codes import OK

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Everyday words and their official synonyms.")


@app.command("list")
def list_entries(
    field: Annotated[
        str | None, typer.Option(metavar="NAME", help="Entries of one field, such as leave.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> int:
    """List the fields with their numbers of entries; with --field the entries."""
    from dtrag.delivery.cli.console import data, note, plural, safe, show_json, table
    from dtrag.errors import InvalidInput
    from dtrag.packs.regulation_ko.lexicon import built_in

    entries = built_in().entries
    fields = Counter(entry.field for entry in entries)
    if field is not None and field not in fields:
        raise InvalidInput(f"There is no field {field[:40]!r} in the lexicon. Fields: {', '.join(sorted(fields))}.")
    chosen = [entry for entry in entries if field is None or entry.field == field]
    if as_json:
        rows = [{"field": e.field, "spoken": list(e.spoken), "official": list(e.official)} for e in chosen]
        show_json({"entries": rows})
    elif field is None:
        data().print(table(("Field", "Entries"), sorted(fields.items())))
        note(f"{plural(len(entries), 'entry')}. Entries of a field: dtrag lexicon list --field NAME")
    else:
        console = data()
        for entry in chosen:
            console.print(safe(f"{', '.join(entry.spoken)} → {', '.join(entry.official)}"), soft_wrap=True)
    return OK


@app.command("check")
def check(
    question: Annotated[
        list[str],
        typer.Argument(metavar="QUESTION", help="A question; - reads standard input.", show_default=False),
    ],
    as_json: Json = False,
) -> int:
    """Show the entries that match a question, and its unknown words."""
    from dtrag.core.text.questions import content
    from dtrag.delivery.cli.console import data, note, safe, show_json
    from dtrag.delivery.cli.question import question_of
    from dtrag.packs.regulation_ko.lexicon import built_in, words_of

    text = question_of(question)
    words = words_of(text)
    matches = built_in().matches(text)
    explained = {position for match in matches for position in match.words}
    meant = set(words_of(content(text)))
    unknown = [word for position, word in enumerate(words) if position not in explained and word in meant]
    if as_json:
        rows = [
            {
                "words": [words[position] for position in match.words],
                "form": match.form,
                "official": list(match.entry.official),
                "field": match.entry.field,
                "corrected": match.by == "spelling",
                "by": match.by,
            }
            for match in matches
        ]
        show_json({"question": text, "matches": rows, "unknown": unknown})
        return OK
    console = data()
    for match in matches:
        matched = " ".join(words[position] for position in match.words)
        spelling = "" if match.by == "words" else f", read as {match.form}"
        official = ", ".join(match.entry.official)
        console.print(safe(f"{matched}{spelling} → {official} ({match.entry.field})"), soft_wrap=True)
    if not matches:
        note("No entry of the lexicon matches this question: it is searched unchanged.")
    if unknown:
        note(f"No entry matches: {', '.join(unknown)}")
    return OK
