"""Best-of-k curves against brute force, and what an evaluation touches."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_rl import MleRlError
from mle_rl.records import Execution, Outcome, Program
from mle_rl.training.evaluate import Evaluation, Sample, best_of_k

scores = st.lists(
    st.one_of(st.none(), st.tuples(st.integers(-99, 99), st.floats(-9, 9))), min_size=1, max_size=8
)


@given(scores=scores, data=st.data(), higher=st.booleans())
def test_best_of_k_is_the_mean_over_all_subsets(scores, data, higher):
    """Distinct reward scores, so that the best of a subset is one sample."""
    known = {s[0]: s for s in scores if s is not None}
    scores = [None] * scores.count(None) + list(known.values())
    k = data.draw(st.integers(1, len(scores)))
    found = best_of_k(
        [s and s[0] for s in scores],
        [s and s[1] for s in scores],
        k,
        higher_is_better=higher,
    )
    choose = max if higher else min
    chosen = [
        choose(valid, key=lambda s: s[0])
        for subset in combinations(scores, k)
        if (valid := [s for s in subset if s is not None])
    ]
    subsets = len(list(combinations(scores, k)))
    assert found.any_valid == pytest.approx(len(chosen) / subsets)
    if chosen:
        expected = np.mean(chosen, axis=0)
        assert (found.reward_score, found.final_score) == pytest.approx(tuple(expected))
    else:
        assert np.isnan(found.final_score)


@pytest.mark.parametrize("k", [0, 4])
def test_more_than_there_are_is_refused(k):
    with pytest.raises(MleRlError, match="choose k up to n"):
        best_of_k([1.0, 2.0, None], [1.0, 2.0, None], k, higher_is_better=True)


def sample(code, reward_score, final_score):
    execution = Execution("ok", "", "", 1.0, 1.0, 1.0, "limits")
    outcome = Outcome((), reward_score is not None, reward_score, final_score)
    return Sample("scratch", Program("", code), execution, outcome)


@pytest.mark.parametrize("higher", [True, False])
def test_the_final_split_chooses_nothing(higher):
    """The best on the reward split is reported, though another is better on the final one."""
    sign = 1 if higher else -1
    evaluation = Evaluation(
        "task",
        higher,
        (
            sample("a", sign * 2.0, sign * 0.5),
            sample("b", sign * 1.0, sign * 3.0),
            sample("a", sign * 2.0, sign * 0.5),
            sample("c", None, None),
        ),
    )
    assert evaluation.best.program.code == "a"
    assert evaluation.optimism == pytest.approx(1.5)
    assert evaluation.valid_share == 0.75
    assert evaluation.distinct_valid == 2
    assert evaluation.mean_final_score == pytest.approx(sign * 4.0 / 3)


def test_nothing_valid_is_no_score_of_zero():
    evaluation = Evaluation("task", True, (sample("a", None, None),))
    assert evaluation.best is None
    assert evaluation.valid_share == 0.0
    assert np.isnan(list(evaluation.summary().values())[3:8]).all()


def test_a_score_of_zero_is_a_score():
    evaluation = Evaluation("task", True, (sample("a", 0.0, 0.0), sample("b", -1.0, -1.0)))
    assert evaluation.best.program.code == "a"
    assert evaluation.mean_reward_score == -0.5
