"""The functions one by one: values by hand, brute-force twins, and what is refused."""

import math

import pytest
import torch

from mle_rl import MleRlError
from mle_rl.losses import (
    RewardRate,
    clipped_loss,
    duration_weights,
    generalised_advantages,
    group_advantages,
    importance_ratio,
    leave_one_out_advantages,
    policy_gradient_loss,
    reward_rate_advantages,
    weighted_mean_advantages,
)

D = torch.tensor([1.0, 10.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("scheme", "extra", "expected"),
    [
        ("none", {}, [1, 1, 1, 1]),
        ("paper", {}, [0.25, 2.5, 0.5, 0.75]),
        ("paper", {"floor_s": 2.0}, [2 / 4.25, 10 / 4.25, 2 / 4.25, 3 / 4.25]),
        ("task_mean", {"groups": torch.tensor([7, 5, 7, 5])}, [0.375, 1.625, 0.375, 1.625]),
        ("inclusion", {"inclusion": torch.tensor([1.0, 0.25, 1.0, 0.5])}, [0.5, 2, 0.5, 1]),
        (
            "inclusion",
            {"inclusion": torch.tensor([1.0, 0.01, 1.0, 1.0]), "inclusion_floor": 0.5},
            [0.8, 1.6, 0.8, 0.8],
        ),
    ],
)
def test_weights_by_hand(scheme, extra, expected):
    weights = duration_weights(D, scheme, **extra)
    assert weights.tolist() == pytest.approx(expected)
    assert float(weights.mean()) == pytest.approx(1)


def test_weights_move_with_their_samples():
    order = torch.tensor([2, 0, 3, 1])
    groups = torch.tensor([0, 1, 1, 0])
    for scheme in ("paper", "task_mean"):
        moved = duration_weights(D[order], scheme, groups=groups[order])
        assert torch.equal(moved, duration_weights(D, scheme, groups=groups)[order])


def test_weights_of_a_batch_are_not_those_of_its_parts():
    """Normalising per micro-batch changes the ratio of samples: pass the gathered batch."""
    whole = duration_weights(D, "paper")
    parts = torch.cat([duration_weights(D[:2], "paper"), duration_weights(D[2:], "paper")])
    assert not torch.allclose(whole, parts)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("scheme", ["none", "paper", "task_mean", "inclusion"])
def test_impossible_durations_are_refused_by_every_scheme(bad, scheme):
    d = torch.tensor([1.0, bad])
    with pytest.raises(MleRlError, match="Sample 1 has duration"):
        duration_weights(d, scheme, groups=torch.zeros(2), inclusion=torch.ones(2), floor_s=0.5)
    with pytest.raises(MleRlError, match="Sample 1"):
        reward_rate_advantages(torch.zeros(2), d, 1.0)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: duration_weights(D, "square"), "none, paper"),
        (lambda: duration_weights(D[:0], "paper"), "at least one"),
        (lambda: duration_weights(D[None], "paper"), "shape"),
        (lambda: duration_weights([1.0, 2.0], "paper"), "tensor"),
        (lambda: duration_weights(D, "paper", floor_s=-1.0), "floor_s"),
        (lambda: duration_weights(D, "paper", floor_s=math.nan), "floor_s"),
        (lambda: duration_weights(D, "task_mean"), "needs groups"),
        (lambda: duration_weights(D, "inclusion"), "one probability"),
        (lambda: duration_weights(D, "inclusion", inclusion=2 * torch.ones(4)), "lie in"),
        (
            lambda: duration_weights(D, "inclusion", inclusion=torch.zeros(4), inclusion_floor=0.0),
            "can never be kept",
        ),
        (
            lambda: duration_weights(D, "inclusion", inclusion=torch.full((4,), math.nan)),
            "lie in",
        ),
        (lambda: group_advantages(D, torch.zeros(3)), "shape"),
        (lambda: RewardRate(memory=1.5), "memory"),
        (lambda: importance_ratio(D[None], D[None], D[None], level="word"), "sequence"),
        (
            lambda: policy_gradient_loss(torch.zeros(2, 3), torch.zeros(2), torch.ones(2, 3)),
            "advantages",
        ),
        (
            lambda: policy_gradient_loss(
                torch.zeros(2, 3), torch.zeros(2, 1), torch.tensor([[1, 1, 0], [0, 0, 0]])
            ),
            "without a single token",
        ),
        (
            lambda: generalised_advantages(torch.zeros(2, 3), torch.zeros(2, 3), torch.ones(3)),
            "one shape",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence(call, sentence):
    with pytest.raises(MleRlError, match=sentence) as error:
        call()
    assert str(error.value).endswith(".")


def test_integer_durations_are_seconds_too():
    assert duration_weights(torch.tensor([1, 3]), "paper").tolist() == [0.5, 1.5]


# ---- advantages --------------------------------------------------------------------------------


def test_group_advantages_do_not_depend_on_the_order_of_rows():
    g = torch.Generator().manual_seed(0)
    rewards = torch.randn(12, generator=g)
    groups = torch.arange(12) % 3
    order = torch.randperm(12, generator=g)
    for f in (group_advantages, leave_one_out_advantages):
        assert torch.allclose(
            f(rewards[order], groups[order]), f(rewards, groups)[order], atol=1e-6
        )


def test_group_advantages_are_trls_formula():
    g = torch.Generator().manual_seed(1)
    rewards = torch.randn(8, generator=g)
    by_group = rewards.view(2, 4)
    expected = (by_group - by_group.mean(1, keepdim=True)) / (by_group.std(1, keepdim=True) + 1e-4)
    groups = torch.tensor([0] * 4 + [1] * 4)
    assert torch.allclose(group_advantages(rewards, groups), expected.view(-1), atol=1e-6)


def test_incomplete_groups_are_compared_with_whom_they_have():
    rewards, groups = torch.tensor([1.0, 3.0, 5.0, 9.0]), torch.tensor([4, 4, 4, 8])
    assert group_advantages(rewards, groups, scale=False).tolist() == [-2, 0, 2, 0]
    assert leave_one_out_advantages(rewards, groups).tolist() == [-3, 0, 3, 0]
    assert group_advantages(rewards, groups)[3] == 0, "alone: no baseline, no opinion"


def test_equal_rewards_give_no_advantage_and_no_nan():
    rewards, groups = torch.full((4,), 0.3), torch.zeros(4, dtype=torch.long)
    assert group_advantages(rewards, groups).abs().max() < 1e-3


def test_weighted_mean_advantages_have_weighted_mean_zero():
    rewards = torch.tensor([1.0, 2.0, 5.0])
    w = torch.tensor([1.0, 1.0, 2.0])
    a = weighted_mean_advantages(rewards, w)
    assert a.tolist() == pytest.approx([-2.25, -1.25, 1.75])
    assert float((a * w).sum()) == pytest.approx(0)


def test_gae_is_the_double_sum():
    g = torch.Generator().manual_seed(2)
    rewards, values = torch.randn(3, 5, generator=g), torch.randn(3, 5, generator=g)
    lengths = [5, 3, 1]
    mask = torch.tensor([[t < n for t in range(5)] for n in lengths])
    gamma, lam = 0.9, 0.7
    got = generalised_advantages(rewards, values, mask, discount=gamma, decay=lam)
    for i, n in enumerate(lengths):
        v = [*values[i, :n].tolist(), 0.0]
        delta = [float(rewards[i, t]) + gamma * v[t + 1] - v[t] for t in range(n)]
        for t in range(5):
            expected = sum((gamma * lam) ** (k - t) * delta[k] for k in range(t, n))
            assert float(got[i, t]) == pytest.approx(expected, abs=1e-5)


def test_gae_without_discount_is_reward_to_go_minus_value():
    rewards = torch.tensor([[0.0, 0.0, 2.0, 7.0]])  # the 7 is padding
    values = torch.tensor([[0.5, 1.0, 1.5, 9.0]])
    mask = torch.tensor([[1, 1, 1, 0]])
    assert generalised_advantages(rewards, values, mask).tolist() == [[1.5, 1.0, 0.5, 0.0]]


def test_reward_rate_is_a_ratio_of_means_that_follows():
    rate = RewardRate(memory=1.0)
    rate.update(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 9.0]))
    assert rate.rho == pytest.approx(0.1), "not the mean of ratios, 0.5"
    assert rate.update(torch.tensor([2.0]), torch.tensor([5.0])) == pytest.approx(0.25)
    again = RewardRate(memory=1.0)
    again.load_state_dict(rate.state_dict())
    assert again.rho == rate.rho
    forgetful = RewardRate(memory=0.5)
    for _ in range(30):
        forgetful.update(torch.tensor([0.0]), torch.tensor([1.0]))
    for _ in range(30):
        forgetful.update(torch.tensor([3.0]), torch.tensor([1.0]))
    assert forgetful.rho == pytest.approx(3.0, abs=1e-6)
    assert RewardRate().rho == 0


# ---- losses ------------------------------------------------------------------------------------


@pytest.fixture
def batch():
    g = torch.Generator().manual_seed(3)
    now = (-torch.rand(4, 6, generator=g)).requires_grad_()
    old = now.detach() + 0.5 * torch.randn(4, 6, generator=g)
    mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2, [1] + [0] * 5, [1] * 5 + [0]])
    advantages = torch.tensor([[1.0], [-2.0], [0.5], [-0.3]])
    return now, old, advantages, mask


def test_clipped_loss_is_the_loop(batch):
    now, old, advantages, mask = batch
    total = 0.0
    for i in range(4):
        n, row = int(mask[i].sum()), 0.0
        for t in range(n):
            r = math.exp(float(now[i, t].detach() - old[i, t]))
            a = float(advantages[i, 0])
            row += min(r * a, min(max(r, 0.8), 1.3) * a)
        total += row / n
    loss = clipped_loss(now, old, advantages, mask, clip_low=0.2, clip_high=0.3)
    assert float(loss.detach()) == pytest.approx(-total / 4, abs=1e-6)


@pytest.mark.parametrize("loss", ["plain", "clipped", "decoupled"])
def test_weighting_the_advantage_is_weighting_the_loss_of_the_sample(batch, loss):
    now, old, advantages, mask = batch
    w = torch.tensor([[0.2], [1.8], [0.5], [1.5]])

    def value(rows, a):
        args = now[rows], old[rows], a[rows], mask[rows]
        if loss == "plain":
            return policy_gradient_loss(args[0], args[2], args[3], torch.exp(args[0] - args[1]))
        if loss == "clipped":
            return clipped_loss(*args)
        middle = (0.5 * (args[0] + args[1])).detach()
        return clipped_loss(*args, proximal_log_probs=middle, ratio_cap=2.0)

    whole = value(slice(None), w * advantages)
    single = sum(w[i, 0] * value(slice(i, i + 1), advantages) for i in range(4)) / 4
    assert float((whole - single).detach()) == pytest.approx(0, abs=1e-6)
    (a,) = torch.autograd.grad(whole, now, retain_graph=True)
    (b,) = torch.autograd.grad(single, now)
    assert torch.allclose(a, b, atol=1e-7)


@pytest.mark.parametrize("padding", [3.0, 1000.0, -1000.0, -math.inf, math.nan])
def test_padding_has_no_influence(batch, padding):
    """Whatever stands there: logits that were masked out give infinite log-probabilities."""
    now, old, advantages, mask = batch
    other = torch.where(mask != 0, now.detach(), padding).requires_grad_()
    other_old = torch.where(mask != 0, old, -padding)
    for f in (
        lambda x, y: clipped_loss(x, y, advantages, mask),
        lambda x, y: clipped_loss(x, y, advantages, mask, proximal_log_probs=(x + y) / 2),
        lambda x, y: policy_gradient_loss(x, advantages, mask),
    ):
        one, two = f(now, old), f(other, other_old)
        assert torch.equal(one, two)
        (a,) = torch.autograd.grad(one, now)
        (b,) = torch.autograd.grad(two, other)
        assert torch.equal(a, b)
    rows = advantages.expand_as(mask)
    there = torch.where(mask != 0, rows, padding)
    for f in (
        lambda x, a: clipped_loss(x, old, a, mask),
        lambda x, a: policy_gradient_loss(x, a, mask),
        lambda x, a: policy_gradient_loss(x, rows, mask, ratio=a),
    ):
        (a,) = torch.autograd.grad(f(now, rows), now)
        (b,) = torch.autograd.grad(f(now, there), now)
        assert torch.equal(a, b)
    for level in ("token", "sequence"):
        one = importance_ratio(now, old, mask, level=level)
        assert torch.equal(one, importance_ratio(other, other_old, mask, level=level))


def test_an_unchanged_policy_has_ratio_one_and_the_plain_gradient(batch):
    now, _, advantages, mask = batch
    assert (importance_ratio(now, now, mask) == 1).all()
    assert (importance_ratio(now, now, mask, level="sequence") == 1).all()
    (a,) = torch.autograd.grad(clipped_loss(now, now.detach(), advantages, mask), now)
    per_token = advantages / mask.sum(1, keepdim=True)
    (b,) = torch.autograd.grad(policy_gradient_loss(now, per_token, mask), now)
    assert torch.allclose(a, b, atol=1e-7)


def test_a_decoupled_loss_around_the_behaviour_policy_is_the_plain_one(batch):
    now, old, advantages, mask = batch
    plain = clipped_loss(now, old, advantages, mask)
    assert torch.allclose(plain, clipped_loss(now, old, advantages, mask, proximal_log_probs=old))
    moved = clipped_loss(now, old, advantages, mask, proximal_log_probs=now.detach())
    ratio = importance_ratio(now, old, mask)
    expected = -((ratio * advantages * mask).sum(1) / mask.sum(1)).mean()
    assert torch.allclose(moved, expected), "proximal at now: only the ratio is left"


def test_sequence_ratios_are_products_and_the_cap_truncates(batch):
    now, old, _, mask = batch
    token = importance_ratio(now, old, mask)
    sequence = importance_ratio(now, old, mask, level="sequence")
    assert torch.allclose((token * mask + (1 - mask)).prod(1, keepdim=True), sequence)
    assert float(importance_ratio(now, old, mask, cap=1.1).max()) == pytest.approx(1.1)
    assert not token.requires_grad
