"""How far a long command is: a bar on a terminal, else a plain line every few seconds; always on stderr."""

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
"""Seconds between two lines where there is no terminal: enough to see life in a log, not enough to fill it."""

Update = Callable[[int, int | None, str], None]
"""Takes what is done, the total (None = unknown) and words for people."""


@contextmanager
def progress(label: str, console: Console | None = None) -> Iterator[Update]:
    """Shows progress while the block runs."""
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
    """Progress of an ingest: files and passages that were read, passages a second, documents that are stored."""
    started = time.monotonic()
    with progress(label) as update:

        def show(now: IngestProgress) -> None:
            rate = now.chunks_read / max(time.monotonic() - started, 0.001)
            words = (
                f"{now.files_read:,}/{now.files_total:,} files, {plural(now.chunks_read, 'chunk')}, {rate:,.0f}/s, "
                f"{now.documents:,} stored"
            )
            # One file of one says nothing until it is over: then the bar only shows that something moves.
            update(now.files_read, now.files_total if now.files_total > 1 else None, words)

        yield show
