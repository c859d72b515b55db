"""What a confidence is worth, against counts made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.metrics.calibration import (
    auroc,
    calibration_error,
    coverage_at,
    log_loss,
    logistic,
    risk_curve,
    sigmoid,
)

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), min_size=2, max_size=30)


def _arrays(pairs: list[tuple[float, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([value for value, _ in pairs], float), np.array([label for _, label in pairs], float)


@given(PAIRS)
def test_auroc_is_the_share_of_pairs_in_the_right_order_ties_counting_half(pairs: list[tuple[int, int]]) -> None:
    values, labels = _arrays([(value / 5, label) for value, label in pairs])
    right, wrong = values[labels == 1], values[labels == 0]
    measured = auroc(values, labels)
    if not len(right) or not len(wrong):
        assert np.isnan(measured)
        return
    counted = sum((one > other) + 0.5 * (one == other) for one in right for other in wrong)
    assert measured == pytest.approx(counted / (len(right) * len(wrong)))


def test_ties_are_answered_together() -> None:
    values, labels = _arrays([(0.9, 1), (0.5, 1), (0.5, 0), (0.5, 0), (0.1, 0)])
    coverage, precision = risk_curve(values, labels)
    assert coverage.tolist() == pytest.approx([0.2, 0.8, 1.0])
    assert precision.tolist() == pytest.approx([1.0, 0.5, 0.4])
    assert coverage_at(0.95, values, labels) == pytest.approx(0.2)
    assert coverage_at(0.5, values, labels) == pytest.approx(0.8)
    assert coverage_at(0.95, values[1:], labels[1:]) == 0.0


def test_calibration_error_is_the_weighed_gap_of_the_bins() -> None:
    values, labels = _arrays([(0.9, 1), (0.9, 0), (0.1, 0), (0.1, 0)])
    assert calibration_error(values, labels, 10) == pytest.approx(0.5 * 0.4 + 0.5 * 0.1)
    assert calibration_error(np.array([1.0, 0.0]), np.array([1.0, 0.0])) == 0.0
    assert np.isnan(calibration_error(np.empty(0), np.empty(0)))


def test_log_loss_of_chance() -> None:
    assert log_loss(np.array([0.5, 0.5]), np.array([1.0, 0.0])) == pytest.approx(np.log(2))
    assert log_loss(np.array([0.0]), np.array([1.0])) < 20  # finite, however wrong


def test_logistic_finds_the_weights_that_made_the_labels() -> None:
    chance = np.random.default_rng(5)
    x = chance.normal(size=(20_000, 2))
    labels = (chance.random(20_000) < sigmoid(0.5 + x @ np.array([2.0, -1.0]))).astype(float)
    assert logistic(x, labels, np.ones(20_000)).tolist() == pytest.approx([0.5, 2.0, -1.0], abs=0.1)


def test_logistic_stays_near_the_prior_with_few_samples() -> None:
    prior = np.array([0.0, 1.0])
    x, labels = np.array([[1.0], [-1.0]]), np.array([0.0, 1.0])
    near = logistic(x, labels, np.ones(2), prior, ridge=100.0)
    far = logistic(x, labels, np.ones(2), prior, ridge=0.01)
    assert abs(near[1] - 1.0) < 0.05
    assert far[1] < 0


def test_logistic_terminates_on_separable_labels() -> None:
    found = logistic(np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4))
    assert np.isfinite(found).all()
    assert found[1] > 0
