"""Weights that say how much each rollout counts, from how long it took or how likely it was kept.

Departures from the paper (section 1 there: "duration-aware gradient"): the paper weights every
sample by its own duration. That corrects exactly one way of collecting rollouts, a worker that
repeats its action for a fixed time; see :mod:`mle_rl.rollout.laboratory.rules` for the
others. Here the scheme is a choice, and each is right under a stated rule.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from mle_rl.errors import MleRlError, unknown_name

WeightScheme = Literal["none", "paper", "task_mean", "inclusion"]


def duration_weights(
    durations: Tensor,  # (batch,) seconds of execution alone, without time in queue
    scheme: WeightScheme,
    *,
    groups: Tensor | None = None,  # (batch,) integer label of each sample's task
    floor_s: float = 0.0,
    inclusion: Tensor | None = None,  # (batch,) probability of being trained on once dispatched
    inclusion_floor: float = 0.05,
) -> Tensor:  # (batch,) non-negative, mean 1
    """Weights with mean 1 over the batch they are computed on.

    Pass the whole gathered generation batch at once: weights that are normalised per micro-batch or
    per process change the relative weight of samples. With ``D`` the duration, ``p`` the inclusion
    probability and a bar for the batch mean::

        none       w_i = 1                              renewal collection: nothing to correct
        paper      w_i = D_i / bar(D)                   sticky collection (paper, section 1)
        task_mean  w_i = E[D | task_i] / bar(E[D | task])   one worker per task, equal time each
        inclusion  w_i = (1 / p_i) / bar(1 / p)         any selection with p > 0 (Horvitz-Thompson)

    Args:
        durations: Shape (batch,). Zero, negative, NaN and infinite ones are refused.
        scheme: Which of the four.
        groups: Required by ``"task_mean"``; E[D | task] is estimated by the mean in the batch.
        floor_s: Durations below are raised to this many seconds before use; 0 is no floor.
        inclusion: Required by ``"inclusion"``; in (0, 1], and 0 where the floor is above 0.
        inclusion_floor: Probabilities below are raised to it: bias traded for variance.

    Raises:
        MleRlError: Unknown scheme, missing or misshapen argument, or a value that cannot be a
            duration or a probability.
    """
    if scheme not in get_args(WeightScheme):
        raise unknown_name("duration weighting", str(scheme), get_args(WeightScheme))
    if scheme == "none":
        return torch.ones_like(checked_durations(durations))
    if scheme == "inclusion":
        raw = 1.0 / _checked_inclusion(inclusion, durations, inclusion_floor)
    else:
        raw = checked_durations(durations, floor_s)
        if scheme == "task_mean":
            raw = group_mean(raw, _checked_groups(groups, durations))
    return raw / raw.mean()


def checked_durations(
    durations: Tensor,  # (batch,)
    floor_s: float = 0.0,
) -> Tensor:  # (batch,) floating point
    """The durations, raised to the floor, once it is certain that they are durations.

    Raises:
        MleRlError: The tensor is not a non-empty vector, or holds a zero, negative, NaN or
            infinite value; the message names the first such sample.
    """
    if not isinstance(durations, Tensor) or durations.ndim != 1 or len(durations) == 0:
        raise MleRlError("Durations must be a tensor of shape (batch,) with at least one sample.")
    if not (isinstance(floor_s, (int, float)) and 0 <= floor_s < float("inf")):
        raise MleRlError(f"floor_s is {floor_s!r}; give a number of seconds, 0 for no floor.")
    values = durations if durations.is_floating_point() else durations.to(torch.get_default_dtype())
    bad = ~(torch.isfinite(values) & (values > 0))
    if bad.any():
        first = int(bad.nonzero()[0])
        raise MleRlError(
            f"Sample {first} has duration {float(values[first])} s; a duration must be positive "
            "and finite. Measure the execution alone, and give rejected programs the shortest time "
            "that the sandbox can measure."
        )
    return values.clamp(min=floor_s)


def group_mean(
    values: Tensor,  # (batch,)
    groups: Tensor,  # (batch,) integer labels, any values
) -> Tensor:  # (batch,) the mean of each sample's group
    """Mean of ``values`` over the samples that share a label, written back to each of them."""
    return group_sum(values, groups) / group_sum(torch.ones_like(values), groups)


def group_sum(
    values: Tensor,  # (batch,)
    groups: Tensor,  # (batch,) integer labels, any values
) -> Tensor:  # (batch,) the sum of each sample's group
    """Sum of ``values`` over the samples that share a label, written back to each of them."""
    _, index = torch.unique(groups, return_inverse=True)
    total = torch.zeros(int(index.max()) + 1, dtype=values.dtype, device=values.device)
    return total.index_add(0, index, values)[index]


def effective_sample_size(
    weights: Tensor,  # (batch,) non-negative
) -> float:
    """Kish's effective number of samples, (sum w)^2 / sum w^2.

    Weights equal to durations leave n / (1 + CV^2(D)), with CV the coefficient of variation: for
    log-normal durations n / exp(sigma^2).
    """
    return float(weights.sum() ** 2 / (weights**2).sum())


def _checked_groups(groups: Tensor | None, durations: Tensor) -> Tensor:
    if not isinstance(groups, Tensor) or groups.shape != durations.shape:
        raise MleRlError("task_mean needs groups, a tensor of one task label per sample, (batch,).")
    return groups


def _checked_inclusion(inclusion: Tensor | None, durations: Tensor, floor: float) -> Tensor:
    checked_durations(durations)
    if not isinstance(inclusion, Tensor) or inclusion.shape != durations.shape:
        raise MleRlError("inclusion needs a tensor of one probability per sample, shape (batch,).")
    if not 0 <= floor <= 1:
        raise MleRlError(f"inclusion_floor is {floor!r}; give a probability.")
    raised = inclusion.clamp(min=floor)
    if not ((inclusion >= 0) & (inclusion <= 1) & (raised > 0)).all():
        raise MleRlError(
            "Inclusion probabilities must lie in (0, 1]; a sample that can never be kept has no "
            "weight that corrects it, so set inclusion_floor above 0 or change the queue."
        )
    return raised
