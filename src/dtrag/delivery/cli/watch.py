"""`dtrag watch`: looks for changes in folders, and then ingests them.

It looks instead of waiting for events, which network drives and containers do not have. A look reads names, sizes and
times only.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from dtrag.delivery.cli.console import fill_vectors, note, show_json
from dtrag.delivery.cli.context import Json, with_app
from dtrag.delivery.cli.ingest import DefaultCategory, Exclude, as_dict, refuse_addresses, show
from dtrag.errors import DtragError, InvalidInput

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.ingestion.sources import IngestReport

SETTLED_S = 2.0
"""Seconds without a change after which files are taken to be written completely."""
UNSETTLED_S = 60.0
"""Seconds after which they are ingested although something still changes, such as a log file."""
RETRY_S = 30.0
"""Seconds until a failed ingest is repeated, if nothing changes before."""
T = TypeVar("T")


def watch(
    context: typer.Context,
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="Folders.", show_default=False)],
    category: DefaultCategory = None,
    *,
    exclude: Exclude = None,
    every: Annotated[float, typer.Option(metavar="SECONDS", help="Time between two looks.", min=1, max=86_400)] = 10.0,
    as_json: Json = False,
) -> None:
    """Keep the index in step with folders, until Ctrl-C.

    Indexes the folders as `dtrag ingest --prune` does, now and after every
    change: new and changed files are read, renamed ones are followed, and the
    documents of deleted ones are removed. What fails is tried again. When more
    than a third of a folder is gone, nothing is removed: then the command
    `dtrag ingest FOLDER --prune-all` confirms it.
    """
    refuse_addresses(folders)
    other = next((folder for folder in folders if not folder.is_dir()), None)
    if other is not None:
        raise InvalidInput(f"{other} is not a folder: only folders can be watched. dtrag ingest reads a file once.")

    async def run(opened: App) -> None:
        async def ingest() -> IngestReport:
            report = await opened.ingest(folders, category, prune=True, exclude=exclude or (), wait=False)
            await fill_vectors(opened)
            return report

        failure = ""
        note(f"Watching {', '.join(map(str, folders))}; Ctrl-C ends it.")
        async for result in ingest_changes(ingest, folders, exclude or (), every):
            at = datetime.now().astimezone().isoformat(timespec="seconds")
            if isinstance(result, DtragError):
                if str(result) != failure:  # once, not at every retry
                    failure = str(result)
                    if as_json:
                        show_json({"at": at, "error": failure})
                    else:
                        note(f"{at}  {failure} It is tried again.")
                continue
            failure = ""
            if as_json:
                show_json({"at": at, **as_dict(result)})
            else:
                sys.stdout.write(f"\n{at}\n")
                show(result)
                sys.stdout.flush()

    with_app(context, run)


async def ingest_changes(
    ingest: Callable[[], Awaitable[T]], paths: Sequence[Path], exclude: Sequence[str], every: float
) -> AsyncGenerator[T | DtragError]:
    """What `ingest` returns or raises, at the start and after every change below the paths; never ends by itself.

    `every` is the time in seconds between two looks. A failed ingest is repeated.
    """
    import asyncio

    ingested: Mapping[str, tuple[int, ...]] | None = None
    retry_at = 0.0
    while True:
        state = await asyncio.to_thread(_state, paths, exclude)
        if state != ingested or time.monotonic() >= retry_at > 0:
            if ingested is not None:
                state = await _settled(state, paths, exclude)
            try:
                result: T | DtragError = await ingest()
                retry_at = 0.0
            except DtragError as error:
                result, retry_at = error, time.monotonic() + RETRY_S
            ingested = state
            yield result
        await asyncio.sleep(every)


async def _settled(
    state: Mapping[str, tuple[int, ...]], paths: Sequence[Path], exclude: Sequence[str]
) -> Mapping[str, tuple[int, ...]]:
    import asyncio

    deadline = time.monotonic() + UNSETTLED_S
    while time.monotonic() < deadline:
        await asyncio.sleep(SETTLED_S)
        later = await asyncio.to_thread(_state, paths, exclude)
        if later == state:
            break
        state = later
    return state


def _state(paths: Sequence[Path], exclude: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
    """Size, time of change and number of each file below the paths; what cannot be read is missing. Blocking."""
    from dtrag.ingestion.exclusion import walk

    state: dict[str, tuple[int, ...]] = {}
    for path in paths:
        for file in walk(path, exclude, [], [], hidden=True) if path.is_dir() else [path]:
            with suppress(OSError):
                status = file.stat()
                state[str(file)] = (status.st_size, status.st_mtime_ns, status.st_ino)
    return state
