"""How long is the function behind this docstring? (text, quadratic weighted kappa)"""

from __future__ import annotations

import ast
from bisect import bisect_right

from mle_rl.tasks.building import Competition, Example, distinct
from mle_rl.tasks.suite.docstrings import anonymise, module_files, parse

_PACKAGES = ("matplotlib", "numpy", "pandas", "scipy", "sklearn", "statsmodels")
_EDGES = (4, 9, 16, 31)
"""Fewest statements of the grades 2 to 5."""
_MIN_CHARS, _MAX_CHARS = 150, 1200

_PAGE = """\
# How long is the function?

A docstring says what a function does, not how much work it is. Given the docstring of a function or
a method from a library of scientific Python, grade the length of its body from 1 to 5.

| grade | statements in the body |
|---|---|
| 1 | 1 to 3 |
| 2 | 4 to 8 |
| 3 | 9 to 15 |
| 4 | 16 to 30 |
| 5 | 31 or more |

## Data

- `train.csv`: {n_train} docstrings with columns `id`, `text` and `grade`.
- `test.csv`: {n_test} docstrings with columns `id` and `text`.
- `sample_submission.csv`: a valid submission that knows nothing.

Each docstring is on one line, and the names of the libraries read `LIB`. No source file gives
docstrings to both `train.csv` and `test.csv`.

## Evaluation

Submissions are scored by the **quadratic weighted kappa** of the predicted and the true grades;
1 is perfect, 0 is chance, higher is better. Predictions must be whole numbers from 1 to 5.

## Submission

`submission.csv` with the columns `id` and `grade`, one row per `id` of `test.csv`.
"""


def _examples() -> list[Example]:
    return distinct(
        Example(features=(text,), target=str(grade), group=name)
        for package in _PACKAGES
        for name, path in module_files(package)
        for text, grade in _graded_docstrings(parse(path))
    )


def _graded_docstrings(tree: ast.Module) -> list[tuple[str, int]]:
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        doc = ast.get_docstring(node, clean=False)
        if not doc:
            continue
        statements = sum(isinstance(n, ast.stmt) for b in node.body[1:] for n in ast.walk(b))
        text = anonymise(doc)
        if statements and _MIN_CHARS <= len(text) <= _MAX_CHARS:
            found.append((text, 1 + bisect_right(_EDGES, statements)))
    return found


COMPETITION = Competition(
    id="function-length",
    title="How long is the function?",
    kind="text",
    metric="quadratic_weighted_kappa",
    target="grade",
    features=("text",),
    id_prefix="f",
    train_rows=2000,
    test_rows=1600,
    sample_predictions=("1",),
    sources=("matplotlib", "numpy", "pandas", "scikit-learn", "scipy", "statsmodels"),
    examples=_examples,
    page=_PAGE,
)
