"""Writes that are given up halfway: nothing of them stays in the pool, and what they left is found again."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.database import Connection
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.adapters.postgres.lexical.merge import MOST_CORRECTIONS
from dtrag.app import App, open_app
from dtrag.core.access.scope import Scope
from dtrag.core.documents import IndexedDocument
from dtrag.settings import Settings
from tests.builders import indexed_document
from tests.store import Store
from tests.toy import sentence

LOCKS = "select count(*) from pg_locks where locktype = 'advisory'"


async def test_a_cancelled_write_leaves_no_lock_and_no_hasty_commits(settings: Settings, store: Store) -> None:
    chance = random.Random(7)
    async with connect(settings) as database:
        writer = PostgresWriter(database)
        for attempt in range(25):
            documents = [indexed_document(f"c:{attempt}:{i}", [sentence(chance, 30)] * 3) for i in range(60)]
            task = asyncio.create_task(writer.write(documents))
            await asyncio.sleep(chance.random() * 0.06)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for _ in range(50):  # a closed connection's process takes a moment to go
            if not store.value(LOCKS):
                break
            await asyncio.sleep(0.1)
        assert store.value(LOCKS) == 0
        async with database.connection("owner") as connection:
            row = await (await connection.execute("show synchronous_commit")).fetchone()
        assert row is not None and row["synchronous_commit"] == "on"
        await writer.recover()
        assert store.value("select count(*) from lexical_segments where not counted") == 0
    store.assert_whole()


async def _broken(
    self: PostgresWriter, connection: Connection, documents: Sequence[IndexedDocument], segment_id: object
) -> None:
    raise ConnectionResetError("the process ends here")


async def test_interrupted_writes_are_completed_on_opening(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_app(settings) as app:
        with monkeypatch.context() as broken, pytest.raises(ConnectionResetError):
            broken.setattr(PostgresWriter, "_count", _broken)
            await PostgresWriter(app.database).write([indexed_document("m:1", ["a brass kettle"])])
    async with open_app(settings) as app:
        found, _ = await app.search("kettle", mode="lexical")
    assert [result.text for result in found] == ["a brass kettle"]


async def test_a_document_that_was_replaced_does_not_slip_through_a_filter(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the writing of its new version and the counting, the words of the old one still lead to it."""
    writer = PostgresWriter(app.database)
    await writer.write([indexed_document("m:1", ["kettle garden"])])
    changed = indexed_document("m:1", ["secret boiler valve"], replaces=True)
    changed = replace(changed, document=replace(changed.document, content_type="text/html"))
    with monkeypatch.context() as broken, pytest.raises(ConnectionResetError):
        broken.setattr(PostgresWriter, "_count", _broken)
        await writer.write([changed])
    found, _ = await app.search("kettle", mode="lexical", filters={"content_types": ["text/plain"]})
    assert found == []


async def test_deletions_are_folded(app: App, store: Store) -> None:
    writer = PostgresWriter(app.database)
    documents = [indexed_document(f"d:{number}", ["kettle"]) for number in range(MOST_CORRECTIONS + 40)]
    await writer.write(documents)
    for document in documents:
        assert await writer.delete(document.document_id, Scope.everything())
    assert store.value("select count(*) from lexical_corrections") <= MOST_CORRECTIONS
    store.assert_whole()
