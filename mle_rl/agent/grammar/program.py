"""Whole programs: what people of mixed skill write for a task of a given kind.

A sketch settles every decision (features, model, validation, prediction, post-processing) and every
slip (a wrong path, a forgotten import, ...); `write` turns it into a plan and a program. The same
sketch always gives the same program, which is what makes small, meaningful revisions possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mle_rl.agent.grammar import image, models, table, text
from mle_rl.agent.grammar.code import Code
from mle_rl.agent.grammar.decisions import Decision, Sketch, choice, draw, integer, real
from mle_rl.records import Program

Output = Literal["probabilities", "probability", "label", "number"]


@dataclass(frozen=True)
class TaskShape:
    """What a program must know of its task.

    Attributes:
        kind: Which sort of data: ``text``, ``image`` or ``table``.
        target: Column to predict.
        output: What the submission holds: a probability per class, one probability, a label or a
            number.
        text_column: Column with the text, for the text kind.
        ordinal: Labels are ordered integers, so a rounded expectation is a sensible prediction.
    """

    kind: Literal["text", "image", "table"]
    target: str
    output: Output
    text_column: str = "text"
    ordinal: bool = False

    @property
    def regression(self) -> bool:
        """Whether the model predicts a number."""
        return self.output == "number"


SLIPS: dict[str, float] = {
    "slip.path": 0.10,
    "slip.target": 0.09,
    "slip.import": 0.11,
    "slip.transform": 0.10,
    "slip.predict": 0.10,
    "slip.index": 0.08,
    "slip.id": 0.07,
    "slip.filename": 0.07,
    "slip.keyword": 0.12,
    "slip.parenthesis": 0.06,
    "slip.method": 0.06,
    "slip.test": 0.06,
}
"""Mistakes, each made independently with this probability (``slip.keyword`` only where a keyword is
written)."""

_WRITING = (
    choice("validate", None, 0.45, {"holdout": 5, "cv": 2, "loss": 3}),
    choice("refit", "yes", 0.72, {None: 1}),
    integer("validate.folds", 0.6, 2, 6, plain="3"),
    choice("validate.size", "0.2", 0.7, {"0.1": 1, "0.25": 1, "0.3": 1}),
    integer("folds", 0.88, 2, 9),
    choice("dense", None, 0.90, {"yes": 1}),
)
_POST: dict[str, tuple[Decision, ...]] = {
    "probabilities": (
        choice("post", None, 0.78, {"clip": 2, "power": 2, "prior": 1}),
        real("post.clip", 0.0, 0.0005, 0.1),
        real("post.power", 0.0, 0.4, 3.0),
        real("post.prior", 0.0, 0.02, 0.5),
    ),
    "probability": (choice("post", None, 0.85, {"clip": 1}), real("post.clip", 0.0, 0.0005, 0.1)),
    "label": (
        choice("post", None, 0.84, {"expect": 1, "weigh": 1}),
        real("post.power", 0.0, 0.3, 1.5),
    ),
    "number": (
        choice("target", None, 0.80, {"log1p": 2, "sqrt": 1}),
        choice("post", None, 0.76, {"floor": 3, "scale": 1, "mean": 1}),
        real("post.scale", 0.0, 0.5, 1.6),
        real("post.prior", 0.0, 0.02, 0.6),
    ),
}
_KINDS = {"text": text, "image": image, "table": table}


def _slips() -> tuple[Decision, ...]:
    return tuple(choice(name, None, 1 - share, {"yes": 1.0}) for name, share in SLIPS.items())


def decisions(shape: TaskShape) -> tuple[Decision, ...]:
    """Every decision that a program for this shape of task settles, slips included."""
    module = _KINDS[shape.kind]
    features = module.REGRESSION if shape.regression else module.CLASSIFICATION
    return (*features, *_WRITING, *_POST[shape.output], *_slips())


def sketch(shape: TaskShape, rng: np.random.Generator) -> dict[str, str | None]:
    """A random sketch, decision by decision."""
    return draw(decisions(shape), rng)


def sound(sketch: Sketch) -> Sketch:
    """The same sketch without slips."""
    return {**sketch, **dict.fromkeys(SLIPS)}


def revise(sketch: Sketch, shape: TaskShape, rng: np.random.Generator) -> Sketch:
    """What somebody makes of a program that is shown: slips mended, one to three decisions taken
    again.

    A decision that is taken again leaves its present value; the direction is not known to be good.
    """
    revised = dict(sketch)
    for name in SLIPS:
        revised[name] = sketch[name] if rng.random() < 0.2 else None
    original = write(sketch, shape).code
    space = [decision for decision in decisions(shape) if decision.name not in SLIPS]
    wanted = 1 + int(rng.integers(3))
    for index in rng.permutation(len(space)):
        decision = space[index]
        value = (
            decision.other(rng) if sketch[decision.name] == decision.plain else decision.draw(rng)
        )
        trial = {**revised, decision.name: value}
        if write(trial, shape).code != write(revised, shape).code:
            revised, wanted = trial, wanted - 1
        if wanted == 0:
            break
    return revised if write(revised, shape).code != original else sketch


def write(sketch: Sketch, shape: TaskShape) -> Program:
    """The plan and the program of a sketch."""
    code = Code()
    _write_loading(code, sketch, shape)
    if shape.kind == "text":
        text.write(code, sketch, shape.text_column)
    elif shape.kind == "image":
        image.write(code, sketch)
    else:
        table.write(code, sketch, shape.target, shape.regression)
    if shape.kind == "text" and sketch["dense"] is not None and sketch["reduce"] != "svd":
        code.add("X, X_test = X.toarray(), X_test.toarray()")
    families = models.REGRESSORS if shape.regression else models.CLASSIFIERS
    models.write(code, sketch, families)
    _write_training(code, sketch, shape)
    _write_prediction(code, sketch, shape)
    _write_submission(code, sketch, shape)
    lines = code.import_lines(forgotten=sketch["slip.import"] is not None) + code.lines
    if sketch["slip.parenthesis"] is not None:
        lines = [line[:-1] if line.startswith("model = ") else line for line in lines]
    plan = f"{_KINDS[shape.kind].words(sketch)}, then {models.words(sketch, families)}."
    return Program(plan=plan[0].upper() + plan[1:], code="\n".join(lines) + "\n")


def _write_loading(code: Code, sketch: Sketch, shape: TaskShape) -> None:
    folder = "" if sketch["slip.path"] else "input/"
    code.add(f'train = pd.read_csv("{folder}train.csv")')
    if not sketch["slip.test"]:
        code.add(f'test = pd.read_csv("{folder}test.csv")')
    target = (
        ("target" if shape.target != "target" else "label")
        if sketch["slip.target"]
        else shape.target
    )
    values = f'train["{target}"].to_numpy()'
    transform = sketch.get("target") if shape.regression else None
    code.add(f"y = np.{transform}({values})" if transform else f"y = {values}")


def _write_training(code: Code, sketch: Sketch, shape: TaskShape) -> None:
    fit = "train" if sketch["slip.method"] else "fit"
    if sketch["validate"] == "holdout":
        split = code.use("sklearn.model_selection", "train_test_split")
        size = sketch["validate.size"]
        code.add(f"X_fit, X_val, y_fit, y_val = {split}(X, y, test_size={size}, random_state=0)")
        code.add(f"model.{fit}(X_fit, y_fit)")
        code.add('print("validation score:", model.score(X_val, y_val))')
        if sketch["refit"] is None or sketch["folds"] is not None:
            return
    elif sketch["validate"] == "cv":
        cross = code.use("sklearn.model_selection", "cross_val_score")
        code.add(f"scores = {cross}(model, X, y, cv={sketch['validate.folds']})")
        code.add('print("validation score:", scores.mean())')
    if sketch["folds"] is None:
        code.add(f"model.{fit}(X, y)")
        if sketch["validate"] == "loss":
            _write_loss(code, shape)


def _write_loss(code: Code, shape: TaskShape) -> None:
    name = {"number": "mean_squared_error", "label": "zero_one_loss"}.get(shape.output, "log_loss")
    loss = code.use("sklearn.metrics", name)
    predicted = "predict_proba" if name == "log_loss" else "predict"
    code.add(f'print("training loss:", {loss}(y, model.{predicted}(X)))')


def _write_prediction(code: Code, sketch: Sketch, shape: TaskShape) -> None:
    soft = shape.output in ("probabilities", "probability") or (
        shape.output == "label"
        and (sketch["folds"] is not None or _label_post(sketch, shape) is not None)
    )
    method = "predict_proba" if soft != (sketch["slip.predict"] is not None) else "predict"
    if sketch["folds"] is None:
        code.add(f"pred = model.{method}(X_test)")
    else:
        folds = code.use("sklearn.model_selection", "KFold")
        count = sketch["folds"]
        code.add("pred = 0")
        code.add(f"for rows, rest in {folds}({count}, shuffle=True, random_state=0).split(X):")
        code.add("    model.fit(X[rows], y[rows])")
        code.add(f"    pred = pred + model.{method}(X_test) / {count}")
    {"number": _number_post, "label": _write_label}.get(shape.output, _probability_post)(
        code, sketch, shape
    )


def _label_post(sketch: Sketch, shape: TaskShape) -> str | None:
    return "weigh" if sketch["post"] == "expect" and not shape.ordinal else sketch["post"]


def _write_label(code: Code, sketch: Sketch, shape: TaskShape) -> None:
    post = _label_post(sketch, shape)
    if post == "expect":
        code.add("pred = np.rint(pred @ model.classes_).astype(int)")
    elif post == "weigh":
        code.add(f"pred = pred / pred.mean(axis=0) ** {sketch['post.power']}")
    if post == "weigh" or (post is None and sketch["folds"] is not None):
        code.add("pred = model.classes_[pred.argmax(axis=1)]")


def _probability_post(code: Code, sketch: Sketch, shape: TaskShape) -> None:
    post = sketch["post"]
    if shape.output == "probability":
        code.add("pred = pred[:, 1]")
    if post == "clip":
        code.add(f"pred = np.clip(pred, {sketch['post.clip']}, 1)")
    elif post == "power":
        code.add(f"pred = pred ** {sketch['post.power']}")
    elif post == "prior":
        share = sketch["post.prior"]
        code.add(f"pred = (1 - {share}) * pred + {share} * pred.mean(axis=0)")
    if post is not None and shape.output == "probabilities":
        code.add("pred = pred / pred.sum(axis=1, keepdims=True)")


def _number_post(code: Code, sketch: Sketch, shape: TaskShape) -> None:
    inverse = {"log1p": "pred = np.expm1(pred)", "sqrt": "pred = pred ** 2"}.get(
        sketch["target"] or ""
    )
    if inverse:
        code.add(inverse)
    if sketch["post"] == "floor":
        code.add("pred = np.maximum(pred, 0)")
    elif sketch["post"] == "scale":
        code.add(f"pred = np.maximum(pred, 0) * {sketch['post.scale']}")
    elif sketch["post"] == "mean":
        share = sketch["post.prior"]
        code.add(f"pred = (1 - {share}) * np.maximum(pred, 0) + {share} * pred.mean()")


def _write_submission(code: Code, sketch: Sketch, shape: TaskShape) -> None:
    if shape.output == "probabilities":
        code.add("submission = pd.DataFrame(pred, columns=model.classes_)")
        if not sketch["slip.id"]:
            code.add('submission.insert(0, "id", test["id"])')
    else:
        identity = "" if sketch["slip.id"] else '"id": test["id"], '
        code.add(f'submission = pd.DataFrame({{{identity}"{shape.target}": pred}})')
    name = "predictions.csv" if sketch["slip.filename"] else "submission.csv"
    index = "" if sketch["slip.index"] else ", index=False"
    code.add(f'submission.to_csv("{name}"{index})')
