"""Backups: what is in them, what a restore refuses, brings back, revokes and deletes, and from which schemas."""

from __future__ import annotations

import dataclasses
import errno
import json
import sqlite3
import stat
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from dtrag import backups
from dtrag.adapters.backup_file import DATABASE, BackupFile, BackupWriter
from dtrag.adapters.postgres import database, dump
from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.app import open_app
from dtrag.backups import RestoreOptions, RestorePlan
from dtrag.errors import BackupFailed, BackupRefused, DtragError, InUse, InvalidInput, StorageFull
from dtrag.ingestion.sources import Source
from dtrag.settings import Settings
from dtrag.testing import add_texts
from tests.builders import case
from tests.integration.cli_process import Cli
from tests.store import Databases, Store

KEY, OTHER_KEY = "a key of the tests", "another key of the tests"
TEXTS = {"kettle.md": "# Kettle\n\nThe kettle boils water.", "pan.md": "# Pan\n\nThe pan fries eggs."}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def accept(plan: RestorePlan) -> bool:
    return True


def refuse(plan: RestorePlan) -> bool:
    raise AssertionError("confirmation")


@pytest.fixture
def settings(databases: Databases, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """An empty database on the server of the run, whose other users work in other databases."""
    monkeypatch.setattr(EmbeddedServer, "claim", lambda self: None)
    return databases.settings()


@pytest.fixture
def absent(settings: Settings, embedded: EmbeddedServer) -> Iterator[Callable[..., Settings]]:
    """Settings of databases that do not exist yet."""
    names: list[str] = []

    def make(**overrides: object) -> Settings:
        names.append(f"restored_{uuid.uuid4().hex[:8]}")
        return dataclasses.replace(settings, database_name=names[-1], **overrides)  # type: ignore[arg-type]

    yield make
    with psycopg.connect(embedded.address.conninfo("dtrag_owner", "postgres"), autocommit=True) as connection:
        for name in names:
            connection.execute(f"drop database if exists {name}")
        left = connection.execute("select datname from pg_database where datname like 'dtrag_restore_%'").fetchall()
    assert left == []


async def test_an_empty_target_gets_everything_but_valid_keys(
    settings: Settings, absent: Callable[..., Settings], tmp_path: Path, databases: Databases
) -> None:
    """The backup is made beside an open app; its audit log continues in the restored one."""
    (tmp_path.parent / "waits.md").write_text("# Waits\n\nIt is not indexed.", "utf-8")
    async with open_app(settings) as app:
        await add_texts(app, TEXTS, "Kitchen")
        await app.keys.create("kim")
        await app.changed_settings.set("public", "Kitchen", accept_widening=True)
        await app.changed_settings.set("decision", "careful")
        await app.queue_upload([Source(tmp_path.parent / "waits.md", "waits.md", "upload:waits.md")])
        report = await backups.make(settings, tmp_path / "backup")
        head = (await app.audit.verify()).head
        answers, _ = await app.search("kettle")
    mode = stat.S_IMODE((tmp_path / "backup").stat().st_mode)
    assert (mode, report.bytes, report.encrypted) == (0o600, (tmp_path / "backup").stat().st_size, False)
    assert names(tmp_path) == ["backup"]

    target = absent()
    plan = await backups.restore(target, tmp_path / "backup", confirm=refuse)
    assert plan is not None
    assert (plan.target, plan.revoked_keys, plan.deleted, plan.lost) == ("empty", ["kim"], 0, 0)
    async with open_app(target) as app:
        found, _ = await app.search("kettle")
        assert [each.chunk_id for each in found] == [each.chunk_id for each in answers]
        assert [key.state(key.created_at) for key in await app.keys.every()] == ["revoked"]
        verdict = await app.audit.verify(report.manifest.audit_head)
        assert verdict.ok
        newest = await app.audit.newest(limit=3)
        assert [row.entry.action for row in newest] == ["settings.unset", "keys.revoke", "database.restore"]
        assert newest[0].entry.details["public"] == "Kitchen"
        assert newest[2].entry.details["backup"] == report.manifest.backup_id
        assert (app.public, app.settings.decision) == (None, "careful"), "what is public is decided again"
        assert await app.jobs.counts() == []  # what they would write may have been deleted since
        assert report.manifest.audit_number + 1 == head.number  # the line of the backup itself
    databases.store(target).assert_whole()
    assert catalog(databases.store(target)) == catalog(databases.store(settings))

    kept = await backups.restore(target, tmp_path / "backup", RestoreOptions(keep_keys=True), confirm=accept)
    assert kept is not None
    assert (kept.target, kept.revoked_keys) == ("later", ["kim"])  # revoked by the restore before
    fresh = absent()
    kept = await backups.restore(fresh, tmp_path / "backup", RestoreOptions(keep_keys=True), confirm=refuse)
    assert kept is not None
    assert kept.revoked_keys == []


def catalog(store: Store) -> list[tuple[object, ...]]:
    """Rights, policies, indexes, constraints and functions of the schema."""
    return store.rows(
        "select 'table', relname, relacl::text, relrowsecurity::text || relforcerowsecurity::text from pg_class"
        "  where relnamespace = 'dtrag'::regnamespace and relkind in ('r', 'v')"
        " union all select 'column', attrelid::regclass::text, attname, attacl::text from pg_attribute"
        "  join pg_class c on c.oid = attrelid where c.relnamespace = 'dtrag'::regnamespace and attacl is not null"
        " union all select 'schema', nspname, nspacl::text, '' from pg_namespace where nspname = 'dtrag'"
        " union all select 'policy', tablename, policyname, qual from pg_policies where schemaname = 'dtrag'"
        " union all select 'index', tablename, indexname, indexdef from pg_indexes where schemaname = 'dtrag'"
        " union all select 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)"
        "  from pg_constraint where connamespace = 'dtrag'::regnamespace"
        " union all select 'function', proname, proacl::text, md5(prosrc) from pg_proc"
        "  where pronamespace = 'dtrag'::regnamespace order by 1, 2, 3, 4"
    )


async def test_a_later_target_names_what_would_come_back(
    settings: Settings, tmp_path: Path, databases: Databases
) -> None:
    """Its deletions and revocations stay, unless they are to be undone; its audit log continues without a gap."""
    async with open_app(settings) as app:
        kettle, _ = await add_texts(app, TEXTS, "Kitchen")
        await app.keys.create("kim")
        await app.keys.create("lee")
        await backups.make(settings, tmp_path / "backup")
        await app.delete_documents([kettle])
        await app.keys.revoke("kim")
        await app.keys.create("park")
        await add_texts(app, {"lid.md": "# Lid\n\nThe lid covers."}, "Kitchen")
        head = (await app.audit.verify()).head
    seen: list[RestorePlan] = []

    def decline(plan: RestorePlan) -> bool:
        seen.append(plan)
        return False

    assert await backups.restore(settings, tmp_path / "backup", confirm=decline) is None
    assert databases.store(settings).titles() == ["Lid", "Pan"]
    [plan] = seen
    assert (plan.target, plan.revoked_keys, plan.lost_keys, plan.lost) == ("later", ["kim"], ["park"], 1)
    assert [each.title for each in plan.deleted_documents] == ["Kettle"]

    assert await backups.restore(settings, tmp_path / "backup", confirm=accept) == plan
    assert databases.store(settings).titles() == ["Pan"]
    async with open_app(settings) as app:
        assert {key.name: key.state(key.created_at) for key in await app.keys.every()} == {
            "kim": "revoked",
            "lee": "valid",
        }
        assert (await app.audit.verify(head)).ok
        actions = [row.entry.action for row in await app.audit.newest(limit=3)]
        assert actions == ["documents.delete", "keys.revoke", "database.restore"]
    databases.store(settings).assert_whole()

    returned = await backups.restore(settings, tmp_path / "backup", RestoreOptions(bring_back=True), confirm=accept)
    assert returned is not None
    assert (returned.returning_keys, returned.returning, returned.deleted) == (["kim"], 1, 0)
    assert databases.store(settings).titles() == ["Kettle", "Pan"]


async def test_a_list_of_later_deletions_is_applied(
    settings: Settings, absent: Callable[..., Settings], tmp_path: Path, databases: Databases
) -> None:
    """Of the lines behind the backup; the log of another database is refused."""
    async with open_app(settings) as app:
        kettle, pan = await add_texts(app, TEXTS, "Kitchen")
        await app.keys.create("kim")
        await app.delete_documents([pan])
        await add_texts(app, TEXTS, "Kitchen")  # deleted before the backup, and there again
        await backups.make(settings, tmp_path / "backup")
        await app.delete_documents([kettle])
        await app.keys.revoke("kim")
        lines = [
            json.dumps(
                {
                    "number": row.number,
                    "hash": row.hash.hex(),
                    "action": row.entry.action,
                    "subjects": row.entry.subjects,
                    "decision": row.entry.decision,
                }
            )
            for row in reversed(await app.audit.newest())
        ]
    log = tmp_path / "audit.jsonl"
    log.write_text("\n".join(lines), "utf-8")
    target = absent()
    options = RestoreOptions(keep_keys=True, deletions=log)
    plan = await backups.restore(target, tmp_path / "backup", options, confirm=refuse)
    assert plan is not None
    assert (plan.revoked_keys, plan.deleted) == (["kim"], 1)
    assert databases.store(target).titles() == ["Pan"]
    changed = [json.loads(line) for line in lines]
    for line in changed:
        line["hash"] = "00" * 32
    for wrong, reason in (
        ("\n".join(map(json.dumps, changed)), "another database"),
        ('{"number": 1}', "Line 1 of the deletions"),
        ("[]", "Line 1 of the deletions"),
    ):
        log.write_text(wrong, "utf-8")
        with pytest.raises(InvalidInput, match=reason):
            await backups.restore(absent(), tmp_path / "backup", options, confirm=refuse)


CUT, FLIPPED = "it is cut off", "damaged|no record begins|another order|header|not a backup|earlier|later"


async def test_damaged_backups_are_refused(
    settings: Settings, absent: Callable[..., Settings], tmp_path: Path, databases: Databases
) -> None:
    """Fifty-six of eleven kinds, each with its own reason; the target is as it was."""
    async with open_app(settings) as app:
        await add_texts(app, TEXTS, "Kitchen")
        await app.keys.create("kim")
        await backups.make(settings, tmp_path / "plain")
        locked = dataclasses.replace(settings, backup_key=KEY)
        await backups.make(locked, tmp_path / "locked")
    whole = (tmp_path / "plain").read_bytes()
    encrypted = (tmp_path / "locked").read_bytes()
    backup = BackupFile.open(tmp_path / "plain", None)
    assert b"Kettle" not in encrypted
    head = whole.index(b"\n", whole.index(b"\n") + 1) + 1 + 32
    records = _records(whole, head)
    described, first, *more, end = records
    size = len(whole)
    kinds: dict[str, list[tuple[bytes, str]]] = {
        "cut": [(whole[:at], CUT) for at in (head, head + 7, size // 2, size - 33, size - 1)],
        "header cut": [(whole[:at], "not a backup|header|cut off") for at in (3, 12, 20, head - 33, head - 1)],
        "flipped": [
            (whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :], FLIPPED)
            for at in (1, 40, head + 1, head + 60, size // 2, size - 20)
        ],
        "wrong digest": [
            (whole[: start + length - 32] + bytes(32) + whole[start + length :], "the checksum differs")
            for start, length in (described, first, more[0], end)
        ]
        + [(whole[: head - 32] + bytes(32) + whole[head:], "its header is damaged: the checksum")],
        "exchanged": [
            (whole[:head] + b"".join(whole[s : s + n] for s, n in order), "another order")
            for order in (
                [first, described, *more, end],
                [described, more[0], first, *more[1:], end],  # there may be only two pieces
                [described, described, first, *more, end],
                [end],
                [first, *more, end],
                [described, *more, end],
            )
        ],
        "longer": [(whole + more, "more behind its end") for more in (b"\0", b"\n", whole, b"x" * 99, whole[:head])],
        "earlier format": [(_titled(whole, b"%d" % 0), "earlier than 1")] * 2,
        "later format": [(_titled(whole, b"%d" % number), "later than 1") for number in (2, 3, 9, 10, 99)],
        "not a backup": [
            (data, "not a backup of dtrag")
            for data in (b"PGDMP\1\16\0", b"PK\3\4", b"\0" * 999, b"# Notes\n", b"dtrag backup x\n{}\n")
        ],
        "empty": [(b"", "it is empty")],
    }
    refused = 0
    for kind, variants in kinds.items():
        for data, reason in variants:
            with pytest.raises(BackupRefused, match=f"(?:{reason}).* Nothing was changed"):
                await _restored(settings, data, tmp_path)
            refused += 1
            assert kind
    for data, key, reason in (
        (encrypted, None, "it is encrypted. Give its key"),
        *((encrypted, wrong, "encrypted with another key") for wrong in (OTHER_KEY, KEY + "x", KEY.upper(), "x" * 99)),
        (encrypted[:-50], KEY, CUT),
    ):
        with pytest.raises(BackupRefused, match=reason):
            await _restored(dataclasses.replace(settings, backup_key=key), data, tmp_path)
        refused += 1
    later = {
        "migrations": [*backup.manifest.migrations, "9999_later.sql"],
        "dump_major": 99,
    }
    for name, value in later.items():
        data = _rewritten(backup, tmp_path, **{name: value})
        with pytest.raises(BackupRefused, match=r"9999_later|PostgreSQL 99"):
            await _restored(settings, data, tmp_path)
        refused += 1
    with pytest.raises(BackupRefused, match="other fields"):
        await _restored(settings, _rewritten(backup, tmp_path, another=1), tmp_path)
    others: list[dict[str, object]] = [
        {"audit_hash": "11" * 32, "audit_first": "22" * 32},
        {"audit_hash": "11" * 32, "audit_first": ""},
        {"audit_number": 0, "identity": "1-1"},
        {"audit_number": 0, "identity": ""},
        {"audit_number": 99, "audit_first": "33" * 32},
    ]
    for changed in others:
        with pytest.raises(BackupRefused, match="another installation"):
            await _restored(settings, _rewritten(backup, tmp_path, **changed), tmp_path)
        refused += 1
    with pytest.raises(BackupFailed, match="other numbers of rows than in the backup: documents"):
        tables = {**backup.manifest.tables, "documents": 7}
        await _restored(absent(), _rewritten(backup, tmp_path, tables=tables), tmp_path)
    assert refused >= 50
    assert databases.store(settings).titles() == ["Kettle", "Pan"]

    replaced = await _restored(
        settings, _rewritten(backup, tmp_path, **others[0]), tmp_path, RestoreOptions(replace_other=True)
    )
    assert replaced is not None
    assert (replaced.target, replaced.revoked_keys) == ("other", ["kim"])
    fresh = absent(backup_key=KEY)
    assert await _restored(fresh, encrypted, tmp_path) is not None
    assert databases.store(fresh).titles() == ["Kettle", "Pan"]


def _records(whole: bytes, start: int) -> list[tuple[int, int]]:
    """Start and length of each record."""
    records = []
    while start < len(whole):
        length = 13 + int.from_bytes(whole[start + 9 : start + 13], "big") + 32
        records.append((start, length))
        start += length
    return records


def _titled(whole: bytes, version: bytes) -> bytes:
    return b"dtrag backup " + version + whole[whole.index(b"\n") :]


def _rewritten(backup: BackupFile, folder: Path, **changed: object) -> bytes:
    """A whole backup with a changed manifest."""
    path = folder / "rewritten"
    with path.open("w+b") as file:
        writer = BackupWriter(file, None)
        values = {**dataclasses.asdict(backup.manifest), **changed}
        writer.write(b"M", json.dumps(values).encode())
        for piece in backup.pieces(DATABASE):
            writer.write(DATABASE, piece)
        writer.finish()
    return path.read_bytes()


async def _restored(
    settings: Settings, data: bytes, folder: Path, options: RestoreOptions = RestoreOptions()
) -> RestorePlan | None:
    (folder / "damaged").write_bytes(data)
    return await backups.restore(settings, folder / "damaged", options, confirm=accept)


CONTENT = """
insert into taxonomy_nodes values (2, now());
insert into taxonomy_tree values ('1.0.0', 2, 0, 'Kitchen', 'kitchen');
insert into documents (document_id, source_id, source_uri, title, content_type, language, node_id, metadata, text,
    chunks, characters, fingerprint, segment_id, processed_at)
values ('00000000-0000-0000-0000-000000000007', '00000000-0000-0000-0000-000000000007', 'file:///a', 'Kettles',
    'text/plain', 'en', 2, '{}', 'The kettle boils.', 1, 17, '', '00000000-0000-0000-0000-000000000008', now());
insert into chunks values ('00000000-0000-0000-0000-000000000007', 0, 2, 0, 17, 'The kettle boils.', '{}', '{}');
insert into api_keys (key_id, name, prefix, digest, role, rate, created_at)
values ('00000000-0000-0000-0000-000000000009', 'kim', 'abc', '', 'reader', 600, now());
insert into agents values ('00000000-0000-0000-0000-000000000010', 'cook', 1, '{}', '[]', 'lee', now(), now());
insert into conversations values ('c', '', now(), now(), 1);
insert into cbr_cases (case_id, query, query_hash, category_path, node_id, content, chunk_ids, content_hashes,
    document_ids, quality_score, usage_count, success_rate, upvotes, downvotes, origin, author, status, metadata,
    created_at, updated_at)
values ('c1', 'What boils?', '', '{Kitchen}', 2, 'c', '{}', '{}', '{}', 0.5, 0, 0, 0, 0, 'manual', '', 'active', '{}',
    now(), now());
"""
FIRST = 18
"""Number of the newest migration of the first schema whose backups are restored."""
NUMBERS = range(FIRST, len(database.migration_texts()) + 1)


@pytest.mark.parametrize("number", NUMBERS)
async def test_a_backup_of_each_earlier_schema_is_restored_and_migrated(
    number: int,
    absent: Callable[..., Settings],
    tmp_path: Path,
    databases: Databases,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Documents, categories, keys, agents, cases and the audit log survive, and the document is found."""
    every = database.migration_texts()
    early, target = absent(), absent()
    with monkeypatch.context() as before:
        before.setattr(database, "migration_texts", lambda: {name: every[name] for name in sorted(every)[:number]})
        async with connect(early) as connected:
            await backups._record(early, connected, "documents.delete", [uuid.UUID(int=5)])
    databases.store(early).rows(CONTENT)
    report = await backups.make(early, tmp_path / "backup")
    assert len(report.manifest.migrations) == number
    assert databases.store(early).value("select count(*) from migrations") == number  # not migrated by its backup
    assert await backups.restore(target, tmp_path / "backup", confirm=refuse) is not None
    restored = databases.store(target)
    assert restored.value("select count(*) from migrations") == len(every)
    assert restored.rows("select name, revoked_at is null from api_keys") == [("kim", False)]
    async with open_app(target) as app:
        assert (await app.audit.verify(report.manifest.audit_head)).ok
        await app.reindex()
        [result] = (await app.search("kettle"))[0]
        assert (result.title, result.text, result.taxonomy_path) == ("Kettles", "The kettle boils.", ["Kitchen"])
    for table in ("agents", "conversations", "cbr_cases"):
        assert restored.value(f"select count(*) from {table}") == 1
    restored.assert_whole()


async def test_an_interrupted_restore_leaves_the_old_state(
    settings: Settings, tmp_path: Path, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each step; what it has left is removed by the next one, which succeeds."""
    async with open_app(settings) as app:
        kettle, _ = await add_texts(app, TEXTS, "Kitchen")
        await backups.make(settings, tmp_path / "backup")
        await app.delete_documents([kettle])
    steps = ("make_schema", "_load", "_plan", "_apply", "_continue_log", "_exchange")

    for step in steps:

        async def killed(*arguments: object) -> None:
            raise psycopg.OperationalError("killed")

        with monkeypatch.context() as broken:
            broken.setattr(backups, step, killed)
            with pytest.raises((psycopg.OperationalError, DtragError)):
                await backups.restore(settings, tmp_path / "backup", confirm=accept)
        assert databases.store(settings).titles() == ["Pan"], step
    with psycopg.connect(databases.address.conninfo("dtrag_owner", "postgres"), autocommit=True) as connection:
        connection.execute("create database dtrag_restore_of_a_killed_process")
    options = RestoreOptions(bring_back=True)
    assert await backups.restore(settings, tmp_path / "backup", options, confirm=accept) is not None
    assert databases.store(settings).titles() == ["Kettle", "Pan"]


async def test_a_file_is_complete_or_absent(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, a failed dump and an existing name leave nothing, and what was there."""
    async with open_app(settings):
        file = tmp_path / "backup"

        def full(self: BackupWriter, part: bytes, data: bytes) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as broken:
            broken.setattr(BackupWriter, "write", full)
            with pytest.raises(StorageFull, match="Nothing is left of the file"):
                await backups.make(settings, file)
        with monkeypatch.context() as broken:
            broken.setattr(dump, "_DUMP", ("--no-such-option",))
            with pytest.raises(BackupFailed, match=r"was not backed up: .*no-such-option"):
                await backups.make(settings, file)
        assert names(tmp_path) == []
        with pytest.raises(InvalidInput, match="fewer than 12"):
            await backups.make(dataclasses.replace(settings, backup_key="short"), file)
        key = tmp_path / "key"
        key.write_text(f"{KEY}\n")
        first = await backups.make(dataclasses.replace(settings, backup_key_file=key), file)
        assert first.encrypted
        with pytest.raises(InvalidInput, match=r"exists.*--force"):
            await backups.make(settings, file)
        assert file.stat().st_size == first.bytes
        assert not (await backups.make(settings, file, force=True)).encrypted
        with pytest.raises(InvalidInput, match="cannot be written"):
            await backups.make(settings, tmp_path / "no folder" / "backup")
        with pytest.raises(InvalidInput, match="There is no file"):
            await backups.restore(settings, tmp_path / "absent", confirm=accept)


async def test_the_file_of_the_case_memory_is_part_of_it(
    databases: Databases, absent: Callable[..., Settings], tmp_path: Path
) -> None:
    """Copied while it is open; a restore puts it into the folder of the settings, over another one."""
    settings = databases.settings(cbr_data_dir=tmp_path / "cases")
    async with open_app(settings) as app:
        await app.case_store.add(case("one"))
        report = await backups.make(settings, tmp_path / "backup")
        await app.case_store.add(case("two"))
    assert report.manifest.cases
    with pytest.raises(InvalidInput, match="CBR_DATA_DIR"):
        await backups.restore(absent(cbr_data_dir=None), tmp_path / "backup", confirm=accept)
    for folder in ("elsewhere", "cases"):
        target = absent(cbr_data_dir=tmp_path / folder)
        await backups.restore(target, tmp_path / "backup", confirm=accept)
        with sqlite3.connect(tmp_path / folder / "cbr_system.db") as connection:
            assert connection.execute("select case_id from cbr_cases").fetchall() == [("one",)]
        connection.close()
        assert names(tmp_path / folder) == ["cbr_system.db"]


def test_the_commands_on_machines_of_their_own(tmp_path: Path) -> None:
    """Each in a process: a restore refuses while a service runs, and the new machine answers."""
    old, new = (Cli(tmp_path / name, (("DTRAG_EMBEDDER", "none"),)) for name in ("old", "new"))
    (tmp_path / "kettle.md").write_text("# Kettle\n\nThe kettle boils water.", "utf-8")
    assert "There is no database" in old.call("backup", tmp_path / "backup").err
    assert old.call("ingest", tmp_path / "kettle.md").code == 0
    report = old.call("backup", tmp_path / "backup", "--json").json
    assert report["manifest"]["tables"]["documents"] == 1
    with EmbeddedServer.open(old.data_dir):  # as a service
        ran = old.run("restore", tmp_path / "backup", "--yes")
        assert (ran.code, "Other processes use" in ran.err) == (4, True)
    ran = old.call("restore", tmp_path / "backup")
    assert (ran.code, "Confirm with --yes" in ran.err) == (2, True)
    ran = new.call("restore", tmp_path / "backup")
    assert (ran.code, ran.out[:19]) == (0, "Restored 1 document")
    found = new.call("search", "kettle", "--json").json
    assert [result["title"] for result in found["results"]] == ["Kettle"]


async def test_claim_refuses_others(mortal: Path) -> None:
    with EmbeddedServer.open(mortal) as server, EmbeddedServer.open(mortal) as other:
        with pytest.raises(InUse):
            EmbeddedServer.claim(server)
        other.close()
        EmbeddedServer.claim(server)
