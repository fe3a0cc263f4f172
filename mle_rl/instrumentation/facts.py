"""Facts: what can be known of a value by reading the program, and rules for putting them together.

A fact is a short text; a value has a set of them:

======================  ==========================================================================
``is:a.b.c``            it is the imported thing ``a.b.c``
``made:a.b.c``          it was made by calling ``a.b.c`` (or the program's own class ``own:C``)
``own:f``               it is the program's own function or class ``f``
``test``                it comes from a file whose name says test
``fitted``              rows for fitting: the first part of a split, of a train file, so named
``held_out``            rows kept from fitting: the second part of a split, or so named
``predicted``           it comes out of a model
``loss``                it comes out of a loss function
``literal``             it is made of constants (and random numbers) only
``split``, ``parts``    what ``KFold().split`` and ``train_test_split`` give, until it is unpacked
``param:f.x``           it is the parameter ``x`` of the program's own function ``f``
``from:f.x``            it is derived from that parameter
======================  ==========================================================================
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

Facts = frozenset[str]
NOTHING: Facts = frozenset()
_DATA = frozenset({"test", "held_out", "fitted", "predicted", "loss", "split", "parts"})

_TEST_TEXT = re.compile(r"(?<![a-z])test(?![a-z])")
_TRAIN_TEXT = re.compile(r"(?<![a-z])train(?![a-z])")
_TEST_NAME = re.compile(r"(^|_)(test|te)(_|$|\d)")
_HELD_OUT_NAME = re.compile(r"(^|_)(val|valid|validation|va|dev|hold|holdout|oof|eval)(_|$|\d)")
_FITTED_NAME = re.compile(r"(^|_)(train|training|tr|fit)(_|$|\d)")
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Scope = dict[str, Facts]


def origins(facts: Facts, kind: str = "is") -> set[str]:
    """The dotted names that facts of one kind (``is``, ``made`` or ``own``) carry."""
    return {fact[len(kind) + 1 :] for fact in facts if fact.startswith(kind + ":")}


def named_facts(name: str, facts: Facts) -> Facts:
    """What a variable's name adds; ``X_val`` says more than where its rows were cut from."""
    if _HELD_OUT_NAME.search(name):
        return facts - {"fitted", "test"} | {"held_out"}
    if _TEST_NAME.search(name):
        if "test" not in facts and facts & {"fitted", "held_out"}:
            return facts - {"fitted"} | {"held_out"}  # the second part of a split
        return facts - {"fitted"} | {"test"}
    if _FITTED_NAME.search(name) and "held_out" not in facts:
        return facts - {"test"} | {"fitted"}
    return facts


def substitute(facts: Facts, given: dict[str, Facts]) -> Facts:
    """What a function returns, for one call: facts of the arguments in place of the parameters."""
    found: set[str] = set()
    for fact in facts:
        kind, _, symbol = fact.partition(":")
        if kind == "param":
            found |= given.get(symbol, NOTHING)
        elif kind == "from":
            found |= data_facts(given.get(symbol, NOTHING))
        else:
            found.add(fact)
    return frozenset(found)


def is_symbol(fact: str) -> bool:
    """Whether a fact stands for what a call gives to a parameter."""
    return fact.startswith(("param:", "from:"))


def data_facts(facts: Facts) -> Facts:
    """The facts that go along with data: where it came from, not what object it is."""
    symbols = {f"from:{fact.partition(':')[2]}" for fact in facts if is_symbol(fact)}
    return (facts & _DATA) | symbols


def join(sets: Sequence[Facts]) -> Facts:
    """Facts of something put together from parts: all facts; a constant only if all parts are."""
    joined = frozenset().union(*sets)
    return joined if all("literal" in part for part in sets) else joined - {"literal"}


def merge(scope: Scope, *others: Scope) -> None:
    for other in others:
        for name, facts in other.items():
            here = scope.get(name)
            scope[name] = facts if here is None else join([here, facts])


def part_facts(facts: Facts, index: int, target: ast.Tuple | ast.List) -> Facts:
    """What one target of an unpacking gets: splits give fitting and held-out rows in turn."""
    rest = facts - {"split", "parts"}
    if "parts" in facts:
        return rest - {"held_out", "fitted"} | {"held_out" if index % 2 else "fitted"}
    if "split" in facts:
        if any(isinstance(part, ast.Tuple | ast.List) for part in target.elts):
            return facts
        return rest - {"held_out", "fitted"} | {"held_out" if index else "fitted"}
    return facts


def parameter_names(node: FunctionNode) -> list[str]:
    arguments = node.args
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def captured_names(pattern: ast.pattern) -> list[str]:
    named = (ast.MatchAs, ast.MatchStar)
    return [n.name for n in ast.walk(pattern) if isinstance(n, named) and n.name is not None]


def file_facts(text: object) -> Facts:
    """What the name of a file says of the rows in it."""
    if not isinstance(text, str) or len(text) > 200:
        return NOTHING
    if _TEST_TEXT.search(text.lower()):
        return frozenset({"test"})
    return frozenset({"fitted"}) if _TRAIN_TEXT.search(text.lower()) else NOTHING


def hands_on_splits(node: ast.Call) -> bool:
    """Whether a call gives back the splits that it was given."""
    return isinstance(node.func, ast.Name) and node.func.id in ("enumerate", "list", "next", "tqdm")


def is_network(made: str) -> bool:
    return made.split(".")[0] in ("torch", "keras", "tensorflow", "tf_keras", "lightning") and (
        made.rsplit(".", 1)[-1] in ("Module", "Sequential", "Model", "Linear", "LightningModule")
    )


def is_loss(name: str) -> bool:
    parts = name.split(".")
    return parts[0] in ("torch", "keras", "tensorflow", "tf_keras") and (
        parts[-1].endswith("Loss")
        or "losses" in parts
        or ("functional" in parts and parts[-1].endswith(("loss", "entropy", "div")))
        or parts[-1] in ("cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss")
    )
