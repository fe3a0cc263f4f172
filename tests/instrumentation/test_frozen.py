"""The shipped policy as inserter: it agrees with the syntax tree on programs it has never seen."""

import numpy as np
import pytest
import torch

from mle_rl.agent import grammar, load_policy
from mle_rl.agent.corpus import invented_shape
from mle_rl.errors import MleRlError
from mle_rl.instrumentation import agreement, frozen_inserter, insert_by_syntax
from mle_rl.records import STAGES


@pytest.fixture(scope="module")
def tiny():
    return load_policy("tiny")


def held_out(count: int, seed: int) -> list[str]:
    """Programs of invented tasks that can be instrumented, slips included."""
    rng = np.random.default_rng(seed)
    codes: list[str] = []
    while len(codes) < count:
        shape = invented_shape(rng)
        code = grammar.write(grammar.sketch(shape, rng), shape).code
        if insert_by_syntax(code).refused is None:
            codes.append(code)
    return codes


def check_agreement(tiny, count: int) -> None:
    codes = held_out(count, seed=20_000 + count)
    inserter = frozen_inserter(tiny)
    instrumented = inserter.insert(codes)
    assert inserter.report.refused_share <= 0.05
    rows = agreement(codes, instrumented, inserter.report)
    shown = sum(row["programs"] for row in rows)
    found = sum(row["programs"] * row["recall"] for row in rows if row["programs"])
    assert found / shown >= 0.95, rows
    assert [row["stage"] for row in rows] == list(STAGES)


def test_it_agrees_on_a_few_programs(tiny):
    check_agreement(tiny, 80)


@pytest.mark.slow
def test_it_agrees_on_three_hundred_programs(tiny):
    check_agreement(tiny, 300)


def test_its_answer_does_not_depend_on_the_batch(tiny):
    codes = held_out(6, seed=5)
    together = frozen_inserter(tiny).insert(codes)
    alone = frozen_inserter(tiny, batch_size=1).insert(codes)
    assert together == alone


def test_training_the_policy_leaves_it_alone(tiny):
    inserter = frozen_inserter(tiny)
    weight = next(tiny.model.parameters())
    before = weight.detach().clone()
    with torch.no_grad():
        weight += 1.0
    inserter.check_frozen()
    with torch.no_grad():
        weight.copy_(before)


def test_a_program_too_long_for_it_falls_back(tiny):
    code = "import pandas as pd\ntrain = pd.read_csv('input/train.csv')\n" + "x = 1\n" * 400
    inserter = frozen_inserter(tiny)
    (instrumented,) = inserter.insert([code])
    assert instrumented.insertions == insert_by_syntax(code).insertions
    assert (instrumented.source, instrumented.refused) == ("syntax", "empty answer")


def test_tiny_has_not_learnt_to_rewrite(tiny):
    with pytest.raises(MleRlError, match="anchors"):
        frozen_inserter(tiny, format="rewrite")
