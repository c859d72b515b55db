"""A database of an earlier schema: its documents survive every migration, and searches say what is to be done."""

from __future__ import annotations

import uuid
from pathlib import Path

import psycopg
import pytest

from dtrag.adapters.postgres import database
from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.app import open_app
from dtrag.settings import Settings
from tests.store import Store

NAME = "an_early_database"
DOCUMENT = uuid.UUID(int=7)


CASES = """
insert into cbr_cases (case_id, query, query_hash, category_path, node_id, content, chunk_ids, content_hashes,
    document_ids, quality_score, usage_count, success_rate, upvotes, downvotes, origin, author, status, answered_in,
    metadata, created_at, updated_at)
select id, 'q', '', '{A}', 1, 'c', '{}', '{}', '{}', 0.5, 0, 0, 0, 0, origin, '', 'active', scope, '{}', now(), now()
from (values ('by hand', 'manual', null::int[]), ('answer-1', 'answer', null), ('answer-2', 'answer', '{4,7}'),
    ('answer-3', 'manual', null), ('answer-4', 'answer', '{}'), ('review-1', 'review', '{4}')) as v (id, origin, scope)
"""
LOGS = """
insert into cbr_logs (log_id, logged_at, kind, query, query_hash, category_path, suggested_case_ids, picked_case_ids,
    case_ids, chunk_ids, content_hashes, document_ids, execution_time_ms, similarity_method, user_id, details)
select id, now(), 'answer', 'q', '', '{A}', '{}', '{}', '{}', '{}', '{}', '{}', 0, '', '', details::jsonb
from (values ('whole', '{"answered_in": null}'), ('part', '{"answered_in": [4, 7]}'), ('none', '{"answered_in": []}'),
    ('suggestion', '{}')) as v (id, details)
"""


async def test_earlier_questions_get_the_scope_in_which_they_were_asked(
    embedded: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cases by hand keep their audience; what has no recorded scope belongs to the whole tree."""
    address = embedded.address
    settings = Settings.load(environ={}, data_dir=address.data_dir, database_name=NAME, embedder="none")
    store, every = Store(address, NAME), database.migration_texts()
    earlier = {name: text for name, text in every.items() if name < "0019"}
    with monkeypatch.context() as early:
        early.setattr(database, "migration_texts", lambda: earlier)
        async with connect(settings):
            pass
    try:
        store.rows(CASES)
        store.rows(LOGS)
        async with connect(settings):
            cases = dict(store.rows("select case_id, asked_in from cbr_cases"))
            logs = dict(store.rows("select log_id, asked_in from cbr_logs"))
        assert cases == {
            "by hand": [],
            "answer-1": None,
            "answer-2": [4, 7],
            "answer-3": None,  # an answer's question, whose passages were changed by hand
            "answer-4": None,
            "review-1": [4],
        }
        assert logs == {"whole": None, "part": [4, 7], "none": None, "suggestion": None}
    finally:
        with psycopg.connect(address.conninfo("dtrag_owner", "postgres"), autocommit=True) as connection:
            connection.execute(f"drop database {NAME}")


async def test_the_first_schema_is_migrated_to_the_current_one(
    embedded: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What 0001 held is kept; its lexical index is not, so searches ask for `dtrag reindex`, which finds everything."""
    address = embedded.address
    settings = Settings.load(environ={}, data_dir=address.data_dir, database_name=NAME, embedder="none")
    store = Store(address, NAME)
    every = database.migration_texts()
    with monkeypatch.context() as early:
        early.setattr(database, "migration_texts", lambda: {"0001_foundation.sql": every["0001_foundation.sql"]})
        async with connect(settings):
            pass
    store.rows(
        "insert into documents values (%s, %s, 'file:///a', 'Kettles', 'text/plain', 'en', 1, '{}',"
        " 'The kettle boils.', 1, 17, '', %s, now())",
        DOCUMENT,
        DOCUMENT,
        uuid.UUID(int=8),
    )
    store.rows("insert into chunks values (%s, 0, 1, 0, 17, 'The kettle boils.', '{}', '{}')", DOCUMENT)
    try:
        async with open_app(settings) as app:
            results, metrics = await app.search("kettle")
            assert results == []
            assert any("dtrag reindex" in note for note in metrics.notes)
            assert await app.reindex() == 1
            results, metrics = await app.search("kettle")
            assert [result.title for result in results] == ["Kettles"]
            assert not any("dtrag reindex" in note for note in metrics.notes)
        assert store.value("select count(*) from migrations") == len(every)
        store.assert_whole()
        async with connect(settings):  # again: nothing is left to do
            assert store.value("select count(*) from migrations") == len(every)
    finally:
        with psycopg.connect(address.conninfo("dtrag_owner", "postgres"), autocommit=True) as connection:
            connection.execute(f"drop database {NAME}")
