"""Raising passages: bounded, and only among those that the search returned."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.documents import SearchResult
from dtrag.pipeline.recall import LEAST_SHARE, MOST_PLACES, MOST_RAISED, raised

NAMES = [f"p{number}" for number in range(20)]
SCORES = st.lists(st.floats(0, 1), min_size=0, max_size=20)
CITED = st.lists(st.sampled_from([*NAMES, "elsewhere"]), unique=True, max_size=6)


def passages(scores: list[float]) -> list[SearchResult]:
    ordered = sorted(scores, reverse=True)
    return [SearchResult(name, hybrid_score=score) for name, score in zip(NAMES, ordered, strict=False)]


def order(found: list[SearchResult]) -> list[str]:
    return [passage.chunk_id for passage in found]


@given(SCORES, CITED)
def test_nothing_is_added_or_removed_and_rises_by_bounded_places(scores: list[float], cited: list[str]) -> None:
    before = passages(scores)
    after = raised(before, cited)
    assert sorted(order(after)) == sorted(order(before))
    lifted = set(cited[:MOST_RAISED])
    for place, passage in enumerate(after):
        earlier = before.index(passage)
        if passage.chunk_id not in lifted:
            assert place >= earlier
            continue
        assert earlier - MOST_PLACES <= place <= earlier + MOST_RAISED
        for other in after[place + 1 :]:
            if before.index(other) < earlier and other.chunk_id not in lifted:
                assert passage.hybrid_score >= LEAST_SHARE * other.hybrid_score
    others = [name for name in order(after) if name not in lifted]
    assert others == [name for name in order(before) if name not in lifted]


def test_cited_passages_come_first_in_the_order_of_the_search() -> None:
    assert order(raised(passages([0.9, 0.8, 0.7, 0.6]), ["p3", "p1"])) == ["p1", "p3", "p0", "p2"]


def test_an_unrelated_passage_stays_below_better_ones() -> None:
    assert order(raised(passages([0.9, 0.5, 0.4, 0.3]), ["p3"])) == ["p0", "p3", "p1", "p2"]
    assert order(raised(passages([0.9, 0.8, 0.1]), ["p2"])) == ["p0", "p1", "p2"]
