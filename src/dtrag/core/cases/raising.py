"""Raising the passages of a verified case among those that a search returned."""

from __future__ import annotations

from collections.abc import Sequence

from dtrag.core.documents import SearchResult

MOST_RAISED = 3
"""Passages of a case that are raised: the first ones that it cites."""
MOST_PLACES = 9
"""Places by which a passage rises at most: to the top from the last of ten."""
LEAST_SHARE = 0.5
"""A passage rises above passages of at most twice its score: a case cannot bring up what the search finds unrelated."""


def raised(passages: Sequence[SearchResult], chunk_ids: Sequence[str]) -> list[SearchResult]:
    """The same passages, the first few of `chunk_ids` further up; no passage is added or removed.

    Among themselves they keep the order of the search: an answer that cites several is right as a whole, and says
    little about which of them is. Scores stay as they are.
    """
    cited = frozenset(chunk_ids[:MOST_RAISED])
    scores = [_score(passage) for passage in passages]

    def sort_key(position: int) -> tuple[int, int, int]:
        if passages[position].chunk_id not in cited:
            return position, 1, position
        lowest = max(0, position - MOST_PLACES)
        above = (
            higher for higher in range(position, lowest, -1) if scores[position] < LEAST_SHARE * scores[higher - 1]
        )
        return next(above, lowest), 0, position

    return [passages[position] for position in sorted(range(len(passages)), key=sort_key)]


def _score(passage: SearchResult) -> float:
    return passage.rerank_score if passage.rerank_score > 0 else passage.hybrid_score
