"""Weaving: the original program, compiled with witnesses inside; and rendering, for people.

The program's text is never regenerated. `weave` parses the original, lets single expressions pass
through a witness and adds statements after others, all at the original positions, and compiles
under the program's own file name: tracebacks, ``inspect.getsource``, line numbers and stdout stay
what they were. Witnesses replace placeholder strings among the constants of the code objects, so
that the program has no name by which to reach them. Without insertions the text is compiled as it
is.

Standard library only: this runs inside the sandboxed child.
"""

from __future__ import annotations

import ast
import secrets
import types
from collections.abc import Iterable, Sequence
from contextlib import suppress

from mle_rl.errors import MleRlError
from mle_rl.instrumentation import libraries
from mle_rl.instrumentation.insertions import Insertion
from mle_rl.instrumentation.tripwire import set_tripwire
from mle_rl.instrumentation.witness import Mark, Observer, Run, Witness


def weave(
    code: str,
    insertions: Sequence[Insertion],
    filename: str,
    mark: Mark,
    *,
    tripwire: bool = True,
) -> types.CodeType:
    """Compiles a program so that reaching an insertion is reported.

    Args:
        code: The original program.
        insertions: Places in ``code``; none gives exactly ``compile(code, filename, "exec")``.
        filename: The file that tracebacks name.
        mark: Called as ``mark(stage, value)`` when a stage is first reached, with a finite float
            for a loss or score, else None; for these again when a later value is seen.
        tripwire: Whether to watch the process from now on, for good, for programs that reach for
            the witnesses (see `tripwire`). Right in a child made for one program.

    Raises:
        SyntaxError, ValueError: As ``compile`` does, when the program does not compile.
        MleRlError: An insertion names no place in this program.
    """
    woven = None
    if insertions:
        run = Run(mark, filename)
        # The program's own fault, or nesting at the limit of the compiler: then it runs, or fails,
        # exactly as it would have without us.
        with suppress(SyntaxError, ValueError, RecursionError):
            woven = _woven(code, insertions, filename, run)
            if tripwire:
                set_tripwire(run.installed.roots, filename, run.close)
    return woven or compile(code, filename, "exec", dont_inherit=True)


def _woven(code: str, insertions: Sequence[Insertion], filename: str, run: Run) -> types.CodeType:
    loom = _Loom(run)
    tree = ast.parse(code, filename)
    loom.place(tree, insertions)
    return loom.embed(compile(tree, filename, "exec", dont_inherit=True))


class _Loom:
    def __init__(self, run: Run) -> None:
        self.run = run
        self.nonce = secrets.token_hex(16)
        self.witnesses: dict[str, Witness] = {}

    def place(self, tree: ast.Module, insertions: Iterable[Insertion]) -> None:
        places = _Places(tree)
        for insertion in insertions:
            if insertion.position == "around":
                self._around(places.expression(insertion), insertion)
            else:
                self._after(*places.statement(insertion), insertion)

    def _around(self, slot: _Slot, insertion: Insertion) -> None:
        node = slot.original.value if isinstance(slot.original, ast.Await) else slot.original
        subject = node.func if isinstance(node, ast.Call) else node
        attribute = subject.attr if isinstance(subject, ast.Attribute) else None
        observer = Observer(insertion, self.run, attribute)
        if insertion.check in ("callee", "note") and isinstance(node, ast.Call | ast.Attribute):
            # The receiver is wrapped, not the bound method: a call that spans lines keeps its line.
            if isinstance(subject, ast.Attribute):
                subject.value = self._through(observer.see_receiver, subject.value)
            elif isinstance(node, ast.Call):
                node.func = self._through(observer.see_receiver, node.func)
            if insertion.stage == "data_loaded" and isinstance(node, ast.Call):
                self._wrap_path(node, observer)
        slot.set(self._through(observer.see_result, slot.get()))

    def _wrap_path(self, call: ast.Call, observer: Observer) -> None:
        for name in libraries.PATH_KEYWORDS:
            for keyword in call.keywords:
                if keyword.arg == name:
                    keyword.value = self._through(observer.see_path, keyword.value)
                    return
        if call.args and not isinstance(call.args[0], ast.Starred):
            call.args[0] = self._through(observer.see_path, call.args[0])

    def _after(self, body: list[ast.stmt], statement: ast.stmt, insertion: Insertion) -> None:
        names: list[str] = []
        module = None
        if insertion.check == "import" and isinstance(statement, ast.Import | ast.ImportFrom):
            names = [alias.asname or alias.name.split(".")[0] for alias in statement.names]
            module = getattr(statement, "module", None)
        elif insertion.check == "word" and insertion.value:
            names = [insertion.value]
        nothing = ast.copy_location(ast.Constant(None), statement)
        added: ast.stmt = ast.Expr(
            self._through(
                Observer(insertion, self.run, module).see_result,
                nothing,
                [name for name in names if name != "*"],
            )
        )
        if insertion.check == "word":
            # A language model may name a variable that is not bound here.
            added = ast.Try([added], [ast.ExceptHandler(None, None, [ast.Pass()])], [], [])
        ast.fix_missing_locations(ast.copy_location(added, statement))
        body.insert(body.index(statement) + 1, added)

    def _through(self, observe, value: ast.expr, names: Sequence[str] = ()) -> ast.expr:
        """The expression ``witness.__call__((value, *names))``, placed where ``value`` is."""
        placeholder = f"\0{self.nonce}:{len(self.witnesses)}"
        self.witnesses[placeholder] = Witness(observe)
        # Through an attribute, for the compiler warns of a literal that is called directly.
        called = ast.Attribute(ast.Constant(placeholder), "__call__", ast.Load())
        loads = [ast.Name(name, ast.Load()) for name in names]
        wrapped = ast.Call(called, [ast.Tuple([value, *loads], ast.Load())], [])
        ast.copy_location(wrapped, value)
        for node in (called, called.value, wrapped.args[0], *loads):
            ast.copy_location(node, value)
        return wrapped

    def embed(self, code: types.CodeType) -> types.CodeType:
        """Puts the witnesses where their placeholders are, in this and all inner code objects."""
        constants = tuple(
            self.embed(constant)
            if isinstance(constant, types.CodeType)
            else self.witnesses.get(constant, constant)
            if isinstance(constant, str)
            else constant
            for constant in code.co_consts
        )
        return code.replace(co_consts=constants)


class _Slot:
    """The place of one expression in its parent, with whatever has been wrapped around it."""

    def __init__(self, parent: ast.AST, field: str, index: int | None, original: ast.expr) -> None:
        self.parent, self.field, self.index, self.original = parent, field, index, original

    def get(self) -> ast.expr:
        held = getattr(self.parent, self.field)
        return held if self.index is None else held[self.index]

    def set(self, node: ast.expr) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


class _Places:
    """Expressions by their span and statements by their start, in one walk over the tree.

    Python 3.11 gives equal expressions inside one f-string the same span; the first is taken.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.expressions: dict[tuple, _Slot] = {}
        self.statements: dict[tuple, tuple[list[ast.stmt], ast.stmt]] = {}
        for parent in ast.walk(tree):
            for field, held in ast.iter_fields(parent):
                for index, node in enumerate(held if isinstance(held, list) else [held]):
                    if isinstance(node, ast.stmt):
                        self.statements.setdefault(_span(node), (held, node))
                    elif isinstance(node, ast.expr):
                        at = index if isinstance(held, list) else None
                        slot = _Slot(parent, field, at, node)
                        self.expressions.setdefault(_span(node), slot)

    def expression(self, insertion: Insertion) -> _Slot:
        return self._find(self.expressions, insertion)

    def statement(self, insertion: Insertion) -> tuple[list[ast.stmt], ast.stmt]:
        return self._find(self.statements, insertion)

    def _find(self, known: dict, insertion: Insertion):
        at = (insertion.line, insertion.col, insertion.end_line, insertion.end_col)
        if at not in known:
            raise MleRlError(
                f"Nothing in this program spans {insertion.line}:{insertion.col} to "
                f"{insertion.end_line}:{insertion.end_col}; the insertion belongs to another text."
            )
        return known[at]


def _span(node: ast.expr | ast.stmt) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0
