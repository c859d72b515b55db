"""Vectors searched in mapped files: as PostgreSQL gives them, whatever happens to documents, vectors and files."""

from __future__ import annotations

import random
import shutil
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dtrag.adapters.postgres import index_reader, vector_blocks, vector_reader
from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.index_reader import PostgresIndex
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.adapters.postgres.stores.vectors import PostgresVectors
from dtrag.app import App, open_app
from dtrag.core.access.scope import EVERYTHING, NO_FILTERS, Scope, SearchFilters
from dtrag.core.ranking import nearest
from dtrag.errors import DatabaseUnavailable
from dtrag.ingestion.vectors import VectorFiller
from dtrag.settings import Settings
from tests.builders import indexed_document
from tests.rounds import seeds
from tests.store import Store
from tests.toy import ENGLISH, ToyEmbedder, sentence

TOY = ToyEmbedder(dim=64, languages=frozenset({"*"}))
OTHER = ToyEmbedder(id="toy@00000002", dim=64, languages=frozenset({"*"}))
PRECISION = 1e-4
"""Numbers of a row are multiples of 1/32,767 of its largest one, which is large in these vectors."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and statements of a few vectors; PostgreSQL compares all of them."""
    for name, value in {"READ_AT_ONCE": 40, "WRITTEN_FROM": 16, "FILLED_AT_ONCE": 24}.items():
        monkeypatch.setattr(vector_reader, name, value)
    monkeypatch.setattr(vector_blocks, "LARGEST", 100)
    monkeypatch.setattr(index_reader, "EXACT_BELOW", 10**9)


@dataclass
class Library:
    """A database, an index over its files that lives long, and what PostgreSQL says."""

    app: App
    reference: PostgresIndex
    index: PostgresIndex
    chance: random.Random
    nodes: list[int]
    versions: dict[int, int]

    @property
    def folder(self) -> Path:
        """That of the files of this database."""
        files = self.app.database.files
        assert files is not None
        return files._parent / files._identity

    async def write(self, numbers: range) -> None:
        documents = []
        for number in numbers:
            version = self.versions[number] = self.versions.get(number, -1) + 1
            texts = [sentence(self.chance, 6) + f" serial{number}" for _ in range(self.chance.randint(1, 3))]
            node, kind = self.chance.choice(self.nodes), self.chance.choice("ab")
            documents.append(
                indexed_document(f"toy:{number}", texts, node_id=node, metadata={"kind": kind}, replaces=version > 0)
            )
        await PostgresWriter(self.app.database).write(documents)

    async def fill(self, embedder: ToyEmbedder = TOY) -> None:
        await VectorFiller(PostgresVectors(self.app.database), embedder).fill()

    async def delete(self, count: int) -> None:
        documents = await self.app.documents(1_000)
        for document in self.chance.sample(documents, min(count, len(documents))):
            await PostgresWriter(self.app.database).delete(uuid.UUID(document.document_id), EVERYTHING)

    async def check(self, *indexes: PostgresIndex, space: str = TOY.id, rounds: int = 12) -> None:
        """Nearest passages and scores of passages, in random scopes and with filters."""
        indexes = indexes or (self.index,)
        for index in (self.reference, *indexes):
            await settled(index)
        for _ in range(rounds):
            [query] = TOY.embed_queries([" ".join(self.chance.choices(ENGLISH, k=3))])
            scope = self.chance.choice([EVERYTHING, Scope(frozenset(self.chance.sample(self.nodes, 2)))])
            filters = self.chance.choice([NO_FILTERS, SearchFilters(metadata=(("kind", "a"),))])
            limit = self.chance.choice([1, 10, 60])
            expected = await self.reference.vectors(query, space, scope, filters, 10_000)
            for index in indexes:
                found = await index.vectors(query, space, scope, filters, limit)
                assert list(found.values()) == pytest.approx(list(expected.values())[:limit], abs=PRECISION)
                assert list(found.values()) == sorted(found.values(), reverse=True)
                for name, score in found.items():
                    assert score == pytest.approx(expected[name], abs=PRECISION)
                names = [*self.chance.sample(sorted(expected), min(20, len(expected))), f"{uuid.uuid4()}:0"]
                scores = await index.vector_scores(query, space, names, scope)
                assert scores == pytest.approx(
                    await self.reference.vector_scores(query, space, names, scope), abs=PRECISION
                )
                assert scores.keys() == set(names[:-1])


async def settled(index: PostgresIndex) -> None:
    """Read the newest state, and wait for the work in the background."""
    await index.snapshot()
    while (task := index._vectors._storing) is not None:
        await task
    await index.snapshot()


@asynccontextmanager
async def fresh(database: Database, *, files: bool = True) -> AsyncIterator[PostgresIndex]:
    index = PostgresIndex(database)
    try:
        await settled(index)
        assert index._vectors._complete == files
        yield index
    finally:
        await index.close()


@asynccontextmanager
async def library(settings: Settings, seed: int) -> AsyncIterator[Library]:
    async with open_app(settings) as app, connect(settings) as plain, fresh(app.database) as index:
        plain.files = None
        chance = random.Random(seed)
        version = await app.taxonomy.propose([{"op": "add", "path": f"Branch {n}"} for n in range(5)], "Branches.")
        await app.taxonomy.activate(version.version)
        taxonomy = (await index.snapshot()).taxonomy
        nodes = list(taxonomy.nodes)
        yield Library(app, PostgresIndex(plain), index, chance, nodes, {})


@pytest.mark.parametrize("seed", seeds(2))
async def test_results_are_those_of_the_database(settings: Settings, seed: int) -> None:
    async with library(settings, seed) as there:
        for step in range(6):
            start = there.chance.randrange(0, 60)
            await there.write(range(start, start + there.chance.randint(5, 40)))
            if step % 2:
                await there.delete(6)
            if step != 3:
                await there.fill()
            if step == 4:
                await PostgresWriter(there.app.database).tidy()
            async with fresh(there.app.database) as newcomer:
                await there.check(there.index, newcomer)
        assert there.index._vectors._blocks, "files were used"
        sizes = [len(block) for block in there.index._vectors._blocks]
        assert vector_blocks.to_merge(sizes) == 0


async def test_a_moved_document_is_in_its_new_branch_only(settings: Settings) -> None:
    async with library(settings, 3) as there:
        await there.write(range(40))
        await there.fill()
        await there.check()
        operations = [{"op": "merge", "paths": ["Branch 0"], "into": "Branch 1"}]
        version = await there.app.taxonomy.propose(operations, "A move.")
        await there.app.taxonomy.activate(version.version)
        await there.check(rounds=30)


async def test_expired_passages_are_not_returned(settings: Settings, store: Store) -> None:
    async with library(settings, 4) as there:
        await there.write(range(30))
        await there.fill()
        await there.check()
        store.rows(
            "insert into passage_validity (document_id, first, last, valid_from, valid_until)"
            " select document_id, 0, 0, date '2000-01-01', date '2001-01-01' from documents limit 12"
        )
        store.rows("update index_settings set value = to_jsonb(value::text::bigint + 1) where name = 'generation'")
        [query] = TOY.embed_queries(["kettle"])
        await there.check(rounds=20)
        found = await there.index.vectors(query, TOY.id, EVERYTHING, NO_FILTERS, 1_000)
        assert len(found) == store.value("select count(*) from embeddings") - 12


async def test_vectors_of_another_model_replace_those_before(settings: Settings) -> None:
    async with library(settings, 5) as there:
        await there.write(range(40))
        await there.fill()
        await there.check()
        vectors = PostgresVectors(there.app.database)
        await vectors.assign(dict.fromkeys(await vectors.languages(), OTHER))
        batch = await vectors.waiting(20)
        assert batch is not None
        made = OTHER.embed_documents([passage.text for passage in batch.passages])
        await vectors.put(batch, list(made))
        for space in (TOY.id, OTHER.id):
            async with fresh(there.app.database) as newcomer:
                await there.check(there.index, newcomer, space=space)
        await there.fill(OTHER)
        await there.check(space=OTHER.id)
        await there.check(space=TOY.id)
        await there.fill(ToyEmbedder(id=OTHER.id, dim=64, languages=frozenset({"en"})))
        await there.check(space=OTHER.id)
        wide = ToyEmbedder(id="toy@00000003", dim=128, languages=frozenset({"*"}))
        await there.fill(wide)
        [query] = wide.embed_queries(["kettle"])
        await settled(there.index)
        found = await there.index.vectors(query, wide.id, EVERYTHING, NO_FILTERS, 10)
        expected = await there.reference.vectors(query, wide.id, EVERYTHING, NO_FILTERS, 10)
        assert list(found.values()) == pytest.approx(list(expected.values()), abs=PRECISION)


def removed(folder: Path) -> None:
    shutil.rmtree(folder)


def replace(path: Path, content: bytes) -> None:
    path.unlink()  # other processes have mapped it
    path.write_bytes(content)
    path.chmod(0o600)


def cut(folder: Path) -> None:
    for path in folder.glob("vectors-*"):
        replace(path, path.read_bytes()[:-100])


def foreign(folder: Path) -> None:
    """Each file has the content of another one."""
    paths = sorted(folder.glob("vectors-*"))
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, [*contents[1:], b""], strict=True):
        replace(path, content)


def first_missing(folder: Path) -> None:
    max(folder.glob("vectors-*"), key=lambda path: path.stat().st_size).unlink()


@pytest.mark.parametrize("harm", [removed, cut, foreign, first_missing])
async def test_harmed_files_are_made_again(settings: Settings, harm: Callable[[Path], None]) -> None:
    async with library(settings, 6) as there:
        for start in (0, 40, 60, 70):
            await there.write(range(start, start + 30))
            await there.fill()
            await there.check(rounds=2)
        folder = there.folder
        assert len(list(folder.glob("vectors-*"))) > 1
        harm(folder)
        async with fresh(there.app.database) as newcomer:
            await there.check(there.index, newcomer)
            assert newcomer._vectors._blocks


@pytest.mark.parametrize("cut", [False, True], ids=["overwritten", "cut"])
async def test_files_that_are_changed_while_they_are_mapped_are_not_used(settings: Settings, cut: bool) -> None:
    async with library(settings, 6) as there:
        await there.write(range(60))
        await there.fill()
        await there.check(rounds=2)
        for path in there.folder.glob("vectors-*"):
            with path.open("r+b") as file:
                if cut:
                    file.truncate(64)
                else:
                    file.seek(path.stat().st_size // 2)
                    file.write(b"\x01" * (path.stat().st_size // 3))
        [query] = TOY.embed_queries(["a machine"])
        expected = await there.reference.vectors(query, TOY.id, EVERYTHING, NO_FILTERS, 10)
        assert list((await there.index.vectors(query, TOY.id, EVERYTHING, NO_FILTERS, 10)).values()) == pytest.approx(
            list(expected.values()), abs=PRECISION
        )
        await there.check()
        assert there.index._vectors._complete


async def test_signs_of_all_blocks_are_taken_from_one_centre(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block of few vectors has no centre of its own, and distances by two centres do not compare."""
    monkeypatch.setattr(nearest, "CENTRED_FROM", 30)
    async with library(settings, 6) as there:
        for start, end in ((0, 60), (60, 70), (70, 75)):
            await there.write(range(start, end))
            await there.fill()
            await there.check(rounds=2)
        async with fresh(there.app.database) as newcomer:
            await there.check(there.index, newcomer)
            for index in (there.index, newcomer):
                placed = index._vectors._placed
                assert placed is not None and len(placed.blocks) > 1
                [parts] = placed.parts.values()
                [centre] = {part.vectors.centre.tobytes() for part in parts}
                assert any(centre)


async def test_reading_that_failed_is_tried_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_reader, "RETRY_S", 0.0)
    async with library(settings, 6) as there:
        await there.write(range(60))
        await there.fill()
        read, failures = vector_reader._read, [DatabaseUnavailable(reason="gone.")]

        async def failing(*arguments: Any) -> Any:
            if arguments[3] == vector_reader.FILLED_AT_ONCE and failures:
                raise failures.pop()
            return await read(*arguments)

        monkeypatch.setattr(vector_reader, "_read", failing)
        newcomer = PostgresIndex(there.app.database)
        await settled(newcomer)
        states = [newcomer._vectors._complete]
        await there.check(newcomer, rounds=2)
        await settled(newcomer)
        assert not failures and [*states, newcomer._vectors._complete] == [False, True]
        await there.check(newcomer)
        await newcomer.close()


async def test_the_database_is_searched_where_no_file_can_be_written(settings: Settings) -> None:
    async with library(settings, 7) as there:
        await there.write(range(40))
        await there.fill()
        folder = there.folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.write_text("in the way")
        async with fresh(there.app.database, files=False) as newcomer:
            await there.check(newcomer, rounds=4)
        folder.unlink()
        async with fresh(there.app.database) as newcomer:
            await there.check(newcomer, rounds=4)


async def test_vectors_of_deleted_documents_leave_the_files(settings: Settings, store: Store) -> None:
    async with library(settings, 8) as there:
        await there.write(range(60))
        await there.fill()
        await there.check(rounds=2)
        folder = there.folder
        gone = uuid.UUID(there.chance.choice(await there.app.documents(1_000)).document_id)
        halves = [part.to_bytes(8, "little") for part in (gone.int >> 64, gone.int & (2**64 - 1))]

        def present() -> bool:
            contents = [path.read_bytes() for path in folder.glob("vectors-*")]
            return any(half in content for content in contents for half in halves)

        assert present()
        await PostgresWriter(there.app.database).delete(gone, EVERYTHING)
        await there.app.index.forget_deleted()
        assert present(), "a file is written again once its document has left the segments"
        store.rows("update lexical_corrections set created_at = created_at - interval '61 minutes' returning 1")
        await there.app.forget_deleted()
        assert not present()
        before = {path: path.stat().st_ino for path in folder.glob("vectors-*")}
        await there.app.forget_deleted()
        assert {path: path.stat().st_ino for path in folder.glob("vectors-*")} == before, "nothing else is written"
        await there.check()
        async with fresh(there.app.database) as newcomer:
            await there.check(newcomer)


async def test_files_of_another_history_are_not_used(settings: Settings, store: Store) -> None:
    """A copy of the database was put back: what came after it came a second time, otherwise."""
    async with library(settings, 9) as there:
        await there.write(range(30))
        await there.fill()
        await there.check(rounds=1)
        store.rows("update embeddings set change = 1")
        store.rows("update index_settings set value = '1' where name = 'vectors'")
        async with fresh(there.app.database) as newcomer:
            await there.check(newcomer, rounds=3)
            await there.write(range(30, 60))
            await there.fill()
            await there.check(newcomer, rounds=3)
