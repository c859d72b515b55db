"""One question from end to end over a store in memory: answer, weak answer, abstention, and what fails on the way."""

from __future__ import annotations

import logging
import math
from dataclasses import replace

import pytest

from dtrag.core.access.scope import Scope
from dtrag.core.documents import Answer
from dtrag.errors import DatabaseUnavailable, InvalidInput
from dtrag.pipeline.answer.extractive import nothing_found
from dtrag.pipeline.execution import Pipeline
from dtrag.pipeline.run_context import Run
from dtrag.ports import Embedder
from dtrag.retrieval.engine import HybridSearchEngine
from tests.toy import ToyEmbedder
from tests.unit.retrieval.memory import Broken, MemoryIndex, Row

TEXT = "Everyone has leave. Parental leave takes at most 90 days. It is paid."
ROWS = [
    Row("a", TEXT, 2, "Handbook", ("Leave",), {"document_id": "d1"}),
    Row("b", "The kettle and the boiler have a valve.", 2, "Handbook"),
    Row("c", "① 휴학은 통산 네 학기를 초과할 수 없다. ② <삭제 2009. 7. 1.>", 3, "학칙", (), {"article": "제15조"}),
    Row("d", "Gardens are closed in winter.", 3),
]
QUESTION = "How many days of parental leave are there?"


async def _ask(
    question: str, index: MemoryIndex, embedder: Embedder | None = None, scope: Scope = Scope.everything()
) -> Answer:
    run = Run(engine=HybridSearchEngine(embedder, index), index=index, embedder=embedder)
    return (await Pipeline(lambda: run).execute(question, scope=scope)).as_answer()


@pytest.mark.parametrize("embedder", [None, ToyEmbedder()])
async def test_an_answer_quotes_the_passage_and_cites_it(embedder: Embedder | None) -> None:
    answer = await _ask(QUESTION, MemoryIndex(ROWS, embedder), embedder)
    assert answer.decision == "answer"
    assert "Parental leave takes at most 90 days. [" in answer.text
    (best,) = [citation for citation in answer.citations if "90 days" in citation.quote]
    assert (best.label, best.chunk_id, best.document_id) == ("Handbook, Leave", "a", "d1")
    assert TEXT[best.start - 100 : best.end - 100] == best.quote
    assert 0 < answer.confidence <= 1
    assert set(answer.stages) == {"intent", "retrieve", "compose", "cite", "respond"}
    assert answer.degraded == ()
    assert bool(answer.notes) == (embedder is None)


async def test_a_korean_question_is_answered_by_words_and_the_note_says_so() -> None:
    embedder = ToyEmbedder()
    answer = await _ask("휴학은 최대 몇 학기까지 할 수 있나요?", MemoryIndex(ROWS, embedder), embedder)
    assert answer.text == "① 휴학은 통산 네 학기를 초과할 수 없다. [1]"
    assert answer.citations[0].label == "학칙 제15조"
    assert "does not support" in answer.notes[0]


@pytest.mark.parametrize("question", ["Who won the chess tournament?", "체스 대회의 우승자는 누구인가요?", "???"])
async def test_questions_outside_of_the_documents_are_not_answered(question: str) -> None:
    answer = await _ask(question, MemoryIndex(ROWS))
    assert (answer.text, answer.citations, answer.decision) == (nothing_found(question), (), "abstain")
    assert answer.confidence < 0.05


async def test_passages_without_a_sentence_to_quote_are_an_abstention() -> None:
    marks = MemoryIndex([Row("a", "③ <삭제 2009. 7. 1.>", metadata={"article": "제9조"}), *ROWS[1:2]])
    answer = await _ask("삭제 2009", marks)
    assert (answer.decision, answer.citations) == ("abstain", ())
    assert answer.text == nothing_found("삭제 2009")
    assert "compose" in answer.stages


async def test_nothing_outside_the_scope_is_quoted() -> None:
    for scope in (Scope(frozenset({3})), Scope(frozenset())):
        answer = await _ask(QUESTION, MemoryIndex(ROWS), scope=scope)
        assert answer.decision == "abstain"
        assert "90" not in answer.text


@pytest.mark.parametrize("question", ["", "  \n", 5])
async def test_an_empty_question_is_refused(question: str) -> None:
    with pytest.raises(InvalidInput, match="question is empty"):
        await _ask(question, MemoryIndex(ROWS))


@pytest.mark.parametrize("embedder", [Broken(ConnectionError("down")), Broken(value=math.nan)])
async def test_without_its_embedder_the_search_is_lexical(embedder: Broken) -> None:
    answer = await _ask(QUESTION, MemoryIndex(ROWS), embedder)
    assert "90 days" in answer.text
    assert answer.degraded == ("vector",)


@pytest.mark.parametrize(
    "embedder", [Broken(ConnectionError("secret"), queries_work=True), Broken(value=math.nan, queries_work=True)]
)
async def test_composing_continues_without_an_embedder_that_fails(
    embedder: Broken, caplog: pytest.LogCaptureFixture
) -> None:
    index = MemoryIndex(ROWS, ToyEmbedder())
    with caplog.at_level(logging.WARNING, "dtrag"):
        answer = await _ask(QUESTION, index, embedder)
    assert answer.text == replace(await _ask(QUESTION, index)).text
    assert answer.degraded == ("compose",)
    assert [record.message for record in caplog.records] == ["the embedder failed while composing"]


async def test_an_embedder_that_decides_nothing_proposes_passages_only() -> None:
    """Sentences and confidence are those of the words; its documents' side is never called."""
    index = MemoryIndex(ROWS, ToyEmbedder())
    by_words = await _ask(QUESTION, index)
    proposing = Broken(ConnectionError("never called"), queries_work=True, decides=False)
    answer = await _ask(QUESTION, index, proposing)
    assert (answer.text, answer.confidence, answer.reason) == (by_words.text, by_words.confidence, by_words.reason)
    assert answer.degraded == answer.notes == ()


async def test_an_unavailable_database_is_reported() -> None:
    index = MemoryIndex(ROWS)
    index.broken["lexical"] = DatabaseUnavailable(reason="down.")
    with pytest.raises(DatabaseUnavailable):
        await _ask(QUESTION, index)
