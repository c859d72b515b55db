"""The HTTP service: `create_app()` combines routes, error handlers and middleware over `dtrag.app.App`."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.middleware import Middleware
from starlette.types import Scope

from dtrag import __version__
from dtrag.adapters.error_reports import error_reports
from dtrag.app import App, open_app
from dtrag.counts import Counts
from dtrag.delivery.api import errors
from dtrag.delivery.api.audited import Audited
from dtrag.delivery.api.authentication import Authentication
from dtrag.delivery.api.clients import Forwarding, trusted_networks
from dtrag.delivery.api.dependencies import Service
from dtrag.delivery.api.example_questions import ExampleQuestions
from dtrag.delivery.api.origins import PUBLIC, Cors, PageOrigins, origins_of
from dtrag.delivery.api.request_guard import BodyLimit, Guard, Pacing, RequestLog
from dtrag.delivery.api.request_tasks import cancelled
from dtrag.delivery.api.routes import (
    agents,
    audit,
    cbr,
    chat,
    conversations,
    dify,
    documents,
    embeddings,
    filters,
    health,
    jobs,
    keys,
    mcp,
    openai,
    overview,
    page,
    regulations,
    responses,
    review,
    search,
    sign_in,
    taxonomy,
    uploads,
)
from dtrag.delivery.api.routes import settings as settings_routes
from dtrag.delivery.api.routing import failures
from dtrag.errors import DtragError
from dtrag.governance.api_keys import Keys
from dtrag.governance.stored_settings import unused_settings
from dtrag.isolation.runs import IsolationRuns
from dtrag.ports import Embedder
from dtrag.settings import Settings, unknown_variables

_LOG = logging.getLogger(__name__)
JSON_LIMIT = 1 << 20
FORGET_EVERY_S = 600.0
READ_SETTINGS_EVERY_S = 1.0
"""Maximum bytes of a JSON body; the longest question (10,000 characters) needs at most 60,000."""

ABOUT = """Answers over an organisation's documents, with the passages that prove them.

Every failure has the body `{"detail": "<one sentence>", "type": "<kind>", "request_id": "<id>"}`."""

OPEN_ROUTES = (health.router, page.router, keys.session_router, sign_in.router)
"""Routes that answer without a key, or declare their failures without one themselves."""
KEYED_ROUTES = (
    search.router,
    chat.router,
    conversations.router,
    conversations.trace_router,
    uploads.router,
    documents.router,
    overview.router,
    jobs.router,
    regulations.router,
    review.router,
    cbr.router,
    taxonomy.router,
    regulations.lexicon_router,
    agents.router,
    settings_routes.tool_router,
    filters.router,
    audit.router,
    audit.evaluation_router,
    keys.router,
    settings_routes.router,
    settings_routes.change_router,
    page.docs_router,
    openai.router,
    responses.router,
    embeddings.router,
    dify.router,
    mcp.router,
)
"""Routes that need a key where keys are required, and are limited in rate."""

_NO_TELEMETRY = TelemetryConfig(tracing=False, metrics=False, logs=False, operation_spans=False, auto_configure=False)
# FastAPI would otherwise look into the environment for exporters, and export what requests were about.
_SCHEMA = "#/components/schemas/"


class _Api(FastAPI):
    """The application with a description in which a schema is named by its title, as `core/response.py` says."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI description."""
        if self.openapi_schema is None:
            self.openapi_schema = _named_by_title(super().openapi())
        return self.openapi_schema


def _named_by_title(described: dict[str, Any]) -> dict[str, Any]:
    """With the schemas that a path refers to, which are not those of internal fields."""
    schemas = described["components"]["schemas"]
    titles = Counter(schema["title"] for schema in schemas.values())
    names = {name: schema["title"] if titles[schema["title"]] == 1 else name for name, schema in schemas.items()}
    used: dict[str, Any] = {}

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: renamed(item) for key, item in value.items()}
        if isinstance(value, list):
            return [renamed(item) for item in value]
        if not isinstance(value, str) or not value.startswith(_SCHEMA):
            return value
        name = value.removeprefix(_SCHEMA)
        if names[name] not in used:
            used[names[name]] = {}  # for one that refers to itself
            used[names[name]] = renamed(schemas[name])
        return _SCHEMA + names[name]

    return {**described, "paths": renamed(described["paths"]), "components": {"schemas": used}}


def create_app(settings: Settings, counts: Counts | None = None, embedder: Embedder | None = None) -> FastAPI:
    """The ASGI application; its lifespan opens the `App` (and raises what opening raises) and closes it.

    `counts` has the limits and metrics of all processes of the service; None: there is only this one. `embedder` is
    that of the settings where it is loaded.
    """
    public = origins_of(settings.public_origins, PUBLIC)
    service = Service(settings, counts=counts or Counts(), public_origins=public, embedder=embedder)
    api = _Api(
        title="dtrag",
        version=__version__,
        description=ABOUT,
        lifespan=_lifespan,
        openapi_url=None,  # page.py answers for it, so that it declares its need like every route
        docs_url=None,  # the framework's page loads its scripts from another site
        redoc_url=None,
        telemetry=_NO_TELEMETRY,
        middleware=_middleware(service, PageOrigins(public, origins_of(settings.cors_allowed_origins))),
    )
    api.state.service = service
    errors.install(api)
    for router in OPEN_ROUTES:
        api.include_router(router)
    for router in KEYED_ROUTES:
        api.include_router(router, responses=failures(401, 429))
    return api


def serve_opened(opened: App, settings: Settings, folder: Path, isolation: IsolationRuns) -> FastAPI:
    """The service over an app that is already open and stays so, for the isolation test: its lifespan is not run."""
    api = create_app(settings)
    service: Service = api.state.service
    service.opened, service.uploads, service.isolation = opened, folder, isolation
    service.examples = ExampleQuestions(None)  # how fast a world is must not show
    return api


def _middleware(service: Service, origins: PageOrigins) -> list[Middleware]:
    """What every request passes, outermost first."""
    settings = service.settings

    def valid_keys() -> Keys:
        return service.app.keys

    return [
        Middleware(Pacing),
        Middleware(RequestLog, telemetry=service.telemetry.requests),
        Middleware(Audited, audit=lambda: service.app.audit, counts=service.counts),
        Middleware(Guard, host=settings.host, origins=origins, keys=valid_keys),
        Middleware(Cors, origins=origins, keys=valid_keys),
        Middleware(Forwarding, trusted=trusted_networks(settings.trusted_proxies)),
        Middleware(
            Authentication,
            keys=valid_keys,
            sessions=lambda: service.app.sessions,
            limits=service.limits,
            origins=origins,
            public=lambda: service.app.public,
        ),
        Middleware(BodyLimit, limit=_limits(settings)),
    ]


@asynccontextmanager
async def _lifespan(api: FastAPI) -> AsyncIterator[None]:
    service: Service = api.state.service
    settings = service.settings
    async with error_reports(settings.sentry_dsn, __version__), open_app(settings, service.embedder) as service.opened:
        service.opened.on_search = service.telemetry.searches.record
        service.opened.on_debate = service.telemetry.debates.record
        service.opened.tools.on_executed = service.telemetry.tools.record
        for pipeline in (service.opened.pipeline, service.opened.public_pipeline):
            pipeline.on_answer = service.telemetry.pipeline.record
        service.opened.cases.on_suggestion = service.telemetry.cases.suggested
        service.opened.feedback.on_rating = service.telemetry.pipeline.rated
        service.opened.cases.on_feedback = service.telemetry.cases.voted
        service.opened.run.admission.count_in(service.counts)
        service.opened.keys.count_in(service.counts)
        service.telemetry.admission.loads = service.opened.run.admission.loads
        await service.opened.open_sign_in()
        await _warn_of_settings(service.opened)
        upload_folder = await asyncio.to_thread(uploads.UploadFolder.open, service.settings.data_dir)
        service.uploads = upload_folder.path
        working = asyncio.create_task(service.opened.jobs.serve(service.uploads), name="jobs")
        forgetting = asyncio.create_task(_forget_deleted(service.opened), name="forget-deleted")
        following = asyncio.create_task(_follow_settings(service.opened), name="follow-settings")
        try:
            yield
        finally:
            service.stopping = True
            await cancelled(working)
            await cancelled(forgetting)
            await service.examples.close()
            await cancelled(following)
            await service.isolation.close()
            await asyncio.to_thread(upload_folder.close)
    service.opened = None


async def _forget_deleted(app: App) -> None:
    """Remove what was deleted from the index and its files, until this is cancelled."""
    while True:
        await asyncio.sleep(FORGET_EVERY_S)
        try:
            await app.forget_deleted()
        except Exception:  # noqa: BLE001 - the boundary: tried again
            _LOG.warning("deleted documents are removed from the index later", exc_info=True)


async def _follow_settings(app: App) -> None:
    """Use the settings that other processes change, until this is cancelled."""
    while True:
        await asyncio.sleep(READ_SETTINGS_EVERY_S)
        with suppress(DtragError, TimeoutError):  # tried again; what cannot be read changes nothing
            await app.changed_settings.read()


async def _warn_of_settings(app: App) -> None:
    """Log what other versions of dtrag set and this one ignores."""
    if names := unknown_variables():
        _LOG.warning("this version of dtrag has no setting %s: ignored", ", ".join(names))
    snapshot = await app.index.snapshot()
    for note in unused_settings(snapshot.settings):
        _LOG.warning(note)
    if app.public is not None and (missing := app.public.grant.unresolved(snapshot.taxonomy)):
        _LOG.warning("DTRAG_PUBLIC: there is no category %s, so it makes nothing public", ", ".join(map(str, missing)))


def _limits(settings: Settings) -> Callable[[Scope], int]:
    """Maximum bytes of a body, by route."""
    upload_bytes = settings.max_upload_mb << 20

    def limit(scope: Scope) -> int:
        return upload_bytes if scope["path"] == "/documents" else JSON_LIMIT

    return limit
