"""What each estimator climbs: exact objectives of a categorical policy, and exact expectations.

A softmax over actions with known reward and duration is small enough for every expectation to be a
sum. That is the test bench for the claims about weights: an estimator's expected gradient under a
collection rule against the gradient of the objective it is said to climb. Double precision gives
agreement to rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def expected_reward(
    logits: Tensor,  # (actions,)
    rewards: Tensor,  # (actions,)
    durations: Tensor,  # (actions,) mean execution time
) -> Tensor:  # ()
    """E[R], the mean over samples: climbed without weights where collection is unbiased."""
    return logits.softmax(0) @ rewards


def time_average_reward(
    logits: Tensor,  # (actions,)
    rewards: Tensor,  # (actions,)
    durations: Tensor,  # (actions,)
) -> Tensor:  # ()
    """E[DR] / E[D], the mean over time, not over samples: what duration weights climb."""
    policy = logits.softmax(0)
    return (policy @ (durations * rewards)) / (policy @ durations)


def reward_rate(
    logits: Tensor,  # (actions,)
    rewards: Tensor,  # (actions,)
    durations: Tensor,  # (actions,)
) -> Tensor:  # ()
    """E[R] / E[D], reward per second of execution: charging for time."""
    policy = logits.softmax(0)
    return (policy @ rewards) / (policy @ durations)


OBJECTIVES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "E[R]": expected_reward,
    "E[DR]/E[D]": time_average_reward,
    "E[R]/E[D]": reward_rate,
}
"""The three objectives by the label that every learning curve must carry."""


def gradient(
    objective: Callable[[Tensor, Tensor, Tensor], Tensor],
    logits: Tensor,  # (actions,)
    rewards: Tensor,  # (actions,)
    durations: Tensor,  # (actions,)
) -> Tensor:  # (actions,)
    """The exact gradient of an objective with respect to the logits."""
    logits = logits.detach().requires_grad_()
    (result,) = torch.autograd.grad(objective(logits, rewards, durations), logits)
    return result


def scores(
    logits: Tensor,  # (actions,)
) -> Tensor:  # (actions, actions); row a is grad log pi(a)
    """Score functions of a softmax: ``grad log pi(a) = e_a - pi``."""
    policy = logits.detach().softmax(0)
    return torch.eye(len(policy), dtype=policy.dtype) - policy


def expected_update(
    logits: Tensor,  # (actions,)
    share: Tensor,  # (actions,) of each action among the trained rollouts, sums to 1
    weighted_advantages: Tensor,  # (actions,) weight times advantage of each action
) -> Tensor:  # (actions,)
    """Expected step when actions arrive in these shares: ``sum_a share(a) w(a) A(a) g(a)``.

    ``share`` is the policy itself where collection is unbiased; otherwise see
    :mod:`mle_rl.rollout.inclusion`.
    """
    return (share * weighted_advantages) @ scores(logits)
