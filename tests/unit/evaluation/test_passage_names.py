"""Articles are named by code and number, other passages by their document."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.documents import SearchResult
from dtrag.evaluation.judged_questions import article_names, document_names, judged_name


def _article(number: str, **metadata: Any) -> SearchResult:
    return SearchResult(
        "c", title="학칙", metadata={"regulation": "학칙", "code": "1-1-1", "article": number, **metadata}
    )


def test_an_article_has_the_code_or_the_name_of_its_regulation() -> None:
    assert article_names(_article("제12조")) == ["1-1-1:제12조", "학칙:제12조"]
    assert article_names(_article("제12조", code="")) == ["학칙:제12조"]
    assert article_names(_article("별표 1")) == ["1-1-1:별표 1", "학칙:별표 1"]


def test_the_second_article_of_one_number_has_a_mark() -> None:
    assert article_names(_article("제2조", occurrence=2))[0] == "1-1-1:제2조#2"
    assert article_names(_article("제2조", occurrence=1))[0] == "1-1-1:제2조"


@given(st.integers(1, 9), st.integers(1, 9))
def test_different_occurrences_have_different_names(one: int, other: int) -> None:
    names = [set(article_names(_article("제2조", occurrence=number))) for number in (one, other)]
    assert (names[0] == names[1]) is (one == other)
    assert names[0].isdisjoint(names[1]) is (one != other)


def test_a_document_has_its_id_title_and_address() -> None:
    passage = SearchResult(
        "c", title="Leave", source_url="file:///a/leave.md", metadata={"id": "7", "document_id": "d"}
    )
    assert document_names(passage) == ["7", "Leave", "d", "file:///a/leave.md", "leave.md"]
    assert article_names(passage) == []


@pytest.mark.parametrize(
    ("relevant", "name"),
    [((), "1-1-1:제12조"), (("학칙:제12조",), "학칙:제12조"), (("학칙",), "학칙"), (("other",), "1-1-1:제12조")],
)
def test_the_judged_name_is_preferred(relevant: tuple[str, ...], name: str) -> None:
    assert judged_name(_article("제12조"), relevant) == name
    assert judged_name(SearchResult("c"), relevant) == ""
