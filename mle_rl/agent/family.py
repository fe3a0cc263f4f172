"""The family of a program: which estimators it makes, read from its text without running it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from math import log

from mle_rl.instrumentation.dataflow import parse
from mle_rl.instrumentation.libraries import MODEL_LIBRARIES, MODEL_SUBMODULES

_HELPERS = frozenset({"pipeline", "calibration", "cluster", "mixture", "isotonic"})
"""Submodules of scikit-learn whose classes prepare for a model or finish one."""

_ESTIMATORS = MODEL_SUBMODULES - _HELPERS
NO_MODEL = "none"


def model_family(code: str) -> str:
    """The estimators that a program makes, in alphabetical order, as in ``RandomForest+Voting``.

    Of scikit-learn its classes, without the endings Classifier and Regressor, so that a task's kind
    does not matter; of any other library for models its name. Hyper-parameters, features and
    searches are no part of a family.

    Returns:
        `NO_MODEL` for a program that makes none, or that Python cannot read.
    """
    try:
        tree = parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return NO_MODEL
    imported = _imported(tree)
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    found = {_estimator(_dotted(func, imported)) for func in calls} - {None}
    return "+".join(sorted(found)) or NO_MODEL


def entropy(families: Iterable[str]) -> float:
    """Shannon entropy of the shares of the families, in nats; 0 if there are none.

    Its exponential is the number of families that, equally common, would be as diverse.
    """
    counts = Counter(families)
    total = sum(counts.values())
    return sum(-count / total * log(count / total) for count in counts.values())


def _imported(tree: ast.AST) -> dict[str, str]:
    """What each imported name stands for."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                names[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(func: ast.expr, imported: dict[str, str]) -> tuple[str, ...]:
    """The full name of what is called, empty if it was not imported."""
    rest: list[str] = []
    while isinstance(func, ast.Attribute):
        rest.insert(0, func.attr)
        func = func.value
    if not isinstance(func, ast.Name) or func.id not in imported:
        return ()
    return (*imported[func.id].split("."), *rest)


def _estimator(name: tuple[str, ...]) -> str | None:
    if len(name) < 2 or name[0] not in MODEL_LIBRARIES:
        return None
    if name[0] != "sklearn":
        return name[0]
    if name[1] not in _ESTIMATORS or not name[-1][:1].isupper():
        return None
    return name[-1].removesuffix("Classifier").removesuffix("Regressor")
