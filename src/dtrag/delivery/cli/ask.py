"""`dtrag ask`: an answer with its citations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dtrag.delivery.cli.console import (
    cropped,
    data,
    is_about_settings,
    marked_text,
    note,
    paragraph,
    place,
    safe,
    show_json,
)
from dtrag.delivery.cli.context import AsOf, Categories, Direct, Json, question_of
from dtrag.delivery.cli.exit_codes import OK, UNFINISHED

if TYPE_CHECKING:
    from rich.console import Console

    from dtrag.core.documents import Answer, Citation, EarlierQuestion

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
    from dtrag.delivery.cli.reading import Source, check_categories, is_empty, read

    text = question_of(question)

    async def answer_of(source: Source) -> tuple[Answer, bool]:
        await check_categories(source, category)
        answer = await source.ask(text, {"taxonomy_paths": category} if category else None, as_of)
        return answer, not answer.citations and await is_empty(source)

    answer, empty = read(context, answer_of, direct=direct)
    console = data()
    notes = notes_on(answer, empty=empty, full=full)
    if as_json:
        show_json(answer)
    elif console.is_terminal and not full:
        show_short(answer, console, notes)
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
    from dtrag.delivery.texts import in_language_of

    paragraph(console, marked_text(answer.text, answer.marked))
    for citation in answer.citations:
        console.print()
        paragraph(console, f"[{citation.number}] {safe(citation.label)}", style="bold")
        for line in context_lines(citation):
            paragraph(console, line, 4, style="dim")
        quote = safe(citation.display)
        shown = Text(f"“{quote}”")
        for start, end in answer_words(answer.question, quote):
            shown.stylize("bold", start + 1, end + 1)
        paragraph(console, shown, 4)
        page = f"page {citation.page}, " if citation.page else ""
        source = f"{place(citation.source_url)}, {page}characters {citation.start:,}–{citation.end:,}"
        source += "" if citation.ocr_confidence is None else f", read by OCR (confidence {citation.ocr_confidence}%)"
        paragraph(console, source, 4, style="dim")
    console.print()
    for line in earlier_question_lines(answer):
        paragraph(console, line, style="cyan")
    reason = safe(in_language_of(answer.text, answer.reason_statements))
    paragraph(console, f"{confidences(answer)} {reason}", style="cyan")
    stages = " · ".join(f"{name} {milliseconds:.1f} ms" for name, milliseconds in answer.stages.items())
    paragraph(console, f"Stages: {stages}", style="dim")
    if answer.model is not None:
        cost = f", {answer.cost:.2f} won" if answer.cost else ""
        paragraph(console, f"Written by {safe(answer.model)}{cost}", style="dim")


def notes_on(answer: Answer, *, empty: bool = False, full: bool = False) -> list[str]:
    """Notes for the reader of an answer; `empty` when the index has no documents, `full` with those on the settings."""
    from dtrag.delivery.texts import in_language_of

    notes = ["The index is empty. Fill it with: dtrag ingest FOLDER"] if empty else []
    notes += [
        in_language_of(answer.text, [statement])
        for statement in answer.note_statements
        if full or not is_about_settings(statement.text)
    ]
    failed = [name for name in answer.degraded if name in {"lexical", "vector"} and not answer.unfinished]
    notes += [f"The {name} retrieval failed; only the other one was used. See: dtrag doctor" for name in failed]
    return notes


def show_notes(answer: Answer) -> None:
    """Print the notes on an answer to stderr."""
    for text in notes_on(answer):
        note(text)


MOST_SOURCES = 6
"""Maximum lines of sources; answers quote at most five sentences, and a language model may cite more."""
LEAST_FILE_NAME = 16
"""Minimum cells of a file name beside a long label."""
LEAST_TEXT = 5
"""Minimum lines of text on a terminal of any height."""


def show_short(answer: Answer, console: Console, notes: Sequence[str] = ()) -> None:
    """Print the answer so that it fits the terminal together with `notes`, which follow it.

    Quotations that do not fit are cut, with a hint. The text of a language model is always complete.
    """
    from rich.text import Text

    sources = _source_lines(answer.citations, console.width)
    closing = [Text(cropped(line, console.width), style="cyan") for line in earlier_question_lines(answer)]
    closing += Text(_closing(answer), style="cyan").wrap(console, console.width)
    below = len(sources) + bool(sources) + 1 + len(closing) + sum(_height(note, console.width) for note in notes)
    lines = list(marked_text(answer.text, answer.marked).wrap(console, console.width, overflow="fold"))
    available = max(LEAST_TEXT, console.height - 1 - below)  # the last line is for the next prompt
    if answer.model is None and len(lines) > available:
        hidden = len(lines) - available + 1
        lines = [*lines[: available - 1], Text(f"… {hidden} more lines: dtrag ask --full", style="dim")]
    for line in lines:
        paragraph(console, line)
    if sources:
        console.print()
    for source in sources:
        console.print(Text(source, style="bold"), soft_wrap=True)
    console.print()
    for line in closing:
        console.print(line, soft_wrap=True)


def _source_lines(citations: Sequence[Citation], width: int) -> list[str]:
    """`[1] [2] Leave and Holidays, Annual leave · leave.md`: one line per passage, in the order of its first number."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for citation in citations:
        numbers.setdefault((safe(citation.label), _file_name(citation.source_url)), []).append(citation.number)
    lines = [
        _source_line(" ".join(f"[{number}]" for number in cited), label, file, width)
        for (label, file), cited in numbers.items()
    ]
    if len(lines) > MOST_SOURCES:
        hidden = len(lines) - MOST_SOURCES + 1
        lines = [*lines[: MOST_SOURCES - 1], f"… {hidden} more sources: dtrag ask --full"]
    return lines


def _source_line(marks: str, label: str, file: str, width: int) -> str:
    """One line of at most `width` cells; the file name is cut first."""
    from rich.cells import cell_len

    available = width - cell_len(f"{marks}  · ")
    shown_label = cropped(" ".join(label.split()), available - min(cell_len(file), LEAST_FILE_NAME))
    return f"{marks} {shown_label} · {cropped(file, available - cell_len(shown_label))}"


def _file_name(source_url: str) -> str:
    return place(source_url).rpartition("/")[2]


def confidences(answer: Answer) -> str:
    """Both confidences and the decision."""
    of_answer = "" if answer.answer_confidence is None else f", of the answer {answer.answer_confidence:.2f}"
    return f"Confidence {answer.confidence:.2f}{of_answer} ({answer.decision})."


def _closing(answer: Answer) -> str:
    """The confidence, and its reason unless the decision is `answer`."""
    from dtrag.delivery.texts import in_language_of

    parts = [confidences(answer)]
    if answer.decision != "answer":
        parts.append(safe(in_language_of(answer.text, answer.reason_statements)))
    if answer.citations:
        parts.append("Quotations and sources: --full")
    if answer.model is not None:
        cost = f", {answer.cost:.2f} won" if answer.cost else ""
        parts.append(f"Written by {safe(answer.model)}{cost}.")
    return " ".join(parts)


def _height(text: str, width: int) -> int:
    from rich.cells import cell_len

    return max(1, -(-cell_len(text) // width))


def earlier_question_lines(answer: Answer) -> list[str]:
    """The earlier question that asked the same, then similar ones: when they were answered, and what people said."""
    from dtrag.core.text.analysis import language

    is_korean = language(answer.question) == "ko"
    same, similar = ("이미 답한 질문", "이전에 비슷한 질문") if is_korean else ("Answered before", "Asked before")
    lines = (
        [] if answer.answered_before is None else [_earlier_question(same, answer.answered_before, is_korean=is_korean)]
    )
    return [*lines, *(_earlier_question(similar, each, is_korean=is_korean) for each in answer.offered)]


def _earlier_question(label: str, earlier: EarlierQuestion, *, is_korean: bool) -> str:
    question, votes = " ".join(safe(earlier.question).split()), earlier.votes
    quoted = f": “{question}”" if question else ""
    counts = f"찬성 {votes.up:,} · 반대 {votes.down:,}" if is_korean else f"{votes.up:,} up, {votes.down:,} down"
    return f"{label}{quoted} ({earlier.date}, {counts})"
