"""Reference programs for ``doctor-visits``."""

from mle_rl.tasks.references.reference import Reference, joined, reference

_BASICS = """\
import numpy as np
import pandas as pd
"""

_LOAD = """\
train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
"""

_PLAIN = """\
X = train.drop(columns=["id", "visits"])
X_test = test.drop(columns="id")
y = train["visits"]
"""

_LOGARITHM = """\
X = train.drop(columns=["id", "visits"])
X_test = test.drop(columns="id")
y = np.log1p(train["visits"])
"""

_ENGINEERED = """\
def engineer(table):
    X = table.drop(columns=["id", "visits"], errors="ignore")
    skewed = [c for c in X if c.endswith("last_year")] + ["income", "chronic"]
    for column in skewed:
        X["log_" + column] = np.log1p(X[column])
    X["any_visit"] = (X["visits_last_year"] > 0).astype(int)
    X["income_per_head"] = X["income"] / X["family_size"]
    X["age_squared"] = X["age"] ** 2
    X["infant"] = (X["age"] < 5).astype(int)
    X["woman_of_childbearing_age"] = ((X["female"] == 1) & X["age"].between(16, 40)).astype(int)
    X["free_care"] = (X["coinsurance"] == 0).astype(int)
    return X.join(pd.get_dummies(X["site"], prefix="site", dtype=int))


X = engineer(train)
X_test = engineer(test)
y = np.log1p(train["visits"])
"""

_FIT = """\
model.fit(X, y)
visits = np.clip(model.predict(X_test), 0, None)
"""

_FIT_LOGARITHM = """\
model.fit(X, y)
visits = np.clip(np.expm1(model.predict(X_test)), 0, None)
"""

_WRITE = """\
pd.DataFrame({"id": test["id"], "visits": visits}).to_csv("submission.csv", index=False)
"""


def _program(name: str, plan: str, imports: str, *body: str) -> Reference:
    return reference(name, plan, joined(_BASICS, imports), _LOAD, *body, _WRITE)


def _model(name: str, plan: str, imports: str, features: str, model: str) -> Reference:
    fit = _FIT if features is _PLAIN else _FIT_LOGARITHM
    return _program(name, plan, imports, features, model, fit)


REFERENCES = (
    _program(
        "mean",
        "Predict the mean of the training rows.",
        "",
        'visits = np.full(len(test), train["visits"].mean())',
    ),
    _program(
        "mean-of-logarithms",
        "Predict the mean on the scale of the metric.",
        "",
        'visits = np.full(len(test), np.expm1(np.log1p(train["visits"]).mean()))',
    ),
    _program(
        "same-as-last-year",
        "Predict last year's visits.",
        "",
        'visits = test["visits_last_year"]',
    ),
    _program(
        "shrunk-last-year",
        "Predict a line in the logarithm of last year's visits.",
        "",
        """
        last_year = np.log1p(train["visits_last_year"])
        slope, intercept = np.polyfit(last_year, np.log1p(train["visits"]), 1)
        visits = np.expm1(slope * np.log1p(test["visits_last_year"]) + intercept)
        """,
    ),
    _program(
        "group-means",
        "Mean logarithm by last year's visits, by hand.",
        "",
        """
        level = lambda table: table["visits_last_year"].clip(upper=12)
        means = np.log1p(train["visits"]).groupby(level(train)).mean()
        visits = np.expm1(level(test).map(means))
        """,
    ),
    _model(
        "linear",
        "Linear regression on the raw counts.",
        "from sklearn.linear_model import LinearRegression",
        _PLAIN,
        "model = LinearRegression()",
    ),
    _model(
        "poisson",
        "Poisson regression on scaled columns.",
        """
        from sklearn.linear_model import PoissonRegressor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _PLAIN,
        "model = make_pipeline(StandardScaler(), PoissonRegressor())",
    ),
    _model(
        "nearest-neighbours",
        "Twenty nearest neighbours on scaled columns.",
        """
        from sklearn.neighbors import KNeighborsRegressor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _PLAIN,
        "model = make_pipeline(StandardScaler(), KNeighborsRegressor(20))",
    ),
    _model(
        "decision-tree",
        "A decision tree with default settings.",
        "from sklearn.tree import DecisionTreeRegressor",
        _PLAIN,
        "model = DecisionTreeRegressor(random_state=0)",
    ),
    _model(
        "random-forest",
        "A random forest with default settings on the raw counts.",
        "from sklearn.ensemble import RandomForestRegressor",
        _PLAIN,
        "model = RandomForestRegressor(random_state=0)",
    ),
    _model(
        "boosting",
        "Gradient boosting with default settings on the raw counts.",
        "from sklearn.ensemble import GradientBoostingRegressor",
        _PLAIN,
        "model = GradientBoostingRegressor(random_state=0)",
    ),
    _model(
        "histogram-boosting-poisson",
        "Histogram gradient boosting with the Poisson loss.",
        "from sklearn.ensemble import HistGradientBoostingRegressor",
        _PLAIN,
        """
        model = HistGradientBoostingRegressor(
            loss="poisson", learning_rate=0.05, max_iter=100, random_state=0
        )
        """,
    ),
    _model(
        "boosting-median",
        "Histogram gradient boosting of the median.",
        "from sklearn.ensemble import HistGradientBoostingRegressor",
        _PLAIN,
        """
        model = HistGradientBoostingRegressor(
            loss="absolute_error", learning_rate=0.05, max_iter=100, random_state=0
        )
        """,
    ),
    _model(
        "log-linear",
        "Linear regression of the logarithm of one plus the visits.",
        "from sklearn.linear_model import LinearRegression",
        _LOGARITHM,
        "model = LinearRegression()",
    ),
    _model(
        "log-ridge-polynomial",
        "Ridge regression of the logarithm on products of columns.",
        """
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import PolynomialFeatures, StandardScaler
        """,
        _LOGARITHM,
        """
        model = make_pipeline(
            StandardScaler(), PolynomialFeatures(2), StandardScaler(), Ridge(alpha=300)
        )
        """,
    ),
    _model(
        "log-nearest-neighbours",
        "Thirty nearest neighbours of the logarithm.",
        """
        from sklearn.neighbors import KNeighborsRegressor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _LOGARITHM,
        "model = make_pipeline(StandardScaler(), KNeighborsRegressor(30))",
    ),
    _model(
        "log-small-tree",
        "A decision tree of the logarithm with leaves of thirty people or more.",
        "from sklearn.tree import DecisionTreeRegressor",
        _LOGARITHM,
        "model = DecisionTreeRegressor(min_samples_leaf=30, random_state=0)",
    ),
    _model(
        "log-svr",
        "Support vector regression of the logarithm.",
        """
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVR
        """,
        _LOGARITHM,
        "model = make_pipeline(StandardScaler(), SVR(C=0.3))",
    ),
    _model(
        "log-mlp",
        "A small neural network for the logarithm.",
        """
        from sklearn.neural_network import MLPRegressor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _LOGARITHM,
        """
        model = make_pipeline(
            StandardScaler(),
            MLPRegressor(
                hidden_layer_sizes=(32,), alpha=1.0, early_stopping=True, random_state=0
            ),
        )
        """,
    ),
    _model(
        "log-random-forest",
        "A random forest of the logarithm with leaves of five.",
        "from sklearn.ensemble import RandomForestRegressor",
        _LOGARITHM,
        """
        model = RandomForestRegressor(
            200, min_samples_leaf=5, max_features=0.4, random_state=0
        )
        """,
    ),
    _model(
        "log-extra-trees",
        "Extremely randomised trees of the logarithm with leaves of five.",
        "from sklearn.ensemble import ExtraTreesRegressor",
        _LOGARITHM,
        """
        model = ExtraTreesRegressor(300, min_samples_leaf=5, max_features=0.6, random_state=0)
        """,
    ),
    _model(
        "log-histogram-boosting",
        "Histogram gradient boosting of the logarithm, default settings.",
        "from sklearn.ensemble import HistGradientBoostingRegressor",
        _LOGARITHM,
        "model = HistGradientBoostingRegressor(random_state=0)",
    ),
    _model(
        "log-boosting",
        "Slow gradient boosting of the logarithm on half of the rows per tree.",
        "from sklearn.ensemble import GradientBoostingRegressor",
        _LOGARITHM,
        """
        model = GradientBoostingRegressor(
            n_estimators=400, learning_rate=0.02, max_depth=4, subsample=0.5, random_state=0
        )
        """,
    ),
    _model(
        "engineered-ridge",
        "Logarithms, ratios and indicators of columns; ridge regression.",
        """
        from sklearn.linear_model import RidgeCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _ENGINEERED,
        "model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(0, 4, 9)))",
    ),
    _model(
        "engineered-lasso",
        "Logarithms, ratios and indicators; lasso with a cross-validated penalty.",
        """
        from sklearn.linear_model import LassoCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _ENGINEERED,
        "model = make_pipeline(StandardScaler(), LassoCV(cv=5, random_state=0))",
    ),
    _model(
        "engineered-spline",
        "Splines of every column and ridge regression.",
        """
        from sklearn.linear_model import RidgeCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import SplineTransformer, StandardScaler
        """,
        _ENGINEERED,
        """
        model = make_pipeline(
            StandardScaler(),
            SplineTransformer(n_knots=4, knots="uniform"),
            RidgeCV(np.logspace(-1, 3, 9)),
        )
        """,
    ),
    _model(
        "engineered-random-forest",
        "Logarithms, ratios and indicators; random forest.",
        "from sklearn.ensemble import RandomForestRegressor",
        _ENGINEERED,
        """
        model = RandomForestRegressor(
            300, min_samples_leaf=4, max_features=0.3, random_state=0
        )
        """,
    ),
    _model(
        "engineered-boosting",
        "Logarithms, ratios and indicators; slow gradient boosting.",
        "from sklearn.ensemble import GradientBoostingRegressor",
        _ENGINEERED,
        """
        model = GradientBoostingRegressor(
            n_estimators=400,
            learning_rate=0.025,
            max_depth=4,
            subsample=0.5,
            max_features=0.3,
            random_state=0,
        )
        """,
    ),
    _model(
        "engineered-search",
        "Search depth and leaf size of histogram boosting by cross-validation.",
        """
        from sklearn.ensemble import HistGradientBoostingRegressor
        from sklearn.model_selection import GridSearchCV
        """,
        _ENGINEERED,
        """
        model = GridSearchCV(
            HistGradientBoostingRegressor(learning_rate=0.05, max_iter=100, random_state=0),
            {"max_leaf_nodes": [5, 9, 15], "min_samples_leaf": [20, 60]},
            scoring="neg_mean_squared_error",
            cv=3,
        )
        """,
    ),
    _model(
        "engineered-stacking",
        "Stack ridge regression, a forest and boosting.",
        """
        from sklearn.ensemble import (
            GradientBoostingRegressor,
            RandomForestRegressor,
            StackingRegressor,
        )
        from sklearn.linear_model import RidgeCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _ENGINEERED,
        """
        model = StackingRegressor(
            [
                ("ridge", make_pipeline(StandardScaler(), RidgeCV(np.logspace(0, 4, 9)))),
                (
                    "forest",
                    RandomForestRegressor(99, min_samples_leaf=4, max_features=0.3, random_state=0),
                ),
                (
                    "boosting",
                    GradientBoostingRegressor(
                        n_estimators=200,
                        learning_rate=0.04,
                        max_depth=4,
                        subsample=0.5,
                        max_features=0.3,
                        random_state=0,
                    ),
                ),
            ],
            RidgeCV(),
            cv=4,
        )
        """,
    ),
    _program(
        "engineered-blend",
        "Average boosting with several seeds, extra trees and ridge regression.",
        """
        from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor
        from sklearn.linear_model import RidgeCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _ENGINEERED,
        """
        boosting = [
            GradientBoostingRegressor(
                n_estimators=300,
                learning_rate=0.025,
                max_depth=5,
                min_samples_leaf=10,
                subsample=0.5,
                max_features=0.2,
                random_state=seed,
            )
            for seed in range(4)
        ]
        trees = ExtraTreesRegressor(300, min_samples_leaf=4, max_features=0.5, random_state=0)
        ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(0, 4, 9)))
        weighted = [(0.09, model) for model in boosting] + [(0.24, trees), (0.40, ridge)]
        logarithm = sum(weight * model.fit(X, y).predict(X_test) for weight, model in weighted)
        visits = np.clip(np.expm1(logarithm), 0, None)
        """,
    ),
)
