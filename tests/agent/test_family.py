"""The family of a program is what it makes, whatever it is called and however it is imported."""

import warnings
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_rl import tasks
from mle_rl.agent import grammar
from mle_rl.agent.family import NO_MODEL, entropy, model_family
from mle_rl.agent.grammar import TaskShape
from mle_rl.agent.grammar.families import CLASSIFIERS


@pytest.mark.parametrize(
    ("code", "family"),
    [
        ("from sklearn.linear_model import Ridge\nRidge(alpha=2)", "Ridge"),
        ("from sklearn.svm import SVC as Machine\nMachine().fit(X, y)", "SVC"),
        ("import sklearn.ensemble as e\ne.RandomForestClassifier()", "RandomForest"),
        ("import sklearn\nsklearn.ensemble.RandomForestRegressor()", "RandomForest"),
        ("import sklearn.neighbors\nsklearn.neighbors.KNeighborsClassifier(3)", "KNeighbors"),
        ("import xgboost as xgb\nxgb.train({}, d)\nxgb.XGBClassifier()", "xgboost"),
        ("from sklearn.linear_model import Ridge, Lasso\nLasso()\nLasso(alpha=3)", "Lasso"),
    ],
)
def test_it_is_what_is_made(code, family):
    assert model_family(code) == family


@pytest.mark.parametrize(
    "code",
    [
        "from sklearn.linear_model import Ridge",
        "class Ridge: pass\nRidge()",
        "from sklearn.linear_model import enet_path\nenet_path(X, y)",
        "from sklearn.pipeline import make_pipeline, Pipeline\nPipeline([])",
        "from sklearn.decomposition import PCA\nPCA(3)",
        "import numpy as np\nnp.polyfit(x, y, 1)",
        "def (",
        "\0",
    ],
)
def test_what_makes_no_model_has_no_family(code):
    assert model_family(code) == NO_MODEL


def test_what_python_would_warn_of_is_not_said():
    """A policy writes much of this; nobody who reads a progress line wants to know."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model_family("x = 1if True else 2")
    assert not said


def test_a_combination_is_a_family_of_its_own_and_order_does_not_matter():
    imports = (
        "from sklearn.ensemble import VotingClassifier, RandomForestClassifier\n"
        "from sklearn.linear_model import LogisticRegression\n"
    )
    one = "VotingClassifier([('a', LogisticRegression()), ('b', RandomForestClassifier())])"
    other = "VotingClassifier([('a', RandomForestClassifier()), ('b', LogisticRegression())])"
    family = model_family(imports + one)
    assert family == model_family(imports + other) == "LogisticRegression+RandomForest+Voting"


def test_every_family_of_the_grammar_is_told_from_the_others():
    shape = TaskShape("text", "library", "probabilities")
    rng = np.random.default_rng(0)
    plain = {**grammar.sound(grammar.sketch(shape, rng)), "combine": None, "search": None}
    found = {
        name: model_family(grammar.write({**plain, "m1.family": name}, shape).code)
        for name in CLASSIFIERS
        if f"m1.{name}.{CLASSIFIERS[name].searched}" in plain
    }
    assert len(set(found.values())) == len(found) > 8
    assert NO_MODEL not in found.values()


@pytest.mark.parametrize("name", tasks.names())
def test_the_reference_programs_have_families(name):
    families = [
        model_family(program.code) for program in tasks.reference_programs(tasks.load(name))
    ]
    assert sum(family != NO_MODEL for family in families) >= 0.8 * len(families)
    assert len(set(families)) >= 8


@given(st.lists(st.sampled_from("abcd"), min_size=1))
def test_entropy_lies_between_one_family_and_all_equally_common(families):
    kinds = len(set(families))
    assert -1e-12 <= entropy(families) <= log(kinds) + 1e-12
    assert entropy(families * 3) == pytest.approx(entropy(families))


def test_entropy_of_known_shares():
    assert exp(entropy("aabbccdd")) == pytest.approx(4)
    assert entropy("aaab") == pytest.approx(0.75 * log(4 / 3) + 0.25 * log(4))
    assert entropy([]) == entropy("aa") == 0
