"""Advisory locks: who waits for whom, on purpose, and who does not."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import dtrag
from dtrag.adapters.postgres.index_settings import PostgresIndexSettings
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.adapters.postgres.queries import Lock, lock, queries
from dtrag.adapters.postgres.stores.governance import PostgresAudit
from dtrag.app import App
from dtrag.core.access.audit_chain import AuditEntry
from tests.builders import indexed_document
from tests.store import Store

WAITING = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
EXCLUSIVE = (
    "select count(*) from pg_locks where locktype = 'advisory' and granted and mode = 'ExclusiveLock'"
    " and (classid::bigint << 32 | objid::bigint) = %s"
)
PROMPT_S = 10
"""Far more than what is measured when nothing waits (milliseconds), so that a busy machine cannot fail the test."""


async def until(store: Store, statement: str, *values: object) -> None:
    """Return when the statement counts something."""
    for _ in range(PROMPT_S * 100):
        if await asyncio.to_thread(store.value, statement, *values):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"it never happened: {statement}")


async def test_reindex_waits_for_the_batches_of_writers(
    app: App, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a batch whose documents are written but not counted would lose its segment to the truncation."""
    count = PostgresWriter._count
    written, may_count = asyncio.Event(), asyncio.Event()

    async def held_count(self: PostgresWriter, *arguments: object) -> None:
        written.set()
        await may_count.wait()
        await count(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(PostgresWriter, "_count", held_count)
    writer = PostgresWriter(app.database)
    writing = asyncio.create_task(writer.write([indexed_document("m:1", ["a brass kettle"])]))
    await written.wait()
    forgetting = asyncio.create_task(PostgresIndexSettings(app.database).forget())
    await until(store, WAITING)
    assert not forgetting.done()
    assert store.value("select count(*) from lexical_segments where not counted") == 1
    may_count.set()
    await writing
    await forgetting
    monkeypatch.undo()
    assert store.value("select count(*) from lexical_segments") == 0
    assert await app.reindex() == 1
    store.assert_whole()
    results, _ = await app.search("kettle", mode="lexical")
    assert [result.text for result in results] == ["a brass kettle"]


async def test_reindex_excludes_writers_on_purpose(app: App, store: Store) -> None:
    """While `forget` has the locks, a new batch waits at the writers' lock, not by chance at a table."""
    async with app.database.connection("owner") as held, held.transaction():
        await held.execute("lock table embeddings in access share mode")  # `forget` stops here, all its locks taken
        forgetting = asyncio.create_task(PostgresIndexSettings(app.database).forget())
        await until(store, EXCLUSIVE, int(Lock.WRITERS))
        writing = asyncio.create_task(PostgresWriter(app.database).write([indexed_document("m:1", ["kettle"])]))
        await until(store, WAITING)
        assert not writing.done()
    await forgetting
    await writing
    store.assert_counted()


async def test_the_audit_log_does_not_wait_for_a_change_of_the_tree(app: App) -> None:
    entry = AuditEntry(datetime(2026, 1, 1, tzinfo=UTC), "local", "test", None, (), "done", {})
    async with app.database.connection("owner") as held, held.transaction():
        await lock(held, Lock.TAXONOMY)
        async with asyncio.timeout(PROMPT_S):
            await PostgresAudit(app.database).append([entry])


async def test_registration_does_not_wait_for_writers(app: App) -> None:
    """Every ingest begins with it; another one may be in the middle of a batch."""
    async with app.database.connection("owner") as writer:
        await writer.execute(queries("locks")["session_shared"], {"lock": Lock.WRITERS})
        async with asyncio.timeout(PROMPT_S):
            await PostgresIndexSettings(app.database).register(app.analyzer.id)
        await writer.execute(queries("locks")["release_all"])


def test_lock_numbers_are_in_one_place_and_distinct() -> None:
    assert len(set(map(int, Lock))) == len(Lock.__members__)
    package = Path(dtrag.__file__).parent
    elsewhere = [
        path.name
        for path in package.rglob("*")
        if path.suffix in {".py", ".sql"} and path.name not in {"queries.py", "locks.sql"}
        if re.search(r"pg_(?:try_)?advisory_\w+\s*\(|7_?203_?114_?\d{3}", path.read_text("utf-8"))
    ]
    assert elsewhere == []
