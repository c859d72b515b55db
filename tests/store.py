"""Databases of the tests' own, and a look into them from beside the app: rows, and whether everything fits together."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from dtrag.adapters.postgres.server import ServerAddress
from dtrag.settings import Settings

_numbers = itertools.count()


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
        """The segments of the statistics, added up, are what is in the index."""
        assert self.value("select count(*) from statistics_segments where not counted") == 0
        frequencies: Counter[int] = Counter()
        lengths: dict[str, list[int]] = {}
        chunks = 0
        for count, by_language, terms, numbers in self.rows(
            "select chunks, lengths, term_ids, frequencies from statistics_segments"
        ):
            chunks += count
            for term, number in zip(terms, numbers, strict=True):
                frequencies[term] += number
            for language, pair in by_language.items():
                known = lengths.setdefault(language, [0, 0])
                known[0] += pair[0]
                known[1] += pair[1]
        recounted = dict(self.rows("select term, count(*) from lexical_index, unnest(terms) term group by 1"))
        assert {term: number for term, number in frequencies.items() if number} == recounted
        languages = self.rows("select language, count(*), sum(length) from lexical_index group by 1")
        assert {language: pair for language, pair in lengths.items() if any(pair)} == {
            language: [count, total] for language, count, total in languages
        }
        assert chunks == sum(count for _, count, _ in languages)


@dataclass
class Databases:
    """Clones of a template on one server, until `drop()`."""

    address: ServerAddress
    template: str
    _made: list[str] = field(default_factory=list)

    def settings(self, **overrides: Any) -> Settings:
        """Settings of a new database; without an embedder unless told otherwise."""
        name = f"test_{next(_numbers)}"
        self._execute(
            sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(self.template))
        )
        self._made.append(name)
        values = {"embedder": "none"} | overrides
        return Settings.load(environ={}, data_dir=self.address.data_dir, database_name=name, **values)

    def store(self, settings: Settings) -> Store:
        """The look into the database of these settings."""
        return Store(self.address, settings.database_name)

    def drop(self) -> None:
        """Drop them all; fails when an app or a test has left a connection open."""
        while self._made:
            self._execute(sql.SQL("drop database {}").format(sql.Identifier(self._made.pop())))

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.address.conninfo("dtrag_owner", "postgres"), autocommit=True) as connection:
            connection.execute(statement)
