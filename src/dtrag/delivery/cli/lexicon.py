"""`dtrag lexicon`: everyday words and the official words for them in Korean regulations."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.core.response import plain
from dtrag.delivery.cli.console import ListFormat, Rows, Verbatim, plural, show_result
from dtrag.delivery.cli.context import Direct, Form, Json, question_of, text_of, with_app
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from dtrag.app import App
    from dtrag.core.lexicon_entry import LexiconEntry
    from dtrag.regulations.korean.lexicon_entries import Suggestion

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Everyday words and their official synonyms.")

_MAX_FILE_BYTES = 4_000_000
_EXPORT = "Give a file of `dtrag lexicon export`."
NO_ENTRIES = "There are no own entries. Add one with: dtrag lexicon add --spoken FORM --official WORD"


@app.command("list")
def list_entries(
    context: typer.Context,
    field: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Entries of one field, such as leave, or own.", show_default=False),
    ] = None,
    direct: Direct = False,
    as_json: Json = False,
    form: Form = ListFormat.table,
) -> int:
    """List the fields with their numbers of entries; with --field the entries.

    The entries of the field own were added here and can be removed.
    """
    from dtrag.regulations.korean.lexicon import OWN_FIELD, built_in

    rows = [{"field": OWN_FIELD, **plain(entry)} for entry in _own_entries(context, direct=direct)] + [
        {"field": entry.field, "number": None, "spoken": list(entry.spoken), "official": list(entry.official)}
        for entry in built_in().entries
    ]
    fields = Counter(str(row["field"]) for row in rows)
    counted = [(OWN_FIELD, fields.pop(OWN_FIELD, 0)), *sorted(fields.items())]
    if field is not None and field not in dict(counted):
        names = ", ".join(name for name, _ in counted)
        raise InvalidInput(f"There is no field {field[:40]!r} in the lexicon. Fields: {names}.")
    chosen = [row for row in rows if field in (None, row["field"])]
    if field is None:
        summary = f"{plural(len(rows), 'entry')}. Entries of a field: dtrag lexicon list --field NAME"
        return show_result(as_json or form, {"entries": chosen}, Rows(("Field", "Entries"), counted), notes=[summary])
    words = [
        (row["field"], row["number"] or "", *(", ".join(row[name]) for name in ("spoken", "official")))
        for row in chosen
    ]
    parts = map(_line, chosen) if form is ListFormat.table else [Rows(("Field", "Number", "Spoken", "Official"), words)]
    return show_result(as_json or form, {"entries": chosen}, *parts, notes=[] if chosen else [NO_ENTRIES])


@app.command("check")
def check(
    context: typer.Context,
    question: Annotated[
        list[str],
        typer.Argument(metavar="QUESTION", help="A question; - reads standard input.", show_default=False),
    ],
    direct: Direct = False,
    as_json: Json = False,
) -> int:
    """Show the entries that match a question, and its unknown words."""
    from dtrag.core.text.questions import content
    from dtrag.regulations.korean.lexicon import built_in, words_of
    from dtrag.regulations.korean.lexicon_entries import for_matching

    text = question_of(question)
    own = for_matching(_own_entries(context, direct=direct))
    lexicon = built_in().with_entries(own) if own else built_in()
    words = words_of(text)
    matches = lexicon.matches(text)
    explained = {position for match in matches for position in match.words}
    meant = set(words_of(content(text)))
    unknown = [word for position, word in enumerate(words) if position not in explained and word in meant]
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
    lines = [
        f"{' '.join(words[position] for position in match.words)}"
        f"{'' if match.by == 'words' else f', read as {match.form}'} → {', '.join(match.entry.official)} "
        f"({match.entry.field})"
        for match in matches
    ]
    none = "" if matches else "No entry of the lexicon matches this question: it is searched unchanged."
    unmatched = f"No entry matches: {', '.join(unknown)}" if unknown else ""
    value = {"question": text, "matches": rows, "unknown": unknown}
    return show_result(as_json, value, *lines, notes=[none, unmatched])


@app.command("add")
def add(
    context: typer.Context,
    *,
    spoken: Annotated[
        list[str] | None,
        typer.Option(metavar="FORM", help="Everyday words, such as 책을 잃어버; may be repeated.", show_default=False),
    ] = None,
    official: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD", help="A word of the regulations, the best one first; may be repeated.", show_default=False
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Add the entries of an export.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> int:
    """Add an own entry, or those of a file. It applies to the next question.

    An entry that exists already is left out. If one is wrong, none is added.
    """
    if (file is None) == (not spoken and not official):
        raise typer.BadParameter("give either --spoken and --official, or --file alone")

    async def added(opened: App) -> list[LexiconEntry]:
        if file is not None:
            return await opened.lexicon.add_toml(text_of(file, _MAX_FILE_BYTES, f"own entries. {_EXPORT}", _EXPORT))
        return await opened.lexicon.add_all([(spoken or [], official or [])])

    entries = with_app(context, added)
    rows = [plain(entry) for entry in entries]
    count = f"{plural(len(entries), 'entry')} added" if entries else "Nothing was added: the lexicon has this already."
    return show_result(as_json, {"added": rows}, *map(_line, rows), notes=[count])


@app.command("remove")
def remove(
    context: typer.Context,
    entry: Annotated[
        str, typer.Argument(metavar="NUMBER|FORM", help="Its number, or one of its forms.", show_default=False)
    ],
    as_json: Json = False,
) -> int:
    """Remove an own entry. This applies to the next question."""
    number_or_form = int(entry) if entry.isdecimal() and len(entry) < 10 else entry
    removed = with_app(context, lambda opened: opened.lexicon.remove(number_or_form))
    return show_result(as_json, {"removed": removed}, f"Removed {_line(plain(removed))}")


@app.command("suggest")
def suggest(
    context: typer.Context,
    *,
    least: Annotated[int, typer.Option(min=1, help="Different questions that must support an entry.")] = 2,
    as_json: Json = False,
) -> int:
    """Print entries that corrected answers suggest, as TOML for `dtrag lexicon add --file`.

    Nothing is added: review the file first.
    """

    async def computed(opened: App) -> list[Suggestion]:
        return await opened.lexicon.suggest(await opened.review.corrections(), least)

    suggested = with_app(context, computed)
    from dtrag.regulations.korean.lexicon_entries import as_toml

    none = f"No entry is supported by {plural(least, 'corrected question')}."
    count = f"{plural(len(suggested), 'entry')} suggested, none added." if suggested else none
    value = {"suggestions": [suggestion.as_dict() for suggestion in suggested]}
    return show_result(as_json, value, Verbatim(as_toml(suggested) if suggested else ""), notes=[count])


@app.command("export")
def export(context: typer.Context, as_json: Json = False) -> int:
    """Print the own entries as TOML, for `dtrag lexicon add --file`."""
    text = with_app(context, lambda opened: opened.lexicon.export())
    return show_result(as_json, {"toml": text}, Verbatim(text))


def _own_entries(context: typer.Context, *, direct: bool) -> list[LexiconEntry]:
    from dtrag.delivery.cli.reading import read

    return read(context, lambda source: source.own_entries(), direct=direct)


def _line(row: Mapping[str, Any]) -> str:
    number = "" if row["number"] is None else f"{row['number']}: "
    return f"{number}{', '.join(row['spoken'])} → {', '.join(row['official'])}"
