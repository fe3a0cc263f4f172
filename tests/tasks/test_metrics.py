"""Every metric against an independent twin on random cases, by hand, and at its edges."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from mle_rl.tasks import METRICS, UndefinedScore
from mle_rl.tasks import metrics as m

CASES = 1000
EPS = np.finfo(float).eps


def log_loss_twin(truth, prediction):
    total = 0.0
    for hot, row in zip(truth.tolist(), prediction.tolist(), strict=True):
        p = row[hot.index(1.0)] / math.fsum(row)
        total -= math.log(min(max(p, EPS), 1 - EPS))
    return total / len(truth)


def auc_twin(truth, prediction):
    positive, negative = prediction[truth == 1], prediction[truth == 0]
    gaps = positive[:, None] - negative[None, :]
    return ((gaps > 0) + 0.5 * (gaps == 0)).mean()


def kappa_twin(truth, prediction):
    low = min(truth.min(), prediction.min())
    size = max(truth.max(), prediction.max()) - low + 1
    table = np.zeros((size, size))
    for a, b in zip(truth, prediction, strict=True):
        table[a - low, b - low] += 1
    weights = np.array([[(i - j) ** 2 for j in range(size)] for i in range(size)])
    chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / len(truth)
    return 1 - (weights * table).sum() / (weights * chance).sum()


def rmsle_twin(truth, prediction):
    squares = [
        math.log((1 + a) / (1 + b)) ** 2
        for a, b in zip(truth.tolist(), prediction.tolist(), strict=True)
    ]
    return math.sqrt(math.fsum(squares) / len(squares))


def jaccard_twin(truth, prediction):
    shares = []
    for a, b in zip(truth, prediction, strict=True):
        words = {w.lower() for w in (a + " " + b).split()}
        both = [w for w in words if w in a.lower().split() and w in b.lower().split()]
        shares.append(len(both) / len(words) if words else 1.0)
    return statistics.fmean(shares)


def distribution_case(rng):
    n, k = rng.integers(1, 12), rng.integers(2, 6)
    prediction = rng.dirichlet(np.ones(k), n)
    prediction[rng.random((n, k)) < 0.2] = 0.0
    prediction[prediction.sum(axis=1) == 0, 0] = 1.0
    return np.eye(k)[rng.integers(0, k, n)], prediction


def binary_case(rng):
    n = rng.integers(2, 30)
    truth = rng.integers(0, 2, n)
    truth[:2] = 0, 1
    return truth, rng.integers(0, rng.integers(1, 40) + 1, n) / 7  # few values: ties


def binary_columns_case(rng):
    n, k = rng.integers(2, 20), rng.integers(1, 5)
    truth = rng.integers(0, 2, (n, k))
    truth[0], truth[1] = 0, 1
    return truth, rng.integers(0, 9, (n, k)) / 3


def rating_case(rng):
    n = rng.integers(2, 30)
    truth, prediction = rng.integers(-2, 6, n), rng.integers(-2, 6, n)
    truth[:2] = 0, 1
    return truth, prediction


def count_case(rng):
    n = rng.integers(1, 20)
    return rng.poisson(3.0, n).astype(float), rng.gamma(1.0, 3.0, n) * (rng.random(n) < 0.8)


def signed_count_case(rng):
    truth, prediction = count_case(rng)
    return truth, prediction - rng.random()


def count_columns_case(rng):
    n, k = rng.integers(1, 20), rng.integers(1, 4)
    return rng.gamma(1.0, 3.0, (n, k)), rng.gamma(1.0, 3.0, (n, k))


def real_case(rng):
    n = rng.integers(3, 20)
    scale = 10.0 ** rng.integers(-6, 7)
    truth = rng.normal(size=n)
    return truth, (rng.normal() * truth + rng.normal(size=n)) * scale


def label_case(rng):
    labels = np.array(["cat", "dog", "01", "1"])
    n = rng.integers(1, 20)
    return rng.choice(labels, n), rng.choice(labels, n)


def text_case(rng):
    words = np.array(["good", "Good", "bad", "it's", ""])

    def texts():
        return [" ".join(rng.choice(words, rng.integers(0, 6))) for _ in range(5)]

    return texts(), texts()


def mean_over_columns(twin):
    return lambda t, p: statistics.fmean(twin(t[:, k], p[:, k]) for k in range(t.shape[1]))


TWINS = {
    "log_loss": (distribution_case, log_loss_twin),
    "roc_auc": (binary_case, auc_twin),
    "mean_column_roc_auc": (binary_columns_case, mean_over_columns(auc_twin)),
    "accuracy": (label_case, lambda t, p: statistics.fmean(map(str.__eq__, t, p))),
    "quadratic_weighted_kappa": (rating_case, kappa_twin),
    "word_jaccard": (text_case, jaccard_twin),
    "pearson": (real_case, lambda t, p: statistics.correlation(t.tolist(), p.tolist())),
    "rmsle": (count_case, rmsle_twin),
    "clipped_rmsle": (signed_count_case, lambda t, p: rmsle_twin(t, p * (p > 0))),
    "mean_column_rmsle": (count_columns_case, mean_over_columns(rmsle_twin)),
}


def test_every_metric_has_a_twin():
    assert set(TWINS) == set(METRICS)


@pytest.mark.parametrize("name", TWINS)
def test_agrees_with_its_twin(name):
    case, twin = TWINS[name]
    rng = np.random.default_rng(7)
    for _ in range(CASES):
        truth, prediction = case(rng)
        score = METRICS[name].function(truth, prediction)
        assert type(score) is float
        assert score == pytest.approx(twin(truth, prediction), abs=1e-9, rel=1e-9)


LIBRARY = {
    "log_loss": lambda t, p: sk.log_loss(t, p / p.sum(axis=1, keepdims=True)),
    "roc_auc": sk.roc_auc_score,
    "mean_column_roc_auc": lambda t, p: sk.roc_auc_score(t, p, average="macro"),
    "accuracy": sk.accuracy_score,
    "quadratic_weighted_kappa": lambda t, p: sk.cohen_kappa_score(
        t, p, labels=range(-2, 6), weights="quadratic"
    ),
    "rmsle": sk.root_mean_squared_log_error,
    "mean_column_rmsle": lambda t, p: sk.root_mean_squared_log_error(t, p),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_agrees_with_scikit_learn(name):
    case, _ = TWINS[name]
    rng = np.random.default_rng(11)
    for _ in range(25):
        truth, prediction = case(rng)
        expected = LIBRARY[name](truth, prediction)
        assert METRICS[name].function(truth, prediction) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", TWINS)
def test_perfect_is_best_and_bounds_hold(name):
    metric = METRICS[name]
    low, high = sorted((metric.best, metric.worst))
    case, _ = TWINS[name]
    rng = np.random.default_rng(3)
    for _ in range(50):
        truth, prediction = case(rng)
        assert low - 1e-12 <= metric.function(truth, prediction) <= high + 1e-12
        assert metric.function(truth, truth) == pytest.approx(metric.best, abs=1e-12)


@pytest.mark.parametrize("name", TWINS)
def test_direction(name):
    """Among a perfect prediction and a shuffled one, the direction names the perfect one."""
    metric = METRICS[name]
    rng = np.random.default_rng(5)
    case, _ = TWINS[name]
    truth = next(t for t, _ in (case(rng) for _ in range(100)) if len(set(map(str, t))) > 1)
    worse = truth[::-1] if not np.array_equal(truth, truth[::-1]) else np.roll(truth, 1, axis=0)
    assert not np.array_equal(truth, worse)
    perfect, other = metric.function(truth, truth), metric.function(truth, worse)
    assert (perfect > other) if metric.higher_is_better else (perfect < other)


@pytest.mark.parametrize("name", TWINS)
def test_order_of_rows_does_not_matter(name):
    case, _ = TWINS[name]
    rng = np.random.default_rng(13)
    truth, prediction = (np.asarray(x) for x in case(rng))
    order = rng.permutation(len(truth))
    function = METRICS[name].function
    assert function(truth[order], prediction[order]) == pytest.approx(function(truth, prediction))


def test_by_hand():
    one_hot = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert m.log_loss(one_hot, np.array([[0.5, 0.5], [3.0, 1.0]])) == pytest.approx(
        (math.log(2) + math.log(4)) / 2
    )
    assert m.log_loss(one_hot, one_hot[::-1]) == pytest.approx(-math.log(EPS))
    assert m.roc_auc(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8])) == 0.75
    assert m.roc_auc(np.array([0, 1, 1]), np.array([1.0, 1.0, 1.0])) == 0.5
    assert m.roc_auc(np.array([0, 1, 1]), np.array([1.0, 1.0, 2.0])) == 0.75
    ratings = np.array([1, 2, 3, 4])
    assert m.quadratic_weighted_kappa(ratings, ratings[::-1]) == -1.0
    assert m.quadratic_weighted_kappa(ratings, np.array([1, 2, 3, 3])) == pytest.approx(1 - 4 / 32)
    assert m.word_jaccard(["I am happy"], ["i AM sad"]) == 0.5
    assert m.word_jaccard(["a a b", ""], ["b a", " "]) == 1.0
    assert m.word_jaccard(["", "a"], ["a", ""]) == 0.0
    assert m.pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 3.0])) == pytest.approx(0.5)
    assert m.rmsle(np.array([0.0, math.e - 1]), np.array([math.e - 1, math.e - 1])) == (
        pytest.approx(math.sqrt(0.5))
    )
    two = np.array([[0.0, math.e - 1], [0.0, math.e - 1]])
    assert m.mean_column_rmsle(two, np.array([[math.e - 1, math.e - 1]] * 2)) == 0.5


def test_zero_is_a_score():
    assert m.quadratic_weighted_kappa(np.array([1, 2, 3]), np.array([2, 2, 2])) == 0.0
    assert m.accuracy(np.array(["a"]), np.array(["b"])) == 0.0
    assert m.roc_auc(np.array([1, 0]), np.array([0.0, 1.0])) == 0.0


@pytest.mark.parametrize(
    ("function", "truth", "prediction"),
    [
        (m.roc_auc, [1, 1], [0.1, 0.2]),
        (m.roc_auc, [0, 0], [0.1, 0.2]),
        (m.mean_column_roc_auc, [[0, 1], [1, 1]], [[0.1, 0.2], [0.3, 0.4]]),
        (m.quadratic_weighted_kappa, [2, 2], [2, 2]),
        (m.pearson, [1.0, 2.0], [0.1, 0.1]),
        (m.pearson, [1.0, 1.0], [0.1, 0.2]),
        (m.rmsle, [1.0], [-0.5]),
        (m.log_loss, [[1.0, 0.0]], [[0.0, 0.0]]),
    ],
)
def test_undefined_scores_raise(function, truth, prediction):
    with pytest.raises(UndefinedScore):
        function(np.array(truth), np.array(prediction))


@given(st.lists(st.floats(-1e308, 1e308), min_size=2, max_size=20, unique=True), st.randoms())
def test_pearson_of_extreme_values_is_finite(values, random):
    truth = np.array(values)
    shuffled = list(values)
    random.shuffle(shuffled)
    assert -1 <= m.pearson(truth, np.array(shuffled)) <= 1
    assert m.pearson(truth, truth) == pytest.approx(1)


@given(
    st.lists(st.tuples(st.booleans(), st.integers(-50, 50)), min_size=2, max_size=30),
    st.floats(0.01, 100),
)
def test_auc_depends_on_the_ranking_alone(pairs, scale):
    truth = np.array([int(positive) for positive, _ in pairs])
    if len(set(truth)) < 2:
        return
    score = np.array([float(value) for _, value in pairs])
    auc = m.roc_auc(truth, score)
    assert m.roc_auc(truth, np.exp(score / 100) * scale) == pytest.approx(auc, abs=1e-12)
    assert m.roc_auc(truth, -score) == pytest.approx(1 - auc, abs=1e-12)
