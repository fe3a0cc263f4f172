"""Aggregates over runs and tasks, with their uncertainty.

The practice of Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical
Precipice" (NeurIPS 2021): the interquartile mean in place of mean or median, and percentile
bootstrap intervals in which the runs of every task are drawn apart (stratified). Pure numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mle_rl.errors import MleRlError


class Interval(NamedTuple):
    """A point estimate with the two ends of its interval; scalars or arrays of one shape."""

    point: float | np.ndarray
    low: float | np.ndarray
    high: float | np.ndarray


def iqm(scores: np.ndarray, axis: int | None = None) -> float | np.ndarray:
    """Interquartile mean: the mean without the lowest and the highest quarter of the scores.

    A quarter is rounded down, so that fewer than four scores give their plain mean.

    Args:
        scores: Any shape; scores normalised to one scale when they come from several tasks.
        axis: Axis to aggregate over; by default all scores together, as rliable does.
    """
    scores = _finite(scores)
    if axis is None:
        scores, axis = scores.ravel(), 0
    ordered = np.sort(scores, axis=axis)
    cut = ordered.shape[axis] // 4
    kept = np.take(ordered, range(cut, ordered.shape[axis] - cut), axis=axis)
    mean = kept.mean(axis=axis)
    return float(mean) if mean.ndim == 0 else mean


def bootstrap_interval(
    scores: np.ndarray,
    statistic: Callable[[np.ndarray], float] = iqm,
    *,
    rng: np.random.Generator,
    repeats: int = 2000,
    confidence: float = 0.95,
) -> Interval:
    """Percentile bootstrap interval, stratified by task.

    Args:
        scores: ``(runs, tasks)``, or ``(runs,)`` for one task.
        statistic: Maps a ``(runs, tasks)`` matrix to a number.
        rng: Source of the resampling.
        repeats: Bootstrap samples.
        confidence: Probability the interval is made for.

    Raises:
        MleRlError: No scores, a score that is not finite, or a confidence outside (0, 1).
    """
    scores = _finite(scores)
    scores = scores[:, None] if scores.ndim == 1 else scores
    if scores.ndim != 2:
        raise MleRlError(f"Scores must be (runs, tasks), not of shape {scores.shape}.")
    runs, tasks = scores.shape
    rows = rng.integers(runs, size=(repeats, runs, tasks))
    samples = np.array([statistic(scores[row, np.arange(tasks)]) for row in rows])
    return Interval(float(statistic(scores)), *_percentiles(samples, confidence))


def bootstrap_curve(
    curves: np.ndarray,
    *,
    rng: np.random.Generator,
    repeats: int = 2000,
    confidence: float = 0.95,
) -> Interval:
    """Interquartile mean of every step over runs; whole runs are resampled, not single steps.

    Args:
        curves: ``(runs, steps)``.

    Returns:
        Three arrays ``(steps,)``.
    """
    curves = _finite(curves)
    if curves.ndim != 2:
        raise MleRlError(f"Curves must be (runs, steps), not of shape {curves.shape}.")
    rows = rng.integers(len(curves), size=(repeats, len(curves)))
    samples = np.stack([iqm(curves[row], axis=0) for row in rows])
    return Interval(iqm(curves, axis=0), *_percentiles(samples, confidence))


def _percentiles(samples: np.ndarray, confidence: float) -> tuple:
    if not 0 < confidence < 1:
        raise MleRlError(f"The confidence of an interval lies between 0 and 1, not {confidence}.")
    tail = 50 * (1 - confidence)
    low, high = np.percentile(samples, [tail, 100 - tail], axis=0)
    return (float(low), float(high)) if samples.ndim == 1 else (low, high)


def _finite(scores: np.ndarray) -> np.ndarray:
    scores = np.asarray(scores, dtype=float)
    if scores.size == 0:
        raise MleRlError("There are no scores to aggregate.")
    if not np.isfinite(scores).all():
        raise MleRlError(
            "Scores to aggregate must be finite: leave out or impute failed runs, and say so."
        )
    return scores
