"""What stores of source files and of regulations must do, and the settings of the index."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

import pytest

from dtrag.core.access.scope import EVERYTHING
from dtrag.core.documents import IndexedDocument, Scalar, document_id
from dtrag.errors import IndexMismatch
from dtrag.ports import StoredFile, Stores
from tests.builders import KETTLE, NOTHING, branch_nodes, filled, indexed_document

FOLDER = "file:///srv/handbook/"


def page(file: str, part: str = "", text: str = "A page.") -> IndexedDocument:
    """A document of a file in the folder."""
    uri = f"{FOLDER}{file}"
    return indexed_document(f"{uri}#{part}" if part else uri, [text], source_uri=uri)


class TestFolders:
    """Files are known by the addresses of their documents."""

    async def test_files_below_a_folder_have_their_documents(self, stores: Stores) -> None:
        await stores.writer.write([page("b.jsonl", "1"), page("b.jsonl", "2"), page("a.md"), page("sub/c.md")])
        await stores.writer.write([indexed_document("file:///srv/handbook2/d.md", ["Elsewhere."])])
        a, b = document_id(f"{FOLDER}a.md"), document_id(f"{FOLDER}b.jsonl")
        await stores.writer.finish_source(a, f"{FOLDER}a.md", b"one", [page("a.md").document_id.int >> 64])
        assert await stores.folders.files_below(FOLDER) == [
            StoredFile(a, f"{FOLDER}a.md", b"one", 1),
            StoredFile(b, f"{FOLDER}b.jsonl", b"", 2),
            StoredFile(document_id(f"{FOLDER}sub/c.md"), f"{FOLDER}sub/c.md", b"", 1),
        ]
        assert await stores.folders.files_below("file:///srv/other/") == []

    async def test_a_prefix_is_no_pattern(self, stores: Stores) -> None:
        await stores.writer.write([indexed_document("file:///srv/a_b/x.md", ["A text."])])
        assert await stores.folders.files_below("file:///srv/a%") == []
        assert await stores.folders.files_below("file:///srv/a?b/") == []
        assert len(await stores.folders.files_below("file:///srv/a_b/")) == 1

    async def test_documents_of_a_file_are_read_in_pages(self, stores: Stores) -> None:
        parts = [page("b.jsonl", str(number), f"Text {number}.") for number in range(5)]
        await stores.writer.write([*parts, page("a.md")])
        source, read = parts[0].source_id, list[uuid.UUID]()
        while drafts := await stores.folders.drafts_of(source, read[-1] if read else None, 2):
            assert len(drafts) <= 2
            assert {draft.source_id for draft in drafts} == {source}
            read += [draft.document_id for draft in drafts]
        assert read == sorted(part.document_id for part in parts)


def regulation(
    name: str, *articles: str, node_id: int = 1, more: tuple[Mapping[str, Scalar], ...] = ()
) -> IndexedDocument:
    """A regulation with an article per passage."""
    passages = [{"kind": "article", "article": f"제{number}조", "article_title": "목적"} for number in range(1, 9)]
    return indexed_document(
        f"test:{name}",
        articles,
        node_id=node_id,
        title=name,
        metadata={"kind": "regulation", "code": "A-1"},
        passages=more or passages,
    )


class TestRegulations:
    """Every read takes the caller's scope."""

    async def test_regulations_are_ordered_by_name_with_a_fingerprint_of_their_text(self, stores: Stores) -> None:
        documents = [regulation("학칙", "제1조 목적."), regulation("교원규정", "제1조 목적.")]
        await stores.writer.write([*documents, indexed_document("test:other", ["No regulation."])])
        versions = await stores.regulations.versions(EVERYTHING)
        assert list(versions) == [documents[1].document_id, documents[0].document_id]
        changed = replace(regulation("학칙", "제1조 다른 목적."), replaces=True)
        await stores.writer.write([changed])
        after = await stores.regulations.versions(EVERYTHING)
        assert [key for key in after if after[key] != versions[key]] == [changed.document_id]

    async def test_a_regulation_has_its_provisions(self, stores: Stores) -> None:
        document = regulation("학칙", "제1조 목적.", "제2조 정의.")
        await stores.writer.write([document])
        (text,) = await stores.regulations.read([document.document_id, uuid.uuid4()], EVERYTHING)
        assert (text.document_id, text.name, text.code) == (document.document_id, "학칙", "A-1")
        assert text.text == document.document.text
        assert [(row.kind, row.label, row.title, row.first, row.last) for row in text.provisions] == [
            ("article", "제1조", "목적", 0, 0),
            ("article", "제2조", "목적", 1, 1),
        ]
        assert [text.text[row.start : row.end] for row in text.provisions] == ["제1조 목적.", "제2조 정의."]

    async def test_pieces_of_a_long_provision_are_one(self, stores: Stores) -> None:
        long: dict[str, Scalar] = {"kind": "article", "article": "제1조"}
        again: dict[str, Scalar] = {**long, "occurrence": 2}
        passages: tuple[Mapping[str, Scalar], ...] = (long, long, {}, again)
        document = regulation("학칙", "하나.", "둘.", "머리말.", "셋.", more=passages)
        await stores.writer.write([document])
        (text,) = await stores.regulations.read([document.document_id], EVERYTHING)
        assert [(row.label, row.occurrence, row.first, row.last) for row in text.provisions] == [
            ("제1조", 1, 0, 1),
            ("제1조", 2, 3, 3),
        ]

    async def test_regulations_outside_of_the_scope_are_absent(self, stores: Stores) -> None:
        _, machines, staff = await filled(stores)
        document = regulation("학칙", "제1조 목적.", node_id=branch_nodes(machines)[0])
        await stores.writer.write([document])
        assert list(await stores.regulations.versions(machines)) == [document.document_id]
        assert len(await stores.regulations.read([document.document_id], machines)) == 1
        for scope in (staff, NOTHING):
            assert await stores.regulations.versions(scope) == {}
            assert await stores.regulations.read([document.document_id], scope) == []


class TestIndexSettings:
    """An index is built with one analyzer."""

    async def test_the_analyzer_is_recorded_once(self, stores: Stores) -> None:
        assert await stores.index_settings.register("words") == ""
        await stores.index_settings.register("words")
        assert (await stores.index.snapshot()).settings["analyzer"] == "words"
        with pytest.raises(IndexMismatch):
            await stores.index_settings.register("morphemes")

    async def test_forgetting_leaves_documents_that_are_to_be_written_again(self, stores: Stores) -> None:
        await filled(stores)
        await stores.index_settings.register("words")
        await stores.writer.finish_source(KETTLE, "test:kettle", b"one", [KETTLE.int >> 64])
        await stores.index_settings.forget()
        settings = (await stores.index.snapshot()).settings
        assert settings.get("rebuilding") is True
        assert "analyzer" not in settings
        assert await stores.index.counts(EVERYTHING) == (4, 5)
        assert await stores.writer.fingerprints([KETTLE]) == {KETTLE: b""}
        assert await stores.writer.source_fingerprint(KETTLE) is None
        await stores.index_settings.rebuilt()
        assert "rebuilding" not in (await stores.index.snapshot()).settings

    async def test_a_calibration_is_replaced_and_forgotten(self, stores: Stores) -> None:
        assert not await stores.index_settings.forget_calibration()
        for value in ({"weights": [1.0]}, {"weights": [2.0, 0.5]}):
            await stores.index_settings.store_calibration(value)
        assert (await stores.index.snapshot()).settings["calibration"] == {"weights": [2.0, 0.5]}
        assert await stores.index_settings.forget_calibration()
        assert "calibration" not in (await stores.index.snapshot()).settings

    async def test_the_lexicon_is_replaced_only_by_someone_who_read_it(self, stores: Stores) -> None:
        first, second = ({"next": 2, "entries": [{"number": 1, "spoken": [word]}]} for word in ("휴학", "복학"))
        assert await stores.index_settings.replace("lexicon", first, None)
        assert not await stores.index_settings.replace("lexicon", second, None)
        assert (await stores.index.snapshot()).settings["lexicon"] == first
        assert await stores.index_settings.replace("lexicon", second, first)
        assert not await stores.index_settings.replace("lexicon", first, first)
        await stores.index_settings.forget()
        assert (await stores.index.snapshot()).settings["lexicon"] == second

    async def test_every_change_is_seen_by_readers(self, stores: Stores) -> None:
        generations = [(await stores.index.snapshot()).generation]
        await stores.index_settings.register("words")
        generations.append((await stores.index.snapshot()).generation)
        await stores.index_settings.store_calibration({})
        generations.append((await stores.index.snapshot()).generation)
        await stores.index_settings.replace("lexicon", {"entries": []}, None)
        generations.append((await stores.index.snapshot()).generation)
        await stores.index_settings.forget()
        generations.append((await stores.index.snapshot()).generation)
        assert generations == sorted(set(generations))
