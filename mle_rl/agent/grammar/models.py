"""Decisions about the model: family, hyper-parameters, combination, calibration and search."""

from __future__ import annotations

from mle_rl.agent.grammar.code import Code
from mle_rl.agent.grammar.decisions import Decision, Sketch, call, choice, integer, number
from mle_rl.agent.grammar.families import CLASSIFIERS, REGRESSORS, Family

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
