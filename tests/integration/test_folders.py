"""Folders and the index stay in step: what is gone goes, a renamed file keeps its state, nothing else is touched."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.app import App
from dtrag.core.access.confinement import OWNER
from dtrag.core.access.scope import Scope
from dtrag.core.documents import Vector, document_id
from dtrag.errors import InvalidInput
from dtrag.ingestion.sources import Source
from dtrag.ports import Models
from dtrag.settings import Settings
from tests.integration.books import shelf
from tests.store import Store
from tests.toy import ToyEmbedder


class CountingEmbedder(ToyEmbedder):
    """Remembers what it was asked to embed."""

    texts: list[str] = []  # noqa: RUF012 - a frozen dataclass: emptied by each test

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        self.texts.extend(texts)
        return super().embed_documents(texts)


@asynccontextmanager
async def opened(settings: Settings, embedder: ToyEmbedder | None = None) -> AsyncIterator[App]:
    async with (
        connect(settings) as database,
        App(settings, database, Models(embedder)) as app,
    ):
        yield app


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "docs"
    path.mkdir()
    for name in ("boiler", "garden", "stairs", "kettle"):
        (path / f"{name}.md").write_text(f"# About the {name}\n\nThe {name} is looked after on Monday.\n")
    return path


async def paths(app: App) -> list[str]:
    return sorted(summary.source_url for summary in await app.documents())


def files_of(folder: Path) -> list[str]:
    return sorted(path.as_uri() for path in folder.iterdir())


def rename_all(folder: Path) -> None:
    for file in list(folder.rglob("*.md")):
        file.rename(file.with_suffix(".hidden"))


async def test_documents_of_deleted_files_are_removed_and_no_others(app: App, store: Store, folder: Path) -> None:
    neighbour = folder.with_name("docs2")
    neighbour.mkdir()
    (neighbour / "boiler.md").write_text("# Another boiler\n\nIn the other folder.\n")
    (neighbour / "outside.md").write_text("# Outside\n\nReached by a link.\n")
    (folder / "linked.md").symlink_to(neighbour / "outside.md")
    upload = folder.parent / "upload.md"
    upload.write_text("# Uploaded\n\nSent over HTTP.\n")
    await app.ingest([folder, neighbour])
    await app.ingest_sources([Source(upload, "boiler.md", "upload:boiler.md")])
    before = await paths(app)

    (folder / "boiler.md").unlink()
    (folder / "linked.md").unlink()
    (neighbour / "boiler.md").unlink()
    (neighbour / "outside.md").unlink()
    report = await app.ingest(folder, prune=True)
    gone = (folder / "boiler.md").as_uri()
    assert await paths(app) == [path for path in before if path != gone]
    assert (report.removed, report.pruned, report.unchanged) == (1, [str(folder / "boiler.md")], 3)
    results, _ = await app.search("boiler monday", mode="lexical")
    assert "About the boiler" not in [result.title for result in results]
    store.assert_whole()
    [row] = [row for row in await app.audit.newest() if row.entry.action == "documents.prune"]
    assert (row.entry.actor, list(row.entry.subjects)) == ("local", [str(document_id(gone))])
    assert (await app.ingest(folder, prune=True)).removed == 0


async def test_without_prune_nothing_is_removed(app: App, folder: Path) -> None:
    await app.ingest(folder)
    before = await paths(app)
    (folder / "boiler.md").unlink()
    assert (await app.ingest(folder)).pruned == []
    assert await paths(app) == before


async def test_a_renamed_file_keeps_its_vectors_and_category(settings: Settings, store: Store, folder: Path) -> None:
    async with opened(settings, embedder := CountingEmbedder()) as app:
        embedder.texts.clear()
        await app.ingest(folder, "House/Machines")
        await app.vectors.fill(sentences=True)
        vectors = store.rows("select vec::text from embeddings order by 1")
        sentences = store.rows("select vectors from sentence_vectors order by 1")
        assert sentences
        embedder.texts.clear()
        (folder / "deep").mkdir()
        (folder / "kettle.md").rename(folder / "deep" / "electric kettle.md")
        plan = await app.plan_prune(folder)
        assert (plan.added, plan.removed, plan.refusal) == ([], [], "")
        report = await app.ingest(folder, "House/Machines", prune=True)
        new = folder / "deep" / "electric kettle.md"
        assert report.renamed == [(str(folder / "kettle.md"), str(new))]
        assert (report.documents, report.removed, report.unchanged) == (0, 0, 4)
        assert embedder.texts == []
        assert store.rows("select vec::text from embeddings order by 1") == vectors
        await app.vectors.fill(sentences=True)
        assert embedder.texts == []
        assert store.rows("select vectors from sentence_vectors order by 1") == sentences
        assert store.rows(
            "select d.title, d.document_id, d.source_path, s.documents"
            " from documents d join sources s using (source_id) where d.source_uri = %s",
            new.as_uri(),
        ) == [("About the kettle", document_id(new.as_uri()), "deep/electric kettle.md", 1)]
        assert {summary.taxonomy_path for summary in await app.documents()} == {("House", "Machines")}
        assert len(await app.documents()) == 4
        store.assert_whole()
        assert "documents.rename" in {row.entry.action for row in await app.audit.newest()}


async def test_a_renamed_file_keeps_decisions_of_reviewers(app: App, store: Store, tmp_path: Path) -> None:
    await app.ingest(write_shelf(tmp_path / "shelf.jsonl"))
    folder = tmp_path / "notes"
    folder.mkdir()
    for number, name in enumerate(("ropes", "sails", "tar", "oars")):
        (folder / f"{name}.md").write_text(f"# Number {number}\n\nzyx{number} wvu{number} tsr{number}.\n")
    await app.ingest(folder)
    items, _ = await app.review.waiting()
    by_title = {item.title: item for item in items}
    await app.review.correct(str(by_title["Number 0"].item_id), "House/Garden")
    (folder / "ropes.md").rename(folder / "cordage.md")
    (folder / "sails.md").rename(folder / "canvas.md")

    report = await app.ingest(folder, prune=True)
    assert len(report.renamed) == 2
    assert report.waiting == 0
    placed = {summary.title: summary.taxonomy_path for summary in await app.documents()}
    assert placed["Number 0"] == ("House", "Garden")
    waiting = {item.title: item.item_id for item in (await app.review.waiting())[0]}
    assert waiting["Number 1"] == by_title["Number 1"].item_id
    signals = store.rows("select document_id from classification_signals")
    assert signals == [(document_id((folder / "cordage.md").as_uri()),)]
    (folder / "cordage.md").write_text("# Number 0\n\nzyx0, but changed.\n")
    await app.ingest(folder)
    changed = {summary.title: summary.taxonomy_path for summary in await app.documents()}
    assert changed["Number 0"] == ("House", "Garden"), "a decision holds for the renamed document, too"


def write_shelf(path: Path) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in shelf(20)), encoding="utf-8")
    return path


async def test_a_title_from_the_name_changes_with_the_name(app: App, store: Store, folder: Path) -> None:
    (folder / "winter.txt").write_text("The boiler is heated at six.\n")
    await app.ingest(folder)
    (folder / "winter.txt").rename(folder / "summer.txt")
    await app.ingest(folder, prune=True)
    assert "summer" in store.titles()
    assert "winter" not in store.titles()
    results, _ = await app.search("summer", mode="lexical")
    assert [result.title for result in results] == ["summer"]
    store.assert_whole()


async def test_documents_of_one_file_move_together(app: App, store: Store, folder: Path) -> None:
    write_shelf(folder / "shelf.jsonl")
    await app.ingest(folder)
    before = store.rows("select split_part(source_uri, '#', 2), node_id from documents order by 1, 2")
    (folder / "shelf.jsonl").rename(folder / "books.jsonl")
    await app.ingest(folder, prune=True)
    assert store.rows("select split_part(source_uri, '#', 2), node_id from documents order by 1, 2") == before
    assert store.value("select count(*) from documents where source_uri like '%%shelf.jsonl%%'") == 0
    store.assert_whole()


async def test_an_interrupted_rename_is_finished_by_the_next_run(
    app: App, store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await app.ingest(folder, "House")
    (folder / "kettle.md").rename(folder / "pot.md")

    drop_source = PostgresWriter.drop_source

    async def crash(self: PostgresWriter, source_id: UUID, scope: Scope, current: Sequence[int] = ()) -> list[UUID]:
        if not current:  # the documents of the old address
            raise RuntimeError("killed")
        return await drop_source(self, source_id, scope, current)

    with monkeypatch.context() as patched:
        patched.setattr(PostgresWriter, "drop_source", crash)
        with pytest.raises(RuntimeError):
            await app.ingest(folder, "House", prune=True)
    assert len(await app.documents()) == 5
    await app.ingest(folder, "House", prune=True)
    assert await paths(app) == files_of(folder)
    store.assert_whole()


async def test_too_much_is_not_removed_unless_insisted_on(app: App, folder: Path) -> None:
    await app.ingest(folder)
    before = await paths(app)
    (folder / "boiler.md").unlink()
    (folder / "garden.md").unlink()
    (folder / "new.md").write_text("# New\n\nNot read either.\n")
    with pytest.raises(InvalidInput, match=r"2 of the 4 files .* more than a third"):
        await app.ingest(folder, prune=True)
    assert await paths(app) == before
    plan = await app.plan_prune(folder)
    assert (plan.added, len(plan.removed), plan.removed_documents) == ([str(folder / "new.md")], 2, 2)
    assert "more than a third" in plan.refusal
    assert await paths(app) == before
    assert (await app.ingest(folder, prune="all")).removed == 2
    assert len(await paths(app)) == 3


async def test_a_folder_that_cannot_be_relied_on_is_not_pruned(
    app: App, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "cellar.md").write_text("# Cellar\n\nBelow.\n")
    await app.ingest(folder)
    before = await paths(app)
    with pytest.raises(InvalidInput, match="no such file or folder"):
        await app.ingest(folder.with_name("absent"), prune="all")
    with pytest.raises(InvalidInput, match="Only folders"):
        await app.ingest(folder / "boiler.md", prune=True)

    scandir = os.scandir

    def unreadable(path: Any) -> Any:
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", unreadable)
        with pytest.raises(InvalidInput, match="Permission denied"):
            await app.ingest(folder, prune="all")
        assert [Path(path).name for path, _ in (await app.ingest(folder)).failed] == ["deep"]

    rename_all(folder)
    with pytest.raises(InvalidInput, match="no file in it whose format is known"):
        await app.ingest(folder, prune="all")
    assert await paths(app) == before


async def test_a_file_that_fails_keeps_its_own_documents_only(app: App, folder: Path) -> None:
    await app.ingest(folder)
    (folder / "boiler.md").unlink()
    (folder / "kettle.md").write_bytes(b"\x00\x01\x02\x00" * 100)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing")
    (folder / "more.md").write_text("# More\n\nThis is read.\n")
    report = await app.ingest(folder, prune="all")
    assert (report.documents, report.removed) == (1, 1)
    assert [Path(path).name for path in report.pruned] == ["boiler.md"]
    assert sorted(Path(path).name for path, _ in report.failed) == ["broken.pdf", "kettle.md"]
    there = await paths(app)
    assert (folder / "boiler.md").as_uri() not in there
    assert (folder / "kettle.md").as_uri() in there


async def test_files_of_unknown_kinds_are_named(app: App, folder: Path) -> None:
    (folder / "logo.webp").write_bytes(b"\x89PNG")
    (folder / "LICENSE").write_text("free")
    (folder / ".DS_Store").write_text("")
    report = await app.ingest(folder)
    assert [(Path(path).name, reason) for path, reason in report.skipped] == [
        ("LICENSE", "Files without a suffix are not read."),
        ("logo.webp", "Files of the kind .webp are not read."),
    ]


async def test_excluded_files_are_not_read_and_prune_removes_them(app: App, folder: Path) -> None:
    (folder / "drafts").mkdir()
    (folder / "drafts" / "shed.md").write_text("# About the shed\n\nThe shed is a draft.\n")
    (folder / ".dtragignore").write_text("kettle.md\n")
    report = await app.ingest(folder, exclude=["drafts/"])
    assert [Path(each.path).name for each in report.excluded] == ["drafts", "kettle.md"]
    assert report.documents == 3

    await app.ingest([folder / "kettle.md"])  # named itself: read
    (folder / ".dtragignore").write_text("")
    await app.ingest(folder)
    before = await paths(app)
    assert len(before) == 5
    (folder / ".dtragignore").write_text("drafts\n")
    await app.ingest(folder)
    assert await paths(app) == before, "only --prune removes"
    plan = await app.plan_prune(folder, exclude=["kettle.md"])
    assert [Path(path).name for path in plan.removed] == ["shed.md", "kettle.md"]
    assert "excluded" in plan.refusal
    report = await app.ingest([folder, folder / "kettle.md"], exclude=["kettle.md"], prune=True)
    assert [Path(path).name for path in report.pruned] == ["shed.md"], "a file that is named itself stays"
    assert (folder / "drafts" / "shed.md").exists()
    report = await app.ingest(folder, exclude=["kettle.md"], prune=True)
    assert [Path(path).name for path in report.pruned] == ["kettle.md"]
    assert (await app.ingest(folder, prune=True)).documents == 1, "and read again when it is no longer excluded"

    with pytest.raises(InvalidInput, match="that is not excluded"):
        await app.ingest(folder, exclude=["*.md"], prune="all")
    assert len(await paths(app)) == 4


async def test_the_samples_are_read_without_the_files_about_them(app: App) -> None:
    report = await app.ingest(Path(__file__).parents[2] / "examples")
    assert not report.failed
    read = {Path(url.partition("#")[0]).name for url in await paths(app)}
    assert not read & {"README.md", "questions.jsonl", "judged.jsonl", "regulations.md"}
    assert {"regulations.hwpx", "leave-and-holidays.md", "information-security.pdf"} <= read
    answer = await app.ask("How much does the company pay into the pension fund?", scope=OWNER)
    assert not [citation for citation in answer.citations if "README" in citation.source_url]
