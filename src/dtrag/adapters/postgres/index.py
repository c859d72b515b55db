"""Reading the index: candidates by keys and scores (gate 1), then text by key under row-level security (gate 2)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pgvector import HalfVector

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.queries import filter_parameters, filtered, queries
from dtrag.adapters.postgres.rows import IntArray, Weights
from dtrag.adapters.postgres.segments import statistics_of
from dtrag.core.documents import DocumentSummary, SearchResult, Vector
from dtrag.core.scope import Scope, SearchFilters
from dtrag.core.scoring import LexicalQuery, LexicalStatistics
from dtrag.core.taxonomy import Node, Taxonomy
from dtrag.ports import IndexSnapshot

EXACT_VECTORS_BELOW = 10_000
"""Vectors in reach up to which exact search is as fast as the approximate index, and better (bench/README.md)."""
EF_SEARCH = 200
"""HNSW candidates; at least the number of rows asked for (pgvector's maximum is 1000)."""


class PostgresIndex:
    """The search side of one database."""

    def __init__(self, database: Database):
        self._database = database
        self._snapshot: IndexSnapshot | None = None
        self._segments: dict[uuid.UUID, LexicalStatistics] = {}

    async def snapshot(self) -> IndexSnapshot:
        """What the index is made of now; read anew only when its generation has changed."""
        statements = queries("search")
        async with self._database.connection("search") as connection:
            rows = await (await connection.execute(statements["settings"])).fetchall()
            settings = {row["name"]: row["value"] for row in rows}
            if self._snapshot is not None and self._snapshot.settings == settings:
                return self._snapshot
            while True:
                found = await (await connection.execute(statements["segment_ids"])).fetchall()
                current = {row["segment_id"] for row in found}
                missing = [segment for segment in current if segment not in self._segments]
                wanted = await connection.execute(statements["segments"], {"segment_ids": missing}, binary=True)
                fetched = await wanted.fetchall()
                if len(fetched) == len(missing):
                    break  # otherwise segments were merged in between
            self._segments = {key: part for key, part in self._segments.items() if key in current}
            self._segments.update({row["segment_id"]: statistics_of(row) for row in fetched})
            nodes = await (await connection.execute(statements["taxonomy"])).fetchall()
        taxonomy = Taxonomy.of(
            nodes[0]["version"],
            (Node(r["node_id"], r["parent_id"], r["name"], r["key"]) for r in nodes if r["node_id"] is not None),
        )
        statistics = LexicalStatistics.merged(list(self._segments.values()))
        self._snapshot = IndexSnapshot(settings, statistics, taxonomy)
        return self._snapshot

    async def lexical(self, query: LexicalQuery, scope: Scope, filters: SearchFilters, wanted: int) -> dict[str, float]:
        """Chunk id -> BM25 of the best passages that hold at least one term of the query, best first."""
        terms = sorted(query.weights)
        if not terms:
            return {}
        parameters = filter_parameters(scope, filters)
        return await self._candidates(
            "lexical",
            parameters,
            {"weights": _query_weights(query), "terms": IntArray(np.asarray(terms, np.int32)), "wanted": wanted},
        )

    async def strict(self, query: str, scope: Scope, filters: SearchFilters, wanted: int) -> dict[str, float]:
        """Chunk id -> ts_rank_cd of the passages that hold every word of an English query, best first."""
        parameters = {name: value for name, value in filter_parameters(scope, filters).items() if name != "scope"}
        statement = filtered(queries("search")["strict"], parameters)
        async with self._database.scoped("search", scope) as connection:
            # Facts of documents are filtered after the ranking: ask for all that match.
            reach = wanted if not parameters else 1_000_000
            cursor = await connection.execute(statement, _named(parameters) | {"query": query, "wanted": reach})
            return {_chunk_id(row): float(row["score"]) for row in (await cursor.fetchall())[:wanted]}

    async def vectors(self, query: Vector, scope: Scope, filters: SearchFilters, wanted: int) -> dict[str, float]:
        """Chunk id -> cosine of the nearest passages, nearest first; as many as are in reach, at most `wanted`."""
        parameters = filter_parameters(scope, filters)
        values = {"vec": HalfVector(query.astype(np.float16)), "wanted": wanted}
        count = await self._count(parameters)
        if count > EXACT_VECTORS_BELOW:
            settings = (
                f"set local hnsw.ef_search = {min(1000, max(EF_SEARCH, wanted))}",
                "set local hnsw.iterative_scan = relaxed_order",
            )
            found = await self._candidates("vector_nearest", parameters, values, settings)
            if len(found) >= min(wanted, count):
                return found
        return await self._candidates("vector_exact", parameters, values)

    async def _count(self, parameters: Mapping[str, object]) -> int:
        statement = filtered(queries("search")["vector_count"], parameters)
        async with self._database.connection("search") as connection:
            cursor = await connection.execute(statement, _named(parameters) | {"wanted": EXACT_VECTORS_BELOW + 1})
            row = await cursor.fetchone()
            return int(row["count"]) if row else 0

    async def _candidates(
        self, name: str, parameters: Mapping[str, object], values: dict[str, object], settings: Sequence[str] = ()
    ) -> dict[str, float]:
        statement = filtered(queries("search")[name], parameters)
        async with self._database.connection("search") as connection:
            if not settings:
                cursor = await connection.execute(statement, _named(parameters) | values)
                return {_chunk_id(row): float(row["score"]) for row in await cursor.fetchall()}
            async with connection.pipeline(), connection.transaction():
                for setting in settings:
                    await connection.execute(setting.encode())
                cursor = await connection.execute(statement, _named(parameters) | values)
                return {_chunk_id(row): float(row["score"]) for row in await cursor.fetchall()}

    async def fetch(self, chunk_ids: Sequence[str], scope: Scope, taxonomy: Taxonomy) -> dict[str, SearchResult]:
        """The passages with these ids that the scope may see, without scores."""
        keys = [chunk_id.rsplit(":", 1) for chunk_id in chunk_ids]
        parameters = {
            "document_ids": [uuid.UUID(document_id) for document_id, _ in keys],
            "ordinals": [int(ordinal) for _, ordinal in keys],
        }
        async with self._database.scoped("reader", scope) as connection:
            cursor = await connection.execute(queries("content")["chunks_by_key"], parameters)
            rows = await cursor.fetchall()
        return {_chunk_id(row): _result(row, taxonomy) for row in rows}

    async def documents(
        self, scope: Scope, taxonomy: Taxonomy, *, wanted: int, skipped: int = 0
    ) -> list[DocumentSummary]:
        """Documents in scope, the newest first."""
        async with self._database.scoped("reader", scope) as connection:
            cursor = await connection.execute(queries("content")["documents"], {"wanted": wanted, "skipped": skipped})
            return [_summary(row, taxonomy) for row in await cursor.fetchall()]

    async def counts(self, scope: Scope) -> tuple[int, int]:
        """Numbers of documents and chunks in scope."""
        async with self._database.scoped("reader", scope) as connection:
            row = await (await connection.execute(queries("content")["document_count"])).fetchone()
        return (int(row["documents"]), int(row["chunks"])) if row else (0, 0)

    async def document(
        self, document_id: uuid.UUID, scope: Scope, taxonomy: Taxonomy
    ) -> tuple[DocumentSummary, str] | None:
        """A document in scope with its text, or None."""
        async with self._database.scoped("reader", scope) as connection:
            cursor = await connection.execute(queries("content")["document"], {"document_id": document_id})
            row = await cursor.fetchone()
        return (_summary(row, taxonomy), row["text"]) if row else None


_PARAMETER_NAMES = {"scope": "nodes"}


def _named(parameters: Mapping[str, object]) -> dict[str, object]:
    return {_PARAMETER_NAMES.get(name, name): value for name, value in parameters.items()}


def _query_weights(query: LexicalQuery) -> Weights:
    ids = sorted(query.weights)
    return Weights(np.array(ids, np.int32), np.array([query.weights[term] for term in ids], np.float32))


def _chunk_id(row: Mapping[str, Any]) -> str:
    return f"{row['document_id']}:{row['ordinal']}"


def _result(row: Mapping[str, Any], taxonomy: Taxonomy) -> SearchResult:
    return SearchResult(
        chunk_id=_chunk_id(row),
        text=row["text"],
        title=row["title"],
        source_url=row["source_uri"],
        taxonomy_path=list(taxonomy.path(row["node_id"])),
        metadata={
            **row["document_metadata"],
            **row["metadata"],
            "document_id": str(row["document_id"]),
            "content_type": row["content_type"],
            "language": row["language"],
            "processed_at": row["processed_at"].isoformat(),
        },
        breadcrumb=tuple(row["breadcrumb"]),
        start=row["start_offset"],
        end=row["end_offset"],
    )


def _summary(row: Mapping[str, Any], taxonomy: Taxonomy) -> DocumentSummary:
    return DocumentSummary(
        document_id=str(row["document_id"]),
        title=row["title"],
        source_url=row["source_uri"],
        content_type=row["content_type"],
        taxonomy_path=taxonomy.path(row["node_id"]),
        language=row["language"],
        chunks=row["chunks"],
        characters=row["characters"],
        metadata=row["metadata"],
        processed_at=row["processed_at"].isoformat(),
    )
