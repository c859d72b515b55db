"""`RAGQualityEvaluator`: the measures of one answer, with the default judge and with one that fails."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from dtrag import InvalidInput, RAGQualityEvaluator
from dtrag.core.quality.scores import Judgement, Relevance
from dtrag.errors import LanguageModelFailed

QUERY = "How many days of paid annual leave does a full-time employee have?"
LEAVE = "Full-time employees have 26 days of paid annual leave each calendar year."
CONTEXTS = ["The library opens at nine.", LEAVE, "Invoices are paid within 30 days."]


async def test_a_right_answer() -> None:
    result = await RAGQualityEvaluator().evaluate(
        QUERY, "They have 26 days of paid annual leave. [2]", CONTEXTS, "26 days"
    )
    assert (result.contextual_recall, result.correctness, result.accepted) == (1.0, 1.0, True)
    assert result.contextual_precision == 0.5, "the context that supports it is the second"
    assert result.faithfulness > 0.5 and result.answer_relevancy > 0.5
    assert (result.refusal, result.judge, result.degraded, result.reasons) == ("none", "lexical", "", ())
    assert json.loads(json.dumps(result.as_dict()))["claims"][0]["supported"] is True


async def test_a_wrong_answer_is_named() -> None:
    result = await RAGQualityEvaluator().evaluate(QUERY, "They have 30 days of paid annual leave.", [LEAVE], "26 days")
    assert (result.contextual_recall, result.correctness, result.accepted) == (1.0, 0.0, False)
    assert any("the number 30" in reason for reason in result.reasons)
    assert any("Missing in the answer: “26 days”" in reason for reason in result.reasons)
    right = await RAGQualityEvaluator().evaluate(QUERY, "They have 26 days of paid annual leave.", [LEAVE], "26 days")
    assert result.faithfulness < right.faithfulness


async def test_a_part_of_a_number_is_not_the_expected_value() -> None:
    contexts = ["You get 15 days of leave."]
    result = await RAGQualityEvaluator().evaluate("How many days of leave?", "15 days.", contexts, "5 days")
    assert (result.contextual_recall, result.correctness, result.accepted) == (0.0, 0.0, False)


async def test_a_vague_answer_is_not_accepted() -> None:
    vague = "Paid annual leave is granted to every full-time employee under the rules of the handbook."
    for truth in ("26 days", None):
        assert not (await RAGQualityEvaluator().evaluate(QUERY, vague, CONTEXTS, truth)).accepted


async def test_without_a_ground_truth() -> None:
    result = await RAGQualityEvaluator().evaluate(QUERY, "They have 26 days of paid annual leave.", CONTEXTS)
    assert (result.contextual_recall, result.correctness) == (None, None)
    assert result.contextual_precision == 0.5
    assert result.accepted


async def test_one_of_several_ground_truths_suffices() -> None:
    result = await RAGQualityEvaluator().evaluate(QUERY, "26 days", CONTEXTS, ["five weeks", "26 days"])
    assert result.accepted and result.contextual_recall == 1.0


@pytest.mark.parametrize(
    ("answer", "truth", "contexts", "refusal", "accepted"),
    [
        ("The documents do not answer this.", "", CONTEXTS, "right", True),
        ("The documents do not answer this.", "26 days", CONTEXTS, "wrong", False),
        ("The documents do not answer this.", "26 days", CONTEXTS[:1], "right", True),
        ("The documents do not answer this.", None, CONTEXTS, "unknown", False),
        ("They have 26 days of leave.", "", CONTEXTS, "missing", False),
    ],
)
async def test_refusal_is_an_axis_of_its_own(
    answer: str, truth: str | None, contexts: Sequence[str], refusal: str, accepted: bool
) -> None:
    result = await RAGQualityEvaluator().evaluate(QUERY, answer, contexts, truth)
    assert (result.refusal, result.accepted) == (refusal, accepted)
    assert result.refused == (refusal in {"right", "wrong", "unknown"})


async def test_without_contexts_there_is_no_precision_and_no_recall() -> None:
    result = await RAGQualityEvaluator().evaluate(QUERY, "They have 26 days of leave.", [], "26 days")
    assert (result.contextual_recall, result.contextual_precision, result.faithfulness) == (0.0, None, 0.0)


async def test_bad_arguments() -> None:
    with pytest.raises(InvalidInput, match="query is empty"):
        await RAGQualityEvaluator().evaluate(" ", "x", [])
    with pytest.raises(InvalidInput, match="a list of texts"):
        await RAGQualityEvaluator().evaluate("x", "x", "one text")


class Failing:
    """A judge that fails."""

    id = "failing"

    async def support(self, claims: Sequence[str], contexts: Sequence[str], query: str) -> list[Judgement]:
        raise LanguageModelFailed(model=self.id, reason="it is down.")

    async def relevance(self, query: str, answer: str) -> Relevance:
        raise LanguageModelFailed(model=self.id, reason="it is down.")


async def test_words_decide_when_the_judge_fails() -> None:
    result = await RAGQualityEvaluator(Failing()).evaluate(QUERY, "They have 26 days.", CONTEXTS, "26 days")
    assert result.judge == "lexical" and "it is down" in result.degraded
    assert result.accepted
