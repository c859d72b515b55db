"""Twin worlds: every route is tried or exempt, both worlds answer alike, and what leaks is noticed."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi import FastAPI
from starlette.responses import Response

from dtrag.core.access.api_key import LOCAL
from dtrag.core.access.scope import Scope
from dtrag.delivery.api.app import create_app, serve_opened
from dtrag.isolation.library import VISITORS, Visitor
from dtrag.isolation.proof import play_round
from dtrag.isolation.scenarios import EXEMPT, routes_tried
from dtrag.isolation.visits import PROMPTS, SCENARIOS, Comparison, Route, Visit, World, compare
from dtrag.isolation.worlds import WordHashes, twin_worlds
from dtrag.settings import Settings
from tests.api.test_keys import client_of
from tests.api.test_sign_in import signed_in, written
from tests.cases import each
from tests.identity_provider import IdentityProvider

READER = VISITORS[0]
TWO = tuple(visitor for visitor in VISITORS if visitor.name in {"office-editor", "bread-editor"})
EVERYTHING = Scope.everything()
METHODS = {"get", "post", "put", "patch", "delete"}


def test_every_route_of_openapi_is_tried_or_exempt() -> None:
    """A new route needs a scenario in `isolation/scenarios.py`, or an entry in `EXEMPT` with the reason."""
    described = create_app(Settings.load(environ={}, embedder="none")).openapi()["paths"]
    routes: set[Route] = {
        f"{method.upper()} {path}" for path, methods in described.items() for method in METHODS & methods.keys()
    }
    assert routes_tried() & EXEMPT.keys() == set()
    assert routes - routes_tried() - EXEMPT.keys() == set()
    beside = {
        "GET /docs",
        "GET /openapi.json",
        "POST /mcp",
        "POST /mcp/agents/{agent_id}",
    }  # routes that OpenAPI does not describe
    assert (routes_tried() | EXEMPT.keys()) - routes == beside, "these are no routes any more"
    assert all(len(reason) > 20 for reason in EXEMPT.values())


@each(
    "text",
    [
        '{"degraded":["citations"]}',
        '{"metrics": {"degraded": ["lexical"]}}',
        '{"degraded":[],"x":{"degraded":["llm"]}}',
        '{"status":"degraded","checks":{"filter":{"status":"degraded"}}}',
    ],
)
async def test_a_late_response_is_recognised(text: str) -> None:
    for body, late in ((text, True), ('{"degraded":[]}', False), ('{"degraded": []}', False)):
        service = Response(body, media_type="application/json")
        visit = Visit(World(service, {}, {}), READER, random.Random(1))
        await visit.send("POST /search", {})
        assert [exchange.late for exchange in visit.exchanges] == [late]


async def test_both_worlds_answer_alike_to_a_person_with_groups(settings: Settings, tmp_path: Path) -> None:
    """The person has the branches and the role of a visitor, and a session instead of a key."""
    visitor = TWO[0]
    branches = ["/".join(path) for path in visitor.paths]
    group = f'[[provider.group]]\nname = "office"\nrole = "{visitor.role}"\nbranches = {json.dumps(branches)}\n'
    with IdentityProvider() as provider:
        provider.people["kim"] = ["office", "chess"]
        file = written(tmp_path, [("university", provider.issuer, group)])
        own = replace(settings, sign_in=file, rate_per_minute=1_000_000)
        async with twin_worlds(own, WordHashes(), serve_opened) as pair:
            for app in pair.apps:
                await app.open_sign_in()
            pair.begin_round(1)
            compared = Comparison()
            for scenario in SCENARIOS:
                worlds = [await with_session(world, visitor, provider) for world in pair.worlds]
                await compare(scenario, worlds, visitor, scenario.name, into=compared)
        assert compared.examples == []
        assert compared.pairs.keys() >= routes_tried() and compared.pairs[PROMPTS] > 2


async def with_session(world: World, visitor: Visitor, provider: IdentityProvider) -> World:
    """The world with a new session of the person: one of the routes ends it."""
    async with client_of(cast("FastAPI", world.service), {"x-requested-with": "dtrag-page"}) as browser:
        session = await signed_in(browser, provider)
        assert (session["name"], session["role"]) == ("university/kim", visitor.role)
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        return replace(world, headers={visitor.name: {"cookie": cookie, "x-csrf-token": session["csrf"]}})


async def test_both_worlds_answer_alike_and_leaks_are_detected(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with twin_worlds(settings, WordHashes(), serve_opened) as pair:
        found = Comparison()
        pair.begin_round(1)
        await play_round(pair.worlds, 1, found, visitors=TWO)
        assert found.examples == []
        assert found.pairs.keys() >= routes_tried()
        assert found.pairs[PROMPTS] > 5
        report = found.as_dict(EXEMPT)
        assert (report["differences"], report["pairs"]) == (0, sum(row["pairs"] for row in report["routes"].values()))

        async def noticed(name: str) -> Comparison:
            broken = Comparison()
            [scenario] = [entry for entry in SCENARIOS if entry.name == name]
            for visitor in (READER, *TWO):
                await compare(scenario, pair.worlds, visitor, f"3:{visitor.name}", into=broken)
            return broken

        pair.begin_round(0)
        for app in pair.apps:
            whole = app.classifier.classify

            async def from_the_whole_tree(text: str, title: str = "", *, scope: Any, _whole: Any = whole) -> Any:
                return await _whole(text, title, scope=EVERYTHING)

            with monkeypatch.context() as broken:
                broken.setattr(app.classifier, "classify", from_the_whole_tree)
                assert (await noticed("classifying")).differing["POST /classify"] > 0

            lexical = app.index.lexical

            async def unscoped(query: Any, scope: Scope, *rest: Any, _lexical: Any = lexical) -> Any:
                return await _lexical(query, EVERYTHING, *rest)

            with monkeypatch.context() as broken:
                broken.setattr(app.index, "lexical", unscoped)
                app.engine.clear_cache()
                assert (await noticed("searching")).differing["POST /search"] > 0
            app.engine.clear_cache()

            collections = app.regulations._collections
            read = collections.read

            async def with_all_regulations(snapshot: Any, scope: Scope, _read: Any = read) -> Any:
                return await _read(snapshot, EVERYTHING)

            with monkeypatch.context() as broken:
                broken.setattr(collections, "read", with_all_regulations)
                differing = (await noticed("regulations")).differing
                assert differing["GET /regulations"] > 0
                assert differing["GET /regulations/citations"] > 0

            statistics = app.index.statistics

            async def of_all_branches(terms: Any, scope: Scope, _statistics: Any = statistics) -> Any:
                return await _statistics(terms, EVERYTHING)

            with monkeypatch.context() as broken:
                broken.setattr(app.index, "statistics", of_all_branches)
                app.engine.clear_cache()
                assert (await noticed("regulations")).differing["POST /regulations/search"] > 0
            app.engine.clear_cache()

            documents = app.index.documents

            async def with_folders(scope: Scope, taxonomy: Any, _documents: Any = documents, **paging: Any) -> Any:
                return await _documents(replace(scope, server_paths=True), taxonomy, **paging)

            with monkeypatch.context() as broken:
                broken.setattr(app.index, "documents", with_folders)
                shown = (await noticed("documents")).examples
                assert {difference.path for difference in shown} == {"GET /documents (documents)"}
        agent = await pair.apps[0].agents.create("1.0.0", [["Handbook", "Leave"]], None, name="One more", caller=LOCAL)
        assert (await noticed("agents")).differing["GET /agents"] > 0
        await pair.apps[0].agents.delete(str(agent.agent_id))
        assert (await noticed("agents")).examples == []

        store = pair.apps[0].case_store
        with monkeypatch.context() as broken:
            for method in ("nearest", "get", "statistics", "page"):
                whole = getattr(store, method)

                async def of_everything(*values: Any, _whole: Any = whole) -> Any:
                    return await _whole(*(EVERYTHING if isinstance(value, Scope) else value for value in values))

                broken.setattr(store, method, of_everything)
            differing = (await noticed("case_memory")).differing  # the last check: visitors change what they see
        routes = {
            "POST /cbr/suggest",
            "GET /cbr/cases/{case_id}",
            "GET /cbr/stats",
            "GET /cbr/cases",
        }
        assert routes <= differing.keys()
