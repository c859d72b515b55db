"""Backups of the database that the settings name, their restoration, and the change to a later PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import psycopg
from psycopg import sql

from dtrag.adapters.backup_file import (
    CASES,
    DATABASE,
    BackupFile,
    BackupWriter,
    Manifest,
    new_file,
    read_key,
    sync_folder,
)
from dtrag.adapters.postgres import dump
from dtrag.adapters.postgres.connect import (
    UNFINISHED,
    Attachment,
    attached,
    connect,
    conninfo_at,
    create_database,
    make_schema,
    named,
)
from dtrag.adapters.postgres.database import Database, fetch, fetch_row, migration_texts, sentence
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.server.programs import MAJOR
from dtrag.adapters.postgres.server.server import UPGRADE, earlier_server, exchange_upgraded, status
from dtrag.adapters.postgres.stores.governance import PostgresAudit
from dtrag.adapters.sqlite.connection import FILE as CASE_FILE
from dtrag.core.access.api_key import LOCAL
from dtrag.core.access.audit_chain import ACTIONS, MAX_SUBJECTS, AuditEntry, Deletions, read_lines
from dtrag.core.access.scope import EVERYTHING
from dtrag.errors import BackupFailed, BackupRefused, DtragError, InUse, InvalidInput
from dtrag.settings import Settings

Progress = Callable[[int, int | None], None]
"""Called with the bytes so far, and those in total where they are known."""
Relation = Literal["empty", "later", "earlier", "branched", "other"]
"""A target compared with a backup: nothing in it; the same installation at a later time; at an earlier one; after it
was restored from an earlier backup; another installation."""
RESTORING = "dtrag_restore_"
"""Prefix of the databases of an unfinished restore."""
ENDING_S = 2.0
"""How long sessions of an external database may take to end after their process, in seconds."""
MOST_NAMED = 1_000
"""Documents that a plan names; it counts all."""


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A backup that was made."""

    file: str
    bytes: int
    encrypted: bool
    manifest: Manifest
    unrecorded: str = ""
    """Why the audit log has no line about it; "" if it has."""


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A document of the backup."""

    document_id: str
    title: str


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What a restore changes, besides putting the contents of the backup in place of those of the target."""

    manifest: Manifest
    target: Relation
    revoked_keys: Sequence[str]
    """Names of keys that are valid in the backup and are revoked by the restore."""
    returning_keys: Sequence[str]
    """Names of keys that the target has revoked and that are valid again."""
    lost_keys: Sequence[str]
    """Names of valid keys that were created after the backup: they end with the target."""
    deleted: int
    """Documents of the backup that are deleted, because they were deleted after it."""
    deleted_documents: Sequence[NamedDocument]
    returning: int
    """Documents that the target has deleted and that come back."""
    returning_documents: Sequence[NamedDocument]
    lost: int
    """Documents of the target that are not in the backup."""


@dataclass(frozen=True, slots=True)
class RestoreOptions:
    """`keep_keys`: do not revoke the keys on an empty target. `bring_back`: what the target has deleted and revoked
    comes back. `replace_other`: the target may be of another installation. `deletions`: an exported audit log."""

    keep_keys: bool = False
    bring_back: bool = False
    replace_other: bool = False
    deletions: Path | None = None


async def make(
    settings: Settings, path: Path, *, force: bool = False, on_progress: Progress | None = None
) -> BackupReport:
    """Back up the database, and the file of the case memory, while others use them.

    Raises `BackupFailed`, `DatabaseUnavailable`, `StorageFull`, and `InvalidInput` for a file that exists.
    """
    key = read_key(settings.backup_key, settings.backup_key_file)
    _require_database(settings)
    async with attached(settings) as server:
        conninfo = server.conninfo("owner", server.database)
        with new_file(path, force=force) as file:
            writer = BackupWriter(file, key)
            async with dump.dumping(conninfo, writer.backup_id) as (described, pieces):
                with _case_file(settings, path.parent) as cases:
                    manifest = replace(described, cases=cases is not None)
                    writer.write_manifest(manifest)
                    async for piece in pieces:
                        await asyncio.to_thread(writer.write, DATABASE, piece)
                        if on_progress is not None:
                            on_progress(file.tell(), None)
                    if cases is not None:
                        with cases.open("rb") as copied:
                            while piece := copied.read(dump.PIECE):
                                await asyncio.to_thread(writer.write, CASES, piece)
            writer.finish()
            size = file.tell()
        unrecorded = ""
        if set(manifest.migrations) == set(migration_texts()):  # an earlier schema is not migrated by a backup
            try:
                async with server.opened(server.database, settings) as database:
                    details = {"backup": manifest.backup_id, "documents": manifest.tables.get("documents", 0)}
                    await _record(settings, database, "database.backup", details=details)
            except DtragError as error:  # the file is complete; on a standby that is always so
                unrecorded = str(error)
    return BackupReport(str(path), size, key is not None, manifest, unrecorded)


def _require_database(settings: Settings) -> None:
    if not settings.database_url and not status(settings.data_dir).initialised:
        raise InvalidInput(f"There is no database in {settings.data_dir}. Choose the data folder with DTRAG_DATA_DIR.")


@contextlib.contextmanager
def _case_file(settings: Settings, folder: Path) -> Iterator[Path | None]:
    """A consistent copy of the case memory's own file, below `folder`; None without such a file."""
    source = settings.cbr_data_dir and settings.cbr_data_dir / CASE_FILE
    if source is None or not source.is_file():
        yield None
        return
    with tempfile.TemporaryDirectory(prefix=".dtrag-cases-", dir=folder) as scratch:
        copy = Path(scratch) / CASE_FILE
        try:
            with (
                contextlib.closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as original,
                contextlib.closing(sqlite3.connect(copy)) as target,
            ):
                original.backup(target)
        except sqlite3.Error as error:
            raise BackupFailed(work="backed up", reason=f"the case memory in {source}: {error}.") from error
        yield copy


async def restore(
    settings: Settings,
    path: Path,
    options: RestoreOptions = RestoreOptions(),
    *,
    confirm: Callable[[RestorePlan], bool],
    on_progress: Progress | None = None,
) -> RestorePlan | None:
    """Put a backup in place of the database; None when `confirm` refuses, which is called where there is something.

    The backup is checked to its end before anything changes, restored beside the target, migrated and compared with
    it; then both are exchanged in one step. Raises `BackupRefused`, `InUse`, `BackupFailed` and `InvalidInput`.
    """
    key = read_key(settings.backup_key, settings.backup_key_file)
    backup = await asyncio.to_thread(BackupFile.open, path, key, on_progress)
    _check(backup)
    if backup.manifest.cases and settings.cbr_data_dir is None:
        raise InvalidInput("The backup has a file of the case memory. Set CBR_DATA_DIR to the folder for it.")
    async with attached(settings) as server, _restored(server, settings, backup, options) as restored:
        name, target = restored
        async with server.opened(name, settings) as database:
            plan = await _plan(database, target, backup, options)
            if target.relation != "empty" and not confirm(plan.shown):
                return None
            await _apply(settings, database, target, plan)
        with _restored_cases(settings, backup):
            if server.server is not None:
                await _exchange(server, name)
            else:
                async with dump.reading(server.conninfo("owner", name)) as connection:
                    await connection.execute(queries("backup")["clear_mark"])
    return plan.shown


def _check(backup: BackupFile) -> None:
    unknown = sorted(set(backup.manifest.migrations) - set(migration_texts()))
    if unknown or backup.manifest.dump_major > MAJOR:
        change = f"a change of its schema is unknown here: {unknown[-1].removesuffix('.sql')}" if unknown else ""
        reason = change or f"it was written by programs of PostgreSQL {backup.manifest.dump_major}, later than {MAJOR}"
        raise BackupRefused(file=backup.path, reason=f"{reason}. It was made by dtrag {backup.manifest.dtrag}; update.")


@dataclass(frozen=True, slots=True)
class _Target:
    """What is in the place of the restore, as its own rows say."""

    relation: Relation
    conninfo: str = ""
    keys: Mapping[uuid.UUID, tuple[str, bool]] = field(default_factory=dict)
    """Id -> name, and whether it is valid."""
    documents: frozenset[uuid.UUID] = frozenset()
    deletions: Deletions = Deletions()
    """Those that its audit log reports."""
    head: tuple[int, str] = (0, "")


@asynccontextmanager
async def _restored(
    server: Attachment, settings: Settings, backup: BackupFile, options: RestoreOptions
) -> AsyncIterator[tuple[str, _Target]]:
    """The name of the database with the contents of the backup, and its target.

    Embedded: a new database, dropped if the block does not rename it. Behind a URL: the database itself, which must be
    empty, and is marked until the restore is finished.
    """
    if server.server is None:
        await _prepare_external(server, settings)
        await _load(server.conninfo("owner", server.database), backup)
        yield server.database, _Target("empty")
        return
    await asyncio.to_thread(server.server.claim)
    admin = server.conninfo("owner", "postgres")
    async with dump.reading(admin) as connection:
        present = {row["name"] for row in await fetch(connection, queries("backup")["databases"])}
        for leftover in present:
            if leftover.startswith(RESTORING):
                await connection.execute(named("drop_database", name=leftover))
    target = _Target("empty")
    if server.database in present:
        target = await _target(server.conninfo("owner", server.database), backup.manifest)
    if target.relation == "other" and not options.replace_other:
        raise BackupRefused(
            file=backup.path,
            reason="it is of another installation than the database in its place. Restore it into an empty data folder "
            "(DTRAG_DATA_DIR), or replace that database with --replace-other.",
        )
    name = f"{RESTORING}{uuid.uuid4().hex[:12]}"
    conninfo = server.conninfo("owner", name)
    try:
        await create_database(admin, name)
        await make_schema(conninfo)
        await _load(conninfo, backup)
        yield name, target
    finally:
        async with dump.reading(admin) as connection:
            await connection.execute(named("drop_database", name=name))


async def _prepare_external(server: Attachment, settings: Settings) -> None:
    """An empty schema with the mark of an unfinished restore. Raises `InvalidInput` for a database with content."""
    statements = queries("backup")
    async with dump.reading(server.conninfo("owner", server.database)) as connection:
        deadline = time.monotonic() + ENDING_S
        while (row := await fetch_row(connection, statements["sessions"])) and row["sessions"]:
            if time.monotonic() > deadline:
                raise InUse(data_dir="the database of DTRAG_DATABASE_URL")
            await asyncio.sleep(ENDING_S / 10)
        mark = await fetch_row(connection, statements["mark"])
        unfinished = mark is not None and mark["mark"] == UNFINISHED
        if not unfinished and await _has_content(connection):
            raise InvalidInput(
                "The database of DTRAG_DATABASE_URL is not empty. Create an empty one on its server, and restore into "
                "that; --deletions takes the audit log of the present one, which `dtrag export` writes."
            )
        if await dump.is_made(connection):
            await connection.execute(statements["drop_schema"])
    try:
        await make_schema(str(settings.database_url))
    except psycopg.errors.InsufficientPrivilege as error:
        raise BackupFailed(work="restored", reason=f"{sentence(error)} Create an empty database again.") from error
    async with dump.reading(server.conninfo("owner", server.database)) as connection:
        await connection.execute(sql.SQL(statements["set_mark"]).format(mark=sql.Literal(UNFINISHED)))


async def _has_content(connection: dump.Rows) -> bool:
    if not await dump.is_made(connection):
        return False
    try:
        row = await fetch_row(connection, queries("backup")["has_content"])
    except psycopg.errors.UndefinedTable:  # earlier than 0003
        return True
    return row is not None and bool(row["content"])


async def _target(conninfo: str, manifest: Manifest) -> _Target:
    statements = queries("backup")
    async with dump.reading(conninfo) as connection:
        if not await _has_content(connection):
            return _Target("empty")
        number, digest = await dump.audit_line(connection)
        _, first = await dump.audit_line(connection, 1)
        _, at_backup = await dump.audit_line(connection, manifest.audit_number)
        relation: Relation = "other"
        if manifest.audit_number:
            if at_backup == manifest.audit_hash:
                relation = "later"
            elif first == manifest.audit_first:
                relation = "earlier" if number < manifest.audit_number else "branched"
        elif (manifest.identity and manifest.identity == await dump.identity(connection)) or await fetch(
            connection, statements["restored_from"], {"backup": manifest.backup_id}
        ):
            relation = "later"
        lines = await fetch(connection, statements["deletions"], {"number": 0, "actions": list(ACTIONS)})
        keys = await fetch(connection, statements["keys"])
        documents = await fetch(connection, statements["document_ids"])
        return _Target(
            relation,
            conninfo,
            {row["key_id"]: (row["name"], row["active"]) for row in keys},
            frozenset(row["document_id"] for row in documents),
            Deletions.of(lines),
            (number, digest),
        )


async def _load(conninfo: str, backup: BackupFile) -> None:
    """Restore the dump, and compare the numbers of rows with those of the manifest. Raises `BackupFailed`."""

    async def pieces() -> AsyncIterator[bytes]:
        for piece in backup.pieces(DATABASE):
            yield piece

    await dump.load(conninfo, pieces())
    await _compare(conninfo, backup.manifest)


async def _compare(conninfo: str, manifest: Manifest) -> None:
    async with dump.reading(conninfo) as connection:
        counts = await dump.table_counts(connection)
    if different := {table for table, rows in manifest.tables.items() if counts.get(table) != rows}:
        reason = f"other numbers of rows than in the backup: {', '.join(sorted(different))}."
        raise BackupFailed(work="restored", reason=reason)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The plan as it is shown, with all ids."""

    shown: RestorePlan
    keys: Sequence[uuid.UUID]
    documents: Sequence[uuid.UUID]


async def _plan(database: Database, target: _Target, backup: BackupFile, options: RestoreOptions) -> _Plan:
    statements, manifest = queries("backup"), backup.manifest
    listed = _listed(options.deletions, manifest)
    async with database.connection("owner") as connection:
        keys = {row["key_id"]: row["name"] for row in await fetch(connection, statements["keys"]) if row["active"]}
        documents = frozenset(row["document_id"] for row in await fetch(connection, statements["document_ids"]))
        absent = documents - target.documents
        if target.relation in {"empty", "earlier", "other"}:
            later = Deletions(
                keys=frozenset() if options.keep_keys or target.relation == "earlier" else frozenset(keys)
            )
        else:
            valid = {key for key, (_, active) in target.keys.items() if active}
            gone = absent if target.relation == "later" else absent & target.deletions.documents
            later = Deletions(frozenset(gone), frozenset(keys.keys() - valid))
        returns = options.bring_back and target.relation in {"later", "branched"}
        applied = listed if returns else listed | later
        returning = later.documents - applied.documents
        deleted = applied.documents & documents
        shown = RestorePlan(
            manifest=manifest,
            target=target.relation,
            revoked_keys=sorted(keys[key] for key in applied.keys & keys.keys()),
            returning_keys=sorted(keys[key] for key in later.keys - applied.keys),
            lost_keys=sorted(name for key, (name, active) in target.keys.items() if active and key not in keys),
            deleted=len(deleted),
            deleted_documents=await _named(connection, deleted),
            returning=len(returning),
            returning_documents=await _named(connection, returning),
            lost=len(target.documents - documents),
        )
    return _Plan(shown, sorted(applied.keys & keys.keys()), sorted(deleted))


def _listed(file: Path | None, manifest: Manifest) -> Deletions:
    if file is None:
        return Deletions()
    try:
        with file.open(encoding="utf-8") as lines:
            return read_lines(lines, manifest.audit_head)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The deletions in {file} cannot be read as UTF-8 text.") from error


async def _named(connection: Any, ids: frozenset[uuid.UUID]) -> list[NamedDocument]:
    rows = await fetch(connection, queries("backup")["titles"], {"ids": sorted(ids), "limit": MOST_NAMED})
    return [NamedDocument(str(row["document_id"]), row["title"]) for row in rows]


async def _apply(settings: Settings, database: Database, target: _Target, plan: _Plan) -> None:
    """Continue the audit log of the target, revoke keys, delete documents, and record it."""
    statements, shown = queries("backup"), plan.shown
    if target.relation == "later":
        await _continue_log(database, target, shown.manifest.audit_number)
    async with database.connection("owner") as connection:
        await connection.execute(statements["revoke_keys"], {"ids": list(plan.keys), "now": datetime.now(UTC)})
        await connection.execute(statements["forget_sessions"])
        await connection.execute(statements["end_jobs"])
        closed = await fetch_row(connection, statements["close_public"])
    writer = PostgresWriter(database)
    await writer.recover()
    for document_id in plan.documents:
        await writer.delete(document_id, EVERYTHING)
    details = {
        "backup": shown.manifest.backup_id,
        "backup_made_at": shown.manifest.made_at,
        "backup_head": str(shown.manifest.audit_head),
        "replaced_head": f"{target.head[0]}:{target.head[1]}" if target.head[0] else "",
        "target": shown.target,
        "revoked": len(plan.keys),
        "deleted": shown.deleted,
        "returned_keys": len(shown.returning_keys),
        "returned_documents": shown.returning,
    }
    await _record(settings, database, "database.restore", details=details)
    await _record(settings, database, "keys.revoke", plan.keys)
    await _record(settings, database, "documents.delete", plan.documents)
    if closed is not None:
        await _record(settings, database, "settings.unset", details={"restored": True, "public": closed["public"]})


async def _continue_log(database: Database, target: _Target, number: int) -> None:
    """Copy the lines of the target that are later than the backup, so that its chain continues."""
    statements = queries("backup")
    async with (
        await psycopg.AsyncConnection.connect(target.conninfo, autocommit=True) as source,
        database.connection("owner") as connection,
        connection.transaction(),
        source.cursor().copy(sql.SQL(statements["lines_after"]).format(number=sql.Literal(number))) as lines,
        connection.cursor().copy(statements["add_lines"]) as copied,
    ):
        async for line in lines:
            await copied.write(line)


async def _record(
    settings: Settings,
    database: Database,
    action: str,
    subjects: Sequence[uuid.UUID] | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Lines of the audit log with all subjects; without subjects one line, for an empty list none."""
    if settings.audit == "off":
        return
    starts = range(0, len(subjects or ()), MAX_SUBJECTS)
    batches = [()] if subjects is None else [subjects[start : start + MAX_SUBJECTS] for start in starts]
    now = datetime.now(UTC)
    entries = [
        AuditEntry(now, LOCAL.name, action, None, list(map(str, batch)), "done", details or {"restored": True})
        for batch in batches
    ]
    if entries:
        await PostgresAudit(database).append(entries)


async def _exchange(server: Attachment, name: str) -> None:
    """Rename the restored database to that of the settings, and drop the replaced one."""
    old = f"{name}_old"
    async with dump.reading(server.conninfo("owner", "postgres")) as connection:
        present = await fetch_row(connection, queries("schema")["database_exists"], {"name": server.database})
        async with connection.transaction():
            if present is not None:
                await connection.execute(_renamed(server.database, old))
            await connection.execute(_renamed(name, server.database))
        await connection.execute(named("drop_database", name=old))


def _renamed(name: str, new: str) -> sql.Composed:
    return sql.SQL(queries("backup")["rename_database"]).format(name=sql.Identifier(name), new=sql.Identifier(new))


@contextlib.contextmanager
def _restored_cases(settings: Settings, backup: BackupFile) -> Iterator[None]:
    """Write the file of the case memory before the block, and put it in its place behind it."""
    if not backup.manifest.cases or settings.cbr_data_dir is None:
        yield
        return
    folder = settings.cbr_data_dir
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".dtrag-cases-", dir=folder) as scratch:
        restored = Path(scratch) / CASE_FILE
        with new_file(restored, force=True) as file:
            for piece in backup.pieces(CASES):
                file.write(piece)
        yield
        for suffix in ("-wal", "-shm"):  # of the replaced file
            (folder / f"{CASE_FILE}{suffix}").unlink(missing_ok=True)
        restored.replace(folder / CASE_FILE)
        sync_folder(folder)


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """What an upgrade did. `earlier` is the cluster of the earlier version, which nothing uses any more."""

    from_major: int
    to_major: int
    databases: Sequence[str]
    earlier: str | None


async def upgrade(settings: Settings) -> UpgradeReport:
    """Copy an embedded cluster of an earlier PostgreSQL into one of the present version, and migrate its databases.

    The new cluster is made beside the earlier one and put in its place in one step; an interruption leaves the earlier
    one, or the new one complete. Raises `DatabaseUnavailable`, `InUse` and `BackupFailed`.
    """
    _require_database(settings)
    if settings.database_url:
        raise InvalidInput(
            "Upgrade an external PostgreSQL by its own means; dtrag migrates its schema at the next start."
        )
    major = int(status(settings.data_dir).version or MAJOR)
    copied: list[str] = []
    if major >= MAJOR:
        async with connect(settings):  # migrates
            return UpgradeReport(major, major, copied, None)
    if (settings.data_dir / f"postgres-{major}").exists():
        raise InvalidInput(
            f"{settings.data_dir}/postgres-{major} is left of an upgrade. Move or delete it, and run this again."
        )
    made = settings.data_dir / UPGRADE
    with earlier_server(settings.data_dir, major) as address:
        old = Attachment(settings.database_name, conninfo_at(address), None)
        async with attached(replace(settings, data_dir=made)) as new:
            async with dump.reading(old.conninfo("owner", "postgres")) as connection:
                names = [row["name"] for row in await fetch(connection, queries("backup")["databases"])]
            for name in names:
                async with dump.reading(old.conninfo("owner", name)) as connection:
                    if not await dump.is_made(connection):
                        continue
                await _copied(settings, old.conninfo("owner", name), new, name, major)
                copied.append(name)
    earlier = exchange_upgraded(settings.data_dir, major)
    return UpgradeReport(major, MAJOR, copied, str(earlier))


async def _copied(settings: Settings, source: str, new: Attachment, name: str, major: int) -> None:
    conninfo = new.conninfo("owner", name)
    await create_database(new.conninfo("owner", "postgres"), name)
    await make_schema(conninfo)
    async with dump.dumping(source, str(uuid.uuid4())) as (manifest, pieces):
        await dump.load(conninfo, pieces)
    await _compare(conninfo, manifest)
    async with new.opened(name, settings) as database:
        details = {"from": major, "to": MAJOR}
        await _record(settings, database, "database.upgrade", details=details)
