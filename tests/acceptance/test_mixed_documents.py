"""Gates on a thousand documents (PDF, Markdown, text) with topic labels, made by scripts/make_mixed_fixture.py."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from dtrag.adapters.rerankers.models import choose
from dtrag.app import App
from dtrag.core.metrics.ranking import precision_at, recall_at
from dtrag.delivery.api.app import create_app
from dtrag.retrieval.rerank import CrossEncoderReranker
from dtrag.settings import Settings
from tests.store import Databases

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_mixed_fixture.py"
DOCUMENTS = 1_000
QUESTIONS = 100
"""Every tenth document's own question is asked."""
RERANK_S = 0.5


@dataclass(frozen=True)
class Mixed:
    """A service over the collection, searched by words."""

    app: App
    client: httpx2.AsyncClient
    questions: dict[str, str]
    topics: dict[str, str]
    facts: dict[str, dict[str, str]]


def make(folder: Path, documents: int) -> None:
    """Run the script."""
    subprocess.run([sys.executable, SCRIPT, folder, "--documents", str(documents)], check=True, capture_output=True)


@pytest_asyncio.fixture(scope="module")
async def mixed(databases_of_module: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Mixed]:
    folder = tmp_path_factory.mktemp("mixed")
    make(folder, DOCUMENTS)
    described = json.loads((folder / "topics.json").read_text("utf-8"))
    (folder / "topics.json").unlink()
    api = create_app(databases_of_module.settings())
    async with api.router.lifespan_context(api):
        app = api.state.service.app
        report = await app.ingest(folder)
        assert report.failed == []
        transport = httpx2.ASGITransport(api)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
            yield Mixed(app, client, described["questions"], described["topics"], described["facts"])


def test_the_script_makes_the_same_files_again(tmp_path: Path) -> None:
    for name in ("first", "second"):
        make(tmp_path / name, 20)
    first, second = (
        {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("first", "second")
    )
    assert first == second and len(first) == 21


async def test_there_are_a_thousand_documents_of_three_kinds_and_overlapping_topics(mixed: Mixed) -> None:
    assert len(await mixed.app.documents(limit=DOCUMENTS)) == DOCUMENTS
    assert set(Counter(Path(name).suffix for name in mixed.topics)) == {".md", ".txt", ".pdf"}
    assert set(Counter(mixed.topics.values()).values()) == {8}
    results, _ = await mixed.app.search("the deadline of parental leave", 50)
    assert len({mixed.topics[Path(result.source_url).name] for result in results}) > 5


async def test_d17_precision_recall_and_d38_diversity(mixed: Mixed) -> None:
    """D17: each topic has eight documents, so both can reach 1. D38: distinct documents among the first ten."""
    precision = recall = diversity = 0.0
    for topic, question in mixed.questions.items():
        results, metrics = await mixed.app.search(question, 10)
        ranking = [Path(result.source_url).name for result in results]
        relevant = {name: 1 for name, label in mixed.topics.items() if label == topic}
        precision += precision_at(5, ranking, relevant)
        recall += recall_at(10, ranking, relevant)
        diversity += metrics.diversity_ratio
        assert metrics.diversity_ratio == len(set(ranking)) / len(ranking)
    count = len(mixed.questions)
    assert precision / count >= 0.70
    assert recall / count >= 0.85
    assert diversity / count >= 0.50


async def test_gate_answers_are_complete_in_time_and_sure(mixed: Mixed) -> None:
    """Completion >= 95 %, time-outs <= 5 %, mean confidence >= .6 on questions that one document answers."""
    asked = [mixed.facts[name] for name in sorted(mixed.facts)[:: DOCUMENTS // QUESTIONS]]
    assert len(asked) == QUESTIONS
    answers: list[tuple[str, dict[str, Any]]] = []
    for fact in asked:
        response = await mixed.client.post("/chat/run", json={"message": fact["question"]})
        if response.status_code == 200:
            answers.append((fact["answer"], response.json()))
    assert len(answers) >= 0.95 * QUESTIONS
    families = text_string_to_metric_families((await mixed.client.get("/metrics")).text)
    late = sum(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == "dtrag_pipeline_timeout_errors_total"
    )
    assert late <= 0.05 * QUESTIONS
    confidences = [answer["confidence"] for _, answer in answers]
    assert all(0.0 <= value <= 1.0 for value in confidences)
    assert sum(confidences) / len(confidences) >= 0.6
    right = sum(extension in answer["response"] for extension, answer in answers)
    assert right >= 0.95 * QUESTIONS


async def test_gate_ten_passages_are_reranked_in_time_where_a_model_is(mixed: Mixed) -> None:
    """Less than 500 ms for ten; three times that where the machine is busy with other tests."""
    model = choose(Settings.load(environ={}))
    if model is None:
        pytest.skip("no cross-encoder is in the model folder; fetch one with: dtrag models pull")
    question = next(iter(mixed.questions.values()))
    results, _ = await mixed.app.search(question, 10)
    reranker = CrossEncoderReranker(model=model)
    reranker.rerank(question, results, 10)  # loads it
    started = time.perf_counter()
    assert len(reranker.rerank(question, results, 10)) == 10
    assert time.perf_counter() - started < 3 * RERANK_S
