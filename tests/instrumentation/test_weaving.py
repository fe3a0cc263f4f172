"""Weaving in small: places, values, what a witness does and does not do."""

import ast
import pickle
import traceback
import warnings

import numpy as np
import pytest
import torch

from mle_rl.errors import MleRlError
from mle_rl.instrumentation import Insertion, insert_by_syntax, weave
from mle_rl.instrumentation.evidence import is_given_file, is_model, now_ns, number, reported
from mle_rl.instrumentation.genuine import Installed
from mle_rl.instrumentation.weaving import _Loom
from mle_rl.instrumentation.witness import Run, Witness


def run(code: str, insertions=None, filename="program.py"):
    """Runs a program in this process; returns what was reported, and its names."""
    found = insert_by_syntax(code).insertions if insertions is None else insertions
    marks: list[tuple[str, float | None]] = []
    woven = weave(code, found, filename, lambda s, v: marks.append((s, v)), tripwire=False)
    names = {"__name__": "__main__"}
    exec(woven, names)
    return marks, names


def around(code: str, part: str, stage: str, value=None, check="word") -> Insertion:
    """An insertion around the first expression that reads ``part``."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.expr) and ast.get_source_segment(code, node) == part:
            span = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
            return Insertion(*span[:2], "around", stage, value, *span[2:], check)
    raise AssertionError(f"{part!r} is not in the program")


def test_without_insertions_it_is_plain_compile():
    code = "def f(x):\n    'doc'\n    return x + 1\n"
    assert weave(code, (), "p.py", print).co_code == compile(code, "p.py", "exec").co_code


def test_an_insertion_survives_json():
    insertion = Insertion(3, 4, "around", "model_trained", None, 3, 20, "callee")
    assert Insertion.from_json(insertion.to_json()) == insertion
    with pytest.raises(MleRlError, match="not a recorded insertion"):
        Insertion.from_json({"line": 3})
    with pytest.raises(MleRlError, match="no known stage"):
        Insertion.from_json({**insertion.to_json(), "stage": "won"})


@pytest.mark.parametrize("position", ["around", "after"])
def test_an_insertion_of_another_text_is_refused(position):
    insertion = Insertion(1, 0, position, "model_trained", None, 1, 7, "word")
    with pytest.raises(MleRlError, match="belongs to another text"):
        weave("x = 1", [insertion], "p.py", print, tripwire=False)


def test_values_pass_through_unchanged_and_once():
    code = "seen = []\ndef f():\n    seen.append(1)\n    return seen\nresult = f()\n"
    marks, names = run(code, [around(code, "f()", "model_trained")])
    assert marks == [("model_trained", None)]
    assert names["result"] is names["seen"]
    assert names["seen"] == [1]


def test_equal_expressions_in_one_f_string_are_each_evaluated_once():
    code = "n = []\ndef f():\n    n.append(0)\n    return len(n)\ns = f'{f()} {f()} {n!r:>9}'\n"
    marks, names = run(code, [around(code, "f()", "model_trained")])
    assert names["s"] == "1 2    [0, 0]"
    assert marks == [("model_trained", None)]


def test_several_places_in_one_expression():
    code = "x = abs(max([-2, -3]))\n"
    inner = around(code, "max([-2, -3])", "data_loaded")
    outer = around(code, "abs(max([-2, -3]))", "model_trained")
    both = [inner, outer, around(code, "abs(max([-2, -3]))", "model_defined")]
    for order in (both, both[::-1]):
        marks, names = run(code, order)
        assert names["x"] == 2
        assert {stage for stage, _ in marks} == {i.stage for i in both}
        assert marks[0][0] == "data_loaded"


def test_places_after_statements_at_the_same_place_keep_their_order():
    code = "loss = 0.5\nfor i in range(3):\n    loss /= 2\n"
    first = Insertion(1, 0, "after", "training_loss_seen", "loss", 1, 10, "word")
    loop = Insertion(3, 4, "after", "training_loss_seen", "loss", 3, 13, "word")
    unbound = Insertion(1, 0, "after", "validation_score_seen", "score", 1, 10, "word")
    marks, _ = run(code, [first, loop, unbound])
    assert [v for s, v in marks if s == "training_loss_seen"] == [0.5, 0.25, 0.125, 0.0625]
    assert "validation_score_seen" not in dict(marks)


def test_in_a_long_loop_values_are_reported_ever_more_seldom():
    code = "for i in range(100_000):\n    loss = i\n"
    place = Insertion(2, 4, "after", "training_loss_seen", "loss", 2, 12, "word")
    marks, _ = run(code, [place])
    assert len(marks) < 100
    assert marks[-1][1] >= 50_000


def test_a_place_in_dead_code_is_never_reported():
    code = "def f():\n    return abs(1)\n    abs(2)\nf()\nif 0:\n    abs(3)\n"
    places = [around(code, f"abs({n})", "model_trained") for n in (2, 3)]
    assert run(code, places)[0] == []


def test_tracebacks_and_lines_are_those_of_the_original():
    code = "def f(x):\n    return (x\n        .missing(\n            1))\n\ny = 1\nf(y)\n"
    place = around(code, "f(y)", "model_trained")
    inner = Insertion(2, 12, "around", "model_trained", None, 4, 14, "callee")
    texts = []
    for insertions in ((), (place, inner)):
        try:
            exec(weave(code, insertions, "program.py", print, tripwire=False), {})
        except AttributeError as error:
            summary = traceback.extract_tb(error.__traceback__)[1:]
            texts.append([(f.lineno, f.end_lineno, f.colno, f.end_colno, f.name) for f in summary])
    assert texts[0] == texts[1]
    assert [place[0] for place in texts[0]] == [7, 3]


def test_no_warning_is_added():
    code = "x = abs(1)\nprint\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(code, [around(code, "abs(1)", "model_trained")])


def test_nesting_at_the_limit_runs_as_it_would_have():
    """The compiler takes deeper nesting from a text than from a tree; then nothing is woven in."""
    code = "y = abs(-1)\nz = " + " + ".join(["1"] * 1300) + "\n"
    with pytest.raises(RecursionError):
        compile(ast.parse(code), "program.py", "exec")
    place = Insertion(1, 4, "around", "model_trained", None, 1, 11, "word")
    marks, names = run(code, [place])
    assert (names["z"], marks) == (1300, [])


def test_what_does_not_compile_fails_as_it_would_have():
    code = "import numpy\ndef f():\n    yield 1\nreturn 3\n"
    insertion = Insertion(1, 0, "after", "packages_imported", None, 1, 12, "import")
    with pytest.raises(SyntaxError) as plain:
        compile(code, "program.py", "exec")
    with pytest.raises(SyntaxError) as woven:
        weave(code, [insertion], "program.py", print)
    assert woven.value.args == plain.value.args
    assert woven.value.__context__ is None


def test_a_witness_is_pickled_as_a_function_that_gives_the_value():
    witness = Witness(lambda *seen: None)
    again = pickle.loads(pickle.dumps(witness))
    assert again.__call__((7, 8)) == 7
    assert not isinstance(again, Witness)


def test_a_witness_swallows_its_own_errors_only():
    witness = Witness(lambda *seen: 1 / 0)
    assert witness.__call__((7,)) == 7


def test_a_witness_has_no_name_in_the_program():
    code = "x = abs(1)\n"
    _, names = run(code, [around(code, "abs(1)", "model_trained")])
    assert set(names) == {"__name__", "__builtins__", "x"}


def test_secrets_stay_out_of_names_and_texts():
    run_state = Run(print, "program.py")
    loom = _Loom(run_state)
    code = "def f():\n    return abs(1)\n"
    tree = ast.parse(code)
    loom.place(tree, [around(code, "abs(1)", "model_trained")])
    woven = loom.embed(compile(tree, "program.py", "exec"))

    def constants(block):
        for constant in block.co_consts:
            yield from constants(constant) if hasattr(constant, "co_consts") else [constant]

    kept = list(constants(woven))
    assert any(isinstance(constant, Witness) for constant in kept)
    assert not any(isinstance(c, str) and loom.nonce in c for c in kept)


def test_closing_a_run_ends_credit():
    marks = []
    run_state = Run(lambda *mark: marks.append(mark), "program.py")
    run_state.credit("data_loaded", None)
    run_state.close()
    run_state.credit("model_trained", None)
    assert marks == [("data_loaded", None)]


INSTALLED = Installed("program.py")


class Lying(float):
    def __float__(self):
        raise AssertionError("a witness must not run the program's code")


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (0.5, 0.5),
        (3, 3.0),
        (True, None),
        (float("nan"), None),
        (float("inf"), None),
        (10**400, None),
        ("0.5", None),
        (None, None),
        (Lying(0.5), None),
        ([0.2, 0.4], pytest.approx(0.3)),
        ([0.2, "x"], None),
        ([], None),
        ([[0.1]], None),
        (np.float64(0.25), 0.25),
        (np.float32("nan"), None),
        (np.array(0.75), 0.75),
        (np.array([0.2, 0.4]), pytest.approx(0.3)),
        (np.array([[0.2, 0.4]]), None),
        (np.array(["a"]), None),
        (torch.tensor(0.5, requires_grad=True), 0.5),
        (torch.tensor([1.0, 2.0]), 1.5),
        (torch.zeros(2, 2), None),
    ],
)
def test_numbers(seen, expected):
    try:
        found = number(seen, INSTALLED)
    except Exception:  # as inside a witness: no number, no credit
        found = None
    assert found == expected


def test_losses_and_scores_inside_results():
    results = {"fit_time": np.ones(2), "test_score": np.array([0.5, 0.7])}
    assert reported(results, INSTALLED, loss=False) == pytest.approx(0.6)
    assert reported({"loss": [0.9, 0.4]}, INSTALLED, loss=True) == 0.4
    assert reported({"eval_loss": 0.3}, INSTALLED, loss=False) == 0.3
    assert reported([0.9, 0.5], INSTALLED, loss=True) == 0.5
    assert reported({}, INSTALLED, loss=True) is None


def test_models_and_others():
    from sklearn.cluster import FeatureAgglomeration
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    models = (
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GridSearchCV(LogisticRegression(), {}),
        torch.nn.Linear(1, 1),
        torch.nn.Sequential(torch.nn.Linear(1, 1)),
    )
    others = (
        StandardScaler(),
        make_pipeline(StandardScaler()),
        FeatureAgglomeration(),
        torch.nn.ReLU(),
        torch.nn.Sequential(),
        LogisticRegression,
        3,
    )
    assert all(is_model(thing, INSTALLED) for thing in models)
    assert not any(is_model(thing, INSTALLED) for thing in others)


def test_whose_code_it_is():
    import math

    import pandas as pd
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score

    class Mine(LogisticRegression):
        def score(self, X, y):
            return 1.0

    assert INSTALLED.of_called(pd.read_csv) == "pandas"
    assert INSTALLED.of_called(accuracy_score) == "sklearn"
    assert INSTALLED.of_called(np.load) == "numpy"
    assert INSTALLED.of_called(np.loadtxt) == "numpy"
    assert INSTALLED.of_called(math.isfinite) == "math"
    assert INSTALLED.of_called(LogisticRegression) == "sklearn"
    assert INSTALLED.of_called(Mine) is None
    assert INSTALLED.of_called(test_whose_code_it_is) is None
    assert INSTALLED.of_method(Mine(), "fit") == "sklearn"
    assert INSTALLED.of_method(Mine(), "score") is None
    assert INSTALLED.of_method(torch.zeros(1), "backward") == "torch"
    assert INSTALLED.of_method(torch.zeros(1), "item") == "torch"
    assert INSTALLED.of_method(np, "load") == "numpy"


def test_a_given_file_is_old_and_below_the_folder(tmp_path):
    import os
    import time

    given = tmp_path / "train.csv"
    given.write_text("a\n1\n")
    other = tmp_path.parent / f"{tmp_path.name}.csv"
    other.write_text("a\n1\n")
    while now_ns() <= max(os.stat(path).st_ctime_ns for path in (given, other)):
        time.sleep(0.001)  # until the clock of file times has moved on
    began = now_ns()
    folder = f"{tmp_path}{os.sep}"
    assert is_given_file(str(given), folder, began)
    assert is_given_file(given, folder, began)
    assert is_given_file([given, {"train": str(given)}], folder, began)
    with given.open() as file:
        assert is_given_file(file, folder, began)
    assert not is_given_file([], folder, began)
    assert not is_given_file([given, other], folder, began)
    assert not is_given_file(str(tmp_path / ".." / other.name), folder, began)
    assert not is_given_file("missing.csv", folder, began)
    assert not is_given_file(3, folder, began)
    given.write_text("a\n2\n")
    os.utime(given, (0, 0))
    assert not is_given_file(str(given), folder, began)
