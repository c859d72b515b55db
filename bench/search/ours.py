"""dtrag itself, through its own writer, on an embedded PostgreSQL of its own."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

import numpy as np
from collection import Collection, Floats, Query
from pgvector import HalfVector
from system import WANTED, System

from dtrag.adapters.postgres import index_settings
from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.index_reader import PostgresIndex
from dtrag.adapters.postgres.index_settings import PostgresIndexSettings
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.core.access.scope import Scope, SearchFilters
from dtrag.core.documents import Chunk, IndexedChunk, IndexedDocument, ParsedDocument, document_id
from dtrag.core.ranking.bm25 import LexicalQuery
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.text.analysis import ANALYZER, term_id
from dtrag.core.text.questions import weighted_terms
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.settings import Settings

T = TypeVar("T")
BATCH = 512
EVERYTHING = Scope.everything()


class Known:
    """An embedder that is told the vector of the next query: what is measured is the search, not the model."""

    id = "bench@00000001"
    dim = 384
    max_tokens = 512
    languages = frozenset({"*"})
    floor, decides = 0.0, True

    def __init__(self) -> None:
        self.vectors: dict[str, Floats] = {}

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        """Not asked for here."""
        raise NotImplementedError

    def embed_queries(self, texts: Sequence[str]) -> Floats:
        """The vector that was told for the text."""
        return np.stack([self.vectors[text] for text in texts])


class Dtrag(System):
    """The index alone (ids and scores of the best 50 in scope), and the whole engine (the ten passages with texts)."""

    name = "dtrag"
    works = ("lexical", "engine lexical", "vectors", "hybrid")

    def __init__(self, folder: Path, with_vectors: bool = True):
        super().__init__(folder)
        self._with_vectors = with_vectors
        self._loop = asyncio.new_event_loop()
        self._exits = AsyncExitStack()
        self._numbers: dict[str, int] = {}
        self._embedder = Known()
        self.nodes: dict[int, int] = {}
        self.seconds: dict[str, float] = {}

    def run(self, awaitable: Awaitable[T]) -> T:
        """In the loop of this system."""
        return self._loop.run_until_complete(awaitable)  # type: ignore[arg-type]

    def build(self, collection: Collection) -> None:
        self.run(self._build(collection))

    async def _build(self, collection: Collection) -> None:
        settings = Settings.load(environ={}, data_dir=self.folder / "data", embedder="none", pool_size=8)
        self._database: Database = await self._exits.enter_async_context(connect(settings))
        self.index = PostgresIndex(self._database, 1024 * 2**20)
        await PostgresIndexSettings(self._database).register(ANALYZER, self._embedder)
        writer = PostgresWriter(self._database)
        paths = {node: CategoryPath.parse(f"Node {node}") for node in range(1, 6)}
        taxonomy = await writer.ensure_paths(list(paths.values()))
        self.nodes = {node: taxonomy.find(path) or 0 for node, path in paths.items()}
        started = time.perf_counter()
        documents = self._documents(collection)
        while batch := list(itertools.islice(documents, BATCH)):
            await writer.write(batch)
        self.seconds["words"] = time.perf_counter() - started
        if self._with_vectors:
            await self._load_vectors(collection)
        await writer.tidy()
        self.engine = HybridSearchEngine(
            self._embedder,
            self.index,
            enable_caching=False,
            enable_reranking=False,
            normalization="absolute",
            scope=EVERYTHING,
        )
        await self.index.snapshot()

    def _documents(self, collection: Collection):  # type: ignore[no-untyped-def]
        known: dict[str, int] = {}
        for block in collection.blocks():
            for number, (text, node) in enumerate(zip(block.texts, block.nodes.tolist(), strict=True), block.first):
                words = text.split()
                ids = np.array([known.get(word) or known.setdefault(word, term_id(word)) for word in words], np.int32)
                terms, counts = np.unique(ids, return_counts=True)
                name = document_id(f"bench:{number}")
                self._numbers[f"{name}:0"] = number
                chunk = IndexedChunk(Chunk(0, 0, len(text), text), "en", len(words), terms, counts.astype(np.float32))
                document = ParsedDocument("", text, "text/plain")
                yield IndexedDocument(name, name, f"bench:{number}", document, self.nodes[node], "en", b"x", (chunk,))

    async def _load_vectors(self, collection: Collection) -> None:
        started = time.perf_counter()
        async with self._database.connection("owner") as connection:
            await connection.execute("drop index embeddings_hnsw")
            copy_in = "copy embeddings (document_id, ordinal, node_id, vec) from stdin with (format binary)"
            async with connection.cursor() as cursor, cursor.copy(copy_in) as copy:
                copy.set_types(["uuid", "int4", "int4", "halfvec"])
                for first, vectors, nodes in collection.vector_blocks():
                    for number, (vector, node) in enumerate(zip(vectors, nodes.tolist(), strict=True), first):
                        name = document_id(f"bench:{number}")
                        await copy.write_row((name, 0, self.nodes[node], HalfVector(vector.astype(np.float16))))
            await connection.execute("set maintenance_work_mem = '2GB'")
            await connection.execute("set statement_timeout = 0")
            await index_settings._shape_vectors(connection, 384)  # the index as dtrag makes it
        self.seconds["vectors"] = time.perf_counter() - started

    def size(self) -> int:
        async def bytes_of() -> int:
            async with self._database.connection("owner") as connection:
                cursor = await connection.execute(
                    "select sum(pg_total_relation_size(c)) as bytes from unnest(array['lexical_index',"
                    " 'lexical_segments', 'posting_pages', 'embeddings']::regclass[]) c"
                )
                row = await cursor.fetchone()
                return int(row["bytes"]) if row else 0

        return self.run(bytes_of())

    async def answer(self, work: str, query: Query) -> list[int]:
        """One query."""
        if work == "lexical":
            statistics = (await self.index.snapshot()).statistics
            asked = LexicalQuery.of(weighted_terms(query.words), statistics)
            found = await self.index.lexical(asked, EVERYTHING, SearchFilters(), WANTED)
            return [self._numbers[key] for key in found]
        if work == "vectors":
            return list(map(self._numbers.__getitem__, await self._near(query.vector, EVERYTHING)))
        mode = "lexical" if work == "engine lexical" else "hybrid"
        self._embedder.vectors[query.words] = query.vector
        results, _ = await self.engine.search(query.words, 10, mode=mode, highlight=False)
        return [self._numbers[result.chunk_id] for result in results]

    async def _near(self, vector: Floats, scope: Scope) -> dict[str, float]:
        return await self.index.vectors(vector, scope, SearchFilters(), WANTED)

    def ask(self, work: str, query: Query) -> list[int]:
        return self.run(self.answer(work, query))

    def scoped(self, vector: Floats, nodes: tuple[int, ...]) -> list[int]:
        scope = Scope(frozenset(self.nodes[node] for node in nodes))
        return [self._numbers[key] for key in self.run(self._near(vector, scope))]

    def timed(self, work: str, queries: Sequence[Query], clients: int) -> tuple[list[float], float]:
        async def all_of_them() -> tuple[list[float], float]:
            taken: list[float] = []
            waiting = iter(queries)

            async def client() -> None:
                for query in waiting:
                    started = time.perf_counter()
                    await self.answer(work, query)
                    taken.append(time.perf_counter() - started)

            started = time.perf_counter()
            await asyncio.gather(*(client() for _ in range(clients)))
            return taken, time.perf_counter() - started

        return self.run(all_of_them())

    def close(self) -> None:
        self.run(self._exits.aclose())
        self._loop.close()
