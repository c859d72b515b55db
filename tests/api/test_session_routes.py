"""Every route with the cookie of a reader of one branch: a cookie gives no right that its key does not have."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx2
import pytest_asyncio

from tests.api.confined import House, house
from tests.api.shape import assert_failure
from tests.api.test_keys import client_of
from tests.api.test_route_matrix import (
    MAY,
    MINE,
    ROUTES,
    THEIRS,
    Address,
    enabled,  # noqa: F401 - a fixture: the case memory has routes, too
    make,
    send,
)
from tests.cases import each
from tests.store import Databases

OWN = "http://localhost:8001"
CHANGING = [address for address in ROUTES if address[0] not in {"GET", "HEAD"}]


@dataclass
class SignedIn:
    """A browser with the cookie of a reader; `csrf` is its token."""

    built: House
    browser: httpx2.AsyncClient
    csrf: str


@pytest_asyncio.fixture(scope="module")
async def reader(houses_of_module: Databases) -> AsyncIterator[SignedIn]:
    async with house(houses_of_module.settings()) as built:
        await built.client("admin", None, "admin")
        created = await built.app.keys.create("reader", ["AI/ML"], rate=1_000_000)
        async with client_of(built.api, {"origin": OWN}) as browser:
            signed_in = await browser.post("/session", json={"key": created.secret})
            yield SignedIn(built, browser, signed_in.json()["csrf"])


async def objects(reader: SignedIn, address: Address) -> list[str]:
    """An own and a foreign object that the route is about."""
    about = ROUTES[address].about
    return [await make(reader.built, about, branch) for branch in (MINE, THEIRS)] if about else [""]


@each("address", [address for address, route in ROUTES.items() if route.need not in MAY["reader"] or route.whole_tree])
async def test_what_the_reader_may_not_do_is_refused(reader: SignedIn, address: Address) -> None:
    reader.browser.headers["x-csrf-token"] = reader.csrf
    for object_id in await objects(reader, address):
        assert_failure(await send(reader.browser, address, object_id), 403)


@each("address", CHANGING)
async def test_without_the_csrf_token_nothing_is_done(reader: SignedIn, address: Address) -> None:
    for token in ("", "0" * 64):
        reader.browser.headers["x-csrf-token"] = token
        for object_id in await objects(reader, address):
            detail = assert_failure(await send(reader.browser, address, object_id), 403)["detail"]
            assert "X-CSRF-Token" in detail
