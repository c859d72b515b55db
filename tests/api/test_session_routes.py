"""Every route with the cookie of a reader of one branch: it gives no right that its key or its group does not have."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx2
import pytest
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
from tests.api.test_sign_in import GROUPS, signed_in, written
from tests.cases import each
from tests.identity_provider import IdentityProvider
from tests.store import Databases

OWN = "http://localhost:8001"
CHANGING = [address for address in ROUTES if address[0] not in {"GET", "HEAD"}]


@dataclass
class SignedIn:
    """A browser with the cookie of a reader; `csrf` is its token."""

    built: House
    browser: httpx2.AsyncClient
    csrf: str


@pytest_asyncio.fixture(scope="module", params=["key", "group"])
async def reader(
    request: pytest.FixtureRequest, houses_of_module: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[SignedIn]:
    with IdentityProvider() as provider:
        provider.people["kim"] = ["staff"]
        file = written(tmp_path_factory.mktemp("sign-in"), [("university", provider.issuer, GROUPS)])
        async with house(houses_of_module.settings(sign_in=file, rate_per_minute=1_000_000)) as built:
            await built.client("admin", None, "admin")
            async with client_of(built.api, {"origin": OWN}) as browser:
                if request.param == "group":
                    session = await signed_in(browser, provider)
                else:
                    created = await built.app.keys.create("reader", ["AI/ML"])
                    session = (await browser.post("/session", json={"key": created.secret})).json()
                yield SignedIn(built, browser, session["csrf"])


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
