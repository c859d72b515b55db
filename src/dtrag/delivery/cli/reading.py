"""What a command reads: from the service that runs on the data folder, over HTTP, or from an app in its own process.

The service answers in a fraction of the time that the engine needs to start. For that only the standard library and the
core values are imported.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import quote, urlencode

import typer

from dtrag import __version__, errors
from dtrag.core.documents import Answer, DocumentSummary, SearchMetrics, SearchResult
from dtrag.delivery.cli.console import note
from dtrag.delivery.cli.context import invocation, run_async
from dtrag.delivery.local_socket import FOLDER, SETTINGS_HEADER, VERSION_HEADER, socket_address
from dtrag.settings import answer_settings

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from dtrag.app import App
    from dtrag.core.document_listing import Sort
    from dtrag.core.lexicon_entry import LexiconEntry
    from dtrag.core.provisions import ProvisionCitation, RegulationSummary, ShownProvision
    from dtrag.core.regulation_changes import RegulationDiff, StaleCitation
    from dtrag.core.verification import Verification
    from dtrag.settings import Settings

T = TypeVar("T")
Filters = Mapping[str, object] | None

ANSWERS_WITHIN_S = 0.3
"""Maximum wait for the service's first response; a busier service is not used."""
NOT_USED = "The running service is not used: {reason}."
PAGE = 1_000
"""Entries of one page of a list over HTTP."""
NEAREST = 3
"""Number of similar existing categories in the message about an unknown one."""


class NoService(Exception):
    """The service cannot be used; the message is the reason, "" if none is running."""


class Documents(NamedTuple):
    """A page of documents, the total numbers of matching documents and chunks, and the `after` of the next page.

    `vectors_pending`: chunks of the branch that wait for their vectors.
    """

    documents: list[DocumentSummary]
    total: int
    chunks: int
    next: str | None
    vectors_pending: int


class Listing(NamedTuple):
    """Which documents a list has, and in which order."""

    limit: int
    offset: int = 0
    text: str = ""
    category: str | None = None
    content_types: Sequence[str] = ()
    sort: Sort = "newest"
    after: str = ""


def read(context: typer.Context, work: Callable[[Source], Coroutine[Any, Any, T]], *, direct: bool) -> T:
    """The result of `work` with the running service, or with an app of the settings; `direct`: with the latter."""
    settings = invocation(context).settings()
    if not direct:
        try:
            with RunningService(settings) as service:
                return _without_waiting(work(service))
        except NoService as reason:
            if str(reason):
                note(NOT_USED.format(reason=reason))
    return run_async(in_this_process(settings, work))


def _without_waiting(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for no event loop."""
    try:
        work.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    raise AssertionError("the methods of `RunningService` wait for nothing")


async def in_this_process(settings: Settings, work: Callable[[Source], Awaitable[T]]) -> T:
    """The result of `work` with an app of these settings. Raises `DatabaseUnavailable` and the errors of `work`."""
    async with _database_started(settings) as started:
        from dtrag.app import open_app

        await started()
        async with open_app(settings, standby=True) as app:
            result = await work(OwnApp(app))
            if app.database.on_standby:
                note(stale(await app.database.last_replayed()))
            return result


def stale(last: datetime | None) -> str:
    """What a result from a standby, whose last change is of that time, means."""
    known = f"whose last change is of {last:%Y-%m-%d %H:%M:%S} UTC" if last is not None else "whose age is not known"
    return f"This is the copy of a standby, {known}: later changes are missing, and nothing was recorded."


@asynccontextmanager
async def _database_started(settings: Settings) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    """Start the embedded server in a thread while the block imports the engine, which takes longer.

    Yields a function that waits for the server and raises `DatabaseUnavailable`. The server is released at the end.
    """
    import asyncio

    if settings.database_url:
        yield lambda: asyncio.sleep(0)
        return
    from dtrag.adapters.postgres.server.server import EmbeddedServer

    opening = asyncio.create_task(asyncio.to_thread(EmbeddedServer.open, settings.data_dir))
    try:
        await asyncio.sleep(0)  # the thread begins
        yield lambda: asyncio.shield(opening)
    finally:
        with suppress(errors.DatabaseUnavailable):
            server = await asyncio.shield(opening)
            await asyncio.shield(asyncio.to_thread(server.close))


class OwnApp:
    """An app in this process, read by the owner of its data folder."""

    def __init__(self, app: App) -> None:
        from dtrag.core.access.confinement import OWNER

        self._app, self._scope = app, OWNER

    async def ask(self, question: str, filters: Filters, as_of: str | None) -> Answer:
        """The answer, with a line in the audit log as a service writes it."""
        from dtrag.core.access.api_key import LOCAL

        answer = await self._app.ask(question, filters, scope=self._scope, as_of=as_of)
        await self._app.audit.note(
            LOCAL.name,
            "ask",
            scope=None,
            subjects=answer.audited_ids,
            decision="allowed",
            details=answer.audited_details,
        )
        return answer

    async def search(
        self, query: str, top_k: int | None, options: Mapping[str, Any]
    ) -> tuple[list[SearchResult], SearchMetrics]:
        return await self._app.search(query, top_k, scope=self._scope, **options)

    async def documents(self, listing: Listing) -> Documents:
        from dtrag.core.document_listing import DocumentListing, continuation

        limit, offset, text, category, types, sort, after = listing
        selected = DocumentListing.parse(text, types, sort, after)
        total, chunks = await self._app.counts(category=category, listing=selected, scope=self._scope)
        page = await self._app.documents(limit, offset, category=category, listing=selected, scope=self._scope)
        following = continuation(page[-1], sort) if len(page) == limit else None
        pending = await self._app.pending_vectors(category=category, scope=self._scope)
        return Documents(page, total, chunks, following, pending)

    async def document(self, document_id: str) -> tuple[DocumentSummary, str]:
        return await self._app.document(document_id, scope=self._scope)

    async def regulations(self, as_of: str | None) -> list[RegulationSummary]:
        return await self._app.regulations.regulations(scope=self._scope, as_of=as_of)

    async def provision(self, reference: str, as_of: str | None) -> ShownProvision:
        return await self._app.regulations.show(reference, scope=self._scope, as_of=as_of)

    async def citations(self, regulation: str | None, to: str | None, as_of: str | None) -> list[ProvisionCitation]:
        return await self._app.regulations.citations(regulation, to=to, scope=self._scope, as_of=as_of)

    async def verify(self, text: str, regulation: str | None, as_of: str | None) -> Verification:
        return await self._app.regulations.verify(text, regulation, scope=self._scope, as_of=as_of)

    async def difference(self, regulation: str, before: str, after: str) -> RegulationDiff:
        return await self._app.regulations.diff(regulation, before, after, scope=self._scope)

    async def stale(self, regulation: str | None, as_of: str | None) -> list[StaleCitation]:
        return await self._app.regulations.stale(regulation, scope=self._scope, as_of=as_of)

    async def own_entries(self) -> list[LexiconEntry]:
        return await self._app.lexicon.entries()

    async def categories(self) -> list[str]:
        taxonomy = (await self._app.index.snapshot()).taxonomy
        return ["/".join(path) for node in taxonomy.nodes if (path := taxonomy.path(node))]


class RunningService:
    """The service on the data folder: the methods of `OwnApp` as requests. They raise the errors of the service.

    Entering raises `NoService`, without a reason if no service is listening; so does every method when it ends early.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __enter__(self) -> RunningService:
        connected = _connected(self._settings.data_dir)
        from http.client import HTTPConnection

        self._connection = HTTPConnection("localhost")
        self._connection.sock, self._connection.auto_open = connected, 0
        digests = json.dumps(answer_settings(self._settings), separators=(",", ":"))
        try:
            self._request("GET", "/livez", headers={VERSION_HEADER: __version__, SETTINGS_HEADER: digests})
        except BaseException:
            self._connection.close()
            raise
        connected.settimeout(None)  # the operation has limits of its own, and Ctrl-C works
        return self

    def __exit__(self, *exception: object) -> None:
        self._connection.close()

    def workers(self) -> int:
        """Processes of the service that serve."""
        return int(self._get("/health")["workers"])

    async def ask(self, question: str, filters: Filters, as_of: str | None) -> Answer:
        return _value(Answer, self._post("/ask", question=question, filters=filters, as_of=as_of))

    async def search(
        self, query: str, top_k: int | None, options: Mapping[str, Any]
    ) -> tuple[list[SearchResult], SearchMetrics]:
        body = self._post("/search", query=query, top_k=top_k, **options)
        metrics = _value(SearchMetrics, {**body["metrics"], "correlation_id": ""})
        return _value(list[SearchResult], body["results"]), metrics

    async def documents(self, listing: Listing) -> Documents:
        limit, offset, text, category, types, sort, after = listing
        selection = {"q": text, "category": category, "type": list(types), "sort": sort}
        documents: list[DocumentSummary] = []
        while True:
            length = min(PAGE, limit - len(documents))
            body = self._get("/documents", **selection, limit=length, offset=offset, after=after)
            documents += _value(list[DocumentSummary], body["documents"])
            if body["next"] is None or len(documents) == limit:
                total = body["total"]
                counts = total["documents"], total["chunks"]
                return Documents(documents, *counts, body["next"], total["vectors_pending"])
            offset, after = 0, body["next"]

    async def document(self, document_id: str) -> tuple[DocumentSummary, str]:
        body = self._get(f"/documents/{quote(document_id, errors='replace')}")
        return _value(DocumentSummary, body), body["text"]

    async def regulations(self, as_of: str | None) -> list[RegulationSummary]:
        from dtrag.core.provisions import RegulationSummary

        return self._all(RegulationSummary, "regulations", "/regulations", as_of=as_of)

    async def provision(self, reference: str, as_of: str | None) -> ShownProvision:
        from dtrag.core.provisions import ShownProvision

        return _value(ShownProvision, self._get("/regulations/show", reference=reference, as_of=as_of))

    async def citations(self, regulation: str | None, to: str | None, as_of: str | None) -> list[ProvisionCitation]:
        from dtrag.core.provisions import ProvisionCitation

        chosen = {"regulation": regulation, "to": to, "as_of": as_of}
        return self._all(ProvisionCitation, "citations", "/regulations/citations", **chosen)

    async def verify(self, text: str, regulation: str | None, as_of: str | None) -> Verification:
        from dtrag.core.verification import Verification

        body = self._post("/regulations/verify", text=text, regulation=regulation, as_of=as_of)
        return _value(Verification, body)

    async def difference(self, regulation: str, before: str, after: str) -> RegulationDiff:
        from dtrag.core.regulation_changes import RegulationDiff

        body = self._get("/regulations/diff", regulation=regulation, before=before, after=after)
        return _value(RegulationDiff, body)

    async def stale(self, regulation: str | None, as_of: str | None) -> list[StaleCitation]:
        from dtrag.core.regulation_changes import StaleCitation

        return self._all(StaleCitation, "stale", "/regulations/stale", regulation=regulation, as_of=as_of)

    async def own_entries(self) -> list[LexiconEntry]:
        from dtrag.core.lexicon_entry import LexiconEntry

        return _value(list[LexiconEntry], self._get("/lexicon")["entries"])

    async def categories(self) -> list[str]:
        return list(_paths(self._get("/taxonomy/active/tree")["tree"]))

    def _all(self, kind: type[T], name: str, path: str, **query: object) -> list[T]:
        """All pages of a list, whose entries are `name` in the response."""
        entries: list[T] = []
        while True:
            body = self._get(path, **query, limit=PAGE, offset=len(entries))
            entries += _value(list[kind], body[name])  # type: ignore[valid-type]
            if len(entries) >= body["total"] or not body[name]:
                return entries

    def _get(self, path: str, **query: object) -> Any:
        present = {name: value for name, value in query.items() if value not in (None, "", [])}
        return self._request("GET", f"{path}?{urlencode(present, doseq=True, errors='replace')}")

    def _post(self, path: str, **body: object) -> Any:
        return self._request("POST", path, json.dumps(body), {"Content-Type": "application/json"})

    def _request(self, method: str, path: str, body: str | None = None, headers: Mapping[str, str] = {}) -> Any:
        """The JSON of the response. Raises `NoService`, and the `DtragError` that the service reports."""
        from http.client import HTTPException

        try:
            self._connection.request(method, path, body, dict(headers))
            response = self._connection.getresponse()
            content = json.loads(response.read())
        except TimeoutError:
            raise NoService(f"it did not respond within {ANSWERS_WITHIN_S} s") from None
        except (OSError, HTTPException, ValueError) as error:
            raise NoService("it closed the connection") from error
        if response.status == 200:
            return content
        reported = error_of(content)
        if reported is None:
            raise NoService(str(content["detail"]).removesuffix("."))
        if isinstance(reported, errors.Stopping):
            raise NoService("it is stopping")
        raise reported


def error_of(content: Mapping[str, Any]) -> errors.DtragError | None:
    """The error that a response of the service reports; None for one that only this route knows."""
    kind = getattr(errors, str(content["type"]), None)
    return kind(content["detail"]) if isinstance(kind, type) and issubclass(kind, errors.DtragError) else None


def is_running(settings: Settings) -> bool:
    """Whether a service that answers as this process would runs on the data folder; a note says why not."""
    try:
        with RunningService(settings):
            return True
    except NoService as reason:
        if str(reason):
            note(NOT_USED.format(reason=reason))
        return False


Source = RunningService | OwnApp
"""Where a command reads."""


async def is_empty(source: Source) -> bool:
    """Whether there is no document."""
    return (await source.documents(Listing(limit=1))).total == 0


async def check_categories(source: Source, paths: Sequence[str] | None) -> None:
    """Raise `InvalidInput` for a path that is not in the active tree; the message names similar ones."""
    if not paths:
        return
    from dtrag.core.taxonomy.tree import CategoryPath

    known = sorted(await source.categories())
    keys = {CategoryPath.parse(path).key for path in known}
    for path in map(CategoryPath.parse, paths):
        if path.key not in keys:
            raise errors.InvalidInput(f"There is no category {str(path)!r}. {_suggestion(str(path), known)}")


def _suggestion(path: str, known: Sequence[str]) -> str:
    if not known:
        return "There are no categories yet."
    import difflib

    folded = {name.casefold(): name for name in known}
    similar = difflib.get_close_matches(path.casefold(), folded, NEAREST, cutoff=0.5)
    last_name = path.casefold().rpartition("/")[2]
    similar += [name for name in folded if name.rpartition("/")[2] == last_name and name not in similar]
    if similar:
        return f"Nearest: {', '.join(folded[name] for name in similar[:NEAREST])}."
    return "List them with: dtrag taxonomy tree"


def _connected(data_dir: Path) -> socket.socket:
    """A connection to the service. Raises `NoService`, without a reason if no service is listening."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(ANSWERS_WITHIN_S)
        if (data_dir / FOLDER).lstat().st_uid != os.geteuid():
            raise NoService("its socket belongs to another user")
        with socket_address(data_dir) as address:
            connection.connect(address)
    except BaseException as error:
        connection.close()
        if isinstance(error, TimeoutError | BlockingIOError):
            raise NoService(f"it did not respond within {ANSWERS_WITHIN_S} s") from None
        if isinstance(error, OSError):
            raise NoService from None
        raise
    return connection


def _value(kind: type[T], value: Any) -> T:
    """The value of type `kind` whose JSON is `value`: dataclasses, lists, tuples, None and plain values."""
    result: T = _converted(kind, value)
    return result


def _converted(kind: Any, value: Any) -> Any:
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        known = {
            field: _converted(hints[field.name], value[field.name]) for field in fields(kind) if field.name in value
        }
        result = kind(**{field.name: item for field, item in known.items() if field.init})
        for field, item in known.items():
            if not field.init:  # statements, which the value derives from texts with codes: JSON has none of these
                object.__setattr__(result, field.name, item)
        return result
    arguments = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        inner = [argument for argument in arguments if argument is not NoneType]
        return _converted(inner[0], value) if value is not None and len(inner) == 1 else value
    if get_origin(kind) is list:
        return [_converted(arguments[0], item) for item in value]
    if get_origin(kind) is tuple and arguments[-1] is Ellipsis:
        return tuple(_converted(arguments[0], item) for item in value)
    return tuple(value) if get_origin(kind) is tuple else value


def _paths(nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for node in nodes:
        yield "/".join(node["path"])
        yield from _paths(node["children"])
