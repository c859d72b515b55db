"""The app that is open in this process, for engines and functions that are not told which one they are to use."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from dtrag.core.access.scope import Viewer
from dtrag.core.text.analysis import Analyzer
from dtrag.errors import NoActiveApp
from dtrag.ports import Embedder, Index

Engine_co = TypeVar("Engine_co", covariant=True)
Run_co = TypeVar("Run_co", covariant=True)


class Opened(Protocol[Engine_co, Run_co]):
    """What is needed of an open app. Of its engine and its run only the modules that use them know the types."""

    @property
    def index(self) -> Index:
        """Where its documents are."""

    @property
    def embedder(self) -> Embedder | None:
        """What its vectors are made with."""

    @property
    def analyzer(self) -> Analyzer:
        """What its terms are made with."""

    @property
    def engine(self) -> Engine_co:
        """What it searches with."""

    @property
    def regulations(self) -> Any:
        """Its regulations (`retrieval.regulations.Regulations`)."""

    @property
    def run(self) -> Run_co:
        """What a run of the pipeline works with."""

    async def counts(self, *, scope: Viewer) -> tuple[int, int]:
        """Numbers of documents and chunks."""


_opened: list[Opened[Any, Any]] = []


def opened(app: Opened[Any, Any]) -> None:
    """From now on the app is open."""
    _opened.append(app)


def closed(app: Opened[Any, Any]) -> None:
    """From now on it is not."""
    _opened[:] = [other for other in _opened if other is not app]


def active() -> Opened[Any, Any]:
    """The open app. Raises `NoActiveApp` when none is, or several are: guessing could search the wrong documents."""
    if len(_opened) != 1:
        raise NoActiveApp(number="no" if not _opened else "more than one")
    return _opened[0]
