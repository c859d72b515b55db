"""Progress of a long command on stderr: a bar on a terminal, else a line every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from dtrag.delivery.cli.console import notes, plural
from dtrag.ingestion.sources import Progress as IngestProgress

LINE_EVERY = 5.0
"""Seconds between two lines without a terminal: often enough to show progress, without filling a log."""

Update = Callable[[int, int | None, str], None]
"""Takes the number done, the total (None: unknown) and a text for the user."""


@contextmanager
def progress(label: str, console: Console | None = None) -> Iterator[Update]:
    """Show progress while the block runs."""
    console = console or notes()
    if not console.is_terminal:
        yield _lines(label, console)
        return
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


def _lines(label: str, console: Console) -> Update:
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
