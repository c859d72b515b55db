"""What a memory gains is measured against the same questions without it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dtrag.core.documents import SearchResult
from dtrag.core.metrics.intervals import estimates
from dtrag.evaluation.case_memory import AskedQuestion, CaseMemoryRun, MeasurementPlan, evaluate_case_memory, ratios
from dtrag.evaluation.judged_questions import JudgedQuestion


def judged(number: int) -> JudgedQuestion:
    """A question with one relevant document."""
    text = f"How is thing number {number} repaired at home?"
    return JudgedQuestion(f"q{number}", text, {f"d{number}": 1}, (f"word{number}",))


QUESTIONS = [judged(number) for number in range(40)]


def passage(document: str) -> SearchResult:
    """The only passage of a document."""
    return SearchResult(f"{document}:0", metadata={"document_id": document, "part": document}, source_url=document)


class Remembering:
    """A memory that puts the passage of a rated or corrected question first. Even questions are found second."""

    def __init__(self, *, misleads: bool = False) -> None:
        self.known: dict[str, str] = {}
        self.silent_asked: list[str] = []
        self.misleads = misleads

    async def ask(self, question: str, *, memory: bool) -> AskedQuestion:
        number = next(each for each in QUESTIONS if each.id[1:] in question.replace("number", "").split())
        document = f"d{number.id[1:]}"
        hard = int(number.id[1:]) % 2 == 0
        ranking = ["other", document] if hard else [document, "other"]
        remembered = self.known.get(number.id) if memory else None
        if remembered is not None:
            ranking.sort(key=lambda each: each != remembered)
        if not memory:
            self.silent_asked.append(question)
        return AskedQuestion(
            trace_id=number.id,
            question=question,
            text=f"It is word{number.id[1:]}.",
            decision="answer",
            confidence=0.9,
            retrieved=[passage(each) for each in ranking],
            cited=[passage(ranking[0])],
            shown_case=number.id if remembered is not None else None,
        )

    async def rate(self, answer: AskedQuestion, *, up: bool) -> None:
        if up:
            wrong = self.misleads and answer.cited[0].chunk_id.startswith("d")
            self.known[answer.trace_id] = "other" if wrong else answer.cited[0].chunk_id.removesuffix(":0")

    async def correct(self, answer: AskedQuestion, chunk_ids: Sequence[str]) -> None:
        self.known[answer.trace_id] = chunk_ids[0].removesuffix(":0")


async def measured(memory: Remembering, plan: MeasurementPlan) -> tuple[CaseMemoryRun, dict[str, float]]:
    """The run, and its measures."""
    run = await evaluate_case_memory(QUESTIONS, memory, plan)
    values = estimates([ratios(row) for row in run.compared])
    return run, {name: estimate.value for name, estimate in values.items() if estimate.value is not None}


async def test_a_memory_that_learns_from_corrections_gains_on_repeats_only() -> None:
    run, values = await measured(Remembering(), MeasurementPlan())
    assert run.rated_up + run.rated_down == 20 and run.corrected == run.rated_down > 0
    assert values["repeat mrr with"] == 1.0
    assert values["repeat mrr gain"] == pytest.approx(0.5 * run.rated_down / 20)
    assert values["other mrr gain"] == 0.0 and values["other shown"] == 0.0
    assert values["repeat misled"] == 0.0


async def test_without_corrections_only_right_answers_are_remembered() -> None:
    run, values = await measured(Remembering(), MeasurementPlan(corrections=False))
    assert run.corrected == 0 and values["repeat mrr gain"] == 0.0
    assert values["repeat shown"] == pytest.approx(run.rated_up / 20)


async def test_a_memory_that_misleads_is_found_out() -> None:
    _, values = await measured(Remembering(misleads=True), MeasurementPlan())
    assert values["repeat misled"] > 0.0


async def test_wrong_ratings_are_a_share_of_all() -> None:
    run, _ = await measured(Remembering(), MeasurementPlan(wrong_ratings=1.0))
    assert run.rated_wrongly == 20
    assert run.taught()["rated_wrongly"] == 20


async def test_repeats_are_asked_in_other_words_and_the_rest_as_they_are() -> None:
    memory = Remembering()
    run, _ = await measured(memory, MeasurementPlan())
    originals = {question.text for question in QUESTIONS}
    assert all((row.wording in originals) == (row.group == "other") for row in run.compared)
    assert [row.group for row in run.compared].count("repeat") == 20
    assert len(memory.silent_asked) == len(run.compared)
