"""The index on PostgreSQL: every search and read stays in its scope, with everything that is computed."""

from __future__ import annotations

import unicodedata
import uuid
from dataclasses import replace

import numpy as np
import pytest

from dtrag.core.access.scope import EVERYTHING, NO_FILTERS, Scope, SearchFilters
from dtrag.core.document_listing import DocumentListing, Sort, continuation, sort_title
from dtrag.core.documents import DocumentSummary, document_id
from dtrag.core.ranking.bm25 import LexicalQuery, LexicalStatistics
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.text.analysis import term_id, terms
from dtrag.core.text.passage_title_mentions import title_key, title_number
from dtrag.ports import DocumentIndex, Stores
from tests.builders import (
    BOILER,
    EMBEDDER,
    KETTLE,
    LEAVE,
    NOTHING,
    SALARY,
    branch_nodes,
    chunk_id,
    filled,
    indexed_document,
)


async def query_for(index: DocumentIndex, text: str, scope: Scope) -> LexicalQuery:
    """The query, weighed by the statistics of the scope as the engine does it."""
    ids = [term_id(term) for term in terms(text)]
    return LexicalQuery.of([(term, 1.0) for term in ids], await index.statistics(ids, scope))


def documents_in(scores: dict[str, float]) -> set[uuid.UUID]:
    """The documents of the passages."""
    return {uuid.UUID(key.rpartition(":")[0]) for key in scores}


async def test_an_empty_index_finds_nothing(stores: Stores) -> None:
    index = stores.index
    query = await query_for(index, "valve", EVERYTHING)
    assert await index.lexical(query, EVERYTHING, NO_FILTERS, 5) == {}
    assert await index.strict("valve", EVERYTHING, NO_FILTERS, 5) == {}
    assert await index.vectors(EMBEDDER.embed_queries(["valve"])[0], EMBEDDER.id, EVERYTHING, NO_FILTERS, 5) == {}
    assert await index.counts(EVERYTHING) == (0, 0)


async def test_lexical_search_ranks_by_bm25(stores: Stores) -> None:
    await filled(stores)
    await stores.index.snapshot()
    query = await query_for(stores.index, "valve kettle", EVERYTHING)
    scores = await stores.index.lexical(query, EVERYTHING, NO_FILTERS, 10)
    assert list(scores.values()) == sorted(scores.values(), reverse=True)
    assert next(iter(scores)) == chunk_id(KETTLE, 0)
    assert documents_in(scores) == {KETTLE, BOILER, SALARY}
    assert all(score > 0 for score in scores.values())


async def test_required_terms_are_in_every_candidate(stores: Stores) -> None:
    await filled(stores)
    await stores.index.snapshot()
    query = await query_for(stores.index, "valve kettle", EVERYTHING)
    both = replace(query, required=frozenset({term_id("valv"), term_id("kettl")}))
    scores = await stores.index.lexical(both, EVERYTHING, NO_FILTERS, 1)
    assert documents_in(scores) == {KETTLE}
    assert scores.items() <= (await stores.index.lexical(query, EVERYTHING, NO_FILTERS, 10)).items()
    absent = replace(query, required=frozenset({term_id("valv"), term_id("zeppelin")}))
    assert await stores.index.lexical(absent, EVERYTHING, NO_FILTERS, 10) == {}


async def test_the_limit_keeps_the_best(stores: Stores) -> None:
    await filled(stores)
    await stores.index.snapshot()
    query = await query_for(stores.index, "valve kettle", EVERYTHING)
    scores = await stores.index.lexical(query, EVERYTHING, NO_FILTERS, 10)
    best = await stores.index.lexical(query, EVERYTHING, NO_FILTERS, 2)
    assert list(best) == list(scores)[:2]


async def test_scores_of_named_passages_are_those_of_the_search(stores: Stores) -> None:
    await filled(stores)
    await stores.index.snapshot()
    query = await query_for(stores.index, "valve", EVERYTHING)
    scores = await stores.index.lexical(query, EVERYTHING, NO_FILTERS, 10)
    named = await stores.index.lexical_scores(query, [*scores, chunk_id(LEAVE), chunk_id(uuid.uuid4())], EVERYTHING)
    assert named == pytest.approx({**scores, chunk_id(LEAVE): 0.0}, rel=1e-4)


@pytest.mark.parametrize("search", ["lexical", "strict", "vectors"])
async def test_a_search_stays_in_its_scope(stores: Stores, search: str) -> None:
    _, machines, staff = await filled(stores)
    assert await _documents(stores, search, machines) == {KETTLE, BOILER}
    assert SALARY in await _documents(stores, search, staff)
    assert not await _documents(stores, search, staff) & {KETTLE, BOILER}
    assert await _documents(stores, search, NOTHING) == set()


@pytest.mark.parametrize("search", ["lexical", "strict", "vectors"])
async def test_filters_narrow_a_search(stores: Stores, search: str) -> None:
    await filled(stores)
    by_type = SearchFilters.parse({"content_types": ["text/markdown"]})
    by_author = SearchFilters.parse({"metadata": {"author": "Kim"}}, ["author"])
    assert await _documents(stores, search, EVERYTHING, by_type) == {BOILER}
    assert await _documents(stores, search, EVERYTHING, by_author) == {KETTLE}
    future = SearchFilters.parse({"date_from": "2200-01-01"})
    assert await _documents(stores, search, EVERYTHING, future) == set()


async def _documents(stores: Stores, search: str, scope: Scope, filters: SearchFilters = NO_FILTERS) -> set[uuid.UUID]:
    index = stores.index
    await index.snapshot()
    if search == "lexical":
        return documents_in(await index.lexical(await query_for(index, "valve", scope), scope, filters, 10))
    if search == "strict":
        return documents_in(await index.strict("valve", scope, filters, 10))
    return documents_in(await index.vectors(EMBEDDER.embed_queries(["valve"])[0], EMBEDDER.id, scope, filters, 10))


async def test_statistics_count_the_scope_and_nothing_else(stores: Stores) -> None:
    _, machines, staff = await filled(stores)
    await stores.index.snapshot()
    valve = term_id("valv")
    assert (await _statistics(stores, valve, EVERYTHING)) == (5, 3)
    assert (await _statistics(stores, valve, machines)) == (3, 2)
    assert (await _statistics(stores, valve, staff)) == (2, 1)
    assert (await _statistics(stores, valve, NOTHING)) == (0, 0)


async def _statistics(stores: Stores, term: int, scope: Scope) -> tuple[int, int]:
    statistics: LexicalStatistics = await stores.index.statistics([term], scope)
    return statistics.chunks, statistics.document_frequency(term)


async def test_strict_search_takes_passages_with_every_word(stores: Stores) -> None:
    await filled(stores)
    assert documents_in(await stores.index.strict("kettle valve", EVERYTHING, NO_FILTERS, 5)) == {KETTLE}
    assert documents_in(await stores.index.strict("boilers valves", EVERYTHING, NO_FILTERS, 5)) == {BOILER}
    assert await stores.index.strict("kettle boiler", EVERYTHING, NO_FILTERS, 5) == {}


async def test_vector_search_ranks_by_cosine(stores: Stores) -> None:
    await filled(stores)
    text = "test:leave\nLeave is granted in summer."
    query = EMBEDDER.embed_queries([text])[0]
    scores = await stores.index.vectors(query, EMBEDDER.id, EVERYTHING, NO_FILTERS, 3)
    assert len(scores) == 3
    assert next(iter(scores)) == chunk_id(LEAVE)
    assert scores[chunk_id(LEAVE)] == pytest.approx(1.0, abs=0.01)
    assert list(scores.values()) == sorted(scores.values(), reverse=True)


async def test_cosines_of_named_passages_stay_in_scope(stores: Stores) -> None:
    _, machines, _ = await filled(stores)
    query = EMBEDDER.embed_queries(["valve"])[0]
    keys = [chunk_id(KETTLE), chunk_id(SALARY), chunk_id(uuid.uuid4())]
    scores = await stores.index.vector_scores(query, EMBEDDER.id, keys, machines)
    assert list(scores) == [chunk_id(KETTLE)]
    expected = float(np.dot(query, EMBEDDER.embed_documents(["Kettle manual\nThe kettle has a valve."])[0]))
    assert scores[chunk_id(KETTLE)] == pytest.approx(expected, abs=0.01)


async def test_passages_are_fetched_in_scope_and_as_the_filters_admit(stores: Stores) -> None:
    taxonomy, machines, _ = await filled(stores)
    keys = [chunk_id(KETTLE, 1), chunk_id(SALARY), chunk_id(uuid.uuid4())]
    passages = await stores.index.fetch(keys, machines, taxonomy)
    assert list(passages) == [chunk_id(KETTLE, 1)]
    passage = passages[chunk_id(KETTLE, 1)]
    assert (passage.text, passage.title, passage.taxonomy_path) == (
        "Fill the kettle with water.",
        "Kettle manual",
        ["AI", "Machines"],
    )
    assert (passage.start, passage.end) == (25, 52)
    assert passage.metadata["document_id"] == str(KETTLE)
    assert passage.metadata["author"] == "Kim"
    markdown = SearchFilters.parse({"content_types": ["text/markdown"]})
    assert await stores.index.fetch(keys, machines, taxonomy, markdown) == {}


async def test_a_passage_that_was_fetched_before_is_fetched_as_it_is_now(stores: Stores) -> None:
    taxonomy, machines, staff = await filled(stores)
    key = chunk_id(KETTLE)
    first = (await stores.index.fetch([key], EVERYTHING, taxonomy))[key]
    assert (await stores.index.fetch([key, chunk_id(BOILER)], EVERYTHING, taxonomy))[key] == first
    first.metadata["author"] = "changed by a caller"  # type: ignore[index]
    first.taxonomy_path.clear()
    again = (await stores.index.fetch([key], machines, taxonomy))[key]
    assert (again.metadata["author"], again.taxonomy_path) == ("Kim", ["AI", "Machines"])
    assert await stores.index.fetch([key], staff, taxonomy) == {}, "a cached passage stays out of scope"
    (staff_node,) = branch_nodes(staff)
    moved = indexed_document("test:kettle", ["The kettle whistles."], node_id=staff_node, replaces=True)
    await stores.writer.write([moved])
    assert await stores.index.fetch([key], machines, taxonomy) == {}
    assert (await stores.index.fetch([key], staff, taxonomy))[key].text == "The kettle whistles."
    await stores.writer.delete(KETTLE, EVERYTHING)
    assert await stores.index.fetch([key], EVERYTHING, taxonomy) == {}


async def test_a_document_lists_its_passages_in_order(stores: Stores) -> None:
    _, machines, staff = await filled(stores)
    assert await stores.index.chunk_ids(KETTLE, machines) == [chunk_id(KETTLE, 0), chunk_id(KETTLE, 1)]
    assert await stores.index.chunk_ids(KETTLE, staff) == []
    assert await stores.index.chunk_ids(uuid.uuid4(), EVERYTHING) == []


async def test_passages_before_one_are_listed_in_scope_the_nearest_first(stores: Stores) -> None:
    _, machines, staff = await filled(stores)
    keys = [chunk_id(KETTLE, 0), chunk_id(KETTLE, 1), chunk_id(BOILER, 0), chunk_id(LEAVE, 0)]
    first = (0, "The kettle has a valve.")
    assert await stores.index.preceding(keys, machines, 3) == {chunk_id(KETTLE, 1): [first]}
    assert await stores.index.preceding(keys, staff, 3) == {}
    await stores.writer.write([indexed_document("test:long", ["One.", "Two.", "Three."])])
    last = chunk_id(document_id("test:long"), 2)
    assert await stores.index.preceding([last], EVERYTHING, 2) == {last: [(6, "Two."), (0, "One.")]}
    assert await stores.index.preceding([last], EVERYTHING, 1) == {last: [(6, "Two.")]}


async def test_a_title_names_a_document_that_is_the_only_one_in_scope(stores: Stores) -> None:
    _, machines, staff = await filled(stores)
    number = title_number(title_key("Kettle manual"))
    await stores.index.snapshot()
    passages = [chunk_id(KETTLE, 0), chunk_id(KETTLE, 1)]
    assert await stores.index.titled(np.array([number, 7, number], np.uint64), machines) == {number: passages}
    assert await stores.index.titled(np.array([number], np.uint64), staff) == {}
    (staff_node,) = branch_nodes(staff)
    await stores.writer.write([indexed_document("test:copy", ["A copy."], node_id=staff_node, title="Kettle manual")])
    await stores.index.snapshot()
    assert await stores.index.titled(np.array([number], np.uint64), EVERYTHING) == {}
    assert await stores.index.titled(np.array([number], np.uint64), machines) == {number: passages}


async def test_a_kind_is_held_in_scope(stores: Stores) -> None:
    _, machines, staff = await filled(stores)
    assert await stores.index.holds_kind("manual", machines)
    assert not await stores.index.holds_kind("manual", staff)
    assert not await stores.index.holds_kind("regulation", EVERYTHING)


async def test_a_filter_clause_holds_no_value(stores: Stores) -> None:
    _, machines, _ = await filled(stores)
    filters = SearchFilters.parse({"content_types": ["text/markdown"], "metadata": {"author": "O'Hara"}}, ["author"])
    clause, parameters = stores.index.filter_clause(filters, machines)
    assert "markdown" not in clause
    assert "Hara" not in clause
    assert parameters["nodes"] == sorted(machines.nodes or ())
    assert parameters["content_types"] == ["text/markdown"]
    assert stores.index.filter_clause(NO_FILTERS, EVERYTHING) == ("", {})


async def test_documents_are_listed_and_counted_in_scope(stores: Stores) -> None:
    taxonomy, machines, staff = await filled(stores)
    listed = await stores.index.documents(machines, taxonomy, limit=10)
    assert {row.document_id for row in listed} == {str(KETTLE), str(BOILER)}
    assert await stores.index.counts(machines) == (2, 3)
    assert await stores.index.counts(staff) == (2, 2)
    assert await stores.index.counts(NOTHING) == (0, 0)
    everything = await stores.index.documents(EVERYTHING, taxonomy, limit=10)
    times = [row.processed_at for row in everything]
    assert times == sorted(times, reverse=True)
    pages = [await stores.index.documents(EVERYTHING, taxonomy, limit=3, offset=offset) for offset in (0, 3)]
    assert [row.document_id for page in pages for row in page] == [row.document_id for row in everything]


async def test_lists_are_searched_sorted_and_continued(stores: Stores) -> None:
    taxonomy, machines, _ = await filled(stores)
    everything = await stores.index.documents(EVERYTHING, taxonomy, limit=10)
    expected: dict[Sort, list[DocumentSummary]] = {
        "newest": everything,
        "oldest": everything[::-1],
        "title": sorted(everything, key=lambda row: (sort_title(row.title), row.document_id)),
        "largest": sorted(everything, key=lambda row: (-row.characters, row.document_id)),
        "smallest": sorted(everything, key=lambda row: (-row.characters, row.document_id))[::-1],
    }
    for sort, rows in expected.items():
        collected: list[DocumentSummary] = []
        after = ""
        while page := await stores.index.documents(
            EVERYTHING, taxonomy, limit=2, listing=DocumentListing.parse(sort=sort, after=after)
        ):
            collected += page
            after = continuation(page[-1], sort)
        assert [row.document_id for row in collected] == [row.document_id for row in rows], sort
        seen = await stores.index.documents(machines, taxonomy, limit=10, listing=DocumentListing(sort=sort))
        assert [row for row in rows if row.document_id in {str(KETTLE), str(BOILER)}] == seen, sort
    for text, titles in (("KETTLE man", {"Kettle manual"}), ("kettle%", set()), ("k_ttle", set())):
        listing = DocumentListing.parse(text)
        rows = await stores.index.documents(EVERYTHING, taxonomy, limit=10, listing=listing)
        assert {row.title for row in rows} == titles
        assert await stores.index.counts(EVERYTHING, listing) == (len(rows), sum(row.chunks for row in rows))
    listing = DocumentListing.parse("kettle", ["application/pdf"])
    assert await stores.index.counts(EVERYTHING, listing) == (0, 0)
    assert await stores.index.documents(NOTHING, taxonomy, limit=10, listing=DocumentListing.parse("e")) == []


async def test_names_are_searched_in_any_case_and_form_without_folders_of_the_server(stores: Stores) -> None:
    taxonomy = (await stores.index.snapshot()).taxonomy
    composed, path = "학칙 Été", "규정/Leave.MD"
    decomposed = unicodedata.normalize("NFD", composed)
    one = indexed_document("file:///srv/secret/a.md", ["Text."], title="One")
    two = indexed_document("file:///srv/secret/b.md", ["Text."], title=decomposed, source_path=path)
    await stores.writer.write([one, two])
    for text in (composed, composed.lower(), decomposed.upper(), "규정/leave"):
        rows = await stores.index.documents(EVERYTHING, taxonomy, limit=10, listing=DocumentListing.parse(text))
        assert [row.document_id for row in rows] == [str(two.document_id)], text
    for text, count in (("a.md", 1), ("secret", 0), ("srv", 0)):
        assert (await stores.index.counts(EVERYTHING, DocumentListing.parse(text)))[0] == count, text


async def test_a_document_is_shown_in_scope_only(stores: Stores) -> None:
    taxonomy, machines, staff = await filled(stores)
    shown = await stores.index.document(KETTLE, machines, taxonomy)
    assert shown is not None
    summary, text = shown
    assert text == "The kettle has a valve.\n\nFill the kettle with water."
    assert (summary.title, summary.chunks, summary.characters) == ("Kettle manual", 2, len(text))
    assert summary.taxonomy_path == ("AI", "Machines")
    assert await stores.index.document(KETTLE, staff, taxonomy) is None
    assert await stores.index.document(uuid.uuid4(), EVERYTHING, taxonomy) is None


async def test_a_part_of_a_text_has_the_passages_in_it(stores: Stores) -> None:
    _, machines, staff = await filled(stores)
    text = "The kettle has a valve.\n\nFill the kettle with water."
    part = await stores.index.document_text(KETTLE, 4, 10, machines)
    assert part is not None
    assert (part.text, part.start, part.end, part.characters) == ("kettle", 4, 10, len(text))
    assert [(span.chunk_id, span.start, span.end) for span in part.passages] == [(chunk_id(KETTLE), 0, 23)]
    whole = await stores.index.document_text(KETTLE, 0, 1_000, machines)
    assert whole is not None
    assert (whole.text, whole.end) == (text, len(text))
    assert [text[span.start : span.end] for span in whole.passages] == text.split("\n\n")
    beyond = await stores.index.document_text(KETTLE, 500, 600, machines)
    assert beyond is not None
    assert (beyond.text, beyond.start, beyond.end, beyond.passages) == ("", len(text), len(text), ())
    assert await stores.index.document_text(KETTLE, 0, 10, staff) is None
    assert await stores.index.document_text(uuid.uuid4(), 0, 10, EVERYTHING) is None


async def test_positions_are_code_points(stores: Stores) -> None:
    _, machines, _ = await filled(stores)
    (node,) = branch_nodes(machines)
    await stores.writer.write([indexed_document("test:emoji", ["휴학 😀 규정", "제1조 𠮷"], node_id=node)])
    part = await stores.index.document_text(document_id("test:emoji"), 3, 9, machines)
    assert part is not None
    assert part.text == "😀 규정\n\n"


async def test_passages_are_listed_by_pages(stores: Stores) -> None:
    _, machines, staff = await filled(stores)
    first = await stores.index.passage_spans(KETTLE, 1, 0, machines)
    assert first is not None
    spans, total = first
    assert ([span.ordinal for span in spans], total) == ([0], 2)
    second = await stores.index.passage_spans(KETTLE, 5, 1, machines)
    assert second is not None
    assert [span.ordinal for span in second[0]] == [1]
    assert await stores.index.passage_spans(KETTLE, 5, 0, staff) is None


async def test_addresses_show_no_folders_to_callers_with_a_scope(stores: Stores) -> None:
    taxonomy, machines, _ = await filled(stores)
    (node,) = branch_nodes(machines)
    uri = "file:///srv/secret/manuals/pump.md"
    await stores.writer.write([indexed_document(uri, ["A pump."], node_id=node, source_path="manuals/pump.md")])
    key = chunk_id(document_id(uri))
    assert (await stores.index.fetch([key], EVERYTHING, taxonomy))[key].source_url == uri
    assert (await stores.index.fetch([key], machines, taxonomy))[key].source_url == "manuals/pump.md"


async def test_the_generation_grows_with_every_write(stores: Stores) -> None:
    generations = [(await stores.index.snapshot()).generation]
    _, machines, _ = await filled(stores)
    generations.append((await stores.index.snapshot()).generation)
    await stores.writer.delete(KETTLE, machines)
    generations.append((await stores.index.snapshot()).generation)
    assert generations == sorted(set(generations))


async def test_a_snapshot_holds_the_tree_and_the_statistics_of_all_passages(stores: Stores) -> None:
    taxonomy, _, _ = await filled(stores)
    snapshot = await stores.index.snapshot()
    assert snapshot.taxonomy.find(CategoryPath.parse("ai/machines")) == taxonomy.find(CategoryPath.parse("AI/Machines"))
    assert snapshot.statistics.chunks == 5
    assert snapshot.statistics.document_frequency(term_id("valv")) == 3


async def test_what_was_replaced_or_deleted_is_not_found(stores: Stores) -> None:
    taxonomy, machines, _ = await filled(stores)
    (node,) = branch_nodes(machines)
    assert await stores.writer.delete(BOILER, EVERYTHING)
    changed = indexed_document("test:kettle", ["The kettle whistles."], node_id=node, replaces=True)
    await stores.writer.write([changed])
    assert await _documents(stores, "lexical", machines) == set()
    query = await query_for(stores.index, "whistles", machines)
    assert documents_in(await stores.index.lexical(query, machines, NO_FILTERS, 5)) == {KETTLE}
    assert list(await stores.index.fetch([chunk_id(KETTLE, 0), chunk_id(KETTLE, 1)], machines, taxonomy)) == [
        chunk_id(KETTLE, 0)
    ]
    assert (await _statistics(stores, term_id("valv"), EVERYTHING)) == (3, 1)


@pytest.mark.parametrize("text", ["", "the of and", "zzyzx", "?!"])
async def test_a_query_without_known_words_finds_nothing(stores: Stores, text: str) -> None:
    await filled(stores)
    await stores.index.snapshot()
    query = await query_for(stores.index, text, EVERYTHING)
    assert await stores.index.lexical(query, EVERYTHING, NO_FILTERS, 5) == {}
    assert await stores.index.strict(text, EVERYTHING, NO_FILTERS, 5) == {}
