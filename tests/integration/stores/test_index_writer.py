"""What every index writer must do: whole documents, replaced and deleted in scope, and their sources."""

from __future__ import annotations

import asyncio
import random
import uuid
from dataclasses import replace

import pytest

from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.documents import Chunk, IndexedDocument, Scalar, document_id
from dtrag.core.taxonomy.tree import UNCLASSIFIED, CategoryPath
from dtrag.errors import Forbidden
from dtrag.ingestion.analysis import analyse
from dtrag.ports import Stores
from tests.builders import indexed_document
from tests.rounds import seeds

FILE = "file:///handbook.jsonl"
SOURCE = document_id(FILE)


def part(number: int, *texts: str, node_id: int = UNCLASSIFIED, replaces: bool = False) -> IndexedDocument:
    """A document of the file."""
    return indexed_document(
        f"{FILE}#{number}", texts or ("A page.",), node_id=node_id, source_uri=FILE, replaces=replaces
    )


def upper_half(document: IndexedDocument) -> int:
    """The upper 64 bits of the id."""
    return document.document_id.int >> 64


async def test_fingerprints_are_those_of_the_documents_that_exist(stores: Stores) -> None:
    first = part(1)
    await stores.writer.write([first])
    fingerprints = await stores.writer.fingerprints([first.document_id, uuid.uuid4()])
    assert fingerprints == {first.document_id: first.fingerprint}


async def test_writing_nothing_changes_nothing(stores: Stores) -> None:
    before = (await stores.index.snapshot()).generation
    await stores.writer.write([])
    assert (await stores.index.snapshot()).generation == before


async def test_a_document_written_again_is_there_once(stores: Stores) -> None:
    await stores.writer.write([part(1)])
    changed = part(1, "Another page.", "And one more.", replaces=True)
    await stores.writer.write([changed])
    assert await stores.index.counts(EVERYTHING) == (1, 2)
    assert await stores.writer.fingerprints([changed.document_id]) == {changed.document_id: changed.fingerprint}


async def test_a_document_without_passages_is_written_too(stores: Stores) -> None:
    await stores.writer.write([indexed_document("test:empty", [])])
    assert await stores.index.counts(EVERYTHING) == (1, 0)


async def test_concurrent_writes_of_one_document_leave_one(stores: Stores) -> None:
    documents = [part(1, f"Text {number}.") for number in range(4)]
    await asyncio.gather(*(stores.writer.write([document]) for document in documents))
    assert await stores.index.counts(EVERYTHING) == (1, 1)
    assert (await stores.index.snapshot()).statistics.chunks == 1


async def test_a_document_outside_of_the_scope_is_not_replaced(stores: Stores) -> None:
    taxonomy = await stores.writer.ensure_paths([CategoryPath.parse("A"), CategoryPath.parse("B")])
    a, b = sorted(taxonomy.nodes)
    original = part(1, node_id=a)
    await stores.writer.write([original])
    with pytest.raises(Forbidden):
        await stores.writer.write([part(1, "Changed.", node_id=b, replaces=True)], Scope(frozenset({b})))
    assert await stores.writer.fingerprints([original.document_id]) == {original.document_id: original.fingerprint}
    assert await stores.index.counts(Scope(frozenset({a}))) == (1, 1)


async def test_only_documents_in_scope_are_deleted(stores: Stores) -> None:
    taxonomy = await stores.writer.ensure_paths([CategoryPath.parse("A"), CategoryPath.parse("B")])
    a, b = sorted(taxonomy.nodes)
    document = part(1, node_id=a)
    await stores.writer.write([document])
    assert not await stores.writer.delete(document.document_id, Scope(frozenset({b})))
    assert await stores.index.counts(EVERYTHING) == (1, 1)
    assert await stores.writer.delete(document.document_id, Scope(frozenset({a})))
    assert await stores.index.counts(EVERYTHING) == (0, 0)


async def test_deleting_again_or_an_unknown_document_says_so(stores: Stores) -> None:
    document = part(1)
    await stores.writer.write([document])
    assert await stores.writer.delete(document.document_id, EVERYTHING)
    assert not await stores.writer.delete(document.document_id, EVERYTHING)
    assert not await stores.writer.delete(uuid.uuid4(), EVERYTHING)


async def test_a_source_has_a_fingerprint_when_it_was_read_to_its_end(stores: Stores) -> None:
    document = part(1)
    await stores.writer.write([document])
    assert await stores.writer.source_fingerprint(SOURCE) is None
    await stores.writer.finish_source(SOURCE, FILE, b"one", [upper_half(document)])
    assert await stores.writer.source_fingerprint(SOURCE) == b"one"
    await stores.writer.finish_source(SOURCE, FILE, b"two", [upper_half(document)])
    assert await stores.writer.source_fingerprint(SOURCE) == b"two"


async def test_finishing_a_source_deletes_what_it_does_not_have_any_more(stores: Stores) -> None:
    documents = [part(number) for number in range(3)]
    await stores.writer.write(documents)
    current = [upper_half(documents[0]), upper_half(documents[2])]
    assert await stores.writer.finish_source(SOURCE, FILE, b"one", current) == 1
    remaining = sorted([documents[0].document_id, documents[2].document_id])
    assert await stores.writer.documents_of(SOURCE, 10) == remaining
    assert await stores.writer.source_fingerprint(SOURCE) == b"one"


async def test_finishing_a_source_leaves_documents_outside_of_the_scope(stores: Stores) -> None:
    taxonomy = await stores.writer.ensure_paths([CategoryPath.parse("A"), CategoryPath.parse("B")])
    a, b = sorted(taxonomy.nodes)
    await stores.writer.write([part(1, node_id=a), part(2, node_id=b)])
    scope = Scope(frozenset({a}))
    assert await stores.writer.reaches_out(SOURCE, scope)
    assert await stores.writer.finish_source(SOURCE, FILE, b"one", [], scope) == 1
    assert await stores.writer.documents_of(SOURCE, 10) == [part(2).document_id]


async def test_a_source_reaches_out_of_scopes_that_do_not_hold_all_of_it(stores: Stores) -> None:
    taxonomy = await stores.writer.ensure_paths([CategoryPath.parse("A"), CategoryPath.parse("B")])
    a, b = sorted(taxonomy.nodes)
    await stores.writer.write([part(1, node_id=a), part(2, node_id=a)])
    assert not await stores.writer.reaches_out(SOURCE, Scope(frozenset({a})))
    assert await stores.writer.reaches_out(SOURCE, Scope(frozenset({b})))
    assert not await stores.writer.reaches_out(SOURCE, EVERYTHING)
    assert not await stores.writer.reaches_out(uuid.uuid4(), Scope(frozenset()))


async def test_a_deleted_document_makes_its_source_unread(stores: Stores) -> None:
    documents = [part(1), part(2)]
    await stores.writer.write(documents)
    await stores.writer.finish_source(SOURCE, FILE, b"one", [upper_half(document) for document in documents])
    await stores.writer.delete(documents[0].document_id, EVERYTHING)
    assert await stores.writer.source_fingerprint(SOURCE) is None


async def test_documents_of_a_source_are_ordered_and_limited(stores: Stores) -> None:
    documents = [part(number) for number in range(5)]
    await stores.writer.write([*documents, indexed_document("test:other", ["Elsewhere."])])
    ordered = sorted(document.document_id for document in documents)
    assert await stores.writer.documents_of(SOURCE, 10) == ordered
    assert await stores.writer.documents_of(SOURCE, 2) == ordered[:2]
    assert await stores.writer.documents_of(uuid.uuid4(), 10) == []


async def test_documents_are_read_back_as_they_were_written(stores: Stores) -> None:
    metadata: dict[str, Scalar] = {"author": "Kim", "year": 2025, "draft": False}
    written = indexed_document("test:one", ["First.", "Second."], title="One", metadata=metadata)
    await stores.writer.write([written])
    (draft,) = await stores.writer.read_back(None, 10)
    assert (draft.document_id, draft.source_id, draft.source_uri) == (
        written.document_id,
        written.source_id,
        written.source_uri,
    )
    document = draft.passages.document
    assert (document.title, document.text, document.content_type) == ("One", written.document.text, "text/plain")
    assert dict(document.metadata) == metadata
    assert draft.passages.chunks == tuple(indexed.chunk for indexed in written.chunks)


async def test_headings_and_long_documents_are_read_back_as_they_were_written(stores: Stores) -> None:
    names = ('say "so"', "a\\b", "{x,y}", "NULL", "", " two\nlines ", "제1장 총칙", '\\"')
    headings = [names[:count] for count in range(len(names) + 1)]
    documents = []
    for number, passages in enumerate((1, 0, 300, 2, len(headings))):
        document = part(number, *(f"Passage {passage}." for passage in range(passages)))
        chunks = tuple(
            replace(indexed, chunk=replace(indexed.chunk, breadcrumb=headings[place % len(headings)]))
            for place, indexed in enumerate(document.chunks)
        )
        documents.append(replace(document, chunks=chunks))
    await stores.writer.write(documents)
    await stores.writer.write([replace(documents[2], replaces=True)])
    drafts = await stores.writer.read_back(None, 10)
    assert {draft.document_id: draft.passages.chunks for draft in drafts} == {
        document.document_id: tuple(indexed.chunk for indexed in document.chunks) for document in documents
    }
    assert (await stores.index.snapshot()).statistics.chunks == sum(len(document.chunks) for document in documents)


@pytest.mark.parametrize("seed", seeds(4))
async def test_a_text_is_read_as_it_was_written_whatever_its_passages_cover(stores: Stores, seed: int) -> None:
    """Passages that overlap, contain one another, repeat, leave gaps or are no spans at all."""
    chance = random.Random(seed)
    documents = {}
    for number in range(40):
        text = "".join(chance.choices("abc가😀\n " + "\x1e" * (number % 7 == 6), k=chance.randint(1, 60)))
        places = [sorted(chance.choices(range(len(text) + 1), k=2)) for _ in range(chance.randint(0, 6))]
        if number % 5 == 4:
            places = [[place, place + 1] for place in range(0, len(text), 2)]
        chunks = [Chunk(ordinal, start, end, text[start:end]) for ordinal, (start, end) in enumerate(places)]
        if chunks and number % 10 == 9:
            chunks[-1] = replace(chunks[-1], text="elsewhere")
        document = part(number)
        parsed = replace(document.document, text=text)
        indexed = tuple(analyse(parsed, chunk) for chunk in chunks)
        documents[document.document_id] = replace(document, document=parsed, chunks=indexed)
    await stores.writer.write(list(documents.values()))
    taxonomy = (await stores.index.snapshot()).taxonomy
    drafts = {draft.document_id: draft for draft in await stores.writer.read_back(None, 100)}
    for key, document in documents.items():
        text, (start, end) = document.document.text, sorted(chance.choices(range(61), k=2))
        assert drafts[key].passages.document.text == text
        read = await stores.index.document(key, EVERYTHING, taxonomy)
        assert read is not None
        assert read[1] == text
        shown = await stores.index.document_text(key, start, end, EVERYTHING)
        assert shown is not None
        assert shown.text == text[start:end]


async def test_reading_back_goes_on_behind_the_last_id(stores: Stores) -> None:
    documents = [part(number) for number in range(5)]
    await stores.writer.write(documents)
    read: list[uuid.UUID] = []
    while page := await stores.writer.read_back(read[-1] if read else None, 2):
        assert len(page) <= 2
        read += [draft.document_id for draft in page]
    assert read == sorted(document.document_id for document in documents)


async def test_missing_categories_are_added_once(stores: Stores) -> None:
    first = await stores.writer.ensure_paths([CategoryPath.parse("HR/Leave"), CategoryPath.parse("HR/Pay")])
    again = await stores.writer.ensure_paths([CategoryPath.parse("hr/LEAVE")])
    assert {first.path(node) for node in first.nodes} == {("HR",), ("HR", "Leave"), ("HR", "Pay")}
    assert dict(again.nodes) == dict(first.nodes)
    assert min(first.nodes) > UNCLASSIFIED


async def test_concurrent_additions_of_one_category_give_one_node(stores: Stores) -> None:
    path = CategoryPath.parse("HR/Leave")
    trees = await asyncio.gather(*(stores.writer.ensure_paths([path]) for _ in range(4)))
    assert len({tree.find(path) for tree in trees}) == 1
    assert len((await stores.taxonomy.active()).nodes) == 2


async def test_nothing_is_left_to_recover_or_tidy(stores: Stores) -> None:
    await stores.writer.write([part(1)])
    await stores.writer.tidy()
    assert await stores.writer.recover() == 0
    assert await stores.index.counts(EVERYTHING) == (1, 1)
