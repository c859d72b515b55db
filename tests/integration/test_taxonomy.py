"""Versions of the category tree on a real database: documents are found where the tree in force says."""

from __future__ import annotations

import asyncio
import struct
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.adapters.postgres.stores.taxonomy import PostgresTaxonomy
from dtrag.adapters.postgres.stores.vectors import PostgresVectors
from dtrag.app import App, open_app
from dtrag.core.access.scope import NO_FILTERS, Access, Grant
from dtrag.core.taxonomy.tree import UNCLASSIFIED, CategoryPath
from dtrag.core.taxonomy.versions import PathChange
from dtrag.errors import Conflict, InvalidInput, NotFound
from dtrag.ingestion.vectors import VectorFiller
from dtrag.settings import Settings
from tests.builders import indexed_document
from tests.cases import each
from tests.store import Store
from tests.toy import ToyEmbedder

EMBEDDER = ToyEmbedder()
PLACES = ("AI", "AI/ML", "AI/NLP", "HR", "HR/Pay", "Law")


@pytest_asyncio.fixture
async def filled(app: App) -> AsyncIterator[App]:
    """Four documents in each place."""
    writer = PostgresWriter(app.database)
    taxonomy = await writer.ensure_paths([CategoryPath.parse(place) for place in PLACES])
    documents = []
    for place in PLACES:
        node = taxonomy.find(CategoryPath.parse(place)) or 0
        for number in range(4):
            word = "kettle boiler" if number % 2 else "kettle library"
            documents.append(indexed_document(f"{place}:{number}", [f"{word} {number}"], node_id=node))
    await writer.write(documents)
    await VectorFiller(PostgresVectors(app.database), EMBEDDER).fill()
    yield app


async def seen(app: App, *paths: str, grant: Grant | None = None) -> set[str]:
    """Titles that a search with this scope finds, the same by words and by vectors."""
    now = (await app.index.snapshot()).taxonomy
    scope = Access((grant or Grant.of([CategoryPath.parse(path) for path in paths], now),)).resolved(now)
    words, _ = await app.search("kettle", 100, mode="lexical", scope=scope)
    snapshot = await app.index.snapshot()
    assert snapshot.taxonomy == now
    await VectorFiller(PostgresVectors(app.database), EMBEDDER).fill()  # those of later documents
    await app.index.snapshot()  # `vectors` returns those of the snapshot that was read last
    [vector] = EMBEDDER.embed_queries(["kettle"])
    near = await app.index.vectors(vector, EMBEDDER.id, scope, NO_FILTERS, 100)
    titles = {result.title for result in words}
    assert {result.chunk_id for result in words} == set(near)
    listed = await app.documents(1_000, scope=scope)
    assert {document.title for document in listed} == titles
    return titles


def of(*places: str) -> set[str]:
    return {f"{place}:{number}" for place in places for number in range(4)}


async def change(app: App, *rows: dict[str, object]) -> str:
    version = (await app.taxonomy.propose(list(rows))).version
    await app.taxonomy.activate(version, accept_widening=True)
    return version


async def test_moves_and_renames_touch_no_document_and_grants_follow_the_node(filled: App, store: Store) -> None:
    before = (await filled.index.snapshot()).taxonomy
    grant = Grant.of([CategoryPath.parse("AI/ML")], before)
    heads = store.rows("select segment_id, edition, documents from lexical_segments")
    await change(filled, {"op": "move", "path": "AI/ML", "to": "HR"}, {"op": "rename", "path": "HR/ML", "name": "기계"})
    assert await seen(filled, grant=grant) == of("AI/ML") == await seen(filled, "HR/기계")
    assert await seen(filled, "AI") == of("AI", "AI/NLP")
    assert store.rows("select segment_id, edition, documents from lexical_segments") == heads
    await filled.taxonomy.rollback("1.0.0", accept_widening=True)
    assert await seen(filled, "AI") == of("AI", "AI/ML", "AI/NLP")
    assert (await filled.index.snapshot()).taxonomy == before


async def test_merge_and_delete_move_documents_and_a_rollback_restores_them(filled: App, store: Store) -> None:
    assert await seen(filled, "AI") == of("AI", "AI/ML", "AI/NLP")  # the reader's heads are loaded
    await change(filled, {"op": "merge", "paths": ["AI/ML"], "into": "HR/Pay"}, {"op": "delete", "path": "Law"})
    assert await seen(filled, "AI") == of("AI", "AI/NLP")
    assert await seen(filled, "HR/Pay") == of("HR/Pay", "AI/ML")
    assert await seen(filled, "Law") == set()
    assert store.value("select count(*) from documents where node_id = %s", UNCLASSIFIED) == 4
    store.assert_whole()
    assert_heads(store)
    await filled.taxonomy.rollback("1.0.0", accept_widening=True)
    assert await seen(filled, "AI/ML") == of("AI/ML")
    assert await seen(filled, "HR/Pay") == of("HR/Pay")
    assert await seen(filled, "Law") == of("Law")
    store.assert_whole()
    assert_heads(store)


async def test_a_split_goes_by_names_and_keywords(filled: App, store: Store) -> None:
    [named] = [document.document_id for document in await filled.documents(100) if document.title == "AI/ML:0"]
    parts = [
        {"name": "Boilers", "keywords": ["boiler", "steam boiler", "valve"][:1]},
        {"name": "One", "documents": [named]},
    ]
    await change(filled, {"op": "split", "path": "AI/ML", "into": parts})
    assert await seen(filled, "AI/ML/Boilers") == {"AI/ML:1", "AI/ML:3"}
    assert await seen(filled, "AI/ML/One") == {"AI/ML:0"}
    assert await seen(filled, "AI/ML") == of("AI/ML")
    assert_heads(store)


async def test_a_rollback_moves_documents_of_later_paths_to_the_nearest_node(filled: App, store: Store) -> None:
    await change(filled, {"op": "add", "path": "AI/New"})
    writer = PostgresWriter(filled.database)
    taxonomy = await writer.ensure_paths([CategoryPath.parse("AI/New/Deep"), CategoryPath.parse("Top")])
    for place in ("AI/New/Deep", "Top"):
        node = taxonomy.find(CategoryPath.parse(place)) or 0
        await writer.write([indexed_document(f"{place}:0", ["kettle"], node_id=node)])
    await filled.taxonomy.rollback("1.0.0", accept_widening=True)
    assert await seen(filled, "AI") == of("AI", "AI/ML", "AI/NLP") | {"AI/New/Deep:0"}
    assert store.value("select node_id from documents where title = 'Top:0'") == UNCLASSIFIED
    await filled.taxonomy.rollback("1.1.0", accept_widening=True)
    assert await seen(filled, "AI/New/Deep") == {"AI/New/Deep:0"}, "the way back can be gone back, too"
    assert_heads(store)


async def test_versions_that_cannot_be_activated_are_refused(filled: App) -> None:
    one = (await filled.taxonomy.propose([{"op": "add", "path": "X"}])).version
    two = (await filled.taxonomy.propose([{"op": "add", "path": "Y"}])).version
    assert (one, two) == ("1.1.0", "1.1.1")
    with pytest.raises(Conflict, match="never active"):
        await filled.taxonomy.rollback(one)
    await filled.taxonomy.activate(one)
    with pytest.raises(Conflict, match="active already"):
        await filled.taxonomy.activate(one)
    with pytest.raises(Conflict, match="Propose the change again"):
        await filled.taxonomy.activate(two)
    with pytest.raises(NotFound, match="no version"):
        await filled.taxonomy.activate("9.9.9")
    with pytest.raises(InvalidInput, match="Invalid version format"):
        await filled.taxonomy.activate("latest")
    with pytest.raises(Conflict, match="already"):
        await filled.taxonomy.propose([{"op": "add", "path": "Z"}], version="1.0.0")


async def test_paths_added_after_the_proposal_stay(filled: App) -> None:
    version = (await filled.taxonomy.propose([{"op": "merge", "paths": ["AI"], "into": "HR"}])).version
    taxonomy = await PostgresTaxonomy(filled.database).ensure([CategoryPath.parse("AI/Late")])
    late = taxonomy.find(CategoryPath.parse("AI/Late")) or 0
    await PostgresWriter(filled.database).write([indexed_document("late", ["kettle"], node_id=late)])
    await filled.taxonomy.activate(version)
    assert await seen(filled, "HR/Late") == {"late"}


async def test_callers_who_gain_access_are_listed_and_must_be_accepted(filled: App) -> None:
    await filled.keys.create("payroll", ["HR/Pay"], "reader")
    await filled.keys.create("ml", ["AI/ML"], "reader")
    await filled.keys.create("root", None, "admin")
    version = (await filled.taxonomy.propose([{"op": "merge", "paths": ["AI/ML"], "into": "HR/Pay"}])).version
    found = await filled.taxonomy.preview(version)
    assert [(row.before, row.to, row.documents) for row in found.moved] == [(("AI", "ML"), ("HR", "Pay"), 4)]
    assert {(row.name, row.gained, row.lost) for row in found.access} == {("payroll", 4, 0), ("ml", 0, 4)}
    [gain] = found.widened
    assert {example.title for example in gain.gains} <= of("AI/ML") and gain.gains
    with pytest.raises(Conflict, match=r"key payroll \(4\).*--accept-widening"):
        await filled.taxonomy.activate(version)
    assert await seen(filled, "HR/Pay") == of("HR/Pay")
    assert await filled.taxonomy.activate(version, accept_widening=True) == found
    back = await filled.taxonomy.preview("1.0.0")
    assert {(row.name, row.gained, row.lost) for row in back.access} == {("payroll", 0, 4), ("ml", 4, 0)}


async def test_a_document_written_for_a_removed_node_goes_to_its_successor(filled: App, store: Store) -> None:
    node = (await filled.index.snapshot()).taxonomy.find(CategoryPath.parse("AI/ML")) or 0
    law = (await filled.index.snapshot()).taxonomy.find(CategoryPath.parse("Law")) or 0
    await change(filled, {"op": "merge", "paths": ["AI/ML"], "into": "HR"}, {"op": "delete", "path": "Law"})
    await change(filled, {"op": "merge", "paths": ["HR"], "into": "AI"})
    late = [indexed_document(f"late:{number}", ["kettle"], node_id=number) for number in (node, law)]
    await PostgresWriter(filled.database).write(late)
    assert f"late:{node}" in await seen(filled, "AI")
    assert store.value("select node_id from documents where title = %s", f"late:{law}") == UNCLASSIFIED
    assert_heads(store)


async def test_ingest_and_searches_continue_while_branches_move(filled: App, store: Store) -> None:
    writer, taxonomy = PostgresWriter(filled.database), (await filled.index.snapshot()).taxonomy
    ml = taxonomy.find(CategoryPath.parse("AI/ML")) or 0
    grant = Grant.of([CategoryPath.parse("AI")], taxonomy)
    allowed = of("AI", "AI/ML", "AI/NLP")
    done = asyncio.Event()

    async def write() -> int:
        number = 0
        while not done.is_set():
            batch = [indexed_document(f"w:{number}:{part}", ["kettle"], node_id=ml) for part in range(5)]
            await writer.write(batch)
            number += 1
        return number

    async def ask() -> int:
        asked = 0
        while not done.is_set():
            found, _ = await filled.search("boiler library", 100, mode="lexical", scope=Access((grant,)))
            titles = {result.title for result in found}
            assert titles <= allowed and titles >= of("AI", "AI/NLP")
            asked += 1
            await asyncio.sleep(0.02)
        return asked

    async def govern() -> None:
        try:
            for _ in range(5):
                await change(filled, {"op": "merge", "paths": ["AI/ML"], "into": "HR/Pay"})
                await asyncio.sleep(0.1)
                await filled.taxonomy.rollback("1.0.0", accept_widening=True)
                await change(filled, {"op": "move", "path": "AI/ML", "to": "HR"})
                await asyncio.sleep(0.1)
                await filled.taxonomy.rollback("1.0.0", accept_widening=True)
        finally:
            done.set()

    written, asked, *_ = await asyncio.gather(write(), ask(), govern())
    assert written > 3 and asked > 10
    store.assert_whole()
    assert_heads(store)
    assert (
        store.value(
            "select count(*) from documents where node_id not in (select node_id from taxonomy_tree"
            " join taxonomy_versions using (version) where active)"
        )
        == 0
    )


async def test_a_moved_document_disappears_from_answers_and_caches_of_callers_without_access(
    settings: Settings,
) -> None:
    """Hostile case 18."""
    async with open_app(settings) as one, open_app(settings) as other:
        writer = PostgresWriter(one.database)
        taxonomy = await writer.ensure_paths([CategoryPath.parse("ai"), CategoryPath.parse("hr")])
        node = taxonomy.find(CategoryPath.parse("ai")) or 0
        await writer.write([indexed_document("secret", ["The zymurgite allowance is seven."], node_id=node)])
        access = Access((Grant.of([CategoryPath.parse("ai")], taxonomy),))
        for app in (one, other):
            assert [r.title for r in (await app.search("zymurgite", scope=access, mode="lexical"))[0]] == ["secret"]
            assert (await app.ask("What is the zymurgite allowance?", scope=access)).citations
        version = (await one.taxonomy.propose([{"op": "merge", "paths": ["ai"], "into": "hr"}])).version
        await one.taxonomy.activate(version)
        for app in (one, other):
            assert (await app.search("zymurgite", scope=access, mode="lexical"))[0] == []
            assert not (await app.ask("What is the zymurgite allowance?", scope=access)).citations
            assert await app.documents(scope=access) == []


async def test_trees_are_exported_and_imported_as_yaml(filled: App) -> None:
    text = await filled.taxonomy.export()
    assert text.startswith("AI:\n  ML: {}\n")
    version = (await filled.taxonomy.import_tree(text + "New:\n  Deep: {}\n")).version
    found = await filled.taxonomy.diff(version, "active")
    assert found.added == (("New",), ("New", "Deep")) and not found.removed
    with pytest.raises(InvalidInput, match="nothing to propose"):
        await filled.taxonomy.import_tree(text)
    with pytest.raises(InvalidInput, match="references"):
        await filled.taxonomy.import_tree("A: &a {x: {}}\nB: *a\n")
    with pytest.raises(InvalidInput, match="repeated"):
        await filled.taxonomy.import_tree("A: {}\nA: {}\n")
    kept = await filled.taxonomy.propose_file(
        "rationale: tidy\noperations:\n- {op: merge, paths: [AI/ML], into: HR}\n"
        "- {op: rename, path: Law, name: Recht}\n"
    )
    assert (kept.version, kept.rationale) == ("2.0.0", "tidy")
    found = await filled.taxonomy.diff("2.0.0", "1.0.0")
    assert found.merged == (PathChange(("AI", "ML"), ("HR",)),) and found.renamed == (PathChange(("Law",), ("Recht",)),)


def assert_heads(store: Store) -> None:
    """The heads of segments say of every living document the node that its row says."""
    there = dict(store.rows("select document_id, node_id from documents"))
    gone = {
        (document, origin)
        for documents, origins in store.rows("select document_ids, origins from lexical_corrections")
        for document, origin in zip(documents, origins, strict=True)
    }
    found: dict[uuid.UUID, int] = {}
    for (head,) in store.rows("select documents from lexical_segments where counted"):
        for d1, d0, o1, o0, _, node, _ in struct.iter_unpack("<QQQQQii", head):
            document, origin = uuid.UUID(int=d1 << 64 | d0), uuid.UUID(int=o1 << 64 | o0)
            if (document, origin) not in gone:
                found[document] = node
    assert found == there


@each("number", [2, 7, 2**40])
async def test_callers_cannot_choose_node_ids(filled: App, number: int) -> None:
    """A number that was in use before would revive what was granted with it."""
    for change in (
        {"op": "add", "path": ["Chosen"], "node_id": number},
        {"op": "split", "path": ["AI"], "into": [{"name": "Chosen", "keywords": ["x"], "node_id": number}]},
    ):
        with pytest.raises(InvalidInput, match="leave it out"):
            await filled.taxonomy.propose([change])


@each("change", [True, None, "x", ["add"], {"op": 1}, {}])
async def test_invalid_operations_are_refused(filled: App, change: Any) -> None:
    with pytest.raises(InvalidInput, match="Operation 1"):
        await filled.taxonomy.propose([change])
