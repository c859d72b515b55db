"""Postings from mapped files: the passages and scores of the pages to the last bit, whatever happens to the files."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.index_reader import PostgresIndex
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.adapters.postgres.lexical import merge, posting_files
from dtrag.app import App
from dtrag.core.access.scope import Scope, SearchFilters
from dtrag.core.ranking.bm25 import LexicalQuery
from dtrag.core.ranking.segments import DOCUMENTS
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.text.questions import weighted_terms
from dtrag.delivery.api import app as api_app
from dtrag.delivery.api.request_tasks import cancelled
from dtrag.settings import Settings
from tests.builders import indexed_document
from tests.rounds import seeds
from tests.store import Store
from tests.toy import sentence

NO_FILTERS = SearchFilters()
CATEGORIES = [CategoryPath.parse(path) for path in ("A", "A/B", "C", "C/D")]
DAYS = (None, date(2020, 1, 1), date(2023, 1, 1))


@pytest.fixture(autouse=True)
def every_segment_has_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a small one, so that the other way is that of pages and cache."""
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
    assert len(index._postings._tables) == len(index._postings._segments) > 0
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
async def test_files_and_pages_give_the_same_bits(
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
    by_files, by_pages = await ready(PostgresIndex(database)), PostgresIndex(without_files)
    await by_pages.snapshot()
    assert not by_pages._postings._tables and not by_files._postings._postings
    scopes = [Scope.everything(), *(Scope(frozenset(nodes[:count])) for count in range(4))]
    assert by_files._postings.hides(replace(scopes[0], as_of=DAYS[1])) == dated
    compared = 0
    for _ in range(40):
        text, limit = sentence(chance, chance.randint(1, 8)), chance.randint(1, 60)
        for scope in scopes:
            as_of = replace(scope, as_of=chance.choice(DAYS))
            expected = await answers(by_pages, text, as_of, limit)
            assert await answers(by_files, text, as_of, limit) == expected
            compared += bool(expected[1])
    assert compared > 100
    assert not by_files._postings._postings, "no page was read"
    assert by_pages._postings._postings


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
    by_pages = PostgresIndex(without_files)
    await by_pages.snapshot()
    texts = [sentence(chance, 4) for _ in range(10)]
    expected = [await answers(by_pages, text, Scope.everything(), 20) for text in texts]
    path = max(folder_of(database).iterdir(), key=lambda file: file.stat().st_size)
    DAMAGES[damage](path)
    if damage == "a link":
        path.symlink_to("../elsewhere")
    fresh = PostgresIndex(database)
    await fresh.snapshot()
    assert [await answers(fresh, text, Scope.everything(), 20) for text in texts] == expected, "while it is missing"
    await ready(fresh)
    assert [await answers(fresh, text, Scope.everything(), 20) for text in texts] == expected
    assert not (await ready(PostgresIndex(database)))._postings._postings


@pytest.mark.parametrize("cut", [False, True], ids=["overwritten", "cut"])
async def test_a_file_that_is_changed_while_it_is_mapped_is_not_used(
    database: Database, without_files: Database, cut: bool
) -> None:
    chance = random.Random(1)
    await fill(database, chance)
    by_files, by_pages = await ready(PostgresIndex(database)), PostgresIndex(without_files)
    await by_pages.snapshot()
    texts = [sentence(chance, 4) for _ in range(10)]
    expected = [await answers(by_pages, text, Scope.everything(), 20) for text in texts]
    for path in folder_of(database).iterdir():
        with path.open("r+b") as file:
            if cut:
                file.truncate(64)
            else:
                file.seek(path.stat().st_size // 2)
                file.write(b"\x01" * (path.stat().st_size // 3))
    assert [await answers(by_files, text, Scope.everything(), 20) for text in texts] == expected
    assert [await answers(await ready(by_files), text, Scope.everything(), 20) for text in texts] == expected


async def test_files_of_an_earlier_formula_are_made_again(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(database, random.Random(2))
    with monkeypatch.context() as earlier:
        earlier.setattr(posting_files, "_FORMULA", [1.2, 0.75, 0.25])
        await posting_files.make_files(database)
    index = PostgresIndex(database)
    await index.snapshot()
    assert not index._postings._tables
    await ready(index)


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


async def test_without_a_writable_folder_everything_works(
    database: Database, without_files: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(4)
    await fill(database, chance)
    folder_of(database).parent.mkdir(mode=0o700, exist_ok=True)
    folder_of(database).write_text("a file is in the way")
    index, by_pages = PostgresIndex(database), PostgresIndex(without_files)
    for reader in (index, by_pages):
        await reader.snapshot()
        if reader._postings._making is not None:
            await reader._postings._making
    text = sentence(chance, 5)
    assert await answers(index, text, Scope.everything(), 20) == await answers(by_pages, text, Scope.everything(), 20)
    assert caplog.text.count("no search files in") == 1
    await PostgresWriter(database).write([indexed_document("toy:last", ["kettle"])])
    await index.snapshot()
    assert index._postings._making is not None and index._postings._making.done(), "tried again after ten minutes"


async def test_pages_that_cannot_be_read_end_the_making_of_files_and_are_logged(
    database: Database, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    await fill(database, random.Random(4))
    store.rows("alter table posting_pages rename to hidden_pages")
    index = PostgresIndex(database)
    await index.snapshot()
    assert index._postings._making is not None
    await index._postings._making
    assert "could not be made" in caplog.text and not index._postings._tables
    store.rows("alter table hidden_pages rename to posting_pages")
    await index.snapshot()
    assert list(await answers(index, "kettle refund 휴학", Scope.everything(), 20))[1]


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
async def main():
    settings = Settings.load(environ={}, data_dir=Path(sys.argv[1]), database_name=sys.argv[2], embedder="none")
    async with connect(settings) as database:
        index = PostgresIndex(database)
        statistics = (await index.snapshot()).statistics
        if index._postings._making:
            await index._postings._making
        query = LexicalQuery.of(weighted_terms(sys.argv[3]), statistics)
        found = await index.lexical(query, Scope.everything(), SearchFilters(), 50)
        print(json.dumps([len(index._postings._tables), list(found.items())]))
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
    assert expected and outputs == [[3, [list(pair) for pair in expected]]] * 3
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
