"""Files into the index and out again: what the report says is what the database holds."""

from __future__ import annotations

import asyncio
import json
import unicodedata
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.app import App, open_app
from dtrag.core.access.scope import Scope
from dtrag.core.documents import document_id
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import InvalidInput, NotFound
from dtrag.ingestion import source_reader
from dtrag.ingestion.sources import Progress
from dtrag.settings import Settings
from tests.builders import indexed_document
from tests.store import Store
from tests.toy import lines


def records(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file of each plain format, one that is broken, one of no known format, and a hidden one."""
    path = tmp_path / "house"
    (path / "deep").mkdir(parents=True)
    (path / "boiler.md").write_text("# Boiler\n\nThe boiler is heated at six.\n\n## Valve\n\nThe valve is greased.\n")
    (path / "deep" / "garden.txt").write_text("The garden is watered in the evening.\n")
    (path / "stairs.html").write_text("<title>Stairs</title><h1>Stairs</h1><p>The stairs are swept on Monday.</p>")
    (path / "keys.csv").write_text("room,key\ncellar,copper\nattic,brass\n")
    records(
        path / "wages.jsonl",
        [
            {"id": "1", "title": "Wages", "text": "Wages are paid on the last day.", "category_path": ["Staff", "Pay"]},
            {"id": "2", "title": "휴가", "text": "휴가는 한 달 전에 신청한다."},
        ],
    )
    (path / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing")
    (path / "picture.webp").write_bytes(b"\x89PNG")
    (path / ".hidden.txt").write_text("not meant")
    return path


async def found(app: App, query: str, **filters: Any) -> list[str]:
    results, _ = await app.search(query, filters=filters, mode="lexical")
    return [result.title for result in results]


async def test_a_folder_with_a_broken_file(app: App, store: Store, folder: Path) -> None:
    report = await app.ingest(folder, category="House")
    assert (report.files, report.documents, report.unchanged, report.removed) == (6, 6, 0, 0)
    [(path, reason)] = report.failed
    assert path == str(folder / "broken.pdf")
    assert reason
    assert report.chunks == store.value("select count(*) from chunks")
    assert sorted(report.document_ids) == sorted(str(row[0]) for row in store.rows("select document_id from documents"))
    store.assert_whole()
    paths = {summary.title: summary.taxonomy_path for summary in await app.documents()}
    assert set(paths) == {"Boiler", "garden", "Stairs", "keys", "Wages", "휴가"}
    assert paths["Wages"] == ("Staff", "Pay")
    assert {path for title, path in paths.items() if title != "Wages"} == {("House",)}
    assert "lexical only" in str(report.notes[0])


async def test_an_unchanged_folder_changes_nothing(app: App, store: Store, folder: Path) -> None:
    await app.ingest(folder)
    (folder / "broken.pdf").unlink()
    before = (await app.index.snapshot()).generation, store.rows("select document_id, processed_at from documents")
    again = await app.ingest([folder, folder / "boiler.md"])
    assert (again.files, again.documents, again.chunks, again.removed, again.failed) == (5, 0, 0, 0, [])
    assert again.unchanged == 5
    assert before == (
        (await app.index.snapshot()).generation,
        store.rows("select document_id, processed_at from documents"),
    )


async def test_a_changed_file_replaces_the_old(app: App, store: Store, folder: Path) -> None:
    await app.ingest(folder)
    generation = (await app.index.snapshot()).generation
    (folder / "boiler.md").write_text("# Boiler\n\nThe boiler is retired.\n")
    report = await app.ingest(folder)
    assert report.documents == 1
    assert await found(app, "greased valve") == []
    assert await found(app, "retired") == ["Boiler"]
    assert (await app.index.snapshot()).generation > generation
    assert store.value("select count(*) from documents where title = 'Boiler'") == 1
    store.assert_whole()


async def test_a_search_sees_the_old_or_the_new_version_and_never_a_mix(app: App, store: Store) -> None:
    writer = PostgresWriter(app.database)
    versions = [[f"kettle {word} {part}" for part in "abc"] for word in ("copper", "brass")]
    await writer.write([indexed_document("toy:kettle", versions[0])])
    over = asyncio.Event()

    async def replace_often() -> None:
        for number in range(1, 40):
            await writer.write([indexed_document("toy:kettle", versions[number % 2], replaces=True)])
        over.set()

    async def read_often() -> int:
        looks = 0
        while not over.is_set():
            looks += 1
            rows = await asyncio.to_thread(store.rows, "select text from chunks order by ordinal")
            assert [text for (text,) in rows] in versions
        return looks

    _, looks = await asyncio.gather(replace_often(), read_often())
    assert looks > 3
    store.assert_whole()


async def test_the_document_of_a_removed_line_is_deleted(app: App, store: Store, tmp_path: Path) -> None:
    rows = [{"id": name, "title": name, "text": f"the {name} stands here"} for name in ("lamp", "chair", "table")]
    path = records(tmp_path / "things.jsonl", rows)
    await app.ingest(path)
    report = await app.ingest(records(path, [rows[0], {**rows[2], "text": "the table is gone upstairs"}]))
    assert (report.documents, report.unchanged, report.removed) == (1, 1, 1)
    assert store.titles() == ["lamp", "table"]
    assert await found(app, "chair") == []
    assert await found(app, "upstairs") == ["table"]
    store.assert_whole()


async def test_a_file_that_fails_half_way_takes_nothing_away(app: App, store: Store, tmp_path: Path) -> None:
    rows = [{"id": name, "title": name, "text": f"the {name} stands here"} for name in ("lamp", "chair")]
    path = records(tmp_path / "things.jsonl", rows)
    await app.ingest(path)
    path.write_text(json.dumps({"id": "sofa", "title": "sofa", "text": "new"}) + "\nnot json\n")
    report = await app.ingest(path)
    assert (report.documents, report.removed, len(report.failed)) == (1, 0, 1)
    assert store.titles() == ["chair", "lamp", "sofa"]
    assert (await app.ingest(path)).unchanged == 1


async def test_a_line_with_a_bad_category_fails_alone(app: App, store: Store, tmp_path: Path) -> None:
    path = records(
        tmp_path / "things.jsonl",
        [
            {"id": "lamp", "title": "lamp", "text": "the lamp"},
            {"id": "chair", "title": "chair", "text": "the chair", "category_path": ["A", "no; such"]},
            {"id": "table", "title": "table", "text": "the table"},
        ],
    )
    report = await app.ingest(path)
    assert store.titles() == ["lamp", "table"]
    [(failed, reason)] = report.failed
    assert failed == str(path)
    assert "chair: Unsafe characters detected in a category name" in str(reason)


async def test_another_category_moves_the_documents(app: App, store: Store, folder: Path) -> None:
    await app.ingest(folder / "boiler.md", category=["House"])
    assert await found(app, "boiler", taxonomy_paths=[["House"]]) != []
    report = await app.ingest(folder / "boiler.md", category=["Cellar", "Heating"])
    assert report.documents == 1
    assert await found(app, "boiler", taxonomy_paths=[["House"]]) == []
    assert await found(app, "boiler", taxonomy_paths=[["cellar"]]) != []
    store.assert_whole()


async def test_one_name_composed_or_decomposed_is_one_document(app: App, store: Store, tmp_path: Path) -> None:
    for form in ("NFC", "NFD"):
        path = tmp_path / unicodedata.normalize(form, "휴학 café.txt")
        path.write_text(f"written as {form}\n")
        await app.ingest(path)
        path.unlink()
    assert store.value("select count(*) from documents") == 1
    assert store.value("select text from chunks") == "written as NFD"
    [summary] = await app.documents()
    assert unicodedata.is_normalized("NFC", summary.title + summary.source_url)
    store.assert_whole()


@pytest.mark.parametrize("changed", [False, True])
async def test_ten_at_once_write_it_once(settings: Settings, store: Store, tmp_path: Path, changed: bool) -> None:
    """Ten apps read the same file at the same moment, for the first time or after a change."""
    path = lines(tmp_path / "notes.jsonl", 60)
    small = Settings.load(
        environ={}, data_dir=settings.data_dir, database_name=settings.database_name, embedder="none", pool_size=1
    )
    async with AsyncExitStack() as stack:
        apps = [await stack.enter_async_context(open_app(small)) for _ in range(3)]
        if changed:
            await apps[0].ingest(path)
            lines(path, 60, seed=1)
        reports = await asyncio.gather(*(apps[number % 3].ingest(path) for number in range(10)))
    assert [report.failed for report in reports] == [[]] * 10
    assert max(report.documents for report in reports) == 60
    assert store.value("select count(*) from documents") == 60
    store.assert_whole()


async def test_two_at_once_with_some_of_the_documents_in_common(settings: Settings, store: Store) -> None:
    """New, replaced and contested documents in one batch: whoever comes second replaces, and all is counted once."""
    async with open_app(settings) as app:
        first, second = PostgresWriter(app.database), PostgresWriter(app.database)
        await first.write([indexed_document("toy:old", ["the old kettle"])])
        batch = [
            indexed_document("toy:fresh", ["a fresh kettle"]),
            indexed_document("toy:old", ["the old kettle, mended"], replaces=True),
            indexed_document("toy:contested", ["a contested kettle"]),
        ]
        await second.write([indexed_document("toy:contested", ["a contested boiler"])])
        await first.write(batch)
    assert store.rows("select text from chunks order by text") == [
        ("a contested kettle",),
        ("a fresh kettle",),
        ("the old kettle, mended",),
    ]
    store.assert_whole()


async def test_nothing_to_read(app: App, store: Store, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    report = await app.ingest([tmp_path / "empty", tmp_path / "absent.md"])
    assert (report.files, report.documents) == (0, 0)
    assert [Path(path).name for path, _ in report.failed] == ["empty", "absent.md"]
    assert (await app.ingest([])).failed == []
    with pytest.raises(InvalidInput, match="Unsafe characters"):
        await app.ingest(tmp_path, category="a;b")
    assert store.titles() == []


async def test_progress_reports_durable_documents(
    app: App, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_reader, "BATCH_CHUNKS", 20)
    seen: list[int] = []

    def look(progress: Progress) -> None:
        assert store.value("select count(*) from documents") >= progress.documents
        assert store.value("select coalesce(sum(passages), 0) from lexical_segments") >= progress.chunks
        seen.append(progress.documents)

    report = await app.ingest(lines(tmp_path / "notes.jsonl", 100), on_progress=look)
    assert sorted(set(seen) - {0}) == [20, 40, 60, 80, 100]
    assert seen == sorted(seen)
    assert report.documents == 100


async def test_progress_counts_files_while_they_are_read(app: App, tmp_path: Path) -> None:
    """A small ingest is one batch: at 7e57849 nothing was told before its end."""
    for number in range(5):
        (tmp_path / f"{number}.md").write_text(f"# Number {number}\n\nText of number {number}.\n")
    told: list[Progress] = []
    await app.ingest(tmp_path, on_progress=told.append)
    assert [(now.files_read, now.chunks_read, now.files) for now in told[:5]] == [(n, n, 0) for n in range(1, 6)]
    last = told[-1]
    assert (last.files, last.files_read, last.files_total, last.documents, last.chunks) == (5, 5, 5, 5, 5)


async def test_a_deleted_document_is_gone_until_it_is_read_again(app: App, store: Store, folder: Path) -> None:
    await app.ingest(folder / "boiler.md", category="House")
    [summary] = await app.documents()
    generation = (await app.index.snapshot()).generation
    await app.delete_document(summary.document_id)
    assert (await app.index.snapshot()).generation > generation
    assert await found(app, "boiler") == []
    for table in ("documents", "chunks", "lexical_index", "embeddings"):
        assert store.value(f"select count(*) from {table}") == 0
    store.assert_whole()
    for name in (summary.document_id, "no uuid", ""):
        with pytest.raises(NotFound):
            await app.delete_document(name)
        with pytest.raises(NotFound):
            await app.document(name)
    assert (await app.ingest(folder / "boiler.md", category="House")).documents == 1
    assert set(await found(app, "boiler")) == {"Boiler"}


async def test_a_foreign_scope_neither_sees_nor_deletes(app: App, store: Store, folder: Path) -> None:
    await app.ingest(folder / "boiler.md", category="House")
    await app.ingest(folder / "deep", category="Garden")
    taxonomy = (await app.index.snapshot()).taxonomy
    [house] = [summary for summary in await app.documents() if summary.title == "Boiler"]
    node = taxonomy.find(CategoryPath.parse("Garden"))
    assert node is not None
    for scope in (Scope(frozenset({node})), Scope(frozenset())):
        with pytest.raises(NotFound):
            await app.delete_document(house.document_id, scope=scope)
        with pytest.raises(NotFound):
            await app.document(house.document_id, scope=scope)
        assert (await app.search("boiler", scope=scope))[0] == []
        assert "Boiler" not in {summary.title for summary in await app.documents(scope=scope)}
    assert await app.counts(scope=Scope(frozenset({node}))) == (1, 1)
    assert store.value("select count(*) from documents") == 2


async def test_filters_narrow_each_mode(app: App, store: Store, folder: Path) -> None:
    (folder / "deep" / "garden.txt").write_text("The boiler of the garden house is old.\n")
    await app.ingest(folder / "boiler.md", category="House")
    await app.ingest(folder / "deep", category="House/Garden")
    old = document_id((folder / "boiler.md").as_uri())
    store.rows("update documents set processed_at = %s where document_id = %s", datetime(2020, 5, 1, tzinfo=UTC), old)
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    expected: Sequence[tuple[dict[str, Any], set[str]]] = [
        ({}, {"Boiler", "garden"}),
        ({"taxonomy_paths": [["House"]]}, {"Boiler", "garden"}),
        ({"taxonomy_paths": [["house", "GARDEN"]]}, {"garden"}),
        ({"taxonomy_paths": [["Nowhere"]]}, set()),
        ({"taxonomy_paths": []}, set()),
        ({"content_types": ["text/markdown"]}, {"Boiler"}),
        ({"content_types": ["text/markdown", "text/plain"]}, {"Boiler", "garden"}),
        ({"content_types": ["application/pdf"]}, set()),
        ({"date_to": "2020-12-31"}, {"Boiler"}),
        ({"date_from": "2020-12-31"}, {"garden"}),
        ({"date_from": "2020-01-01", "date_to": tomorrow}, {"Boiler", "garden"}),
        ({"date_from": tomorrow}, set()),
        ({"date_from": "2020-12-31", "content_types": ["text/markdown"]}, set()),
    ]
    for filters, titles in expected:
        for mode in ("lexical", "strict", "hybrid"):
            results, _ = await app.search("boiler", filters=filters, mode=mode)
            assert {result.title for result in results} == titles, (filters, mode)


async def test_a_document_of_too_many_passages_is_refused(settings: Settings, tmp_path: Path) -> None:
    sections = "".join(f"# Part {number}\n\nText.\n\n" for number in range(30))
    (tmp_path / "many.md").write_text(sections)
    (tmp_path / "few.md").write_text(sections[: len(sections) // 3])
    rows = [{"text": "Short."}, {"text": "word " * 20_000}, {"text": "Also short."}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    async with open_app(replace(settings, max_passages=20)) as app:
        report = await app.ingest(tmp_path)
        reasons = {Path(path).name: str(reason) for path, reason in report.failed}
        assert reasons.keys() == {"many.md", "rows.jsonl"}
        assert reasons["many.md"] == (
            "its text makes more than 20 passages; split the file, or raise the setting max_passages"
        )
        assert reasons["rows.jsonl"].startswith("1 of its documents: word word")
        assert report.documents == 3, "few.md, and the other two lines"


async def test_a_file_creates_a_limited_number_of_categories(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_reader, "MOST_NEW_CATEGORIES", 4)
    await app.ingest(records(tmp_path / "first.jsonl", [{"text": "Known.", "category_path": ["Known"]}]))
    rows = [{"text": f"Text {number}.", "category_path": ["A", f"{number}"]} for number in range(6)]
    rows.insert(0, {"text": "In a category that exists.", "category_path": ["Known"]})
    report = await app.ingest(records(tmp_path / "second.jsonl", rows))
    assert report.documents == 4, "A and 0, 1, 2 are created"
    [(_, reason)] = report.failed
    assert str(reason).startswith(
        "3 of its documents: Text 3.: A/3 would be one category too many: a file creates at most 4"
    )
