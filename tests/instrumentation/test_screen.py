"""The screen trusts what people write, and says what it distrusts and where."""

from pathlib import Path

import numpy as np
import pytest

from mle_rl.agent import grammar
from mle_rl.agent.grammar import TaskShape
from mle_rl.instrumentation import insert_by_syntax, strip_magics, trusted, why_not_trusted

PROGRAMS = sorted((Path(__file__).parent.parent / "fixtures" / "programs").glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_fixture_programs_are_trusted(path):
    code = strip_magics(path.read_bytes().decode("latin-1"))
    assert trusted(code) == (path.stem != "reads_own_source"), why_not_trusted(code)


def test_generated_programs_are_trusted():
    rng = np.random.default_rng(1)
    for index in range(60):
        kind = ("text", "image", "table")[index % 3]
        shape = TaskShape(kind=kind, target="target", output="label", text_column="text")
        code = grammar.write(grammar.sketch(shape, rng), shape).code
        assert why_not_trusted(code) is None


@pytest.mark.parametrize(
    "code",
    [
        "import gc\ngc.collect()\n",
        "import sys\nsys.stdout = open('log.txt', 'w')\nsys.exit(0)\n",
        "import warnings\nwarnings.warn = lambda *a, **k: None\n",
        "import pandas as pd\npd.options.mode.chained_assignment = None\n",
        "from scipy import signal\nfrom pandas.api.types import is_numeric_dtype\n",
        "import numpy as np\nx = np.load('input/a.npy', allow_pickle=True)\n",
        "import torch\ntorch.backends.cudnn.deterministic = True\n",
        "class C:\n    def __init__(self, **k):\n        for n in k: setattr(self, n, k[n])\n",
        "import sklearn.svm as s\nmodel = getattr(s, 'SVC')()\n",
        "net = object()\nfor m in net.modules(): print(m.__class__.__name__)\n",
        "import pickle\nprint(pickle.loads(pickle.dumps([1])))\n",
        "grid = {'model__regressor__alpha': [1]}\n",
        "frame = 1\nframe.query('a > 3')\nframe.columns = ['a']\n",
    ],
)
def test_what_people_write_is_trusted(code):
    assert why_not_trusted(code) is None


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("x = 1\nimport ctypes\n", "line 2 imports ctypes"),
        ("from .helper import x\n", "line 1 imports from a package of its own"),
        ("from pandas import _libs\n", "line 1 takes _libs from pandas"),
        ("import pandas._libs\n", "line 1 imports the private module pandas._libs"),
        ("from logging import sys\n", "line 1 takes sys from logging"),
        ("import os as o\no.system('ls')\n", "line 2 uses os.system"),
        ("from os import fdopen\n", "line 1 takes os.fdopen"),
        ("f = lambda: 1\nprint(f.__code__)\n", "line 2 reaches for __code__"),
        ("g = exec\n", "line 1 uses exec"),
        ("import sys\nm = [sys][0]\nprint(m.modules)\n", "line 3 reaches for modules"),
        ("x = '{0.__globals__}'\n", "line 1 has the text '__globals__'"),
        ("x = b'co_consts'\n", "line 1 has the text 'co_consts'"),
        ("open('helper.py', 'w')\n", "line 1 names a file of code"),
        ("import emoji\nfor emoji.x in [1]: pass\n", "line 2 replaces x of emoji"),
        ("import numpy as np\nwith open('x') as np.load: pass\n", "line 2 replaces load of numpy"),
        ("import numpy as np\ndel np.load\n", "line 2 replaces load of numpy"),
        ("def __reduce__(self): pass\n", "line 1 defines __reduce__"),
        ("x.eval('a' + b)\n", "line 1 calls eval on a text put together at run time"),
        ("x = getattr(y, z)\n", "line 1 uses getattr with a name put together at run time"),
    ],
)
def test_what_is_distrusted_and_why(code, reason):
    assert why_not_trusted(code) == reason
    assert insert_by_syntax(code).refused == f"not trusted: {reason}"
    assert insert_by_syntax(code).insertions == ()


def test_a_text_that_is_no_program():
    assert trusted("def f(:\n")
    assert insert_by_syntax("def f(:\n").refused.startswith("does not parse: ")
    assert insert_by_syntax("x = '\0'\n").refused.startswith("does not parse: ")
    deep = "x = " + "-" * 2000 + "1\n"
    assert insert_by_syntax(deep).refused == "too deeply nested to read"


_LONG = "0x" + "f" * 5000


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("@f" + ".a()" * 300 + "\ndef g(): pass\n", "too deeply nested to read"),
        (f"print({_LONG})\n", "cannot be read: Exceeds the limit"),
        (f"opts[{_LONG}].step()\n", "cannot be read: Exceeds the limit"),
        (f"if {_LONG} == __name__: pass\n", "cannot be read: Exceeds the limit"),
    ],
)
def test_what_python_runs_and_nobody_can_read_is_not_instrumented(code, why):
    """It is the program's own matter: raising here would end the run that sampled it."""
    compile(code, "program.py", "exec")
    assert insert_by_syntax(code).refused.startswith(why)
