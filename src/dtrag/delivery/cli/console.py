"""Output: data on stdout, progress and notes on stderr; formatting of values for users.

rich is imported when something is printed: it takes a tenth of the time of a command that a service answers.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag, urlsplit

import typer

from dtrag.core.response import plain
from dtrag.delivery.cli.exit_codes import OK, OutputClosed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from dtrag.app import App
    from dtrag.ingestion.sources import Progress as IngestProgress

# Documents come from anywhere: none of their characters may steer the terminal (escape sequences, bidirectional marks).
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

_MARKUP = re.compile(r"[\\|<>\[\]`*_~&]")

_PLURALS = {"category": "categories", "entry": "entries", "addendum": "addenda", "appendix": "appendices"}


def data() -> Console:
    """Standard output."""
    from rich.console import Console

    class DataConsole(Console):
        def on_broken_pipe(self) -> None:
            raise OutputClosed

    return DataConsole(highlight=False, markup=False, emoji=False)


def notes() -> Console:
    """Standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False)


class ListFormat(StrEnum):
    """How a list is printed."""

    table = "table"
    json = "json"
    csv = "csv"
    md = "md"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a list; columns in `whole` are never wrapped in a table."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    whole: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, one pair per line."""

    rows: Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Verbatim:
    """A text for a file or another command, printed as it is."""

    text: str


def show_result(
    form: ListFormat | bool, value: object, *parts: Rows | Facts | Verbatim | str, notes: Iterable[str] = ()
) -> int:
    """Print what a command did: with `--json` (True) the object, else the parts and on stderr the notes; returns OK.

    Empty parts and notes are left out. CSV and Markdown have the rows alone.
    """
    if form is True or form is ListFormat.json:
        show_json(value)
        return OK
    console = data() if any(parts) else None
    for part in parts:
        if form is ListFormat.csv or form is ListFormat.md:
            if isinstance(part, Rows):
                _write((csv_lines if form is ListFormat.csv else markdown_lines)(part))
            continue
        if console is not None and isinstance(part, str) and part:
            console.print(safe(part), soft_wrap=True)
        elif console is not None and isinstance(part, Rows) and part.rows:
            console.print(table(part.columns, part.rows, whole=part.whole))
        elif console is not None and isinstance(part, Facts):
            console.print(facts(part.rows))
        elif isinstance(part, Verbatim):
            typer.echo(part.text, nl=False)
    for text in notes:
        if text:
            note(text)
    return OK


def show_json(value: object) -> None:
    """Print the JSON object of a command: a mapping, or a value of the core."""
    plain_ascii = not (sys.stdout.encoding or "").lower().startswith("utf")
    _write([json.dumps(plain(value), ensure_ascii=plain_ascii, indent=2, default=str) + "\n"])


def _write(lines: Iterable[str]) -> None:
    try:
        sys.stdout.writelines(lines)
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise OutputClosed from error


def csv_lines(listed: Rows) -> list[str]:
    """The rows as CSV. A text that a spreadsheet would take for a formula begins with an apostrophe."""
    lines: list[str] = []

    class Lines:
        write = staticmethod(lines.append)

    writer = csv.writer(Lines, lineterminator="\n")
    writer.writerow(listed.columns)
    writer.writerows([_csv_cell(cell) for cell in row] for row in listed.rows)
    return lines


def _csv_cell(cell: object) -> object:
    if isinstance(cell, int | float):
        return cell
    text = safe(str(cell))
    return f"'{text}" if text.lstrip().startswith(("=", "+", "-", "@")) else text


def markdown_lines(listed: Rows) -> list[str]:
    """The rows as a table in Markdown; no cell contains a mark that formats, links or ends it."""
    rows = [[_MARKUP.sub(r"\\\g<0>", " ".join(safe(str(cell)).split())) for cell in row] for row in listed.rows]
    table = [listed.columns, ["---"] * len(listed.columns), *rows]
    return [f"| {' | '.join(row)} |\n" for row in table]


def note(text: str) -> None:
    """Print a line on stderr; in a terminal it is wrapped between words."""
    console = notes()
    console.print(safe(text), style="dim", soft_wrap=not console.is_terminal)


def is_about_settings(text: str) -> bool:
    """Whether a note says that no embedder is used: shown only if nothing useful was retrieved."""
    return "lexical only." in text or "lexical search only." in text


def safe(text: str) -> str:
    """The text without characters that control a terminal."""
    return _STEERING.sub("", text)


def marked_text(text: str, marked: Sequence[tuple[int, int]]) -> Text:
    """The text of an answer without characters that control a terminal, what is marked in bold."""
    from rich.text import Text

    shown, position = Text(), 0
    for start, end in marked:
        shown.append(safe(text[position:start])).append(safe(text[start:end]), style="bold")
        position = end
    return shown.append(safe(text[position:]))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, whole: Sequence[str] = ()) -> Table:
    """A table for 80 columns; columns in `whole` are never wrapped, columns of numbers are right-aligned."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    listed = [list(row) for row in rows]
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for position, name in enumerate(columns):
        numbers = bool(listed) and all(isinstance(row[position], int) for row in listed)
        grid.add_column(
            name, no_wrap=name in whole, overflow="fold", justify="right" if numbers else "left", vertical="top"
        )
    for row in listed:
        grid.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else safe(str(cell))) for cell in row))
    return grid


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Names and values, one pair per line."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, Text(safe(value)))
    return grid


def paragraph(console: Console, text: Text | str, indent: int = 0, style: str = "") -> None:
    """Print a text wrapped to the terminal, indented by `indent`, without trailing spaces; a string is made safe."""
    from rich.text import Text

    shown = Text(safe(text), style=style) if isinstance(text, str) else text
    for line in shown.wrap(console, max(20, console.width - indent), overflow="fold"):
        line.rstrip()
        if line.plain:
            line.pad_left(indent)
        console.print(line, soft_wrap=True)


def cropped(text: str, width: int) -> str:
    """The text in at most `width` cells (wide characters count two), with an ellipsis if it was cut."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def cropped_before(text: str, width: int) -> str:
    """As `cropped`, but keeps the end of the text, which in a path is the file name."""
    from rich.cells import cell_len

    if cell_len(text) <= width:
        return text
    while cell_len(text) > width - 1:
        text = text[1:]
    return "…" + text


def command_name() -> str:
    """The command that starts this program: `dtrag`, or its path if it is not on PATH."""
    ours = Path(sys.executable).with_name("dtrag")
    on_path = shutil.which("dtrag")
    if (on_path and ours.exists() and Path(on_path).samefile(ours)) or not ours.exists():
        return "dtrag"
    return str(ours.relative_to(Path.cwd())) if ours.is_relative_to(Path.cwd()) else str(ours)


def place(source_url: str) -> str:
    """The source of a document for display: a path, relative if it is below the current folder."""
    address, part = urldefrag(source_url)
    split = urlsplit(address)
    if split.scheme == "file":
        path = Path(unquote(split.path))
        here = Path.cwd()
        address = str(path.relative_to(here)) if path.is_relative_to(here) else os.fspath(path)
    return safe(f"{address} ({unquote(part)})" if part else address)


def plural(number: int, noun: str) -> str:
    """`1 document`, `1,234 documents`, `2 addenda`."""
    return f"{number:,} {noun if number == 1 else _PLURALS.get(noun, noun + 's')}"


def megabytes(size: int) -> str:
    """A size in bytes as `12.3 MB`."""
    return f"{size / 1e6:,.1f} MB"


LINE_EVERY = 5.0
"""Seconds between two lines without a terminal: often enough to show progress, without filling a log."""

Update = Callable[[int, int | None, str], None]
"""Takes the number done, the total (None: unknown) and a text for the user."""


@contextmanager
def progress(label: str, console: Console | None = None) -> Iterator[Update]:
    """Show progress while the block runs."""
    console = console or notes()
    if not console.is_terminal:
        yield _progress_lines(label, console)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=10),
        TimeElapsedColumn(),
        TextColumn("{task.fields[words]}", table_column=Column(no_wrap=True, overflow="ellipsis")),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None, words="")

        def update(done: int, total: int | None, words: str) -> None:
            bar.update(task, completed=done, total=total, words=words)

        yield update


@contextmanager
def counted_progress(label: str, noun: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many things of a known number are done while the block runs."""
    with progress(label) as update:
        yield lambda done, total: update(done, total, f"{done:,}/{total:,} {noun}")


def _progress_lines(label: str, console: Console) -> Update:
    last = time.monotonic()

    def update(done: int, total: int | None, words: str) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_EVERY:
            last = time.monotonic()
            console.print(f"{label}: {words}", soft_wrap=True)

    return update


@contextmanager
def ingest_progress(label: str = "Reading") -> Iterator[Callable[[IngestProgress], None]]:
    """Show the progress of an ingestion: files and chunks read, chunks per second, documents stored."""
    started = time.monotonic()
    with progress(label) as update:

        def show(now: IngestProgress) -> None:
            rate = now.chunks_read / max(time.monotonic() - started, 0.001)
            words = (
                f"{now.files_read:,}/{now.files_total:,} files, {plural(now.chunks_read, 'chunk')}, {rate:,.0f}/s, "
                f"{now.documents:,} stored"
            )
            # With a single file the bar is indeterminate, as the count would stay at 0 until the end.
            update(now.files_read, now.files_total if now.files_total > 1 else None, words)

        yield show


async def fill_vectors(opened: App, *, wait: bool = True) -> None:
    """Make the vectors of passages with progress, and note which are left to other processes."""
    from asyncio import CancelledError

    from dtrag.core.access.confinement import OWNER

    left = ""
    try:
        if wait:
            with counted_progress("Vectors", "passages") as show:
                filled = await opened.vectors.fill(lambda made, pending: show(made, made + pending))
            left = "the running service makes" if filled.served else ""
        else:
            left = "the next `dtrag ingest` or a service makes"
    except CancelledError:
        note(
            "Stopped. All documents are stored and found by their words; the next `dtrag ingest` or a service makes "
            "the vectors that are missing."
        )
        raise
    if left and (pending := await opened.pending_vectors(scope=OWNER)):
        note(f"Found by words now; {left} the vectors of {plural(pending, 'passage')}.")
