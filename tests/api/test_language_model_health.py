"""`/health` knows what became of the model's last call; `/readyz` does not care."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
import pytest_asyncio
from fastapi import FastAPI

from dtrag.core.chat import Message
from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.dependencies import Service
from dtrag.errors import LanguageModelFailed
from tests.model_server import ModelServer
from tests.store import Databases


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer("yes") as running:
        yield running


@pytest_asyncio.fixture
async def with_model(databases: Databases, server: ModelServer) -> AsyncIterator[FastAPI]:
    created = create_app(databases.settings(llm="openai:test", llm_base_url=server.url))
    async with created.router.lifespan_context(created):
        yield created
    assert server.wait_until_idle()


async def test_a_model_that_fails_degrades_and_one_that_answers_heals(with_model: FastAPI, server: ModelServer) -> None:
    service: Service = with_model.state.service
    model = service.app.model
    assert model is not None
    await service.warm()
    transport = httpx2.ASGITransport(app=with_model)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        for fault, status in ((None, "healthy"), ("401", "degraded"), (None, "healthy")):
            server.fault = fault  # type: ignore[assignment]
            calls = len(server.requests)
            try:
                await model.complete([Message("user", "Well?")], max_tokens=5, seconds=5.0)
            except LanguageModelFailed:
                assert fault
            health = (await client.get("/health")).json()
            check = health["checks"]["language model"]
            assert check["status"] == status
            assert "openai:test" in check["reason"]
            assert (await client.get("/readyz")).status_code == 200
            assert len(server.requests) == calls + 1
        server.fault = "401"
        with pytest.raises(LanguageModelFailed):
            await model.complete([Message("user", "Well?")], max_tokens=5, seconds=5.0)
        assert (await client.get("/health")).json()["status"] == "degraded"
