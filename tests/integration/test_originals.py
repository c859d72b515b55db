"""Originals of PDF files: stored only where the setting says so, shown with their marks, and gone with the document."""

from __future__ import annotations

import unicodedata
import uuid
from dataclasses import replace
from pathlib import Path

import pypdfium2
import pytest

from dtrag import backups
from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.app import App, open_app
from dtrag.backups import RestoreOptions
from dtrag.core.access.scope import Access, Grant
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import InvalidInput, NoOriginal, NotFound, OriginalUnreadable
from dtrag.ingestion import source_reader
from dtrag.settings import Settings
from tests.pdf_writer import Placed, write_pdf
from tests.store import Databases, Store

KETTLE = [
    [Placed(60, 780, "The kettle of the dormitory is in the hall,"), Placed(60, 764, "and it boils water at noon.")],
    [Placed(60, 780, "휴학은 두 학기까지 할 수 있다."), Placed(60, 740, "The warden is called at 010-2345-6789.")],
]
PDF = write_pdf(KETTLE)
QUOTE = "in the hall, and it boils water"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "files"
    path.mkdir()
    (path / "kettle.pdf").write_bytes(PDF)
    (path / "garden.md").write_text("# Garden\n\nThe garden is watered daily.\n")
    return path


@pytest.fixture
def settings(databases: Databases) -> Settings:
    return databases.settings(keep_originals="on")


async def kettle(app: App) -> str:
    """The id of the document that was read from the PDF."""
    [key] = [each.document_id for each in await app.documents() if each.content_type == "application/pdf"]
    return key


def stored(store: Store) -> list[bytes]:
    return [bytes(content) for (content,) in store.rows("select content from originals order by document_id")]


async def boxed(app: App, key: str, quote: str) -> str:
    """What is in the boxes of a quotation, by another look at the pages."""
    text = (await app.texts.part(key)).text
    start = text.index(quote)
    pages = await app.originals.pages(key, start, start + len(quote))
    assert pages.pages == 2
    read = []
    for marked in pages.marked:
        shown = pypdfium2.PdfDocument(PDF)[marked.page - 1]
        width, height = shown.get_size()
        look = shown.get_textpage()
        read += [
            look.get_text_bounded(left * width, height - bottom * height, right * width, height - top * height)
            for left, top, right, bottom in marked.boxes
        ]
    return "|".join(unicodedata.normalize("NFC", each.strip()) for each in read)


async def test_a_quotation_is_marked_on_its_page(settings: Settings, databases: Databases, folder: Path) -> None:
    async with open_app(settings) as app:
        report = await app.ingest(folder)
        assert (report.documents, report.unstored_originals) == (2, 0)
        key = await kettle(app)
        assert (await app.texts.part(key)).original
        assert (await app.originals.picture(key, 2)).startswith(b"\x89PNG")
        assert await boxed(app, key, QUOTE) == "in the hall,|and it boils water"
        assert await boxed(app, key, "두 학기까지") == "두 학기까지"
        over = (await app.texts.part(key)).text
        assert await boxed(app, key, over[over.index("at noon") : over.index(" 할")]) == "at noon|휴학은 두 학기까지"
        assert (await app.originals.pages(key, 0, 0)).marked == ()
        with pytest.raises(OriginalUnreadable, match="it has the pages 1 to 2"):
            await app.originals.picture(key, 3)
        with pytest.raises(InvalidInput, match=r"end from start to start \+ 20,000"):
            await app.originals.pages(key, 0, 20_001)
        [garden] = [each.document_id for each in await app.documents() if each.document_id != key]
        assert not (await app.texts.part(garden)).original
        with pytest.raises(NoOriginal, match="Read its text instead"):
            await app.originals.picture(garden, 1)
    assert stored(databases.store(settings)) == [PDF]


async def test_another_branch_sees_no_document(settings: Settings, folder: Path) -> None:
    async with open_app(settings) as app:
        await app.ingest(folder, "House/Kitchen")
        key = await kettle(app)
        taxonomy = (await app.index.snapshot()).taxonomy
        for branch, sees in (("House", True), ("Garden", False)):
            access = Access((Grant.of([CategoryPath.parse(branch)], taxonomy),))
            if sees:
                assert await app.originals.picture(key, 1, scope=access)
                continue
            with pytest.raises(NotFound):
                await app.originals.picture(key, 1, scope=access)
            with pytest.raises(NotFound):
                await app.originals.pages(key, 0, 5, scope=access)
            assert await app.index.original(uuid.UUID(key), access.resolved(taxonomy)) is None


async def test_off_stores_nothing_and_on_stores_what_was_read_before(databases: Databases, folder: Path) -> None:
    settings = databases.settings()
    store = databases.store(settings)
    async with open_app(settings) as app:
        await app.ingest(folder)
        key = await kettle(app)
        assert stored(store) == []
        assert not (await app.texts.part(key)).original
        with pytest.raises(NoOriginal):
            await app.originals.pages(key, 0, 5)
    async with open_app(replace(settings, keep_originals="on")) as app:
        report = await app.ingest(folder)
        assert (report.documents, report.unchanged) == (1, 1)
        assert stored(store) == [PDF]
        assert (await app.ingest(folder)).documents == 0
    async with open_app(settings) as app:
        with pytest.raises(NoOriginal):
            await app.originals.picture(key, 1)
        assert (await app.ingest(folder)).documents == 1
        assert stored(store) == []
    with pytest.raises(InvalidInput, match="must be on or off"):
        async with open_app(replace(settings, keep_originals="yes")):
            pass


async def test_it_goes_and_changes_with_its_document(settings: Settings, databases: Databases, folder: Path) -> None:
    store = databases.store(settings)
    async with open_app(settings) as app:
        await app.ingest(folder)
        other = PDF + b"\n% saved again: the same text"
        (folder / "kettle.pdf").write_bytes(other)
        assert (await app.ingest(folder)).documents == 1
        assert stored(store) == [other]
        (folder / "kettle.pdf").write_bytes(write_pdf(KETTLE[:1]))
        await app.ingest(folder)
        assert stored(store) == [write_pdf(KETTLE[:1])]
        await app.reindex()
        assert stored(store) == [write_pdf(KETTLE[:1])]
        await app.ingest(folder)  # a rename is recognised by the content that was read
        (folder / "kettle.pdf").rename(folder / "pot.pdf")
        report = await app.ingest(folder, prune="all")
        assert len(report.renamed) == 1
        assert stored(store) == [write_pdf(KETTLE[:1])]
        assert await app.originals.picture(await kettle(app), 1)
        await app.delete_document(await kettle(app))
        assert stored(store) == []
    store.assert_whole()


async def test_it_follows_its_document_to_another_category(
    settings: Settings, databases: Databases, folder: Path
) -> None:
    store = databases.store(settings)
    async with open_app(settings) as app:
        await app.ingest(folder / "kettle.pdf", "House/Kitchen")
        kitchen = store.value("select node_id from originals")
        proposed = await app.taxonomy.propose([{"op": "merge", "paths": ["House/Kitchen"], "into": "House"}])
        await app.taxonomy.activate(proposed.version)
        assert store.value("select node_id from originals") != kitchen
        assert store.value(
            "select o.node_id = d.node_id from originals o join documents d on d.document_id = o.document_id"
        )


@pytest.mark.parametrize("way", ["at once", "reindex", "ingest"])
async def test_none_of_a_masked_text(databases: Databases, folder: Path, way: str) -> None:
    settings = databases.settings(keep_originals="on", pii="mask" if way == "at once" else "off")
    store, masking = databases.store(settings), replace(settings, pii="mask")
    async with open_app(settings) as app:
        await app.ingest(folder)
        key = await kettle(app)
    assert stored(store) == ([] if way == "at once" else [PDF])
    async with open_app(masking) as app:  # at once: nothing waits until the text is masked
        with pytest.raises(NoOriginal):
            await app.originals.picture(key, 1)
        with pytest.raises(NoOriginal):
            await app.originals.pages(key, 0, 5)
        if way == "reindex":
            await app.reindex()
        else:
            await app.ingest(folder)
        assert stored(store) == []
        assert "010-2345" not in (await app.texts.part(key)).text
    async with open_app(replace(settings, pii="off")) as app:
        await app.reindex()  # what is masked stays masked
        assert stored(store) == []
        await app.ingest(folder)
        assert stored(store) == [PDF]


async def test_a_file_beyond_the_limit_is_not_stored_and_the_report_says_so(
    settings: Settings, databases: Databases, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_reader, "MAX_ORIGINAL_BYTES", len(PDF) - 1)
    async with open_app(settings) as app:
        report = await app.ingest(folder)
        assert report.unstored_originals == 1
        assert [note.code for note in report.notes if note.code] == ["originals_unstored"]
        assert stored(databases.store(settings)) == []
        assert not (await app.texts.part(await kettle(app))).original


async def test_batches_hold_a_bounded_amount_of_originals(
    settings: Settings, databases: Databases, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_reader, "MAX_ORIGINAL_BYTES", 2 * len(PDF))
    for number in range(7):
        (folder / f"more-{number}.pdf").write_bytes(PDF + f"\n% {number}".encode())
    async with open_app(settings) as app:
        written = []
        write = app._writer.write

        async def noting(documents: list[object], *rest: object) -> None:
            written.append(len(documents))
            await write(documents, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(app._writer, "write", noting)
        await app.ingest(folder)
        assert max(written) == 3  # with the text file, which is read first
        assert len(stored(databases.store(settings))) == 8


async def test_a_damaged_original_is_an_error_with_a_reason(
    settings: Settings, databases: Databases, folder: Path
) -> None:
    async with open_app(settings) as app:
        await app.ingest(folder)
        databases.store(settings).rows("update originals set content = 'no PDF'")
        with pytest.raises(OriginalUnreadable, match="the PDF is damaged"):
            await app.originals.picture(await kettle(app), 1)


async def test_a_backup_has_it_but_not_what_was_deleted_since(
    settings: Settings, databases: Databases, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EmbeddedServer, "claim", lambda self: None)
    async with open_app(settings) as app:
        await app.ingest(folder)
        key = await kettle(app)
        await app.keys.create("kim", originals=True)
        await backups.make(settings, tmp_path / "backup")
        await app.delete_documents([key])
    store = databases.store(settings)
    assert stored(store) == []
    for bring_back in (False, True):
        options = RestoreOptions(bring_back=bring_back, keep_keys=True)
        await backups.restore(settings, tmp_path / "backup", options, confirm=lambda plan: True)
        assert stored(store) == ([PDF] if bring_back else [])
    async with open_app(settings) as app:
        assert await app.originals.picture(key, 1)
        assert [each.originals for each in await app.keys.every()] == [True]
