"""The losses and weights, equation by equation, in pure torch; nothing here needs TRL.

How the pieces fit, for one update on a gathered batch::

    weights = duration_weights(durations, "paper")           # mean 1 over the batch
    advantages = weighted_mean_advantages(rewards, weights)  # centred the way it is weighted
    loss = clipped_loss(log_probs, behaviour, (weights * advantages)[:, None], mask)
"""

from mle_rl.losses.advantages import (
    RewardRate,
    generalised_advantages,
    group_advantages,
    leave_one_out_advantages,
    reward_rate_advantages,
    weighted_mean_advantages,
)
from mle_rl.losses.policy import clipped_loss, importance_ratio, policy_gradient_loss
from mle_rl.losses.weights import (
    WeightScheme,
    checked_durations,
    duration_weights,
    effective_sample_size,
    group_mean,
)

__all__ = [
    "RewardRate",
    "WeightScheme",
    "checked_durations",
    "clipped_loss",
    "duration_weights",
    "effective_sample_size",
    "generalised_advantages",
    "group_advantages",
    "group_mean",
    "importance_ratio",
    "leave_one_out_advantages",
    "policy_gradient_loss",
    "reward_rate_advantages",
    "weighted_mean_advantages",
]
