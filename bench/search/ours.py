"""dtrag itself: the open app with the settings of `make setup`, on an embedded PostgreSQL of its own."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar
from unittest import mock

import numpy as np
from collection import Collection, Floats, Query
from system import WANTED, System, children_of

from dtrag.app import App, open_app
from dtrag.core.access.scope import Scope, SearchFilters
from dtrag.core.documents import Chunk, IndexedChunk, IndexedDocument, ParsedDocument, document_id
from dtrag.core.ranking.bm25 import LexicalQuery
from dtrag.core.ranking.segments import quantised
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.text.analysis import term_id
from dtrag.core.text.questions import weighted_terms
from dtrag.settings import Settings

T = TypeVar("T")
BATCH = 512
EVERYTHING = Scope.everything()


class KnownVectors:
    """An embedder that knows the vector of each text: what is measured is the search, not the model."""

    id = "bench@00000001"
    dim = 384
    max_tokens = 512
    languages = frozenset({"*"})
    floor, decides = 0.0, True

    def __init__(self) -> None:
        self.vectors: dict[str, Floats] = {}

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        """The vectors of passages."""
        return np.stack([self.vectors[text] for text in texts])

    embed_queries = embed_documents


class Dtrag(System):
    """Candidates alone (ids and scores of the best 50 in scope), and the whole app (the ten passages with texts)."""

    name = "dtrag"
    works = ("candidates", "lexical", "vectors", "hybrid", "marked")

    def __init__(self, folder: Path, with_vectors: bool = True):
        super().__init__(folder)
        self._with_vectors = with_vectors
        self._loop = asyncio.new_event_loop()
        self._exits = AsyncExitStack()
        self._numbers: dict[str, int] = {}
        self._embedder = KnownVectors()
        self.nodes: dict[int, int] = {}
        self.scope = EVERYTHING
        self.seconds: dict[str, float] = {}

    def run(self, awaitable: Awaitable[T]) -> T:
        """In the loop of this system."""
        return self._loop.run_until_complete(awaitable)  # type: ignore[arg-type]

    def build(self, collection: Collection) -> None:
        self.run(self._build(collection))

    async def _build(self, collection: Collection) -> None:
        settings = Settings.load(environ={}, data_dir=self.folder / "data")
        embedder = self._embedder if self._with_vectors else None
        with mock.patch("dtrag.assembly.embedders.choose", lambda settings: embedder):
            self.app: App = await self._exits.enter_async_context(open_app(settings))
        writer = self.app._writer
        paths = {node: CategoryPath.parse(f"Node {node}") for node in range(1, 6)}
        taxonomy = await writer.ensure_paths(list(paths.values()))
        self.nodes = {node: taxonomy.find(path) or 0 for node, path in paths.items()}
        started = time.perf_counter()
        documents = self._documents(collection)
        while batch := list(itertools.islice(documents, BATCH)):
            await writer.write(batch)
        await writer.tidy()
        self.seconds["words"] = time.perf_counter() - started
        if self._with_vectors:
            started = time.perf_counter()
            await self.app.vectors.fill()
            self.seconds["vectors"] = time.perf_counter() - started
            self._embedder.vectors.clear()
        await self.app.index.snapshot()
        while not self._mapped():  # noqa: ASYNC110 - made in the background, for which the loop must run
            await asyncio.sleep(0.1)

    def _mapped(self) -> bool:
        """Whether searches find all postings and vectors in files."""
        index = self.app.index
        return not index._postings._missing() and (index._vectors._complete or not self._with_vectors)

    def _documents(self, collection: Collection) -> Iterator[IndexedDocument]:
        known: dict[str, int] = {}
        for block in collection.blocks():
            for number, (text, node) in enumerate(zip(block.texts, block.nodes.tolist(), strict=True), block.first):
                words = text.split()
                ids = np.array([known.get(word) or known.setdefault(word, term_id(word)) for word in words], np.int32)
                terms, counts = np.unique(ids, return_counts=True)
                name = document_id(f"bench:{number}")
                self._numbers[f"{name}:0"] = number
                if self._with_vectors:
                    self._embedder.vectors[text] = block.vectors[number - block.first]
                chunk = IndexedChunk(
                    Chunk(0, 0, len(text), text), "en", len(words), terms, quantised(counts.astype(np.float32))
                )
                document = ParsedDocument("", text, "text/plain")
                yield IndexedDocument(name, name, f"bench:{number}", document, self.nodes[node], "en", b"x", (chunk,))

    def size(self) -> int:
        async def bytes_of() -> int:
            async with self.app.database.connection("owner") as connection:
                cursor = await connection.execute(
                    "select sum(pg_total_relation_size(c.oid)) as bytes from pg_class c"
                    " where c.relnamespace = 'dtrag'::regnamespace and c.relkind in ('r', 'p')"
                )
                row = await cursor.fetchone()
            files = (self.folder / "data" / "search").rglob("*")
            return int(row["bytes"] if row else 0) + sum(file.stat().st_size for file in files if file.is_file())

        return self.run(bytes_of())

    def processes(self) -> list[int]:
        """PostgreSQL's."""
        pid = int((next((self.folder / "data").rglob("postmaster.pid"))).read_text("utf-8").split()[0])
        return [pid, *children_of(pid)]

    async def answer(self, work: str, query: Query) -> list[int]:
        """The answer to one query in the scope of the moment."""
        if work == "candidates":
            terms = weighted_terms(query.words)
            await self.app.index.snapshot()
            statistics = await self.app.index.statistics([term for term, _ in terms], self.scope)
            lexical = LexicalQuery.of(terms, statistics)
            keys = list(await self.app.index.lexical(lexical, self.scope, SearchFilters(), WANTED))
        elif work == "vectors":
            await self.app.index.snapshot()
            space = self._embedder.id
            keys = list(await self.app.index.vectors(query.vector, space, self.scope, SearchFilters(), WANTED))
        else:
            self.app.engine._embedder._vectors[query.words] = query.vector  # known, as peers know it
            mode = "hybrid" if work == "marked" else work
            marks = work == "marked"  # what peers do not do
            results, _ = await self.app.search(query.words, 10, mode=mode, scope=self.scope, highlights=marks)
            keys = [result.chunk_id for result in results]
        return [self._numbers[key] for key in keys]

    def ask(self, work: str, query: Query) -> list[int]:
        return self.run(self.answer(work, query))

    def confine(self, nodes: tuple[int, ...]) -> None:
        """Search in the passages of these nodes from now on; in all of them with ()."""
        self.scope = Scope(frozenset(self.nodes[node] for node in nodes)) if nodes else EVERYTHING

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
