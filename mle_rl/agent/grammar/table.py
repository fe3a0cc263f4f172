"""Decisions about features of a table of numbers."""

from __future__ import annotations

from mle_rl.agent.grammar import families, models
from mle_rl.agent.grammar.code import Code
from mle_rl.agent.grammar.decisions import Sketch, call, choice, integer

_SCALERS = {"StandardScaler": 4, "RobustScaler": 1, "MinMaxScaler": 2, "PowerTransformer": 1}

_SHARED = (
    choice("logs", None, 0.84, {"yes": 1}),
    choice("sums", None, 0.88, {"yes": 1}),
    choice("ratios", None, 0.88, {"yes": 1}),
    choice("ranks", None, 0.90, {"yes": 1}),
    choice("missing", None, 0.84, {'"median"': 1, '"mean"': 1}),
    choice("scale", None, 0.74, _SCALERS),
    choice("interactions", None, 0.84, {"2": 3, "3": 1}),
    integer("bins", 0.88, 3, 20),
    integer("splines", 0.90, 3, 9),
    integer("clusters", 0.90, 3, 40),
    integer("pca", 0.90, 2, 9),
    integer("select", 0.90, 3, 20),
)

CLASSIFICATION = _SHARED + models.decisions(
    families.CLASSIFIERS,
    "logistic",
    {
        "forest": 7,
        "extra_trees": 3,
        "neighbours": 4,
        "svc": 3,
        "gaussian_nb": 3,
        "mlp": 2,
        "boosting": 3,
        "discriminant": 2,
        "sgd": 1,
    },
)
REGRESSION = _SHARED + models.decisions(
    families.REGRESSORS,
    "linear",
    {
        "ridge": 6,
        "poisson": 1,
        "svr": 3,
        "forest": 7,
        "extra_trees": 3,
        "neighbours": 4,
        "mlp": 2,
        "boosting": 3,
    },
)


def write(code: Code, sketch: Sketch, target: str, regression: bool) -> None:
    """Write the lines that turn the table into ``X`` and ``X_test``."""
    dropped = '["id"]' if sketch["slip.transform"] else f'["id", "{target}"]'
    code.add(f"X = train.drop(columns={dropped})", 'X_test = test.drop(columns=["id"])')
    for line in _columns(sketch):
        code.add(line, line.replace("X", "X_test"))
    steps = _steps(code, sketch, regression)
    if steps:
        code.add(f"prepare = {code.use('sklearn.pipeline', 'make_pipeline')}(")
        code.add(*(f"    {step}," for step in steps), ")")
        code.add("X = prepare.fit_transform(X, y)", "X_test = prepare.transform(X_test)")
    else:
        code.add("X, X_test = X.to_numpy(), X_test.to_numpy()")


def _columns(sketch: Sketch) -> list[str]:
    lines = []
    if sketch["logs"] is not None:
        lines.append("X = np.log1p(X.clip(lower=0))")
    if sketch["ranks"] is not None:
        lines.append("X = X.rank(pct=True)")
    if sketch["sums"] is not None:
        lines.append("X = X.assign(total=X.sum(axis=1), spread=X.std(axis=1))")
    if sketch["ratios"] is not None:
        lines.append("X = X.assign(ratio=X.iloc[:, 0] / (1 + X.iloc[:, 1].abs()))")
    return lines


def _steps(code: Code, sketch: Sketch, regression: bool) -> list[str]:
    steps = []
    if sketch["missing"] is not None:
        steps.append(call(code.use("sklearn.impute", "SimpleImputer"), strategy=sketch["missing"]))
    if sketch["scale"] is not None:
        steps.append(f"{code.use('sklearn.preprocessing', sketch['scale'])}()")
    if sketch["interactions"] is not None:
        steps.append(
            call(code.use("sklearn.preprocessing", "PolynomialFeatures"), sketch["interactions"])
        )
    if sketch["bins"] is not None:
        bins = code.use("sklearn.preprocessing", "KBinsDiscretizer")
        steps.append(call(bins, sketch["bins"], encode='"onehot-dense"'))
    if sketch["splines"] is not None:
        steps.append(
            call(code.use("sklearn.preprocessing", "SplineTransformer"), sketch["splines"])
        )
    if sketch["clusters"] is not None:
        clusters = call(code.use("sklearn.cluster", "KMeans"), sketch["clusters"], random_state="0")
        union = code.use("sklearn.pipeline", "make_union")
        steps.append(f'{union}("passthrough", {clusters})')
    if sketch["select"] is not None:
        score = code.use("sklearn.feature_selection", "f_regression" if regression else "f_classif")
        select = code.use("sklearn.feature_selection", "SelectKBest")
        steps.append(call(select, score, k=sketch["select"]))
    if sketch["pca"] is not None:
        steps.append(
            call(code.use("sklearn.decomposition", "PCA"), sketch["pca"], random_state="0")
        )
    return steps


def words(sketch: Sketch) -> str:
    """The features in a few words, for the plan."""
    parts = {
        "logs": "logarithms",
        "ranks": "ranks",
        "sums": "row sums",
        "ratios": "a ratio",
        "scale": "scaling",
        "interactions": "interactions",
        "bins": "bins",
        "splines": "splines",
        "clusters": "clusters",
        "pca": "PCA",
        "select": "selected columns",
    }
    named = [text for key, text in parts.items() if sketch[key] is not None]
    return "the columns" + (f" with {', '.join(named)}" if named else "")
