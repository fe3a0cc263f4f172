"""In the real sandbox: honest stages arrive, forged ones do not, not even past the screen."""

import importlib.util
from pathlib import Path

import pytest

from mle_rl.instrumentation import insert_by_syntax, syntax
from mle_rl.records import Limits
from mle_rl.sandbox import Job, LocalPool

_SPEC = importlib.util.spec_from_file_location("forgeries", Path(__file__).parent / "forgeries.py")
forgeries = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(forgeries)


@pytest.fixture(scope="module")
def pool():
    with LocalPool(workers=1) as pool:
        yield pool


def stages(pool, data, code: str) -> list[str]:
    insertions = insert_by_syntax(code).insertions
    execution = pool.run(Job(code, data, insertions, Limits(timeout_s=30)))
    return [marker.stage for marker in execution.markers]


def test_honest_stages_arrive_with_their_values(pool, data):
    code = (
        "import pandas as pd\nfrom sklearn.linear_model import LogisticRegression\n"
        "train = pd.read_csv('input/train.csv')\nmodel = LogisticRegression()\n"
        "model.fit(train[['a']][20:], train.target[20:])\nvalid = train[:20]\n"
        "print('val', model.score(valid[['a']], valid.target))\n1 / 0\n"
    )
    execution = pool.run(Job(code, data, insert_by_syntax(code).insertions))
    assert execution.status == "error"
    assert [m.stage for m in execution.markers] == [
        "packages_imported", "data_loaded", "model_defined", "model_trained",
        "validation_score_seen",
    ]  # fmt: skip
    assert execution.markers[-1].value == float(execution.stdout.split()[1])
    assert 'File "program.py", line 8, in <module>' in execution.stderr
    assert "instrumentation" not in execution.stderr


# The sandbox would import torch for this one alone.
@pytest.mark.parametrize("name", [n for n in forgeries.BELIEVED if n != "loop_without_a_step"])
def test_forged_stages_do_not_arrive(name, pool, data):
    found = stages(pool, data, forgeries.program(forgeries.BELIEVED[name]))
    assert set(found) <= {"packages_imported", "model_defined"}


@pytest.mark.parametrize("name", forgeries.REACHING)
def test_nor_past_the_screen(name, pool, data, monkeypatch):
    monkeypatch.setattr(syntax, "screen", lambda tree, finder: None)
    found = stages(pool, data, forgeries.program(forgeries.REACHING[name]))
    really = {"model_defined"} if name == "replaced_method" else set()
    assert set(found) <= {"packages_imported"} | really
