"""Two databases as two shards of a cluster: with merged statistics they give the top k of one, ties included."""

from __future__ import annotations

import random
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
import pytest_asyncio

from dtrag.adapters.postgres import index_reader as reading
from dtrag.adapters.postgres.index_reader import PostgresIndex
from dtrag.adapters.postgres.index_settings import PostgresIndexSettings
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.adapters.postgres.stores.vectors import PostgresVectors
from dtrag.app import App, open_app
from dtrag.core.access.scope import EVERYTHING, SearchFilters
from dtrag.core.documents import IndexedDocument
from dtrag.core.ranking.bm25 import LexicalQuery, LexicalStatistics
from dtrag.core.text.analysis import ANALYZER, term_id, terms
from dtrag.core.text.questions import weighted_terms
from dtrag.ingestion.vectors import VectorFiller
from tests.builders import indexed_document
from tests.store import Databases, graph_statement
from tests.toy import ENGLISH, KOREAN, ToyEmbedder, sentence

EMBEDDER = ToyEmbedder()
NO_FILTERS = SearchFilters()


@dataclass(frozen=True)
class Cluster:
    """One database with everything, and two that share it."""

    whole: PostgresIndex
    shards: tuple[PostgresIndex, PostgresIndex]


def corpus() -> list[IndexedDocument]:
    """Sixty documents; many passages occur several times, so that there are ties across the shards."""
    chance = random.Random(3)
    common = [sentence(chance, words) for words in (2, 4, 4, 9)]
    return [
        indexed_document(f"toy:{number}", [*chance.choices(common, k=2), sentence(chance, 6)]) for number in range(60)
    ]


@pytest_asyncio.fixture(scope="module")
async def cluster(databases_of_module: Databases) -> AsyncIterator[Cluster]:
    documents = corpus()
    parts = [documents, *([d for d in documents if d.document_id.int % 2 == side] for side in (0, 1))]
    async with AsyncExitStack() as stack:
        indexes = []
        for part in parts:
            settings = databases_of_module.settings(pool_size=1)
            app: App = await stack.enter_async_context(open_app(settings))
            await PostgresIndexSettings(app.database).register(ANALYZER)
            await PostgresWriter(app.database).write(part)
            await VectorFiller(PostgresVectors(app.database), EMBEDDER).fill()
            async with app.database.connection("owner") as connection:
                await connection.execute(graph_statement().encode())
            indexes.append(PostgresIndex(app.database))
        yield Cluster(indexes[0], (indexes[1], indexes[2]))


def merged(parts: list[dict[str, float]], wanted: int) -> dict[str, float]:
    """What a coordinator does: the best of all shards, ties in the order of the keys."""

    def order(row: tuple[str, float]) -> tuple[float, uuid.UUID, int]:
        document, _, ordinal = row[0].partition(":")
        return -row[1], uuid.UUID(document), int(ordinal)

    return dict(sorted((row for part in parts for row in part.items()), key=order)[:wanted])


def ties(scores: dict[str, float]) -> int:
    return len(scores) - len(set(scores.values()))


async def test_lexical_top_k_is_that_of_one_database(cluster: Cluster) -> None:
    whole = (await cluster.whole.snapshot()).statistics
    parts = [(await shard.snapshot()).statistics for shard in cluster.shards]
    assert min(part.chunks for part in parts) > 40
    together = LexicalStatistics.joined(parts)
    for word in ENGLISH + KOREAN:
        for term in map(term_id, terms(word)):
            assert together.document_frequency(term) == whole.document_frequency(term) > 0
    assert (together.chunks, dict(together.lengths)) == (whole.chunks, dict(whole.lengths))

    chance, tied = random.Random(4), 0
    for _ in range(30):
        asked = LexicalQuery.of(weighted_terms(sentence(chance, chance.randint(1, 4))), together)
        wanted = chance.choice((1, 5, 10, 50))
        one = await cluster.whole.lexical(asked, EVERYTHING, NO_FILTERS, wanted)
        found = [await shard.lexical(asked, EVERYTHING, NO_FILTERS, wanted) for shard in cluster.shards]
        assert list(merged(found, wanted).items()) == list(one.items())
        tied += ties(one)
    assert tied > 50


async def test_vector_top_k_is_that_of_one_database(cluster: Cluster) -> None:
    chance, tied = random.Random(5), 0
    for _ in range(30):
        [query] = EMBEDDER.embed_queries([" ".join(chance.choices(ENGLISH, k=3))])
        wanted = chance.choice((1, 5, 10, 50))
        one = await cluster.whole.vectors(query, EMBEDDER.id, EVERYTHING, NO_FILTERS, wanted)
        found = [await shard.vectors(query, EMBEDDER.id, EVERYTHING, NO_FILTERS, wanted) for shard in cluster.shards]
        assert list(merged(found, wanted).items()) == list(one.items())
        tied += ties(one)
    assert tied > 50


async def test_strict_top_k_is_that_of_one_database(cluster: Cluster) -> None:
    tied = 0
    for query in ENGLISH:
        one = await cluster.whole.strict(query, EVERYTHING, NO_FILTERS, 10)
        found = [await shard.strict(query, EVERYTHING, NO_FILTERS, 10) for shard in cluster.shards]
        assert list(merged(found, 10).items()) == list(one.items())
        tied += ties(one)
    assert tied > 10


async def test_the_approximate_index_gives_the_same_scores(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may choose otherwise among passages that are equally near at the end of the list; the scores are the same."""
    monkeypatch.setattr(reading, "EXACT_BELOW", 0)
    for word in ENGLISH:
        [query] = EMBEDDER.embed_queries([word])
        one = await cluster.whole.vectors(query, EMBEDDER.id, EVERYTHING, NO_FILTERS, 10)
        found = [await shard.vectors(query, EMBEDDER.id, EVERYTHING, NO_FILTERS, 10) for shard in cluster.shards]
        assert list(merged(found, 10).values()) == pytest.approx(list(one.values()))
