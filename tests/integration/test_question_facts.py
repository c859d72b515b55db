"""What is read in a question about regulations is what its search uses; traces and explained searches show it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from dtrag import AdaptiveTopKSelector, MultiStageQueryExpander, RegulationEntityRecognizer
from dtrag.app import App, open_app
from dtrag.core.query_expansion import TopKChoice
from dtrag.pipeline.state import PipelineRequest
from tests.store import Databases

QUESTION = "학교를 잠깐 쉬려면 신청 자격이 어떻게 되나요?"


@pytest_asyncio.fixture(params=["on", "off"])
async def app(databases: Databases, regulation_book: str, request: pytest.FixtureRequest) -> AsyncIterator[App]:
    async with open_app(databases.settings(regulation_book, trace_text=request.param)) as opened:
        yield opened


@pytest.fixture
def keeps_text(request: pytest.FixtureRequest) -> bool:
    return bool(request.node.callspec.params["app"] == "on")


async def facts_of(app: App, question: str, **options: Any) -> tuple[int, Mapping[str, Any]]:
    """The number of retrieved passages, and the facts of the retrieve step in the stored trace."""
    response = await app.pipeline.execute(PipelineRequest(query=question, options=options))
    trace = await app.traces.get(response.trace_id)
    [step] = [step for step in trace.steps if step.name == "retrieve"]
    return len(response.retrieved_chunks), step.facts


async def test_a_trace_shows_entities_added_words_and_the_number_of_passages(app: App, keeps_text: bool) -> None:
    retrieved, facts = await facts_of(app, QUESTION)
    choice = AdaptiveTopKSelector().select(QUESTION)
    assert (facts["top_k"], facts["top_k_reason"]) == (choice.top_k, choice.reason) == (15, "complex")
    assert retrieved == facts["passages"] == 15
    if not keeps_text:
        assert facts["entities"] == {"procedure": 1, "requirement": 1}
        assert facts["expansions"] > 3
        assert "자격" not in str(facts)
        return
    recognized = RegulationEntityRecognizer().recognize(QUESTION)
    assert [(match.entity_type, match.text) for match in recognized] == [
        (kind, text) for kind, texts in facts["entities"].items() for text in texts
    ]
    expanded = MultiStageQueryExpander().expand(QUESTION)
    added = {word: weight for words in facts["expansions"].values() for word, weight in words.items()}
    assert added["휴학"] > added["요건"] == 0.1
    assert {*expanded.stage1_synonyms, *expanded.stage2_hypernyms, *expanded.stage3_procedures} <= added.keys()


async def test_a_slow_search_uses_fewer_passages_and_is_not_cached(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtrag.regulations.korean.question_concepts.SLOW_SECONDS", 0.0)
    retrieved, facts = await facts_of(app, "휴학")
    assert (retrieved, facts["top_k"], facts["top_k_reason"]) == (2, 2, "simple, slow search")
    results, metrics = await app.search(QUESTION)
    assert (len(results), metrics.top_k) == (7, TopKChoice(7, "complex", reduced=True))
    assert len(await app.regulations.search(QUESTION)) == 7
    monkeypatch.undo()
    results, metrics = await app.search(QUESTION)
    assert (len(results), metrics.top_k, metrics.cache_hit) == (15, TopKChoice(15, "complex"), False)
    results, metrics = await app.search(QUESTION)
    assert (len(results), metrics.top_k, metrics.cache_hit) == (15, TopKChoice(15, "complex"), True)


async def test_the_number_of_passages_does_not_change_how_sure_an_answer_is(app: App) -> None:
    few = await app.pipeline.execute("휴학")
    same = await app.pipeline.execute(PipelineRequest(query="휴학", options={"top_k": 10}))
    assert (len(few.retrieved_chunks), len(same.retrieved_chunks)) == (5, 10)
    assert (few.answer, few.confidence, few.decision) == (same.answer, same.confidence, same.decision)


async def test_a_requested_number_is_used(app: App, tmp_path: Path) -> None:
    retrieved, facts = await facts_of(app, QUESTION, top_k=3)
    assert (retrieved, facts["top_k"], facts["top_k_reason"]) == (3, 3, "requested")
    results, metrics = await app.search(QUESTION, 4)
    assert (len(results), metrics.top_k) == (4, None)
    assert (metrics.entities, metrics.expansions) == ((), ())
    _, metrics = await app.search(QUESTION, 4, explain=True)
    assert [(entity.kind, entity.text) for entity in metrics.entities] == [
        ("procedure", "신청"),
        ("requirement", "자격"),
    ]
    assert any(row.field == "procedure" and row.words == ("신청",) for row in metrics.expansions)


async def test_other_documents_have_ten(databases: Databases, tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number}.md").write_text(f"# Kettle {number}\n\nKettle {number} has a valve.\n", "utf-8")
    async with open_app(databases.settings()) as app:
        await app.ingest(tmp_path)
        results, metrics = await app.search("kettle")
        assert (len(results), metrics.top_k) == (10, TopKChoice(10, "default"))
        retrieved, facts = await facts_of(app, "kettle")
        assert (retrieved, facts["top_k"], facts["top_k_reason"]) == (10, 10, "default")
        assert "entities" not in facts
