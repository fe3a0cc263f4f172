"""Reference programs for ``raising-functions``."""

from mle_rl.tasks.references.reference import Reference, joined, reference

_BASICS = """\
import numpy as np
import pandas as pd
"""

_LOAD = """\
train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
y = train["raises"]
"""

_PLAIN = """\
X = train.drop(columns=["id", "raises"])
X_test = test.drop(columns="id")
"""

_LOGS = """\
X = np.log1p(train.drop(columns=["id", "raises"]))
X_test = np.log1p(test.drop(columns="id"))
"""

_CATEGORIES = """\
def engineer(table):
    X = table.drop(columns=["id", "raises"], errors="ignore")
    return np.floor(2 * np.log2(1 + X)).clip(upper=12).astype(int)


X = engineer(train)
X_test = engineer(test)
"""

_ENGINEERED = """\
def engineer(table):
    X = table.drop(columns=["id", "raises"], errors="ignore").astype(float)
    size = X["statements"] + 1
    for column in ["ifs", "loops", "returns", "assignments", "calls", "comparisons", "strings"]:
        X[column + "_share"] = X[column] / size
    X["conditions"] = X["comparisons"] + X["connectives"] + X["negations"]
    X["conditions_per_if"] = X["conditions"] / (X["ifs"] + 1)
    X["left_over"] = X["statements"] - X[["ifs", "loops", "returns", "assignments"]].sum(axis=1)
    X["empty_ifs"] = X["ifs"] - X["left_over"] - X["returns"]
    X["checks"] = X["ifs"] * (1 - X["private"])
    X["documented"] = (X["doc_lines"] > 0).astype(float)
    X["doc_per_argument"] = X["doc_lines"] / (X["arguments"] + 1)
    X["optional"] = X["defaults"] / (X["arguments"] + 1)
    X["names_per_statement"] = X["names"] / size
    X["attributes_per_call"] = X["attributes"] / (X["calls"] + 1)
    X["log_size"] = np.log1p(X["statements"])
    X["public_function"] = (1 - X["private"]) * (1 - X["method"])
    return X


X = engineer(train)
X_test = engineer(test)
"""

_FIT = """\
model.fit(X, y)
raises = model.predict_proba(X_test)[:, 1]
"""

_WRITE = """\
pd.DataFrame({"id": test["id"], "raises": raises}).to_csv("submission.csv", index=False)
"""


def _program(name: str, plan: str, imports: str, *body: str) -> Reference:
    return reference(name, plan, joined(_BASICS, imports), _LOAD, *body, _WRITE)


def _model(name: str, plan: str, imports: str, features: str, model: str) -> Reference:
    return _program(name, plan, imports, features, model, _FIT)


REFERENCES = (
    _program(
        "constant",
        "Predict the share of raising functions for every one.",
        "",
        "raises = np.full(len(test), y.mean())",
    ),
    _program(
        "ifs-alone",
        "The more conditions, the more likely.",
        "",
        'raises = test["ifs"]',
    ),
    _program(
        "private-rates",
        "The rate among public and private functions.",
        "",
        'raises = test["private"].map(y.groupby(train["private"]).mean())',
    ),
    _program(
        "group-rates",
        "Rates by number of conditions, privacy and documentation, shrunk to the mean.",
        "",
        """
        def keys(table):
            return pd.DataFrame(
                {
                    "ifs": table["ifs"].clip(upper=6),
                    "private": table["private"],
                    "documented": table["doc_lines"] > 0,
                }
            )


        by = ["ifs", "private", "documented"]
        groups = keys(train).assign(raises=y).groupby(by)["raises"].agg(["sum", "count"])
        merged = keys(test).merge(groups.reset_index(), on=by, how="left").fillna(0)
        raises = (merged["sum"] + 10 * y.mean()) / (merged["count"] + 10)
        """,
    ),
    _model(
        "naive-bayes",
        "Gaussian naive Bayes on all columns.",
        "from sklearn.naive_bayes import GaussianNB",
        _PLAIN,
        "model = GaussianNB()",
    ),
    _program(
        "hard-labels",
        "Logistic regression, but labels instead of probabilities.",
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _PLAIN,
        """
        model = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
        model.fit(X, y)
        raises = model.predict(X_test)
        """,
    ),
    _model(
        "decision-tree",
        "A decision tree with default settings.",
        "from sklearn.tree import DecisionTreeClassifier",
        _PLAIN,
        "model = DecisionTreeClassifier(random_state=0)",
    ),
    _model(
        "small-tree",
        "A decision tree with leaves of forty functions or more.",
        "from sklearn.tree import DecisionTreeClassifier",
        _PLAIN,
        "model = DecisionTreeClassifier(min_samples_leaf=40, random_state=0)",
    ),
    _model(
        "nearest-neighbours",
        "Five nearest neighbours without scaling.",
        "from sklearn.neighbors import KNeighborsClassifier",
        _PLAIN,
        "model = KNeighborsClassifier()",
    ),
    _model(
        "scaled-nearest-neighbours",
        "Fifty nearest neighbours on scaled columns.",
        """
        from sklearn.neighbors import KNeighborsClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _LOGS,
        "model = make_pipeline(StandardScaler(), KNeighborsClassifier(50))",
    ),
    _model(
        "logistic",
        "Logistic regression on scaled columns.",
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _PLAIN,
        "model = make_pipeline(StandardScaler(), LogisticRegression())",
    ),
    _model(
        "log-logistic",
        "Logistic regression on scaled logarithms of the counts.",
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _LOGS,
        "model = make_pipeline(StandardScaler(), LogisticRegression())",
    ),
    _model(
        "linear-discriminant",
        "Linear discriminant analysis.",
        "from sklearn.discriminant_analysis import LinearDiscriminantAnalysis",
        _PLAIN,
        "model = LinearDiscriminantAnalysis()",
    ),
    _model(
        "polynomial-logistic",
        "Logistic regression on products of columns, strongly regularised.",
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import PolynomialFeatures, StandardScaler
        """,
        _LOGS,
        """
        model = make_pipeline(
            StandardScaler(), PolynomialFeatures(2), LogisticRegression(C=0.003, max_iter=1000)
        )
        """,
    ),
    _model(
        "svm",
        "Support vector machine, calibrated.",
        """
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC
        """,
        _LOGS,
        "model = make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(C=0.3), cv=3))",
    ),
    _model(
        "mlp",
        "A small neural network.",
        """
        from sklearn.neural_network import MLPClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _LOGS,
        """
        model = make_pipeline(
            StandardScaler(),
            MLPClassifier(
                hidden_layer_sizes=(32,), alpha=3.0, early_stopping=True, random_state=0
            ),
        )
        """,
    ),
    _model(
        "random-forest",
        "A random forest with default settings.",
        "from sklearn.ensemble import RandomForestClassifier",
        _PLAIN,
        "model = RandomForestClassifier(random_state=0)",
    ),
    _model(
        "random-forest-large-leaves",
        "A random forest with leaves of four functions or more.",
        "from sklearn.ensemble import RandomForestClassifier",
        _PLAIN,
        "model = RandomForestClassifier(300, min_samples_leaf=4, random_state=0)",
    ),
    _model(
        "extra-trees",
        "Extremely randomised trees with leaves of four functions or more.",
        "from sklearn.ensemble import ExtraTreesClassifier",
        _PLAIN,
        """
        model = ExtraTreesClassifier(
            400, min_samples_leaf=4, max_features=0.5, random_state=0
        )
        """,
    ),
    _model(
        "ada-boost",
        "AdaBoost with default settings.",
        "from sklearn.ensemble import AdaBoostClassifier",
        _PLAIN,
        "model = AdaBoostClassifier(random_state=0)",
    ),
    _model(
        "boosting",
        "Gradient boosting with default settings.",
        "from sklearn.ensemble import GradientBoostingClassifier",
        _PLAIN,
        "model = GradientBoostingClassifier(random_state=0)",
    ),
    _model(
        "histogram-boosting",
        "Histogram gradient boosting with default settings.",
        "from sklearn.ensemble import HistGradientBoostingClassifier",
        _PLAIN,
        "model = HistGradientBoostingClassifier(random_state=0)",
    ),
    _model(
        "histogram-boosting-small",
        "Histogram boosting of small trees with a low learning rate.",
        "from sklearn.ensemble import HistGradientBoostingClassifier",
        _PLAIN,
        """
        model = HistGradientBoostingClassifier(
            learning_rate=0.05,
            max_iter=100,
            max_leaf_nodes=6,
            min_samples_leaf=40,
            l2_regularization=5.0,
            random_state=0,
        )
        """,
    ),
    _model(
        "slow-boosting",
        "Many shallow trees with a low learning rate on half of the rows each.",
        "from sklearn.ensemble import GradientBoostingClassifier",
        _PLAIN,
        """
        model = GradientBoostingClassifier(
            n_estimators=500,
            learning_rate=0.02,
            max_depth=3,
            subsample=0.5,
            max_features=0.3,
            random_state=0,
        )
        """,
    ),
    _model(
        "one-hot-logistic",
        "Bands of every count as categories, one-hot, logistic regression.",
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder
        """,
        _CATEGORIES,
        """
        model = make_pipeline(
            OneHotEncoder(handle_unknown="ignore"), LogisticRegression(C=0.2, max_iter=1000)
        )
        """,
    ),
    _model(
        "spline-logistic",
        "Splines of every column and logistic regression.",
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import SplineTransformer, StandardScaler
        """,
        _LOGS,
        """
        model = make_pipeline(
            StandardScaler(),
            SplineTransformer(n_knots=4),
            StandardScaler(),
            LogisticRegression(C=0.02, max_iter=1000),
        )
        """,
    ),
    _model(
        "engineered-logistic",
        "Shares, differences and products of counts; logistic regression.",
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _ENGINEERED,
        "model = make_pipeline(StandardScaler(), LogisticRegression(C=0.03, max_iter=1000))",
    ),
    _model(
        "engineered-searched-logistic",
        "Shares, differences and products; penalty found by cross-validation.",
        """
        from sklearn.linear_model import LogisticRegressionCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _ENGINEERED,
        """
        model = make_pipeline(
            StandardScaler(),
            LogisticRegressionCV(
                Cs=[0.003, 0.01, 0.03, 0.1],
                l1_ratios=(0,),
                scoring="roc_auc",
                cv=5,
                max_iter=1000,
                use_legacy_attributes=False,
            ),
        )
        """,
    ),
    _model(
        "engineered-boosting",
        "Shares, differences and products; slow gradient boosting.",
        "from sklearn.ensemble import GradientBoostingClassifier",
        _ENGINEERED,
        """
        model = GradientBoostingClassifier(
            n_estimators=500,
            learning_rate=0.02,
            max_depth=4,
            min_samples_leaf=10,
            subsample=0.5,
            max_features=0.2,
            random_state=0,
        )
        """,
    ),
    _model(
        "engineered-stacking",
        "Stack logistic regression, a forest and boosting.",
        """
        from sklearn.ensemble import (
            ExtraTreesClassifier,
            GradientBoostingClassifier,
            StackingClassifier,
        )
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _ENGINEERED,
        """
        model = StackingClassifier(
            [
                (
                    "linear",
                    make_pipeline(StandardScaler(), LogisticRegression(C=0.03, max_iter=1000)),
                ),
                (
                    "trees",
                    ExtraTreesClassifier(200, min_samples_leaf=6, max_features=0.5, random_state=0),
                ),
                (
                    "boosting",
                    GradientBoostingClassifier(
                        n_estimators=300,
                        learning_rate=0.03,
                        max_depth=3,
                        subsample=0.5,
                        max_features=0.3,
                        random_state=0,
                    ),
                ),
            ],
            LogisticRegression(),
            cv=4,
        )
        """,
    ),
    _program(
        "engineered-blend",
        "Average the ranks of linear models, trees and boosting with several seeds.",
        """
        from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _ENGINEERED,
        """
        boosting = [
            GradientBoostingClassifier(
                n_estimators=400,
                learning_rate=0.02,
                max_depth=3,
                min_samples_leaf=10,
                subsample=0.5,
                max_features=0.2,
                random_state=seed,
            )
            for seed in range(5)
        ]
        trees = ExtraTreesClassifier(500, min_samples_leaf=6, max_features=0.5, random_state=0)
        linear = make_pipeline(StandardScaler(), LogisticRegression(C=0.03, max_iter=1000))
        weighted = [(0.12, model) for model in boosting] + [(0.2, trees), (0.2, linear)]
        raises = 0
        for weight, model in weighted:
            model.fit(X, y)
            raises = raises + weight * pd.Series(model.predict_proba(X_test)[:, 1]).rank(pct=True)
        """,
    ),
)
