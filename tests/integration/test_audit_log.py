"""The audit log in the database: durable, chained over processes, and nobody's to change."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from dtrag.adapters.postgres.stores.governance import PostgresAudit
from dtrag.app import App, open_app
from dtrag.core.access.audit_chain import AuditEntry, ChainHead
from dtrag.errors import DatabaseUnavailable, InvalidInput
from dtrag.governance import audit as module
from dtrag.governance.audit import Audit
from dtrag.settings import Settings
from tests.cases import each
from tests.store import Databases, Store

LINE: dict[str, Any] = {"scope": None, "subjects": ["d1"], "decision": "done", "details": {"status": 200, "s": 0.25}}


def count(store: Store) -> int:
    return int(store.value("select count(*) from audit_log"))


def by_force(store: Store, statement: str) -> None:
    """A change by somebody who has the owner's login and gives it back the rights that the migration took away."""
    with store.connect() as connection:
        connection.execute("grant update, delete on audit_log to dtrag_owner")
        connection.execute(statement.encode())


async def test_a_record_is_durable_on_return_and_a_note_soon(app: App, store: Store) -> None:
    await app.audit.record("kim", "keys.create", **LINE)
    assert count(store) == 1
    await app.audit.note("lee", "GET /documents", **LINE)
    await app.audit.note("lee", "GET /documents", **LINE)
    newest = await app.audit.newest(limit=2)
    assert [(row.number, row.entry.actor) for row in newest] == [(3, "lee"), (2, "lee")]
    assert (await app.audit.verify()).head.number == 3


async def test_no_subject_of_a_record_is_left_out(app: App) -> None:
    ids = [f"document-{number}" for number in range(2_001)]
    await app.audit.record("kim", "documents.delete", **{**LINE, "subjects": ids})
    rows = list(reversed(await app.audit.newest()))
    assert [len(row.entry.subjects) for row in rows] == [1_000, 1_000, 1]
    assert [subject for row in rows for subject in row.entry.subjects] == ids


async def test_notes_are_written_by_themselves_and_on_closing(settings: Settings, store: Store) -> None:
    async with open_app(settings) as app:
        await app.audit.note("lee", "GET /documents", **LINE)
        for _ in range(200):
            if count(store):
                break
            await asyncio.sleep(0.05)
        assert count(store) == 1
        for _ in range(20):
            await app.audit.note("lee", "GET /documents", **LINE)
    assert count(store) == 21


async def test_concurrent_lines_of_two_apps_form_one_chain(settings: Settings) -> None:
    async with open_app(settings) as one, open_app(settings) as other:
        await asyncio.gather(
            *(app.audit.record(f"k{n}", "POST /agents", **LINE) for n in range(60) for app in (one, other))
        )
        await asyncio.gather(*(app.audit.note(f"r{n}", "GET /x", **LINE) for n in range(60) for app in (one, other)))
        await other.audit.newest()
        verdict = await one.audit.verify()
    assert (verdict.ok, verdict.head.number) == (True, 240)


@each("role", ["dtrag_owner", "dtrag_search", "dtrag_reader"])
@each("statement", ["update audit_log set actor = 'x'", "delete from audit_log", "truncate audit_log"])
async def test_no_role_of_the_app_can_change_a_line(app: App, store: Store, role: str, statement: str) -> None:
    await app.audit.record("kim", "keys.create", **LINE)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        store.rows(statement, role=role)
    if role != "dtrag_owner":
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            store.rows("select * from audit_log", role=role)


@pytest.mark.parametrize(
    ("statement", "first_bad"),
    [
        ("update dtrag.audit_log set actor = 'nobody' where number = 3", 3),
        ("update dtrag.audit_log set details = '{}' where number = 1", 1),
        ("delete from dtrag.audit_log where number = 2", 2),
        ("delete from dtrag.audit_log where number < 4", 1),
    ],
)
async def test_forced_changes_are_detected(app: App, store: Store, statement: str, first_bad: int) -> None:
    for number in range(5):
        await app.audit.record(f"k{number}", "keys.create", **LINE)
    assert (await app.audit.verify()).ok
    by_force(store, statement)
    verdict = await app.audit.verify()
    assert (verdict.ok, verdict.first_bad) == (False, first_bad)


async def test_a_truncated_tail_is_detected_with_a_saved_head(app: App, store: Store) -> None:
    for number in range(5):
        await app.audit.record(f"k{number}", "keys.create", **LINE)
    kept = (await app.audit.verify()).head
    by_force(store, "delete from dtrag.audit_log where number > 3")
    assert (await app.audit.verify()).ok
    assert (await app.audit.verify(kept)).first_bad == 4
    for number in range(2):
        await app.audit.record(f"other{number}", "keys.create", **LINE)
    assert (await app.audit.verify(kept)).first_bad == 5
    assert (await app.audit.verify((await app.audit.verify()).head)).ok


async def test_recorded_lines_depend_on_the_level(databases: Databases) -> None:
    for level, expected in (("all", 2), ("changes", 1), ("off", 0)):
        settings = databases.settings(audit=level)
        async with open_app(settings) as app:
            await app.audit.note("kim", "GET /documents", **LINE)
            await app.audit.record("kim", "keys.create", **LINE)
        assert count(databases.store(settings)) == expected, level
    with pytest.raises(InvalidInput, match="audit level"):
        async with open_app(databases.settings(audit="some")):
            pass


async def test_pages_of_the_log_and_its_filters(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    for number in range(5):
        await app.audit.record("kim" if number % 2 else "lee", "keys.create", **LINE)
    assert (await app.audit.verify()).head.number == 5
    assert [row.number for row in await app.audit.newest(limit=2, before=4)] == [3, 2]
    assert [row.number for row in await app.audit.newest(actor="kim")] == [4, 2]
    [middle] = await app.audit.newest(limit=1, before=4)
    assert [row.number for row in await app.audit.newest(since=middle.entry.at)] == [5, 4, 3]
    with pytest.raises(InvalidInput, match="limit"):
        await app.audit.newest(limit=0)


class Failing(PostgresAudit):
    """A log whose database is away while `away` is set."""

    away = True

    async def append(self, entries: Sequence[AuditEntry]) -> ChainHead:
        if self.away:
            raise DatabaseUnavailable(reason="it is away.")
        return await super().append(entries)


async def test_without_the_database_reads_are_queued_and_changes_fail(
    app: App, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 3)
    log = Failing(app.database)
    audit = Audit(log)
    with pytest.raises(DatabaseUnavailable):
        await audit.record("kim", "keys.create", **LINE)
    for _ in range(3):
        await audit.note("kim", "GET /documents", **LINE)
    with pytest.raises(DatabaseUnavailable):
        await audit.note("kim", "GET /documents", **LINE)
    log.away = False
    await audit.note("kim", "GET /last", **LINE)
    await audit.close()
    assert store.rows("select number, action from audit_log order by 1") == [
        (1, "GET /documents"),
        (2, "GET /documents"),
        (3, "GET /documents"),
        (4, "GET /last"),
    ]
