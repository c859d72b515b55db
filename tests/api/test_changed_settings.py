"""Settings that administrators change while services run: what takes effect, who may, and what is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from psycopg.types.json import Jsonb

from dtrag.app import App, open_app
from dtrag.delivery.cli.checks import examine
from dtrag.errors import Conflict, InvalidInput, NotFound
from dtrag.settings import Settings, changeable_settings
from tests.api.confined import CANARY, House, house
from tests.api.shape import assert_failure
from tests.api.test_keys import client_of
from tests.cases import each
from tests.integration.cli_process import Cli, Ran
from tests.store import Databases, Store

FAR = ("203.0.113.7", 1)
Read = Callable[[App], Any] | None


@pytest_asyncio.fixture(scope="module")
async def running(houses_of_module: Databases) -> AsyncIterator[tuple[House, House]]:
    """Two services of one database; the second is started first, so that its settings are older."""
    settings = houses_of_module.settings()
    async with AsyncExitStack() as stack:
        second = await stack.enter_async_context(house(settings))
        first = await stack.enter_async_context(house(settings))
        await first.client("admin", None, "admin")
        yield first, second


async def soon(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - another service changes it
            await asyncio.sleep(0.05)


IN_USE: dict[str, tuple[Any, Read]] = {
    "agent_tokens_per_day": (11, lambda app: app.agents._default().tokens),
    "agent_krw_per_day": (12, lambda app: app.agents._default().krw),
    "decision": ("careful", lambda app: app.run.policy),
    "review_below": (0.25, lambda app: app.review._review_below()),
    "reader": ("off", lambda app: "on" if app.run.reads else "off"),
    "debate": ("auto", lambda app: app.run.debates),
    "trace_days": (3, lambda app: app.traces._days()),
    "conversation_days": (4, lambda app: app.conversations._days()),
    "public": ("AI/ML", lambda app: app.public and ",".join(str(each.path) for each in app.public.grant.anchors)),
    "public_rate_per_minute": (50, lambda app: app.public and app.public.per_address),
    "public_rate_in_all": (60, lambda app: app.public and app.public.in_all),
    "public_tokens_per_day": (70, lambda app: app.public and app.public._budget.tokens),
    "public_krw_per_day": (80, lambda app: app.public and app.public._budget.krw),
    "page_name": ("규정 안내", None),
    "page_greeting": ("What would you like to know?", None),
    "page_colour": ("#7a1f3d", None),
}
"""A value of each changeable setting, and how it is read where it is used; None: the page."""


def test_all_changeable_settings_are_tried() -> None:
    assert IN_USE.keys() == changeable_settings().keys()


def in_use(service: House, name: str) -> Any:
    read = IN_USE[name][1]
    if read is not None:
        return read(service.app)
    return getattr(service.api.state.service.presentation, name.removeprefix("page_"))


@each("name", sorted(IN_USE, key=lambda name: (name != "public", name)))
async def test_a_change_takes_effect_in_every_service(running: tuple[House, House], name: str) -> None:
    first, second = running
    admin, value = first.clients["admin"], IN_USE[name][0]
    before = getattr(first.app.settings, name)
    body = {"value": value, "accept_widening": True}
    answer = (await admin.put(f"/settings/{name}", json=body)).json()["setting"]
    assert [answer[fact] for fact in ("value", "changed_by", "fixed", "is_default")] == [value, "admin", False, False]
    await soon(lambda: getattr(second.app.settings, name) == value)
    assert [in_use(service, name) for service in running] == [value, value]
    [row] = [row for row in (await admin.get("/settings")).json()["settings"] if row["name"] == name]
    assert row == answer
    line = [line for line in await first.audited() if line["action"] == "settings.set"][-1]
    assert (line["actor"], line["subjects"]) == ("admin", [name])
    assert [str(line["details"][fact]) for fact in ("old", "new")] == [str(before), str(value)]
    async with open_app(replace(first.app.changed_settings.at_start)) as started_later:
        assert getattr(started_later.settings, name) == value
    if not name.startswith("public"):
        assert (await admin.delete(f"/settings/{name}")).status_code == 204
        await soon(lambda: getattr(second.app.settings, name) == before)
        line = [line for line in await first.audited() if line["action"] == "settings.unset"][-1]
        assert (line["subjects"], str(line["details"]["new"])) == ([name], str(before))


@each("role, scope", [("reader", None), ("editor", None), ("admin", ["AI"])])
async def test_only_administrators_of_the_whole_tree_change_settings(
    running: tuple[House, House], role: Any, scope: list[str] | None
) -> None:
    client = await running[0].client(f"{role} {scope}", scope, role)
    body = {"value": "*", "accept_widening": True}
    assert_failure(await client.put("/settings/public", json=body), 403)
    assert_failure(await client.put("/settings/public", json={"value": "*", "dry_run": True}), 403)
    assert_failure(await client.delete("/settings/public"), 403)


async def test_public_branches_are_shown_before_they_are_opened(houses: Databases) -> None:
    async with house(houses.settings()) as service, client_of(service.api, address=FAR) as anyone:
        async with client_of(service.api) as local:
            refused = await local.put("/settings/public", json={"value": "AI", "accept_widening": True})
            assert "dtrag keys create --role admin" in assert_failure(refused, 409)["detail"]
        admin = await service.client("admin", None, "admin")
        assert_failure(await anyone.get("/documents"), 401)
        shown = (await admin.put("/settings/public", json={"value": "AI/ML, 학사", "dry_run": True})).json()["public"]
        assert shown == {
            "documents": 3,
            "gained": 3,
            "lost": 0,
            "widens": True,
            "branches": [{"path": ["AI", "ML"], "documents": 2}, {"path": ["학사"], "documents": 1}],
        }
        assert_failure(await anyone.get("/documents"), 401)
        refused = await admin.put("/settings/public", json={"value": "AI/ML, 학사"})
        assert "accept_widening" in assert_failure(refused, 409)["detail"]
        assert service.app.public is None
        opened = await admin.put("/settings/public", json={"value": "AI/ML, 학사", "accept_widening": True})
        assert opened.json()["public"] == shown
        assert len((await anyone.get("/documents")).json()["documents"]) == 3
        assert CANARY not in (await anyone.post("/search", json={"query": CANARY})).text
        assert (await anyone.post("/ask", json={"question": "What does machine learning find?"})).status_code == 200
        assert (await admin.put("/settings/public", json={"value": "AI/ML"})).json()["public"]["lost"] == 1
        assert len((await anyone.get("/documents")).json()["documents"]) == 2
        assert_failure(await admin.put("/settings/public", json={"value": "*"}), 409)
        missing = assert_failure(await admin.put("/settings/public", json={"value": "Nowhere"}), 422)["detail"]
        assert "no category Nowhere" in missing and "GET /taxonomy/active/tree" in missing
        version = await service.app.taxonomy.propose([{"op": "move", "path": "HR/Salary", "to": "AI/ML"}])
        with pytest.raises(Conflict, match="become visible to"):
            await service.app.taxonomy.activate(version.version)
        assert (await admin.delete("/settings/public")).status_code == 204
        assert_failure(await anyone.get("/documents"), 401)
        assert_failure(await anyone.post("/ask", json={"question": "What is a tree?"}), 401)


@each(
    "name, value, status, message",
    [
        ("review_below", 1.5, 422, "DTRAG_REVIEW_BELOW is 1.5, but must be from 0 to 1"),
        ("trace_days", 2.5, 422, "a whole number"),
        ("decision", "brave", 422, "careful, balanced or eager"),
        ("public", "AI//ML", 422, "paths of categories"),
        ("llm_api_key", "hush", 409, "cannot be changed while the service runs"),
        ("host", "0.0.0.0", 409, "cannot be changed while the service runs"),
        ("desicion", "careful", 404, "Did you mean 'decision'"),
        ("set_at_start", "x", 404, "no setting"),
    ],
)
async def test_what_cannot_be_set_is_refused(
    running: tuple[House, House], name: str, value: object, status: int, message: str
) -> None:
    admin = running[0].clients["admin"]
    answer = assert_failure(await admin.put(f"/settings/{name}", json={"value": value}), status)
    assert message in answer["detail"]
    assert "hush" not in answer["detail"]
    for line in await running[0].audited():
        assert "hush" not in str(line)
    if status != 422:
        assert_failure(await admin.delete(f"/settings/{name}"), status)


async def test_a_session_needs_its_token(running: tuple[House, House]) -> None:
    service = running[0]
    secret = (await service.app.keys.create("page", None, "admin")).secret
    async with client_of(service.api) as page:
        csrf = (await page.post("/session", json={"key": secret})).json()["csrf"]
        for headers, status in (({}, 403), ({"x-csrf-token": csrf}, 200)):
            answer = await page.put("/settings/page_name", json={"value": "From the page"}, headers=headers)
            assert answer.status_code == status, answer.text
        assert (await page.delete("/settings/page_name", headers={"x-csrf-token": csrf})).status_code == 204


async def test_what_is_set_at_the_start_is_fixed(houses: Databases) -> None:
    start = {"DTRAG_DECISION": "balanced", "DTRAG_EMBEDDER": "none", "DTRAG_TRACE_DAYS": "9"}
    base = houses.settings()
    environ = {**start, "DTRAG_DATA_DIR": str(base.data_dir), "DTRAG_DATABASE_NAME": base.database_name}
    async with open_app(base) as other:
        await other.changed_settings.set("decision", "careful")
        await other.changed_settings.set("conversation_days", 8)
    async with house(Settings.load(environ)) as service:
        admin = await service.client("admin", None, "admin")
        rows = {row["name"]: row for row in (await admin.get("/settings")).json()["settings"]}
        assert (rows["decision"]["value"], rows["decision"]["fixed"], rows["decision"]["changed_by"]) == (
            "balanced",
            True,
            None,
        )
        assert (rows["conversation_days"]["value"], rows["conversation_days"]["changed_by"]) == (8, "local")
        assert service.app.run.policy == "balanced"
        refused = assert_failure(await admin.put("/settings/decision", json={"value": "eager"}), 409)["detail"]
        assert "change it there" in refused
        assert (await admin.delete("/settings/decision")).status_code == 204
    async with open_app(base) as other:
        assert other.settings.decision == "balanced"


async def test_what_cannot_be_read_is_ignored_and_named(settings: Settings, store: Store) -> None:
    async with open_app(settings) as app:
        await app.changed_settings.set("decision", "eager")
        stored = {
            "decision": {"value": "bold"},
            "trace_days": 5,
            "later": {"value": 1},
            "public": {"value": "A//B"},
            "review_below": {"value": 0.5, "by": "kim", "at": "2026-01-02T03:04:05+00:00"},
        }
        store.rows("update index_settings set value = %s where name = 'settings'", Jsonb(stored))
        await app.changed_settings.read()
        assert (app.settings.decision, app.settings.trace_days, app.public) == ("balanced", 30, None)
        assert app.settings.review_below == 0.5
    [note] = [check.detail for check in (await examine(settings)).checks if check.name == "stored settings"]
    assert "Stored values of decision, later, public, trace_days are of another version" in note
    async with open_app(settings) as app:
        for name in ("later", "public"):
            await app.changed_settings.unset(name)
        with pytest.raises(NotFound):
            await app.changed_settings.unset("later")
        with pytest.raises(InvalidInput, match="Only a change of public"):
            await app.changed_settings.set("decision", "eager", dry_run=True)


async def test_changes_at_the_same_time_are_all_stored(settings: Settings) -> None:
    async with open_app(settings) as one, open_app(settings) as other:
        changes = [
            app.changed_settings.set(name, value)
            for app, names in ((one, ("trace_days", "reader", "debate")), (other, ("decision", "page_name")))
            for name, (value, _) in IN_USE.items()
            if name in names
        ]
        await asyncio.gather(*changes)
        await asyncio.gather(one.changed_settings.read(), other.changed_settings.read())
        assert len(one.changed_settings.values) == len(changes) == 5
        assert one.settings == other.settings


async def test_a_command_changes_a_running_service(houses: Databases) -> None:
    settings = houses.settings()
    async with house(settings) as service:
        cli = Cli(settings.data_dir, (("DTRAG_EMBEDDER", "none"), ("DTRAG_DATABASE_NAME", settings.database_name)))

        async def command(*arguments: str, **environment: str) -> Ran:
            return await asyncio.to_thread(cli.run, *arguments, **environment)

        done = await command("config", "set", "DTRAG_DECISION", "careful", "--json")
        assert (done.code, done.json) == (0, {"name": "decision", "value": "careful", "public": None}), done.err
        await soon(lambda: service.app.run.policy == "careful")
        told = (await command("config", "explain", "decision", "--json")).json
        assert (told["value"], told["source"]) == ("careful", "stored")
        told = (await command("config", "explain", "decision", "--json", DTRAG_DECISION="eager")).json
        assert (told["value"], told["source"], told["sources"][-1]["value"]) == ("eager", "environment", "careful")
        refused = await command("config", "set", "public", "AI")
        assert refused.code != 0 and "--accept-widening" in refused.err
        shown = await command("config", "set", "public", "AI", "--dry-run")
        assert "3 documents, 3 of them new" in shown.out
        assert (await command("config", "set", "public", "AI", "--accept-widening")).code == 0
        await soon(lambda: service.app.public is not None)
        assert (await command("config", "unset", "public", "--json")).json == {"name": "public", "value": ""}
        await soon(lambda: service.app.public is None)
