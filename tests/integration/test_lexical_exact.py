"""Lexical search against BM25 by brute force, while documents come, change and go."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from dtrag.adapters.postgres.index import PostgresIndex
from dtrag.adapters.postgres.writer import PostgresWriter
from dtrag.app import App
from dtrag.core import scoring
from dtrag.core.documents import IndexedChunk, IndexedDocument, document_id
from dtrag.core.query import weighted_terms
from dtrag.core.scope import Scope, SearchFilters
from dtrag.core.scoring import LexicalQuery, bm25_weight, idf
from dtrag.core.taxonomy import CategoryPath
from dtrag.retrieval.engine import HybridSearchEngine
from tests.store import Store
from tests.toy import indexed, key, sentence

CATEGORIES = [CategoryPath.parse(path) for path in ("A", "A/B", "C", "C/D/E")]
NO_FILTERS = SearchFilters()
PRECISION = 2e-5
"""Weights are stored as 32-bit floats."""


@dataclass
class Model:
    """The index as a dictionary, and BM25 over it in a few lines."""

    documents: dict[uuid.UUID, IndexedDocument] = field(default_factory=dict)

    def chunks(self, scope: Scope = Scope.everything()) -> Iterator[tuple[str, IndexedChunk]]:
        for document in self.documents.values():
            if scope.nodes is None or document.node_id in scope.nodes:
                for chunk in document.chunks:
                    yield key(document.document_id, chunk.chunk.ordinal), chunk

    def scores(self, query: str, scope: Scope, means: dict[str, float]) -> dict[str, float]:
        """Passage -> BM25 of those that hold a term of the query."""
        everything = [dict.fromkeys(chunk.term_ids.tolist()) for _, chunk in self.chunks()]
        asked = weighted_terms(query)
        frequency = {term: sum(term in chunk for chunk in everything) for term, _ in asked}
        found = {}
        for name, chunk in self.chunks(scope):
            occurs = dict(zip(chunk.term_ids.tolist(), chunk.frequencies.tolist(), strict=True))
            mean = means[chunk.language]
            hits = [(share, term) for term, share in asked if term in occurs]
            if hits:
                found[name] = sum(
                    share * idf(frequency[term], len(everything)) * bm25_weight(occurs[term], chunk.length, mean)
                    for share, term in hits
                )
        return found


async def live(app: App, chance: random.Random, rounds: int) -> tuple[Model, list[int]]:
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
            made = indexed(uri, texts, node_id=chance.choice(nodes), replaces=there)
            batch[made.document_id] = made
        await writer.write(list(batch.values()))
        model.documents.update(batch)
        for gone in chance.sample(sorted(model.documents), min(3, len(model.documents) - 1)):
            assert await writer.delete(gone, Scope.everything())
            assert not await writer.delete(gone, Scope.everything())
            del model.documents[gone]
        if chance.random() < 0.3:
            await writer.tidy()
    return model, nodes


def some_scope(chance: random.Random, nodes: list[int]) -> Scope:
    if chance.random() < 0.3:
        return Scope.everything()
    return Scope(frozenset(chance.sample(nodes, chance.randint(0, len(nodes)))))


def assert_best(found: dict[str, float], expected: dict[str, float], wanted: int) -> None:
    """The `wanted` best of `expected`, best first; scores within the precision of the stored weights."""
    assert len(found) == min(wanted, len(expected))
    best = sorted(expected.values(), reverse=True)[:wanted]
    assert list(found.values()) == pytest.approx(best, rel=PRECISION, abs=1e-9)
    for name, score in found.items():
        assert score == pytest.approx(expected[name], rel=PRECISION, abs=1e-9)
    ranked = [(-score, uuid.UUID(name.partition(":")[0]), int(name.partition(":")[2])) for name, score in found.items()]
    assert ranked == sorted(ranked)


def means_of(store: Store) -> dict[str, float]:
    return dict(store.value("select value from index_settings where name = 'mean_lengths'"))


@pytest.mark.parametrize("seed", range(4))
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
        found = await index.lexical(asked, asked.candidates(statistics.chunks), scope, NO_FILTERS, wanted)
        assert_best(found, model.scores(query, scope, means_of(store)), wanted)


@pytest.mark.parametrize("seed", range(3))
async def test_rarer_terms_first_never_give_too_few(
    app: App, store: Store, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a large index: the common terms score, but generate candidates only where the rarer ones are too few."""
    monkeypatch.setattr(scoring, "ALL_TERMS_BELOW", 0)
    monkeypatch.setattr(scoring, "COMMON_SHARE", 0.3)
    chance = random.Random(100 + seed)
    model, nodes = await live(app, chance, 8)
    index = PostgresIndex(app.database)
    engine = HybridSearchEngine(None, index)
    statistics = (await index.snapshot()).statistics
    narrowed = 0
    for _ in range(40):
        query, scope, wanted = sentence(chance, chance.randint(1, 5)), some_scope(chance, nodes), chance.randint(1, 10)
        results, _ = await engine.search(query, wanted, bm25_candidates=wanted, scope=scope, mode="lexical")
        expected = model.scores(query, scope, means_of(store))
        assert len(results) == min(wanted, len(expected))

        asked = LexicalQuery.of(weighted_terms(query), statistics)
        rare = set(asked.candidates(statistics.chunks))
        reached = {name: expected[name] for name, chunk in model.chunks(scope) if rare & set(chunk.term_ids.tolist())}
        if rare < set(asked.weights) and len(reached) >= wanted:
            narrowed += 1
            expected = reached
        found = {result.chunk_id: result.bm25_score * asked.ceiling for result in results}
        assert_best(dict(sorted(found.items(), key=lambda row: -row[1])), expected, wanted)
    assert narrowed > 0


async def test_weights_follow_the_mean_length(app: App, store: Store) -> None:
    """The first batch sets the mean length; when it has moved far, every weight is computed anew."""
    writer, model, chance = PostgresWriter(app.database), Model(), random.Random(7)
    for number, words in enumerate((3, 40, 60)):
        made = [indexed(f"toy:{number}-{copy}", [sentence(chance, words)]) for copy in range(15)]
        await writer.write(made)
        model.documents.update({document.document_id: document for document in made})
    before = means_of(store)
    await writer.tidy()
    after = means_of(store)
    lengths = [chunk.length for _, chunk in model.chunks() if chunk.language == "en"]
    assert before["en"] < 10 < after["en"] == pytest.approx(sum(lengths) / len(lengths))
    index = PostgresIndex(app.database)
    statistics = (await index.snapshot()).statistics
    for _ in range(10):
        query = sentence(chance, 3)
        asked = LexicalQuery.of(weighted_terms(query), statistics)
        found = await index.lexical(asked, sorted(asked.weights), Scope.everything(), NO_FILTERS, 20)
        assert_best(found, model.scores(query, Scope.everything(), after), 20)


async def test_many_segments_become_one(app: App, store: Store) -> None:
    writer, chance = PostgresWriter(app.database), random.Random(8)
    index = PostgresIndex(app.database)
    for number in range(40):
        await writer.write([indexed(f"toy:{number}", [sentence(chance, 5)])])
    before = (await index.snapshot()).statistics
    await writer.tidy()
    assert store.value("select count(*) from statistics_segments") == 1
    store.assert_whole()
    after = (await index.snapshot()).statistics
    assert after.term_ids.tolist() == before.term_ids.tolist()
    assert after.frequencies.tolist() == before.frequencies.tolist()
    assert (after.chunks, dict(after.lengths)) == (before.chunks, dict(before.lengths))
