"""How a source of an answer names the citation that led to it."""

from __future__ import annotations

import pytest

from dtrag.core.answers.citation_labels import cited_label
from dtrag.core.documents import SearchResult


@pytest.mark.parametrize(
    ("cited_by", "label"),
    [
        ("", "학칙 제20조(학위)"),
        ("학칙 제24조", "학칙 제24조에 따라 제20조(학위)"),
        ("학사운영규정 제13조", "학사운영규정 제13조에 따라 학칙 제20조(학위)"),
    ],
)
def test_the_hop_is_named(cited_by: str, label: str) -> None:
    metadata = {"regulation": "학칙", "article": "제20조", "article_title": "학위", "cited_by": cited_by}
    assert cited_label(SearchResult("a:0", metadata=metadata)) == label
