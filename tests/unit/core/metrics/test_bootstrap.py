"""Bootstrap intervals: repeatable, inside the values' range, narrower with more questions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.metrics.bootstrap import Estimate, estimates

VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=20)
RATIOS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=15)


@settings(max_examples=20)
@given(VALUES)
def test_a_mean_and_its_interval_are_between_the_lowest_and_the_highest_value(values: list[float]) -> None:
    estimate = estimates([{"mean": (value, 1)} for value in values])["mean"]
    assert estimate.value == pytest.approx(math.fsum(values) / len(values))
    assert estimate.interval is not None
    low, high = estimate.interval
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
    assert estimates([{"mean": (value, 1)} for value in values])["mean"] == estimate


@settings(max_examples=20)
@given(RATIOS)
def test_a_ratio_counts_only_rows_with_a_denominator(pairs: list[tuple[int, int]]) -> None:
    rows = [{"share": (float(min(pair)), float(pair[1])), "all": (1.0, 1.0)} for pair in pairs]
    measured = estimates(rows)
    assert measured["all"] == Estimate(1.0, (1.0, 1.0))
    total = sum(denominator for _, denominator in pairs)
    if not total:
        assert measured["share"] == Estimate(None, None)
        return
    assert measured["share"].value == pytest.approx(sum(map(min, pairs)) / total)
    assert measured["share"].interval is not None
    assert 0 <= measured["share"].interval[0] <= measured["share"].interval[1] <= 1


def test_the_interval_of_a_share_is_that_of_the_normal_approximation() -> None:
    measured = estimates([{"share": (float(row % 2), 1)} for row in range(400)])["share"]
    assert measured.interval == pytest.approx((0.5 - 1.96 * 0.025, 0.5 + 1.96 * 0.025), abs=0.006)


def test_measures_do_not_influence_each_other() -> None:
    rows = [{"a": (float(row % 3 == 0), 1.0), "b": (float(row), 2.0)} for row in range(30)]
    alone = estimates([{"a": row["a"]} for row in rows])
    assert estimates(rows)["a"] == alone["a"]
    assert estimates([]) == {}
