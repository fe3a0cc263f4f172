"""The verifier accepts exactly the permitted insertions, and refuses every other change."""

import ast
import io
import random
import tokenize
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mle_rl.agent import grammar
from mle_rl.agent.grammar import TaskShape
from mle_rl.instrumentation import insert_by_syntax, render, verify
from mle_rl.instrumentation.rendering import MESSAGES, print_line
from mle_rl.instrumentation.syntax import bodies
from mle_rl.instrumentation.verifier import CHANGED, UNPARSABLE
from mle_rl.records import STAGES

FIXTURES = Path(__file__).parent.parent / "fixtures" / "programs"


def fixture_programs() -> list[str]:
    """The fixture programs that parse and are trusted."""
    texts = []
    for path in sorted(FIXTURES.glob("*.py")):
        if path.stem in ("latin1_encoding", "notebook_cells", "syntax_warnings"):
            continue
        code = path.read_text()
        if insert_by_syntax(code).refused is None:
            texts.append(code)
    return texts


def generated_program(seed: int) -> str:
    """A program as the policy's corpus has it, without slips."""
    rng = np.random.default_rng(seed)
    kinds = [("text", "probabilities"), ("image", "label"), ("table", "number")]
    kind, output = kinds[seed % 3]
    shape = TaskShape(kind=kind, target="target", output=output, text_column="text")
    return grammar.write(grammar.sound(grammar.sketch(shape, rng)), shape).code


PROGRAMS = fixture_programs()


def insert_prints(code: str, rng: random.Random, count: int) -> tuple[str, list[str]]:
    """The program with permitted prints at random places, and the lines that were inserted.

    Written on the tree's own text (``ast.unparse``), in which every statement has a line to itself.
    """
    tree = ast.parse(ast.unparse(ast.parse(code)))
    blocks = [b for node in ast.walk(tree) for b in bodies(node) if b]
    lines = []
    for _ in range(count):
        stage = rng.choice(STAGES)
        line = print_line(stage, rng.choice([None, "loss", "x"]))
        block = rng.choice(blocks)
        least = 1 if isinstance(block[0], ast.ImportFrom) or _is_text(block[0]) else 0
        block.insert(rng.randint(least, len(block)), ast.parse(line).body[0])
        lines.append(line)
    return ast.unparse(tree) + "\n", lines


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_permitted_insertions_are_accepted(seed):
    rng = random.Random(seed)
    code = ast.unparse(ast.parse(rng.choice([*PROGRAMS, generated_program(seed)]))) + "\n"
    rewritten, lines = insert_prints(code, rng, rng.randint(1, 6))
    reading = verify(code, rewritten)
    assert reading.refused is None, rewritten
    taken = verify(code, rewritten, evidence=False)
    stages = {s for s, message in MESSAGES.items() for line in lines if message in line}
    assert {i.stage for i in taken.insertions} | set(taken.unsupported) == stages
    assert all(i.check == "word" for i in taken.insertions)
    assert {i.stage for i in reading.insertions} <= stages
    assert set(reading.insertions) <= set(insert_by_syntax(code).insertions)


def mutate(text: str, rng: random.Random, spared: list[str]) -> str:
    """The text with one token changed, deleted, doubled or swapped with the next."""
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type in (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP)
        and token.line.strip() not in spared
    ]
    token = rng.choice(tokens)
    others = {
        tokenize.NAME: ["x", "fit", "None", "not", "return", token.string + "_"],
        tokenize.NUMBER: ["0", "7", "1.5", "True"],
        tokenize.STRING: ['""', "b''", "'other'", "f'{x}'", token.string + " ''"],
        tokenize.OP: ["+", "-", "==", "(", ")", ",", ":", ".", "="],
    }[token.type]
    replacement = rng.choice([*others, "", token.string * 2, f"{token.string} {token.string}"])
    lines = text.splitlines(keepends=True)
    (row, start), (end_row, end) = token.start, token.end
    before = "".join(lines[: row - 1]) + lines[row - 1][:start]
    after = lines[end_row - 1][end:] + "".join(lines[end_row:])
    return before + replacement + after


def same_without(code: str, rewritten: str, inserted: list[str]) -> bool:
    """The oracle: whether the trees are equal once exactly the inserted prints are taken out.

    Independent of the verifier: such prints are dropped wherever they stand. (No fixture program
    prints these texts itself.)
    """
    dumps = {ast.dump(ast.parse(line).body[0]) for line in inserted}

    class TakeOut(ast.NodeTransformer):
        def generic_visit(self, node):
            super().generic_visit(node)
            for field in ("body", "orelse", "finalbody"):
                block = getattr(node, field, None)
                if isinstance(block, list):
                    kept = [s for s in block if ast.dump(s) not in dumps]
                    setattr(node, field, kept)
            return node

    try:
        return ast.dump(TakeOut().visit(ast.parse(rewritten))) == ast.dump(ast.parse(code))
    except (SyntaxError, ValueError):
        return False


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9))
def test_a_mutation_of_any_other_token_is_refused(seed):
    """Refused, unless the changed token means the same to Python (as ``(x)`` for ``x`` does)."""
    rng = random.Random(seed)
    code = ast.unparse(ast.parse(rng.choice(PROGRAMS))) + "\n"
    rewritten, inserted = insert_prints(code, rng, rng.randint(0, 3))
    honest = verify(code, rewritten)
    mutated = mutate(rewritten, rng, inserted)
    reading = verify(code, mutated)
    if same_without(code, mutated, inserted):
        assert reading == honest
    else:
        assert reading.refused is not None, mutated
        assert reading.insertions == ()


CODE = """
import pandas as pd
from sklearn.linear_model import LogisticRegression

train = pd.read_csv("input/train.csv")
model = LogisticRegression()
if len(train) > 3:
    model.fit(train[["a"]], train["y"])


def predict():
    return model.predict(pd.read_csv("input/test.csv"))


print("trained model")
"""


def with_line(after: str, line: str, indent: str = "") -> str:
    return CODE.replace(after, f"{after}\n{indent}{line}")


@pytest.mark.parametrize(
    ("rewritten", "stages", "unsupported"),
    [
        (CODE, (), ()),
        (with_line("LogisticRegression()", 'print("defined model")'), ("model_defined",), ()),
        (with_line("LogisticRegression()", 'print("Model defined!")'), ("model_defined",), ()),
        (with_line("LogisticRegression()", 'print("loaded data")'), ("data_loaded",), ()),
        (with_line("LogisticRegression()", 'print("trained model")'), (), ("model_trained",)),
        (with_line('train["y"])', 'print("trained model")', "    "), ("model_trained",), ()),
        (with_line('train["y"])', 'print("trained model")'), ("model_trained",), ()),
        (
            with_line("def predict():", 'print("predicted test labels")', "    "),
            ("test_labels_predicted",),
            (),
        ),
        ('print("imported packages")\n' + CODE, (), ("packages_imported",)),
        (CODE + 'print("trained model")\n', ("model_trained",), ()),
        (with_line("LogisticRegression()", 'print(f"training loss: {x:.3f}")'), (), (STAGES[3],)),
        (with_line("LogisticRegression()", 'print("training loss:", x)'), (), (STAGES[3],)),
    ],
)
def test_where_a_print_may_stand(rewritten, stages, unsupported):
    reading = verify(CODE, rewritten)
    assert reading.refused is None
    assert tuple(dict.fromkeys(i.stage for i in reading.insertions)) == stages
    assert reading.unsupported == unsupported


@pytest.mark.parametrize(
    ("rewritten", "reason"),
    [
        (CODE.replace("train.csv", "test.csv"), CHANGED),
        (CODE.replace("> 3", "> 4"), CHANGED),
        (CODE.replace('print("trained model")\n', ""), CHANGED),
        (CODE.replace("model = LogisticRegression()\n", ""), CHANGED),
        (CODE + "x = 1\n", CHANGED),
        (CODE + "import os\n", CHANGED),
        (
            with_line('    model.fit(train[["a"]], train["y"])', 'else:\n    print("loaded data")'),
            CHANGED,
        ),
        (CODE + 'if True:\n    print("trained model")\n', CHANGED),
        (CODE + 'print("trained model", end="")\n', CHANGED),
        (CODE + 'sys.stdout.write("trained model")\n', CHANGED),
        (CODE + 'print("hello")\n', "prints something that is no stage"),
        (CODE + "print(model)\n", "prints something that is no stage"),
        (CODE + 'print(*["trained model"])\n', "prints something that is no stage"),
        (CODE + 'print(f"training loss: {f()}")\n', "prints something other than a variable"),
        (CODE + 'print("training loss:", loss.item())\n', "prints something other than a variable"),
        (CODE + 'print(f"training loss: {a} {b}")\n', "prints more than one variable"),
        (CODE.replace("import pandas as pd", "import pandas as pd;"), None),
        (CODE.replace("len(train) > 3", "(len(train)) > (3)"), None),
        (CODE[:-5], UNPARSABLE),
        ("", CHANGED),
    ],
)
def test_what_is_refused(rewritten, reason):
    assert verify(CODE, rewritten).refused == reason


def test_an_original_that_is_not_trusted_is_refused():
    code = "import gc\nprint(gc.get_objects())\n"
    assert verify(code, code).refused.startswith("not trusted")


def test_rendering_shows_what_is_woven():
    instrumented = insert_by_syntax(CODE)
    text = render(CODE, instrumented.insertions)
    assert text.splitlines()[3:5] == ['print("imported packages")', ""]
    assert '        print("trained model")' not in text
    assert '    print("trained model")\n' in text
    assert verify(CODE, text).insertions == instrumented.insertions


BRANCHES = """
try:
    match kind:
        case "a" if ready:
            x = 1
        case [first, *rest]:
            x = 2
except ValueError as problem:
    x = 3
else:
    x = 4
finally:
    async def f(a, /, b: int = 1, *, c=2) -> int:
        return await g(a)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"a" if ready', '"b" if ready'),
        ('"a" if ready', '"a" if steady'),
        ('"a" if ready', '"a"'),
        ("*rest", "*others"),
        ("ValueError", "KeyError"),
        ("as problem", "as fault"),
        ("a, /, b", "a, b, /"),
        ("b: int", "b: str"),
        ("-> int", "-> str"),
        ("async def", "def"),
        ("return await g", "return g"),
        ("else:\n    x = 4\n", ""),
        ("except ValueError as problem:\n    x = 3\n", "except ValueError as problem:\n    pass\n"),
    ],
)
def test_every_part_of_a_statement_is_compared(before, after):
    assert verify(BRANCHES, BRANCHES).refused is None
    changed = BRANCHES.replace(before, after)
    assert changed != BRANCHES
    assert verify(BRANCHES, changed).refused in (CHANGED, UNPARSABLE)
    inside = BRANCHES.replace("x = 2", 'x = 2\n            print("loaded data")')
    assert verify(BRANCHES, inside).unsupported == ("data_loaded",)
