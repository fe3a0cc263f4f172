"""Does the function raise an exception? (table, ROC AUC)

Counts of what stands in functions of installed libraries; what belongs to the raising is not
counted.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from mle_rl.tasks.building import Competition, Example, distinct
from mle_rl.tasks.suite.docstrings import module_files, parse

_PACKAGES = ("matplotlib", "numpy", "pandas", "scipy", "sklearn", "statsmodels")
_FEWEST_STATEMENTS = 4
_BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try)
_Function = ast.FunctionDef | ast.AsyncFunctionDef

_COLUMNS = (
    "method",
    "private",
    "name_length",
    "decorators",
    "arguments",
    "defaults",
    "starred",
    "doc_lines",
    "statements",
    "ifs",
    "loops",
    "returns",
    "assignments",
    "calls",
    "attributes",
    "names",
    "comparisons",
    "connectives",
    "negations",
    "strings",
    "numbers",
    "nones",
    "subscripts",
    "depth",
)

_PAGE = """\
# Does the function raise?

Some functions check what they are given and raise an exception, others trust their caller. From
counts of what stands in a function or a method of a library of scientific Python, predict the
probability that its body holds a `raise` statement. Nothing inside a `raise` statement is counted.

## Data

- `train.csv`: {n_train} functions with the column `raises`, 0 or 1.
- `test.csv`: {n_test} functions without it.
- `sample_submission.csv`: a valid submission that knows nothing.

| column | meaning |
|---|---|
| `method`, `private` | 1 if it belongs to a class; 1 if its name begins with an underscore |
| `name_length` | letters of its name |
| `decorators`, `arguments`, `defaults` | how many; `defaults` are arguments that may be left out |
| `starred` | how many of `*args` and `**kwargs` it takes |
| `doc_lines` | lines of its docstring, 0 without one |
| `statements` | in its body, those in blocks too |
| `ifs`, `loops`, `returns`, `assignments` | statements of these kinds |
| `calls`, `attributes`, `subscripts` | expressions of the forms `f(x)`, `x.name`, `x[i]` |
| `names` | different variables, functions and modules that it names |
| `comparisons`, `connectives`, `negations` | of `==`, `<`, `in`, ...; of `and`, `or`; of `not` |
| `strings`, `numbers`, `nones` | literals |
| `depth` | how deep blocks stand in blocks |

No source file gives functions to both `train.csv` and `test.csv`.

## Evaluation

Submissions are scored by the **area under the ROC curve**; higher is better.

## Submission

`submission.csv` with the columns `id` and `raises`, the probability, one row per `id` of
`test.csv`.
"""


def _examples() -> list[Example]:
    return distinct(
        Example(features=features, target=target, group=name)
        for package in _PACKAGES
        for name, path in module_files(package)
        for features, target in _functions(parse(path))
    )


def _functions(tree: ast.Module) -> Iterator[tuple[tuple[str, ...], str]]:
    """Columns and target of every function of a module that is long enough."""
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    methods = {id(statement) for node in classes for statement in node.body}
    for function in ast.walk(tree):
        if not isinstance(function, _Function):
            continue
        documented = ast.get_docstring(function, clean=False)
        body = function.body[1:] if documented else function.body
        nodes = [node for statement in body for node in ast.walk(statement)]
        raises = [node for node in nodes if isinstance(node, ast.Raise)]
        raising = {id(node) for statement in raises for node in ast.walk(statement)}
        rest = [node for node in nodes if id(node) not in raising]
        if sum(isinstance(node, ast.stmt) for node in rest) < _FEWEST_STATEMENTS:
            continue
        columns = {
            "method": id(function) in methods,
            "depth": max(_depth(statement) for statement in body),
            **_signature(function, documented or ""),
            **_counts(rest),
        }
        yield tuple(str(int(columns[name])) for name in _COLUMNS), str(int(bool(raises)))


def _signature(function: _Function, documented: str) -> dict[str, int]:
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    defaults = [value for value in (*given.defaults, *given.kw_defaults) if value is not None]
    return {
        "private": function.name.startswith("_"),
        "name_length": len(function.name),
        "decorators": len(function.decorator_list),
        "arguments": len(named),
        "defaults": len(defaults),
        "starred": (given.vararg is not None) + (given.kwarg is not None),
        "doc_lines": len(documented.splitlines()),
    }


def _counts(nodes: list[ast.AST]) -> dict[str, int]:
    kinds = Counter(type(node) for node in nodes)
    formatted = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    # One string each: how Python takes an f-string apart depends on its version.
    parts = {id(part) for string in formatted for part in ast.walk(string) if part is not string}
    whole = [node for node in nodes if id(node) not in parts]
    literals = Counter(type(node.value) for node in whole if isinstance(node, ast.Constant))
    return {
        "statements": sum(isinstance(node, ast.stmt) for node in nodes),
        "ifs": kinds[ast.If],
        "loops": kinds[ast.For] + kinds[ast.While],
        "returns": kinds[ast.Return],
        "assignments": kinds[ast.Assign] + kinds[ast.AugAssign] + kinds[ast.AnnAssign],
        "calls": kinds[ast.Call],
        "attributes": kinds[ast.Attribute],
        "names": len({node.id for node in nodes if isinstance(node, ast.Name)}),
        "comparisons": kinds[ast.Compare],
        "connectives": kinds[ast.BoolOp],
        "negations": kinds[ast.Not],
        "strings": literals[str] + sum(isinstance(node, ast.JoinedStr) for node in whole),
        "numbers": literals[int] + literals[float] + literals[complex],
        "nones": literals[type(None)],
        "subscripts": kinds[ast.Subscript],
    }


def _depth(node: ast.AST) -> int:
    inner = max((_depth(child) for child in ast.iter_child_nodes(node)), default=0)
    return inner + isinstance(node, _BLOCKS)


COMPETITION = Competition(
    id="raising-functions",
    title="Does the function raise?",
    kind="table",
    metric="roc_auc",
    target="raises",
    features=_COLUMNS,
    id_prefix="r",
    train_rows=2500,
    test_rows=5000,
    sample_predictions=("0.5",),
    sources=("matplotlib", "numpy", "pandas", "scikit-learn", "scipy", "statsmodels"),
    examples=_examples,
    page=_PAGE,
)
