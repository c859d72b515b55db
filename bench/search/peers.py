"""What people would pick instead, each with its documented settings."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import bm25s
import lancedb
import numpy as np
import psycopg
import pyarrow as pa
import tantivy
from collection import Collection, Floats
from pgvector.psycopg import register_vector
from system import WANTED, System, fused
from usearch.index import Index

from dtrag.adapters.postgres.server.server import EmbeddedServer


class Tantivy(System):
    """Tantivy in process, its default tokenizer; passages with any of the words."""

    name = "tantivy"
    works = ("lexical",)

    def build(self, collection: Collection) -> None:
        schema = tantivy.SchemaBuilder().add_text_field("text").add_integer_field("id", stored=True, fast=True).build()
        (self.folder / "tantivy").mkdir(parents=True, exist_ok=True)
        self._index = tantivy.Index(schema, str(self.folder / "tantivy"))
        writer = self._index.writer(200_000_000, 1)
        for block in collection.blocks():
            for number, text in enumerate(block.texts, block.first):
                writer.add_document(tantivy.Document(text=text, id=number))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def scored(self, words: str) -> dict[int, float]:
        """Number -> score."""
        query = self._index.parse_query(words, ["text"])
        hits = self._searcher.search(query, WANTED).hits
        return {self._searcher.doc(address)["id"][0]: score for score, address in hits}

    def lexical(self, words: str) -> list[int]:
        return list(self.scored(words))


class Usearch(System):
    """usearch in process, half precision."""

    name = "usearch"
    works = ("vectors",)
    expansion = 128

    def build(self, collection: Collection) -> None:
        self._index = Index(ndim=384, metric="cos", dtype="f16", expansion_search=self.expansion)
        for first, vectors, _ in collection.vector_blocks():
            self._index.add(np.arange(first, first + len(vectors)), vectors, threads=2)

    def size(self) -> int:
        return int(self._index.memory_usage)

    def scored(self, vector: Floats) -> dict[int, float]:
        """Number -> cosine."""
        found = self._index.search(vector, WANTED)
        return dict(zip(found.keys.tolist(), (1 - found.distances).tolist(), strict=True))

    def vectors(self, vector: Floats) -> list[int]:
        return list(self.scored(vector))


class TantivyUsearch(System):
    """Both, and the usual sum of scores stretched to 0 ... 1."""

    name = "tantivy + usearch"
    works = ("hybrid",)

    def __init__(self, folder: Path, words: Tantivy, meaning: Usearch):
        super().__init__(folder)
        self._words, self._meaning = words, meaning

    def build(self, collection: Collection) -> None:
        """Both are there."""

    def hybrid(self, words: str, vector: Floats) -> list[int]:
        return fused(self._words.scored(words), self._meaning.scored(vector))


class LanceDB(System):
    """LanceDB: its full-text index, IVF_HNSW_SQ, its hybrid query with the default reranker."""

    name = "LanceDB"
    works = ("lexical", "vectors", "hybrid")

    def build(self, collection: Collection) -> None:
        schema = pa.schema([("id", pa.int32()), ("text", pa.string()), ("vector", pa.list_(pa.float32(), 384))])

        def batches():  # type: ignore[no-untyped-def]
            for block in collection.blocks():
                numbers = np.arange(block.first, block.first + len(block.texts), dtype=np.int32)
                vectors = pa.FixedSizeListArray.from_arrays(pa.array(block.vectors.ravel()), 384)
                yield pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(block.texts), vectors], schema=schema)

        self._table = lancedb.connect(self.folder / "lance").create_table("passages", batches(), schema=schema)
        self._table.create_fts_index("text", stem=True, remove_stop_words=False)
        self._table.create_index(metric="cosine", index_type="IVF_HNSW_SQ")

    def _ids(self, query: object) -> list[int]:
        return query.limit(WANTED).select(["id"]).to_arrow()["id"].to_pylist()  # type: ignore[attr-defined]

    def lexical(self, words: str) -> list[int]:
        return self._ids(self._table.search(words, query_type="fts"))

    def vectors(self, vector: Floats) -> list[int]:
        return self._ids(self._table.search(vector).nprobes(20))

    def hybrid(self, words: str, vector: Floats) -> list[int]:
        found = self._table.search(query_type="hybrid").vector(vector).text(words).limit(WANTED).to_arrow()
        return found["id"].to_pylist()


class Bm25s(System):
    """bm25s: every score of every term made beforehand, in memory."""

    name = "bm25s"
    works = ("lexical",)

    def build(self, collection: Collection) -> None:
        texts = [text for block in collection.blocks() for text in block.texts]
        self._retriever = bm25s.BM25()
        self._retriever.index(bm25s.tokenize(texts, stopwords=None, show_progress=False), show_progress=False)

    def size(self) -> int:
        return sum(part.nbytes for part in self._retriever.scores.values() if hasattr(part, "nbytes"))

    def lexical(self, words: str) -> list[int]:
        tokens = bm25s.tokenize(words, stopwords=None, show_progress=False)
        numbers, _ = self._retriever.retrieve(tokens, k=WANTED, show_progress=False)
        return numbers[0].tolist()


class Fts5(System):
    """SQLite's FTS5 with bm25(), and every vector looked at with numpy."""

    name = "SQLite FTS5 + numpy"
    works = ("lexical", "vectors", "hybrid")

    def build(self, collection: Collection) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(self.folder / "fts5.db", check_same_thread=False)
        self._database.execute("create virtual table passages using fts5(text, tokenize='porter')")
        for block in collection.blocks():
            rows = zip(range(block.first + 1, block.first + 1 + len(block.texts)), block.texts, strict=True)
            self._database.executemany("insert into passages (rowid, text) values (?, ?)", rows)
        self._database.commit()
        self._vectors = np.concatenate([vectors for _, vectors, _ in collection.vector_blocks()])

    def _scored(self, words: str) -> dict[int, float]:
        query = " OR ".join(f'"{word}"' for word in words.split())
        rows = self._database.execute(
            "select rowid, bm25(passages) from passages where passages match ? order by bm25(passages) limit ?",
            (query, WANTED),
        )
        return {row - 1: -score for row, score in rows}

    def lexical(self, words: str) -> list[int]:
        return list(self._scored(words))

    def vectors(self, vector: Floats) -> list[int]:
        scores = self._vectors @ vector
        best = np.argpartition(-scores, WANTED)[:WANTED]
        return best[np.argsort(-scores[best])].tolist()

    def hybrid(self, words: str, vector: Floats) -> list[int]:
        best = self.vectors(vector)
        return fused(self._scored(words), {number: float(self._vectors[number] @ vector) for number in best})


class PlainPostgres(System):
    """pgvector and full-text search as most projects write them, on the same PostgreSQL: every word must occur.

    "any word" is the same with passages that hold any of the words, as every other system here is asked.
    """

    name = "pgvector + ts_rank_cd"
    works = ("lexical", "any word", "vectors", "hybrid")

    def build(self, collection: Collection) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._server = EmbeddedServer.open(self.folder / "data")
        owner = self._server.address.conninfo("dtrag_owner", "postgres")
        with psycopg.connect(owner, autocommit=True) as connection:
            connection.execute("create database plain")
        self._connection = psycopg.connect(
            self._server.address.conninfo("dtrag_owner", "plain"), autocommit=True, options="-c search_path=public"
        )
        register_vector(self._connection)
        run = self._connection.execute
        run("create table passages (id int primary key, text text, vec vector(384))")
        with self._connection.cursor().copy("copy passages from stdin with (format binary)") as copy:
            copy.set_types(["int4", "text", "vector"])
            for block in collection.blocks():
                for number, (text, vector) in enumerate(zip(block.texts, block.vectors, strict=True), block.first):
                    copy.write_row((number, text, vector))
        run("create index on passages using gin (to_tsvector('english', text))")
        run("set maintenance_work_mem = '1GB'")
        run("create index on passages using hnsw (vec vector_cosine_ops)")
        run("analyze passages")

    def _rows(self, statement: str, *values: object) -> list[int]:
        return [row[0] for row in self._connection.execute(statement.encode(), values).fetchall()]

    def lexical(self, words: str) -> list[int]:
        return self._ranked(" & ".join(words.split()))

    def any_word(self, words: str) -> list[int]:
        """Passages with any of the words."""
        return self._ranked(" | ".join(words.split()))

    def _ranked(self, query: str) -> list[int]:
        return self._rows(
            "select id from passages, to_tsquery('english', %s) q where to_tsvector('english', text) @@ q"
            f" order by ts_rank_cd(to_tsvector('english', text), q) desc limit {WANTED}",
            query,
        )

    def vectors(self, vector: Floats) -> list[int]:
        return self._rows(f"select id from passages order by vec <=> %s limit {WANTED}", vector)

    def hybrid(self, words: str, vector: Floats) -> list[int]:
        one, other = self.any_word(words), self.vectors(vector)
        ranks = [{number: 1 / (60 + rank) for rank, number in enumerate(found)} for found in (one, other)]
        return fused(*ranks)

    def processes(self) -> list[int]:
        return [self._connection.info.backend_pid]

    def close(self) -> None:
        self._connection.close()
        self._server.close()
