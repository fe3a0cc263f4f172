"""What each estimator climbs, and which weight undoes which selection: to 1e-8, no sampling.

Everything is an exact sum over the actions of a random softmax policy in double precision. Beside
every identity stands a broken variant, a wrong weight or a wrong baseline, that must miss by far.
"""

from itertools import product

import numpy as np
import pytest
import torch

from mle_rl.losses import (
    duration_weights,
    effective_sample_size,
    group_advantages,
    importance_ratio,
    leave_one_out_advantages,
    policy_gradient_loss,
    reward_rate_advantages,
    weighted_mean_advantages,
)
from mle_rl.losses.objectives import (
    expected_reward,
    expected_update,
    gradient,
    reward_rate,
    scores,
    time_average_reward,
)
from mle_rl.rollout import inclusion
from mle_rl.rollout.simulation.durations import LogNormal
from mle_rl.rollout.simulation.workload import Workload
from mle_rl.rollout.starts import expected_starts

TOLERANCE = 1e-8
CLEARLY = 1e-3


class Problem:
    """A random policy over actions with random rewards and durations of several tasks."""

    def __init__(self, seed: int, actions: int = 7):
        g = torch.Generator().manual_seed(seed)
        self.logits = torch.randn(actions, generator=g, dtype=torch.float64)
        self.rewards = 3 * torch.randn(actions, generator=g, dtype=torch.float64) - 1
        d = torch.exp(1.2 * torch.randn(actions, generator=g, dtype=torch.float64))
        self.durations = torch.ceil(8 * d) / 8  # so that sums of them meet: few moments to start
        self.tasks = torch.arange(actions) % 3
        self.policy = self.logits.softmax(0)
        self.mean_duration = self.policy @ self.durations

    def of(self, objective) -> torch.Tensor:
        return gradient(objective, self.logits, self.rewards, self.durations)

    def update(self, weighted_advantages, share=None) -> torch.Tensor:
        share = self.policy if share is None else share
        return expected_update(self.logits, share, weighted_advantages)

    def workload(self) -> Workload:
        return Workload(
            scale_s=self.durations.tolist(),
            probabilities=self.policy.tolist(),
            tasks=self.tasks.tolist(),
        )


@pytest.fixture(params=range(8))
def problem(request) -> Problem:
    return Problem(request.param)


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return float((a - b).abs().max()) < TOLERANCE


def far(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Different by more than a factor: not even in the same direction."""
    return float((a / a.norm() - b / b.norm()).abs().max()) > CLEARLY


# ---- what is climbed on samples of the policy itself -------------------------------------------


@pytest.mark.parametrize("baseline", [0.0, -10.0, 2.5])
def test_plain_gradient_climbs_the_mean_reward_whatever_the_baseline(problem, baseline):
    p = problem
    assert same(p.update(p.rewards - baseline), p.of(expected_reward))
    by_action = baseline + p.durations  # broken: the baseline knows the action
    assert far(p.update(p.rewards - by_action), p.of(expected_reward))


def test_duration_weights_climb_the_time_average(problem):
    p = problem
    b = (p.policy @ (p.durations * p.rewards)) / p.mean_duration
    goal = p.mean_duration * p.of(time_average_reward)
    assert same(p.update(p.durations * (p.rewards - b)), goal)
    plain = p.policy @ p.rewards  # broken: the baseline is not weighted as the loss is
    assert far(p.update(p.durations * (p.rewards - plain)), goal)
    assert far(p.of(expected_reward), goal), "another goal than the mean reward"


@pytest.mark.parametrize("shift", [-10.0, 0.7])
def test_another_constant_baseline_adds_a_push_on_duration(problem, shift):
    p = problem
    b = (p.policy @ (p.durations * p.rewards)) / p.mean_duration
    extra = p.update(p.durations * (p.rewards - (b + shift))) - p.update(
        p.durations * (p.rewards - b)
    )
    toward = gradient(lambda logits, _, d: logits.softmax(0) @ d, p.logits, p.rewards, p.durations)
    assert same(extra, -shift * toward)
    assert not same(extra, shift * toward)


def test_a_constant_added_to_all_rewards_moves_the_gradient_unless_centred(problem):
    p = problem
    w = duration_weights(p.durations, "paper")

    def right(rewards):
        share_of_time = p.policy * w  # the batch is the policy: its weights carry its shares
        return p.update(w * weighted_mean_advantages(rewards, share_of_time))

    def wrong(rewards):
        return p.update(w * (rewards - 0.5))  # a baseline that was fixed beforehand

    assert same(right(p.rewards), right(p.rewards - 10))
    assert not same(wrong(p.rewards), wrong(p.rewards - 10))


def test_charging_for_time_climbs_the_reward_rate(problem):
    p = problem
    rho = float((p.policy @ p.rewards) / p.mean_duration)
    goal = p.mean_duration * p.of(reward_rate)
    assert same(p.update(reward_rate_advantages(p.rewards, p.durations, rho)), goal)
    mean_of_ratios = float(p.policy @ (p.rewards / p.durations))  # broken: the wrong rho
    assert far(p.update(reward_rate_advantages(p.rewards, p.durations, mean_of_ratios)), goal)
    weighted = p.durations / p.mean_duration * (p.rewards - rho * p.durations)
    assert far(p.update(weighted), goal), "weights on top of the charge climb neither"


# ---- which weight undoes which selection -------------------------------------------------------


def selections(p: Problem):
    """(name, share, right weight, wrong weight) for every rule with a right weight."""
    w = p.workload()
    d, ones = p.durations, torch.ones_like(p.durations)
    rho = p.policy / d
    yield "renewal", p.policy, ones, d
    yield "snapshot", _tensor(inclusion.snapshot(w)), 1 / d, ones
    yield "sticky", rho / rho.sum(), d, ones
    tau = float(d.max()) / 2
    kept = _tensor(inclusion.drop_stale_probability(d.numpy(), 2, tau))
    share = p.policy * kept
    yield "drop stale", share / share.sum(), 1 / kept, d
    window_s = 1.5 * float(d.max())
    starts = _tensor(expected_starts(w, window_s - d.numpy()))
    share = p.policy * starts
    yield "window", share / share.sum(), 1 / starts, 1 / d
    per_task = _tensor(inclusion.per_task(w, 99))
    conditional = torch.stack([_tensor(w.of_task(t)) @ d for t in range(3)])[p.tasks]
    balanced = per_task * conditional  # the target: every task as often as it has workers
    yield "one worker per task", per_task, conditional, d if far(balanced, per_task * d) else ones


def _tensor(values) -> torch.Tensor:
    return torch.as_tensor(np.asarray(values), dtype=torch.float64)


def test_every_right_weight_gives_the_policys_own_gradient_up_to_a_scalar(problem):
    p = problem
    for name, share, right, wrong in selections(p):
        target = p.of(expected_reward)
        if name == "one worker per task":
            w = p.workload()
            tasks = sum(_tensor(w.of_task(t)) for t in range(3)) / 3
            target = p.update(p.rewards, tasks)
        scale = share @ right
        assert same(p.update(right * p.rewards, share) / scale, target), name
        assert far(p.update(wrong * p.rewards, share), target), f"{name}, wrong weight"


def test_self_normalised_weights_under_the_papers_premise_are_off_by_one_scalar(problem):
    """Share proportional to pi / D, weight D / mean(D): the scalar is 1 / (E_pi[1/D] mean(D))."""
    p = problem
    share = (p.policy / p.durations) / (p.policy / p.durations).sum()
    got = p.update(p.durations * p.rewards, share)
    assert same(got, p.of(expected_reward) / (p.policy @ (1 / p.durations)))
    assert not same(got, p.of(expected_reward) * p.mean_duration), "1/E[1/D] is not E[D]"


def test_a_window_has_no_weight_for_what_it_never_sees(problem):
    p = problem
    w = p.workload()
    window_s = float(p.durations.max()) - 1 / 16
    slowest = int(p.durations.argmax())
    assert inclusion.window(w, window_s)[slowest] == 0
    assert inclusion.window(w, window_s + 1 / 16)[slowest] > 0


def test_the_importance_ratio_undoes_a_policy_that_moved(problem):
    p = problem
    old = p.logits + 0.7 * torch.sin(torch.arange(7, dtype=torch.float64))
    behaviour = old.softmax(0)
    now, then, one = p.logits.log_softmax(0), old.log_softmax(0), torch.ones(7, 1)
    ratio = importance_ratio(now[:, None], then[:, None], one)[:, 0]
    target = p.of(expected_reward)
    assert same(p.update(ratio * p.rewards, behaviour), target)
    assert far(p.update(p.durations * p.rewards, behaviour), target), "durations do not"
    assert far(p.update(p.rewards, behaviour), target), "nor does nothing"
    capped = importance_ratio(now[:, None], then[:, None], one, cap=1.0)[:, 0]
    assert far(p.update(capped * p.rewards, behaviour), target), "a cap that bites is a bias"


def test_the_loss_has_the_gradient_that_the_sums_have(problem):
    """Every action once, its share as the ratio: autograd against the score functions."""
    p = problem
    logits = p.logits.clone().requires_grad_()
    w = duration_weights(p.durations, "paper")

    def step(ratio):
        loss = policy_gradient_loss(
            logits.log_softmax(0)[:, None], (w * p.rewards)[:, None], torch.ones(7, 1), ratio=ratio
        )
        (slope,) = torch.autograd.grad(loss, logits)
        return -slope

    share = 7 * p.policy[:, None]  # the mean over 7 samples is taken inside
    assert same(step(share), p.update(w * p.rewards))
    assert far(step(None), p.update(w * p.rewards)), "every action as often as every other"


def test_score_functions_have_mean_zero(problem):
    nothing = torch.zeros(7, dtype=torch.float64)
    assert same(problem.policy @ scores(problem.logits), nothing)
    assert not same(problem.policy @ scores(problem.logits.flip(0)), nothing), "of another policy"


# ---- groups: exact over all groups of three ----------------------------------------------------


def test_group_baselines_are_unbiased_up_to_a_known_factor():
    """Leave-one-out: exactly grad E[R]; the group's own mean: (n - 1) / n of it."""
    p, n = Problem(1, actions=4), 3
    one_group = torch.zeros(n, dtype=torch.long)
    g = scores(p.logits)
    total = {"out": torch.zeros(4, dtype=torch.float64), "mean": torch.zeros(4).double()}
    for members in product(range(4), repeat=n):
        index = torch.tensor(members)
        chance = p.policy[index].prod()
        rewards = p.rewards[index]
        total["out"] += chance * leave_one_out_advantages(rewards, one_group) @ g[index] / n
        mean = group_advantages(rewards, one_group, scale=False)
        total["mean"] += chance * mean @ g[index] / n
    assert same(total["out"], p.of(expected_reward))
    assert same(total["mean"], p.of(expected_reward) * (n - 1) / n)
    assert not same(total["mean"], p.of(expected_reward))


@pytest.mark.parametrize("lost", ["slowest member", "slow groups", "nothing"])
def test_groups_that_lose_what_is_slow_are_biased(lost):
    """Of three the slowest is dropped, or all three if the slowest is too slow; leave-one-out."""
    p, n = Problem(1, actions=4), 3
    g = scores(p.logits)
    total = torch.zeros(4, dtype=torch.float64)
    for members in product(range(4), repeat=n):
        index = torch.tensor(members)
        chance = p.policy[index].prod()
        if lost == "slow groups" and p.durations[index].max() == p.durations.max():
            continue
        kept = index[p.durations[index].argsort(stable=True)][: 2 if "member" in lost else 3]
        group = torch.zeros(len(kept), dtype=torch.long)
        total += chance * leave_one_out_advantages(p.rewards[kept], group) @ g[kept] / len(kept)
    assert far(total, p.of(expected_reward)) == (lost != "nothing")


# ---- the price ---------------------------------------------------------------------------------


def test_effective_sample_size_is_n_over_one_plus_cv_squared(problem):
    d = problem.durations
    cv2 = float(d.var(unbiased=False) / d.mean() ** 2)
    w = duration_weights(d, "paper")
    assert effective_sample_size(w) == pytest.approx(len(d) / (1 + cv2), abs=1e-8)
    assert effective_sample_size(w) != pytest.approx(len(d) / (1 + cv2**0.5), abs=1e-3)


@pytest.mark.parametrize(("sigma", "share"), [(1.0, 0.368), (1.5, 0.105)])
def test_lognormal_durations_leave_this_share_of_a_batch(sigma, share):
    effective = 1 / (1 + LogNormal.of_sigma(sigma).cv ** 2)
    assert effective == pytest.approx(share, abs=5e-4)
    assert effective == pytest.approx(np.exp(-(sigma**2)), abs=1e-12)
    assert effective != pytest.approx(1 / (1 + sigma**2), abs=0.05), "CV^2 is not sigma^2"
