"""Rewards: exact values, refusals, and what the laboratory says of settings."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_rl import tasks
from mle_rl.errors import MleRlError
from mle_rl.records import STAGES, Execution, Outcome
from mle_rl.reward_laboratory import (
    CLASSES,
    Sample,
    Scoring,
    advantages,
    by_class,
    inversions,
    lowest_valid_reward,
    rewards,
    scoring_of,
    warnings_in_words,
)
from mle_rl.rewards import RewardWeights, largest_failing_reward, reward

PAPER = RewardWeights()
ACCURACY = Scoring(higher_is_better=True, worst=0.0, anchors=(0.5, 0.9), percentile=lambda s: s)
BOARD = (20.0, 60.0)
RMSE = Scoring(
    higher_is_better=False,
    worst=math.inf,
    anchors=(60.0, 20.0),
    percentile=lambda s: sum(s < other for other in BOARD) / 2,
)


def valid(score: float, stages=STAGES) -> Outcome:
    return Outcome(tuple(stages), True, reward_score=score, final_score=score)


def failed(*stages: str) -> Outcome:
    return Outcome(stages, False, problem="no submission")


@pytest.mark.parametrize(
    ("outcome", "higher", "expected"),
    [
        (failed(), True, -10.0),
        (failed(*STAGES[:3]), True, -9.7),
        (failed(*STAGES), False, -9.3),
        (failed("data_loaded", "data_loaded"), True, -9.9),
        (valid(0.8), True, 0.8),
        (valid(0.0), True, 0.0),
        (valid(57.0), False, -57.0),
    ],
)
def test_the_papers_reward(outcome, higher, expected):
    assert reward(outcome, PAPER, higher_is_better=higher) == pytest.approx(expected, abs=1e-12)


def test_the_final_score_is_never_paid():
    outcome = Outcome((), True, reward_score=0.2, final_score=0.9)
    assert reward(outcome, PAPER, higher_is_better=True) == 0.2


def test_stages_may_be_kept():
    weights = RewardWeights(keep_stages_when_valid=True)
    assert reward(valid(0.5, STAGES[:4]), weights, higher_is_better=True) == pytest.approx(0.9)


def test_scales():
    anchored = RewardWeights(score_scale="anchored")
    assert reward(valid(60), anchored, higher_is_better=False, anchors=(60, 20)) == 0
    assert reward(valid(20), anchored, higher_is_better=False, anchors=(60, 20)) == 1
    assert reward(valid(80), anchored, higher_is_better=False, anchors=(60, 20)) == -0.5
    assert reward(valid(0.7), anchored, higher_is_better=True, anchors=(0.5, 1.0)) == pytest.approx(
        0.4
    )
    percentile = RewardWeights(score_scale="percentile")
    share = {0.7: 0.25}.get
    assert reward(valid(0.7), percentile, higher_is_better=True, percentile=share) == 0.25


def test_floor_and_time():
    weights = RewardWeights(valid_floor=-1.0, time_cost_rate=0.01)
    assert reward(valid(57), weights, higher_is_better=False, duration_s=10) == -1.1
    assert reward(failed(), weights, higher_is_better=False, duration_s=10) == -10.1


@given(
    st.floats(-1e6, 1e6),
    st.floats(-1e6, 1e6),
    st.booleans(),
    st.sampled_from(["raw", "anchored"]),
)
def test_a_better_score_never_earns_less(one, other, higher, scale):
    weights = RewardWeights(score_scale=scale)
    anchors = (0.0, 1.0) if higher else (1.0, 0.0)
    paid = [
        reward(valid(s), weights, higher_is_better=higher, anchors=anchors) for s in (one, other)
    ]
    better = one > other if higher else one < other
    if better:
        assert paid[0] >= paid[1]


@pytest.mark.parametrize(
    "setting",
    [
        {"failure": math.nan},
        {"failure": None},
        {"failure": "-10"},
        {"stage": -0.1},
        {"stage": math.inf},
        {"stage": True},
        {"time_cost_rate": -1},
        {"time_cost_rate": math.nan},
        {"valid_floor": math.inf},
        {"score_scale": "log"},
        {"keep_stages_when_valid": 1},
    ],
)
def test_settings_that_make_no_sense_are_refused(setting):
    with pytest.raises(MleRlError, match=next(iter(setting))):
        RewardWeights(**setting)


@pytest.mark.parametrize(
    ("weights", "more", "message"),
    [
        (RewardWeights(score_scale="anchored"), {}, "anchored"),
        (RewardWeights(score_scale="anchored"), {"anchors": (0.5, 0.5)}, "anchored"),
        (RewardWeights(score_scale="anchored"), {"anchors": (0.9, 0.5)}, "worse than the baseline"),
        (RewardWeights(score_scale="anchored"), {"anchors": (math.nan, 1)}, "anchored"),
        (RewardWeights(score_scale="percentile"), {}, "leaderboard"),
        (RewardWeights(score_scale="percentile"), {"percentile": lambda s: 50}, r"0\.\.1"),
        (RewardWeights(time_cost_rate=1), {}, "duration_s"),
        (RewardWeights(time_cost_rate=1), {"duration_s": math.nan}, "duration_s"),
        (RewardWeights(time_cost_rate=1), {"duration_s": -1.0}, "duration_s"),
    ],
)
def test_what_is_missing_is_said(weights, more, message):
    with pytest.raises(MleRlError, match=message):
        reward(valid(0.7), weights, higher_is_better=True, **more)


@pytest.mark.parametrize("score", [None, math.nan, math.inf])
def test_a_valid_outcome_without_a_score_is_a_bug(score):
    with pytest.raises(MleRlError, match="finite number"):
        reward(Outcome((), True, reward_score=score), PAPER, higher_is_better=True)


SAMPLES = [
    Sample(valid(0.8), "ok", 2.0),
    Sample(valid(0.6), "ok", 1.0),
    Sample(failed(*STAGES[:5]), "error", 0.5),
    Sample(failed(*STAGES), "ok", 0.5),
    Sample(failed(), "timeout", 10.0),
]


def test_by_class_by_hand():
    earned = rewards(SAMPLES, PAPER, ACCURACY)
    assert earned == pytest.approx([0.8, 0.6, -9.5, -9.3, -10.0])
    table = by_class(SAMPLES, earned).set_index("outcome")
    assert list(table.index) == [name for name in CLASSES if name in table.index]
    assert table.loc["valid", ["programs", "lowest", "mean", "highest", "stages"]].tolist() == (
        pytest.approx([2, 0.6, 0.7, 0.8, 7])
    )
    assert table.loc["timeout", "mean"] == -10.0
    assert table.loc["no valid submission", "mean"] == pytest.approx(-9.3)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=20), st.floats(-50, 50))
def test_advantages_do_not_see_a_constant(values, constant):
    values = np.array(values)
    assert advantages(values).mean() == pytest.approx(0, abs=1e-6)
    assert advantages(values + constant) == pytest.approx(advantages(values), abs=1e-3)


def test_an_advantage_needs_company():
    with pytest.raises(MleRlError, match="at least two"):
        advantages(np.array([1.0]))


def brute_force_inversions(samples, earned):
    pairs = [
        earned[i] >= earned[j]
        for i, failure in enumerate(samples)
        for j, success in enumerate(samples)
        if not failure.outcome.valid and success.outcome.valid
    ]
    return sum(pairs) / len(pairs) if pairs else 0.0


@given(
    st.lists(st.tuples(st.booleans(), st.floats(-20, 20).map(lambda s: round(s, 1))), max_size=12),
    st.floats(-12, 0).map(lambda s: round(s, 1)),
)
def test_inversions_against_all_pairs(outcomes, failure):
    samples = [
        Sample(valid(score) if good else failed(*STAGES[: int(abs(score)) % 8]), "ok", 1.0)
        for good, score in outcomes
    ]
    earned = rewards(samples, RewardWeights(failure=failure), ACCURACY)
    assert inversions(samples, earned) == pytest.approx(brute_force_inversions(samples, earned))


def test_the_bound_on_failures_is_reached_and_never_passed():
    assert largest_failing_reward(PAPER) == pytest.approx(-9.3)
    assert max(rewards(SAMPLES[2:], PAPER, ACCURACY)) == pytest.approx(-9.3)


def test_the_bound_on_valid_programs():
    assert lowest_valid_reward(PAPER, ACCURACY) == 0.0
    assert lowest_valid_reward(PAPER, RMSE) == -math.inf
    assert lowest_valid_reward(RewardWeights(valid_floor=-2), RMSE) == -2
    assert lowest_valid_reward(RewardWeights(score_scale="anchored"), ACCURACY) == -1.25
    assert lowest_valid_reward(RewardWeights(score_scale="percentile"), RMSE) == 0.0


def test_settings_under_which_failing_can_pay_are_said():
    assert warnings_in_words(PAPER, ACCURACY) == []
    assert "without limit" in warnings_in_words(PAPER, RMSE)[0]
    assert warnings_in_words(RewardWeights(valid_floor=-2), RMSE) == []
    harsh = RewardWeights(failure=-0.5)
    assert "earns 0.2" in warnings_in_words(harsh, ACCURACY)[0]
    slow = RewardWeights(time_cost_rate=0.1)
    assert "from 93 s on" in warnings_in_words(slow, ACCURACY)[0]
    assert "nothing to learn" in warnings_in_words(RewardWeights(stage=0), ACCURACY)[0]
    kept = RewardWeights(stage=0.2, keep_stages_when_valid=True, score_scale="anchored")
    assert "more to show stages" in warnings_in_words(kept, ACCURACY)[0]


@pytest.mark.parametrize(
    ("values", "scoring"),
    [
        ({}, RMSE),
        ({"failure": -0.5}, ACCURACY),
        ({"failure": 0.0, "score_scale": "anchored"}, ACCURACY),
        ({"failure": -1.0, "stage": 0.15, "score_scale": "percentile"}, ACCURACY),
        ({"failure": 0.0, "stage": 1.0, "score_scale": "percentile"}, ACCURACY),
        ({"failure": 0.5, "stage": 0.0}, RMSE),
    ],
)
def test_what_a_warning_advises_helps_and_nothing_else_does(values, scoring):
    weights = RewardWeights(**values)
    for name, change in (
        ("'percentile'", {"score_scale": "percentile"}),
        ("a valid_floor", {"valid_floor": 100.0}),
        ("a lower reward for failure", {"failure": -1000.0}),
        ("less credit for stages", {"stage": 1e-9}),
    ):
        changed = warnings_in_words(replace(weights, **change), scoring)
        helps = not any("can beat" in sentence for sentence in changed)
        assert (name in warnings_in_words(weights, scoring)[0]) == helps, name


def test_time_that_is_paid_for_instead_of_charged_is_said():
    """While rewards are negative, so is their rate, and every second more raises it."""
    share = RewardWeights(failure=0.0, score_scale="percentile")
    for weights, scoring, can_be_negative in (
        (PAPER, ACCURACY, True),
        (share, ACCURACY, False),
        (RewardWeights(failure=0.0), RMSE, True),
    ):
        told = warnings_in_words(weights, scoring, charge_time=True)
        assert any("slow failures pay" in each for each in told) == can_be_negative
        assert not any("slow" in each for each in warnings_in_words(weights, scoring))


def test_a_task_without_a_leaderboard_has_raw_rewards():
    """As a competition of MLE-bench whose leaderboard was not copied."""
    task = replace(tasks.load("doctor-visits"), id="elsewhere")
    scoring = scoring_of(task)
    samples = [Sample(valid(0.5), "ok", 1.0), Sample(failed(), "error", 1.0)]
    assert rewards(samples, PAPER, scoring).tolist() == [-0.5, -10.0]
    assert warnings_in_words(PAPER, scoring)
    for scale in ("anchored", "percentile"):
        compared = RewardWeights(score_scale=scale)
        for use in (
            lambda w: rewards(samples, w, scoring),
            lambda w: warnings_in_words(w, scoring),
        ):
            with pytest.raises(MleRlError, match="no leaderboard for elsewhere"):
                use(compared)


def test_a_scale_needs_what_it_compares_with():
    bare = Scoring(higher_is_better=True, worst=0.0)
    with pytest.raises(MleRlError, match="anchored' needs"):
        warnings_in_words(RewardWeights(score_scale="anchored"), bare)
    with pytest.raises(MleRlError, match="percentile' needs"):
        warnings_in_words(RewardWeights(score_scale="percentile"), bare)


@given(
    st.floats(-20, 5),
    st.floats(0, 2),
    st.sampled_from([None, -5.0, 0.0]),
    st.sampled_from(["raw", "anchored", "percentile"]),
    st.floats(0, 1),
    st.integers(0, 7),
)
def test_without_a_warning_no_failure_beats_a_valid_program(
    failure, stage, floor, scale, score, stages
):
    weights = RewardWeights(failure=failure, stage=stage, valid_floor=floor, score_scale=scale)
    told = [w for w in warnings_in_words(weights, ACCURACY) if "can beat" in w]
    samples = [Sample(valid(score), "ok", 1.0), Sample(failed(*STAGES[:stages]), "ok", 1.0)]
    good, bad = rewards(samples, weights, ACCURACY)
    if not told:
        assert bad < good


def test_a_sample_of_an_execution():
    execution = Execution("timeout", "", "", 10.0, 1.0, 5.0, isolation="none")
    sample = Sample.of(execution, failed())
    assert (sample.outcome_class, sample.duration_s) == ("timeout", 10.0)
