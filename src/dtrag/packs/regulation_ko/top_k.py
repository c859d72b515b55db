"""The number of passages that an answer needs: few for a bare topic, many for a question of two parts.

SPEC-RAG-SEARCH-001, TAG-003.
"""

from __future__ import annotations

import logging
import re
from enum import StrEnum

from dtrag.packs.regulation_ko.expansion import is_formal

_LOG = logging.getLogger(__name__)

MAX_TOP_K = 25
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
_CONDITIONS = re.compile(r"신청|방법|절차|자격|요건|조건|기준|제한|혜택|지급|지원|서류|기한")
_ASKS_HOW = re.compile(r"어떻게|방법|절차|신청")
MIN_CONDITIONS = 2
"""Condition words that make a question complex (D27)."""
SIMPLE_WORDS = 2


class AdaptiveTopKSelector:
    """Chooses how many passages are used."""

    def classify(self, query: str) -> QueryComplexity:
        """The class of the question."""
        if _PARTS.search(query):
            return QueryComplexity.MULTI_PART
        if len(set(_CONDITIONS.findall(query))) >= MIN_CONDITIONS:
            return QueryComplexity.COMPLEX
        if len(query.split()) <= SIMPLE_WORDS and not _ASKS_HOW.search(query):
            return QueryComplexity.SIMPLE
        if is_formal(query) and not _ASKS_HOW.search(query) and len(query.split()) <= SIMPLE_WORDS + 1:
            return QueryComplexity.SIMPLE
        return QueryComplexity.MEDIUM

    def select_top_k(self, query: str, *, elapsed: float = 0.0) -> int:
        """5, 10, 15 or 20 passages; half of that when the search has already taken more than `SLOW_SECONDS`."""
        top_k = TOP_K[self.classify(query)]
        if elapsed > SLOW_SECONDS:
            _LOG.warning(
                "The search took %.0f ms: %d passages are used instead of %d.", elapsed * 1e3, top_k // 2, top_k
            )
            top_k //= 2
        return min(top_k, MAX_TOP_K)
