"""Searches and writes by several processes: what was acknowledged before a search began is in its results."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dtrag.adapters.postgres.index_reader import PostgresIndex
from dtrag.app import App, open_app
from dtrag.core.access.scope import Access, Grant
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.settings import Settings
from tests.toy import lines

WRITER = """
import asyncio, sys
from pathlib import Path
from dtrag.app import open_app
from dtrag.settings import Settings

async def main(folder: Path) -> None:
    async with open_app(Settings.load()) as app:
        for number in range(40):
            file = folder / f"{number}.txt"
            file.write_text(f"kettle boiler valve written{number:04}")
            report = await app.ingest([file])
            print("written", number, flush=True)
            if number >= 20:
                documents = await app.documents(1)
                await app.delete_document(documents[0].document_id)
                print("deleted", number, flush=True)

asyncio.run(main(Path(sys.argv[1])))
"""


async def test_searches_beside_a_writing_process_find_what_it_acknowledged(app: App, tmp_path: Path) -> None:
    await app.ingest([lines(tmp_path / "notes.jsonl", 60)])
    folder = tmp_path / "written"
    folder.mkdir()
    settings = app.settings
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DTRAG_")} | {
        "DTRAG_DATA_DIR": str(settings.data_dir),
        "DTRAG_DATABASE_NAME": settings.database_name,
        "DTRAG_EMBEDDER": "none",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(folder), env=environment, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    written, busy = 0, asyncio.create_task(always_searching(app))
    while line := (await process.stdout.readline()).decode().split():
        event, number = line[0], int(line[1])
        results, _ = await app.search(f"written{number:04}", 5, mode="lexical")
        texts = [result.text for result in results if f"written{number:04}" in result.text]
        if event == "written" and number < 20:
            assert len(texts) == 1, number
            written += 1
        elif event == "deleted":
            assert texts == [], number
    assert await process.wait() == 0 and written == 20 and not busy.done()
    busy.cancel()


async def always_searching(app: App) -> None:
    """Other words, and then the same again from the cache, while documents come and go."""
    number = 0
    while True:
        number += 1
        results, _ = await app.search(f"kettle boiler valve {number // 2}", 10)
        assert len(results) > 5


async def test_a_document_deleted_between_candidates_and_texts_is_not_shown_and_the_results_are_complete(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await app.ingest([lines(tmp_path / "notes.jsonl", 60)])
    before, _ = await app.search("kettle boiler", 10)
    first = before[0].metadata["document_id"]
    original, is_deleted = PostgresIndex.lexical, False

    async def deleting(self: PostgresIndex, *arguments: Any) -> dict[str, float]:
        nonlocal is_deleted
        candidates = await original(self, *arguments)
        if not is_deleted:
            is_deleted = True
            async with open_app(app.settings) as other:
                await other.delete_document(first)
        return candidates

    monkeypatch.setattr(PostgresIndex, "lexical", deleting)
    app.engine.clear_cache()
    results, _ = await app.search("kettle boiler", 10)
    assert is_deleted and len(results) == 10
    assert first not in {result.metadata["document_id"] for result in results}
    again, _ = await app.search("kettle boiler", 10, highlight=False)
    assert [(hit.id, hit.hybrid_score) for hit in again] == [(hit.id, hit.hybrid_score) for hit in results]


async def test_a_category_that_another_process_moved_out_of_a_scope_is_not_shown(
    settings: Settings, tmp_path: Path
) -> None:
    async with open_app(settings) as app, open_app(settings) as other:
        await app.ingest([lines(tmp_path / "notes.jsonl", 20)], category="HR/Leave")
        access = Access((Grant.of([CategoryPath.parse("HR")], (await app.index.snapshot()).taxonomy),))
        assert len((await app.search("kettle", 5, scope=access))[0]) == 5
        version = (await other.taxonomy.propose([{"op": "move", "path": "HR/Leave", "to": ""}])).version
        await other.taxonomy.activate(version, accept_widening=True)
        assert (await app.search("boiler", 5, scope=access))[0] == []
        assert len((await app.search("boiler", 5))[0]) == 5
