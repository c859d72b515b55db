"""The isolation test finds holes: each is really planted in both of two worlds, which then have to respond differently.

A hole that is not found means that a visitor is missing, or that the worlds are too similar: change those.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from dtrag.adapters.postgres.lexical.strict_index import StrictIndex
from dtrag.adapters.postgres.queries import queries
from dtrag.app import App
from dtrag.core.access.api_key import LOCAL, Key
from dtrag.core.access.scope import Access, Scope
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.delivery.api.app import serve_opened
from dtrag.delivery.api.authentication import Authentication
from dtrag.isolation.library import VISITORS, Visitor
from dtrag.isolation.scenarios import routes_tried
from dtrag.isolation.visits import SCENARIOS, Comparison, Route, Scenario, Visit, compare
from dtrag.isolation.worlds import TwinWorlds, WordHashes, twin_worlds
from dtrag.settings import Settings

ROUNDS = 2
"""Quoted answers, and answers of a model."""

WITHOUT_SCOPE: dict[Route, str] = {
    "GET /docs": "the same page for everybody",
    "GET /health": "the state of the service, without documents",
    "GET /openapi.json": "the same description for everybody",
    "GET /readyz": "the state of the service, without documents",
    "GET /session": "the key of the request itself",
    "DELETE /session": "the session of the request itself",
    "GET /conversations": "conversations belong to a key, whatever its scope: see HOLES",
    "GET /conversations/{conversation_id}": "as above",
    "PUT /conversations/{conversation_id}": "as above",
    "DELETE /conversations/{conversation_id}": "as above",
    "POST /chat/feedback": "answers belong to a key, whatever its scope: see HOLES",
    "POST /cbr/feedback": "votes on cases of an own interaction, which were in scope when it was shown",
    "POST /filter/test": "computes with the documents in the request only",
    "POST /filter/validate": "computes with the paths in the request only",
    "GET /tools": "the registered tools, which are the same for everybody",
    "POST /backups": "a job of the whole database; the worlds have no folder for it",
    "POST /sources/sync": "a job over sources of the settings; the worlds have none",
    "POST /v1/embeddings": "computes with the texts in the request only",
    "POST /evaluations": "stores a job, which runs with the access that its maker has then",
    "POST /tools/{name}/approve": "tools of MCP servers, of which the worlds have none",
    "DELETE /tools/{name}/approve": "as above",
    "PUT /settings/{name}": "changes a setting; that of the public branches is fixed in the worlds",
    "DELETE /settings/{name}": "removes a stored value, and shows nothing",
}
"""Routes on which a forgotten scope shows nothing, with reasons. On every other route it has to be found."""

requested: ContextVar[Route | None] = ContextVar("requested", default=None)
"""The route that a visitor requests."""


@contextmanager
def forgotten_scope(route: Route) -> Iterator[None]:
    """On this route every key counts as one without a scope."""
    recognised, send = Authentication._recognised, Visit.send

    async def without_scope(self: Authentication, scope: Any) -> Key | None:
        key = await recognised(self, scope)
        return replace(key, grant=None) if key is not None and requested.get() == route else key

    async def noting(self: Visit, route: Route, *values: Any, **more: Any) -> Any:
        token = requested.set(route)
        try:
            return await send(self, route, *values, **more)
        finally:
            requested.reset(token)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Authentication, "_recognised", without_scope)
        patch.setattr(Visit, "send", noting)
        yield


@dataclass
class Search:
    """The search for differences in two worlds: `missed` routes, and what found the others."""

    pair: TwinWorlds
    missed: set[Route]
    found: list[tuple[int, Scenario, Visitor, Route]] = field(default_factory=list)

    @classmethod
    async def of(cls, pair: TwinWorlds, routes: Sequence[Route]) -> Search:
        """All visitors play the scenarios with these routes, until each has differed."""
        search = cls(pair, set(routes))
        for number in range(ROUNDS):
            for scenario in SCENARIOS:
                for visitor in reversed(VISITORS):
                    if scenario.routes & search.missed:
                        differing = await search._play(number, scenario, visitor)
                        search.found += [(number, scenario, visitor, route) for route in differing & search.missed]
                        search.missed -= differing
        return search

    async def replay(self, pair: TwinWorlds) -> list[str]:
        """The routes that differ in these worlds as well, which do not have the hole."""
        self.pair, differing = pair, []
        for number, scenario, visitor, route in self.found:
            if route in await self._play(number, scenario, visitor):
                differing.append(f"{route}, without the hole")
        return differing

    async def _play(self, number: int, scenario: Scenario, visitor: Visitor) -> set[Route]:
        self.pair.begin_round(number)
        for app in self.pair.apps:
            app.engine.clear_cache()
        comparison = Comparison()
        await compare(scenario, self.pair.worlds, visitor, f"hole:{number}:{visitor.name}", into=comparison)
        return set(comparison.differing)


class Worlds:
    """Twin worlds that are made again once visitors have changed them through a hole."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._open = AsyncExitStack()
        self.pair: TwinWorlds

    async def __aenter__(self) -> Worlds:
        self.pair = await self._open.enter_async_context(twin_worlds(self._settings, WordHashes(), serve_opened))
        for app in self.pair.apps:  # now: created in the background, it would deadlock with a change of the policies
            await StrictIndex(app.database).create()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._open.aclose()

    async def missed_by(self, search: Search) -> list[str]:
        """The routes on which the search found nothing, or what is there without the hole, too."""
        missed = sorted(search.missed)
        deleted = not DELETING.isdisjoint(route for *_, route in search.found)
        if deleted or await search.replay(self.pair):
            await self._open.aclose()
            await self.__aenter__()
            missed += await search.replay(self.pair)
        return missed


DELETING: frozenset[Route] = frozenset({"POST /documents/changes", "DELETE /documents/{document_id}"})
"""Routes by which visitors delete a hidden document through a hole: without it the worlds no longer differ."""
ORDER = {"GET": 0, "POST": 1, "PUT": 2, "DELETE": 3}
"""Visitors with a forgotten scope change what others see: those that read are first."""


@pytest.mark.long_fault
async def test_a_forgotten_scope_is_found_on_every_route(settings: Settings) -> None:
    assert WITHOUT_SCOPE.keys() <= routes_tried()
    missed = []
    async with Worlds(settings) as worlds:
        for route in sorted(routes_tried() - WITHOUT_SCOPE.keys(), key=lambda route: (ORDER[route.split()[0]], route)):
            with forgotten_scope(route):
                search = await Search.of(worlds.pair, [route])
            missed += await worlds.missed_by(search)
    assert missed == []


@dataclass(frozen=True)
class Hole:
    """A hole that `plant` makes in an app, and the routes on which it has to be found."""

    name: str
    plant: Callable[[App, pytest.MonkeyPatch], Any]
    routes: tuple[Route, ...]


def unscoped(part: str, *methods: str) -> Callable[[App, pytest.MonkeyPatch], Any]:
    """Methods of a part of the app that forget the scope they are called with."""

    def everything(value: Any) -> Any:
        if isinstance(value, Access):
            return Access(server_paths=value.server_paths)
        return replace(Scope.everything(), server_paths=value.server_paths) if isinstance(value, Scope) else value

    def plant(app: App, patch: pytest.MonkeyPatch) -> None:
        target: Any = app
        for name in part.split("."):
            target = getattr(target, name)
        for method in methods:
            whole = getattr(target, method)

            async def forgetful(*values: Any, _whole: Any = whole, **more: Any) -> Any:
                scopes = {name: everything(value) for name, value in more.items()}
                return await _whole(*map(everything, values), **scopes)

            patch.setattr(target, method, forgetful)

    return plant


def by_anyone(part: str, *methods: str) -> Callable[[App, pytest.MonkeyPatch], Any]:
    """Methods of a service of the app that take every caller for the administrator of everything."""

    def plant(app: App, patch: pytest.MonkeyPatch) -> None:
        target: Any = app
        for name in part.split("."):
            target = getattr(target, name)
        for method in methods:
            whole = getattr(target, method)

            async def forgetful(*values: Any, caller: Any, _whole: Any = whole, **more: Any) -> Any:
                return await _whole(*values, caller=LOCAL, **more)

            patch.setattr(target, method, forgetful)

    return plant


def rating_for_others(app: App, patch: pytest.MonkeyPatch) -> None:
    """Any answer can be rated."""

    async def _own(trace_id: Any, caller: Any) -> Any:
        return (await app.traces.get(trace_id)).trace_id

    patch.setattr(app.feedback, "_own", _own)


def without_rights(app: App, patch: pytest.MonkeyPatch) -> None:
    """What the rights of a source hide is shown to everybody with its branch."""
    patch.setattr(Taxonomy, "hidden_from", lambda taxonomy, principals: frozenset())


def without_condition(subject: str, statement: str, condition: str) -> Callable[[App, pytest.MonkeyPatch], Any]:
    """A statement without one of its conditions."""

    def plant(app: App, patch: pytest.MonkeyPatch) -> None:
        text = queries(subject)[statement]
        if condition in text:  # the same statements serve both worlds
            patch.setitem(queries(subject), statement, text.replace(condition, "true"))

    return plant


def without_policy(table: str) -> Callable[[App, pytest.MonkeyPatch], Any]:
    """The table shows every row to everybody."""

    return lambda app, patch: execute(app, f"alter table {table} disable row level security")


TABLES = ("documents", "chunks", "cbr_cases", "cbr_logs")
"""Those under row-level security."""


@asynccontextmanager
async def planted(pair: TwinWorlds, hole: Hole) -> AsyncIterator[None]:
    """Both worlds have the hole inside the block. What was read without it or with it is not cached any longer."""
    with pytest.MonkeyPatch.context() as patch:
        for app in pair.apps:
            pending = hole.plant(app, patch)
            if pending is not None:
                await pending
            await execute(app, NEXT_GENERATION)
        yield
    for app in pair.apps:
        await execute(app, *(f"alter table {table} enable row level security" for table in TABLES), NEXT_GENERATION)


NEXT_GENERATION = "update index_settings set value = to_jsonb((value #>> '{}')::int + 1) where name = 'generation'"


async def execute(app: App, *statements: str) -> None:
    """Run statements as the owner."""
    async with app.database.connection("owner") as connection:
        for statement in statements:
            await connection.execute(statement.encode())


SEARCH: Route = "POST /search"
# Not here: parts whose forgotten scope changes no response, because what they are asked for is in scope already
# (`index.fetch`, `index.preceding`, `index.lexical_scores`, `index.vector_scores`, `regulations.read`,
# `regulations.editions`, `cases.of`, `cases.vote`, `cases.change`); and `index.holds_kind`: both have regulations.
HOLES = (
    Hole("policy of documents dropped", without_policy("documents"), ("GET /documents", "GET /regulations")),
    Hole("policy of passages dropped", without_policy("chunks"), (SEARCH,)),
    Hole("policy of cases dropped", without_policy("cbr_cases"), ("GET /cbr/cases", "POST /cbr/suggest")),
    Hole("policy of interactions dropped", without_policy("cbr_logs"), ("GET /cbr/logs", "GET /cbr/stats")),
    *(
        Hole(f"index.{method} forgets the scope", unscoped("index", method), routes)
        for method, routes in {
            "lexical": (SEARCH,),
            "strict": (SEARCH,),
            "vectors": (SEARCH,),
            "statistics": (SEARCH,),
            "titled": (SEARCH,),
            "work_beginnings": (SEARCH,),
            "chunk_ids": (SEARCH,),
            "documents": ("GET /documents",),
            "document": ("GET /documents/{document_id}",),
            "counts": ("GET /documents", "POST /agents/reach", "GET /agents/{agent_id}/reach"),
            "document_text": ("GET /documents/{document_id}/text",),
            "passage_spans": ("GET /documents/{document_id}/passages",),
        }.items()
    ),
    *(
        Hole(f"cases.{method} forgets the scope", unscoped("case_store", method), routes)
        for method, routes in {
            "nearest": ("POST /cbr/suggest",),
            "get": ("GET /cbr/cases/{case_id}",),
            "page": ("GET /cbr/cases", "GET /cbr/export"),
            "statistics": ("GET /cbr/stats",),
            "logs": ("GET /cbr/logs",),
            "decisions": ("GET /cbr/stats",),
        }.items()
    ),
    Hole(
        "rights of sources are forgotten",
        without_rights,
        (SEARCH, "GET /documents", "GET /taxonomy/{version}/tree", "POST /ask", "POST /retrieval"),
    ),
    Hole(
        "every regulation is listed",
        unscoped("_collections._store", "versions"),
        ("GET /regulations",),
    ),
    *(
        Hole(f"review.{method} forgets the scope", unscoped("review._store", method), routes)
        for method, routes in {
            "waiting": ("GET /review",),
            "get": ("GET /review/{item_id}",),
        }.items()
    ),
    Hole("the classifier uses every branch", unscoped("classifier", "classify"), ("POST /classify",)),
    Hole("agents of all branches are listed", by_anyone("agents", "every"), ("GET /agents", "GET /v1/models")),
    Hole("every agent can be read", by_anyone("agents", "get"), ("GET /agents/{agent_id}",)),
    Hole("traces of all callers are listed", by_anyone("traces", "newest"), ("GET /traces",)),
    Hole("every trace can be read", by_anyone("traces", "get"), ("GET /traces/{trace_id}",)),
    Hole(
        "conversations of all keys are listed",
        without_condition("conversations", "conversations", "c.owner = %(owner)s"),
        ("GET /conversations",),
    ),
    Hole(
        "conversations of all keys are counted",
        without_condition("conversations", "conversation_count", "c.owner = %(owner)s"),
        ("GET /conversations",),
    ),
    Hole(
        "every conversation can be read",
        without_condition("conversations", "conversation", "c.owner = %(owner)s"),
        ("GET /conversations/{conversation_id}",),
    ),
    Hole(
        "every conversation can be deleted",
        without_condition("conversations", "delete_conversation", "owner = %(owner)s"),
        ("DELETE /conversations/{conversation_id}",),
    ),
    Hole("answers to others can be rated", rating_for_others, ("POST /chat/feedback",)),
    Hole(
        "changes of many documents forget the scope",
        unscoped("document_changes._store", "preview", "change"),
        ("POST /documents/changes",),
    ),
    Hole("writer.delete forgets the scope", unscoped("_writer", "delete"), ("DELETE /documents/{document_id}",)),
)


@pytest.mark.long_fault
async def test_planted_holes_are_found(settings: Settings) -> None:
    missed = []
    async with Worlds(settings) as worlds:
        for hole in HOLES:
            async with planted(worlds.pair, hole):
                search = await Search.of(worlds.pair, hole.routes)
            missed += [f"{hole.name}: {name}" for name in await worlds.missed_by(search)]
    assert missed == []
