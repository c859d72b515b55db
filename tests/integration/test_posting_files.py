"""Postings from mapped files: passages and scores of those in memory to the last bit, whatever happens to the files."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
import pytest_asyncio

from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.database import Connection, Database
from dtrag.adapters.postgres.index_reader import PostgresIndex
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.adapters.postgres.lexical import merge, posting_files
from dtrag.adapters.postgres.lexical import reader as lexical_reader
from dtrag.adapters.postgres.lexical.rows import read_terms
from dtrag.adapters.postgres.queries import Lock, try_lock
from dtrag.app import App
from dtrag.core.access.scope import Scope, SearchFilters
from dtrag.core.ranking.bm25 import LexicalQuery
from dtrag.core.ranking.posting_table import PassageTerms
from dtrag.core.ranking.segments import DOCUMENTS, Segment
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.text.questions import weighted_terms
from dtrag.delivery.api import app as api_app
from dtrag.delivery.api.request_tasks import cancelled
from dtrag.errors import DatabaseDamaged, Overloaded, StorageFull
from dtrag.settings import Settings
from tests.builders import indexed_document
from tests.rounds import seeds
from tests.store import Store
from tests.toy import sentence

NO_FILTERS = SearchFilters()
CATEGORIES = [CategoryPath.parse(path) for path in ("A", "A/B", "C", "C/D")]
PUT_BACK = ("documents", "chunks", "lexical_index", "lexical_corrections", "index_settings")
DAYS = (None, date(2020, 1, 1), date(2023, 1, 1))


@pytest.fixture(autouse=True)
def every_segment_has_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a small one."""
    monkeypatch.setattr(posting_files, "SMALLEST", 0)


@pytest_asyncio.fixture
async def database(settings: Settings) -> AsyncIterator[Database]:
    async with connect(settings) as opened:
        yield opened


@pytest_asyncio.fixture
async def without_files(settings: Settings) -> AsyncIterator[Database]:
    async with connect(settings) as opened:
        opened.files = None
        yield opened


async def fill(database: Database, chance: random.Random, documents: int = 60) -> list[int]:
    """Random documents in a few segments; returns the nodes of their categories."""
    writer = PostgresWriter(database)
    taxonomy = await writer.ensure_paths(CATEGORIES)
    nodes = [node for path in CATEGORIES if (node := taxonomy.find(path)) is not None]
    for start in range(0, documents, 20):
        await writer.write(
            [
                indexed_document(
                    f"toy:{number}",
                    [sentence(chance, chance.choice((1, 3, 8, 30))) for _ in range(chance.randint(1, 4))],
                    node_id=chance.choice(nodes),
                )
                for number in range(start, min(documents, start + 20))
            ]
        )
    return nodes


async def ready(index: PostgresIndex) -> PostgresIndex:
    """The index at the present generation, with the files of all segments."""
    await index.snapshot()
    if index._postings._making is not None:
        await index._postings._making
    assert index._postings._mapped == index._postings._tables.keys() == index._postings._segments.keys() != set()
    return index


def folder_of(database: Database) -> Path:
    assert database.files is not None
    return database.files._parent / database.files._identity


async def answers(index: PostgresIndex, text: str, scope: Scope, limit: int) -> list[object]:
    """All that the postings decide: the best passages, in order, the scores of some, and those with a required term."""
    weighted = weighted_terms(text)
    statistics = await index.statistics([term for term, _ in weighted], scope)
    query = LexicalQuery.of(weighted, statistics)
    best = await index.lexical(query, scope, NO_FILTERS, limit)
    required = replace(query, required=frozenset([weighted[0][0]])) if weighted else query
    return [
        query.weights,
        list(best.items()),
        list((await index.lexical(required, scope, NO_FILTERS, limit)).items()),
        await index.lexical_scores(query, list(best)[:5], scope),
    ]


@pytest.mark.parametrize("dated", [False, True], ids=["undated", "editions"])
@pytest.mark.parametrize("seed", seeds(2))
async def test_files_and_memory_give_the_same_bits(
    database: Database, without_files: Database, store: Store, seed: int, dated: bool
) -> None:
    chance = random.Random(seed)
    nodes = await fill(database, chance)
    if dated:
        store.rows(
            "insert into passage_validity (document_id, first, last, valid_from, valid_until)"
            " select document_id, 0, 0, '2022-01-01', '2024-01-01' from documents order by document_id limit 20"
            " returning 1"
        )
    writer = PostgresWriter(database)
    for document in chance.sample(range(60), 6):
        await writer.delete(indexed_document(f"toy:{document}", []).document_id, Scope.everything())
    by_files, by_memory = await ready(PostgresIndex(database)), PostgresIndex(without_files)
    await by_memory.snapshot()
    scopes = [Scope.everything(), *(Scope(frozenset(nodes[:count])) for count in range(4))]
    assert by_files._postings.hides(replace(scopes[0], as_of=DAYS[1])) == dated
    compared = 0
    for _ in range(40):
        text, limit = sentence(chance, chance.randint(1, 8)), chance.randint(1, 60)
        for scope in scopes:
            as_of = replace(scope, as_of=chance.choice(DAYS))
            expected = await answers(by_memory, text, as_of, limit)
            assert await answers(by_files, text, as_of, limit) == expected
            compared += bool(expected[1])
    assert compared > 100
    assert by_memory._postings._tables and not by_memory._postings._mapped


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: path.unlink(),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "overwritten": lambda path: path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes())),
    "one bit": lambda path: path.write_bytes(path.read_bytes()[:-70] + b"\x07" + path.read_bytes()[-69:]),
    "of another segment": lambda path: path.write_bytes(
        next(other for other in sorted(path.parent.iterdir()) if other != path).read_bytes()
    ),
    "a link": lambda path: path.rename(path.parent.parent / "elsewhere"),
    "unreadable": lambda path: path.chmod(0o644),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_file_is_made_again(database: Database, without_files: Database, damage: str) -> None:
    chance = random.Random(1)
    await fill(database, chance)
    await ready(PostgresIndex(database))
    by_memory = PostgresIndex(without_files)
    await by_memory.snapshot()
    texts = [sentence(chance, 4) for _ in range(10)]
    expected = [await answers(by_memory, text, Scope.everything(), 20) for text in texts]
    path = max(folder_of(database).iterdir(), key=lambda file: file.stat().st_size)
    DAMAGES[damage](path)
    if damage == "a link":
        path.symlink_to("../elsewhere")
    fresh = PostgresIndex(database)
    await fresh.snapshot()
    assert [await answers(fresh, text, Scope.everything(), 20) for text in texts] == expected, "while it is missing"
    await ready(fresh)
    assert [await answers(fresh, text, Scope.everything(), 20) for text in texts] == expected
    await ready(PostgresIndex(database))


@pytest.mark.parametrize("cut", [False, True], ids=["overwritten", "cut"])
async def test_a_file_that_is_changed_while_it_is_mapped_is_not_used(
    database: Database, without_files: Database, cut: bool
) -> None:
    chance = random.Random(1)
    await fill(database, chance)
    by_files, by_memory = await ready(PostgresIndex(database)), PostgresIndex(without_files)
    await by_memory.snapshot()
    texts = [sentence(chance, 4) for _ in range(10)]
    expected = [await answers(by_memory, text, Scope.everything(), 20) for text in texts]
    for path in folder_of(database).iterdir():
        with path.open("r+b") as file:
            if cut:
                file.truncate(64)
            else:
                file.seek(path.stat().st_size // 2)
                file.write(b"\x01" * (path.stat().st_size // 3))
    assert [await answers(by_files, text, Scope.everything(), 20) for text in texts] == expected
    assert by_files._postings._mapped == by_files._postings._segments.keys()
    assert [await answers(await ready(by_files), text, Scope.everything(), 20) for text in texts] == expected


async def test_files_of_an_earlier_formula_are_made_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(database, random.Random(2))
    with monkeypatch.context() as earlier:
        earlier.setattr(posting_files, "_FORMULA", [1, 1.2, 0.75, 0.25])
        await posting_files.make_files(database)
    before = {path: path.read_bytes() for path in folder_of(database).iterdir()}
    await ready(PostgresIndex(database))
    assert len(before) == 3 and all(path.read_bytes() != content for path, content in before.items())


async def test_a_merge_removes_the_files_of_its_inputs(database: Database, without_files: Database) -> None:
    """A process that has mapped them goes on with the old generation; the next one has none of them."""
    chance = random.Random(3)
    await fill(database, chance)
    reader = await ready(PostgresIndex(database))
    before = {path.name for path in folder_of(database).iterdir()}
    texts = [sentence(chance, 4) for _ in range(10)]
    expected = [await answers(reader, text, Scope.everything(), 20) for text in texts]
    await PostgresWriter(database).tidy()
    after = {path.name for path in folder_of(database).iterdir()}
    assert len(before) == 3 and len(after) == 1 and not before & after
    assert [await answers(reader, text, Scope.everything(), 20) for text in texts] == expected
    await ready(reader)
    assert [await answers(reader, text, Scope.everything(), 20) for text in texts] == expected
    assert len(reader._postings._tables) == 1


async def test_a_damaged_file_does_not_stop_the_others(database: Database) -> None:
    chance = random.Random(3)
    await fill(database, chance)
    index = await ready(PostgresIndex(database))
    before = dict(index._postings._tables)
    path = min(folder_of(database).iterdir())
    path.write_bytes(bytes(path.stat().st_size))
    expected = await answers(await ready(PostgresIndex(database)), "kettle refund 휴학", Scope.everything(), 20)
    path.write_bytes(bytes(path.stat().st_size))
    assert await answers(index, "kettle refund 휴학", Scope.everything(), 20) == expected
    changed = [key for key, table in index._postings._tables.items() if table is not before[key]]
    assert [posting_files.name_of(key) for key in changed] == [path.name]


async def test_without_a_writable_folder_postings_are_kept_in_memory_up_to_a_size(
    database: Database, without_files: Database, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(4)
    await fill(database, chance)
    folder_of(database).parent.mkdir(mode=0o700, exist_ok=True)
    shutil.rmtree(folder_of(database), ignore_errors=True)
    folder_of(database).write_text("a file is in the way")
    index, by_memory, small = (
        PostgresIndex(one, size) for one, size in ((database, 2**20), (without_files, 2**20), (database, 10))
    )
    text = sentence(chance, 5)
    for reader in (index, by_memory, small):
        await reader.snapshot()
    assert await answers(index, text, Scope.everything(), 20) == await answers(by_memory, text, Scope.everything(), 20)
    assert caplog.text.count("no search files in") == 1
    for _ in range(2):
        with pytest.raises(StorageFull, match="index_cache_mb"):
            await answers(small, text, Scope.everything(), 20)
    folder_of(database).unlink()
    await posting_files.make_files(database)
    await PostgresWriter(database).write([indexed_document("toy:last", ["kettle"])])
    expected = await answers(await ready(PostgresIndex(database)), text, Scope.everything(), 20)
    for reader in (index, small):
        assert await answers(await ready(reader), text, Scope.everything(), 20) == expected


async def test_rows_that_cannot_be_read_are_reported_and_logged(
    database: Database, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    await fill(database, random.Random(4))
    shutil.rmtree(folder_of(database), ignore_errors=True)
    store.rows("alter table lexical_index rename to hidden_index")
    index = PostgresIndex(database)
    await index.snapshot()
    with pytest.raises(psycopg.errors.UndefinedTable):
        await answers(index, "kettle refund 휴학", Scope.everything(), 20)
    assert "could not be read" in caplog.text and not index._postings._tables
    store.rows("alter table hidden_index rename to lexical_index")
    assert list(await answers(index, "kettle refund 휴학", Scope.everything(), 20))[1]


async def test_rows_that_contradict_their_segment_are_reported(database: Database, store: Store) -> None:
    await fill(database, random.Random(4))
    shutil.rmtree(folder_of(database), ignore_errors=True)
    store.rows("update lexical_index set terms = frequencies || frequencies || frequencies || frequencies")
    index = PostgresIndex(database)
    await index.snapshot()
    with pytest.raises(DatabaseDamaged, match="dtrag reindex"):
        await answers(index, "kettle refund 휴학", Scope.everything(), 20)


async def test_a_search_is_refused_while_reading_takes_long(
    database: Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical_reader, "WAIT_S", 0.1)
    await fill(database, random.Random(4))
    expected = await answers(await ready(PostgresIndex(database)), "kettle refund 휴학", Scope.everything(), 20)
    shutil.rmtree(folder_of(database))
    index = PostgresIndex(database)
    with store.connect() as blocking, blocking.transaction():
        blocking.execute("lock table lexical_index in access exclusive mode")
        await index.snapshot()
        with pytest.raises(Overloaded, match="is being read"):
            await answers(index, "kettle refund 휴학", Scope.everything(), 20)
    monkeypatch.setattr(lexical_reader, "WAIT_S", 10.0)
    assert await answers(index, "kettle refund 휴학", Scope.everything(), 20) == expected


@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
async def test_postings_that_are_read_after_a_deletion_are_without_it(database: Database, replaced: bool) -> None:
    """A search that began before it: the present generation is without the document as well."""
    chance, writer = random.Random(9), PostgresWriter(database)
    await fill(database, chance)
    index = PostgresIndex(database)
    everything = await answers(await ready(index), "kettle refund 휴학 library", Scope.everything(), 1_000)
    best = everything[1]
    assert isinstance(best, list)
    document = uuid.UUID(best[0][0].partition(":")[0])
    number = next(n for n in range(60) if indexed_document(f"toy:{n}", []).document_id == document)
    if replaced:
        await writer.write([indexed_document(f"toy:{number}", ["kettle"], replaces=True)])
    else:
        assert await writer.delete(document, Scope.everything())
    for path in folder_of(database).iterdir():
        path.unlink()
    index._postings.forget_files([posting_files.name_of(key) for key in index._postings._segments])
    later = (await answers(index, "kettle refund 휴학 library", Scope.everything(), 1_000))[1]
    assert later == [pair for pair in best if pair[0].partition(":")[0] != str(document)]
    fresh = await answers(await ready(PostgresIndex(database)), "kettle refund 휴학 library", Scope.everything(), 1_000)
    assert fresh == await answers(await ready(index), "kettle refund 휴학 library", Scope.everything(), 1_000)


async def test_files_are_not_used_for_an_earlier_state_of_the_database_in_which_more_documents_live(
    database: Database, store: Store
) -> None:
    """The database was put back from a copy, and the files beside it stayed."""
    await fill(database, random.Random(3))
    index = await ready(PostgresIndex(database))
    expected = await answers(index, "kettle refund 휴학 library", Scope.everything(), 1_000)
    for table in PUT_BACK:
        store.rows(f"create table kept_{table} as table {table}")
    best = expected[1]
    assert isinstance(best, list)
    assert await PostgresWriter(database).delete(uuid.UUID(best[0][0].partition(":")[0]), Scope.everything())
    shutil.rmtree(folder_of(database))
    fresh = await ready(PostgresIndex(database))
    assert await answers(fresh, "kettle refund 휴학 library", Scope.everything(), 1_000) != expected
    await index.snapshot()
    store.rows("delete from documents")
    for table in PUT_BACK:
        columns = store.value(
            "select string_agg(column_name, ',') from information_schema.columns"
            " where table_schema = 'dtrag' and table_name = %s and is_generated = 'NEVER'",
            table,
        )
        store.rows(f"delete from {table}")
        store.rows(f"insert into {table} ({columns}) select {columns} from kept_{table}")
    for reader in (PostgresIndex(database), fresh, index):
        await reader.snapshot()
        assert await answers(reader, "kettle refund 휴학 library", Scope.everything(), 1_000) == expected


async def test_a_merge_leaves_the_file_of_its_segment_and_none_of_others(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that was written by a merge that did not end; but not while a merge goes on."""
    await fill(database, random.Random(10))
    await ready(PostgresIndex(database))
    next(iter(folder_of(database).iterdir())).unlink()
    read: list[int] = []

    async def reading(connection: Connection, segment: Segment, documents: range) -> PassageTerms:
        read.append(len(documents))
        return await read_terms(connection, segment, documents)

    with monkeypatch.context() as watched:
        watched.setattr(posting_files, "read_terms", reading)
        assert await merge.merge(database, 1)
    assert sum(read) == 20, "the documents of the file that is gone"
    index = PostgresIndex(database)
    await index.snapshot()
    assert index._postings._mapped == index._postings._segments.keys()
    names = {posting_files.name_of(key) for key in index._postings._segments}
    assert {path.name for path in folder_of(database).iterdir()} == names
    left = folder_of(database) / posting_files.name_of(uuid.uuid4())
    left.write_bytes(b"")
    async with database.connection("owner") as merging, merging.transaction():
        assert await try_lock(merging, Lock.MERGE)
        await posting_files.make_files(database)
        assert left.exists()
    await posting_files.make_files(database)
    assert {path.name for path in folder_of(database).iterdir()} == names


async def test_a_search_does_not_wait_for_a_merge_even_with_a_single_connection(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connect(replace(settings, pool_size=1)) as database:
        await fill(database, random.Random(8))
        index = await ready(PostgresIndex(database))
        before = await answers(index, "kettle 도서관", Scope.everything(), 10)
        merging, searched = merge._merged, []

        async def merged(*arguments: Any) -> Any:
            async with asyncio.timeout(5):
                await index.snapshot()
                searched.append(await answers(index, "kettle 도서관", Scope.everything(), 10))
            return await merging(*arguments)

        monkeypatch.setattr(merge, "_merged", merged)
        assert await merge.merge(database, 1)
        assert searched == [before]
        await index.close()


async def test_space_of_merged_heads_is_used_again(database: Database, store: Store) -> None:
    """A head of which no other process reads is replaced at the place of an earlier one."""
    chance, writer = random.Random(11), PostgresWriter(database)
    for start in range(0, 120, 2):
        await writer.write([indexed_document(f"toy:{n}", [sentence(chance, 400)] * 9) for n in (start, start + 1)])
        await merge.merge(database, 1)
    live = store.value(
        "select sum(length(documents) + length(chunks) + length(term_ids) + length(frequencies)) from lexical_segments"
    )
    assert store.value("select pg_table_size('dtrag.lexical_segments')") < 4 * live + 2**17


SEARCHES = """
import asyncio, json, sys
from pathlib import Path
from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.index_reader import PostgresIndex
from dtrag.adapters.postgres.lexical import merge, posting_files
from dtrag.core.access.scope import Scope, SearchFilters
from dtrag.core.ranking.bm25 import LexicalQuery
from dtrag.core.text.questions import weighted_terms
from dtrag.settings import Settings
posting_files.SMALLEST = 0
read = []
rows = posting_files.read_table
def reading(connection, segment):
    read.append(str(segment.segment_id))
    return rows(connection, segment)
posting_files.read_table = reading
async def main():
    settings = Settings.load(environ={}, data_dir=Path(sys.argv[1]), database_name=sys.argv[2], embedder="none")
    async with connect(settings) as database:
        index = PostgresIndex(database)
        statistics = (await index.snapshot()).statistics
        if index._postings._making:
            await index._postings._making
        query = LexicalQuery.of(weighted_terms(sys.argv[3]), statistics)
        found = await index.lexical(query, Scope.everything(), SearchFilters(), 50)
        print(json.dumps([len(index._postings._mapped), list(found.items()), read]))
asyncio.run(main())
"""


async def test_several_processes_make_and_read_the_same_files(settings: Settings, database: Database) -> None:
    await fill(database, random.Random(5))
    arguments = [sys.executable, "-c", SEARCHES, str(settings.data_dir), settings.database_name, "kettle refund 휴학"]
    running = [asyncio.create_subprocess_exec(*arguments, stdout=subprocess.PIPE) for _ in range(3)]
    outputs = [json.loads((await program.communicate())[0]) for program in await asyncio.gather(*running)]
    index = await ready(PostgresIndex(database))
    query = LexicalQuery.of(weighted_terms("kettle refund 휴학"), (await index.snapshot()).statistics)
    expected = list((await index.lexical(query, Scope.everything(), NO_FILTERS, 50)).items())
    assert expected and [output[:2] for output in outputs] == [[3, [list(pair) for pair in expected]]] * 3
    read = [segment for *_, segments in outputs for segment in segments]
    assert len(read) == len(set(read)) == 3, "each by one process"
    assert len(list(folder_of(database).iterdir())) == 3


async def test_a_deleted_document_leaves_the_segments_and_files_after_an_hour(
    database: Database, without_files: Database, store: Store
) -> None:
    chance, writer = random.Random(6), PostgresWriter(database)
    await fill(database, chance)
    await writer.tidy()
    gone = indexed_document("toy:7", [])
    assert await writer.delete(gone.document_id, Scope.everything())
    reader = await ready(PostgresIndex(database))
    before = {path.name for path in folder_of(database).iterdir()}
    texts = [sentence(chance, 4) for _ in range(10)]
    expected = [await answers(reader, text, Scope.everything(), 20) for text in texts]
    await writer.forget_deleted()
    assert {path.name for path in folder_of(database).iterdir()} == before
    age = "update lexical_corrections set created_at = now() - interval '61 minutes' returning 1"
    assert store.rows(age)
    await writer.forget_deleted()
    after = {path.name for path in folder_of(database).iterdir()}
    assert len(after) == 1 and not after & before
    assert not store.rows("select 1 from lexical_corrections")
    assert gone.document_id.bytes not in b"".join(
        np.frombuffer(row, DOCUMENTS)["document_id"].astype(">u8").tobytes()
        for (row,) in store.rows("select documents from lexical_segments")
    )
    assert [await answers(await ready(reader), text, Scope.everything(), 20) for text in texts] == expected
    store.assert_whole()


async def test_a_merge_of_other_segments_does_not_postpone_it(
    database: Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "MOST_CORRECTIONS", 1)
    chance, writer = random.Random(7), PostgresWriter(database)
    await fill(database, chance)
    await writer.tidy()
    for number in (1, 2):
        assert await writer.delete(indexed_document(f"toy:{number}", []).document_id, Scope.everything())
    store.rows("update lexical_corrections set created_at = created_at - interval '50 minutes'")
    await writer.forget_deleted()
    [(age,)] = store.rows("select now() - created_at from lexical_corrections")
    assert age >= timedelta(minutes=50), "both were folded into one"


async def test_deleted_documents_leave_segments_of_every_size(
    database: Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worn segment beside others to merge: together they would be larger than any that is merged again."""
    monkeypatch.setattr(merge, "LARGEST", 40)
    monkeypatch.setattr(merge, "LONGEST_CORRECTED", timedelta(0))
    writer, documents = PostgresWriter(database), [indexed_document(f"toy:{n}", ["kettle"]) for n in range(76)]
    for start, end in ((0, 38), (38, 57), (57, 76)):
        await writer.write(documents[start:end])
    for number in (0, 40):
        await writer.delete(documents[number].document_id, Scope.everything())
        await merge.merge_all(database)
        assert store.rows("select count(*) from lexical_corrections") == [(0,)]
    assert max(size for (size,) in store.rows("select passages from lexical_segments")) <= 40
    monkeypatch.setattr(merge, "LARGEST", 30)
    await writer.delete(documents[1].document_id, Scope.everything())
    await merge.merge_all(database)
    assert store.rows("select count(*) from lexical_corrections") == [(0,)]


async def test_a_service_forgets_what_was_deleted(
    app: App, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(api_app, "FORGET_EVERY_S", 0.01)
    writer = PostgresWriter(app.database)
    await fill(app.database, random.Random(8))
    assert await writer.delete(indexed_document("toy:1", []).document_id, Scope.everything())
    store.rows("update lexical_corrections set created_at = created_at - interval '61 minutes'")
    store.rows("alter table lexical_corrections rename to hidden_corrections")
    forgetting = asyncio.create_task(api_app._forget_deleted(app))
    for _ in range(1_000):
        if "removed from the index later" in caplog.text:
            break
        await asyncio.sleep(0.01)
    store.rows("alter table hidden_corrections rename to lexical_corrections")
    for _ in range(1_000):
        if not store.rows("select 1 from lexical_corrections"):
            break
        await asyncio.sleep(0.01)
    await cancelled(forgetting)
    assert not store.rows("select 1 from lexical_corrections") and "removed from the index later" in caplog.text
