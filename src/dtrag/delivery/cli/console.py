"""Output: data on stdout, progress and notes on stderr; formatting of values for users."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag, urlsplit

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from dtrag.delivery.cli.exit_codes import OutputClosed

if TYPE_CHECKING:
    from rich.table import Table

# Documents come from anywhere: none of their characters may steer the terminal (escape sequences, bidirectional marks).
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

_PLURALS = {"category": "categories", "entry": "entries", "addendum": "addenda", "appendix": "appendices"}


class _DataConsole(Console):
    def on_broken_pipe(self) -> None:
        raise OutputClosed


def data() -> Console:
    """Standard output."""
    return _DataConsole(highlight=False, markup=False, emoji=False)


def notes() -> Console:
    """Standard error."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def show_json(value: Mapping[str, object]) -> None:
    """Print the JSON object of a command."""
    plain_ascii = not (sys.stdout.encoding or "").lower().startswith("utf")
    try:
        sys.stdout.write(json.dumps(value, ensure_ascii=plain_ascii, indent=2, default=str) + "\n")
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise OutputClosed from error


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
    shown, position = Text(), 0
    for start, end in marked:
        shown.append(safe(text[position:start])).append(safe(text[start:end]), style="bold")
        position = end
    return shown.append(safe(text[position:]))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, whole: Sequence[str] = ()) -> Table:
    """A table for 80 columns; columns in `whole` are never wrapped, columns of numbers are right-aligned."""
    from rich import box
    from rich.table import Table

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

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, Text(safe(value)))
    return grid


def paragraph(console: Console, text: Text, indent: int = 0) -> None:
    """Print a text wrapped to the terminal, indented by `indent`, without trailing spaces."""
    for line in text.wrap(console, max(20, console.width - indent), overflow="fold"):
        line.rstrip()
        if line.plain:
            line.pad_left(indent)
        console.print(line, soft_wrap=True)


def cropped(text: str, width: int) -> str:
    """The text in at most `width` cells (wide characters count two), with an ellipsis if it was cut."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def cropped_before(text: str, width: int) -> str:
    """As `cropped`, but keeps the end of the text, which in a path is the file name."""
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
