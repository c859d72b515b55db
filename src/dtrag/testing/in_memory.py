"""An `App` that keeps everything in memory: it opens in milliseconds and leaves nothing behind."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dtrag.app import App
from dtrag.core.access.scope import Viewer
from dtrag.errors import InvalidInput
from dtrag.ingestion.sources import Source
from dtrag.ports import Models
from dtrag.settings import Settings
from dtrag.testing.memory.state import MemoryState
from dtrag.testing.memory.stores import memory_stores
from dtrag.testing.models import HashEmbedder
from dtrag.testing.parser import InProcessParser


@asynccontextmanager
async def open_in_memory(
    models: Models = Models(embedder=HashEmbedder()), *, state: MemoryState | None = None, **settings: Any
) -> AsyncIterator[App]:
    """An `App` without PostgreSQL, model weights, files, network or processes.

    It ingests, searches, answers, and keeps scopes apart by the same rules as an app on PostgreSQL. Nothing is read
    from the environment; `settings` are settings by name. Two apps with the same `state` share their documents.
    """
    # Nothing is written there: there is no database, no audit spool and no model to download.
    folder = Path(tempfile.gettempdir()) / "dtrag-in-memory"
    configured = Settings.load(environ={}, data_dir=folder, **settings)
    stores = memory_stores(state, models.analyzer)
    async with App(configured, stores, models, parser=lambda settings, max_file_mb: InProcessParser()) as app:
        yield app


async def add_texts(
    app: App, texts: Mapping[str, str], category: Sequence[str] | str | None = None, *, scope: Viewer | None = None
) -> list[str]:
    """Ingest texts by file name (`{"leave.md": "# Leave ..."}`), whose suffix decides the format.

    Returns the ids of their documents. A text of the same name replaces the one before it. Works with any `App`.
    Raises `InvalidInput` when one cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="dtrag-texts-") as folder:
        sources = []
        for number, (name, text) in enumerate(texts.items()):
            path = Path(folder) / f"{number}{Path(name).suffix}"
            path.write_text(text, "utf-8")
            sources.append(Source(path, name, f"text:{name}", source_path=name))
        report = await app.ingest_sources(sources, category, scope=scope)
        await app.vectors.fill()
    if report.failed:
        failed, reason = report.failed[0]
        name = next(source.name for source in sources if str(source.path) == failed)
        raise InvalidInput(f"{name!r} cannot be read: {reason}. Give it another text, or a suffix of its format.")
    return [str(document_id) for read in report.sources for document_id in read.document_ids]
