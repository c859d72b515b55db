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
