"""Where values come from: a small abstract interpretation of a program's tree.

Statements are read in order: an assignment replaces what was known of a name, branches are joined,
loops are read twice. A function is read once for all calls, with symbols for its parameters: a call
puts the facts of its arguments for them in what the function returns, `FactFinder.of` the facts of
all calls joined. Three rounds settle what functions return. The reading errs on the side of knowing
nothing: what facts only suggest, witnesses check at run time.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence

from mle_rl.instrumentation.expressions import ExpressionReader
from mle_rl.instrumentation.facts import (
    FunctionNode,
    Scope,
    captured_names,
    merge,
    parameter_names,
)

_ROUNDS = 3


def source_lines(code: str) -> list[str]:
    """The lines of a program, without their ends, as Python counts them."""
    lines = re.split(r"\r\n|\r|\n", code)
    return lines[:-1] if not lines[-1] else lines


def parse(code: str) -> ast.Module:
    """The tree of a program, without the warnings that parsing may print.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: As ``ast.parse`` does.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(code)


class FactFinder(ExpressionReader):
    """Reads a whole program; then `of` gives the facts of each of its expressions."""

    def __init__(self, tree: ast.Module) -> None:
        super().__init__(tree)
        for _ in range(_ROUNDS):
            self._pending.clear()
            self._read(tree.body, {})
            while self._pending:
                self._read_function(*self._pending.pop())

    def _read(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        for statement in body:
            self._read_statement(statement, scope)

    def _read_statement(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._read_import(node, scope)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                scope[node.name] = frozenset({f"own:{node.name}"})
                self._define(node.name, node, scope, None)
            case ast.ClassDef():
                self._read_class(node, scope)
            case ast.Assign():
                value = self.value(node.value, scope)
                for target in node.targets:
                    self._assign(target, value, scope, node.value)
            case ast.AnnAssign() if node.value is not None:
                self._assign(node.target, self.value(node.value, scope), scope, node.value)
            case ast.AugAssign():
                value = self.value(node.value, scope)
                self._extend(node.target, value, scope)
            case ast.Return(value=ast.expr() as given):
                self._return(self.value(given, scope))
                if isinstance(given, ast.Tuple) and self._function is not None:
                    parts = [self._facts[part] for part in given.elts]
                    self._returned_parts[self._function] = parts
            case ast.If() | ast.While() | ast.For() | ast.AsyncFor():
                self._read_branches(node, scope)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    value = self.value(item.context_expr, scope)
                    if item.optional_vars is not None:
                        self._assign(item.optional_vars, value, scope)
                self._read(node.body, scope)
            case ast.Try() | ast.TryStar():
                self._read(node.body, scope)
                after = [dict(scope)]
                for handler in node.handlers:
                    branch = dict(scope)
                    self._read(handler.body, branch)
                    after.append(branch)
                self._read(node.orelse, scope)
                merge(scope, *after)
                self._read(node.finalbody, scope)
            case ast.Match():
                subject = self.value(node.subject, scope)
                branches = []
                for case in node.cases:
                    branch = dict(scope)
                    for name in captured_names(case.pattern):
                        branch[name] = subject
                    self._read(case.body, branch)
                    branches.append(branch)
                merge(scope, *branches)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.value(child, scope)

    def _read_branches(
        self, node: ast.If | ast.While | ast.For | ast.AsyncFor, scope: Scope
    ) -> None:
        before = dict(scope)
        if isinstance(node, ast.If):
            self.value(node.test, scope)
            self._read(node.body, scope)
            self._read(node.orelse, before)
            merge(scope, before)
            return
        for _ in range(2):
            if isinstance(node, ast.While):
                self.value(node.test, scope)
            else:
                self._assign(node.target, self.value(node.iter, scope), scope)
            self._read(node.body, scope)
            merge(scope, before)
        self._read(node.orelse, scope)

    def _read_import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                scope[name] = frozenset({f"is:{alias.name if alias.asname else name}"})
        elif node.module and not node.level:
            for alias in node.names:
                if alias.name == "*":
                    self._stars.append(node.module)
                else:
                    scope[alias.asname or alias.name] = frozenset(
                        {f"is:{node.module}.{alias.name}"}
                    )

    def _read_class(self, node: ast.ClassDef, scope: Scope) -> None:
        for base in node.bases:
            self.value(base, scope)
        scope[node.name] = frozenset({f"own:{node.name}"})
        inner = dict(scope)
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                self._define(f"{node.name}.{statement.name}", statement, scope, node.name)
            else:
                self._read_statement(statement, inner)

    def _read_function(
        self, name: str, node: FunctionNode, enclosing: Scope, owner: str | None
    ) -> None:
        scope = dict(enclosing)
        for index, parameter in enumerate(parameter_names(node)):
            scope[parameter] = frozenset({f"param:{name}.{parameter}"})
            if index == 0 and owner is not None:
                scope[parameter] = self._instance(owner)
        outer, self._function = self._function, name
        if isinstance(node, ast.Lambda):
            self._returns[name] = self.value(node.body, scope)
        else:
            self._read(node.body, scope)
        self._function = outer
