"""The losses and weights, equation by equation, in pure torch; nothing here needs TRL."""

from mle_rl.losses.weights import (
    WeightScheme,
    checked_durations,
    duration_weights,
    effective_sample_size,
    group_mean,
)

__all__ = [
    "WeightScheme",
    "checked_durations",
    "duration_weights",
    "effective_sample_size",
    "group_mean",
]
