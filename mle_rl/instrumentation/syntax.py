"""The syntax-tree inserter: finds the stages of a program by reading its tree."""

from __future__ import annotations

import ast
import re
import warnings

from mle_rl.instrumentation import libraries
from mle_rl.instrumentation.insertions import Insertion, Instrumented


def parse(code: str) -> ast.Module:
    """The tree of a program, without the warnings that parsing may print."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(code)


def insert_by_syntax(code: str) -> Instrumented:
    """Finds where a program reaches the stages.

    Returns:
        The insertions; none, and the reason, for a text that is no Python program.
    """
    try:
        tree = parse(code)
        found = sorted(set(_insertions(tree)))
    except (SyntaxError, ValueError) as problem:
        return Instrumented(code, (), refused=f"does not parse: {problem}")
    except (RecursionError, MemoryError):
        return Instrumented(code, (), refused="too deeply nested to read")
    return Instrumented(code, tuple(found))


def _insertions(tree):
    imports = [
        n
        for n in tree.body
        if isinstance(n, ast.Import | ast.ImportFrom)
        and any(
            name.split(".")[0] in libraries.PACKAGES
            for name in ([n.module or ""] if isinstance(n, ast.ImportFrom) else [a.name for a in n.names])
        )
    ]
    if imports:
        n = imports[-1]
        yield Insertion(
            n.lineno, n.col_offset, "after", "packages_imported", None, n.end_lineno, n.end_col_offset, "import"
        )
    for n in ast.walk(tree):
        if not isinstance(n, ast.Call):
            continue
        name = n.func.attr if isinstance(n.func, ast.Attribute) else getattr(n.func, "id", "")
        span = n.end_lineno, n.end_col_offset
        args = " ".join(ast.unparse(a) for a in n.args)
        def at(stage, value=None):
            return Insertion(n.lineno, n.col_offset, "around", stage, value, *span)
        if name in libraries.READERS and "submission" not in args:
            yield at("data_loaded")
        if re.match("[A-Z]", name) or name in ("make_pipeline", "train"):
            yield at("model_defined")
        if name in libraries.FIT_METHODS | libraries.CROSS_VALIDATION | {"train"}:
            yield at("model_trained")
        if name == "backward":
            yield at("training_loss_seen", "receiver")
        if name in libraries.METRICS or name.endswith(libraries.METRIC_SUFFIXES) or name == "score":
            yield at("training_loss_seen" if re.search("tr", args) else "validation_score_seen", "result")
        if name in libraries.PREDICT_METHODS and re.search(r"test|\bxt", args, re.I):
            yield at("test_labels_predicted")
