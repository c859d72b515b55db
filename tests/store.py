"""Databases of the tests' own, and a look into them from beside the app: rows, and whether everything fits together."""

from __future__ import annotations

import itertools
import os
import signal
import struct
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from dtrag.adapters.postgres.server.server import ServerAddress
from dtrag.settings import Settings

_numbers = itertools.count()


def without_sync(data_dir: Path) -> None:
    """Let the running server of a data folder no longer wait for the disk; only a crash of the machine loses anything.

    The lines come after the product's settings and go with the folder. No test may judge durability on this server.
    """
    cluster = data_dir / "postgres"
    with (cluster / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.write("fsync = off\nfull_page_writes = off\n")
    os.kill(int((cluster / "postmaster.pid").read_text("utf-8").split()[0]), signal.SIGHUP)


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
        for table in ("lexical_index", "embeddings"):
            assert self.value(orphans.format(table)) == 0, table
        assert (
            self.rows(
                "select c.document_id, c.ordinal from chunks c join documents d using (document_id)"
                " where substr(d.text, c.start_offset + 1, c.end_offset - c.start_offset) <> c.text"
            )
            == []
        )
        assert (
            self.rows(
                "select document_id from documents d join chunks c using (document_id)"
                " left join lexical_index i using (document_id, ordinal)"
                " left join embeddings e using (document_id, ordinal)"
                " where c.node_id <> d.node_id or i.node_id <> d.node_id or e.node_id <> d.node_id"
            )
            == []
        )

    def assert_counted(self) -> None:
        """Segments less corrections are what is in the index: postings, frequencies of terms, lengths."""
        assert self.value("select count(*) from lexical_segments where not counted") == 0
        gone, frequencies, lengths, chunks = self._corrections()
        postings: dict[tuple[str, int], dict[int, int]] = {}
        for segment in self.rows(
            "select segment_id, passages, languages, documents, chunks, term_ids, frequencies,"
            " (select coalesce(string_agg(p.postings, ''::bytea order by p.page), ''::bytea) from posting_pages p"
            " where p.segment_id = s.segment_id) from lexical_segments s"
        ):
            _, passages, languages, documents, rows, terms, counts, run = segment
            alive = _passages(documents, gone)
            assert len(alive) == passages == len(rows) // 5
            chunks += passages
            for length, number in struct.iter_unpack("<iB", rows):
                known = lengths.setdefault(languages[number], [0, 0])
                known[0] += 1
                known[1] += length
            place = 0
            for term, count in zip(*(struct.unpack(f"<{len(x) // 4}i", x) for x in (terms, counts)), strict=True):
                frequencies[term] += count
                for chunk, frequency in struct.iter_unpack("<iB", run[place * 5 : (place + count) * 5]):
                    if (key := alive[chunk]) is not None:
                        postings.setdefault(key, {})[term] = frequency
                place += count
            assert place * 5 == len(run)
        there = {
            (str(document), ordinal): dict(zip(struct.unpack(f"<{len(terms) // 4}i", terms), counts, strict=True))
            for document, ordinal, terms, counts in self.rows(
                "select document_id, ordinal, terms, frequencies from lexical_index"
            )
        }
        assert postings == {key: terms for key, terms in there.items() if terms}
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


@dataclass
class Databases:
    """Clones of a template on one server, until `drop()`."""

    address: ServerAddress
    template: str
    _made: list[str] = field(default_factory=list)

    def settings(self, **overrides: Any) -> Settings:
        """Settings of a new database; without an embedder unless told otherwise."""
        name = f"test_{next(_numbers)}"
        # Its files are copied: the default, a log record for each page, takes three times as long.
        create = sql.SQL("create database {} template {} strategy file_copy")
        self._execute(create.format(sql.Identifier(name), sql.Identifier(self.template)))
        self._made.append(name)
        values = {"embedder": "none"} | overrides
        return Settings.load(environ={}, data_dir=self.address.data_dir, database_name=name, **values)

    def store(self, settings: Settings) -> Store:
        """The look into the database of these settings."""
        return Store(self.address, settings.database_name)

    def drop(self) -> None:
        """Drop them all; fails when an app or a test has left a connection open.

        PostgreSQL waits 5 s for the backends of closed connections; on a busy machine they need longer to end.
        """
        while self._made:
            statement, last = sql.SQL("drop database {}").format(sql.Identifier(self._made.pop())), 4
            for attempt in range(last + 1):
                try:
                    self._execute(statement)
                    break
                except psycopg.errors.ObjectInUse:
                    if attempt == last:
                        raise

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.address.conninfo("dtrag_owner", "postgres"), autocommit=True) as connection:
            connection.execute(statement)
