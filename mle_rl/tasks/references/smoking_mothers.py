"""Reference programs for ``smoking-mothers``."""

from mle_rl.tasks.references.reference import Reference, joined, reference

_BASICS = """\
import numpy as np
import pandas as pd
"""

_LOAD = """\
train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
y = train["smoked"]
"""

_PLAIN = """\
X = train.drop(columns=["id", "smoked"])
X_test = test.drop(columns="id")
"""

_CATEGORIES = """\
def engineer(table):
    X = table.drop(columns=["id", "smoked"], errors="ignore")
    X["weight_band"] = X["birth_weight"] // 250
    X["mother_age_band"] = X["mother_age"] // 3
    X["father_age_band"] = X["father_age"] // 4
    X["gap_band"] = np.minimum(X["months_since_last"] // 12, 8)
    X["visits_band"] = np.minimum(X["prenatal_visits"] // 3, 6)
    numbers = ["birth_weight", "mother_age", "father_age", "months_since_last", "prenatal_visits"]
    return X.drop(columns=numbers)


X = engineer(train)
X_test = engineer(test)
"""

_ENGINEERED = """\
def engineer(table):
    X = table.drop(columns=["id", "smoked"], errors="ignore")
    X["father_known"] = (X["father_age"] > 0).astype(int)
    known = X["father_known"] == 1
    X["age_difference"] = np.where(known, X["father_age"] - X["mother_age"], 0)
    X["education_difference"] = np.where(known, X["father_education"] - X["mother_education"], 0)
    X["education_sum"] = X["mother_education"] + X["father_education"]
    X["finished_school"] = (X["mother_education"] >= 12).astype(int)
    X["went_to_college"] = (X["mother_education"] > 12).astype(int)
    X["light_baby"] = (X["birth_weight"] < 2800).astype(int)
    X["few_visits"] = (X["prenatal_visits"] < 8).astype(int)
    X["married_educated"] = X["married"] * X["mother_education"]
    X["white_unmarried"] = X["mother_white"] * (1 - X["married"])
    X["log_months"] = np.log1p(X["months_since_last"])
    X["mother_age_squared"] = X["mother_age"] ** 2
    X["education_squared"] = X["mother_education"] ** 2
    return X


X = engineer(train)
X_test = engineer(test)
"""

_FIT = """\
model.fit(X, y)
smoked = model.predict_proba(X_test)[:, 1]
"""

_WRITE = """\
pd.DataFrame({"id": test["id"], "smoked": smoked}).to_csv("submission.csv", index=False)
"""


def _program(name: str, plan: str, imports: str, *body: str) -> Reference:
    return reference(name, plan, joined(_BASICS, imports), _LOAD, *body, _WRITE)


def _model(name: str, plan: str, imports: str, features: str, model: str) -> Reference:
    return _program(name, plan, imports, features, model, _FIT)


REFERENCES = (
    _program(
        "constant",
        "Predict the share of smokers for everybody.",
        "",
        "smoked = np.full(len(test), y.mean())",
    ),
    _program(
        "education-alone",
        "The less schooling, the more likely.",
        "",
        'smoked = 1 - test["mother_education"] / 20',
    ),
    _program(
        "marriage-rates",
        "The rate among married and unmarried mothers.",
        "",
        'smoked = test["married"].map(y.groupby(train["married"]).mean())',
    ),
    _program(
        "group-rates",
        "Rates by marriage, skin and schooling, shrunk to the mean.",
        "",
        """
        keys = ["married", "mother_white", "mother_education"]
        groups = train.groupby(keys)["smoked"].agg(["sum", "count"]).reset_index()
        merged = test[keys].merge(groups, on=keys, how="left").fillna(0)
        smoked = (merged["sum"] + 10 * y.mean()) / (merged["count"] + 10)
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
        smoked = model.predict(X_test)
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
        "A decision tree with leaves of forty births or more.",
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
        _PLAIN,
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
        _PLAIN,
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
        _PLAIN,
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
        _PLAIN,
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
        "A random forest with leaves of eight births or more.",
        "from sklearn.ensemble import RandomForestClassifier",
        _PLAIN,
        "model = RandomForestClassifier(300, min_samples_leaf=8, random_state=0)",
    ),
    _model(
        "extra-trees",
        "Extremely randomised trees with leaves of eight births or more.",
        "from sklearn.ensemble import ExtraTreesClassifier",
        _PLAIN,
        """
        model = ExtraTreesClassifier(
            400, min_samples_leaf=8, max_features=0.5, random_state=0
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
        "Bands of every number as categories, one-hot, logistic regression.",
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
        _PLAIN,
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
        "Differences between the parents, bands and products; logistic regression.",
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
        "Differences, bands and products; penalty found by cross-validation.",
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
        "Differences, bands and products; slow gradient boosting.",
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
        smoked = 0
        for weight, model in weighted:
            model.fit(X, y)
            smoked = smoked + weight * pd.Series(model.predict_proba(X_test)[:, 1]).rank(pct=True)
        """,
    ),
)
