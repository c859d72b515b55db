"""Databases of the tests' own, and a look into them from beside the app: rows, and whether everything fits together."""

from __future__ import annotations

import re
import struct
import tempfile
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.server.server import ServerAddress
from dtrag.app import App, open_app
from dtrag.ingestion.sources import IngestReport
from dtrag.ports import Models
from dtrag.settings import Settings
from dtrag.testing import HashEmbedder, throwaway

_EMPTY = """
delete from documents;
delete from lexical_segments;
delete from lexical_corrections;
delete from sources;
delete from index_settings;
delete from vector_spaces;
delete from review_queue;
delete from agents;
delete from api_keys;
delete from classification_signals;
delete from classification_placements;
delete from conversations;
delete from traces;
delete from cbr_cases;
delete from cbr_logs;
delete from cbr_changes;
insert into cbr_revision values ('cases', 0) on conflict (name) do update set revision = 0;
delete from answer_feedback;
delete from evaluations;
delete from jobs;
delete from job_workers;
delete from experiences;
delete from exploration;
delete from approved_tools;
delete from taxonomy_moves;
delete from taxonomy_activations;
delete from taxonomy_tree;
delete from taxonomy_versions;
delete from taxonomy_nodes;
insert into taxonomy_nodes values (0, now()), (1, now());
insert into taxonomy_versions (version, active, created_at) values ('1.0.0', true, '2025-01-01');
insert into taxonomy_activations (activation, version, kind, activated_by, activated_at)
    values (1, '1.0.0', 'start', '', '2025-01-01');
insert into index_settings values ('generation', '0'), ('vectors', '0');
"""
"""As after the migrations, but for the audit log, whose lines cannot be deleted. Truncating takes ten times as long."""

ARCHITECTURE = Path(__file__).parents[1] / "docs/explanation/architecture.md"


def graph_statement() -> str:
    """The statement that makes the graph of vectors, as the documentation has it."""
    [statement] = re.findall(r"create index embeddings_hnsw[^;]+", ARCHITECTURE.read_text("utf-8"))
    return str(statement)


@dataclass(frozen=True)
class Store:
    """One database of an embedded server."""

    address: ServerAddress
    name: str

    def connect(self, role: str = "dtrag_owner") -> psycopg.Connection[TupleRow]:
        """A connection as one of the three roles, with the app's search path."""
        return psycopg.connect(
            self.address.conninfo(role, self.name), autocommit=True, options="-c search_path=dtrag,public"
        )

    def rows(self, statement: str, *values: object, role: str = "dtrag_owner") -> list[tuple[Any, ...]]:
        """What a statement returns; [] for one that returns nothing."""
        with self.connect(role) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def value(self, statement: str, *values: object, role: str = "dtrag_owner") -> Any:
        """The only value of the only row."""
        [(found,)] = self.rows(statement, *values, role=role)
        return found

    def titles(self) -> list[str]:
        """Titles of all documents, sorted."""
        return [row[0] for row in self.rows('select title from documents order by title collate "C"')]

    def assert_whole(self) -> None:
        """No half document, and the statistics equal a recount."""
        self.assert_no_half()
        self.assert_counted()

    def assert_no_half(self) -> None:
        """Every document has all its rows and nothing has none; every span gives its passage back."""
        assert (
            self.rows(
                "select d.document_id, d.chunks, count(c.ordinal), count(i.ordinal), min(c.ordinal), max(c.ordinal)"
                " from documents d left join chunks c using (document_id)"
                " left join lexical_index i using (document_id, ordinal) group by 1"
                " having d.chunks <> count(c.ordinal) or d.chunks <> count(i.ordinal) or d.chunks > 0"
                " and (min(c.ordinal) <> 0 or max(c.ordinal) <> d.chunks - 1)"
            )
            == []
        )
        orphans = "select count(*) from {} left join chunks c using (document_id, ordinal) where c.document_id is null"
        for table in ("lexical_index", "embeddings", "sentence_vectors"):
            assert self.value(orphans.format(table)) == 0, table
        assert (
            self.rows(
                "select c.document_id, c.ordinal from chunks c join documents d using (document_id)"
                " where substr(document_text(d.document_id, d.text, d.characters), c.start_offset + 1,"
                " c.end_offset - c.start_offset) <> c.text"
            )
            == []
        )
        assert (
            self.rows(
                "select document_id from documents d join chunks c using (document_id)"
                " left join lexical_index i using (document_id, ordinal)"
                " left join embeddings e using (document_id, ordinal)"
                " left join sentence_vectors s using (document_id, ordinal)"
                " where d.node_id <> any (array[c.node_id, i.node_id, e.node_id, s.node_id])"
            )
            == []
        )

    def assert_counted(self) -> None:
        """Segments less corrections are what is in the index: passages, frequencies of terms, lengths."""
        assert self.value("select count(*) from lexical_segments where not counted") == 0
        gone, frequencies, lengths, chunks = self._corrections()
        held: set[tuple[str, int]] = set()
        for segment in self.rows(
            "select segment_id, passages, languages, documents, chunks, term_ids, frequencies from lexical_segments"
        ):
            _, passages, languages, documents, rows, terms, counts = segment
            alive = _passages(documents, gone)
            assert len(alive) == passages == len(rows) // 5
            chunks += passages
            for length, number in struct.iter_unpack("<iB", rows):
                known = lengths.setdefault(languages[number], [0, 0])
                known[0] += 1
                known[1] += length
            for term, count in zip(*(struct.unpack(f"<{len(x) // 4}i", x) for x in (terms, counts)), strict=True):
                frequencies[term] += count
            held |= {key for key in alive if key is not None}
        there = {
            (str(document), ordinal): dict(zip(struct.unpack(f"<{len(terms) // 4}i", terms), counts, strict=True))
            for document, ordinal, terms, counts in self.rows(
                "select document_id, ordinal, terms, frequencies from lexical_index"
            )
        }
        assert held == there.keys()
        recounted = Counter(term for terms in there.values() for term in terms)
        assert {term: number for term, number in frequencies.items() if number} == recounted
        languages = self.rows("select language, count(*), sum(length) from lexical_index group by 1")
        assert {language: pair for language, pair in lengths.items() if any(pair)} == {
            language: [count, total] for language, count, total in languages
        }
        assert chunks == len(there)

    def _corrections(self) -> tuple[set[tuple[str, str]], Counter[int], dict[str, list[int]], int]:
        """Documents with their origins that are gone, and the numbers to take off."""
        gone: set[tuple[str, str]] = set()
        frequencies: Counter[int] = Counter()
        lengths: dict[str, list[int]] = {}
        chunks = 0
        for documents, origins, count, by_language, terms, numbers in self.rows(
            "select document_ids, origins, passages, lengths, term_ids, frequencies from lexical_corrections"
        ):
            gone |= {(str(document), str(origin)) for document, origin in zip(documents, origins, strict=True)}
            chunks += count
            for term, number in zip(*(struct.unpack(f"<{len(x) // 4}i", x) for x in (terms, numbers)), strict=True):
                frequencies[term] += number
            for language, pair in by_language.items():
                known = lengths.setdefault(language, [0, 0])
                known[0] += pair[0]
                known[1] += pair[1]
        return gone, frequencies, lengths, chunks


def _passages(documents: bytes, gone: set[tuple[str, str]]) -> list[tuple[str, int] | None]:
    """For each passage of a segment its document and ordinal, None where the document is gone."""
    found: list[tuple[str, int] | None] = []
    for *parts, _, _, count in struct.iter_unpack("<QQQQQii", documents):
        key = str(uuid.UUID(int=parts[0] << 64 | parts[1])), str(uuid.UUID(int=parts[2] << 64 | parts[3]))
        found.extend(None if key in gone else (key[0], ordinal) for ordinal in range(count))
    return found


class Databases(throwaway.Databases):
    """Databases of a test's own, with a look into them."""

    async def filled(self, fill: Callable[[App], Awaitable[object]]) -> str:
        """The name of a database that `fill` has put documents into, for `settings(of=...)`: copies save reading them.

        Nothing is connected to it.
        """
        settings = self.settings()
        async with open_app(settings) as app:
            report = await fill(app)
            assert not (isinstance(report, IngestReport) and report.failed)
        return settings.database_name

    def settings(self, of: str | None = None, **overrides: Any) -> Settings:
        """Settings of a new database, a copy of `of` or else of the template; without an embedder unless told."""
        return throwaway.Databases(self.address, of or self.template, self._created).settings(**overrides)

    def store(self, settings: Settings) -> Store:
        """The look into the database of these settings."""
        return Store(self.address, settings.database_name)


async def empty(database: Database) -> None:
    """Delete everything but the lines of the audit log."""
    async with database.connection("owner") as connection:
        await connection.execute(_EMPTY)


def toy_app(database: Database, models: Models = Models(embedder=HashEmbedder()), **settings: Any) -> App:
    """An app on an open database, without model weights or a parser process; `settings` are settings by name."""
    folder = Path(tempfile.gettempdir()) / "dtrag-toy"  # nothing is written there
    return App(Settings.load(environ={}, data_dir=folder, **settings), database, models, throwaway.parser)
