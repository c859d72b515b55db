"""`dtrag ask`: an answer with its citations."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.context import AsOf, Categories, Direct, Json
from dtrag.delivery.cli.exit_codes import OK, UNFINISHED

if TYPE_CHECKING:
    from rich.console import Console

    from dtrag.core.documents import Answer

NO_LANGUAGE_MODEL = (
    "No language model is configured: answers are quoted from the documents. "
    "To have them written by one, set for example DTRAG_LLM=ollama:llama3.2"
)


def ask(
    context: typer.Context,
    question: Annotated[
        list[str],
        typer.Argument(metavar="QUESTION", help="The question; - reads standard input.", show_default=False),
    ],
    *,
    category: Categories = None,
    as_of: AsOf = None,
    full: Annotated[bool, typer.Option("--full", help="With quotations, sources and times, as in a pipe.")] = False,
    direct: Direct = False,
    as_json: Json = False,
) -> int:
    """Answer a question from the documents, with citations.

    On a terminal the answer fits the screen: the text and one line per source.
    Exit code 5: the time limit was reached.
    """
    from dtrag.delivery.cli.question import question_of
    from dtrag.delivery.cli.reading import read
    from dtrag.delivery.local.results import AnswerResult

    arguments = {"question": question_of(question), "categories": category, "as_of": as_of}
    result = read(context, "ask", arguments, AnswerResult, direct=direct)
    answer = result.answer
    from dtrag.delivery.cli import short_answer
    from dtrag.delivery.cli.console import data, note, show_json

    console = data()
    notes = notes_on(answer, empty=result.empty, full=full)
    if as_json:
        show_json(asdict(answer))
    elif console.is_terminal and not full:
        short_answer.show(answer, console, notes)
    else:
        show(answer, console)
    for text in notes:
        note(text)
    if full and answer.model is None:
        note(NO_LANGUAGE_MODEL)
    return UNFINISHED if answer.unfinished else OK


def show(answer: Answer, console: Console) -> None:
    """Print answer, citations, confidence with its reason, and the times of the stages."""
    from rich.text import Text

    from dtrag.core.answers.answer_words import answer_words
    from dtrag.core.answers.citation_labels import context_lines
    from dtrag.delivery.cli.console import marked_text, paragraph, place, safe
    from dtrag.delivery.cli.earlier_questions import earlier_question_lines
    from dtrag.delivery.cli.short_answer import confidences
    from dtrag.delivery.texts import in_language_of

    paragraph(console, marked_text(answer.text, answer.marked))
    for citation in answer.citations:
        console.print()
        paragraph(console, Text(f"[{citation.number}] {safe(citation.label)}", style="bold"))
        for line in context_lines(citation):
            paragraph(console, Text(safe(line), style="dim"), 4)
        quote = safe(citation.display)
        shown = Text(f"“{quote}”")
        for start, end in answer_words(answer.question, quote):
            shown.stylize("bold", start + 1, end + 1)
        paragraph(console, shown, 4)
        page = f"page {citation.page}, " if citation.page else ""
        source = f"{place(citation.source_url)}, {page}characters {citation.start:,}–{citation.end:,}"
        paragraph(console, Text(source, style="dim"), 4)
    console.print()
    for line in earlier_question_lines(answer):
        paragraph(console, Text(line, style="cyan"))
    reason = safe(in_language_of(answer.reason, answer.text))
    paragraph(console, Text(f"{confidences(answer)} {reason}", style="cyan"))
    stages = " · ".join(f"{name} {milliseconds:.1f} ms" for name, milliseconds in answer.stages.items())
    paragraph(console, Text(f"Stages: {stages}", style="dim"))
    if answer.model is not None:
        cost = f", {answer.cost:.2f} won" if answer.cost else ""
        paragraph(console, Text(f"Written by {safe(answer.model)}{cost}", style="dim"))


def notes_on(answer: Answer, *, empty: bool = False, full: bool = False) -> list[str]:
    """Notes for the reader of an answer; `empty` when the index has no documents, `full` with those on the settings."""
    from dtrag.delivery.cli.console import is_about_settings
    from dtrag.delivery.texts import in_language_of

    notes = ["The index is empty. Fill it with: dtrag ingest FOLDER"] if empty else []
    notes += [in_language_of(text, answer.text) for text in answer.notes if full or not is_about_settings(text)]
    for name in answer.degraded:
        if name in {"lexical", "vector"} and not answer.unfinished:
            notes.append(f"The {name} retrieval failed; only the other one was used. See: dtrag doctor")
    return notes


def show_notes(answer: Answer) -> None:
    """Print the notes on an answer to stderr."""
    from dtrag.delivery.cli.console import note

    for text in notes_on(answer):
        note(text)
