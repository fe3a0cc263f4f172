"""The metrics of the paper's twelve tasks and of the offline suite.

Each metric is one pure numpy function ``(truth, prediction) -> float``. The table ``METRICS`` says
which direction is better, what the bounds are and what a submission has to contain. A score that
the definition leaves open (one class for an ROC AUC, a constant for a correlation) raises
:class:`UndefinedScore`; it is never returned as NaN or replaced by a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

PredictionKind = Literal["distribution", "real", "nonnegative", "integer", "label", "text"]

_EPSILON = float(np.finfo(np.float64).eps)


class UndefinedScore(ValueError):
    """The metric has no value for this pair of truth and prediction; the message says why."""


def log_loss(truth: np.ndarray, prediction: np.ndarray) -> float:
    """Multi-class logarithmic loss (spooky-author, leaf-classification, lmsys).

    Rows are rescaled to sum to one and then clipped to ``[eps, 1 - eps]`` with the machine epsilon
    of float64, as scikit-learn does.

    Args:
        truth: One-hot rows, shape ``(N, K)``.
        prediction: Non-negative probabilities, shape ``(N, K)``.
    """
    totals = prediction.sum(axis=1, keepdims=True)
    if not np.all(totals > 0):
        raise UndefinedScore("a row of probabilities sums to zero, so it cannot be normalised")
    clipped = np.clip(prediction / totals, _EPSILON, 1 - _EPSILON)
    return float(-(truth * np.log(clipped)).sum(axis=1).mean())


def roc_auc(truth: np.ndarray, prediction: np.ndarray) -> float:
    """Area under the ROC curve as the Mann-Whitney statistic; tied scores count one half.

    Args:
        truth: 0 or 1, shape ``(N,)``.
        prediction: Any real score, larger for the positive class, shape ``(N,)``.
    """
    positive = truth == 1
    n_positive = int(positive.sum())
    n_negative = len(truth) - n_positive
    if n_positive == 0 or n_negative == 0:
        raise UndefinedScore("the ROC AUC needs both classes among the true labels")
    _, inverse, counts = np.unique(prediction, return_inverse=True, return_counts=True)
    last_rank = np.cumsum(counts)
    mid_rank = last_rank - (counts - 1) / 2
    rank_sum = mid_rank[inverse][positive].sum()
    return float((rank_sum - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))


def mean_column_roc_auc(truth: np.ndarray, prediction: np.ndarray) -> float:
    """ROC AUC of each column, averaged without weights (plant-pathology); shapes ``(N, K)``."""
    return _mean_over_columns(roc_auc, truth, prediction)


def accuracy(truth: np.ndarray, prediction: np.ndarray) -> float:
    """Share of labels that are exactly right; both shape ``(N,)``."""
    return float(np.mean(truth == prediction))


def quadratic_weighted_kappa(truth: np.ndarray, prediction: np.ndarray) -> float:
    """Cohen's kappa with squared distances as weights (automated essay scoring).

    With quadratic weights the kappa is one minus the mean squared difference of the pairs over the
    mean squared difference expected from the two marginals alone. It is undefined only when truth
    and prediction are the same constant; a constant prediction of a varied truth scores exactly 0,
    since both means are taken over integers.

    Args:
        truth: Integer ratings, shape ``(N,)``.
        prediction: Integer ratings, shape ``(N,)``.
    """
    a, b = truth.astype(np.int64), prediction.astype(np.int64)
    n = len(a)
    observed = n * int(((a - b) ** 2).sum())
    expected = n * int((a**2).sum() + (b**2).sum()) - 2 * int(a.sum()) * int(b.sum())
    if expected == 0:
        raise UndefinedScore("truth and prediction are one and the same constant rating")
    return 1 - observed / expected


def word_jaccard(truth: Sequence[str], prediction: Sequence[str]) -> float:
    """Mean Jaccard similarity of the sets of lower-cased words (tweet-sentiment-extraction).

    Two texts without any word are equal sets and count 1, where the ratio itself is 0/0.
    """
    return float(np.mean([_jaccard(a, b) for a, b in zip(truth, prediction, strict=True)]))


def _jaccard(first: str, second: str) -> float:
    a, b = set(first.lower().split()), set(second.lower().split())
    union = len(a | b)
    return len(a & b) / union if union else 1.0


def pearson(truth: np.ndarray, prediction: np.ndarray) -> float:
    """Pearson's correlation (us-patent-phrase-to-phrase-matching); both shape ``(N,)``."""
    if truth.min() == truth.max():
        raise UndefinedScore("the true values are constant, so no correlation is defined")
    if prediction.min() == prediction.max():
        raise UndefinedScore("all predictions are equal, so no correlation is defined")
    a, b = _unit_deviations(truth), _unit_deviations(prediction)
    return float(np.clip(np.dot(a, b), -1.0, 1.0))


def _unit_deviations(values: np.ndarray) -> np.ndarray:
    """Deviations from the mean, scaled to unit length; safe for very large and small values."""
    scaled = values / np.abs(values).max()
    deviations = scaled - scaled.mean()
    return deviations / np.linalg.norm(deviations)


def rmsle(truth: np.ndarray, prediction: np.ndarray) -> float:
    """Root mean squared difference of ``log(1 + value)``; both non-negative, shape ``(N,)``."""
    if np.any(prediction < 0):
        raise UndefinedScore("the logarithmic error is not defined for negative predictions")
    return float(np.sqrt(np.mean((np.log1p(prediction) - np.log1p(truth)) ** 2)))


def clipped_rmsle(truth: np.ndarray, prediction: np.ndarray) -> float:
    """RMSLE of counts, with predictions below 0 taken as 0; both of shape ``(N,)``."""
    return rmsle(truth, np.maximum(prediction, 0.0))


def mean_column_rmsle(truth: np.ndarray, prediction: np.ndarray) -> float:
    """RMSLE of each column, averaged without weights (nomad2018); shapes ``(N, K)``."""
    return _mean_over_columns(rmsle, truth, prediction)


def _mean_over_columns(metric, truth: np.ndarray, prediction: np.ndarray) -> float:
    return float(np.mean([metric(truth[:, k], prediction[:, k]) for k in range(truth.shape[1])]))


@dataclass(frozen=True)
class Metric:
    """A metric with what is needed to use it safely.

    Attributes:
        name: Key in ``METRICS``.
        title: Name for people, with its article-free spelling on Kaggle.
        function: ``(truth, prediction) -> float``.
        higher_is_better: Direction.
        best, worst: Bounds of the score; ``worst`` is infinite where no bound exists.
        prediction: What the prediction columns contain, which decides how they are checked.
        many_columns: True when truth and prediction are matrices ``(N, K)``.
    """

    name: str
    title: str
    function: Callable[..., float]
    higher_is_better: bool
    best: float
    worst: float
    prediction: PredictionKind
    many_columns: bool = False


METRICS: dict[str, Metric] = {
    m.name: m
    for m in (
        Metric(
            "log_loss",
            "multi-class log loss",
            log_loss,
            higher_is_better=False,
            best=-math.log(1 - _EPSILON),
            worst=-math.log(_EPSILON),
            prediction="distribution",
            many_columns=True,
        ),
        Metric("roc_auc", "ROC AUC", roc_auc, True, 1.0, 0.0, "real"),
        Metric(
            "mean_column_roc_auc",
            "mean column-wise ROC AUC",
            mean_column_roc_auc,
            higher_is_better=True,
            best=1.0,
            worst=0.0,
            prediction="real",
            many_columns=True,
        ),
        Metric("accuracy", "accuracy", accuracy, True, 1.0, 0.0, "label"),
        Metric(
            "quadratic_weighted_kappa",
            "quadratic weighted kappa",
            quadratic_weighted_kappa,
            higher_is_better=True,
            best=1.0,
            worst=-1.0,
            prediction="integer",
        ),
        Metric("word_jaccard", "word-level Jaccard", word_jaccard, True, 1.0, 0.0, "text"),
        Metric("pearson", "Pearson correlation", pearson, True, 1.0, -1.0, "real"),
        Metric("rmsle", "RMSLE", rmsle, False, 0.0, math.inf, "nonnegative"),
        Metric("clipped_rmsle", "RMSLE cut at 0", clipped_rmsle, False, 0.0, math.inf, "real"),
        Metric(
            "mean_column_rmsle",
            "mean column-wise RMSLE",
            mean_column_rmsle,
            higher_is_better=False,
            best=0.0,
            worst=math.inf,
            prediction="nonnegative",
            many_columns=True,
        ),
    )
}
