"""Advantages: what a reward is compared with.

All take and return one number per sample and leave the weights of :mod:`mle_rl.losses.weights` out,
except where the baseline itself must be weighted. Multiply by the weights afterwards.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mle_rl.errors import MleRlError
from mle_rl.losses.weights import checked_durations, group_mean, group_sum


def group_advantages(
    rewards: Tensor,  # (batch,)
    groups: Tensor,  # (batch,) integer label: rollouts of one prompt share it
    *,
    scale: bool = True,
    epsilon: float = 1e-4,
) -> Tensor:  # (batch,)
    """Reward relative to the group, in the group's standard deviations.

    ``A_i = (R_i - mean_g R) / (std_g R + epsilon)`` with the unbiased standard deviation (GRPO,
    arXiv 2402.03300, section 4.1.2); without ``scale`` the numerator alone (Dr. GRPO, arXiv
    2503.20783). The label travels with the sample: rows may come in any order, and a group that
    lost members is compared with those it has. A group of one has advantage 0.
    """
    _same_shape(rewards, groups, "groups")
    centred = rewards - group_mean(rewards, groups)
    if not scale:
        return centred
    size = group_sum(torch.ones_like(rewards), groups)
    variance = group_sum(centred**2, groups) / (size - 1).clamp(min=1)
    return centred / (variance.sqrt() + epsilon)


def leave_one_out_advantages(
    rewards: Tensor,  # (batch,)
    groups: Tensor,  # (batch,) integer label
) -> Tensor:  # (batch,)
    """Reward minus the mean of the *other* members of the group.

    ``A_i = R_i - sum_{j != i} R_j / (n - 1) = n / (n - 1) (R_i - mean_g R)`` (Kool et al. 2019;
    RLOO, arXiv 2402.14740). Unlike the group mean it does not depend on the sample itself, so
    the gradient estimate stays unbiased. A group of one has nothing to be compared with: 0.
    """
    _same_shape(rewards, groups, "groups")
    size = group_sum(torch.ones_like(rewards), groups)
    return (rewards - group_mean(rewards, groups)) * size / (size - 1).clamp(min=1)


def weighted_mean_advantages(
    rewards: Tensor,  # (batch,)
    weights: Tensor,  # (batch,) non-negative
) -> Tensor:  # (batch,)
    """Reward minus the mean that is weighted as the loss will be.

    ``A_i = R_i - sum_j w_j R_j / sum_j w_j``. With weights equal to durations the baseline is
    E[DR] / E[D], and then E[D A g] = E[D] grad(E[DR] / E[D]). With any other constant b' an extra
    term (b - b') grad E[D] appears, so that adding a constant to all rewards, such as a penalty of
    -10, would move the gradient.
    """
    _same_shape(rewards, weights, "weights")
    return rewards - (weights * rewards).sum() / weights.sum()


def generalised_advantages(
    rewards: Tensor,  # (batch, time) reward of each step; 0 where there is none
    values: Tensor,  # (batch, time) the critic's estimate before each step
    mask: Tensor,  # (batch, time) 1 for a step of the rollout, 0 for padding behind it
    *,
    discount: float = 1.0,
    decay: float = 1.0,
) -> Tensor:  # (batch, time), 0 on padding
    """Token-level advantages from a critic (GAE, arXiv 1506.02438).

    ``A_t = delta_t + discount decay A_{t+1}`` with ``delta_t = R_t + discount V_{t+1} - V_t`` and
    V = 0 behind the last step. Discount and decay of 1, the setting for one reward at the end,
    give ``A_t = (sum of rewards from t on) - V_t``.
    """
    if not rewards.shape == values.shape == mask.shape or rewards.ndim != 2:
        raise MleRlError("Rewards, values and mask must share one shape (batch, time).")
    mask = mask.to(values.dtype)
    values, rewards = values * mask, rewards * mask
    advantages = torch.zeros_like(values)
    following = torch.zeros_like(values[:, 0])
    next_value = torch.zeros_like(values[:, 0])
    for t in reversed(range(values.shape[1])):
        delta = rewards[:, t] + discount * next_value - values[:, t]
        following = (delta + discount * decay * following) * mask[:, t]
        advantages[:, t] = following
        next_value = values[:, t]
    return advantages


def reward_rate_advantages(
    rewards: Tensor,  # (batch,)
    durations: Tensor,  # (batch,) seconds
    rho: float,
) -> Tensor:  # (batch,)
    """Reward minus what the time was worth: ``A_i = R_i - rho D_i``, rho = E[R] / E[D].

    E[(R - rho D) g] = E[D] grad(E[R] / E[D]), the gradient of reward per second (arXiv 2609.36393;
    in general the average-reward criterion of semi-Markov decision processes). It is another goal
    than E[R] or E[DR]/E[D]: it prefers a fast and poor action to a slow and best one whenever its
    rate is larger. Never multiply these advantages by duration weights: the two pull against each
    other.
    """
    _same_shape(rewards, durations, "durations")
    return rewards - rho * checked_durations(durations)


class RewardRate:
    """Online estimate of rho = E[R] / E[D] from batches.

    A ratio of running sums, both discounted by the same factor, so that it follows a changing
    policy; the ratio of means, not the mean of ratios, which has another limit.

    Attributes:
        memory: Factor on the past at each batch; 1 averages over the whole run.
    """

    def __init__(self, memory: float = 0.9):
        if not 0 <= memory <= 1:
            raise MleRlError(f"The memory of the reward rate is {memory}; give 0 to 1.")
        self.memory = memory
        self._reward = 0.0
        self._duration = 0.0

    @property
    def rho(self) -> float:
        """Reward per second; 0 before the first batch."""
        return self._reward / self._duration if self._duration else 0.0

    def update(
        self,
        rewards: Tensor,  # (batch,)
        durations: Tensor,  # (batch,) seconds
    ) -> float:
        """Takes in a batch and returns the new estimate."""
        _same_shape(rewards, durations, "durations")
        self._reward = self.memory * self._reward + float(rewards.mean())
        self._duration = self.memory * self._duration + float(checked_durations(durations).mean())
        return self.rho

    def state_dict(self) -> dict[str, float]:
        """What a resumed run needs."""
        return {"reward": self._reward, "duration": self._duration}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Restores what :meth:`state_dict` returned."""
        self._reward, self._duration = float(state["reward"]), float(state["duration"])


def _same_shape(rewards: Tensor, other: Tensor, name: str) -> None:
    if rewards.ndim != 1 or rewards.shape != other.shape:
        raise MleRlError(
            f"Rewards and {name} must both have shape (batch,), not {tuple(rewards.shape)} and "
            f"{tuple(other.shape)}."
        )
