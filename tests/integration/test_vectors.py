"""Vectors follow: made while others write, after an upgrade, after failures, and by one process at a time."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.database import Database
from dtrag.app import App, open_app
from dtrag.assembly import JobTurns
from dtrag.core.access.scope import EVERYTHING
from dtrag.core.documents import Vector
from dtrag.errors import EmbedderFailed, LeaseLost, StorageFull
from dtrag.ports import Embedder, Models
from dtrag.settings import Settings
from tests.integration.conftest import MakeCli
from tests.model_server import ModelServer
from tests.store import Databases, Store
from tests.toy import ToyEmbedder, lines

TOY = ToyEmbedder(languages=frozenset({"*"}))
DOWNGRADE = """
drop table sentence_vectors;
alter table embeddings drop column space;
update embeddings set change = 0;
drop table vector_spaces;
drop table waiting_documents;
delete from index_settings where name in ('vectors', 'spaces', 'sources_read_with');
insert into index_settings values ('embedder', '{"id": "toy@00000001", "dim": 8}');
delete from migrations where name ~ '^00(20|23|26)';
"""
"""What a release before 0020 has."""


@asynccontextmanager
async def opened(settings: Settings, embedder: Embedder | None = TOY) -> AsyncIterator[App]:
    """An app with a chosen embedder."""
    async with connect(settings) as database, App(settings, database, Models(embedder)) as app:
        yield app


@dataclass(frozen=True)
class Unsteady(ToyEmbedder):
    """Fails for its first calls."""

    languages: frozenset[str] = frozenset({"*"})
    failures: list[Exception] = field(default_factory=list)

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        if self.failures:
            raise self.failures.pop()
        return super().embed_documents(texts)


async def problem_of(app: App) -> str:
    """Why the vectors cannot be made at the moment."""
    return next((count.reason for count in await app.jobs.counts() if count.reason), "")


async def complete(app: App) -> None:
    """Wait until no passage waits for a vector."""
    async with asyncio.timeout(60):
        while await app.pending_vectors():  # noqa: ASYNC110 - another task changes the database, as a process would
            await asyncio.sleep(0.05)


async def test_an_ingest_is_acknowledged_before_its_vectors(settings: Settings, store: Store, tmp_path: Path) -> None:
    async with opened(settings) as app:
        report = await app.ingest(lines(tmp_path / "notes.jsonl", 100), wait=False)
        assert report.documents == 100
        assert store.value("select count(*) from embeddings") == 0
        results, metrics = await app.search("kettle")
        assert results and metrics.vectors_pending
        before = {result.chunk_id: result.hybrid_score for result in results}
        made = list[tuple[int, int]]()
        assert (await app.vectors.fill(lambda *progress: made.append(progress))).made == 100
        assert made == [(64, 36), (100, 0)]
        results, metrics = await app.search("kettle")
        assert not metrics.vectors_pending and not metrics.cache_hit
        for result in results:
            if result.chunk_id in before:
                assert result.hybrid_score >= before[result.chunk_id] - 1e-6, "a vector adds to a score"
    store.assert_whole()


async def test_an_index_of_an_earlier_release_keeps_its_vectors_and_reads_no_file_again(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    path = lines(tmp_path / "notes.jsonl", 100)
    async with opened(settings) as app:
        async with app.database.connection("owner") as connection:
            await connection.execute("""insert into index_settings values ('sources_read_with', '"toy@00000001"')""")
        await app.ingest(path)
    for statement in DOWNGRADE.strip().split(";\n"):
        store.rows(statement)
    written = store.rows("select document_id, ordinal, xmin::text from embeddings order by 1, 2")
    assert len(written) == 100
    async with opened(settings) as app:
        assert (await app.search("kettle", mode="vector"))[0]
        report = await app.ingest(path)
        assert (report.documents, report.unchanged) == (0, 1)
        assert await app.pending_vectors() == 0
        assert not (await app.search("kettle"))[1].vectors_pending
    assert store.rows("select document_id, ordinal, xmin::text from embeddings order by 1, 2") == written
    store.assert_whole()


async def test_documents_that_change_while_vectors_are_made(settings: Settings, store: Store, tmp_path: Path) -> None:
    chance = random.Random(7)
    path = lines(tmp_path / "notes.jsonl", 200)
    async with opened(settings) as app:
        await app.ingest(path, category="Here", wait=False)
        filling = [asyncio.create_task(app.vectors.fill(sentences=True)) for _ in range(2)]
        keys = [document.document_id for document in await app.documents(1_000)]
        for key in chance.sample(keys, 40):
            await app.delete_document(key)
        operations: list[dict[str, object]] = [
            {"op": "add", "path": "There"},
            {"op": "merge", "paths": ["Here"], "into": "There"},
        ]
        version = await app.taxonomy.propose(operations, "A move.")
        await app.taxonomy.activate(version.version)
        lines(path, 200, seed=2)
        await app.ingest(path, category="There", wait=False)
        await asyncio.gather(*filling)
        await app.vectors.fill(sentences=True)
        assert await app.pending_vectors() == 0
        query, keys = TOY.embed_queries(["kettle"])[0], [f"{each.document_id}:0" for each in await app.documents(1_000)]
        cosines = await app.index.vector_scores(query, TOY.id, keys, EVERYTHING)
        for key, passage in (await app.index.fetch(keys, EVERYTHING, (await app.index.snapshot()).taxonomy)).items():
            [vector] = TOY.embed_documents([f"{passage.title}\n{passage.text}"])
            assert cosines[key] == pytest.approx(float(vector @ query), abs=0.01), "the vector is that of the new text"
    for table in ("embeddings", "sentence_vectors", "chunks"):
        assert store.value(f"select count(*) from {table}") == 200
    store.assert_whole()


@pytest.mark.parametrize("failure", [EmbedderFailed(name="toy", reason="it is away."), RuntimeError("odd")])
async def test_a_failing_model_pauses_a_service_which_continues(
    settings: Settings, store: Store, tmp_path: Path, failure: Exception
) -> None:
    embedder = Unsteady(failures=[failure])
    async with opened(settings, embedder) as app:
        serving = asyncio.create_task(app.jobs.serve(tmp_path))
        await app.ingest(lines(tmp_path / "notes.jsonl", 10), wait=False)
        async with asyncio.timeout(30):
            while not (problem := await problem_of(app)):  # noqa: ASYNC110 - the service stores it
                await asyncio.sleep(0.01)
        assert "away" in problem or "RuntimeError" in problem
        assert (await app.search("kettle"))[0]
        await complete(app)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
    assert store.value("select count(*) from embeddings") == 10


async def test_a_full_disk_pauses_a_service_which_continues(
    settings: Settings, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(settings) as app:
        await app.ingest(lines(tmp_path / "notes.jsonl", 10), wait=False)

        def full(self: Database, adding: int = 0) -> None:
            raise StorageFull("The disk is full.")

        with monkeypatch.context() as disk:
            disk.setattr(Database, "require_space", full)
            serving = asyncio.create_task(app.jobs.serve(tmp_path))
            async with asyncio.timeout(30):
                while not await problem_of(app):  # noqa: ASYNC110 - the service stores it
                    await asyncio.sleep(0.01)
            assert await problem_of(app) == "The disk is full."
            assert store.value("select count(*) from embeddings") == 0
        await complete(app)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def test_a_second_process_continues_when_the_first_ends(settings: Settings, tmp_path: Path) -> None:
    async with opened(settings) as app, opened(settings) as other:
        await app.ingest(lines(tmp_path / "notes.jsonl", 10), wait=False)
        async with app.jobs.held("vectors") as held:
            assert held is not None
            async with app.jobs.held("vectors") as second:
                assert second is None, "one at a time"
            filling = asyncio.create_task(other.vectors.fill())
            await asyncio.sleep(0.2)
            assert not filling.done()
        async with asyncio.timeout(30):
            assert (await filling).made == 10


async def test_a_service_makes_the_vectors_of_other_processes(settings: Settings, tmp_path: Path) -> None:
    async with opened(settings) as service, opened(settings) as command:
        serving = asyncio.create_task(service.jobs.serve(tmp_path))
        async with asyncio.timeout(30):
            while not await command.jobs.store.served("vectors"):  # noqa: ASYNC110 - the service stores it
                await asyncio.sleep(0.02)
        await command.ingest(lines(tmp_path / "notes.jsonl", 10), wait=False)
        filled = await command.vectors.fill()
        assert filled.made == 0
        assert filled.served == (filled.pending > 0)
        await complete(command)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        assert await problem_of(command) == ""
        assert not await command.jobs.store.served(), "a service that stops says so"


async def test_a_process_that_lost_its_turn_stores_no_vector(settings: Settings, store: Store, tmp_path: Path) -> None:
    async with opened(settings) as app, opened(settings) as other:
        await app.ingest(lines(tmp_path / "notes.jsonl", 10), wait=False)
        async with JobTurns(app.jobs, app._fenced).take() as stalled:
            assert stalled is not None
            store.rows("update jobs set lease_until = now() - interval '1 second'")
            async with other.jobs.held("vectors") as held:
                assert held is not None
                with pytest.raises(LeaseLost):
                    await app.vectors.make(stalled)
        assert store.value("select count(*) from embeddings") == 0
        assert (await other.vectors.fill()).made == 10


def test_the_command_line_makes_vectors_or_leaves_them(make_cli: MakeCli, tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("# Kettle\n\nThe kettle has a valve.\n", encoding="utf-8")
    (tmp_path / "leave.md").write_text("# Leave\n\nLeave is granted in summer.\n", encoding="utf-8")
    cli = make_cli(DTRAG_EMBEDDER="auto")
    left = cli.call("ingest", str(tmp_path / "note.md"), "--no-wait")
    assert "Found by words now" in left.err
    assert "still to be made" in cli.call("documents").err
    assert "wait for their vectors" in cli.call("doctor").out
    report = json.loads(cli.call("ingest", str(tmp_path), "--json").out)
    assert (report["documents"], report["vectors_pending"]) == (1, 0)
    assert json.loads(cli.call("documents", "--json").out)["total"]["vectors_pending"] == 0


async def test_documents_are_found_by_vectors_of_a_server(databases: Databases, tmp_path: Path) -> None:
    (tmp_path / "refunds.md").write_text("Refunds are paid within ten working days.", "utf-8")
    with ModelServer() as server:
        async with open_app(databases.settings(embedder="openai", embed_base_url=server.url)) as app:
            await app.ingest([tmp_path / "refunds.md"])
            results, metrics = await app.search("money back")
    assert metrics.degraded == ()
    assert (metrics.bm25_candidates, metrics.vector_candidates) == (0, 1)
    assert results[0].vector_score > 0.5
