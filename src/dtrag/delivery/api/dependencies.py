"""The state of a running service with its folder of uploads, and how routes access it."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import Request

from dtrag import embedding_service
from dtrag.app import App
from dtrag.core.access.scope import EVERYTHING
from dtrag.core.cases.statistics import CaseStatistics
from dtrag.counts import Counts
from dtrag.delivery.api.built_page import BuiltPage, built_page
from dtrag.delivery.api.clients import RequestLimits
from dtrag.delivery.api.connections import ACCEPTING, CLIENTS, connection_counts
from dtrag.delivery.api.presentation import Presentation
from dtrag.delivery.api.prometheus import Telemetry
from dtrag.delivery.api.request_tasks import InFlight
from dtrag.errors import DatabaseUnavailable, DtragError
from dtrag.isolation.runs import IsolationRuns
from dtrag.ports import Embedder, Loadable
from dtrag.settings import Settings

CASE_FIGURES_S = 10.0
"""Figures of the case memory count its whole collection, which takes longer than a scrape should, as does counting the
passages that wait for vectors."""
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Service:
    """One service: its settings, the opened `App`, and whether it is stopping."""

    settings: Settings
    embedder: Embedder | None = None
    """That of the settings, where it is loaded before the app is opened."""
    opened: App | None = None
    stopping: bool = False
    ready: bool = True
    """False while `warm` loads what the first requests need."""
    embedder_problem: str = ""
    """Why the embedder could not be loaded; "" if it could."""
    counts: Counts = field(default_factory=Counts)
    telemetry: Telemetry = field(init=False)
    in_flight: InFlight = field(default_factory=InFlight)
    limits: RequestLimits = field(init=False)
    page: BuiltPage | None = field(default_factory=built_page)
    """The built web page, if there is one."""
    isolation: IsolationRuns = field(init=False)
    public_origins: frozenset[str] = frozenset()
    """Origins of its own pages behind a proxy."""
    _cases_measured: float = -math.inf
    _vectors_measured: float = -math.inf
    uploads: Path = field(default_factory=Path)
    """Private folder for the files of uploads while they are indexed."""

    def __post_init__(self) -> None:
        Presentation.of(self.settings)  # a wrong setting ends the start
        self.telemetry = Telemetry(self.counts)
        self.limits = RequestLimits(self.counts, lambda: self.app.rate_limits)
        self.isolation = IsolationRuns(counts=self.counts)

    @property
    def app(self) -> App:
        """The opened app. Raises `DatabaseUnavailable` before the start and after the stop."""
        if self.opened is None:
            raise DatabaseUnavailable(reason="the service is not open.")
        return self.opened

    @property
    def presentation(self) -> Presentation:
        """How the page presents the service, by the settings in use."""
        return Presentation.of(self.app.settings)

    @property
    def workers(self) -> int:
        """Processes that serve; 1 for an app without a server."""
        return int(connection_counts(self.counts, CLIENTS).total(ACCEPTING)) or 1

    async def warm(self) -> None:
        """Load the models and the index in advance, so that no question waits for them; then read regulations ahead.

        `ready` is set in between. A question that arrives before waits for models without counting against its time
        limits. Errors appear in `/health`.
        """
        try:
            await self._warm_embedder()
            await self.app.warm()
        finally:
            self.ready = True
        await self.app.load()

    async def measure_cases(self) -> None:
        """Read the figures of the case memory for its metrics, at most every `CASE_FIGURES_S` seconds."""
        cases = self.app.cases
        if cases.enabled and time.monotonic() - self._cases_measured < CASE_FIGURES_S:
            return
        statistics: CaseStatistics | None = CaseStatistics()
        if cases.enabled:
            try:
                statistics = await cases.statistics_of_all()
            except DtragError as error:
                _LOG.warning("the case memory cannot be read: %s", error)
                statistics = None
            else:
                self._cases_measured = time.monotonic()
        self.telemetry.cases.measured(statistics, enabled=cases.enabled)

    async def measure_vectors(self) -> None:
        """Count the passages that wait for vectors, and the jobs, at most every `CASE_FIGURES_S` seconds."""
        if time.monotonic() - self._vectors_measured < CASE_FIGURES_S:
            return
        with suppress(DtragError):
            self.telemetry.vectors_pending.set(await self.app.pending_vectors(scope=EVERYTHING))
            self.telemetry.measured_jobs(await self.app.jobs.counts())
            self._vectors_measured = time.monotonic()

    async def _warm_embedder(self) -> None:
        embedder = self.app.embedder
        if embedder is None:
            return
        try:
            if isinstance(embedder, Loadable):
                await asyncio.to_thread(embedder.load)
            await embedding_service.generate_embedding("warm", embedder=embedder)
        except (DtragError, OSError, RuntimeError, ValueError, ImportError) as error:
            self.embedder_problem = (
                str(error) if isinstance(error, DtragError) else f"It could not be loaded ({type(error).__name__})."
            )
            _LOG.warning("the embedder could not be loaded", exc_info=error)


def service_of(request: Request) -> Service:
    """The service of the request."""
    service = request.app.state.service
    assert isinstance(service, Service)  # noqa: S101 - set by `create_app`
    return service


def app_of(request: Request) -> App:
    """The app of the request."""
    return service_of(request).app


def correlation_of(request: Request) -> str:
    """The correlation id of the request."""
    return str(request.state.correlation_id)
