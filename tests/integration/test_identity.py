"""An index is used with the analyzer it was built with until `reindex`; vectors belong to the model that made them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from dtrag.adapters.postgres.connect import connect
from dtrag.app import App
from dtrag.core.documents import Vector
from dtrag.core.text.analysis import Analyzer
from dtrag.errors import IndexMismatch, InvalidInput
from dtrag.ingestion import ingest as ingestion
from dtrag.ports import Embedder, Models
from dtrag.settings import Settings
from tests.store import Store, graph_statement
from tests.toy import ToyEmbedder

TOY = ToyEmbedder()
OTHER = ToyEmbedder(id="toy@00000002", dim=12)
SHOUTING = Analyzer("shouting-1", more=lambda text: ["!" + word for word in text.split()])
REBUILDING = "The index is being rebuilt"


@asynccontextmanager
async def opened(
    settings: Settings, embedder: Embedder | None = None, analyzer: Analyzer = Analyzer()
) -> AsyncIterator[App]:
    """An app with a chosen embedder and analyzer."""
    async with (
        connect(settings) as database,
        App(settings, database, Models(embedder, analyzer)) as app,
    ):
        yield app


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Ten notes, three of them Korean."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(7):
        text = f"# Note {number}\n\nThe kettle of room {number} boils.\n\n## More\n\nThe valve is greased.\n"
        (folder / f"note{number}.md").write_text(text)
    for number in range(3):
        (folder / f"korean{number}.txt").write_text(f"휴학은 {number}학기까지 할 수 있다.\n", encoding="utf-8")
    return folder


def content(store: Store) -> list[tuple[object, ...]]:
    return store.rows(
        "select c.document_id, c.ordinal, c.start_offset, c.end_offset, c.text, c.breadcrumb, c.metadata, c.node_id,"
        " d.title, d.text, d.source_uri, d.source_id, d.metadata"
        " from chunks c join documents d using (document_id) order by 1, 2"
    )


@pytest.mark.parametrize("built_with", [TOY, None])
async def test_another_analyzer_is_refused(
    settings: Settings, store: Store, notes: Path, built_with: Embedder | None
) -> None:
    async with opened(settings, built_with) as app:
        await app.ingest(notes)
    before = content(store)
    async with opened(settings, built_with, SHOUTING) as app:
        for attempt in (app.search("kettle"), app.ingest(notes), app.ask("What boils?"), app.check_identity()):
            with pytest.raises(IndexMismatch, match=r"words-bigrams-1.*shouting-1.*dtrag reindex"):
                await attempt
    assert content(store) == before
    store.assert_whole()


async def test_another_embedder_replaces_the_vectors_and_reads_no_file(
    settings: Settings, store: Store, notes: Path
) -> None:
    async with opened(settings, TOY) as app:
        await app.ingest(notes)
    assert store.value("select count(*) from embeddings") == 14
    same = ToyEmbedder(id="toy@00000003")
    async with opened(settings, same) as app:
        results, metrics = await app.search("kettle")
        assert results and metrics.vectors_pending and metrics.vector_candidates == 0
        report = await app.ingest(notes)
        assert (report.documents, report.unchanged) == (0, 10)
        _, metrics = await app.search("kettle")
        assert (metrics.vector_candidates, metrics.vectors_pending) == (14, False)
    assert store.rows("select distinct s.id from embeddings e join vector_spaces s using (space)") == [(same.id,)]
    store.assert_whole()


async def test_reindex_takes_the_new_ones_and_keeps_the_documents(
    settings: Settings, store: Store, notes: Path
) -> None:
    async with opened(settings, TOY) as app:
        await app.ingest(notes, category="House")
        await app.delete_document((await app.documents())[0].document_id)
    assert store.value("select count(*) from pg_indexes where indexname = 'embeddings_hnsw'") == 0
    store.rows(graph_statement())
    before, vectors = content(store), store.value("select count(*) from embeddings")
    async with opened(settings, OTHER, SHOUTING) as app:
        done: list[int] = []
        assert await app.reindex(done.append) == 9
        assert done == [9]
        assert (await app.vectors.fill()).made == vectors
        results, metrics = await app.search("kettle")
        assert results and REBUILDING not in " ".join(metrics.notes)
        assert metrics.vector_candidates == vectors
        assert {result.taxonomy_path[0] for result in results} == {"House"}
    assert content(store) == before
    assert store.value("select distinct vector_dims(vec) from embeddings") == OTHER.dim
    assert store.value("select count(*) from embeddings") == vectors
    assert store.rows("select id, dim from vector_spaces") == [(OTHER.id, OTHER.dim)]
    assert store.value("select indexdef from pg_indexes where indexname = 'embeddings_hnsw'").endswith("='100')")
    store.assert_whole()
    async with opened(settings, TOY) as app:
        with pytest.raises(IndexMismatch):
            await app.search("kettle")


async def test_reindex_without_an_embedder_leaves_no_vectors(settings: Settings, store: Store, notes: Path) -> None:
    async with opened(settings, TOY) as app:
        await app.ingest(notes)
    async with opened(settings) as app:
        await app.reindex()
        assert (await app.search("kettle"))[0]
    assert store.value("select count(*) from embeddings") == 0
    store.assert_whole()


class _Interrupted(BaseException):
    """Somebody has lost patience."""


async def test_an_interrupted_reindex_is_reported_and_can_be_repeated(
    settings: Settings, store: Store, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingestion, "BATCH_DOCUMENTS", 4)
    async with opened(settings, TOY) as app:
        await app.ingest(notes)
        before = content(store)

        def lose_patience(done: int) -> None:
            if done == 8:
                raise _Interrupted

        with pytest.raises(_Interrupted):
            await app.reindex(lose_patience)
        assert content(store) == before
        assert store.value("select count(*) from documents where fingerprint = ''") == 2
        _, metrics = await app.search("kettle")
        assert any(note.startswith(REBUILDING) for note in metrics.notes)
        await app.reindex()
        _, metrics = await app.search("kettle")
        assert not any(note.startswith(REBUILDING) for note in metrics.notes)
    assert content(store) == before
    store.assert_whole()


async def test_after_reindex_a_file_is_known_again(settings: Settings, store: Store, notes: Path) -> None:
    async with opened(settings, TOY) as app:
        await app.ingest(notes)
        await app.reindex()
        report = await app.ingest(notes)
        assert (report.documents, report.failed) == (0, [])
    assert store.value("select count(*) from documents") == 10
    store.assert_whole()


async def test_an_index_without_vectors_meets_an_embedder(settings: Settings, store: Store, notes: Path) -> None:
    """Search goes on by words; the next ingest makes the vectors, of the languages the embedder speaks."""
    async with opened(settings) as app:
        await app.ingest(notes)
    async with opened(settings, TOY) as app:
        results, metrics = await app.search("kettle")
        assert results and metrics.vector_candidates == 0
        assert metrics.vectors_pending
        report = await app.ingest(notes)
        assert (report.documents, report.unchanged) == (0, 10)
        _, metrics = await app.search("kettle")
        assert metrics.vector_candidates == 14
        _, metrics = await app.search("휴학")
        assert "does not support" in metrics.notes[0]
    languages = store.rows(
        "select d.language, count(e.ordinal) from documents d left join embeddings e using (document_id) group by 1"
    )
    assert sorted(languages) == [("en", 14), ("ko", 0)]
    store.assert_whole()


async def test_without_an_embedder_the_vectors_stay(settings: Settings, store: Store, notes: Path) -> None:
    async with opened(settings, TOY) as app:
        await app.ingest(notes)
    async with opened(settings) as app:
        results, metrics = await app.search("kettle")
        assert results and "lexical search only" in metrics.notes[0]
    assert store.value("select count(*) from embeddings") == 14


@dataclass(frozen=True)
class Liar(ToyEmbedder):
    """Declares more dimensions than its vectors have."""

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        return super().embed_documents(texts)[:, :5]


async def test_the_embedder_must_return_its_declared_dimensions(settings: Settings, store: Store, notes: Path) -> None:
    """Vectors of another length than declared are refused by the database; the documents are found by words."""
    async with opened(settings, Liar()) as app:
        with pytest.raises(InvalidInput, match="expected 8 dimensions, not 5"):
            await app.ingest(notes)
        assert (await app.search("kettle", mode="lexical"))[0]
    assert store.value("select count(*) from documents") == 10
    async with opened(settings, TOY) as app:
        await app.ingest(notes)
    assert store.value("select count(*) from embeddings") == 14
    store.assert_whole()
