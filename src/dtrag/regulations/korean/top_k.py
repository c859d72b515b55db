"""The number of passages that an answer needs: few for a bare topic, many for a question of two parts.

SPEC-RAG-SEARCH-001, TAG-003.
"""

from __future__ import annotations

import re
from enum import StrEnum

from dtrag.core.query_expansion import TopKChoice
from dtrag.core.text.question_words import asks
from dtrag.regulations.korean.expansion import is_formal
from dtrag.regulations.korean.question_entities import RegulationEntityRecognizer
from dtrag.regulations.korean.question_parts import parts_of

SLOW_SECONDS = 0.5
"""Search time from which on fewer passages are used."""


class QueryComplexity(StrEnum):
    """Classes of questions; see `TOP_K`."""

    SIMPLE = "simple"
    MEDIUM = "medium"
    COMPLEX = "complex"
    MULTI_PART = "multi_part"


TOP_K = {
    QueryComplexity.SIMPLE: 5,
    QueryComplexity.MEDIUM: 10,
    QueryComplexity.COMPLEX: 15,
    QueryComplexity.MULTI_PART: 20,
}
_PARTS = re.compile(r"(?:^|\s)(?:그리고|또는|및|혹은|아니면)(?:\s|$)|[;；]|(?<=[^\d\s])\s?[,，]\s?(?=\S+\s)")
_CONDITIONS = frozenset(
    "신청 신청서 방법 절차 자격 요건 조건 기준 제한 혜택 지급 지원 지원금 서류 구비서류 기한".split()
)
MIN_CONDITIONS = 2
"""Condition words that make a question complex (D27)."""
SIMPLE_WORDS = 2


class AdaptiveTopKSelector:
    """Chooses how many passages are used."""

    def __init__(self, entity_recognizer: RegulationEntityRecognizer | None = None) -> None:
        self._recognizer = entity_recognizer or RegulationEntityRecognizer()

    def classify(self, query: str) -> QueryComplexity:
        """The class of the question."""
        if _PARTS.search(query) or parts_of(query):
            return QueryComplexity.MULTI_PART
        conditions = {match.text for match in self._recognizer.recognize(query)} & _CONDITIONS
        if len(conditions) >= MIN_CONDITIONS:
            return QueryComplexity.COMPLEX
        if len(query.split()) <= SIMPLE_WORDS and not asks(query, "procedure"):
            return QueryComplexity.SIMPLE
        if is_formal(query) and not asks(query, "procedure") and len(query.split()) <= SIMPLE_WORDS + 1:
            return QueryComplexity.SIMPLE
        return QueryComplexity.MEDIUM

    def select(self, query: str, *, elapsed: float = 0.0) -> TopKChoice:
        """5, 10, 15 or 20 passages; half of that when the search has already taken more than `SLOW_SECONDS`."""
        complexity = self.classify(query)
        is_slow = elapsed > SLOW_SECONDS
        return TopKChoice(TOP_K[complexity] // (2 if is_slow else 1), complexity.value, is_slow)

    def select_top_k(self, query: str, *, elapsed: float = 0.0) -> int:
        """The number that `select` chooses."""
        return self.select(query, elapsed=elapsed).top_k
