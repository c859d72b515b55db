"""Searches over the whole engine on PostgreSQL: filters of every selectivity, facts of documents, mentioned titles."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from dtrag.adapters.postgres import index_reader as reading
from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.index_reader import PostgresIndex
from dtrag.adapters.postgres.index_settings import PostgresIndexSettings
from dtrag.adapters.postgres.index_writer import PostgresWriter
from dtrag.adapters.postgres.stores.vectors import PostgresVectors
from dtrag.app import App
from dtrag.core.access.scope import Scope, SearchFilters
from dtrag.core.ranking.bm25 import LexicalQuery
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.core.text.analysis import ANALYZER
from dtrag.core.text.questions import weighted_terms
from dtrag.ingestion.vectors import VectorFiller
from dtrag.retrieval.config import LINKED_AFTER
from dtrag.settings import Settings
from tests.builders import indexed_document
from tests.rounds import seeds
from tests.store import graph_statement
from tests.toy import ENGLISH, ToyEmbedder

EMBEDDER = ToyEmbedder()
ALL = Scope.everything()


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("seed", seeds(3))
async def test_a_filtered_search_returns_all_matches(
    settings: Settings, seed: int, graph: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through vectors, with and without their graph, and through the postings, from everything down to one document."""
    monkeypatch.setattr(reading, "EXACT_BELOW", 1)
    chance = random.Random(seed)
    async with connect(settings) as database:
        await PostgresIndexSettings(database).register(ANALYZER)
        writer, index = PostgresWriter(database), PostgresIndex(database)
        paths = [CategoryPath.parse(f"Branch {number}") for number in range(12)]
        taxonomy = await writer.ensure_paths(paths)
        nodes = [node for path in paths if (node := taxonomy.find(path)) is not None]
        rows = []
        for number in range(300):
            node = nodes[min(11, int(chance.expovariate(0.5)))]
            texts = [" ".join(chance.choices(ENGLISH, k=5)) for _ in range(chance.randint(1, 2))]
            made = indexed_document(f"toy:{number}", texts, node_id=node)
            rows.append(made)
        await writer.write(rows)
        await VectorFiller(PostgresVectors(database), EMBEDDER).fill()
        if graph:
            async with database.connection("owner") as connection:
                await connection.execute(graph_statement().encode())
        await index.snapshot()
        statistics = (await index.snapshot()).statistics
        for _ in range(25):
            scope = Scope(frozenset(chance.sample(nodes, chance.randint(1, 12))))
            wanted = chance.choice((1, 10, 50, 200))
            word = chance.choice(ENGLISH)
            inside = [document for document in rows if document.node_id in (scope.nodes or ())]
            chunks = [chunk for document in inside for chunk in document.chunks]
            [vector] = EMBEDDER.embed_queries([word])
            found = await index.vectors(vector, EMBEDDER.id, scope, SearchFilters(), wanted)
            assert len(found) == min(wanted, len(chunks))
            asked = LexicalQuery.of(weighted_terms(word), statistics)
            holding = [chunk for chunk in chunks if set(asked.weights) & set(chunk.term_ids.tolist())]
            assert len(await index.lexical(asked, scope, SearchFilters(), wanted)) == min(wanted, len(holding))


def _lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("mode", ["lexical", "strict"])
async def test_metadata_filters_narrow_a_search(app: App, tmp_path: Path, mode: str) -> None:
    rows = [
        {"id": "1", "title": "One", "text": "The kettle boils.", "metadata": {"author": "Kim", "year": 2024}},
        {"id": "2", "title": "Two", "text": "The kettle leaks.", "metadata": {"author": "Kim", "year": 2025}},
        {"id": "3", "title": "Three", "text": "The kettle whistles.", "metadata": {"author": "Lee", "year": 2025}},
    ]
    await app.ingest(_lines(tmp_path / "notes.jsonl", rows))
    for facts, expected in (
        ({"author": "Kim"}, {"One", "Two"}),
        ({"author": "Kim", "year": 2025}, {"Two"}),
        ({"author": "kim"}, set()),
        ({"year": "2025"}, set()),
    ):
        results, _ = await app.search("kettle", filters={"metadata": facts}, mode=mode)
        assert {result.title for result in results} == expected


async def test_a_strict_search_of_korean_words_ignores_particles(app: App, tmp_path: Path) -> None:
    rows = [
        {"id": "1", "title": "납부", "text": "등록금을 기한까지 내지 않으면 제적한다."},
        {"id": "2", "title": "반환", "text": "낸 등록금의 반환은 따로 정한다."},
        {"id": "3", "title": "휴학", "text": "휴학 기한은 두 학기로 한다."},
    ]
    await app.ingest(_lines(tmp_path / "notes.jsonl", rows))
    for query, expected in (
        ("등록금은", {"납부", "반환"}),
        ("등록금은 언제가 기한인가요?", {"납부"}),
        ("등록금 반환 기한", set()),
        ("휴학은 무엇인가요?", {"휴학"}),
    ):
        results, metrics = await app.search(query, mode="strict")
        assert {result.title for result in results} == expected, query
        assert not metrics.degraded and all(0 < result.bm25_score <= 1 for result in results)
    [leave], _ = await app.search("휴학", 1, mode="lexical")
    _, metrics = await app.search("등록금의 기한", mode="strict", explain_documents=[leave.chunk_id.rpartition(":")[0]])
    [absence] = metrics.absent
    assert "it does not contain every word of the query" in absence.reason, "though it contains 기한"


async def _library(app: App, tmp_path: Path) -> None:
    """A film whose director has a document of his own, which shares no word with the question; and much else."""
    rows = [
        {
            "id": "f",
            "title": "The Silver Lantern",
            "text": "The Silver Lantern is a film by Orla Quist about harbours.",
        },
        {"id": "o", "title": "Orla Quist (typist)", "text": "A native Tarrowby painter, 1911 to 1987."},
    ]
    rows += [
        {"id": f"x{number}", "title": f"Note {number}", "text": f"A silver lantern, number {number}, was filmed."}
        for number in range(30)
    ]
    folder = tmp_path / "library"
    folder.mkdir()
    await app.ingest(_lines(folder / "films.jsonl", rows), category="Films")


QUESTION = "Which town does the director of the film The Silver Lantern about harbours come from?"


async def test_a_mentioned_document_is_among_the_results(app: App, tmp_path: Path) -> None:
    await _library(app, tmp_path)
    results, _ = await app.search(QUESTION, 10)
    titles = [result.title for result in results]
    assert titles[0] == "The Silver Lantern"
    assert titles[LINKED_AFTER] == "Orla Quist (typist)"
    assert results[LINKED_AFTER].metadata["mentioned_by"] == "The Silver Lantern"
    scores = [result.hybrid_score for result in results]
    assert scores == sorted(scores, reverse=True)
    assert len(results) == 10
    app.engine.update_config(hops=1)
    assert "Orla Quist (typist)" not in [result.title for result in (await app.search(QUESTION, 10))[0]]


async def test_a_title_that_two_share_is_not_followed_and_scope_decides_who_shares(app: App, tmp_path: Path) -> None:
    await _library(app, tmp_path)
    other = {"id": "p", "title": "Orla Quist", "text": "A pseudonym of several typists."}
    await app.ingest(_lines(tmp_path / "secret.jsonl", [other]), category="Secret")
    everybody, _ = await app.search(QUESTION, 10)
    assert not any("Orla" in result.title for result in everybody)
    taxonomy = (await app.index.snapshot()).taxonomy
    films = taxonomy.find(CategoryPath.parse("Films"))
    assert films is not None
    scoped, _ = await app.search(QUESTION, 10, scope=Scope(frozenset({films})))
    assert scoped[LINKED_AFTER].title == "Orla Quist (typist)"


async def test_a_mentioned_document_outside_the_scope_or_the_filters_is_not_returned(app: App, tmp_path: Path) -> None:
    await _library(app, tmp_path)
    [director] = [row for row in await app.documents(100) if row.title.startswith("Orla")]
    await app.delete_document(director.document_id)
    row = {"id": "o", "title": "Orla Quist (typist)", "text": "A native Tarrowby painter."}
    await app.ingest(_lines(tmp_path / "secret.jsonl", [row]), category="Secret")
    taxonomy = (await app.index.snapshot()).taxonomy
    films = taxonomy.find(CategoryPath.parse("Films"))
    assert films is not None
    scoped, _ = await app.search(QUESTION, 10, scope=Scope(frozenset({films})))
    assert len(scoped) == 10
    assert not any("Orla" in result.title for result in scoped)
    narrowed, _ = await app.search(QUESTION, 10, filters={"taxonomy_paths": [["Films"]]})
    assert not any("Orla" in result.title for result in narrowed)
    dated, _ = await app.search(QUESTION, 10, filters={"date_to": "2001-01-01"})
    assert dated == []
