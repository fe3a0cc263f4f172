"""Families of estimators: the classes that a program can name, and the keywords it can set.

A table in scikit-learn's own words; `mle_rl.agent.grammar.models` decides among its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mle_rl.agent.grammar.decisions import Decision, choice, integer, real

Share = float
Parameter = tuple[str, Callable[[str], Decision]]
"""Keyword of an estimator, and the decision about it (given its name in the sketch)."""


@dataclass(frozen=True)
class Family:
    """A class of estimators.

    Attributes:
        words: How a plan names it.
        dense: It refuses sparse matrices.
        parameters: Its keywords, each a decision of its own.
        searched: The keyword that a cross-validated search varies; none, if it is no parameter.
    """

    words: str
    module: str
    estimator: str
    parameters: tuple[Parameter, ...]
    searched: str
    dense: bool = False


def _int(keyword: str, share: Share, low: int, high: int) -> Parameter:
    return keyword, lambda name: integer(name, share, low, high)


def _real(keyword: str, share: Share, low: float, high: float) -> Parameter:
    return keyword, lambda name: real(name, share, low, high)


def _one_of(keyword: str, share: Share, *values: str) -> Parameter:
    return keyword, lambda name: choice(name, None, share, dict.fromkeys(values, 1.0))


_BALANCED = _one_of("class_weight", 0.85, '"balanced"')
_FOREST = (
    _int("n_estimators", 0.70, 10, 400),
    _int("max_depth", 0.80, 2, 40),
    _int("min_samples_leaf", 0.80, 2, 30),
    _one_of("max_features", 0.85, '"log2"', "0.3", "0.5", "1.0"),
)
_BOOSTING = (
    _int("max_iter", 0.75, 20, 600),
    _real("learning_rate", 0.72, 0.01, 0.5),
    _int("max_leaf_nodes", 0.80, 4, 60),
    _int("min_samples_leaf", 0.85, 5, 60),
    _real("l2_regularization", 0.85, 0.1, 50),
)
_NEIGHBOURS = (
    _int("n_neighbors", 0.70, 2, 60),
    _one_of("weights", 0.80, '"distance"'),
    _one_of("metric", 0.85, '"cosine"', '"manhattan"'),
)
_MLP = (
    _one_of("hidden_layer_sizes", 0.75, "(32,)", "(64,)", "(200,)", "(64, 32)"),
    _real("alpha", 0.80, 0.0001, 3),
    _int("max_iter", 0.60, 10, 90),
    _one_of("early_stopping", 0.80, "True"),
)

CLASSIFIERS: dict[str, Family] = {
    "logistic": Family(
        "logistic regression",
        "sklearn.linear_model",
        "LogisticRegression",
        (_real("C", 0.78, 0.01, 200), _int("max_iter", 0.75, 50, 900), _BALANCED),
        "C",
    ),
    "multinomial_nb": Family(
        "naive Bayes",
        "sklearn.naive_bayes",
        "MultinomialNB",
        (_real("alpha", 0.75, 0.002, 3), _one_of("fit_prior", 0.85, "False")),
        "alpha",
    ),
    "complement_nb": Family(
        "complement naive Bayes",
        "sklearn.naive_bayes",
        "ComplementNB",
        (_real("alpha", 0.75, 0.002, 3), _one_of("norm", 0.85, "True")),
        "alpha",
    ),
    "gaussian_nb": Family(
        "Gaussian naive Bayes",
        "sklearn.naive_bayes",
        "GaussianNB",
        (_real("var_smoothing", 0.75, 0.000001, 1),),
        "var_smoothing",
        dense=True,
    ),
    "linear_svc": Family(
        "a linear support vector machine",
        "sklearn.svm",
        "LinearSVC",
        (_real("C", 0.75, 0.01, 20), _BALANCED),
        "C",
    ),
    "svc": Family(
        "a kernel support vector machine",
        "sklearn.svm",
        "SVC",
        (_real("C", 0.72, 0.1, 100), _one_of("probability", 0.40, "True")),
        "C",
    ),
    "sgd": Family(
        "stochastic gradient descent",
        "sklearn.linear_model",
        "SGDClassifier",
        (
            _one_of("loss", 0.35, '"log_loss"', '"modified_huber"'),
            _real("alpha", 0.75, 0.00001, 0.01),
        ),
        "alpha",
    ),
    "forest": Family(
        "a random forest", "sklearn.ensemble", "RandomForestClassifier", _FOREST, "max_depth"
    ),
    "extra_trees": Family(
        "extra trees", "sklearn.ensemble", "ExtraTreesClassifier", _FOREST, "max_depth"
    ),
    "neighbours": Family(
        "nearest neighbours",
        "sklearn.neighbors",
        "KNeighborsClassifier",
        _NEIGHBOURS,
        "n_neighbors",
    ),
    "mlp": Family("a neural network", "sklearn.neural_network", "MLPClassifier", _MLP, "alpha"),
    "boosting": Family(
        "gradient boosting",
        "sklearn.ensemble",
        "HistGradientBoostingClassifier",
        _BOOSTING,
        "learning_rate",
        dense=True,
    ),
    "discriminant": Family(
        "discriminant analysis",
        "sklearn.discriminant_analysis",
        "LinearDiscriminantAnalysis",
        (_one_of("solver", 0.60, '"lsqr", shrinkage="auto"', '"eigen", shrinkage="auto"'),),
        "shrinkage",
        dense=True,
    ),
}

REGRESSORS: dict[str, Family] = {
    "linear": Family(
        "linear regression", "sklearn.linear_model", "LinearRegression", (), "fit_intercept"
    ),
    "ridge": Family(
        "ridge regression",
        "sklearn.linear_model",
        "Ridge",
        (_real("alpha", 0.75, 0.01, 200),),
        "alpha",
    ),
    "poisson": Family(
        "Poisson regression",
        "sklearn.linear_model",
        "PoissonRegressor",
        (_real("alpha", 0.75, 0.0001, 10), _int("max_iter", 0.75, 50, 900)),
        "alpha",
    ),
    "svr": Family(
        "support vector regression",
        "sklearn.svm",
        "SVR",
        (_real("C", 0.72, 0.1, 50), _real("epsilon", 0.80, 0.01, 1)),
        "C",
    ),
    "forest": Family(
        "a random forest", "sklearn.ensemble", "RandomForestRegressor", _FOREST, "max_depth"
    ),
    "extra_trees": Family(
        "extra trees", "sklearn.ensemble", "ExtraTreesRegressor", _FOREST, "max_depth"
    ),
    "neighbours": Family(
        "nearest neighbours", "sklearn.neighbors", "KNeighborsRegressor", _NEIGHBOURS, "n_neighbors"
    ),
    "mlp": Family("a neural network", "sklearn.neural_network", "MLPRegressor", _MLP, "alpha"),
    "boosting": Family(
        "gradient boosting",
        "sklearn.ensemble",
        "HistGradientBoostingRegressor",
        (*_BOOSTING, _one_of("loss", 0.80, '"poisson"', '"absolute_error"', '"gamma"')),
        "learning_rate",
        dense=True,
    ),
}
