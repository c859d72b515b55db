"""Uploads: where their bytes lie, how many there may be, and what ends with the client or the process."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.types import Message

from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.dependencies import Service
from dtrag.delivery.api.routes.uploads import UploadFolder
from dtrag.ingestion.sources import IngestReport
from dtrag.settings import Settings
from tests.api.shape import BOUNDARY, assert_failure, file_form
from tests.api.test_keys import client_of

TYPE = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def upload_scope(length: int) -> dict[str, Any]:
    headers = {"host": "localhost", "content-length": str(length), **TYPE}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": "/documents",
        "raw_path": b"/documents",
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 8001),
    }


async def left_after(api: FastAPI, pieces: Sequence[bytes], length: int, leaves: asyncio.Event) -> list[Message]:
    """What is sent to a client that sends these pieces of a body and leaves when the event is set."""
    waiting = list(pieces)
    sent: list[Message] = []

    async def receive() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(0), "more_body": sum(map(len, pieces)) < length}
        await leaves.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await api(upload_scope(length), receive, send)
    return sent


def test_files_of_killed_services_are_removed_at_the_next_start(tmp_path: Path) -> None:
    running = UploadFolder.open(tmp_path)
    assert running.path.parent == tmp_path / "uploads"
    assert running.path.parent.stat().st_mode & 0o777 == 0o700
    (running.path / "upload").mkdir()
    killed = tmp_path / "uploads" / "service-killed" / "upload"
    killed.mkdir(parents=True)
    (killed / "0001").write_bytes(b"x")
    (tmp_path / "uploads" / "stray").write_bytes(b"x")
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "uploads" / "link").symlink_to(outside)
    second = UploadFolder.open(tmp_path)
    assert {left.name for left in (tmp_path / "uploads").iterdir()} == {running.path.name, second.path.name}
    assert (running.path / "upload").is_dir()
    assert outside.is_dir()
    second.close()
    running.close()
    assert list((tmp_path / "uploads").iterdir()) == []


async def test_files_are_never_in_the_systems_temporary_folder(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(*_: object, **__: object) -> None:
        raise AssertionError("a file in the temporary folder of the system")

    monkeypatch.setattr(tempfile, "TemporaryFile", elsewhere)
    form = file_form(b"large.txt", b"Pipes are laid in spring." + b" " * 1_500_000)
    assert (await client.post("/documents", content=form, headers=TYPE)).status_code == 201


async def test_an_upload_is_stored_in_the_data_folder_and_ends_when_its_client_disconnects(
    api: FastAPI, service: Service
) -> None:
    leaves = asyncio.Event()
    form = file_form(b"half.txt", b"x" * 200_000)
    half = asyncio.create_task(left_after(api, [form[:150_000]], len(form), leaves))
    async with asyncio.timeout(10):
        while not any(path.stat().st_size for path in service.uploads.glob("*/*")):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        leaves.set()
        await half
    assert list(service.uploads.iterdir()) == []
    assert service.app.run.admission.loads()["upload"].working == 0


async def test_what_has_arrived_is_indexed_although_the_client_disconnects(
    api: FastAPI, client: httpx2.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, leaves, left = asyncio.Event(), asyncio.Event(), asyncio.Event()
    ingest_sources = service.app.ingest_sources

    async def slow(*sources: Any, **options: Any) -> IngestReport:
        reading.set()
        await left.wait()
        return await ingest_sources(*sources, **options)

    monkeypatch.setattr(service.app, "ingest_sources", slow)
    form = file_form(b"abandoned.txt", b"The abandoned upload is about kites.")
    request = asyncio.create_task(left_after(api, [form], len(form), leaves))
    async with asyncio.timeout(30):
        await reading.wait()
        leaves.set()
        await asyncio.sleep(0.1)  # the service could notice it
        left.set()
        await request
    listed = (await client.get("/documents", params={"q": "abandoned"})).json()["documents"]
    assert [document["source_url"] for document in listed] == ["upload:abandoned.txt"]
    assert list(service.uploads.iterdir()) == []


async def test_an_upload_ends_with_the_service(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    api, reading = create_app(settings), asyncio.Event()
    async with api.router.lifespan_context(api), client_of(api) as client:
        service: Service = api.state.service

        async def endless(*_: object, **__: object) -> None:
            reading.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(service.app, "ingest_sources", endless)
        sent = asyncio.create_task(client.post("/documents", content=file_form(b"a.txt", b"Pipes."), headers=TYPE))
        async with asyncio.timeout(10):
            await reading.wait()
            service.in_flight.end()
            assert_failure(await sent, 503)
        assert list(service.uploads.iterdir()) == []


async def test_uploads_are_limited_and_searches_too(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"uploads_at_once": 1, "uploads_waiting": 0, "searches_at_once": 1, "searches_waiting": 1}
    api = create_app(dataclasses.replace(settings, **few))  # type: ignore[arg-type]
    async with api.router.lifespan_context(api), client_of(api) as client:
        service: Service = api.state.service
        admission = service.app.run.admission
        form = file_form(b"a.txt", b"Pipes.")
        async with admission.upload():
            refused = await client.post("/documents", content=form, headers=TYPE)
            assert assert_failure(refused, 503)["type"] == "Overloaded"
            assert 1 <= int(refused.headers["retry-after"]) <= 5
        assert (await client.post("/documents", content=form, headers=TYPE)).status_code == 201
        async with admission.search(), asyncio.TaskGroup() as group:
            waiting = group.create_task(client.post("/search", json={"query": "pipes"}))
            while admission.loads()["search"].waiting < 1:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            refused = await client.post("/search", json={"query": "pipes"})
            assert assert_failure(refused, 503)["type"] == "Overloaded"
            assert 1 <= int(refused.headers["retry-after"]) <= 5
            batch = await client.post("/search/batch", json={"searches": [{"query": "a"}, {"query": "b"}]})
            assert [answer["status"] for answer in batch.json()["answers"]] == [503, 503]
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await waiting
        assert (await client.post("/search", json={"query": "pipes"})).status_code == 200
        assert admission.loads()["search"].working == 0
