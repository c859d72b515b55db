"""Clients behind proxies: `X-Forwarded-For` is believed from configured proxies only and never makes a client local."""

from __future__ import annotations

import dataclasses

import httpx2
import pytest
from fastapi import FastAPI

from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.clients import FAILURES_PER_MINUTE, parse_address, trusted_networks
from dtrag.delivery.api.dependencies import Service
from dtrag.delivery.api.routes.health import FEATURES
from dtrag.errors import DatabaseUnavailable, InvalidInput
from dtrag.settings import Settings
from tests.api.shape import assert_failure
from tests.api.test_keys import client_of
from tests.clock_of_limits import stop_refills

PROXY = ("10.0.0.2", 4_000)


async def wrong_keys(client: httpx2.AsyncClient, forwarded: list[str]) -> list[int]:
    """The statuses of requests with a wrong key, each with this `X-Forwarded-For`."""
    headers = [{"X-API-Key": "wrong", "X-Forwarded-For": value} for value in forwarded]
    return [(await client.get("/documents", headers=sent)).status_code for sent in headers]


async def test_wrong_keys_are_counted_by_peer_whatever_is_forwarded(settings: Settings) -> None:
    api = create_app(settings)
    rotated = [f"203.0.113.{number}" for number in range(FAILURES_PER_MINUTE + 3)]
    async with api.router.lifespan_context(api), client_of(api) as local:
        stop_refills(api)
        await api.state.service.app.keys.create("first", role="admin")
        assert await wrong_keys(local, rotated) == [401] * FAILURES_PER_MINUTE + [429] * 3


async def test_wrong_keys_are_counted_by_client_behind_a_trusted_proxy(settings: Settings) -> None:
    api = create_app(dataclasses.replace(settings, trusted_proxies="10.0.0.0/28, ::1"))
    async with api.router.lifespan_context(api), client_of(api, address=PROXY) as proxy:
        stop_refills(api)
        await api.state.service.app.keys.create("first", role="admin")
        # The client invents the first entries; the proxies append the address that they saw.
        same = [f"198.51.100.{number}, 203.0.113.9, 10.0.0.7" for number in range(FAILURES_PER_MINUTE + 1)]
        assert await wrong_keys(proxy, same) == [401] * FAILURES_PER_MINUTE + [429]
        assert await wrong_keys(proxy, ["203.0.113.9, 203.0.113.10:5000", "10.0.0.3, [2001:db8::1]:80"]) == [401, 401]
        async with client_of(api, address=("10.0.0.77", 1)) as other:
            assert await wrong_keys(other, same[:2]) == [401, 401]  # no trusted proxy: counted for itself


@pytest.mark.parametrize("proxies", ["", "127.0.0.1"])
async def test_a_forwarded_request_is_never_local(settings: Settings, proxies: str) -> None:
    api = create_app(dataclasses.replace(settings, trusted_proxies=proxies))
    async with api.router.lifespan_context(api), client_of(api) as local:
        assert (await local.get("/documents")).status_code == 200
        for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"):
            assert_failure(await local.get("/documents", headers={header: "127.0.0.1"}), 401)


def test_addresses_and_networks() -> None:
    assert len(trusted_networks(" 127.0.0.1, 10.0.0.0/8,fd00::/8 ,")) == 3
    assert trusted_networks("") == ()
    for text in ("*", "proxy.example", "10.0.0.1/8", "127.0.0.1:80"):
        with pytest.raises(InvalidInput, match="DTRAG_TRUSTED_PROXIES holds"):
            trusted_networks(text)
    shown = {text: str(parse_address(text)) for text in ("1.2.3.4:5", "[::1]:5", "::ffff:1.2.3.4", "_hidden", "")}
    assert list(shown.values()) == ["1.2.3.4", "::1", "1.2.3.4", "None", "None"]


async def test_health_answers_with_a_key_while_the_database_is_away(
    api: FastAPI, service: Service, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise DatabaseUnavailable(reason="it is down.")

    monkeypatch.setattr(service.app.keys, "recognise", away)
    monkeypatch.setattr(service.app.keys, "_needed", (True, 0.0))
    monkeypatch.setattr(service.app.database, "ping", away)
    response = await client.get("/health", headers={"X-API-Key": "a key that cannot be looked up now"})
    features = FEATURES | {"B-O2": "retrieval-filter-unknown", "B-O4": "cbr-system-disabled"}
    assert (response.status_code, response.json()) == (200, {"status": "unhealthy", "features": features})
    assert_failure(await client.get("/documents", headers={"X-API-Key": "the same"}), 503)
