"""Lines of the audit log that the database cannot take: spooled, written later, once each, and the chain holds."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Sequence
from pathlib import Path

import pytest

from dtrag.adapters.audit_spool import AuditSpool
from dtrag.adapters.postgres.stores.governance import PostgresAudit
from dtrag.app import App, open_app
from dtrag.core.access.audit_chain import AuditEntry, ChainHead
from dtrag.errors import DatabaseUnavailable
from dtrag.governance import audit as module
from dtrag.governance.audit import Audit
from dtrag.settings import Settings
from tests.store import Store

ACTIONS = "select action from audit_log order by number"


class Failing(PostgresAudit):
    """A log whose database is away while `away` is set, or is lost after each commit while `unconfirmed` is."""

    away = True
    unconfirmed = False

    async def append(self, entries: Sequence[AuditEntry]) -> ChainHead:
        if self.away:
            raise DatabaseUnavailable(reason="it is away.")
        head = await super().append(entries)
        if self.unconfirmed:
            self.away = True
            raise DatabaseUnavailable(reason="it went away after the commit.")
        return head


async def record(audit: Audit, action: str) -> None:
    await audit.record("kim", action, scope=None, subjects=(), decision="done", details={"request_id": action})


async def note(audit: Audit, action: str) -> None:
    await audit.note("kim", action, scope=None, subjects=(), decision="allowed", details={"request_id": action})


@pytest.fixture
def spool(tmp_path: Path) -> AuditSpool:
    return AuditSpool(tmp_path / "spool", "test")


async def test_spooled_lines_are_written_when_the_database_returns(app: App, store: Store, spool: AuditSpool) -> None:
    log = Failing(app.database)
    audit = Audit(log, spool=spool)
    await record(audit, "keys.create")
    await note(audit, "GET /documents")
    await asyncio.sleep(3 * module.NOTE_S)
    assert store.rows(ACTIONS) == []
    log.away = False
    await record(audit, "keys.revoke")
    assert store.rows(ACTIONS) == [("keys.create",), ("GET /documents",), ("keys.revoke",)]
    assert (await audit.verify()).ok
    await audit.close()
    assert list(spool.folder.iterdir()) == []


async def test_the_next_process_writes_lines_left_by_another(
    app: App, store: Store, spool: AuditSpool, tmp_path: Path
) -> None:
    ended = Audit(Failing(app.database), spool=spool)
    await record(ended, "keys.create")
    await note(ended, "GET /documents")
    other = Audit(PostgresAudit(app.database), spool=AuditSpool(spool.folder, "test"))
    assert await other.recover() == 0, "the process that writes them is alive"
    await ended.close()
    [path] = spool.left()
    path.write_bytes(path.read_bytes() + b'{"torn":')
    assert await other.recover() == 2
    assert await other.recover() == 0
    assert store.rows(ACTIONS) == [("keys.create",), ("GET /documents",)]
    assert (await other.verify()).ok
    await other.close()


async def test_a_line_whose_confirmation_was_lost_is_not_written_twice(
    app: App, store: Store, spool: AuditSpool
) -> None:
    log = Failing(app.database)
    log.away, log.unconfirmed = False, True
    audit = Audit(log, spool=spool)
    await record(audit, "keys.create")
    log.away = log.unconfirmed = False
    await record(audit, "keys.revoke")
    assert store.rows(ACTIONS) == [("keys.create",), ("keys.revoke",)]
    await audit.close()


async def test_reads_go_on_when_no_line_can_be_written(
    app: App, store: Store, spool: AuditSpool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both the database's disk and the spool's are full: the log says later how many lines it lacks."""
    log = Failing(app.database)
    audit = Audit(log, spool=spool)
    monkeypatch.setattr(module, "MOST_WAITING", 3)

    def full(self: AuditSpool, entries: Sequence[AuditEntry]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(AuditSpool, "add", full)
        for number in range(5):
            await note(audit, f"GET /{number}")
        with pytest.raises(DatabaseUnavailable):
            await record(audit, "keys.create")
    log.away = False
    await audit.close()
    actions = [action for (action,) in store.rows(ACTIONS)]
    assert sorted(actions) == sorted(["GET /2", "GET /3", "GET /4", module.LEFT_OUT])
    assert store.value("select details from audit_log where action = %s", module.LEFT_OUT) == {"lines": 2}


async def test_an_app_writes_lines_left_by_another(settings: Settings, store: Store, tmp_path: Path) -> None:
    spool = AuditSpool.of(settings)
    async with open_app(settings) as app:
        left = Audit(Failing(app.database), spool=spool)
        await record(left, "keys.create")
        await left.close()
    async with open_app(settings) as app:
        assert store.rows(ACTIONS) == [("keys.create",)]
        assert (await app.audit.verify()).ok
