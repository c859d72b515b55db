"""Lexical search against BM25 by brute force, while documents come, change and go."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from dtrag.adapters.postgres.index_reader import PostgresIndex
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.adapters.postgres.lexical import merge, posting_files
from dtrag.app import App
from dtrag.core.access.scope import Scope, SearchFilters
from dtrag.core.documents import IndexedChunk, IndexedDocument, document_id
from dtrag.core.ranking.bm25 import LexicalQuery, bm25_weight, idf
from dtrag.core.ranking.segments import FREQUENCY_UNIT
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.text.analysis import term_id, terms
from dtrag.core.text.questions import weighted_terms
from tests.builders import chunk_id, indexed_document
from tests.rounds import seeds
from tests.store import Store
from tests.toy import ENGLISH, KOREAN, sentence

CATEGORIES = [CategoryPath.parse(path) for path in ("A", "A/B", "C", "C/D/E")]
NO_FILTERS = SearchFilters()
PRECISION = 2e-5
"""Sums are made of 32-bit floats."""


@dataclass
class Model:
    """The index as a dictionary, and BM25 over it in a few lines."""

    documents: dict[uuid.UUID, IndexedDocument] = field(default_factory=dict)

    def chunks(self, scope: Scope = Scope.everything()) -> Iterator[tuple[str, IndexedChunk]]:
        for document in self.documents.values():
            if scope.nodes is None or document.node_id in scope.nodes:
                for chunk in document.chunks:
                    yield chunk_id(document.document_id, chunk.chunk.ordinal), chunk

    def means(self) -> dict[str, float]:
        """Language -> mean length of its passages."""
        lengths: dict[str, list[int]] = {}
        for _, chunk in self.chunks():
            lengths.setdefault(chunk.language, []).append(chunk.length)
        return {language: sum(found) / len(found) for language, found in lengths.items()}

    def scores(self, query: str, scope: Scope) -> dict[str, float]:
        """Passage -> BM25 of those that hold a term of the query."""
        everything = [dict.fromkeys(chunk.term_ids.tolist()) for _, chunk in self.chunks()]
        asked, means = weighted_terms(query), self.means()
        frequency = {term: sum(term in chunk for chunk in everything) for term, _ in asked}
        found = {}
        for name, chunk in self.chunks(scope):
            occurs = dict(zip(chunk.term_ids.tolist(), (chunk.frequencies * FREQUENCY_UNIT).tolist(), strict=True))
            mean = means[chunk.language]
            hits = [(share, term) for term, share in asked if term in occurs]
            if hits:
                found[name] = sum(
                    share * idf(frequency[term], len(everything)) * bm25_weight(occurs[term], chunk.length, mean)
                    for share, term in hits
                )
        return found


async def live(
    app: App, chance: random.Random, rounds: int, reader: PostgresIndex | None = None
) -> tuple[Model, list[int]]:
    """Random inserts, updates, deletions and upkeep through the writer; the model of what must be there, the nodes."""
    writer, model = PostgresWriter(app.database), Model()
    taxonomy = await writer.ensure_paths(CATEGORIES)
    nodes = [node for path in CATEGORIES if (node := taxonomy.find(path)) is not None]
    for _ in range(rounds):
        batch = {}
        for number in chance.sample(range(40), chance.randint(1, 12)):
            uri = f"toy:{number}"
            texts = [sentence(chance, chance.choice((1, 3, 8, 30))) for _ in range(chance.randint(0, 4))]
            there = document_id(uri) in model.documents
            made = indexed_document(uri, texts, node_id=chance.choice(nodes), replaces=there)
            batch[made.document_id] = made
        await writer.write(list(batch.values()))
        model.documents.update(batch)
        for gone in chance.sample(sorted(model.documents), min(3, len(model.documents) - 1)):
            assert await writer.delete(gone, Scope.everything())
            assert not await writer.delete(gone, Scope.everything())
            del model.documents[gone]
        if chance.random() < 0.3:
            await writer.tidy()
        if reader is not None and chance.random() < 0.5:
            statistics = (await reader.snapshot()).statistics
            asked = LexicalQuery.of(weighted_terms(sentence(chance, 3)), statistics)
            await reader.lexical(asked, Scope.everything(), NO_FILTERS, 5)
    return model, nodes


def some_scope(chance: random.Random, nodes: list[int]) -> Scope:
    if chance.random() < 0.3:
        return Scope.everything()
    return Scope(frozenset(chance.sample(nodes, chance.randint(0, len(nodes)))))


def assert_best(found: dict[str, float], expected: dict[str, float], wanted: int) -> None:
    """The `wanted` best of `expected`, best first; scores within the precision of the sums."""
    assert len(found) == min(wanted, len(expected))
    best = sorted(expected.values(), reverse=True)[:wanted]
    assert list(found.values()) == pytest.approx(best, rel=PRECISION, abs=1e-9)
    for name, score in found.items():
        assert score == pytest.approx(expected[name], rel=PRECISION, abs=1e-9)
    ranked = [(-score, uuid.UUID(name.partition(":")[0]), int(name.partition(":")[2])) for name, score in found.items()]
    assert ranked == sorted(ranked)


@pytest.mark.parametrize("seed", seeds(4))
async def test_equals_brute_force(app: App, store: Store, seed: int) -> None:
    chance = random.Random(seed)
    model, nodes = await live(app, chance, 12)
    store.assert_whole()
    index = PostgresIndex(app.database)
    statistics = (await index.snapshot()).statistics
    assert statistics.chunks == len(list(model.chunks()))
    assert store.value("select count(*) from documents") == len(model.documents)
    for _ in range(40):
        query, scope, wanted = sentence(chance, chance.randint(1, 5)), some_scope(chance, nodes), chance.randint(1, 60)
        asked = LexicalQuery.of(weighted_terms(query), statistics)
        found = await index.lexical(asked, scope, NO_FILTERS, wanted)
        assert_best(found, model.scores(query, scope), wanted)


@pytest.mark.parametrize("seed", seeds(3))
async def test_every_reader_has_the_same_results_after_any_merge(
    app: App, store: Store, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Segments of a few passages, read by few at a time, with files or without, give what one segment gives."""
    monkeypatch.setattr(posting_files, "PART_PASSAGES", 7)
    monkeypatch.setattr(posting_files, "SMALLEST", 20)
    monkeypatch.setattr(merge, "MOST_CORRECTIONS", 2)
    monkeypatch.setattr(merge, "LARGEST", 60)
    chance = random.Random(100 + seed)
    long_lived = PostgresIndex(app.database)
    model, nodes = await live(app, chance, 14, reader=long_lived)
    store.assert_whole()
    fresh = PostgresIndex(app.database)
    for _ in range(30):
        query, scope, wanted = sentence(chance, chance.randint(1, 5)), some_scope(chance, nodes), chance.randint(1, 30)
        statistics = (await long_lived.snapshot()).statistics
        await fresh.snapshot()
        asked = LexicalQuery.of(weighted_terms(query), statistics)
        found = await long_lived.lexical(asked, scope, NO_FILTERS, wanted)
        assert found == await fresh.lexical(asked, scope, NO_FILTERS, wanted)
        assert_best(found, model.scores(query, scope), wanted)


async def test_a_merge_does_not_disturb_readers(app: App) -> None:
    """The reader knows segments that are gone by the time it searches them."""
    writer, chance = PostgresWriter(app.database), random.Random(3)
    index = PostgresIndex(app.database)
    model = Model()
    for number in range(6):
        made = indexed_document(f"toy:{number}", [sentence(chance, 6)])
        await writer.write([made])
        model.documents[made.document_id] = made
    statistics = (await index.snapshot()).statistics
    await writer.tidy()
    asked = LexicalQuery.of(weighted_terms("kettle boiler library"), statistics)
    found = await index.lexical(asked, Scope.everything(), NO_FILTERS, 50)
    assert_best(found, model.scores("kettle boiler library", Scope.everything()), 50)


async def test_scores_of_named_passages_are_those_of_the_search(app: App) -> None:
    chance = random.Random(5)
    model, nodes = await live(app, chance, 4)
    index = PostgresIndex(app.database)
    statistics = (await index.snapshot()).statistics
    scope = Scope(frozenset(nodes[:2]))
    names = [name for name, _ in model.chunks()]
    visible = {name for name, _ in model.chunks(scope)}
    asked = LexicalQuery.of(weighted_terms("kettle refund 휴학"), statistics)
    found = await index.lexical(asked, scope, NO_FILTERS, 1000)
    scores = await index.lexical_scores(asked, names, scope)
    assert scores.keys() == visible
    assert {name: score for name, score in scores.items() if score} == pytest.approx(found, rel=PRECISION)


async def test_many_segments_become_few(app: App, store: Store) -> None:
    writer, chance = PostgresWriter(app.database), random.Random(8)
    index = PostgresIndex(app.database)
    for number in range(40):
        await writer.write([indexed_document(f"toy:{number}", [sentence(chance, 5)])])
        assert store.value("select count(*) from lexical_segments") <= 2 * merge.MOST_SEGMENTS
    before = (await index.snapshot()).statistics
    await writer.tidy()
    assert store.value("select count(*) from lexical_segments") <= 3
    store.assert_whole()
    after = (await index.snapshot()).statistics
    words = [term_id(term) for term in terms(" ".join(ENGLISH + KOREAN))]
    assert [after.document_frequency(word) for word in words] == [before.document_frequency(word) for word in words]
    assert (after.chunks, dict(after.lengths)) == (before.chunks, dict(before.lengths))


async def test_deletions_leave_no_rows(app: App, store: Store) -> None:
    writer, chance = PostgresWriter(app.database), random.Random(9)
    made = [indexed_document(f"toy:{number}", [sentence(chance, 5)]) for number in range(20)]
    await writer.write(made)
    for document in made:
        assert await writer.delete(document.document_id, Scope.everything())
    store.assert_whole()
    await writer.write([indexed_document("toy:last", ["kettle"])])
    await writer.tidy()
    assert store.value("select count(*) from lexical_corrections") == 0
    assert store.value("select sum(passages) from lexical_segments") == 1
    store.assert_whole()


@pytest.mark.parametrize(
    ("sizes", "most", "chosen"),
    [
        ([], 16, []),
        ([5], 16, []),
        ([5, 5], 16, [0, 1]),
        ([5, 11], 16, []),
        ([5, 11, 16], 16, [0, 1, 2]),
        ([5, 11, 17], 16, []),
        ([1, 2, 4, 8, 16, 32], 4, [0, 1, 2]),
        ([1, 200_000, 200_000], 16, []),
        ([100_000, 100_000, 100_000], 16, [0, 1]),
    ],
)
def test_sizes_of_segments_are_kept_geometric(sizes: list[int], most: int, chosen: list[int]) -> None:
    assert merge.chosen_for_merge(dict(enumerate(sizes)), most) == chosen
