"""SPEC-RAG-SEARCH-001, TAG-005: the evaluation of the enhanced search, over the 30 scenarios of D48.

The snippets of the text nearly as they are; `TEST_SCENARIOS` is only named there. D29 and D48 say what is built.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dtrag import App, QualityResult, RAGQualityEvaluator, current_app
from tests.acceptance.regulation_scenarios import SCENARIOS, Scenario
from tests.acceptance.test_spec_regulations import APPOINTMENTS, ASSISTANTS, BOOK, service

__all__ = ["service"]
_RIGHT = [scenario for scenario in SCENARIOS if not scenario.wrong]
_WRONG = [scenario for scenario in SCENARIOS if scenario.wrong]
K = 5


def provisions() -> dict[str, str]:
    """`학칙 제12조` -> heading and text, read from the Markdown without the product's code."""
    found: dict[str, str] = {}
    for text in (Path(BOOK).read_text("utf-8"), ASSISTANTS, APPOINTMENTS):
        for part in re.split(r"^# ", text, flags=re.M)[1:]:
            name, _, body = part.partition("\n")
            for article in re.split(r"^#{2,3} (?=제\d+조)", body, flags=re.M)[1:]:
                number = re.match(r"제\d+조(?:의\d+)?", article)
                assert number is not None
                kept = re.split(r"^#", article, maxsplit=1, flags=re.M)[0]
                found.setdefault(f"{name.strip()} {number.group()}", kept.strip())
    return found


PROVISIONS = provisions()


async def evaluated(scenario: Scenario) -> QualityResult:
    contexts = [PROVISIONS[name] for name in scenario.articles]
    return await RAGQualityEvaluator().evaluate(
        query=scenario.query, answer=scenario.answer, contexts=contexts, ground_truth=scenario.ground_truth
    )


def test_there_are_30_scenarios_10_with_wrong_answers() -> None:
    assert len({scenario.id for scenario in SCENARIOS}) == 30
    assert (len(_RIGHT), len(_WRONG)) == (20, 10)
    queries = {scenario.query for scenario in SCENARIOS}
    assert {
        "장학금 신청 방법",
        "연구년 자격 요건",
        "조교 근무 시간",
        "교원인사규정 제15조",
        "휴학 그리고 복학",
    } <= queries


@pytest.mark.parametrize("scenario", _RIGHT, ids=lambda scenario: scenario.id)
async def test_a_right_answer_is_accepted(scenario: Scenario) -> None:
    result = await evaluated(scenario)
    assert result.accepted, result.reasons
    assert result.refusal == ("right" if not scenario.ground_truth else "none")


@pytest.mark.parametrize("scenario", _WRONG, ids=lambda scenario: scenario.id)
async def test_a_wrong_answer_is_not_accepted_and_the_reason_is_named(scenario: Scenario) -> None:
    result = await evaluated(scenario)
    assert not result.accepted
    assert any(scenario.wrong in reason for reason in result.reasons), result.reasons


async def test_contextual_recall_improvement() -> None:
    results = [(await evaluated(scenario)).contextual_recall for scenario in SCENARIOS if scenario.ground_truth]
    recalls = [recall for recall in results if recall is not None]
    avg_recall = sum(recalls) / len(recalls)
    assert avg_recall >= 0.50


async def test_no_faithfulness_regression() -> None:
    results = [(await evaluated(scenario)).faithfulness for scenario in SCENARIOS]
    assert sum(results) / len(results) >= 0.517
    right = [(await evaluated(scenario)).faithfulness for scenario in _RIGHT]
    wrong = [(await evaluated(scenario)).faithfulness for scenario in _WRONG]
    assert sum(right) / len(right) > sum(wrong) / len(wrong) + 0.2


async def test_answer_relevancy_of_right_answers() -> None:
    results = [(await evaluated(scenario)).answer_relevancy for scenario in _RIGHT if scenario.ground_truth]
    assert sum(results) / len(results) >= 0.733


async def test_contextual_recall_of_what_the_search_finds(service: App) -> None:
    """The same with the first five provisions that the search retrieves as contexts, and what `ask` answers."""
    current_app.opened(service)
    recalls, faithful = [], []
    for scenario in SCENARIOS[:20]:
        found = await service.regulations.search(scenario.query, K)
        answer = await service.ask(scenario.query)
        result = await RAGQualityEvaluator(service.judge).evaluate(
            query=scenario.query,
            answer=answer.text,
            contexts=[passage.text for passage in found],
            ground_truth=scenario.ground_truth,
        )
        if scenario.ground_truth:
            recalls.append(result.contextual_recall or 0.0)
        if not result.refused:
            faithful.append(result.faithfulness)
    assert sum(recalls) / len(recalls) >= 0.50
    assert sum(faithful) / len(faithful) >= 0.517
