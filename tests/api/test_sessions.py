"""The session of the web page: sign-in, cookie, CSRF token, expiry and sign-out, and attacks on each of them."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator
from dataclasses import replace
from http.cookies import SimpleCookie
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from fastapi import FastAPI

from dtrag.app import App
from dtrag.core.access.api_key import IDLE, LONGEST, new_secret, new_token
from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.authentication import COOKIE
from dtrag.delivery.api.clients import FAILURES_PER_MINUTE
from dtrag.governance.api_keys import MOST_SESSIONS, USED_EVERY, Keys, Sessions
from dtrag.settings import Settings
from tests.api.shape import assert_failure
from tests.api.test_keys import client_of
from tests.clock_of_limits import stop_refills

OWN = "http://localhost:8001"


@pytest_asyncio.fixture
async def api(settings: Settings) -> AsyncIterator[FastAPI]:
    created = create_app(settings)
    async with created.router.lifespan_context(created):
        stop_refills(created)
        yield created


@pytest.fixture
def app(api: FastAPI) -> App:
    app: App = api.state.service.app
    return app


async def sign_in(client: httpx2.AsyncClient, secret: str) -> dict[str, Any]:
    """The body of a sign-in that succeeds; the client keeps the cookie."""
    response = await client.post("/session", json={"key": secret})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def cookie_of(response: httpx2.Response) -> Any:
    return SimpleCookie(response.headers["set-cookie"])[COOKIE]


async def test_a_key_becomes_a_cookie(api: FastAPI, app: App) -> None:
    secret = (await app.keys.create("desk", ["HR/Leave"], "editor")).secret
    async with client_of(api) as client:
        response = await client.post("/session", json={"key": f" {secret}\n"})
        body = response.json()
        assert (body["name"], body["role"], body["scope"]) == ("desk", "editor", ["HR/Leave"])
        assert body["kind"] == "session"
        cookie = cookie_of(response)
        assert len(cookie.value) == 43
        assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "strict", "/")
        assert (cookie["domain"], cookie["secure"]) == ("", "")
        assert int(cookie["max-age"]) == LONGEST.total_seconds()
        assert secret not in response.text
        assert cookie.value not in response.text
        assert (await client.get("/documents")).status_code == 200
        shown = (await client.get("/session")).json()
        assert shown == body
        async with app.database.connection("owner") as connection:
            [row] = await (await connection.execute("select * from sessions")).fetchall()
        assert cookie.value.encode() not in bytes(row["digest"])
        assert app.audit.level == "all"
        lines = await app.audit.newest(limit=10)
        assert [line.entry.actor for line in lines if line.entry.action == "POST /session"] == ["desk"]


@pytest.mark.parametrize(
    ("origin", "forwarded", "secure"),
    [(OWN, None, False), ("https://dtrag.example.org", None, True), (OWN, "https", True), (OWN, "http", False)],
)
async def test_the_cookie_is_secure_over_https(
    settings: Settings, origin: str, forwarded: str | None, secure: bool
) -> None:
    behind = replace(settings, public_origins="https://dtrag.example.org", trusted_proxies="127.0.0.1")
    api = create_app(behind)
    async with api.router.lifespan_context(api), client_of(api) as client:
        secret = (await api.state.service.app.keys.create("desk")).secret
        headers = {"origin": origin}
        if forwarded:
            headers |= {"x-forwarded-for": "198.51.100.7", "x-forwarded-proto": forwarded}
        response = await client.post("/session", json={"key": secret}, headers=headers)
        assert response.status_code == 200
        assert bool(cookie_of(response)["secure"]) == secure


async def test_the_public_origin_is_a_name_of_the_service(settings: Settings) -> None:
    api = create_app(replace(settings, public_origins="https://dtrag.example.org"))
    async with api.router.lifespan_context(api), client_of(api) as client:
        secret = (await api.state.service.app.keys.create("desk")).secret
        for host in ("dtrag.example.org", "localhost:8001"):  # whether the proxy passes the host on or not
            headers = {"host": host, "origin": "https://dtrag.example.org"}
            assert (await client.post("/session", json={"key": secret}, headers=headers)).status_code == 200
        assert_failure(await client.get("/documents", headers={"host": "evil.example.org"}), 400)


async def test_without_any_key_no_session_is_needed(api: FastAPI) -> None:
    async with client_of(api) as client:
        shown = (await client.get("/session")).json()
        assert shown == {
            "kind": "local",
            "name": "local",
            "role": "admin",
            "scope": None,
            "csrf": None,
            "expires_at": None,
            "public": False,
            "provider": None,
            "regulations": False,
        }
        client.cookies.set(COOKIE, new_token())  # of another service on this machine
        assert (await client.post("/search", json={"query": "leave"})).status_code == 200
        assert_failure(await client.post("/session", json={"key": new_secret()}), 401)


async def test_a_change_needs_the_csrf_token(api: FastAPI, app: App) -> None:
    secret = (await app.keys.create("admin", role="admin")).secret
    async with client_of(api) as client, client_of(api) as other:
        csrf = (await sign_in(client, secret))["csrf"]
        foreign = (await sign_in(other, secret))["csrf"]
        assert csrf != foreign
        for method, path in (("POST", "/search"), ("DELETE", "/documents/x"), ("PUT", "/agents/x"), ("POST", "/nope")):
            for sent in (None, b"", foreign.encode(), "é".encode()):
                headers = {b"x-csrf-token": sent} if sent is not None else None
                refused = await client.request(method, path, json={"query": "leave"}, headers=headers)
                failure = assert_failure(refused, 403)
                assert failure["type"] == "StaleSession"
                assert "X-CSRF-Token" in failure["detail"]
                assert "reload the page" in failure["detail"]
        accepted = await client.post("/search", json={"query": "leave"}, headers={"x-csrf-token": csrf})
        assert accepted.status_code == 200
        assert_failure(await client.delete("/session"), 403)


async def test_pages_of_other_origins_cannot_use_the_cookie(api: FastAPI, app: App) -> None:
    """`http://localhost:3000` may call the service, and is the same site: the browser sends it the cookie along."""
    secret = (await app.keys.create("admin", role="admin")).secret
    async with client_of(api) as client:
        csrf = (await sign_in(client, secret))["csrf"]
        evil = {"origin": "https://evil.example"}
        assert_failure(await client.post("/search", json={"query": "x"}, headers=evil | {"x-csrf-token": csrf}), 403)
        assert_failure(await client.post("/session", json={"key": secret}, headers=evil), 403)
        allowed = {"origin": "http://localhost:3000"}
        assert_failure(await client.post("/session", json={"key": secret}, headers=allowed), 403)
        assert_failure(await client.post("/search", json={"query": "x"}, headers=allowed), 403)
        read = await client.get("/session", headers=allowed)
        assert "access-control-allow-credentials" not in read.headers  # so the browser withholds it from the page
        asked = {"access-control-request-method": "POST", "access-control-request-headers": "x-csrf-token"}
        assert_failure(await client.options("/search", headers=allowed | asked), 400)


async def test_a_form_of_another_page_signs_nobody_in(api: FastAPI, app: App) -> None:
    secret = (await app.keys.create("attacker")).secret
    async with client_of(api) as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded"):
            body = f'{{"key": "{secret}"}}'
            assert_failure(await client.post("/session", content=body, headers={"content-type": kind}), 415)
        assert COOKIE not in client.cookies


async def test_every_sign_in_has_a_token_of_its_own(api: FastAPI, app: App) -> None:
    """A token that somebody has planted in the browser is never accepted, and signing in again ends the session."""
    secret = (await app.keys.create("victim")).secret
    planted = new_token()
    async with client_of(api) as victim, client_of(api) as attacker:
        victim.cookies.set(COOKIE, planted, domain="localhost.local")
        first = await victim.post("/session", json={"key": secret}, headers={"cookie": f"{COOKIE}={planted}"})
        token = cookie_of(first).value
        assert token != planted
        assert_failure(await attacker.get("/documents", headers={"cookie": f"{COOKIE}={planted}"}), 401)
        again = await victim.post("/session", json={"key": secret}, headers={"cookie": f"{COOKIE}={token}"})
        assert cookie_of(again).value not in {token, planted}
        assert_failure(await attacker.get("/documents", headers={"cookie": f"{COOKIE}={token}"}), 401)


async def test_sign_out_ends_the_session(api: FastAPI, app: App) -> None:
    secret = (await app.keys.create("desk")).secret
    async with client_of(api) as client, client_of(api) as copy:
        csrf = (await sign_in(client, secret))["csrf"]
        token = client.cookies[COOKIE]
        out = await client.delete("/session", headers={"x-csrf-token": csrf})
        assert out.status_code == 204
        assert int(cookie_of(out)["max-age"]) == 0
        assert COOKIE not in client.cookies
        assert_failure(await copy.get("/documents", headers={"cookie": f"{COOKIE}={token}"}), 401)


async def test_a_session_ends_with_its_key(api: FastAPI, app: App) -> None:
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    revoked, expiring = await app.keys.create("revoked"), await app.keys.create("expiring", expires=soon)
    async with client_of(api) as one, client_of(api) as two:
        await sign_in(one, revoked.secret)
        await sign_in(two, expiring.secret)
        await app.keys.revoke("revoked")
        assert_failure(await one.get("/documents"), 401)
        assert (await two.get("/documents")).status_code == 200
        app.keys._now = lambda: soon
        assert_failure(await two.get("/documents"), 401)


async def test_a_session_ends_when_idle_and_after_a_week(api: FastAPI, app: App) -> None:
    secret = (await app.keys.create("desk")).secret
    start = datetime.datetime.now(datetime.UTC)
    clock = [start]
    app.sessions._now = lambda: clock[0]
    async with client_of(api) as used, client_of(api) as idle:
        first = (await sign_in(used, secret))["expires_at"]
        await sign_in(idle, secret)
        assert datetime.datetime.fromisoformat(first) == start + IDLE
        step = IDLE - USED_EVERY
        while clock[0] + step < start + LONGEST:
            clock[0] += step
            assert (await used.get("/session")).status_code == 200
        assert_failure(await idle.get("/session"), 401)
        shown = (await used.get("/session")).json()
        assert datetime.datetime.fromisoformat(shown["expires_at"]) == start + LONGEST
        clock[0] = start + LONGEST
        refused = await used.get("/session")
        assert "Sign in again" in assert_failure(refused, 401)["detail"]


async def test_ended_sessions_are_deleted_and_a_key_has_not_too_many(app: App) -> None:
    secret = (await app.keys.create("desk")).secret
    first = await app.sessions.sign_in(secret)
    for _ in range(MOST_SESSIONS):
        await app.sessions.sign_in(secret)

    async def stored() -> int:
        async with app.database.connection("owner") as connection:
            cursor = await connection.execute("select count(*) as sessions from sessions")
            [row] = await cursor.fetchall()
        return int(row["sessions"])

    assert await stored() == MOST_SESSIONS
    assert not await app.sessions.sign_out(first.token)
    later = datetime.datetime.now(datetime.UTC) + LONGEST
    app.sessions._now = lambda: later
    app.sessions._tidy_timer._now = lambda: later
    app.sessions._tidy_timer._next = 0.0
    app.sessions._tidy_timer._last = None
    await app.sessions.sign_in(secret)
    assert await stored() == 1


async def test_a_clock_that_is_set_by_ten_minutes_ends_no_session_and_no_key(app: App) -> None:
    times = [datetime.datetime.now(datetime.UTC)]
    keys = Keys(app.keys._store, app.index, rate=600, now=lambda: times[-1])
    sessions = Sessions(app.sessions._store, keys, confirmed=app._confirmed, now=lambda: times[-1])
    secret = (await keys.create("moved", expires=times[0] + datetime.timedelta(hours=1))).secret
    signed_in = await sessions.sign_in(secret)
    for minutes in (10, -10, 0):
        times.append(times[0] + datetime.timedelta(minutes=minutes))
        assert (await sessions.recognise(signed_in.token)).key.name == "moved"
        assert (await keys.recognise(secret)).name == "moved"
        assert (await sessions.sign_in(secret)).key.name == "moved"  # deletes ended sessions
    await keys.close()
    assert (await sessions.recognise(signed_in.token)).key.name == "moved"


async def test_a_header_with_a_key_counts_and_the_cookie_does_not(api: FastAPI, app: App) -> None:
    admin, reader = await app.keys.create("admin", role="admin"), await app.keys.create("reader")
    async with client_of(api) as client:
        await sign_in(client, admin.secret)
        bearer = {"authorization": f"Bearer {reader.secret}"}
        shown = (await client.get("/session", headers=bearer)).json()
        assert (shown["kind"], shown["name"], shown["csrf"]) == ("key", "reader", None)
        assert (await client.post("/search", json={"query": "x"}, headers=bearer)).status_code == 200
        assert_failure(await client.get("/audit", headers=bearer), 403)
        assert_failure(await client.get("/audit", headers={"authorization": "Bearer wrong"}), 401)


async def test_wrong_keys_are_limited_at_the_sign_in(api: FastAPI, app: App) -> None:
    right = (await app.keys.create("right")).secret
    async with client_of(api) as client:
        for number in range(FAILURES_PER_MINUTE):
            if number % 2:  # both ways count together
                refused = await client.post("/session", json={"key": new_secret()})
            else:
                refused = await client.get("/documents", headers={"x-api-key": new_secret()})
            assert_failure(refused, 401)
        limited = await client.post("/session", json={"key": new_secret()})
        assert_failure(limited, 429)
        assert int(limited.headers["retry-after"]) >= 1
        await sign_in(client, right)


async def test_sign_ins_count_against_the_rate_of_the_key(api: FastAPI, app: App) -> None:
    secret = (await app.keys.create("slow", rate=2)).secret
    async with client_of(api) as client:
        statuses = [(await client.post("/session", json={"key": secret})).status_code for _ in range(3)]
        assert statuses == [200, 200, 429]


async def test_a_refused_sign_in_leaves_the_session_as_it_was(api: FastAPI, app: App) -> None:
    first, slow = (await app.keys.create("first")).secret, (await app.keys.create("slow", rate=1)).secret
    async with client_of(api) as client, client_of(api) as other:
        csrf = (await sign_in(client, first))["csrf"]
        await sign_in(other, slow)
        refused = await client.post("/session", json={"key": slow})
        assert_failure(refused, 429)
        assert "set-cookie" not in refused.headers
        shown = (await client.get("/session")).json()
        assert (shown["name"], shown["csrf"]) == ("first", csrf)
        async with app.database.connection("owner") as connection:
            [row] = await (await connection.execute("select count(*) as sessions from sessions")).fetchall()
        assert row["sessions"] == 2


async def test_sign_out_needs_no_allowance_and_works_beside_a_key(api: FastAPI, app: App) -> None:
    slow, reader = (await app.keys.create("slow", rate=1)).secret, (await app.keys.create("reader")).secret
    async with client_of(api) as client, client_of(api) as copy:
        csrf = (await sign_in(client, slow))["csrf"]
        assert_failure(await client.get("/documents"), 429)
        assert (await client.delete("/session", headers={"x-csrf-token": csrf})).status_code == 204
        await sign_in(client, reader)
        cookie = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
        assert (await copy.get("/documents", headers=cookie)).status_code == 200
        out = await client.delete("/session", headers={"authorization": f"Bearer {reader}"})
        assert out.status_code == 204
        assert_failure(await copy.get("/documents", headers=cookie), 401)


async def test_the_page_gets_no_password_prompt(api: FastAPI, app: App) -> None:
    await app.keys.create("first")
    async with client_of(api) as client:
        plain = await client.get("/documents")
        assert plain.headers["www-authenticate"].startswith("Basic")
        page, ended = {"x-requested-with": "dtrag-page"}, {"cookie": f"{COOKIE}={new_token()}"}
        for headers in (page, ended, {"cookie": f"{COOKIE}=x"}):
            refused = await client.get("/documents", headers=headers)
            assert_failure(refused, 401)
            assert "Basic" not in refused.headers["www-authenticate"]
        wrong = await client.post("/session", json={"key": "wrong"})
        assert_failure(wrong, 401)
        assert "Basic" not in wrong.headers.get("www-authenticate", "")
