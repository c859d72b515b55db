"""Requests of the case memory are checked when they are made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dtrag.core.cases.case import FeedbackType, SimilarityMethod
from dtrag.core.cases.requests import CBRQualityUpdateRequest, CBRUpdateRequest, FeedbackRequest, SuggestionRequest
from dtrag.errors import InvalidInput


def test_requests_as_json_values() -> None:
    assert SuggestionRequest("test", category_path=["AI"], similarity_method=SimilarityMethod.JACCARD).dict() == {
        "query": "test",
        "category_path": ["AI"],
        "k": 5,
        "similarity_method": "jaccard",
        "include_metadata": True,
        "min_quality_score": 0.0,
    }
    assert FeedbackRequest("log", "case", FeedbackType.SELECTED).dict()["feedback_type"] == "selected"
    update = CBRUpdateRequest(content="new", metadata={"version": "2.0"})
    assert update.dict()["metadata"] == {"version": "2.0"}
    assert update.fields() == ["content", "metadata"]
    assert CBRQualityUpdateRequest(0.9).dict() == {"quality_score": 0.9}


@pytest.mark.parametrize(
    "request_of",
    [
        lambda: SuggestionRequest(" "),
        lambda: SuggestionRequest("x" * 1_001),
        lambda: SuggestionRequest("x", k=0),
        lambda: SuggestionRequest("x", k=51),
        lambda: SuggestionRequest("x", k=True),
        lambda: SuggestionRequest("x", category_path=[]),
        lambda: SuggestionRequest("x", category_path="AI"),
        lambda: SuggestionRequest("x", similarity_method="other"),  # type: ignore[arg-type]
        lambda: SuggestionRequest("x", min_quality_score=1.5),
        lambda: SuggestionRequest("x", min_quality_score=float("nan")),
        lambda: FeedbackRequest("", "case", FeedbackType.IGNORED),
        lambda: FeedbackRequest("log", " ", FeedbackType.IGNORED),
        lambda: FeedbackRequest("log", "case", FeedbackType.IGNORED, success="yes"),  # type: ignore[arg-type]
        lambda: CBRUpdateRequest(query=""),
        lambda: CBRUpdateRequest(content=" "),
        lambda: CBRUpdateRequest(category_path=[]),
        lambda: CBRUpdateRequest(metadata=[]),  # type: ignore[arg-type]
        lambda: CBRQualityUpdateRequest(-0.1),
    ],
)
def test_invalid_values_are_refused(request_of: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput):
        request_of()
