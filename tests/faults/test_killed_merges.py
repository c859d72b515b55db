"""A process that is killed during a merge leaves the segments from before or the new one, and no search is wrong."""

from __future__ import annotations

import asyncio
import random
import signal
import sys

import pytest

from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.index_reader import PostgresIndex
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.adapters.postgres.lexical import merge, posting_files
from dtrag.core.access.scope import Scope
from dtrag.settings import Settings
from tests.builders import indexed_document
from tests.integration.test_posting_files import answers, fill, folder_of, ready
from tests.store import Store

KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.lexical import merge, posting_files
from dtrag.adapters.postgres.search_files import SearchFiles
from dtrag.settings import Settings
posting_files.SMALLEST = 0
step, before = sys.argv[3], sys.argv[4] == "before"
def kill():
    os.kill(os.getpid(), signal.SIGKILL)
place = SearchFiles if step == "remove" else merge
step_itself = getattr(place, step)
def reached(*arguments):
    if before:
        kill()
    result = step_itself(*arguments)
    if not asyncio.iscoroutine(result):
        kill()
    async def ended():
        await result
        kill()
    return ended()
setattr(place, step, reached)
async def main():
    settings = Settings.load(environ={}, data_dir=Path(sys.argv[1]), database_name=sys.argv[2], embedder="none")
    async with connect(settings) as database:
        await merge.merge(database, 1)
asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def every_segment_has_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting_files, "SMALLEST", 0)


@pytest.mark.parametrize(
    ("step", "moment", "merged"),
    [
        ("read_table", "after", False),
        ("write_table", "before", False),
        ("write_table", "after", False),
        ("_fold", "before", False),
        ("_fold", "after", False),
        ("remove", "before", True),
        ("remove", "after", True),
    ],
)
async def test_a_merge_that_is_killed(settings: Settings, store: Store, step: str, moment: str, merged: bool) -> None:
    async with connect(settings) as database:
        await fill(database, random.Random(1))
        gone = indexed_document("toy:7", []).document_id
        assert await PostgresWriter(database).delete(gone, Scope.everything())
        reader = await ready(PostgresIndex(database))
        query = ("kettle refund 휴학 library", Scope.everything(), 50)
        expected = await answers(reader, *query)
        arguments = [str(settings.data_dir), settings.database_name, step, moment]
        program = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, *arguments)
        assert await program.wait() == -signal.SIGKILL
        store.assert_whole()
        assert store.value("select count(*) from lexical_segments") == (1 if merged else 3)
        assert await answers(reader, *query) == expected
        assert await answers(await ready(PostgresIndex(database)), *query) == expected
        assert await merge.merge(database, 1) != merged
        await posting_files.make_files(database)
        [(name,)] = store.rows("select segment_id from lexical_segments")
        assert [path.name for path in folder_of(database).iterdir()] == [posting_files.name_of(name)]
        assert await answers(await ready(PostgresIndex(database)), *query) == expected
        store.assert_whole()
