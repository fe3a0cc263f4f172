"""Decisions about the model: family, hyper-parameters, combination, calibration and search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mle_rl.agent.grammar.code import Code
from mle_rl.agent.grammar.decisions import Decision, Sketch, call, choice, integer, number, real

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
        searched: The keyword that a cross-validated search varies.
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
        "solver",
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

_SLOTS = ("m1", "m2", "m3")


def decisions(
    families: dict[str, Family], plain: str, shares: dict[str, float]
) -> tuple[Decision, ...]:
    """Every decision about the model.

    Args:
        families: The families that can be written.
        plain: The family that people take by default.
        shares: Relative frequencies of the others.
    """
    made: list[Decision] = []
    for slot in _SLOTS:
        # The second and third member of a combination are never the plain one by habit.
        made.append(choice(f"{slot}.family", plain, 0.70 if slot == "m1" else 0.25, shares))
        for name, family in families.items():
            made += [decide(f"{slot}.{name}.{keyword}") for keyword, decide in family.parameters]
    return (
        *made,
        choice("combine", None, 0.80, {"vote": 0.35, "vote3": 0.2, "stack": 0.25, "bag": 0.2}),
        choice("vote.weights", None, 0.75, {"2": 1, "3": 1, "0.5": 1}),
        integer("bag.n_estimators", 0.70, 5, 40),
        choice("bag.max_samples", None, 0.75, {"0.5": 1, "0.7": 1, "0.8": 1, "0.9": 1}),
        choice("stack.passthrough", None, 0.85, {"True": 1}),
        choice("calibrate", None, 0.86, {'"sigmoid"': 1, '"isotonic"': 1}),
        choice("search", None, 0.82, {"grid": 2, "random": 1}),
        choice("search.width", "3", 0.6, {"2": 1, "4": 1, "5": 1}),
        choice("search.folds", "3", 0.6, {"2": 1, "4": 1, "5": 1}),
        *_search_points(families),
    )


def _search_points(families: dict[str, Family]) -> list[Decision]:
    """Where a search begins: the searched keyword's own alternatives, never its default."""
    points = []
    for name, family in families.items():
        for keyword, decide in family.parameters:
            if keyword == family.searched:
                decision = decide(f"search.{name}")
                points.append(Decision(decision.name, None, 0.0, decision.other))
    return points


def _estimator(code: Code, sketch: Sketch, families: dict[str, Family], slot: str) -> str:
    name = sketch[f"{slot}.family"]
    family = families[name]
    keywords = {keyword: sketch[f"{slot}.{name}.{keyword}"] for keyword, _ in family.parameters}
    if sketch["slip.keyword"] and slot == "m1" and family.parameters:
        written = next((k for k, v in keywords.items() if v is not None), None)
        if written is not None:  # a keyword of another library, or one letter short
            keywords = {(k[:-1] or "c" if k == written else k): v for k, v in keywords.items()}
    return call(code.use(family.module, family.estimator), **keywords)


def write(code: Code, sketch: Sketch, families: dict[str, Family]) -> None:
    """Write the lines that define ``model``."""
    regression = families is REGRESSORS
    first = _estimator(code, sketch, families, "m1")
    combine = sketch["combine"]
    if combine is None:
        code.add(f"model = {first}")
    elif combine == "bag":
        bagging = code.use(
            "sklearn.ensemble", "BaggingRegressor" if regression else "BaggingClassifier"
        )
        size, share = sketch["bag.n_estimators"], sketch["bag.max_samples"]
        code.add(f"model = {call(bagging, first, n_estimators=size, max_samples=share)}")
    else:
        _write_ensemble(code, sketch, families, first)
    if sketch["search"] is not None:
        _write_search(code, sketch, families)
    if sketch["calibrate"] is not None and not regression:
        calibrated = code.use("sklearn.calibration", "CalibratedClassifierCV")
        code.add(f"model = {call(calibrated, 'model', method=sketch['calibrate'], cv='3')}")


def _write_ensemble(code: Code, sketch: Sketch, families: dict[str, Family], first: str) -> None:
    combine = sketch["combine"]
    others = _SLOTS[1:] if combine == "vote3" else _SLOTS[1:2]
    members = [first, *(_estimator(code, sketch, families, slot) for slot in others)]
    code.add("members = [")
    code.add(
        *(f'    ("{letter}", {member}),' for letter, member in zip("abc", members, strict=False))
    )
    code.add("]")
    ending = "Regressor" if families is REGRESSORS else "Classifier"
    if combine == "stack":
        stacking = code.use("sklearn.ensemble", f"Stacking{ending}")
        code.add(
            f"model = {call(stacking, 'members', cv='3', passthrough=sketch['stack.passthrough'])}"
        )
        return
    weight = sketch["vote.weights"]
    weights = None if weight is None else f"[{', '.join([weight, *['1'] * len(others)])}]"
    voting = code.use("sklearn.ensemble", f"Voting{ending}")
    soft = None if families is REGRESSORS else '"soft"'
    code.add(f"model = {call(voting, 'members', voting=soft, weights=weights)}")


def _write_search(code: Code, sketch: Sketch, families: dict[str, Family]) -> None:
    name = sketch["m1.family"]
    family = families[name]
    point = sketch.get(f"search.{name}")
    if point is None:  # nothing to search in this family
        return
    prefix = {None: "", "bag": "estimator__"}.get(sketch["combine"], "a__")
    values = _grid(point, int(sketch["search.width"]))
    grid = f'{{"{prefix}{family.searched}": [{", ".join(values)}]}}'
    folds = sketch["search.folds"]
    if sketch["search"] == "grid":
        search = code.use("sklearn.model_selection", "GridSearchCV")
        code.add(f"model = {call(search, 'model', grid, cv=folds)}")
    else:
        search = code.use("sklearn.model_selection", "RandomizedSearchCV")
        tries = str(max(1, len(values) - 1))
        code.add(f"model = {call(search, 'model', grid, n_iter=tries, cv=folds)}")


def _grid(point: str, width: int) -> list[str]:
    """Geometric steps of three up from the drawn point, in the form in which the point is
    written."""
    if not point.replace(".", "").isdigit():
        return [point]
    if "." in point:
        return [number(float(point) * 3**k) for k in range(width)]
    return [str(int(point) * 3**k) for k in range(width)]


def words(sketch: Sketch, families: dict[str, Family]) -> str:
    """The model in a few words, for the plan."""
    first = families[sketch["m1.family"]].words
    second = families[sketch["m2.family"]].words
    third = families[sketch["m3.family"]].words
    text = {
        None: first,
        "bag": f"bagged {first}",
        "vote": f"a vote of {first} and {second}",
        "vote3": f"a vote of {first}, {second} and {third}",
        "stack": f"{first} and {second} stacked",
    }[sketch["combine"]]
    if sketch["search"] is not None and f"search.{sketch['m1.family']}" in sketch:
        text += " with a search"
    return text + (
        ", calibrated" if sketch["calibrate"] is not None and families is CLASSIFIERS else ""
    )
