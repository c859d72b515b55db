"""The app that is open in this process, the default of engines and functions."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from dtrag.core.access.scope import Viewer
from dtrag.core.text.analysis import Analyzer
from dtrag.errors import NoActiveApp
from dtrag.ports import Embedder, Index

Engine_co = TypeVar("Engine_co", covariant=True)
Run_co = TypeVar("Run_co", covariant=True)


class Opened(Protocol[Engine_co, Run_co]):
    """The parts of an open app that functions use. Only the modules that use engine and run know their types."""

    @property
    def index(self) -> Index:
        """The index."""

    @property
    def embedder(self) -> Embedder | None:
        """The embedder, or None."""

    @property
    def analyzer(self) -> Analyzer:
        """The text analyzer."""

    @property
    def engine(self) -> Engine_co:
        """The search engine."""

    @property
    def regulations(self) -> Any:
        """Its regulations (`regulations.service.Regulations`)."""

    @property
    def run(self) -> Run_co:
        """The template of a pipeline run."""

    async def counts(self, *, scope: Viewer) -> tuple[int, int]:
        """Numbers of documents and chunks."""


_opened: list[Opened[Any, Any]] = []


def opened(app: Opened[Any, Any]) -> None:
    """Register the app as open."""
    _opened.append(app)


def closed(app: Opened[Any, Any]) -> None:
    """Unregister the app."""
    _opened[:] = [other for other in _opened if other is not app]


def active() -> Opened[Any, Any]:
    """The open app. Raises `NoActiveApp` when none is, or several are: guessing could search the wrong documents."""
    if len(_opened) != 1:
        raise NoActiveApp(number="no" if not _opened else "more than one")
    return _opened[0]
