"""Requests made from the OpenAPI description, fitting it and not: no internal error, and answers as described."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
import requests
import schemathesis
from hypothesis import given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from dtrag.delivery.api.app import create_app
from dtrag.isolation.runs import IsolationRuns
from dtrag.settings import Settings, set_feature_flag
from tests.api.shape import assert_failure
from tests.api.standing import assert_standing
from tests.store import Databases

SWITCHED_ON = ("cbr_enabled", "neural_case_selector")
"""Flags without which routes answer with a 503."""
ADDRESS = "http://localhost:8001"
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SCHEMA = schemathesis.openapi.from_dict(create_app(Settings.load(environ={}, data_dir=Path("never"))).openapi())
FOUND: list[Any] = [result.ok() for result in SCHEMA.get_all_operations() if isinstance(result, Ok)]
OPERATIONS = {f"{found.method.upper()} {found.path}": found for found in FOUND}
TAKING = [name for name, found in OPERATIONS.items() if found.body or found.query]


@pytest_asyncio.fixture(scope="module")
async def client(databases_of_module: Databases) -> AsyncIterator[httpx2.AsyncClient]:
    """An administrator of a service of this module's own: random requests create keys, and nobody is local then."""
    for name in SWITCHED_ON:
        set_feature_flag(name, True)
    api = create_app(databases_of_module.settings())
    api.state.service.isolation = IsolationRuns((sys.executable, "-c", "pass"))  # the real one takes minutes
    transport = httpx2.ASGITransport(app=api)
    async with api.router.lifespan_context(api):
        created = await api.state.service.app.keys.create("fuzzing", role="admin", rate=1_000_000)
        headers = {"x-api-key": created.secret}
        async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS, headers=headers, timeout=60) as opened:
            yield opened
    for name in SWITCHED_ON:
        set_feature_flag(name, None)


@pytest.fixture(scope="module", autouse=True)
def enabled() -> Iterator[None]:
    """The case memory is enabled: it would answer everything with 501."""
    set_feature_flag("cbr_enabled", True)
    yield
    set_feature_flag("cbr_enabled", None)


@pytest.mark.parametrize("name", OPERATIONS)
@settings(max_examples=15)
@given(data=st.data())
async def test_requests_as_described(client: httpx2.AsyncClient, name: str, data: st.DataObject) -> None:
    await _send(client, data.draw(OPERATIONS[name].as_strategy(generation_mode=GenerationMode.POSITIVE)))


@pytest.mark.parametrize("name", TAKING)
@settings(max_examples=15)
@given(data=st.data())
async def test_requests_not_as_described(client: httpx2.AsyncClient, name: str, data: st.DataObject) -> None:
    await _send(client, data.draw(OPERATIONS[name].as_strategy(generation_mode=GenerationMode.NEGATIVE)))


def test_every_route_is_tried() -> None:
    assert len(OPERATIONS) == len(list(SCHEMA.get_all_operations())) > 10
    assert set(TAKING) >= {"POST /search", "POST /search/batch", "POST /ask", "POST /documents", "GET /documents"}


async def test_the_service_still_works(client: httpx2.AsyncClient) -> None:
    await assert_standing(client)


async def _send(client: httpx2.AsyncClient, case: Any) -> None:
    prepared = requests.Request(**case.as_transport_kwargs(base_url=ADDRESS)).prepare()
    body = prepared.body or b""
    assert isinstance(body, bytes | str)
    response = await client.request(
        str(prepared.method),
        str(prepared.url),
        headers=[(name, str(value)) for name, value in prepared.headers.items() if name.lower() != "content-length"],
        content=body.encode() if isinstance(body, str) else body,
    )
    case.validate_response(response, checks=CHECKS)
    if response.status_code >= 400:
        assert_failure(response, response.status_code)
