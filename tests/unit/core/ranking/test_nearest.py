"""Nearest vectors by scanning: what it finds and scores beside all cosines, in scopes, over parts, and at the edges."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from dtrag.core.ranking.nearest import CENTRED_FROM, LEAST_RESCORED, Direction, Rows, Vectors, nearest

DIM = 384


def clustered(rng: np.random.Generator, count: int, common: float) -> NDArray[np.float32]:
    """Vectors of 100 topics; `common` is the length of what all share: e5 has much, MiniLM next to nothing."""
    topics = np.random.default_rng(5).standard_normal((100, DIM))
    shared = np.random.default_rng(6).standard_normal(DIM) * common
    own = rng.standard_normal((count, DIM)) * 0.8
    return (topics[rng.integers(0, 100, count)] + own + shared).astype(np.float16).astype(np.float32)


def cosines(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float64]:
    wide, asked = vectors.astype(np.float64), query.astype(np.float64)
    scores: NDArray[np.float64] = wide @ asked / np.linalg.norm(wide, axis=1) / np.linalg.norm(asked)
    return scores


def best(part: tuple[Rows, NDArray[np.float64]], limit: int) -> list[int]:
    rows, scores = part
    order = np.lexsort((rows, -scores))
    return [int(row) for row in rows[order][:limit]]


@pytest.mark.parametrize("common", [0.2, 3.0])
@pytest.mark.parametrize("share", [1.0, 0.5, 0.1, 0.01, 0.001])
def test_nearly_all_of_the_nearest_are_returned_in_every_scope(common: float, share: float) -> None:
    rng = np.random.default_rng(1)
    vectors = clustered(rng, 20_000, common)
    scanned = Vectors.of(vectors)
    rows = np.flatnonzero(rng.random(len(vectors)) < share)
    hits = total = 0
    for query in clustered(rng, 30, common):
        exact = cosines(vectors[rows], query)
        expected = set(rows[np.argsort(-exact)[:10]].tolist())
        [part] = nearest([(scanned, None if share == 1 else rows)], Direction.of(query), 10)
        assert set(part[0].tolist()) <= set(rows.tolist())
        hits += len(expected & set(best(part, 10)))
        total += len(expected)
    assert hits >= 0.99 * total


def test_scores_are_cosines_and_all_rows_are_compared_where_few_count() -> None:
    rng = np.random.default_rng(2)
    vectors = clustered(rng, LEAST_RESCORED, 1.0)
    for query in clustered(rng, 20, 1.0):
        exact = cosines(vectors, query)
        [(rows, scores)] = nearest([(Vectors.of(vectors), None)], Direction.of(query), 50)
        assert set(rows.tolist()) == set(np.argsort(-exact)[:50].tolist())
        np.testing.assert_allclose(scores, exact[rows], atol=1e-5)


def test_scores_do_not_depend_on_the_parts_and_places_of_rows() -> None:
    rng = np.random.default_rng(3)
    vectors = clustered(rng, 5_000, 2.0)
    whole = Vectors.of(vectors)
    [(rows, scores)] = nearest([(whole, None)], Direction.of(vectors[7]), 40)
    cuts = [0, 1, 700, 702, 4_999, 5_000]
    parts = [Vectors.of(vectors[start:end]).centred(whole.centre) for start, end in itertools.pairwise(cuts)]
    found = nearest([(part, None) for part in parts], Direction.of(vectors[7]), 40)
    together = {
        start + int(row): score
        for start, (here, there) in zip(cuts, found, strict=False)
        for row, score in zip(here, there, strict=True)
    }
    assert together == dict(zip(rows.tolist(), scores.tolist(), strict=True))
    assert sum(len(here) for here, _ in found) >= 40


def test_equal_vectors_have_equal_scores_and_are_all_returned() -> None:
    rng = np.random.default_rng(4)
    vectors = np.vstack([clustered(rng, 4_000, 0.2), np.tile(clustered(rng, 1, 0.2), (30, 1))])
    [(rows, scores)] = nearest([(Vectors.of(vectors), None)], Direction.of(vectors[-1]), 5)
    assert set(rows.tolist()) == set(range(4_000, 4_030))
    assert len(set(scores.tolist())) == 1
    equal = np.tile(vectors[:1], (50_000, 1))
    [(rows, _)] = nearest([(Vectors.of(equal), None)], Direction.of(vectors[0]), 5)
    assert 5 <= len(rows) <= 4 * LEAST_RESCORED, "not each of 50,000 is compared"


@pytest.mark.parametrize("dim", [8, 100, 384, 1536])
@pytest.mark.parametrize("step", [0.0, 1e-7, 3e-6, 1e-2])
def test_rows_are_selected_as_if_each_was_compared_exactly(dim: int, step: float) -> None:
    """Also those whose cosines differ by less than float32 tells apart, and by less than integers do."""
    rng = np.random.default_rng(dim)
    for _ in range(20):
        base = rng.standard_normal(dim)
        vectors = (base + step * rng.standard_normal((LEAST_RESCORED, dim)) * rng.random((LEAST_RESCORED, 1))).astype(
            np.float32
        )
        query = Direction.of((base + rng.choice([0, 0.5, 3]) * rng.standard_normal(dim)).astype(np.float32))
        parts = [
            (Vectors.of(vectors[:700]), None),
            (Vectors.of(vectors[700:]), np.flatnonzero(rng.random(1_300) < 0.9)),
        ]
        limit = int(rng.choice([1, 10, 100]))
        every = [
            part.cosines(query, np.arange(len(part)) if rows is None else rows, np.float64) for part, rows in parts
        ]
        floor = np.sort(np.concatenate(every))[-limit]
        for (rows, scores), (_, counted), exact in zip(nearest(parts, query, limit), parts, every, strict=True):
            expected = np.flatnonzero(exact >= floor)
            assert rows.tolist() == (expected if counted is None else counted[expected]).tolist()
            assert scores.tolist() == exact[expected].tolist(), "to the last bit"


@pytest.mark.parametrize("dim", [8, 64, 100, 1536])
def test_any_dimension(dim: int) -> None:
    rng = np.random.default_rng(dim)
    vectors = rng.standard_normal((CENTRED_FROM + 500, dim)).astype(np.float32)
    scanned = Vectors.of(vectors)
    assert scanned.signs.shape == (-(-dim // 64), len(vectors)) and scanned.centre.any()
    [(rows, scores)] = nearest([(scanned, None)], Direction.of(vectors[3]), 1)
    assert rows[np.argmax(scores)] == 3 and scores.max() == pytest.approx(1, abs=1e-5)


def test_vectors_of_zeros_and_empty_parts() -> None:
    zeros = Vectors.of(np.zeros((3, 8), np.float32))
    nothing = Vectors.of(np.empty((0, 8), np.float32))
    direction = Direction.of(np.ones(8, np.float32))
    (rows, scores), (none, _) = nearest([(zeros, None), (nothing, None)], direction, 10)
    assert rows.tolist() == [0, 1, 2] and scores.tolist() == [0, 0, 0] and not len(none)
    eye = Vectors.of(np.eye(8, dtype=np.float32))
    [(rows, scores)] = nearest([(eye, None)], Direction.of(np.zeros(8, np.float32)), 10)
    assert scores.tolist() == [0] * 8
    assert nearest([], direction, 10) == []
    [(rows, _)] = nearest([(eye, np.array([2, 5]))], direction, 10)
    assert rows.tolist() == [2, 5], "no others than those that count"
