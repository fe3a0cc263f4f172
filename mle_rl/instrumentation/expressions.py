"""The facts of expressions: what names, calls, subscripts and the rest pass on.

The lower half of the abstract interpretation; `dataflow.FactFinder` builds on it, with statements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from mle_rl.instrumentation import libraries
from mle_rl.instrumentation.facts import (
    NOTHING,
    Facts,
    FunctionNode,
    Scope,
    data_facts,
    file_facts,
    hands_on_splits,
    is_loss,
    is_network,
    is_symbol,
    join,
    named_facts,
    origins,
    parameter_names,
    part_facts,
    substitute,
)

_CONSTANT_MAKERS = ("numpy.", "random.", "sklearn.datasets.make_", "torch.rand", "torch.zeros")
_BUILTINS_OF_CONSTANTS = frozenset({"list", "tuple", "range", "float", "int", "dict", "set", "zip"})

_RETURN_THE_RECEIVER = frozenset(
    ["fit", "to", "cuda", "cpu", "eval", "train", "compile", "float", "double"]
)
_GROW_THE_RECEIVER = frozenset(["append", "extend", "insert", "add", "update"])


class ExpressionReader:
    """Reads expressions in a scope, binds names, and keeps what is known of everything.

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
        self._pending: list[tuple[str, FunctionNode, Scope, str | None]] = []

    def of(self, node: ast.AST) -> Facts:
        """What is known of an expression, over all calls of the function that it stands in."""
        return self._expand(self._facts.get(node, NOTHING))

    def by_call(self, node: ast.AST) -> bool:
        """Whether what is known of an expression depends on the call of its function."""
        return any(map(is_symbol, self._facts.get(node, NOTHING)))

    def _expand(self, facts: Facts) -> Facts:
        known, todo = set(facts), list(filter(is_symbol, facts))
        while todo:
            kind, _, symbol = todo.pop().partition(":")
            given = self._parameters.get(symbol, NOTHING)
            new = (given if kind == "param" else data_facts(given)) - known
            todo += filter(is_symbol, new)
            known |= new
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

    def value(self, node: ast.expr, scope: Scope) -> Facts:
        """The facts of an expression, also kept for `of`."""
        facts = self._value(node, scope)
        self._facts[node] = self._facts.get(node, NOTHING) | facts
        return facts

    def _value(self, node: ast.expr, scope: Scope) -> Facts:
        match node:
            case ast.Constant():
                return file_facts(node.value) | {"literal"}
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
            case ast.Yield(value=ast.expr() as given) | ast.YieldFrom(value=given):
                self._return(self.value(given, scope))
                return NOTHING
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
        return join(children) if children else NOTHING

    def _name(self, name: str, scope: Scope) -> Facts:
        facts = scope.get(name)
        if facts is None:
            library = [star for star in self._stars if star.split(".")[0] in libraries.PACKAGES]
            facts = frozenset(f"is:{star}.{name}" for star in library)
        if origins(facts) or origins(facts, "own"):
            return facts
        return named_facts(name.lower(), facts)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Facts:
        base = self.value(node.value, scope)
        found = {f"is:{name}.{node.attr}" for name in origins(base)} | data_facts(base)
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
        result = set(data_facts(frozenset().union(receiver, *given)))
        if origins(called, "own"):
            result = set()  # only what the function itself passes on
        result -= {"parts"} if hands_on_splits(node) else {"parts", "split"}
        result |= {f"made:{name}" for name in names}
        if self._makes_constants(node, names) and all("literal" in facts for facts in given):
            result.add("literal")
        for name in origins(called, "own"):
            result |= self._call_own(name, node, values, named)
        method = attribute.attr if attribute else None
        if method in _RETURN_THE_RECEIVER:
            result |= {f for f in self._expand(receiver) if f.startswith("made:")}
        if attribute and method in _GROW_THE_RECEIVER:
            self._extend(attribute.value, join(given), scope)
        if method in libraries.PREDICT_METHODS or any(is_network(m) for m in self._made(called)):
            result.add("predicted")
        if any(name.endswith("cross_val_predict") for name in names):
            result |= {"predicted", "held_out"}
        if any(is_loss(n) for n in names | self._made(called)):
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

    def _return(self, facts: Facts) -> None:
        """Notes what the function at hand returns or yields."""
        if self._function is not None:
            known = self._returns.get(self._function, facts)
            self._returns[self._function] = join([known, facts])

    def _call_own(
        self, name: str, node: ast.Call, values: list[Facts], named: dict[str | None, Facts]
    ) -> Facts:
        if name in self.classes:
            self._construct(name, values, named)
            return self._instance(name)
        self._given[node] = self._bind(name, values, named)
        return substitute(self._returns.get(name, NOTHING), self._given[node])

    def _construct(self, name: str, values: list[Facts], named: dict[str | None, Facts]) -> None:
        if f"{name}.__init__" in self.functions:
            self._bind(f"{name}.__init__", values, named)
            return
        # A dataclass or named tuple: its annotated fields take the arguments.
        body = self.classes[name].body
        fields = [
            s.target.id
            for s in body
            if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
        ]
        for field, facts in [*zip(fields, values, strict=False), *named.items()]:
            key = (name, field or "")
            self._attributes[key] = self._attributes.get(key, NOTHING) | facts

    def _bind(
        self, name: str, values: list[Facts], named: dict[str | None, Facts]
    ) -> dict[str, Facts]:
        """Notes what a call gives to each parameter, and returns it by the parameter's symbol."""
        node = self.functions.get(name)
        if node is None:
            return {}
        parameters = parameter_names(node)[1 if "." in name else 0 :]
        pairs = [*zip(parameters, values, strict=False)]
        pairs += [(key, facts) for key, facts in named.items() if key in parameters]
        given = {f"{name}.{key}": facts - {"literal"} for key, facts in pairs}
        for symbol, facts in given.items():
            self._parameters[symbol] = self._parameters.get(symbol, NOTHING) | facts
        return given

    def _instance(self, name: str) -> Facts:
        return frozenset({f"made:own:{name}"} | {f"made:{base}" for base in self.bases(name)})

    def _define(self, name: str, node: FunctionNode, scope: Scope, owner: str | None) -> None:
        self.functions[name] = node
        self._pending.append((name, node, scope, owner))

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
                    piece = known[index] if paired else part_facts(facts, index, target)
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
                return [substitute(part, given) for part in self._returned_parts.get(name, [])]
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
            facts |= data_facts(self.value(target.slice, scope))
        root = target
        while isinstance(root, ast.Attribute | ast.Subscript | ast.Starred):
            root = root.value
        if isinstance(root, ast.Name):
            scope[root.id] = join([scope.get(root.id, NOTHING), facts]) | (
                scope.get(root.id, NOTHING) - {"literal"}
            )
