"""What every store must do with editions: reads see the passages that are valid on a day, and sources keep history."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import date

from dtrag.core.access.scope import EVERYTHING, NO_FILTERS, Scope
from dtrag.core.documents import IndexedDocument, document_id
from dtrag.core.editions import Edition, WorkBeginning, edition_id
from dtrag.core.ranking.bm25 import LexicalQuery
from dtrag.core.text.analysis import term_id
from dtrag.ports import Stores
from dtrag.regulations.collection_reader import CollectionReader
from tests.builders import indexed_document

WORK = uuid.UUID(int=7)
FILE = "file:///rules.md"
FIRST, SECOND, LATER = date(2020, 3, 1), date(2023, 3, 1), date(2023, 9, 1)


def edition(day: date, *texts: str, later: date | None = None, repeals: tuple[str, ...] = ()) -> IndexedDocument:
    """An edition with 제1조, 제2조 …; the change of 제2조 takes effect `later`."""
    passages = [{"kind": "article", "article": f"제{number}조"} for number in range(1, len(texts) + 1)]
    document = indexed_document(f"{FILE}#{day}", texts, source_uri=FILE, title="Rules", passages=passages)
    dates = {"제2조": later} if later else {}
    stated = Edition("Rules", "1", day, dates, repeals, WORK)
    return replace(document, document_id=edition_id(WORK, day), edition=stated)


async def write(stores: Stores) -> tuple[IndexedDocument, IndexedDocument]:
    """Both editions, in the index."""
    old = edition(FIRST, "A kettle.", "A boiler.", "A valve.")
    new = edition(SECOND, "A kettle.", "A furnace.", later=LATER)
    await stores.writer.write([old])
    await stores.writer.write([new])
    return old, new


async def words(stores: Stores, day: date) -> set[str]:
    """The words that a search finds on the day."""
    found = set[str]()
    taxonomy = (await stores.index.snapshot()).taxonomy
    scope = EVERYTHING.at(day)
    for word in ("kettl", "boiler", "furnac", "valv"):
        statistics = await stores.index.statistics([term_id(word)], scope)
        query = LexicalQuery.of([(term_id(word), 1.0)], statistics)
        hits = await stores.index.lexical(query, scope, NO_FILTERS, 10)
        assert len(hits) == statistics.document_frequency(term_id(word)) <= 1
        fetched = await stores.index.fetch(list(hits), scope, taxonomy)
        assert fetched.keys() == hits.keys()
        found |= {word} if hits else set()
    return found


async def test_each_day_has_its_own_passages(stores: Stores) -> None:
    await write(stores)
    assert await words(stores, date(2020, 2, 29)) == set()
    assert await words(stores, FIRST) == {"kettl", "boiler", "valv"}
    assert await words(stores, SECOND) == {"kettl", "boiler"}
    assert await words(stores, LATER) == {"kettl", "furnac"}
    assert await stores.index.counts(EVERYTHING) == (1, 2)
    assert await stores.index.counts(EVERYTHING.at(FIRST)) == (1, 3)


async def test_a_work_begins_with_its_oldest_edition_in_scope(stores: Stores) -> None:
    old, _ = await write(stores)
    begins = [WorkBeginning("Rules", FIRST)]
    assert await stores.index.work_beginnings(EVERYTHING.at(LATER)) == begins
    assert await stores.index.work_beginnings(EVERYTHING.at(date(2020, 2, 29))) == begins
    assert await stores.index.work_beginnings(Scope(frozenset())) == []
    await stores.writer.delete(old.document_id, EVERYTHING)
    assert await stores.index.work_beginnings(EVERYTHING) == [WorkBeginning("Rules", SECOND)]


async def test_editions_are_those_of_now_though_their_texts_are_cached(stores: Stores) -> None:
    def regulation(day: date, *texts: str) -> IndexedDocument:
        document = edition(day, *texts)
        return replace(document, document=replace(document.document, metadata={"kind": "regulation"}))

    async def read(scope: Scope = EVERYTHING) -> list[tuple[date | None, date | None, str]]:
        editions = await stores.regulations.editions([old.document_id], scope)
        snapshot = await stores.index.snapshot()
        cached = await reader.editions([old.document_id], snapshot, scope)
        assert cached == editions
        again = await reader.editions([old.document_id], snapshot, scope)
        assert all(first is second for first, second in zip(again, cached, strict=True))
        return [(row.effective_from, row.superseded_from, row.text) for row in editions]

    reader = CollectionReader(stores.regulations)
    old, new = regulation(FIRST, "A kettle."), regulation(SECOND, "A furnace.")
    await stores.writer.write([old])
    assert await read() == [(FIRST, None, "A kettle.")]
    await stores.writer.write([new])
    both = [(FIRST, SECOND, "A kettle."), (SECOND, None, "A furnace.")]
    assert await read() == await read() == both
    (first, _) = await stores.regulations.editions([old.document_id], EVERYTHING)
    assert [row.label for row in first.provisions] == ["제1조"]
    assert await read(Scope(frozenset())) == []
    await stores.writer.write([replace(regulation(FIRST, "A boiler.", "A valve."), replaces=True)])
    assert [text for _, _, text in await read()] == ["A boiler.\n\nA valve.", "A furnace."]
    await stores.writer.delete(new.document_id, EVERYTHING)
    assert [(start, end) for start, end, _ in await read()] == [(FIRST, None)]


async def test_a_source_keeps_its_superseded_editions(stores: Stores) -> None:
    old, new = await write(stores)
    source = document_id(FILE)
    upper = [new.document_id.int >> 64]
    assert await stores.writer.finish_source(source, FILE, b"two", upper) == 0
    assert await stores.folders.retained_below(FILE) == [old.document_id]
    assert await stores.writer.drop_source(source, EVERYTHING) == [new.document_id]
    assert await words(stores, date(2026, 1, 1)) == set()
    assert await words(stores, FIRST) == {"kettl", "boiler", "valv"}


async def test_an_edition_goes_to_another_source_that_contains_it(stores: Stores) -> None:
    old, new = await write(stores)
    first, second = document_id(FILE), uuid.UUID(int=77)
    upper = [row.document_id.int >> 64 for row in (old, new)]
    await stores.writer.finish_source(first, FILE, b"one", upper)
    again = [replace(row, source_id=second, source_uri="test:copy", replaces=True) for row in (old, new)]
    await stores.writer.write(again)
    await stores.writer.finish_source(second, "test:copy", b"two", upper)
    files = await stores.folders.files_below(FILE)
    assert [(file.source_id, file.documents) for file in files] == [(first, 0)]
    assert await stores.writer.contains_others(first)
    assert not await stores.writer.contains_others(second)
    assert await stores.writer.drop_source(second, EVERYTHING) == []
    assert not await stores.writer.contains_others(first)
    assert await stores.writer.documents_of(first, 9) == sorted([old.document_id, new.document_id])
    assert await stores.folders.retained_below(FILE) == []
    assert await stores.writer.source_fingerprint(first) == b"", "it is read again"
    assert await words(stores, date(2026, 1, 1)) == {"kettl", "furnac"}
    assert await stores.writer.drop_source(first, EVERYTHING) == [new.document_id]
    assert await stores.folders.retained_below(FILE) == [old.document_id]


async def test_a_source_that_was_read_again_without_an_edition_does_not_inherit_it(stores: Stores) -> None:
    _, new = await write(stores)
    second = uuid.UUID(int=77)
    await stores.writer.write([replace(new, source_id=second, source_uri="test:copy", replaces=True)])
    await stores.writer.finish_source(document_id(FILE), FILE, b"one", [7])
    assert await stores.writer.drop_source(second, EVERYTHING) == [new.document_id]


async def test_all_sources_of_a_deleted_edition_are_read_again(stores: Stores) -> None:
    _, new = await write(stores)
    second = uuid.UUID(int=77)
    upper = [new.document_id.int >> 64]
    await stores.writer.finish_source(document_id(FILE), FILE, b"one", upper)
    await stores.writer.write([replace(new, source_id=second, source_uri="test:copy", replaces=True)])
    await stores.writer.finish_source(second, "test:copy", b"two", upper)
    assert await stores.writer.delete(new.document_id, EVERYTHING)
    assert await stores.writer.source_fingerprint(document_id(FILE)) is None
    assert await stores.writer.source_fingerprint(second) is None


async def test_a_deleted_edition_was_never_valid(stores: Stores) -> None:
    _, new = await write(stores)
    assert await stores.writer.delete(new.document_id, EVERYTHING)
    assert await words(stores, date(2026, 1, 1)) == {"kettl", "boiler", "valv"}


async def test_a_work_is_found_by_code_and_name(stores: Stores) -> None:
    _, new = await write(stores)
    [work] = await stores.writer.works([("1", "Rules"), ("2", "Rules")])
    assert (work.work_id, work.node_id, work.source_id) == (WORK, new.node_id, new.source_id)
    assert await stores.writer.works([("", "Rules")]) == []


async def test_another_regulation_of_the_category_repeals_it(stores: Stores) -> None:
    await write(stores)
    other = edition(date(2024, 1, 1), "A tap.", repeals=("Rules",))
    stated = Edition("Other", "", date(2024, 1, 1), {}, ("Rules",), uuid.UUID(int=8))
    await stores.writer.write([replace(other, document_id=uuid.UUID(int=9), edition=stated)])
    assert await words(stores, date(2023, 12, 31)) == {"kettl", "furnac"}
    assert await words(stores, date(2024, 1, 1)) == set()


async def test_a_stored_edition_is_read_back_as_it_was_written(stores: Stores) -> None:
    old, new = await write(stores)
    drafts = {draft.document_id: draft.edition for draft in await stores.writer.read_back(None, 10)}
    assert drafts == {old.document_id: old.edition, new.document_id: new.edition}
