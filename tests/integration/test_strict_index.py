"""The index of mode strict: created when the mode is first used, and what searches do until it is there."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from dtrag.adapters.postgres import index_reader as reading
from dtrag.adapters.postgres.index_reader import PostgresIndex
from dtrag.adapters.postgres.lexical.strict_index import StrictIndex
from dtrag.adapters.postgres.queries import Lock
from dtrag.app import App
from tests.store import Store

STATE = "select indisvalid from pg_index where indexrelid = to_regclass('dtrag.chunks_strict')"
BOTH, KETTLE = "The kettle and the valve.", "The kettle alone."


async def _fill(app: App) -> None:
    folder = app.settings.data_dir / "texts"
    folder.mkdir(exist_ok=True)
    texts = (BOTH, KETTLE, "A lantern.", BOTH + "  ", "A garden.")
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_text(text, "utf-8")
    assert (await app.ingest(folder)).failed == []


async def _strict(app: App, query: str = "kettle valve") -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    results, metrics = await app.search(query, mode="strict")
    return [result.text for result in results], metrics.degraded, metrics.notes


async def _creation_over(app: App) -> None:
    assert isinstance(app.index, PostgresIndex)
    creation = app.index._strict_index._creation
    assert creation is not None
    await asyncio.wait_for(creation, 30)


async def test_it_is_created_when_the_mode_is_first_used(app: App, store: Store) -> None:
    await _fill(app)
    for mode in ("lexical", "hybrid"):
        await app.search("kettle", mode=mode)
    await app._writer.tidy()
    assert store.rows(STATE) == []
    assert await _strict(app) == ([BOTH, BOTH], (), ())
    await _creation_over(app)
    assert store.rows(STATE) == [(True,)]
    app.engine.clear_cache()
    assert await _strict(app) == ([BOTH, BOTH], (), ())
    await app._writer.tidy()  # also with the index


async def test_a_large_collection_is_searched_in_part_until_then_with_a_note(
    app: App, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_READ", 3)
    await _fill(app)
    with store.connect() as other:
        other.execute("select pg_advisory_lock(%s)", (int(Lock.STRICT_INDEX),))  # another process is creating it
        texts, degraded, [note] = await _strict(app)
        assert (texts, degraded) == ([BOTH, BOTH], ("lexical",))
        assert "others may be missing" in note
        assert store.rows(STATE) == []
    await _strict(app)
    await _creation_over(app)
    assert await _strict(app) == ([BOTH, BOTH], (), ())  # nothing incomplete was kept


async def test_a_user_who_may_not_create_it_searches_without(
    app: App, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _fill(app)
    store.rows("revoke create on schema dtrag from dtrag_owner")
    assert await _strict(app) == ([BOTH, BOTH], (), ())
    await _creation_over(app)
    assert store.rows(STATE) == []
    monkeypatch.setattr(reading, "MOST_READ", 3)
    app.engine.clear_cache()
    texts, degraded, [note] = await _strict(app)
    assert (texts, degraded) == ([BOTH, BOTH], ("lexical",))
    assert "create index concurrently chunks_strict" in note


async def test_an_interrupted_creation_is_repeated(app: App, store: Store) -> None:
    await _fill(app)
    with store.connect() as reader, store.connect() as creator:
        reader.execute("begin isolation level repeatable read")
        reader.execute("select 1 from chunks")  # the creation waits for this snapshot
        creator.execute("set statement_timeout = 500")
        with pytest.raises(psycopg.errors.QueryCanceled):
            creator.execute(
                "create index concurrently chunks_strict on chunks using gin (to_tsvector('english', text))"
            )
    assert store.rows(STATE) == [(False,)]
    await StrictIndex(app.database).create()
    assert store.rows(STATE) == [(True,)]
