"""Methods without a language model: reproducible draws, and defaults that are valid everywhere."""

from itertools import islice

import numpy as np
import pytest

from mle_rl import tasks
from mle_rl.agent import grammar, task_shape
from mle_rl.agent.family import model_family
from mle_rl.agent.grammar import TaskShape
from mle_rl.records import Limits
from mle_rl.rollout.environment import Environment
from mle_rl.sandbox import LocalPool
from mle_rl.search.fixed import default_program, once, random_search

TEXT = TaskShape("text", "library", "probabilities")
TABLE = TaskShape("table", "visits", "number")


def drawn(seed, n=30, shape=TEXT):
    return [p.code for p in islice(random_search(shape, np.random.default_rng(seed)), n)]


def test_random_search_is_the_same_for_the_same_seed_and_another_for_another():
    assert drawn(0) == drawn(0)
    assert len(set(drawn(0)) & set(drawn(1))) < 5


def test_random_search_makes_no_slips():
    """Its programs are those of the sketches without their slips, draw for draw."""
    rng = np.random.default_rng(0)
    sketches = [grammar.sketch(TABLE, rng) for _ in range(30)]
    sound = [grammar.write(grammar.sound(s), TABLE).code for s in sketches]
    assert drawn(0, shape=TABLE) == sound
    assert sound != [grammar.write(s, TABLE).code for s in sketches]


@pytest.mark.parametrize(
    ("shape", "family"),
    [
        (TEXT, "LogisticRegression"),
        (TaskShape("text", "age", "number"), "Ridge"),
        (TaskShape("image", "label", "label"), "RandomForest"),
        (TABLE, "RandomForest"),
    ],
)
def test_a_default_is_one_plain_model_with_plain_settings(shape, family):
    code = default_program(shape).code
    assert model_family(code) == family
    (line,) = [line for line in code.splitlines() if line.startswith("model = ")]
    assert line.endswith("()"), "no keyword is set"


def test_a_default_is_proposed_once():
    program = default_program(TEXT)
    assert list(once(program)) == [program]


@pytest.mark.slow
@pytest.mark.parametrize("name", tasks.names())
def test_the_default_is_valid_on_every_task(name):
    task = tasks.load(name)
    with LocalPool(1) as pool:
        environment = Environment(task, pool, Limits(timeout_s=30.0))
        execution, outcome = environment.run(default_program(task_shape(task)))
    assert outcome.valid, execution.stderr or outcome.problem
