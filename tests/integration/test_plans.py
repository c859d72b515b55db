"""The plans of the hot statements on a few thousand rows, as the role that runs them: each by its index."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, cast

import pytest_asyncio
from pgvector import HalfVector

from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.database import Database, Role
from dtrag.adapters.postgres.index_settings import PostgresIndexSettings
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.adapters.postgres.lexical.strict_index import StrictIndex
from dtrag.adapters.postgres.queries import filtered, queries
from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.adapters.postgres.stores.vectors import PostgresVectors
from dtrag.core.access.scope import Scope
from dtrag.core.document_listing import SORTS
from dtrag.core.text.analysis import ANALYZER
from dtrag.ingestion.vectors import VectorFiller
from dtrag.settings import Settings
from tests.builders import indexed_document
from tests.store import Databases, graph_statement
from tests.toy import ToyEmbedder

DOCUMENTS = 800
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PER_DOCUMENT = 4
EMBEDDER = ToyEmbedder()


def texts(number: int, chance: random.Random) -> list[str]:
    """Passages of common words and one word that four passages share."""
    filler = [f"word{chance.randrange(2_000)}" for _ in range(20)]
    return [f"kettle {' '.join(filler)} rare{number} part{part}" for part in range(PER_DOCUMENT)]


@pytest_asyncio.fixture(scope="module")
async def database(embedded: EmbeddedServer, template: str) -> AsyncIterator[Database]:
    """3,200 passages with vectors, analysed."""
    databases, chance = Databases(embedded.address, template), random.Random(1)
    settings: Settings = databases.settings(pool_size=1)
    async with connect(settings) as opened:
        await PostgresIndexSettings(opened).register(ANALYZER)
        writer = PostgresWriter(opened)
        for start in range(0, DOCUMENTS, 200):
            await writer.write([indexed_document(f"toy:{n}", texts(n, chance)) for n in range(start, start + 200)])
        await VectorFiller(PostgresVectors(opened), EMBEDDER).fill()
        await writer.tidy()
        yield opened
    databases.drop()


async def nodes(
    database: Database, role: Role, statement: str, values: object, scope: Scope | None = None, *settings: str
) -> list[dict[str, Any]]:
    """The nodes of the plan, as the role and in the scope; `settings` are set for this transaction."""
    explain = f"explain (format json) {statement}"
    async with database.scoped(role, scope or Scope.everything()) as connection:
        for setting in settings:
            await connection.execute(setting)
        cursor = await connection.execute(explain, cast("dict[str, object]", values))
        row = await cursor.fetchone()
    assert row is not None
    plan = row["QUERY PLAN"]
    found, waiting = [], [(json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting.extend(node.get("Plans", []))
    return found


def indexes(plan: list[dict[str, Any]]) -> set[str]:
    return {node["Index Name"] for node in plan if "Index Name" in node}


def scanned(plan: list[dict[str, Any]]) -> set[str]:
    return {node["Relation Name"] for node in plan if node["Node Type"] == "Seq Scan"}


async def test_terms_of_passages_are_read_by_key(database: Database) -> None:
    async with database.connection("owner") as connection:
        rows = await (await connection.execute("select document_id from documents limit 20")).fetchall()
    values = {"document_ids": [row["document_id"] for row in rows]}
    plan = await nodes(database, "search", queries("search")["terms_of"], values)
    assert indexes(plan) == {"documents_pkey", "lexical_index_pkey"}
    assert scanned(plan) == set()


async def test_vectors_of_passages_are_read_by_key(database: Database) -> None:
    async with database.connection("owner") as connection:
        rows = await (await connection.execute("select document_id from documents limit 10")).fetchall()
    [query] = EMBEDDER.embed_queries(["kettle"])
    values = {"document_ids": [row["document_id"] for row in rows], "ordinals": [0] * 10, "nodes": [1]}
    statement = filtered(queries("search")["vectors_of_chunks"], ["scope"])
    plan = await nodes(database, "search", statement, values | {"vec": HalfVector(query), "space": EMBEDDER.id})
    assert "embeddings_pkey" in indexes(plan)
    assert scanned(plan) == set()


async def test_nearest_vectors_are_read_from_the_graph_if_there_is_one(database: Database) -> None:
    [query] = EMBEDDER.embed_queries(["kettle"])
    values = {"vec": HalfVector(query), "space": EMBEDDER.id, "limit": 50}
    plan = await nodes(database, "search", filtered(queries("search")["vector_nearest"], []), values)
    assert "embeddings_hnsw" not in indexes(plan)
    async with database.connection("owner") as connection:
        await connection.execute(graph_statement().encode())
    plan = await nodes(database, "search", filtered(queries("search")["vector_nearest"], []), values)
    assert indexes(plan) <= {"embeddings_hnsw", "vector_spaces_id_key"}
    assert "embeddings_hnsw" in indexes(plan)
    assert scanned(plan) <= {"vector_spaces"}


async def test_exact_vectors_do_not_use_the_graph(database: Database) -> None:
    [query] = EMBEDDER.embed_queries(["kettle"])
    values = {"vec": HalfVector(query), "space": EMBEDDER.id, "limit": 50}
    plan = await nodes(database, "search", filtered(queries("search")["vector_exact"], []), values)
    assert "embeddings_hnsw" not in indexes(plan)


async def test_vectors_of_a_narrow_scope_are_read_by_node(database: Database) -> None:
    values = {"nodes": [7], "limit": 10_001}
    plan = await nodes(database, "search", filtered(queries("search")["vector_count"], ["scope"]), values)
    assert indexes(plan) == {"embeddings_node"}


async def test_passages_are_read_by_key_under_row_security(database: Database) -> None:
    async with database.connection("owner") as connection:
        rows = await (await connection.execute("select document_id from documents limit 10")).fetchall()
    values = {"document_ids": [row["document_id"] for row in rows], "ordinals": [0] * 10}
    scans = "select relname, seq_scan, idx_scan from pg_stat_xact_user_tables where relname in ('chunks', 'documents')"
    for place, cached in ((None, 0), (None, 10), ("{1,5}", 5)):
        async with database.connection("reader") as connection, connection.transaction():
            # The functions of a session plan for the values at first, and then for any values.
            for _ in range(8):
                found = await connection.execute(
                    queries("content")["passages_in_scope"], values | {"nodes": place, "cached": cached}
                )
                assert len(await found.fetchall()) == 11
            cursor = await connection.execute(scans)
            used = {row["relname"]: (row["seq_scan"], row["idx_scan"]) for row in await cursor.fetchall()}
        assert {table: sequential for table, (sequential, _) in used.items()} == {"chunks": 0, "documents": 0}
        assert all(by_index >= 80 for _, by_index in used.values())


async def test_lists_are_read_in_the_order_of_their_index(database: Database) -> None:
    keys: dict[str, object] = {"title": "toy:5", "largest": 500, "smallest": 100, "newest": NOW, "oldest": NOW}
    orders = {"newest": "documents_processed_at", "oldest": "documents_processed_at", "title": "documents_title"}
    without_sorting = (
        "set local enable_sort = off",
        "set local enable_seqscan = off",
        "set local enable_bitmapscan = off",
    )
    for sort in SORTS:
        values = {"as_of": NOW.date(), "text": "", "content_types": None, "limit": 10, "offset": 0}
        for after in ({"after": None, "after_key": None}, {"after": uuid.UUID(int=5), "after_key": keys[sort]}):
            statement = queries("content")[f"documents_{sort}"]
            plan = await nodes(database, "reader", statement, values | after, None, *without_sorting)
            assert indexes(plan) - {"passage_validity_pkey"} == {orders.get(sort, "documents_size")}, sort
            assert not any(node["Node Type"] == "Sort" for node in plan), sort
            keyed = [node for node in plan if "Index Cond" in node and node["Relation Name"] == "documents"]
            assert bool(keyed) == (after["after"] is not None), sort


async def test_a_document_is_read_by_key(database: Database) -> None:
    values = {"document_id": uuid.UUID(int=5)}
    plan = await nodes(database, "reader", queries("content")["document"], values)
    assert indexes(plan) == {"documents_pkey", "chunks_pkey"}


async def test_the_strict_ranker_uses_its_index(database: Database) -> None:
    """The statement inside the function, as the owner it runs as."""
    await StrictIndex(database).create()
    async with database.connection("owner") as connection:
        row = await (
            await connection.execute("select prosrc from pg_proc where proname = 'strict_candidates'")
        ).fetchone()
    assert row is not None
    inner = row["prosrc"].partition("return query")[2].partition(";")[0]
    for name, text in (
        ("strict_candidates.query", "'rare7'"),
        ("everything", "true"),
        ("(nodes)", "('{1}'::int[])"),
        ("limit wanted", "limit 50"),
    ):
        assert name in inner
        inner = inner.replace(name, text)
    plan = await nodes(database, "owner", inner, None)
    assert "chunks_strict" in indexes(plan)
    assert scanned(plan) == set()


async def test_replacing_a_document_touches_its_own_rows(database: Database) -> None:
    statements, values = queries("writing"), {"document_id": uuid.UUID(int=5)}
    for name in ("delete_lexical", "delete_document", "lock_document"):
        plan = await nodes(database, "owner", statements[name], values)
        assert indexes(plan) <= {"lexical_index_pkey", "documents_pkey"}, name
        assert scanned(plan) == set(), name
    for name in ("fingerprints", "documents_of_segment"):
        keys = {"document_ids": [uuid.UUID(int=number) for number in range(20)], "segment_id": uuid.UUID(int=1)}
        plan = await nodes(database, "owner", statements[name], keys)
        assert indexes(plan) == {"documents_pkey"}, name


async def test_the_read_of_passages_is_planned_once(database: Database) -> None:
    """To plan it takes longer than to run it; a filtered search is planned each time."""
    values = {"document_ids": [uuid.UUID(int=5)], "ordinals": [1], "limit": 1}
    async with database.connection("reader") as connection:
        for _ in range(20):
            await connection.execute(queries("content")["chunks_before"], values)
        cursor = await connection.execute("select generic_plans from pg_prepared_statements where statement ~ 'before'")
        row = await cursor.fetchone()
    assert row is not None and row["generic_plans"] > 0
    roles: tuple[Role, ...] = ("owner", "search")
    for role in roles:
        async with database.connection(role) as connection:
            row = await (await connection.execute("show plan_cache_mode")).fetchone()
        assert row == {"plan_cache_mode": "force_custom_plan"}
