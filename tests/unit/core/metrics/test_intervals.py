"""Intervals of measures by bootstrap, and exact ones of proportions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.metrics.intervals import Estimate, clopper_pearson, estimates

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


def at_most(successes: int, trials: int, p: float) -> float:
    """Probability of so many successes or fewer."""
    return math.fsum(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(successes + 1))


@given(st.integers(0, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.6, 0.999))
def test_bounds_are_where_the_binomial_tails_have_the_remaining_probability(
    counts: tuple[int, int], level: float
) -> None:
    successes, trials = counts
    lower, upper = clopper_pearson(successes, trials, level)
    assert 0.0 <= lower <= (successes / trials if trials else 0.5) <= upper <= 1.0
    if successes:
        assert 1 - at_most(successes - 1, trials, lower) == pytest.approx(1 - level, abs=1e-7)
    else:
        assert lower == 0.0
    if successes < trials:
        assert at_most(successes, trials, upper) == pytest.approx(1 - level, abs=1e-7)
    else:
        assert upper == 1.0


@given(st.integers(0, 200), st.integers(0, 200))
def test_the_upper_bound_mirrors_the_lower_one(successes: int, failures: int) -> None:
    lower, upper = clopper_pearson(successes, successes + failures)
    other_lower, other_upper = clopper_pearson(failures, successes + failures)
    assert lower == pytest.approx(1 - other_upper, abs=1e-9)
    assert upper == pytest.approx(1 - other_lower, abs=1e-9)


def test_known_values() -> None:
    assert clopper_pearson(0, 0) == (0.0, 1.0)
    assert clopper_pearson(60, 60)[0] == pytest.approx(0.05 ** (1 / 60))
    assert clopper_pearson(0, 600)[1] == pytest.approx(1 - 0.05 ** (1 / 600))
    assert clopper_pearson(2, 10)[1] == pytest.approx(0.5069013, abs=1e-6)
    lower, upper = clopper_pearson(990_000, 1_000_000)
    assert lower < 0.99 < upper
    assert upper - lower < 0.0005


@pytest.mark.parametrize(("successes", "trials", "level"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0), (1, 2, 0.0)])
def test_impossible_counts_are_errors(successes: int, trials: int, level: float) -> None:
    with pytest.raises(ValueError, match=r"impossible|between"):
        clopper_pearson(successes, trials, level)
