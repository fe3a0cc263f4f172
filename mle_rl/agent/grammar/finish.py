"""What comes after the model: validation, fitting, prediction, post-processing, the submission."""

from __future__ import annotations

from mle_rl.agent.grammar.code import Code
from mle_rl.agent.grammar.decisions import Sketch
from mle_rl.agent.grammar.shape import TaskShape


def write_training(code: Code, sketch: Sketch, shape: TaskShape) -> None:
    """Write the lines that validate and fit ``model``."""
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


def write_prediction(code: Code, sketch: Sketch, shape: TaskShape) -> None:
    """Write the lines that predict the test rows and post-process the predictions."""
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


def write_submission(code: Code, sketch: Sketch, shape: TaskShape) -> None:
    """Write the lines that save the submission."""
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
