"""Who may see what: no query as a superuser, no content without a scope, no text for the role that searches."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio

from dtrag.adapters.postgres.database import ROLES, Role
from dtrag.adapters.postgres.index_reader import PostgresIndex
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.server.cluster import ROLES as LOGINS
from dtrag.app import App, open_app
from dtrag.core.access.scope import Scope, SearchFilters
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.settings import Settings
from tests.builders import indexed_document
from tests.store import Databases, Store
from tests.toy import lines

NO_FILTERS = SearchFilters()


async def two_branches(app: App) -> tuple[int, int]:
    """A document with two passages in each of two categories; the node ids of these."""
    writer = PostgresWriter(app.database)
    taxonomy = await writer.ensure_paths([CategoryPath.parse("Red"), CategoryPath.parse("Blue")])
    red, blue = (taxonomy.find(CategoryPath.parse(name)) for name in ("Red", "Blue"))
    assert red is not None and blue is not None
    await writer.write(
        [
            indexed_document("toy:red", ["the red kettle boils", "a second red kettle"], node_id=red),
            indexed_document("toy:blue", ["the blue kettle boils", "a second blue kettle"], node_id=blue),
        ]
    )
    return red, blue


@pytest_asyncio.fixture(scope="module")
async def filled(databases_of_module: Databases) -> AsyncIterator[App]:
    """An app on the two branches, for what is refused and changes nothing."""
    async with open_app(databases_of_module.settings()) as opened:
        await two_branches(opened)
        yield opened


async def select(
    app: App, role: Role, statement: str, scope: Scope | None = None, *, writing: bool = False
) -> list[tuple[object, ...]]:
    """What a role of the app's own pools reads: in a scope, or without any; `writing`: it may write."""
    if scope is not None:
        async with app.database.scoped(role, scope) as connection:
            if writing:
                await connection.execute("set transaction read write")
            rows = await (await connection.execute(statement)).fetchall()
    else:
        async with app.database.connection(role) as connection:
            if writing:
                await connection.execute("set default_transaction_read_only = off")
            rows = await (await connection.execute(statement)).fetchall()
    return [tuple(row.values()) for row in rows]


@pytest.mark.parametrize("role", ROLES)
async def test_no_pool_is_a_superuser_or_passes_row_security(app: App, role: Role) -> None:
    rows = await select(
        app,
        role,
        "select current_user::text as a, session_user::text as b, rolsuper, rolbypassrls, rolcreaterole, rolreplication"
        " from pg_roles where rolname = current_user",
    )
    assert rows == [(f"dtrag_{role}", f"dtrag_{role}", False, False, False, False)]


def test_no_role_is_a_member_of_another(store: Store) -> None:
    memberships = store.rows(
        "select m.member::regrole::text from pg_auth_members m where m.member::regrole::text = any (%s)", list(LOGINS)
    )
    assert memberships == []


class Watch:
    """Looks again and again at who is connected to a database, in a thread of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.seen: set[str] = set()

    def _look(self) -> None:
        with self._store.connect() as connection:
            while True:
                cursor = connection.execute(
                    "select usename::text from pg_stat_activity"
                    " where usename is not null and datname = %s and pid <> pg_backend_pid()",
                    (self._store.name,),
                )
                self.seen.update(user for (user,) in cursor.fetchall())
                if self._over.wait(0.002):
                    return

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()


async def test_every_connection_of_a_whole_life_is_one_of_the_three(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    with Watch(store) as watch:
        async with open_app(settings) as app:
            report = await app.ingest(lines(tmp_path / "notes.jsonl", 30))
            for mode in ("hybrid", "lexical", "strict"):
                await app.search("kettle refund", mode=mode)
            await app.ask("What does the kettle do?")
            await app.documents()
            await app.document(report.document_ids[0])
            await app.delete_document(report.document_ids[0])
            await app.reindex()
            await asyncio.sleep(0.02)
    assert watch.seen == set(LOGINS)


@pytest.mark.parametrize("table", ["documents", "chunks"])
async def test_the_reader_sees_its_nodes_and_nothing_without_a_scope(app: App, table: str) -> None:
    red, blue = await two_branches(app)
    statement = f"select distinct node_id from {table} order by 1"
    expected: Sequence[tuple[Scope | None, list[int]]] = [
        (None, []),
        (Scope(frozenset({red})), [red]),
        (None, []),
        (Scope(frozenset({red, blue})), [red, blue]),
        (Scope(frozenset()), []),
        (Scope(frozenset({blue + 1})), []),
        (Scope.everything(), [red, blue]),
        (None, []),
    ]
    for scope, nodes in expected:
        assert await select(app, "reader", statement, scope) == [(node,) for node in nodes], scope


async def test_the_scope_ends_with_its_transaction_on_the_same_connection(settings: Settings) -> None:
    one = Settings.load(
        environ={}, data_dir=settings.data_dir, database_name=settings.database_name, embedder="none", pool_size=1
    )
    async with open_app(one) as app:
        red, _ = await two_branches(app)
        backends = set()
        for scope, seen in ((Scope(frozenset({red})), 2), (None, 0), (Scope.everything(), 4), (None, 0)):
            [(count, backend)] = await select(
                app, "reader", "select count(*) as n, pg_backend_pid() from chunks", scope
            )
            assert count == seen
            backends.add(backend)
        with pytest.raises(RuntimeError, match="given up"):
            async with app.database.scoped("reader", Scope.everything()):
                raise RuntimeError("given up")
        [(count, backend)] = await select(app, "reader", "select count(*) as n, pg_backend_pid() from chunks")
        assert (count, backends) == (0, {backend})


@pytest.mark.parametrize(
    "statement",
    [
        "select text from chunks",
        "select text from documents",
        "select title from documents",
        "select source_uri from documents",
        "select metadata from documents",
        "select * from documents",
        "select text from dtrag.chunks where ordinal = 0",
        "select * from sources",
        "set role dtrag_owner",
        "set role dtrag_reader",
        "delete from lexical_index",
        "insert into index_settings values ('generation', '1')",
        "update lexical_segments set passages = 0",
        "create table t (x int)",
        "create table dtrag.t (x int)",
    ],
)
async def test_the_search_role_is_refused(filled: App, statement: str) -> None:
    for scope in (None, Scope.everything()):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await select(filled, "search", statement, scope, writing=True)


@pytest.mark.parametrize(
    "statement",
    [
        "insert into chunks select * from chunks",
        "update documents set title = ''",
        "delete from documents",
        "delete from chunks",
        "truncate documents",
        "select * from lexical_index",
        "select * from strict_candidates('kettle', 10)",
        "alter table chunks disable row level security",
        "create table dtrag.t (x int)",
        "set role dtrag_owner",
    ],
)
async def test_the_reader_only_reads(filled: App, statement: str) -> None:
    for scope in (None, Scope.everything()):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await select(filled, "reader", statement, scope, writing=True)


@pytest.mark.parametrize("role", ["search", "reader"])
async def test_what_only_reads_runs_in_read_only_transactions(app: App, role: Role) -> None:
    for scope in (None, Scope.everything()):
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await select(app, role, "delete from documents", scope)


async def test_the_strict_function_gives_keys_only_and_keeps_to_the_scope(app: App, store: Store) -> None:
    red, _ = await two_branches(app)
    index = PostgresIndex(app.database)
    names = store.rows(
        "select proargnames[array_length(proargtypes::oid[], 1) + 1:] from pg_proc where proname = 'strict_candidates'"
    )
    assert names == [(["document_id", "ordinal", "score"],)]
    calls = "select count(*) as n from strict_candidates('kettle', 10)"
    for scope, count in ((None, 0), (Scope(frozenset()), 0), (Scope(frozenset({red})), 2), (Scope.everything(), 4)):
        assert await select(app, "search", calls, scope) == [(count,)]
    assert await select(app, "search", calls) == [(0,)]
    found = await index.strict("kettle", Scope(frozenset({red})), NO_FILTERS, 10)
    visible = await index.fetch(list(found), Scope.everything(), (await index.snapshot()).taxonomy)
    assert {result.taxonomy_path[0] for result in visible.values()} == {"Red"}


async def test_the_function_of_gate_2_shows_what_the_policies_show_and_leaves_no_scope_behind(app: App) -> None:
    red, blue = await two_branches(app)
    [(documents, ordinals)] = await select(
        app, "owner", "select array_agg(document_id) as a, array_agg(ordinal) as b from chunks"
    )
    values: dict[str, object] = {"document_ids": documents, "ordinals": ordinals}
    statement = queries("content")["passages_in_scope"]
    async with app.database.connection("reader") as connection:
        for place, count in (("{}", 0), (f"{{{red}}}", 2), (None, 4), (f"{{{red},{blue}}}", 4), (f"{{{blue}}}", 2)):
            for cached in (0, 3, 4):
                cursor = await connection.execute(statement, values | {"nodes": place, "cached": cached})
                *rows, state = await cursor.fetchall()
                assert (len(rows), state["number"]) == (count, 0)
                assert all((row["text"] is None) == (row["number"] <= cached) for row in rows)
            cursor = await connection.execute("select count(*) as n from chunks")
            assert await cursor.fetchall() == [{"n": 0}], place
        for hostile in ("{1}'; set local dtrag.full_scope = 'on'; --", "1) or (true", ""):
            with suppress(psycopg.DataError):
                cursor = await connection.execute(statement, values | {"nodes": hostile, "cached": 0})
                assert [row["number"] for row in await cursor.fetchall()] == [0]
        async with connection.transaction():  # a wider scope from before does not last
            await connection.execute(statement, values | {"nodes": None, "cached": 0})
            cursor = await connection.execute(statement, values | {"nodes": f"{{{red}}}", "cached": 0})
            assert len(await cursor.fetchall()) == 3


async def test_row_security_blocks_what_a_wrong_filter_admits(app: App) -> None:
    """Keys of another branch, however they were come by, give no text."""
    red, _ = await two_branches(app)
    index = PostgresIndex(app.database)
    snapshot = await index.snapshot()
    everything = await index.strict("kettle", Scope.everything(), NO_FILTERS, 10)
    assert len(await index.fetch(list(everything), Scope.everything(), snapshot.taxonomy)) == 4
    seen = await index.fetch(list(everything), Scope(frozenset({red})), snapshot.taxonomy)
    assert {result.taxonomy_path[0] for result in seen.values()} == {"Red"}
    assert await index.fetch(list(everything), Scope(frozenset()), snapshot.taxonomy) == {}
