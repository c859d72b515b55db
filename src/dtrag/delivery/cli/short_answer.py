"""An answer that fits the terminal: the text, one line per source, one line on its confidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from dtrag.delivery.cli.console import cropped, marked_text, paragraph, place, safe
from dtrag.delivery.cli.earlier_questions import earlier_question_lines

if TYPE_CHECKING:
    from rich.console import Console

    from dtrag.core.documents import Answer, Citation

MOST_SOURCES = 6
"""Maximum lines of sources; answers quote at most five sentences, and a language model may cite more."""
LEAST_FILE_NAME = 16
"""Minimum cells of a file name beside a long label."""
LEAST_TEXT = 5
"""Minimum lines of text on a terminal of any height."""


def show(answer: Answer, console: Console, notes: Sequence[str] = ()) -> None:
    """Print the answer so that it fits the terminal together with `notes`, which follow it.

    Quotations that do not fit are cut, with a hint. The text of a language model is always complete.
    """
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
        parts.append(safe(in_language_of(answer.reason, answer.text)))
    if answer.citations:
        parts.append("Quotations and sources: --full")
    if answer.model is not None:
        cost = f", {answer.cost:.2f} won" if answer.cost else ""
        parts.append(f"Written by {safe(answer.model)}{cost}.")
    return " ".join(parts)


def _height(text: str, width: int) -> int:
    return max(1, -(-cell_len(text) // width))
