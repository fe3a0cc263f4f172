"""Aggregates: hand-worked values, invariances, and coverage of the bootstrap intervals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mle_rl import MleRlError
from mle_rl.analysis import bootstrap_curve, bootstrap_interval, iqm

SCORES = arrays(float, st.integers(1, 40), elements=st.floats(-1e3, 1e3))


def test_iqm_of_eight_scores_is_the_mean_of_the_middle_four():
    assert iqm(np.array([100.0, 1, 2, 3, 4, 5, 90, 1])) == pytest.approx((2 + 3 + 4 + 5) / 4)


def test_iqm_of_a_matrix_pools_runs_and_tasks():
    scores = np.array([[0.0, 10.0], [1.0, 11.0], [2.0, 12.0], [3.0, 13.0]])
    assert iqm(scores) == pytest.approx((2 + 3 + 10 + 11) / 4)
    np.testing.assert_allclose(iqm(scores, axis=0), [1.5, 11.5])


def test_fewer_than_four_scores_give_their_mean():
    assert iqm(np.array([1.0, 2.0, 9.0])) == pytest.approx(4.0)


@given(SCORES)
def test_iqm_ignores_order_and_how_far_away_outliers_lie(scores):
    assert iqm(scores[::-1]) == pytest.approx(iqm(scores))
    if len(scores) >= 4:
        further = scores.copy()
        further[np.argmax(scores)] += 1e6
        assert iqm(further) == pytest.approx(iqm(scores))


@given(SCORES, st.floats(0.1, 10), st.floats(-100, 100))
def test_iqm_follows_scale_and_shift(scores, scale, shift):
    assert iqm(scores * scale + shift) == pytest.approx(iqm(scores) * scale + shift, abs=1e-6)


def test_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        scores = rng.normal(size=(20, 2))
        _, low, high = bootstrap_interval(scores, np.mean, rng=rng, repeats=200)
        covered += low <= 0 <= high
    assert 0.87 <= covered / 200 <= 0.99  # 95 % nominal; the percentile bootstrap is a bit short


@pytest.mark.parametrize(("confidence", "errors"), [(0.95, 1.96), (0.68, 0.994)])
def test_of_many_runs_the_interval_is_that_of_the_normal_distribution(confidence, errors):
    scores = np.random.default_rng(0).normal(size=1000)
    rng = np.random.default_rng(1)
    _, low, high = bootstrap_interval(scores, np.mean, rng=rng, confidence=confidence)
    standard_error = scores.std() / np.sqrt(len(scores))
    assert high - low == pytest.approx(2 * errors * standard_error, rel=0.1)


def test_bootstrap_is_stratified_so_the_level_of_a_task_adds_no_width():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(5, 2))
    apart = scores + np.array([0.0, 1000.0])
    near = bootstrap_interval(scores, np.mean, rng=np.random.default_rng(2))
    far = bootstrap_interval(apart, np.mean, rng=np.random.default_rng(2))
    assert far.high - far.low == pytest.approx(near.high - near.low)


def test_tasks_are_resampled_apart_from_each_other():
    # Two tasks that mirror each other run by run: drawn together their mean is always zero.
    scores = np.array([[1.0, -1.0], [2.0, -2.0], [3.0, -3.0], [4.0, -4.0]])
    _, low, high = bootstrap_interval(scores, np.mean, rng=np.random.default_rng(0))
    assert low < -0.1 < 0.1 < high


def test_same_generator_state_same_interval():
    scores = np.random.default_rng(3).normal(size=(6, 3))
    first = bootstrap_interval(scores, rng=np.random.default_rng(4))
    assert first == bootstrap_interval(scores, rng=np.random.default_rng(4))


def test_a_curve_is_resampled_run_by_run():
    # Each run is a constant: if steps were drawn apart, the interval would differ between them.
    curves = np.repeat(np.arange(8.0)[:, None], 5, axis=1)
    point, low, high = bootstrap_curve(curves, rng=np.random.default_rng(0))
    np.testing.assert_allclose(point, 3.5)
    assert len(set(low)) == len(set(high)) == 1
    assert low[0] < 3.5 < high[0]


@pytest.mark.parametrize("scores", [[], [1.0, float("nan")], [float("inf")]])
def test_scores_that_cannot_be_aggregated_are_refused(scores):
    with pytest.raises(MleRlError):
        iqm(np.array(scores))


def test_a_confidence_in_per_cent_is_refused():
    with pytest.raises(MleRlError, match="between 0 and 1"):
        bootstrap_interval(np.ones(4), rng=np.random.default_rng(0), confidence=95)
