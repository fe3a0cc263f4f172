"""The syntax-tree inserter: finds the stages of a program by reading its tree.

One walk over the statements collects the places where `stages` sees a claim. The places are
candidates: a place in dead code is never reached, and what is reached is checked by its witness.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from mle_rl.instrumentation import libraries, stages
from mle_rl.instrumentation.dataflow import FactFinder, parse
from mle_rl.instrumentation.facts import origins
from mle_rl.instrumentation.insertions import Insertion, Instrumented
from mle_rl.instrumentation.screen import screen

TOO_DEEP = "too deeply nested to read"
_COMPILED = re.compile(r"jit|vectorize|script|tf\.function|torch\.compile|cuda")


@dataclass(frozen=True)
class Site:
    """An insertion and the statement that a person would print after.

    Attributes:
        line, col: Start of the innermost statement that holds the place.
        always: Whether that statement runs whenever the program gets there: it is not within a
            function, a branch, a loop or an exception handler.
    """

    insertion: Insertion
    line: int
    col: int
    always: bool


def insert_by_syntax(code: str) -> Instrumented:
    """Finds where a program reaches the stages.

    Returns:
        The insertions. None, and the reason in ``refused``, for a text that is no Python program
        and for a program that may not earn credit (see `screen`).
    """
    found, refused = read_sites(code)
    return Instrumented(code, tuple(sorted({s.insertion for s in found})), refused=refused)


def read_sites(code: str) -> tuple[list[Site], str | None]:
    """All places of a program, in the order of its text, imports first; or none, and why."""
    try:
        tree = parse(code)
    except (SyntaxError, ValueError) as problem:
        return [], f"does not parse: {problem}"
    except (RecursionError, MemoryError):
        return [], TOO_DEEP
    try:
        return _read_tree(tree)
    except RecursionError:
        return [], TOO_DEEP
    except ValueError as problem:  # a whole number of more digits than Python turns into text
        return [], f"cannot be read: {problem}"


def _read_tree(tree: ast.Module) -> tuple[list[Site], str | None]:
    finder = FactFinder(tree)
    distrust = screen(tree, finder)
    if distrust is not None:
        return [], f"not trusted: {distrust}"
    found = [site for place in _statements(tree.body, True, ()) for site in _sites(place, finder)]
    found.sort(key=lambda site: (site.line, site.insertion))
    return _import_sites(tree, found) + found, None


def bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of statements directly inside a node, empty ones included."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list):
            yield block
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


@dataclass(frozen=True)
class _Place:
    """A statement, whether it always runs, and the loops around it within its function."""

    statement: ast.stmt
    always: bool
    loops: tuple[ast.stmt, ...]


def _statements(
    body: list[ast.stmt], always: bool, loops: tuple[ast.stmt, ...]
) -> Iterator[_Place]:
    for node in body:
        yield _Place(node, always, loops)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if not any(_COMPILED.search(ast.unparse(d)) for d in node.decorator_list):
                    yield from _statements(node.body, False, ())
            case ast.ClassDef() | ast.With() | ast.AsyncWith():
                yield from _statements(node.body, always, loops)
            case ast.If():
                main = _is_main_guard(node.test)
                yield from _statements(node.body, always and main, loops)
                yield from _statements(node.orelse, False, loops)
            case ast.For() | ast.AsyncFor() | ast.While():
                yield from _statements(node.body, False, (*loops, node))
                yield from _statements(node.orelse, False, loops)
            case ast.Try() | ast.TryStar():
                yield from _statements(node.body, always, loops)
                for handler in node.handlers:
                    yield from _statements(handler.body, False, loops)
                yield from _statements(node.orelse, False, loops)
                yield from _statements(node.finalbody, always, loops)
            case ast.Match():
                for case in node.cases:
                    yield from _statements(case.body, False, loops)


def _sites(place: _Place, finder: FactFinder) -> Iterator[Site]:
    node = place.statement
    steps = []
    for expression, awaited in _own_expressions(node):
        for stage, value, check in stages.claims(expression, finder):
            yield _site(place, awaited or expression, stage, value, check)
        if _steps_optimiser(expression, finder):
            steps.append(expression)
    for expression, (stage, value, check) in stages.hand_written(node, finder):
        yield _site(place, expression, stage, value, check)
    for step in steps:
        if not place.loops:
            yield _site(place, step, "model_trained", None, "callee")
            continue
        yield _site(place, step, "model_trained", None, "note")
        loop = place.loops[0]
        after = Insertion(
            loop.lineno, loop.col_offset, "after", "model_trained", None,
            loop.end_lineno or 0, loop.end_col_offset or 0, "noted",
        )  # fmt: skip
        yield Site(after, loop.lineno, loop.col_offset, place.always)


def _site(place: _Place, node: ast.expr, stage: str, value: str | None, check) -> Site:
    statement = place.statement
    insertion = Insertion(
        node.lineno, node.col_offset, "around", stage, value,
        node.end_lineno or 0, node.end_col_offset or 0, check,
    )  # fmt: skip
    return Site(insertion, statement.lineno, statement.col_offset, place.always)


def _own_expressions(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.Await | None]]:
    """Expressions that belong to a statement itself, not to statements in its body.

    Annotations, decorators and patterns are left alone. A call that is awaited at once comes with
    its ``await``, for only that has the result.
    """
    skipped = {
        "body",
        "orelse",
        "finalbody",
        "handlers",
        "cases",
        "decorator_list",
        "annotation",
        "returns",
    }
    todo: list[tuple[ast.AST, ast.Await | None]] = []
    for field, held in ast.iter_fields(statement):
        if field not in skipped:
            todo += [(n, None) for n in (held if isinstance(held, list) else [held])]
    while todo:
        node, awaited = todo.pop(0)
        if isinstance(node, ast.arg | ast.pattern | ast.stmt) or not isinstance(node, ast.AST):
            continue
        if isinstance(node, ast.expr):
            yield node, awaited
        inner = node if isinstance(node, ast.Await) else None
        todo[:0] = [(child, inner) for child in ast.iter_child_nodes(node)]


def _steps_optimiser(node: ast.expr, finder: FactFinder) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    if node.func.attr not in libraries.STEP_METHODS:
        return False
    made = origins(finder.of(node.func.value), "made")
    if made:
        return any(("optim" in m and "lr_scheduler" not in m) or "GradScaler" in m for m in made)
    return re.search(r"opt", ast.unparse(node.func.value).lower()) is not None


def _import_sites(tree: ast.Module, others: list[Site]) -> list[Site]:
    """After the last import of a known package that stands before every other stage's place."""
    first = min((site.line for site in others if site.always), default=10**9)
    found: list[Site] = []
    for place in _statements(tree.body, True, ()):
        node = place.statement
        if not stages.is_known_package(node):
            continue
        insertion = Insertion(
            node.lineno, node.col_offset, "after", "packages_imported", None,
            node.end_lineno or 0, node.end_col_offset or 0, "import",
        )  # fmt: skip
        found.append(Site(insertion, node.lineno, node.col_offset, place.always))
    leading = [s for s in found if s.always and s.line < first]
    return leading[-1:] or found


def _is_main_guard(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and "__name__" in ast.unparse(test)
