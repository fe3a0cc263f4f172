"""Whole programs: what people of mixed skill write for a task of a given kind.

A sketch settles every decision (features, model, validation, prediction, post-processing) and every
slip (a wrong path, a forgotten import, ...); `write` turns it into a plan and a program. The same
sketch always gives the same program, which is what makes small, meaningful revisions possible.
"""

from __future__ import annotations

import numpy as np

from mle_rl.agent.grammar import finish, image, models, table, text
from mle_rl.agent.grammar.code import Code
from mle_rl.agent.grammar.decisions import Decision, Sketch, choice, draw, integer, real
from mle_rl.agent.grammar.families import CLASSIFIERS, REGRESSORS
from mle_rl.agent.grammar.shape import TaskShape
from mle_rl.records import Program

SLIPS: dict[str, float] = {
    "slip.path": 0.12,
    "slip.target": 0.11,
    "slip.import": 0.13,
    "slip.transform": 0.12,
    "slip.predict": 0.12,
    "slip.index": 0.10,
    "slip.id": 0.085,
    "slip.filename": 0.085,
    "slip.keyword": 0.145,
    "slip.parenthesis": 0.07,
    "slip.method": 0.07,
    "slip.test": 0.07,
}
"""Mistakes, each made independently with this probability (``slip.keyword`` only where a keyword is
written): three programs in ten have none."""

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


def _slips(factor: float) -> tuple[Decision, ...]:
    shares = {name: min(0.95, share * factor) for name, share in SLIPS.items()}
    return tuple(choice(name, None, 1 - share, {"yes": 1.0}) for name, share in shares.items())


def decisions(shape: TaskShape, slips: float = 1.0) -> tuple[Decision, ...]:
    """Every decision that a program for this shape of task settles, slips included.

    Args:
        slips: How many times as often as `SLIPS` says mistakes are made, each at most 95 %.
    """
    module = _KINDS[shape.kind]
    features = module.REGRESSION if shape.regression else module.CLASSIFICATION
    return (*features, *_WRITING, *_POST[shape.output], *_slips(slips))


def sketch(shape: TaskShape, rng: np.random.Generator, slips: float = 1.0) -> dict[str, str | None]:
    """A random sketch, decision by decision; ``slips`` as in `decisions`."""
    return draw(decisions(shape, slips), rng)


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
    families = REGRESSORS if shape.regression else CLASSIFIERS
    models.write(code, sketch, families)
    finish.write_training(code, sketch, shape)
    finish.write_prediction(code, sketch, shape)
    finish.write_submission(code, sketch, shape)
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
