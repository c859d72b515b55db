"""Reading the index: candidates by keys and scores (gate 1), then text by key under row-level security (gate 2)."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql
from psycopg.rows import DictRow

from dtrag.adapters.postgres.database import EF_SEARCH, Database, fetch, fetch_row, node_array
from dtrag.adapters.postgres.lexical.reader import MEMORY_BYTES, PostingReader, SegmentGone
from dtrag.adapters.postgres.lexical.strict_index import MOST_READ, StrictIndex
from dtrag.adapters.postgres.passage_cache import PassageCache, PassageContent, shown_address, version_of
from dtrag.adapters.postgres.queries import condition, filter_parameters, filtered, queries
from dtrag.adapters.postgres.stores.taxonomy_moves import active_tree
from dtrag.adapters.postgres.vector_reader import VectorReader
from dtrag.core.access.scope import NO_FILTERS, Scope, SearchFilters
from dtrag.core.answers.sentence_vectors import SentenceVectors, unpack
from dtrag.core.document_listing import WHOLE_LIST, DocumentListing, DocumentText, PassageSpan
from dtrag.core.documents import DocumentSummary, SearchResult, Vector
from dtrag.core.editions import WorkBeginning, days
from dtrag.core.ranking.bm25 import LexicalQuery, LexicalStatistics
from dtrag.core.statements import Statement
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.core.text.questions import weighted_terms
from dtrag.ports import IndexChanged, IndexSnapshot, valid_day

FAR = 2_000
"""Rows to skip beyond which sorting all documents of a list is faster than the index of its order (100,000 documents:
.2 instead of .7 s); a text is searched for in all of them. By time they are in the table as in the index."""
EXACT_BELOW = 400
"""Looking at every vector in reach takes time in proportion to their number, the graph of vectors in inverse proportion
to the share that is in reach. They take the same where number times share is about this (bench/README.md); below it
every vector is looked at, which also finds all."""
MOST_EXACT = 20_000
"""Vectors that are looked at one by one, at most, whatever their share: about 30 ms."""
MOVES = 3
"""How often a search restarts because a merge removed one of its segments."""
_LOG = logging.getLogger(__name__)


class PostgresIndex:
    """The search side of one database."""

    def __init__(self, database: Database, memory_bytes: int = MEMORY_BYTES):
        self._database = database
        self._postings = PostingReader(database, memory_bytes)
        self._snapshot: IndexSnapshot | None = None
        self._refreshing = asyncio.Lock()
        self._vectors = VectorReader(database, self._postings)
        self._strict_index = StrictIndex(database)
        self._contents = PassageCache()

    @property
    def latest(self) -> IndexSnapshot | None:
        """The snapshot that was read last."""
        return self._snapshot

    async def snapshot(self) -> IndexSnapshot:
        """The present state of the index; read again only when its generation changed."""
        async with self._database.connection("search") as connection:
            row = await fetch_row(connection, queries("search")["generation"])
        known = self._snapshot
        if known is not None and row is not None and known.version == (row["generation"], row["vectors"]):
            return known
        return await self._refreshed()

    async def _refreshed(self) -> IndexSnapshot:
        """The newest state, as one transaction sees it."""
        statements = queries("search")
        async with self._refreshing, self._database.connection("search") as connection, connection.transaction():
            await connection.execute(queries("session")["read_one_state"])
            rows = await fetch(connection, statements["settings"])
            settings = {row["name"]: row["value"] for row in rows}
            if self._snapshot is not None and self._snapshot.settings == settings:
                return self._snapshot
            await self._database.commits_ended(connection)
            statistics = await self._postings.refresh(connection)
            await self._vectors.refresh(connection, settings)
            taxonomy = await active_tree(connection)
            waiting, imagined = [
                frozenset(row["node_id"] for row in await fetch(connection, statements[name]))
                for name in ("waiting_nodes", "imagined_nodes")
            ]
        self._snapshot = IndexSnapshot(settings, statistics, taxonomy, waiting, imagined)
        return self._snapshot

    def _verify_files(self) -> None:
        """Use no mapped file that was changed in place, and no file of vectors then, until they are made again."""
        files = self._database.files
        if files is not None and (changed := files.changed()):
            _LOG.warning("search files were changed by another program and are made again: %s", sorted(changed))
            files.remove(changed)
            self._postings.forget_files(changed)
            self._vectors.forget_files()
            self._snapshot = None  # the next search reads the state again, and opens or makes the files

    async def lexical(self, query: LexicalQuery, scope: Scope, filters: SearchFilters, limit: int) -> dict[str, float]:
        """Chunk id -> BM25 of the best passages that hold at least one term of the query, best first."""
        for _ in range(MOVES):
            try:
                return await self._postings.search(query, scope, filters, limit)
            except SegmentGone:
                await self._refreshed()
        return await self._postings.search(query, scope, filters, limit)

    async def lexical_scores(self, query: LexicalQuery, chunk_ids: Sequence[str], scope: Scope) -> dict[str, float]:
        """Chunk id -> BM25 of those of these passages that are in scope; 0.0 without a term of the query."""
        for _ in range(MOVES):
            try:
                return await self._postings.scores(query, chunk_ids, scope)
            except SegmentGone:
                await self._refreshed()
        return await self._postings.scores(query, chunk_ids, scope)

    async def statistics(self, terms: Collection[int], scope: Scope) -> LexicalStatistics:
        """The BM25 statistics of the passages in scope, for these terms: the first step of a search by words."""
        self._verify_files()
        for _ in range(MOVES):
            try:
                return await self._postings.statistics(terms, scope)
            except SegmentGone:
                await self._refreshed()
        return await self._postings.statistics(terms, scope)

    async def titled(self, numbers: NDArray[np.uint64], scope: Scope) -> dict[int, list[str]]:
        """Number of a title -> passages of its document; only titles of exactly one document in scope."""
        return await self._postings.titled(numbers, scope)

    async def holds_kind(self, kind: str, scope: Scope) -> bool:
        """Whether a document in scope has this `metadata["kind"]`."""
        row = await self._database.read_row(scope, queries("content")["holds_kind"], {"kind": kind})
        return bool(row and row["present"])

    async def work_beginnings(self, scope: Scope) -> list[WorkBeginning]:
        """Where the editions of each work in scope begin."""
        rows = await self._database.read(scope, queries("content")["work_beginnings"])
        return [WorkBeginning(row["title"], row["first_day"]) for row in rows]

    async def vector_scores(
        self, query: Vector, space: str, chunk_ids: Sequence[str], scope: Scope
    ) -> dict[str, float]:
        """Chunk id -> cosine of those of these passages that are in scope and have a vector of the space."""
        if not chunk_ids:
            return {}
        self._verify_files()
        scores = await self._vectors.scores(query, space, chunk_ids, scope)
        if scores is not None:
            return scores
        values = {"vec": HalfVector(query.astype(np.float16)), "space": space}
        rows = await self._of_chunks("vectors_of_chunks", chunk_ids, scope, values)
        return _scores(rows)

    async def _of_chunks(
        self, name: str, chunk_ids: Sequence[str], scope: Scope, values: Mapping[str, object] | None = None
    ) -> list[DictRow]:
        parameters = self._conditions(scope, NO_FILTERS)
        statement = filtered(queries("search")[name], parameters)
        async with self._database.connection("search") as connection:
            cursor = await connection.execute(
                statement, _named(parameters) | _keys(chunk_ids) | dict(values or {}), binary=True
            )
            return await cursor.fetchall()

    async def chunk_ids(self, document_id: uuid.UUID, scope: Scope) -> list[str]:
        """The passages of a document in scope, in order; none for a foreign or unknown document."""
        rows = await self._database.read(scope, queries("content")["ordinals"], {"document_id": document_id})
        return [f"{document_id}:{row['ordinal']}" for row in rows]

    def filter_clause(self, filters: SearchFilters, scope: Scope) -> tuple[str, dict[str, object]]:
        """The SQL condition of the filters and the scope, and its parameters; the text never holds values."""
        parameters = filter_parameters(scope, filters)
        return condition(parameters), _named(parameters)

    async def strict(self, query: str, scope: Scope, filters: SearchFilters, limit: int) -> dict[str, float]:
        """Chunk id -> ts_rank_cd of the passages that hold every word of an English query, best first."""
        parameters = {name: value for name, value in self._conditions(scope, filters).items() if name != "scope"}
        name, values = "strict", _named(parameters) | {"query": query}
        if not await self._strict_index.ready() and await self._many_passages(scope):
            name, values = "strict_among", values | _keys(await self._best_by_words(query, scope, filters))
        statement = filtered(queries("search")[name], parameters)
        async with self._database.scoped("search", scope) as connection:
            # Metadata filters apply after the ranking: request all matches.
            reach = limit if not parameters else 1_000_000
            return _scores((await fetch(connection, statement, values | {"limit": reach}))[:limit])

    async def strict_note(self, scope: Scope) -> Statement | None:
        """Why results of `strict` in this scope may be incomplete now; None when they are complete."""
        if not await self._many_passages(scope) or await self._strict_index.ready():
            return None
        return self._strict_index.note()

    def _conditions(self, scope: Scope, filters: SearchFilters) -> dict[str, object]:
        """Conditions of a statement over passages, with their parameters."""
        parameters = filter_parameters(scope, filters)
        if self._postings.hides(scope):
            parameters["valid_on"] = valid_day(scope)
        return parameters

    async def _many_passages(self, scope: Scope) -> bool:
        """Counted in scope: documents outside it must not influence a result."""
        return await self._postings.passages(scope) > MOST_READ

    async def _best_by_words(self, query: str, scope: Scope, filters: SearchFilters) -> list[str]:
        terms = weighted_terms(query)
        weighed = LexicalQuery.of(terms, await self.statistics([term for term, _ in terms], scope))
        return list(await self.lexical(weighed, scope, filters, MOST_READ))

    async def forget_deleted(self) -> None:
        """Remove the vectors of documents from the files that the merges of segments left out."""
        await self.snapshot()
        await self._vectors.forget_deleted()

    async def close(self) -> None:
        """Stop the background work."""
        await self._postings.close()
        await self._vectors.close()
        await self._strict_index.close()

    async def vectors(
        self, query: Vector, space: str, scope: Scope, filters: SearchFilters, limit: int
    ) -> dict[str, float]:
        """Chunk id -> cosine of the nearest passages, nearest first; as many as are in scope, at most `limit`."""
        self._verify_files()
        scored = await self._vectors.search(query, space, scope, filters, limit)
        if scored is not None:
            return scored
        parameters = self._conditions(scope, filters)
        values = {"vec": HalfVector(query.astype(np.float16)), "space": space, "limit": limit}
        reach = (
            await self._postings.passages(scope)
            if parameters.keys() <= {"scope", "valid_on"}
            else await self._count(parameters, "vector_count", await self._most_exact())
        )
        if reach > await self._most_exact():
            nearest = await self._candidates("vector_nearest", parameters, values, ef_search=min(1000, limit))
            if len(nearest) >= limit:
                return nearest
        return await self._candidates("vector_exact", parameters, values)

    async def imagined(
        self, query: Vector, space: str, scope: Scope, filters: SearchFilters, limit: int
    ) -> dict[str, float]:
        """Chunk id -> cosine of the nearest of its imagined questions, of the `limit` nearest ones."""
        parameters = self._conditions(scope, filters)
        values = {"vec": HalfVector(query.astype(np.float16)), "space": space, "limit": limit}
        name = "imagined_exact"
        if await self._count(parameters, "imagined_count", MOST_EXACT) > MOST_EXACT:
            name = "imagined_nearest"
        return await self._candidates(name, parameters, values)

    async def imagined_scores(
        self, query: Vector, space: str, chunk_ids: Sequence[str], scope: Scope
    ) -> dict[str, float]:
        """Chunk id -> cosine of the nearest imagined question of those of these passages that are in scope."""
        if not chunk_ids:
            return {}
        values = {"vec": HalfVector(query.astype(np.float16)), "space": space}
        return _scores(await self._of_chunks("imagined_of_chunks", chunk_ids, scope, values))

    async def imagined_by_words(
        self, terms: Sequence[tuple[int, float]], scope: Scope, filters: SearchFilters, limit: int
    ) -> dict[str, float]:
        """Chunk id -> the highest sum of weights of the terms that one imagined question of it contains."""
        values: dict[str, object] = {
            "terms": [term for term, _ in terms],
            "weights": [weight for _, weight in terms],
            "limit": limit,
        }
        return await self._candidates("imagined_by_words", self._conditions(scope, filters), values)

    async def imagined_questions(self, chunk_ids: Sequence[str], scope: Scope) -> dict[str, list[str]]:
        """Chunk id -> the imagined questions of these passages, as far as row-level security shows them."""
        rows = await self._database.read(scope, queries("imagined")["texts"], _keys(chunk_ids))
        return {row["chunk_id"]: list(row["questions"]) for row in rows}

    async def _most_exact(self) -> int:
        return min(MOST_EXACT, math.isqrt(EXACT_BELOW * await self._postings.passages(Scope.everything())))

    async def _count(self, parameters: Mapping[str, object], name: str, most: int) -> int:
        """How many vectors are in reach, up to one more than `most`."""
        statement = filtered(queries("search")[name], parameters)
        values = _named(parameters) | {"limit": most + 1}
        async with self._database.connection("search") as connection:
            row = await fetch_row(connection, statement, values)
            return int(row["count"]) if row else 0

    async def _candidates(
        self, name: str, parameters: Mapping[str, object], values: dict[str, object], ef_search: int = EF_SEARCH
    ) -> dict[str, float]:
        statement = filtered(queries("search")[name], parameters)
        async with self._database.connection("search") as connection:
            if ef_search <= EF_SEARCH:
                return _scores(await fetch(connection, statement, _named(parameters) | values))
            async with connection.pipeline(), connection.transaction():
                setting = sql.SQL(queries("session")["ef_search"]).format(candidates=sql.Literal(ef_search))
                await connection.execute(setting)
                return _scores(await fetch(connection, statement, _named(parameters) | values))

    async def fetch(
        self,
        chunk_ids: Sequence[str],
        scope: Scope,
        taxonomy: Taxonomy,
        filters: SearchFilters = NO_FILTERS,
        *,
        version: tuple[int, int] | None = None,
    ) -> dict[str, SearchResult]:
        """The passages with these ids that the scope may see and the filters admit, without scores.

        A document may have been replaced since it was found: what it is now decides.
        """
        if not chunk_ids and version is None:
            return {}
        cached = self._contents.known(chunk_ids)
        keys = [*cached, *(key for key in chunk_ids if key not in cached)]
        rows, state = await self._read_passages(keys, len(cached), scope)
        if version not in {None, (state["generation"], state.get("vectors", 0))}:
            raise IndexChanged
        present: dict[str, tuple[PassageContent, int]] = {}
        replaced: list[str] = []
        for row in rows:
            key = keys[row["number"] - 1]
            if key not in cached:
                present[key] = self._read_content(key, row), row["node_id"]
            elif cached[key].version == version_of(row):
                present[key] = cached[key], row["node_id"]
            else:
                replaced.append(key)
        if replaced:
            rows, _ = await self._read_passages(replaced, 0, scope)
            for row in rows:
                key = replaced[row["number"] - 1]
                present[key] = self._read_content(key, row), row["node_id"]
        parts, day = self._postings.editions.validity(present), valid_day(scope)
        return {
            key: present[key][0].shown(present[key][1], taxonomy, scope, parts.get(key))
            for key in chunk_ids
            if key in present
            and present[key][0].passes(filters)
            and ((part := parts.get(key)) is None or part.admits(day))
        }

    def _read_content(self, chunk_id: str, row: DictRow) -> PassageContent:
        content = PassageContent.of(chunk_id, row)
        self._contents.add(content)
        return content

    async def _read_passages(
        self, chunk_ids: Sequence[str], cached: int, scope: Scope
    ) -> tuple[list[DictRow], Mapping[str, int]]:
        """Rows of the passages in scope, the first `cached` ones without contents; and the generation after them.

        If the generation is that of a snapshot then, so it was when the passages were read.
        """
        nodes = node_array(scope.nodes) if scope.nodes is not None else None
        values = _keys(chunk_ids) | {"nodes": nodes, "cached": cached}
        async with self._database.connection("reader") as connection, self._database.block(connection):
            statement = queries("content")["passages_in_scope"]
            cursor = connection.repeated(statement)
            await cursor.execute(statement, values)
            *rows, state = await cursor.fetchall()
        return rows, state["metadata"]

    async def preceding(self, chunk_ids: Sequence[str], scope: Scope, limit: int) -> dict[str, list[tuple[int, str]]]:
        """Chunk id -> start and text of the passages before it in its document, the nearest first."""
        parameters = _keys(chunk_ids) | {"limit": limit}
        rows = await self._database.read(scope, queries("content")["chunks_before"], parameters)
        before: dict[str, list[tuple[int, str]]] = {}
        names = [f"{row['document_id']}:{row['before']}" for row in rows]
        parts, day = self._postings.editions.validity(names), valid_day(scope)
        for row, name in zip(rows, names, strict=True):
            if (part := parts.get(name)) is None or part.admits(day):
                before.setdefault(f"{row['document_id']}:{row['ordinal']}", []).append(
                    (row["start_offset"], row["text"])
                )
        return before

    async def sentence_vectors(self, passages: Sequence[SearchResult], space: str, scope: Scope) -> SentenceVectors:
        """The stored vectors of sentences of these passages' texts."""
        values = _keys([passage.chunk_id for passage in passages]) | {
            "hashes": _hashes(passages),
            "space": space,
        }
        rows = await self._database.read(scope, queries("content")["sentence_vectors"], values)
        return SentenceVectors(space, {row["chunk_id"]: unpack(row["vectors"]) for row in rows})

    async def documents(
        self, scope: Scope, taxonomy: Taxonomy, *, limit: int, offset: int = 0, listing: DocumentListing = WHOLE_LIST
    ) -> list[DocumentSummary]:
        """A page of the documents in scope that the listing has, in its order."""
        position = listing.after
        values = _listed(listing, scope) | {
            "after": position.document_id if position is not None else None,
            "after_key": position.key if position is not None else None,
            "limit": limit,
            "offset": offset,
        }
        async with self._database.scoped("reader", scope) as connection:
            if listing.text or (offset > FAR and listing.sort not in {"newest", "oldest"}):
                await connection.execute(queries("content")["without_order_index"])
            return [
                _summary(row, taxonomy, scope)
                for row in await fetch(connection, queries("content")[f"documents_{listing.sort}"], values)
            ]

    async def sample(self, limit: int, seed: int, scope: Scope) -> list[str]:
        """Chunk ids in an order that the seed decides."""
        rows = await self._database.read(scope, queries("content")["sample"], {"limit": limit, "seed": seed})
        return [f"{row['document_id']}:{row['ordinal']}" for row in rows]

    async def counts(self, scope: Scope, listing: DocumentListing = WHOLE_LIST) -> tuple[int, int]:
        """Numbers of documents and chunks in scope that the listing has."""
        row = await self._database.read_row(scope, queries("content")["document_count"], _listed(listing, scope))
        return (int(row["documents"]), int(row["chunks"])) if row else (0, 0)

    async def document(
        self, document_id: uuid.UUID, scope: Scope, taxonomy: Taxonomy
    ) -> tuple[DocumentSummary, str] | None:
        """A document in scope with its text, or None."""
        row = await self._database.read_row(scope, queries("content")["document"], {"document_id": document_id})
        return (_summary(row, taxonomy, scope), row["text"]) if row else None

    async def document_text(self, document_id: uuid.UUID, start: int, end: int, scope: Scope) -> DocumentText | None:
        """Part of a document in scope with its passages, or None."""
        values = {"document_id": document_id, "start": start, "end": end}
        row = await self._database.read_row(scope, queries("content")["document_text"], values)
        if row is None:
            return None
        passages = tuple(_span(document_id, passage) for passage in row["passages"])
        first = min(start, row["characters"])
        text, end = row["text"], first + len(row["text"])
        return DocumentText(str(document_id), row["characters"], first, end, text, passages, row["original"])

    async def original(self, document_id: uuid.UUID, scope: Scope) -> bytes | None:
        """The stored file of a document in scope, or None."""
        row = await self._database.read_row(scope, queries("content")["original"], {"document_id": document_id})
        return bytes(row["content"]) if row else None

    async def passage_spans(
        self, document_id: uuid.UUID, limit: int, offset: int, scope: Scope
    ) -> tuple[list[PassageSpan], int] | None:
        """A page of the passages of a document in scope, and their number, or None."""
        statements, key = queries("content"), {"document_id": document_id}
        async with self._database.scoped("reader", scope) as connection:
            counted = await connection.execute(statements["passage_count"], key)
            count, rows = (
                await counted.fetchone(),
                await fetch(connection, statements["passage_spans"], {**key, "limit": limit, "offset": offset}),
            )
        if count is None:
            return None
        columns = ("ordinal", "start_offset", "end_offset", "breadcrumb", "metadata")
        spans = [_span(document_id, [row[column] for column in columns]) for row in rows]
        return spans, count["chunks"]


def _span(document_id: uuid.UUID, values: Sequence[Any]) -> PassageSpan:
    """From the columns ordinal, start_offset, end_offset, breadcrumb and metadata."""
    ordinal, start, end, breadcrumb, metadata = values
    return PassageSpan(f"{document_id}:{ordinal}", ordinal, start, end, tuple(breadcrumb), metadata)


_PARAMETER_NAMES = {"scope": "nodes", "valid_on": "as_of"}


def _named(parameters: Mapping[str, object]) -> dict[str, object]:
    return {_PARAMETER_NAMES.get(name, name): value for name, value in parameters.items()}


def _keys(chunk_ids: Iterable[str]) -> dict[str, object]:
    """The ids as two array literals: to convert each element takes .7 ms for a hundred of them."""
    keys = [chunk_id.rpartition(":") for chunk_id in chunk_ids]
    return {
        "document_ids": f"{{{','.join([document_id for document_id, _, _ in keys])}}}",
        "ordinals": f"{{{','.join([ordinal for _, _, ordinal in keys])}}}",
    }


def _hashes(passages: Iterable[SearchResult]) -> str:
    """The hashes of the texts, as an array literal, too."""
    digests = [hashlib.sha256(passage.text.encode()).hexdigest() for passage in passages]
    return "{" + ",".join(f'"\\\\x{digest}"' for digest in digests) + "}"


def _scores(rows: Iterable[DictRow]) -> dict[str, float]:
    """Chunk id -> score, in the order of the rows; the database writes the ids, which is quicker than reading UUIDs.

    Of several rows with one id the first counts.
    """
    scores: dict[str, float] = {}
    for row in rows:
        scores.setdefault(row["chunk_id"], row["score"])
    return scores


def _address(row: DictRow, scope: Scope) -> str:
    return shown_address(row["source_uri"], row["source_path"], server_paths=scope.server_paths)


def _listed(listing: DocumentListing, scope: Scope) -> dict[str, object]:
    types = list(listing.content_types) if listing.content_types is not None else None
    return {"as_of": valid_day(scope), "text": listing.text, "content_types": types}


def _summary(row: DictRow, taxonomy: Taxonomy, scope: Scope) -> DocumentSummary:
    return DocumentSummary(
        document_id=str(row["document_id"]),
        title=row["title"],
        source_url=_address(row, scope),
        content_type=row["content_type"],
        taxonomy_path=taxonomy.path(row["node_id"]),
        language=row["language"],
        chunks=row["chunks"],
        characters=row["characters"],
        metadata={**row["metadata"], **days(row["effective_from"], row["superseded_from"])},
        processed_at=row["processed_at"].isoformat(),
    )
