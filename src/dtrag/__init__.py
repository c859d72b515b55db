"""dtrag: answers over an organisation's documents that can be proved.

    async with dtrag.open() as app:
        await app.ingest(["handbook/"], category=["HR"])
        results, metrics = await app.search("parental leave")
        answer = await app.ask("How many days of parental leave are there?")

Names are loaded when they are first used, so that `import dtrag` and `dtrag --help` stay quick.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dtrag.app import App
    from dtrag.core.documents import Answer, Citation, DocumentSummary, SearchMetrics, SearchResult
    from dtrag.core.fusion import ScoreNormalizer
    from dtrag.core.scope import Scope, SearchFilters
    from dtrag.core.taxonomy import CategoryPath, Taxonomy
    from dtrag.errors import DtragError
    from dtrag.ingestion.ingest import IngestReport, Progress
    from dtrag.retrieval.engine import HybridSearchEngine
    from dtrag.settings import Settings

__version__ = "0.1.0"

_HOMES = {
    "App": "dtrag.app",
    "Answer": "dtrag.core.documents",
    "Citation": "dtrag.core.documents",
    "DocumentSummary": "dtrag.core.documents",
    "SearchMetrics": "dtrag.core.documents",
    "SearchResult": "dtrag.core.documents",
    "Scope": "dtrag.core.scope",
    "SearchFilters": "dtrag.core.scope",
    "ScoreNormalizer": "dtrag.core.fusion",
    "CategoryPath": "dtrag.core.taxonomy",
    "Taxonomy": "dtrag.core.taxonomy",
    "DtragError": "dtrag.errors",
    "IngestReport": "dtrag.ingestion.ingest",
    "Progress": "dtrag.ingestion.ingest",
    "HybridSearchEngine": "dtrag.retrieval.engine",
    "Settings": "dtrag.settings",
}

__all__ = [
    "Answer",
    "App",
    "CategoryPath",
    "Citation",
    "DocumentSummary",
    "DtragError",
    "HybridSearchEngine",
    "IngestReport",
    "Progress",
    "Scope",
    "ScoreNormalizer",
    "SearchFilters",
    "SearchMetrics",
    "SearchResult",
    "Settings",
    "Taxonomy",
    "__version__",
    "open",
]


def open(  # noqa: A001 - `dtrag.open()` is what it does
    *, data_dir: str | Path | None = None, database_url: str | None = None, **settings: Any
) -> AbstractAsyncContextManager[App]:
    """The engine on an embedded database in `data_dir`, or on the one at `database_url`; an async context manager.

    Other keyword arguments are settings by name (`embedder="none"`); what is not given comes from the environment.
    Raises `InvalidInput` for a bad setting, and `DatabaseUnavailable` on entering.
    """
    from dtrag.app import open_app
    from dtrag.settings import Settings

    return open_app(Settings.load(data_dir=data_dir, database_url=database_url, **settings))


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dtrag' has no attribute {name!r}")
