"""Keys over HTTP: how they are sent, what is said without one, when they end, and how often they may ask."""

from __future__ import annotations

import base64
import datetime
import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from fastapi import FastAPI

from dtrag.app import App
from dtrag.core.access.api_key import Key, new_secret
from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.clients import FAILURES_PER_MINUTE
from dtrag.errors import Conflict, InvalidInput, NotFound, Unauthorized
from dtrag.governance.api_keys import KNOWN_S, Keys
from dtrag.settings import Settings
from tests.api.shape import assert_failure
from tests.clock_of_limits import stop_refills

REMOTE = ("203.0.113.5", 40_000)


@pytest_asyncio.fixture
async def api(settings: Settings) -> AsyncIterator[FastAPI]:
    created = create_app(settings)
    async with created.router.lifespan_context(created):
        stop_refills(created)
        yield created


@pytest.fixture
def keys(api: FastAPI) -> Keys:
    app: App = api.state.service.app
    return app.keys


@asynccontextmanager
async def client_of(
    api: FastAPI, headers: dict[str, str] | None = None, address: tuple[str, int] = ("127.0.0.1", 1)
) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=api, client=address)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:8001", headers=headers) as opened:
        yield opened


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


async def test_without_any_key_only_this_machine_is_answered(api: FastAPI) -> None:
    async with client_of(api) as local, client_of(api, address=REMOTE) as remote:
        for host in ("::1", "::ffff:127.0.0.1", "127.9.9.9"):
            async with client_of(api, address=(host, 1)) as also_local:
                assert (await also_local.get("/documents")).status_code == 200
        assert (await local.get("/documents")).status_code == 200
        body = assert_failure(await remote.get("/documents"), 401)
        assert "dtrag keys create" in body["detail"]
        assert list((await remote.get("/health")).json()) == ["status", "features"]
        assert (await remote.get("/livez")).status_code == 200


async def test_after_the_first_key_every_caller_needs_one(api: FastAPI, keys: Keys) -> None:
    async with client_of(api) as local:
        assert (await local.get("/documents")).status_code == 200
        made = await keys.create("first", role="admin")
        refused = await local.get("/documents")
        assert_failure(refused, 401)
        assert refused.headers["www-authenticate"].startswith('Basic realm="dtrag"')
        assert_failure(await local.get("/no-such-route"), 401)
        bare = (await local.get("/health")).json()
        assert bare.keys() == {"status", "features"}
        assert bare["status"] == "healthy"
        assert bare["features"].keys() == {"B-O1", "B-O2", "B-O3", "B-O4"}
        whole = await local.get("/health", headers={"x-api-key": made.secret})
        assert whole.json()["features"]["B-O2"] == "retrieval-filter-healthy"
        await keys.revoke("first")
        assert_failure(await local.get("/documents"), 401)  # it does not open when the last key goes


async def test_the_first_key_counts_at_once_for_the_caller_who_sends_it(api: FastAPI, app: App) -> None:
    """Also in a service that has just seen that there is none: the command line creates it in another process."""
    async with client_of(api) as local:
        assert (await local.get("/session")).json()["name"] == "local"
        made = await app.keys.create("first", scope=["Library"])  # by another process
        session = (await local.get("/session", headers={"x-api-key": made.secret})).json()
        assert (session["name"], session["role"]) == ("first", "reader")


async def test_a_body_is_not_read_before_the_key_is_recognised(api: FastAPI, keys: Keys) -> None:
    await keys.create("first")
    async with client_of(api) as local:
        for content in (b"no json", b'{"query": 1}'):
            assert_failure(await local.post("/search", content=content), 401)


async def test_headers_for_the_key(api: FastAPI, keys: Keys) -> None:
    secret = (await keys.create("first")).secret
    async with client_of(api) as client:
        for headers in (
            {"authorization": f"Bearer {secret}"},
            {"authorization": f"bearer  {secret} "},
            {"x-api-key": secret},
            {"authorization": basic("", secret)},
            {"authorization": basic("anybody", secret)},
        ):
            assert (await client.get("/documents", headers=headers)).status_code == 200, headers


async def test_invalid_keys_are_refused_with_the_same_text(api: FastAPI, keys: Keys) -> None:
    secret = (await keys.create("first")).secret
    expired = await keys.create("old", expires=datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1))
    await keys.create("revoked")
    await keys.revoke("revoked")
    keys._now = lambda: datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=2)
    details = set()
    async with client_of(api) as client:
        for headers in (
            {"authorization": f"Bearer {secret[:-1]}~"},
            {"authorization": f"Bearer {new_secret()}"},
            {"authorization": f"Bearer {secret[:15]}{new_secret()[15:]}"},
            {"authorization": f"Bearer {expired.secret}"},
            {"authorization": "Basic !!!"},
            {"authorization": basic(secret, "")},
            {"authorization": "Digest x"},
            {"x-api-key": ""},
            {"authorization": "Bearer x", "x-api-key": secret},
        ):
            details.add(assert_failure(await client.get("/documents", headers=headers), 401)["detail"])
        assert len(details) == 1
        assert (await client.get("/documents", headers={"x-api-key": secret})).status_code == 200


async def test_a_revoked_key_stops_at_once_here_and_soon_elsewhere(api: FastAPI, keys: Keys, app: App) -> None:
    one, two = await keys.create("one"), await keys.create("two")
    clock = [0.0]
    keys._monotonic = lambda: clock[0]
    async with client_of(api) as client:

        async def status(secret: str) -> int:
            return (await client.get("/documents", headers={"x-api-key": secret})).status_code

        assert [await status(one.secret), await status(two.secret)] == [200, 200]
        await keys.revoke("one")
        assert await status(one.secret) == 401
        await app.keys.revoke("two")  # by another process
        clock[0] = KNOWN_S
        assert await status(two.secret) == 401


async def test_a_key_is_revoked_during_its_lookup(keys: Keys) -> None:
    one = await keys.create("one")
    looked_up = keys._store.of_prefix

    async def slowly(prefix: str) -> Key | None:
        keys._store.of_prefix = looked_up  # type: ignore[method-assign]
        found = await looked_up(prefix)
        await keys.revoke("one")
        return found

    keys._store.of_prefix = slowly  # type: ignore[method-assign]
    with pytest.raises(Unauthorized):
        await keys.recognise(one.secret)


async def test_too_many_requests(api: FastAPI, keys: Keys) -> None:
    slow, other = await keys.create("slow", rate=3), await keys.create("other", rate=3)
    async with client_of(api, {"x-api-key": slow.secret}) as client:
        answers = [await client.get("/documents") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert [answer.headers["ratelimit-remaining"] for answer in answers] == ["2", "1", "0", "0"]
        for answer in answers:
            assert answer.headers["ratelimit-limit"] == "3"
            assert 1 <= int(answer.headers["ratelimit-reset"]) <= 60
        assert "3 requests per minute" in assert_failure(answers[3], 429)["detail"]
        assert 1 <= int(answers[3].headers["retry-after"]) <= 20
        assert (await client.get("/livez")).status_code == 200
        assert (await client.get("/documents", headers={"x-api-key": other.secret})).status_code == 200


async def test_wrong_keys_are_limited_by_address_and_right_ones_are_not(api: FastAPI, keys: Keys) -> None:
    right = (await keys.create("right")).secret
    async with client_of(api) as client, client_of(api, address=REMOTE) as elsewhere:
        wrong = {"x-api-key": new_secret()}
        for _ in range(FAILURES_PER_MINUTE):
            assert_failure(await client.get("/documents", headers=wrong), 401)
        refused = await client.get("/documents", headers=wrong)
        assert_failure(refused, 429)
        assert int(refused.headers["retry-after"]) >= 1
        assert_failure(await elsewhere.get("/documents", headers=wrong), 401)
        for number in range(FAILURES_PER_MINUTE + 1):
            async with client_of(api, wrong, (f"2001:db8::{number:x}", 1)) as neighbour:
                status = (await neighbour.get("/documents")).status_code
        assert status == 429
        assert (await client.get("/documents", headers={"x-api-key": right})).status_code == 200


async def test_the_last_use_is_written_once_a_minute(api: FastAPI, keys: Keys) -> None:
    secret = (await keys.create("first")).secret
    times = [datetime.datetime(2030, 1, 1, 12, 0, second, tzinfo=datetime.UTC) for second in (0, 30)]
    times.append(times[0] + datetime.timedelta(minutes=2))
    seen: list[Any] = []
    async with client_of(api, {"x-api-key": secret}) as client:
        for now in times:
            keys._now = functools.partial(lambda at: at, now)
            assert (await client.get("/documents")).status_code == 200
            await keys.close()
            seen.append((await keys.every())[0].last_used_at)
    assert seen == [times[0], times[0], times[2]]


async def test_the_secret_is_nowhere_in_the_database(api: FastAPI, keys: Keys, app: App) -> None:
    secret = (await keys.create("first", ["AI/ML"], "editor")).secret
    async with app.database.connection("owner") as connection:
        rows = await (await connection.execute("select to_jsonb(k)::text as row from api_keys k")).fetchall()
    assert len(rows) == 1
    assert secret[15:] not in rows[0]["row"]
    for role in ("search", "reader"):
        async with app.database.connection(role) as connection:
            allowed = await connection.execute("select has_table_privilege(current_user, 'api_keys', 'select') as may")
            assert await allowed.fetchone() == {"may": False}


async def test_invalid_keys_are_not_created(keys: Keys) -> None:
    now = datetime.datetime.now(datetime.UTC)
    for wrong in (
        {"name": ""},
        {"name": "a\nb"},
        {"name": " a"},
        {"name": "x" * 81},
        {"name": "a", "role": "root"},
        {"name": "a", "scope": []},
        {"name": "a", "scope": ["../AI"]},
        {"name": "a", "rate": 0},
        {"name": "a", "expires": now},
    ):
        with pytest.raises(InvalidInput):
            await keys.create(**wrong)
    assert await keys.every() == []
    assert not await keys.needed()


async def test_names_are_unique_among_the_living(keys: Keys) -> None:
    await keys.create("a")
    with pytest.raises(Conflict, match="revoke"):
        await keys.create("a")
    await keys.revoke("a")
    with pytest.raises(NotFound, match="dtrag keys list"):
        await keys.revoke("a")
    await keys.create("a")
    assert [key.state(datetime.datetime.now(datetime.UTC)) for key in await keys.every()] == ["valid", "revoked"]


async def test_an_unknown_branch_is_reported(keys: Keys) -> None:
    made = await keys.create("a", ["Nowhere/Yet"])
    assert made.unresolved == ("Nowhere/Yet",)


async def test_keys_that_an_address_cannot_name_or_a_time_cannot_hold_are_refused(api: FastAPI, keys: Keys) -> None:
    async with client_of(api) as client:
        for name in (".", ".."):
            assert "cannot be named" in assert_failure(await client.post("/keys", json={"name": name}), 422)["detail"]
        for moment in ("9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"):
            refused = await client.post("/keys", json={"name": "late", "expires_at": moment})
            assert "years 1 to 9999" in assert_failure(refused, 422)["detail"]
        assert (await client.get("/keys")).json() == {"keys": []}


async def test_settings_show_addresses_without_credentials(settings: Settings) -> None:
    credentials = replace(
        settings,
        llm_base_url="https://sk-live-HUNTER@proxy.example/v1",
        embed_base_url="https://x.example/v1?key=HUNTER",
    )
    created = create_app(credentials)
    async with created.router.lifespan_context(created), client_of(created) as client:
        response = await client.get("/settings")
        shown = {row["name"]: row["value"] for row in response.json()["settings"]}
        assert "HUN" not in response.text
        assert shown["llm_base_url"] == "https://***@proxy.example/v1"
        assert shown["embed_base_url"] == "https://x.example/v1?***"
