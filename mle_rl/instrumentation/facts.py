"""Where values come from: a small abstract interpretation of a program's tree.

Every expression gets a set of facts, each a short text:

======================  ==========================================================================
``is:a.b.c``            it is the imported thing ``a.b.c``
``made:a.b.c``          it was made by calling ``a.b.c`` (or the program's own class ``own:C``)
``own:f``               it is the program's own function or class ``f``
``test``                it comes from a file whose name says test
``held_out``            rows kept from fitting: the second part of a split, or so named
``fitted``              rows for fitting: the first part of a split, a file that says train, or so named
``predicted``           it comes out of a model
``loss``                it comes out of a loss function
``literal``             it is made of constants (and random numbers) only
``param:f.x``           it comes from the parameter ``x`` of the program's own function ``f``
======================  ==========================================================================

Statements are read in order (an assignment replaces what was known, branches are joined, loops are
read twice). A function is read once for all calls, with symbols for its parameters: a call puts the
facts of its arguments for them in what the function returns, `FactFinder.of` the facts of all calls
joined. Three rounds settle what functions return. It errs on the side of knowing nothing: what the facts only suggest, witnesses
check at run time.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from mle_rl.instrumentation import libraries

Facts = frozenset[str]
NOTHING: Facts = frozenset()
_DATA = frozenset({"test", "held_out", "fitted", "predicted", "loss", "split", "parts"})
_ROUNDS = 3

_TEST_TEXT = re.compile(r"(?<![a-z])test(?![a-z])")
_TRAIN_TEXT = re.compile(r"(?<![a-z])train(?![a-z])")
_TEST_NAME = re.compile(r"(^|_)(test|te)(_|$|\d)")
_HELD_OUT_NAME = re.compile(r"(^|_)(val|valid|validation|va|dev|hold|holdout|oof|eval)(_|$|\d)")
_FITTED_NAME = re.compile(r"(^|_)(train|training|tr|fit)(_|$|\d)")
_CONSTANT_MAKERS = ("numpy.", "random.", "sklearn.datasets.make_", "torch.rand", "torch.zeros")
_BUILTINS_OF_CONSTANTS = frozenset({"list", "tuple", "range", "float", "int", "dict", "set", "zip"})

_RETURN_THE_RECEIVER = frozenset(
    ["fit", "to", "cuda", "cpu", "eval", "train", "compile", "float", "double"]
)
_GROW_THE_RECEIVER = frozenset(["append", "extend", "insert", "add", "update"])

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Scope = dict[str, Facts]


def origins(facts: Facts, kind: str = "is") -> set[str]:
    """The dotted names that facts of one kind (``is``, ``made`` or ``own``) carry."""
    return {fact[len(kind) + 1 :] for fact in facts if fact.startswith(kind + ":")}


class FactFinder:
    """The facts of every expression of a program; read them with `of`.

    Attributes:
        classes: The program's own classes, by name.
        functions: The program's own functions, by name, methods as ``Class.name``.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.classes = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
        self.functions: dict[str, FunctionNode] = {}
        self._facts: dict[ast.AST, Facts] = {}
        self._parameters: dict[str, Facts] = {}
        self._given: dict[ast.Call, dict[str, Facts]] = {}
        self._returns: dict[str, Facts] = {}
        self._returned_parts: dict[str, list[Facts]] = {}
        self._attributes: dict[tuple[str, str], Facts] = {}
        self._stars: list[str] = []
        self._function: str | None = None
        for _ in range(_ROUNDS):
            self._pending: list[tuple[str, FunctionNode, Scope, str | None]] = []
            scope: Scope = {}
            self._read(tree.body, scope)
            while self._pending:
                self._read_function(*self._pending.pop())

    def of(self, node: ast.AST) -> Facts:
        """What is known of an expression, over all calls of the function that it stands in."""
        return self._expand(self._facts.get(node, NOTHING))

    def by_call(self, node: ast.AST) -> bool:
        """Whether what is known of an expression depends on the call of its function."""
        return any(fact.startswith("param:") for fact in self._facts.get(node, NOTHING))

    def _expand(self, facts: Facts) -> Facts:
        known, todo = set(facts), [f for f in facts if f.startswith("param:")]
        while todo:
            given = self._parameters.get(todo.pop(), NOTHING) - known
            todo += [f for f in given if f.startswith("param:")]
            known |= given
        return frozenset(known)

    def bases(self, name: str) -> set[str]:
        """The library classes that one of the program's own classes derives from."""
        found: set[str] = set()
        seen: set[str] = set()
        todo = [name]
        while todo:
            current = todo.pop()
            if current in seen or current not in self.classes:
                continue
            seen.add(current)
            for base in self.classes[current].bases:
                found |= origins(self.of(base))
                todo += origins(self.of(base), "own")
        return found

    # -- statements ------------------------------------------------------------------------------

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
            case ast.Return():
                if node.value is not None and self._function is not None:
                    value = self.value(node.value, scope)
                    known = self._returns.get(self._function, value)
                    self._returns[self._function] = _join([known, value])
                    if isinstance(node.value, ast.Tuple):
                        parts = [self._facts[part] for part in node.value.elts]
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
                _merge(scope, *after)
                self._read(node.finalbody, scope)
            case ast.Match():
                subject = self.value(node.subject, scope)
                branches = []
                for case in node.cases:
                    branch = dict(scope)
                    for name in _captures(case.pattern):
                        branch[name] = subject
                    self._read(case.body, branch)
                    branches.append(branch)
                _merge(scope, *branches)
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
            _merge(scope, before)
            return
        for _ in range(2):
            if isinstance(node, ast.While):
                self.value(node.test, scope)
            else:
                self._assign(node.target, self.value(node.iter, scope), scope)
            self._read(node.body, scope)
            _merge(scope, before)
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

    def _define(self, name: str, node: FunctionNode, scope: Scope, owner: str | None) -> None:
        self.functions[name] = node
        self._pending.append((name, node, scope, owner))

    def _read_function(
        self, name: str, node: FunctionNode, enclosing: Scope, owner: str | None
    ) -> None:
        scope = dict(enclosing)
        for index, parameter in enumerate(_parameters(node)):
            scope[parameter] = frozenset({f"param:{name}.{parameter}"})
            if index == 0 and owner is not None:
                scope[parameter] = self._instance(owner)
        outer, self._function = self._function, name
        if isinstance(node, ast.Lambda):
            self._returns[name] = self.value(node.body, scope)
        else:
            self._read(node.body, scope)
        self._function = outer

    # -- binding ---------------------------------------------------------------------------------

    def _assign(
        self, target: ast.expr, facts: Facts, scope: Scope, source: ast.expr | None = None
    ) -> None:
        match target:
            case ast.Name():
                scope[target.id] = facts
            case ast.Starred():
                self._assign(target.value, facts, scope)
            case ast.Tuple() | ast.List():
                known = self._parts_of(source)
                for index, part in enumerate(target.elts):
                    paired = len(known) == len(target.elts)
                    piece = known[index] if paired else _part(facts, index, target)
                    self._assign(part, piece, scope)
            case _:
                self._extend(target, facts, scope)

    def _parts_of(self, source: ast.expr | None) -> list[Facts]:
        """The facts of each part of what is unpacked, where they are known apart."""
        if isinstance(source, ast.Tuple | ast.List):
            return [self._facts[part] for part in source.elts]
        if isinstance(source, ast.Call):
            for name in origins(self.of(source.func), "own"):
                given = self._given.get(source, {})
                return [_substitute(part, given) for part in self._returned_parts.get(name, [])]
        return []

    def _extend(self, target: ast.expr, facts: Facts, scope: Scope) -> None:
        """Adds facts to what a name already has: ``x[i] = ...``, ``x.a = ...``, ``x += ...``."""
        if isinstance(target, ast.Attribute):
            owners = origins(self._expand(self.value(target.value, scope)), "made")
            for owner in owners:
                key = (owner.removeprefix("own:"), target.attr)
                self._attributes[key] = self._attributes.get(key, NOTHING) | facts
            if owners:
                return
        if isinstance(target, ast.Subscript):
            facts |= _data(self.value(target.slice, scope))
        root = target
        while isinstance(root, ast.Attribute | ast.Subscript | ast.Starred):
            root = root.value
        if isinstance(root, ast.Name):
            scope[root.id] = _join([scope.get(root.id, NOTHING), facts]) | (
                scope.get(root.id, NOTHING) - {"literal"}
            )

    # -- expressions -----------------------------------------------------------------------------

    def value(self, node: ast.expr, scope: Scope) -> Facts:
        """The facts of an expression, also kept for `of`."""
        facts = self._value(node, scope)
        self._facts[node] = self._facts.get(node, NOTHING) | facts
        return facts

    def _value(self, node: ast.expr, scope: Scope) -> Facts:
        match node:
            case ast.Constant():
                return _file_facts(node.value) | {"literal"}
            case ast.Name():
                return self._name(node.id, scope)
            case ast.Attribute():
                return self._attribute(node, scope)
            case ast.Call():
                return self._call(node, scope)
            case ast.Subscript():
                inside = self.value(node.value, scope)
                chosen = self.value(node.slice, scope) & {"held_out", "fitted"}
                if isinstance(node.slice, ast.Constant):  # a column, whatever its name
                    chosen = NOTHING
                kept = inside - {"fitted"} if "held_out" in chosen else inside
                return frozenset(f for f in kept if not f.startswith("is:")) | chosen
            case ast.Lambda():
                name = f"<lambda {node.lineno}:{node.col_offset}>"
                self._define(name, node, scope, None)
                return frozenset({f"own:{name}"})
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                inner = dict(scope)
                for generator in node.generators:
                    self._assign(generator.target, self.value(generator.iter, inner), inner)
                    for condition in generator.ifs:
                        self.value(condition, inner)
                if isinstance(node, ast.DictComp):
                    return self.value(node.key, inner) | self.value(node.value, inner)
                return self.value(node.elt, inner)
            case ast.NamedExpr():
                facts = self.value(node.value, scope)
                scope[node.target.id] = facts
                return facts
        children = [
            self.value(c, scope) for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)
        ]
        if isinstance(node, ast.IfExp):
            children = children[1:]
        # An empty list is about to be filled with something.
        return _join(children) if children else NOTHING

    def _name(self, name: str, scope: Scope) -> Facts:
        facts = scope.get(name)
        if facts is None:
            library = [star for star in self._stars if star.split(".")[0] in libraries.PACKAGES]
            facts = frozenset(f"is:{star}.{name}" for star in library)
        if origins(facts) or origins(facts, "own") or "test" in facts:
            return facts
        return self._named(name.lower(), facts)

    def _named(self, name: str, facts: Facts) -> Facts:
        """What a variable's name adds; a name like ``X_val`` says more than where its rows were cut from."""
        if _HELD_OUT_NAME.search(name):
            return facts - {"fitted"} | {"held_out"}
        if _TEST_NAME.search(name) and "held_out" not in facts:
            return facts - {"fitted"} | {"held_out" if "fitted" in facts else "test"}
        if _FITTED_NAME.search(name) and not facts & {"held_out"}:
            return facts | {"fitted"}
        return facts

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Facts:
        base = self.value(node.value, scope)
        found = {f"is:{name}.{node.attr}" for name in origins(base)} | _data(base)
        for made in origins(self._expand(base), "made"):
            owner = made.removeprefix("own:")
            found |= self._attributes.get((owner, node.attr), NOTHING)
            if f"{owner}.{node.attr}" in self.functions:
                found.add(f"own:{owner}.{node.attr}")
            elif node.attr.startswith("best_") or node.attr.endswith("_"):
                found.add(f"made:{made}")
        if node.attr == "loss":
            found.add("loss")
        return frozenset(found)

    def _call(self, node: ast.Call, scope: Scope) -> Facts:
        called = self._expand(self.value(node.func, scope))
        values = [self.value(a, scope) for a in node.args]
        named = {k.arg: self.value(k.value, scope) for k in node.keywords}
        attribute = node.func if isinstance(node.func, ast.Attribute) else None
        receiver = self._facts.get(attribute.value, NOTHING) if attribute else NOTHING
        names = origins(called)
        given = [*values, *named.values()]
        result = set(_data(frozenset().union(receiver, *given)))
        if origins(called, "own"):
            result = set()  # only what the function itself passes on
        result -= {"parts"} if _hands_on(node) else {"parts", "split"}
        result |= {f"made:{name}" for name in names}
        if self._makes_constants(node, names) and all("literal" in facts for facts in given):
            result.add("literal")
        for name in origins(called, "own"):
            result |= self._call_own(name, node, values, named)
        method = attribute.attr if attribute else None
        if method in _RETURN_THE_RECEIVER:
            result |= {f for f in self._expand(receiver) if f.startswith("made:")}
        if attribute and method in _GROW_THE_RECEIVER:
            self._extend(attribute.value, _join(given), scope)
        if method in libraries.PREDICT_METHODS or any(
            _calls_network(m) for m in self._made(called)
        ):
            result.add("predicted")
        if any(name.endswith("cross_val_predict") for name in names):
            result |= {"predicted", "held_out"}
        if any(_is_loss(n) for n in names | self._made(called)):
            result.add("loss")
        if method == "split" and node.args:
            result.add("split")
        if any(name.endswith("train_test_split") for name in names):
            result = (result - {"test"}) | {"parts"} if "test" not in receiver else result
        return frozenset(result)

    def _made(self, facts: Facts) -> set[str]:
        """What made an object, own classes given by the library classes that they derive from."""
        made: set[str] = set()
        for name in origins(facts, "made"):
            made |= self.bases(name[4:]) if name.startswith("own:") else {name}
        return made

    def _makes_constants(self, node: ast.Call, names: Iterable[str]) -> bool:
        if isinstance(node.func, ast.Name) and node.func.id in _BUILTINS_OF_CONSTANTS:
            return True
        return any(
            name.startswith(_CONSTANT_MAKERS) and name.rsplit(".", 1)[-1] not in libraries.READERS
            for name in names
        )

    def _call_own(
        self, name: str, node: ast.Call, values: list[Facts], named: dict[str | None, Facts]
    ) -> Facts:
        if name in self.classes:
            self._bind(f"{name}.__init__", values, named)
            return self._instance(name)
        self._given[node] = self._bind(name, values, named)
        return _substitute(self._returns.get(name, NOTHING), self._given[node])

    def _bind(
        self, name: str, values: list[Facts], named: dict[str | None, Facts]
    ) -> dict[str, Facts]:
        """Notes what a call gives to each parameter, and returns it by the parameter's symbol."""
        node = self.functions.get(name)
        if node is None:
            return {}
        parameters = _parameters(node)[1 if "." in name else 0 :]
        pairs = [*zip(parameters, values, strict=False)]
        pairs += [(key, facts) for key, facts in named.items() if key in parameters]
        given = {f"param:{name}.{key}": facts - {"literal"} for key, facts in pairs}
        for symbol, facts in given.items():
            self._parameters[symbol] = self._parameters.get(symbol, NOTHING) | facts
        return given

    def _instance(self, name: str) -> Facts:
        return frozenset({f"made:own:{name}"} | {f"made:{base}" for base in self.bases(name)})


def _substitute(facts: Facts, given: dict[str, Facts]) -> Facts:
    """What a function returns, for one call: facts of the arguments in place of the parameters."""
    found: set[str] = set()
    for fact in facts:
        found |= given.get(fact, NOTHING) if fact.startswith("param:") else {fact}
    return frozenset(found)


def _data(facts: Facts) -> Facts:
    """The facts that go along with data: where it came from, not what object it is."""
    return frozenset(fact for fact in facts if fact in _DATA or fact.startswith("param:"))


def _join(sets: Sequence[Facts]) -> Facts:
    """Facts of something put together from parts: all facts; a constant only if all parts are."""
    joined = frozenset().union(*sets)
    return joined if all("literal" in part for part in sets) else joined - {"literal"}


def _merge(scope: Scope, *others: Scope) -> None:
    for other in others:
        for name, facts in other.items():
            here = scope.get(name)
            scope[name] = facts if here is None else _join([here, facts])


def _part(facts: Facts, index: int, target: ast.Tuple | ast.List) -> Facts:
    """What one target of an unpacking gets: splits give fitting and held-out rows in turn."""
    rest = facts - {"split", "parts"}
    if "parts" in facts:
        return rest - {"held_out", "fitted"} | {"held_out" if index % 2 else "fitted"}
    if "split" in facts:
        if any(isinstance(part, ast.Tuple | ast.List) for part in target.elts):
            return facts
        return rest - {"held_out", "fitted"} | {"held_out" if index else "fitted"}
    return facts


def _parameters(node: FunctionNode) -> list[str]:
    arguments = node.args
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _captures(pattern: ast.pattern) -> list[str]:
    named = (ast.MatchAs, ast.MatchStar)
    return [n.name for n in ast.walk(pattern) if isinstance(n, named) and n.name is not None]


def _file_facts(text: object) -> Facts:
    """What the name of a file says of the rows in it."""
    if not isinstance(text, str) or len(text) > 200:
        return NOTHING
    if _TEST_TEXT.search(text.lower()):
        return frozenset({"test"})
    return frozenset({"fitted"}) if _TRAIN_TEXT.search(text.lower()) else NOTHING


def _hands_on(node: ast.Call) -> bool:
    """Whether a call gives back the splits that it was given."""
    return isinstance(node.func, ast.Name) and node.func.id in ("enumerate", "list", "next", "tqdm")


def _calls_network(made: str) -> bool:
    return made.split(".")[0] in ("torch", "keras", "tensorflow", "tf_keras", "lightning") and (
        made.rsplit(".", 1)[-1] in ("Module", "Sequential", "Model", "Linear", "LightningModule")
    )


def _is_loss(name: str) -> bool:
    parts = name.split(".")
    return parts[0] in ("torch", "keras", "tensorflow", "tf_keras") and (
        parts[-1].endswith("Loss")
        or "losses" in parts
        or ("functional" in parts and parts[-1].endswith(("loss", "entropy", "div")))
        or parts[-1] in ("cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss")
    )
