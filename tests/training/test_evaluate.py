"""Best-of-k curves against brute force, and what an evaluation touches."""

from concurrent.futures import Future
from dataclasses import replace
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_rl import MleRlError
from mle_rl.agent import Archive, Policy
from mle_rl.records import Execution, Outcome, Program
from mle_rl.training.best_of import best_of_k, best_of_k_each
from mle_rl.training.evaluate import SelfImprovement, evaluate, self_improve
from mle_rl.training.evaluation import ALARM_CHANCE, ALARM_LEAST, Evaluation, Sample

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


two_kinds = st.lists(
    st.one_of(st.none(), st.tuples(st.integers(-99, 99), st.floats(-9, 9))), min_size=2, max_size=10
)


@given(scores=two_kinds, data=st.data(), higher=st.booleans())
def test_best_of_k_of_each_kind_is_the_mean_over_all_pairs_of_subsets(scores, data, higher):
    known = {s[0]: s for s in scores if s is not None}
    scores = data.draw(st.permutations([None] * scores.count(None) + list(known.values())))
    cut = data.draw(st.integers(1, max(1, len(scores) - 1)))
    kinds = scores[:cut], scores[cut:] or [None]
    k = data.draw(st.integers(1, min(map(len, kinds))))
    found = best_of_k_each(*kinds, k, higher_is_better=higher)
    choose = max if higher else min
    pairs = list(product(*(combinations(kind, k) for kind in kinds)))
    chosen = [
        choose(valid, key=lambda s: s[0])
        for one, other in pairs
        if (valid := [s for s in one + other if s is not None])
    ]
    assert found.any_valid == pytest.approx(len(chosen) / len(pairs))
    if chosen:
        expected = np.mean(chosen, axis=0)
        assert (found.reward_score, found.final_score) == pytest.approx(tuple(expected))
    else:
        assert np.isnan(found.final_score)


def test_the_smaller_kind_bounds_k():
    with pytest.raises(MleRlError, match="from 3 and 2 samples"):
        best_of_k_each([None] * 3, [None] * 2, 3, higher_is_better=True)


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
    summary = evaluation.summary()
    assert all(np.isnan(summary[name]) for name in summary if "score" in name)
    assert np.isnan(evaluation.optimism)
    assert evaluation.alarm is None
    assert evaluation.family_entropy == 0.0


def test_diversity_counts_families_of_valid_programs():
    one = "from sklearn.linear_model import Ridge\nRidge(alpha={})"
    other = "from sklearn.svm import SVR\nSVR()"
    texts = [one.format(1), one.format(2), one.format(3), other]
    samples = [sample(text, 0.5, 0.5) for text in texts] + [sample("SVC()", None, None)] * 4
    expected = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    evaluation = Evaluation("task", True, tuple(samples))
    assert evaluation.family_entropy == pytest.approx(expected)
    assert evaluation.summary()["family_entropy"] == pytest.approx(expected)


# ---- alarm ---------------------------------------------------------------------------------------


def evaluation_with_gaps(gaps, higher=True, quality=None):
    """One valid program per gap; the first is the best on the reward split by default."""
    sign = 1 if higher else -1
    quality = np.linspace(1, 0, len(gaps)) if quality is None else quality
    pairs = zip(quality, gaps, strict=True)
    samples = [sample(f"p{n}", sign * q, sign * (q - gap)) for n, (q, gap) in enumerate(pairs)]
    return Evaluation("task", higher, (*samples, sample("invalid", None, None)))


@pytest.mark.parametrize("higher", [True, False])
def test_a_gap_unlike_all_others_sets_off_the_alarm(higher):
    gaps = np.random.default_rng(0).normal(0.1, 0.01, 40)
    assert evaluation_with_gaps([0.12, *gaps], higher).alarm is None
    assert evaluation_with_gaps([0.02, *gaps], higher).alarm is None, "worse than it looks, only"
    sentence = evaluation_with_gaps([0.17, *gaps], higher).alarm
    assert "looks 0.17 better" in sentence
    assert f"of 40 other programs the median is {np.median(gaps):.4g}" in sentence


def test_only_the_gap_of_the_chosen_one_counts():
    gaps = np.random.default_rng(0).normal(0.0, 0.01, 40)
    assert evaluation_with_gaps([*gaps, 0.5]).alarm is None


def test_one_split_that_is_easier_for_all_is_no_reason():
    gaps = np.random.default_rng(0).normal(0.0, 0.01, 40)
    assert (evaluation_with_gaps(gaps).alarm is None) == (
        evaluation_with_gaps(gaps + 5.0).alarm is None
    )


def test_few_programs_say_nothing_and_repetitions_are_one_program():
    few = evaluation_with_gaps([9.0, *np.linspace(-0.01, 0.01, ALARM_LEAST - 1)])
    assert few.alarm is None
    assert Evaluation("task", True, few.samples * 5).alarm is None
    enough = evaluation_with_gaps([9.0, *np.linspace(-0.01, 0.01, ALARM_LEAST)])
    assert "of 8 other programs" in enough.alarm
    assert Evaluation("task", True, enough.samples * 5).alarm == enough.alarm


def test_equal_gaps_of_most_others_do_not_hide_their_spread():
    gaps = [0.0] * 20 + [0.1, -0.1] * 5
    assert evaluation_with_gaps([0.12, *gaps]).alarm is None
    assert evaluation_with_gaps([0.5, *gaps]).alarm is not None


@pytest.mark.parametrize("programs", [9, 20, 60])
def test_luck_sets_it_off_as_seldom_as_it_says(programs):
    """The worst case: quality is equal, so the largest gap is what is chosen."""
    rng = np.random.default_rng(1)
    alarms = [
        evaluation_with_gaps(gaps, quality=gaps).alarm is not None
        for gaps in rng.normal(0.0, 0.01, (1000, programs))
    ]
    assert np.mean(alarms) <= 2 * ALARM_CHANCE


# ---- improving -----------------------------------------------------------------------------------


def test_a_score_of_zero_is_a_score():
    evaluation = Evaluation("task", True, (sample("a", 0.0, 0.0), sample("b", -1.0, -1.0)))
    assert evaluation.best.program.code == "a"
    assert evaluation.mean_reward_score == -0.5


class Environment:
    """Programs end at once; a completion's first token is its score, odd ones are not valid."""

    task = SimpleNamespace(id="some-task", higher_is_better=True)

    def __init__(self, valid=True):
        self.valid = valid

    def submit(self, program):
        score = float(program.code)
        valid = self.valid and score % 2 == 0
        future = Future()
        execution = Execution("ok", f"printed {score}", "", 1.0, 1.0, 1.0, "limits")
        scores = (score, score / 2) if valid else (None, None)
        future.set_result((execution, Outcome((), valid, *scores)))
        return future


@pytest.fixture
def policy(make_llama, tokenizer):
    class Writer(Policy):
        """Remembers what its prompts showed."""

        def prompt_ids(self, task, kind, earlier=None):
            prompts.append((kind, earlier))
            return (2, 3)

        def parse(self, completion_ids):
            return Program("a plan", f"{completion_ids[0]}")

    prompts = []
    writer = Writer("minute", make_llama(), tokenizer, "chat", 4)
    object.__setattr__(writer, "prompts", prompts)
    return writer


def test_self_improvement_shows_valid_solutions_and_keeps_the_better(policy):
    found = self_improve(policy, Environment(), 70)
    assert [s.shown for s in found.scratch.samples] == [None] * 70
    assert {s.kind for s in found.improved.samples} == {"improve"}
    assert len(found.improved.samples) == 70
    valid = {s.program.code: s.outcome.reward_score for s in found.scratch.valid}
    for (kind, earlier), improved in zip(policy.prompts[70:], found.improved.samples, strict=True):
        assert kind == "improve"
        assert improved.shown is earlier
        assert earlier.score == valid[earlier.program.code]
        assert f"printed {earlier.score}" in earlier.output
    assert len({s.shown.program.code for s in found.improved.samples}) == len(valid)
    best = max(s.outcome.reward_score for s in (*found.scratch.valid, *found.improved.valid))
    assert found.kept.outcome.reward_score == best
    assert len(found.together.samples) == 140


def test_the_one_from_scratch_is_kept_in_a_tie():
    scratch = Evaluation("task", False, (sample("a", 1.0, 5.0), sample("b", 2.0, 0.0)))
    improved = Evaluation("task", False, (sample("c", 1.0, 0.0),))
    assert SelfImprovement(scratch, improved).kept.program.code == "a"
    better = Evaluation("task", False, (sample("c", 0.5, 9.0),))
    assert SelfImprovement(scratch, better).kept.program.code == "c"


def test_nothing_valid_is_not_improved(policy):
    found = self_improve(policy, Environment(valid=False), 8)
    assert found.improved is None
    assert found.kept is None
    assert found.together == found.scratch


def test_the_two_kinds_draw_from_random_numbers_of_their_own(policy):
    """Their prompts are equal here: with one seed both would write the same."""
    found = self_improve(policy, Environment(), 64)
    first, second = (
        [s.program.code for s in kind.samples] for kind in (found.scratch, found.improved)
    )
    again = self_improve(policy, Environment(), 64)
    assert first != second
    assert [s.program.code for s in again.improved.samples] == second
    other = self_improve(policy, Environment(), 64, seed=1)
    assert [s.program.code for s in other.improved.samples] != second


def test_a_killed_sandbox_is_no_failed_program(policy):
    class Dying(Environment):
        """Sandboxes are killed, twice each, under the first three programs."""

        killed = 0

        def submit(self, program):
            future = super().submit(program)
            if self.killed == 3:
                return future
            self.killed += 1
            execution, outcome = future.result()
            future = Future()
            future.set_result((replace(execution, status="killed", duration_s=0.0), outcome))
            return future

    undisturbed = evaluate(policy, Environment(), 8)
    assert evaluate(policy, Dying(), 8) == undisturbed


@pytest.mark.parametrize(("n", "message"), [(0, "at least one sample"), (4, "archive is empty")])
def test_what_cannot_be_evaluated_is_one_sentence(policy, n, message):
    with pytest.raises(MleRlError, match=message):
        evaluate(policy, Environment(), n, earlier=Archive())


def test_a_score_that_is_missing_in_a_table_is_none():
    table = pd.DataFrame({"reward": [0.2, None, 0.9, 0.5], "final": [1.0, None, 3.0, 2.0]})
    lists = [[0.2, None, 0.9, 0.5], [1.0, None, 3.0, 2.0]]
    found = best_of_k(table.reward, table.final, 2, higher_is_better=True)
    assert found == best_of_k(*lists, 2, higher_is_better=True)
