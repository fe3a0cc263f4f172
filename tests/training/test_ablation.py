"""Arms of an ablation differ in what was changed, and are compared by one and the same reward."""

from dataclasses import replace

import numpy as np
import pytest
from small_run import settings

from mle_rl import MleRlError, tasks
from mle_rl.analysis.arms import plot_arms
from mle_rl.rewards import RewardWeights
from mle_rl.training import ablation
from mle_rl.training.ablation import run_arms
from mle_rl.training.weighting import DurationWeighting

PAID = RewardWeights(failure=-2.0, stage=0.5)
ARMS = {"credit": {}, "none": {"rewards": RewardWeights(failure=-2.0, stage=0.0)}}


@pytest.fixture
def base(tmp_path):
    return settings(tmp_path / "arms", steps=2, rewards=PAID)


def test_arms_are_judged_alike_and_paid_apart(base, policy, monkeypatch):
    order = []
    curves = run_arms(
        base, ARMS, (0, 1), policy=policy, on_run=lambda arm, seed, _: order.append((arm, seed))
    )
    assert order == [("credit", 0), ("none", 0), ("credit", 1), ("none", 1)]
    assert len(curves) == 2 * 2 * base.steps
    credit, none = curves[curves.arm == "credit"], curves[curves.arm == "none"]
    np.testing.assert_allclose(credit.judged_reward, credit.reward_mean)
    # Failing programs reach a stage here, so the second arm is paid less than it is judged.
    assert (none.judged_reward > none.reward_mean).any()

    def refuse(*args, **kwargs):
        raise AssertionError("an ended run was trained again")

    monkeypatch.setattr("mle_rl.training.run._train", refuse)
    assert run_arms(base, ARMS, (0, 1), policy=policy).equals(curves)


def test_the_judge_may_be_another_than_what_is_paid(base, policy):
    judge = RewardWeights(failure=-7.0, stage=0.0, valid_floor=0.0, score_scale="percentile")
    curves = run_arms(base, {"a": {}}, (0,), policy=policy, judge=judge)
    failed = 1 - curves.valid_share
    assert (curves.judged_reward <= curves.valid_share - 7.0 * failed + 1e-9).all()
    assert (curves.judged_reward >= -7.0 * failed - 1e-9).all()


@pytest.mark.parametrize(
    ("arms", "seeds", "why"),
    [({}, (0,), "one arm"), (ARMS, (), "one seed"), ({"a": {"seed": 3}}, (0,), "may not set seed")],
)
def test_what_makes_no_ablation_is_refused(base, arms, seeds, why):
    with pytest.raises(MleRlError, match=why):
        run_arms(base, arms, seeds)


def test_every_seed_and_their_mean_are_drawn(base, policy):
    curves = run_arms(base, ARMS, (0, 1), policy=policy)
    fig, shown = plot_arms(curves, {"valid_share": "valid share", "judged_reward": "reward"}, "t")
    assert [len(axis.lines) for axis in fig.axes] == [6, 6]
    credit = curves[curves.arm == "credit"].groupby("step").valid_share.mean()
    np.testing.assert_allclose(fig.axes[0].lines[2].get_ydata(), credit)
    assert list(shown.columns) == [
        "arm",
        "seed",
        "date",
        "objective",
        "step",
        "valid_share",
        "judged_reward",
    ]
    with pytest.raises(MleRlError, match="told apart"):
        plot_arms(curves.assign(arm=range(len(curves))), {"valid_share": "valid share"}, "t")


def test_a_ledger_gives_the_mean_of_every_batch(base, policy, monkeypatch):
    run_arms(base, {"a": {}}, (0,), policy=policy)
    config = settings(base.run_dir / "a/seed-0", steps=2)
    judged = ablation.judged_rewards(config, PAID)
    assert judged.shape == (2,)
    # Raw scores are compared with nothing, so a competition without a leaderboard will do.
    task = replace(tasks.load("doctor-visits"), id="elsewhere")
    monkeypatch.setattr("mle_rl.tasks.load", lambda name: task)
    assert (ablation.judged_rewards(config, PAID) == judged).all()


def test_arms_say_what_each_climbs(base, policy):
    arms = {"all alike": {}, "by duration": {"weighting": DurationWeighting("paper")}}
    curves = run_arms(base, arms, (0,), policy=policy)
    fig, shown = plot_arms(curves, {"valid_share": "valid share"}, "t")
    said = "objective: E[R] (all alike); E[DR]/E[D] (by duration)"
    assert fig.get_suptitle().splitlines()[1].startswith(said)
    by_arm = shown.groupby("arm").objective.unique()
    older, _ = plot_arms(curves.drop(columns="objective"), {"valid_share": "valid share"}, "t")
    assert older.get_suptitle().splitlines()[1].startswith("objective: not recorded")
    assert by_arm.map(list).to_dict() == {"all alike": ["E[R]"], "by duration": ["E[DR]/E[D]"]}
