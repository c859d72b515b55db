"""What surrounds the routes: ids, headers, who may call, unexpected failures, health, the pages about itself."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import httpx2
import numpy as np
import pytest
from fastapi import FastAPI

from dtrag.adapters.embedders.e5 import E5
from dtrag.adapters.embedders.factory import ByLanguage, EmbedderOnDemand
from dtrag.adapters.postgres.queries import queries
from dtrag.core.access.category_filter import CategoryFilter
from dtrag.core.documents import Vector
from dtrag.core.job import JobCount
from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.dependencies import Service
from dtrag.errors import DatabaseUnavailable, ModelDamaged
from dtrag.ingestion.sources import Source
from dtrag.jobs.queue import Jobs
from dtrag.ports import Embedder
from dtrag.settings import Settings
from tests.api.shape import FORM, assert_failure, file_form
from tests.toy import ToyEmbedder, lines

JSON = {"content-type": "application/json"}


class WeakEmbedder:
    """An embedder that loads or does not."""

    id, dim, max_tokens, languages = "weak@1", 4, 16, frozenset({"en"})
    floor, decides = 0.0, True

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.seen: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        if self.failure is not None:
            raise self.failure
        self.seen.extend(texts)
        vectors: Vector = np.full((len(texts), self.dim), 0.5, dtype=np.float32)
        return vectors

    embed_queries = embed_documents


@pytest.mark.parametrize("given", ["abc-1.2_X", "a" * 64])
async def test_a_plain_request_id_is_kept(client: httpx2.AsyncClient, given: str) -> None:
    assert (await client.get("/livez", headers={"X-Request-ID": given})).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "a" * 65, "a b", "a\tb", "{x}", "é"])
async def test_any_other_request_id_is_replaced(client: httpx2.AsyncClient, given: str) -> None:
    made = (await client.get("/livez", headers={b"X-Request-ID": given.encode()})).headers["x-request-id"]
    assert made != given
    assert len(made) == 32


@pytest.mark.parametrize("path", ["/livez", "/documents", "/health", "/nothing", "/docs", "/openapi.json"])
async def test_headers_of_every_answer(client: httpx2.AsyncClient, path: str) -> None:
    headers = (await client.get(path)).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8001", 200),
        ("127.0.0.1:8001", 200),
        ("127.9.9.9", 200),
        ("[::1]:8001", 200),
        ("evil", 400),
        ("evil.example:8001", 400),
        ("localhost.evil.example", 400),
        ("127.0.0.1.evil.example", 400),
        ("10.0.0.1", 400),
        ("localhost@evil", 400),
        ("[::1", 400),
        ("localhost:99999999", 400),
        ("", 400),
    ],
)
async def test_only_names_of_this_machine_are_served(client: httpx2.AsyncClient, host: str, status: int) -> None:
    response = await client.get("/livez", headers={"Host": host})
    assert response.status_code == status
    if status == 400:
        assert_failure(response, 400)


@pytest.mark.parametrize(
    ("bound", "host", "status"),
    [
        ("192.0.2.7", "192.0.2.7:8001", 200),
        ("192.0.2.7", "192.0.2.8", 400),
        ("rag.example", "rag.example", 200),
        ("0.0.0.0", "192.0.2.8:8001", 200),
        ("0.0.0.0", "evil.example", 400),
    ],
)
async def test_the_configured_host_is_served(tmp_path: Path, bound: str, host: str, status: int) -> None:
    unopened = create_app(Settings.load(environ={}, data_dir=tmp_path, host=bound))
    transport = httpx2.ASGITransport(app=unopened)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        assert (await client.get("/livez", headers={"Host": host})).status_code == status
        ready = await client.get("/readyz", headers={"Host": "localhost"})
        assert_failure(ready, 503)
        assert ready.headers["retry-after"]


async def test_pages_of_other_origins_are_kept_out(client: httpx2.AsyncClient) -> None:
    evil = {"Origin": "https://evil.example"}
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    preflight = await client.options("/search", headers=asked)
    assert_failure(preflight, 403)
    sent = file_form(b"planted.txt", b"Planted.")
    assert_failure(await client.post("/documents", content=sent, headers=FORM | evil), 403)
    assert_failure(await client.post("/search", json={"query": "x"}, headers={"Origin": "null"}), 403)
    assert_failure(await client.post("/search", json={"query": "x"}, headers={"Origin": "http://[bad"}), 403)
    read = await client.get("/documents", headers=evil)
    assert_failure(read, 403)
    own = await client.post("/search", json={"query": "x"}, headers={"Origin": "http://localhost:8001"})
    assert own.status_code == 200
    for response in (preflight, read, own):
        assert not [name for name in response.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/", 405),
        ("GET", "/nothing/at/all", 404),
        ("GET", "/search", 405),
        ("PUT", "/documents", 405),
        ("PATCH", "/documents/x", 405),
        ("OPTIONS", "/ask", 405),
    ],
)
async def test_no_such_route(client: httpx2.AsyncClient, method: str, path: str, status: int) -> None:
    assert_failure(await client.request(method, path), status)


async def test_an_unexpected_failure_returns_and_logs_no_text(
    client: httpx2.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the secret passage")

    monkeypatch.setattr(service.app, "search", fail)
    response = await client.post("/search", json={"query": "secret question"}, headers={"X-Request-ID": "find-me"})
    body = assert_failure(response, 500)
    assert body["detail"] == "Internal error; the request id is find-me."
    assert "secret" not in response.text
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.name == "dtrag.access"
    assert "secret" not in record.getMessage()


async def test_an_unavailable_database_is_a_503(
    client: httpx2.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise DatabaseUnavailable(reason="it is down.")

    monkeypatch.setattr(service.app, "search", away)
    response = await client.post("/search", json={"query": "x"})
    assert assert_failure(response, 503)["type"] == "DatabaseUnavailable"
    assert int(response.headers["retry-after"]) >= 1
    monkeypatch.setattr(service.app.database, "ping", away)
    assert_failure(await client.get("/readyz"), 503)
    health = await client.get("/health")
    assert health.status_code == 200
    assert health.json()["status"] == "unhealthy"
    assert "it is down" in health.json()["checks"]["database"]["reason"]
    assert (await client.get("/livez")).status_code == 200


async def test_health_without_an_embedder(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/readyz")).json() == {"status": "ready"}
    body = (await client.get("/health")).json()
    assert body["status"] == "healthy"  # D30: a chosen absence is not a failure
    assert (body["service"], body["version"]) == ("dtrag", "0.1.0")
    assert set(body["features"]) == {"B-O1", "B-O2", "B-O3", "B-O4"}
    assert set(body["performance"]) == {"filter_latency_target", "search_latency_target"}
    assert body["checks"]["database"]["status"] == "healthy"
    assert body["checks"]["index"]["status"] == "healthy"
    assert "lexical only" in body["checks"]["embedder"]["reason"]


@pytest.mark.parametrize(
    ("where", "status", "feature"),
    [("database", "unhealthy", "failed"), ("memory", "unhealthy", "failed"), ("away", "degraded", "unknown")],
)
async def test_health_tests_the_filters(
    *,
    client: httpx2.AsyncClient,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    status: str,
    feature: str,
) -> None:
    """B-O2 is what was tried: that a scope without categories sees nothing, and that lists are filtered."""
    assert (await client.get("/health")).json()["features"]["B-O2"] == "retrieval-filter-healthy"

    async def counts(scope: object) -> tuple[int, int]:
        if where == "away":
            raise DatabaseUnavailable(reason="it is down.")
        return 1, 1

    if where == "memory":
        monkeypatch.setattr(CategoryFilter, "apply_filter", lambda self, documents: list(documents))
    else:
        monkeypatch.setattr(service.app.index, "counts", counts)
    body = (await client.get("/health")).json()
    assert body["status"] == status
    assert body["features"]["B-O2"] == f"retrieval-filter-{feature}"
    assert body["checks"]["filter"]["status"] == status


async def test_health_with_an_embedder(
    client: httpx2.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = WeakEmbedder()
    monkeypatch.setattr(service.app, "embedder", embedder)
    await service.warm()
    assert embedder.seen
    body = (await client.get("/health")).json()
    assert body["status"] == "healthy"
    assert body["checks"]["embedder"]["reason"] == "weak@1"


async def test_passages_that_wait_for_vectors_are_counted(
    client: httpx2.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "vectors" not in (await client.get("/health")).json()["checks"]
    monkeypatch.setattr(service.app.vectors, "_embedder", ToyEmbedder(languages=frozenset({"*"})))
    report = await service.app.ingest_sources([Source.of(lines(tmp_path / "waiting.jsonl", 3))], "Waiting")
    pending = (await client.get("/documents?category=Waiting")).json()["total"]["vectors_pending"]
    assert pending == 3
    check = (await client.get("/health")).json()["checks"]["vectors"]
    assert check["status"] == "healthy"
    assert check["reason_statements"][0]["code"] == "health_vectors_pending"
    monkeypatch.setattr(service, "_vectors_measured", -math.inf)
    assert re.search(r"^dtrag_vectors_pending [1-9]", (await client.get("/metrics")).text, re.M)
    failed = JobCount("vectors", "waiting", 1, 0.0, "The disk is full.")
    with monkeypatch.context() as jobs:
        jobs.setattr(Jobs, "counts", AsyncMock(return_value=[failed]))
        checks = (await client.get("/health")).json()["checks"]
    check = checks["vectors"]
    assert (check["status"], "The disk is full." in check["reason"]) == ("degraded", True)
    await service.app.vectors.fill()
    assert (await client.get("/documents")).json()["total"]["vectors_pending"] == 0
    await service.app.delete_documents(report.document_ids)


@pytest.mark.parametrize("failure", [ModelDamaged(name="weak", path="w"), RuntimeError("secret"), OSError("secret")])
async def test_health_with_a_damaged_embedder(
    client: httpx2.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    monkeypatch.setattr(service.app, "embedder", WeakEmbedder(failure))
    await service.warm()
    body = (await client.get("/health")).json()
    service.embedder_problem = ""
    assert body["status"] == "degraded"
    assert body["checks"]["embedder"]["status"] == "degraded"
    assert "secret" not in json.dumps(body)


async def test_health_names_the_damaged_one_of_two_models(
    client: httpx2.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """English, which the other model embeds, is not enough to find out."""

    def damaged() -> Embedder:
        raise ModelDamaged(name="e5", path="weights")

    english, others = WeakEmbedder(), EmbedderOnDemand(E5, damaged)
    monkeypatch.setattr(english, "dim", others.dim, raising=False)
    monkeypatch.setattr(service.app, "embedder", ByLanguage(english, others))
    await service.warm()
    check = (await client.get("/health")).json()["checks"]["embedder"]
    service.embedder_problem = ""
    assert check["status"] == "degraded"
    assert "dtrag models pull e5" in check["reason"]


async def test_health_of_an_index_of_another_analyzer(client: httpx2.AsyncClient, service: Service) -> None:
    await client.post("/documents", content=file_form(b"any.txt", b"Anything."), headers=FORM)

    async def set_analyzer(value: str) -> str:
        async with service.app.database.connection("owner") as connection:
            found = await connection.execute("select value #>> '{}' as old from index_settings where name = 'analyzer'")
            row = await found.fetchone()
            await connection.execute(
                "update index_settings set value = to_jsonb(%s::text) where name = 'analyzer'", (value,)
            )
            await connection.execute(queries("writing")["bump_generation"])
        assert row is not None
        return str(row["old"])

    old = await set_analyzer("of another age")
    try:
        body = (await client.get("/health")).json()
        assert body["status"] == "degraded"
        assert body["checks"]["index"]["status"] == "degraded"
        assert "of another age" in body["checks"]["index"]["reason"]
        refused = await client.post("/search", json={"query": "anything"})
        assert assert_failure(refused, 503)["type"] == "IndexMismatch"
    finally:
        await set_analyzer(old)
    assert (await client.get("/health")).json()["checks"]["index"]["status"] == "healthy"


async def test_a_service_that_loads_its_models_is_not_ready(client: httpx2.AsyncClient, service: Service) -> None:
    service.ready = False
    try:
        assert assert_failure(await client.get("/readyz"), 503)["type"] == "Starting"
        searches = service.app.engine.performance()["searches"]
        await service.warm()
        assert (await client.get("/readyz")).json() == {"status": "ready"}
        assert service.app.engine.performance()["searches"] == searches, "its own searches are not counted"
    finally:
        service.ready = True


async def test_a_stopping_service_is_not_ready(client: httpx2.AsyncClient, service: Service) -> None:
    service.stopping = True
    try:
        assert assert_failure(await client.get("/readyz"), 503)["type"] == "Stopping"
        assert (await client.get("/livez")).status_code == 200
    finally:
        service.stopping = False


@contextmanager
def _recorded() -> Iterator[list[logging.LogRecord]]:
    records: list[logging.LogRecord] = []

    class Recorder(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    handler = Recorder()
    logger = logging.getLogger("dtrag.access")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        yield records
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


async def test_requests_are_logged_by_route_and_never_by_content(client: httpx2.AsyncClient) -> None:
    with _recorded() as records:
        await client.get("/documents/secret-id?secret=1")
        await client.post("/search", json={"query": "secret words"})
        await client.get("/secret-place")
    lines: list[dict[str, Any]] = [vars(record) for record in records]
    assert [(line["method"], line["route"], line["status"]) for line in lines] == [
        ("GET", "/documents/{document_id}", 404),
        ("POST", "/search", 200),
        ("GET", "(none)", 404),
    ]
    assert all(line["ms"] >= 0 for line in lines)
    assert "secret" not in repr(lines)


async def test_openapi_describes_every_field_and_failure(client: httpx2.AsyncClient) -> None:
    schema = (await client.get("/openapi.json")).json()
    for name, declared in schema["components"]["schemas"].items():
        for field, about in declared.get("properties", {}).items():
            assert about.get("description"), f"{name}.{field}"
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            assert operation["description"], (method, path)
            for status, answer in operation["responses"].items():
                if status >= "400":
                    shape = answer["content"]["application/json"]["schema"]["$ref"]
                    assert shape.endswith(("/ErrorShape", "/OpenAIFailure", "/DifyFailure")), (method, path, status)
    assert "HTTPValidationError" not in schema["components"]["schemas"]
    assert schema["components"]["schemas"]["SearchRequest"]["properties"]["query"]["examples"]


async def test_the_page_loads_nothing_from_anywhere(client: httpx2.AsyncClient, api: FastAPI) -> None:
    response = await client.get("/docs")
    assert response.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in response.headers["content-security-policy"]
    page = response.text
    assert "//" not in page
    assert "<script" not in page
    assert " src=" not in page
    for path in api.openapi()["paths"]:
        assert path in page
    assert "top_k" in page
    assert "category" in page
