"""Gradients under collection rules: what is expected of an update, and what batches estimate.

For a categorical policy both can be had: the expectation as an exact sum with the closed-form share
of each action, and estimates from simulated batches through the losses that train.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from mle_rl.errors import unknown_name
from mle_rl.losses import policy_gradient_loss, weighted_mean_advantages
from mle_rl.losses.objectives import expected_update
from mle_rl.rollout.laboratory.bandit import Bandit
from mle_rl.rollout.queue import QueueConfig
from mle_rl.rollout.simulation import Batch, Learner, simulate
from mle_rl.rollout.simulation.workload import Workload

WEIGHTINGS = ("none", "duration", "inclusion", "task_mean")


def workload_of(bandit: Bandit, tasks: tuple[int, ...] | None = None) -> Workload:
    """The bandit at its starting policy, for the simulation."""
    policy = torch.tensor(bandit.logits, dtype=torch.float64).softmax(0)
    return Workload(
        scale_s=bandit.durations_s,
        probabilities=policy.tolist(),
        noise=bandit.noise,
        tasks=tasks,
    )


def exact_update(
    bandit: Bandit, workload: Workload, share: np.ndarray, weighting: str
) -> Tensor:  # (arms,)
    """Expected step when the arms arrive in these shares, weighted and centred accordingly.

    Args:
        bandit: Rewards and policy.
        workload: The same, with the tasks of the arms.
        share: Of each arm among the trained rollouts, shape (arms,).
        weighting: ``none``; ``duration``, each arm's own; ``inclusion``, policy over share, 0 for
            an arm that never arrives; ``task_mean``, E[D | task of the arm].
    """
    rewards, arriving = _tensor(bandit.rewards), _tensor(share)
    weights = _weights(workload, share, weighting)
    advantages = weighted_mean_advantages(rewards, arriving * weights)
    return expected_update(_tensor(bandit.logits), arriving, weights * advantages)


def estimated_updates(
    bandit: Bandit,
    workload: Workload,
    config: QueueConfig,
    weighting: str,
    *,
    share: np.ndarray,
    updates: int,
    rng: np.random.Generator,
    per_batch: bool = True,
    skip: int = 0,
) -> Tensor:  # (updates, arms)
    """The step that each simulated batch would make from the same policy, by autograd.

    Args:
        bandit: Rewards and policy; the policy stays as it is.
        workload: What is executed.
        config: The collection rule.
        weighting: As for :func:`exact_update`; ``duration`` takes the measured durations.
        share: Share of each arm among the trained rollouts, for ``inclusion`` alone.
        updates: Number of batches.
        rng: Source of all randomness.
        per_batch: Weights have mean 1 over their batch, as the paper has it, and the baseline is
            that of the batch. Otherwise both are those of all batches together, so that a batch of
            slow rollouts is as heavy and as good as it is.
        skip: Batches left out at the start, where all workers begin together.
    """
    batches: list[Batch] = []
    learner = Learner(learn=batches.append)
    simulate(config, workload, updates=skip + updates, rng=rng, learner=learner)
    del batches[:skip]
    logits = _tensor(bandit.logits).requires_grad_()
    by_arm = _weights(workload, share, weighting)
    raw = [
        _tensor(b.durations_s) if weighting == "duration" else by_arm[torch.as_tensor(b.actions)]
        for b in batches
    ]
    rewards = _tensor(bandit.rewards)
    by_rollout = rewards[torch.cat([torch.as_tensor(b.actions) for b in batches])]
    scale = torch.cat(raw).mean()
    baseline = (torch.cat(raw) * by_rollout).mean() / scale
    steps = []
    for batch, weights in zip(batches, raw, strict=True):
        arms = torch.as_tensor(batch.actions)
        if per_batch:
            weights = weights / weights.mean()
            advantages = weighted_mean_advantages(rewards[arms], weights)
        else:
            weights, advantages = weights / scale, rewards[arms] - baseline
        log_probs = logits.log_softmax(0)[arms][:, None]
        loss = policy_gradient_loss(
            log_probs, (weights * advantages)[:, None], torch.ones_like(log_probs)
        )
        (slope,) = torch.autograd.grad(loss, logits)
        steps.append(-slope)
    return torch.stack(steps)


def angle(a: Tensor, b: Tensor) -> float:
    """Angle between two directions in degrees: 0 is the same, 90 useless, above that harmful."""
    cosine = torch.nn.functional.cosine_similarity(a, b, dim=0).clamp(-1, 1)
    return float(torch.rad2deg(torch.arccos(cosine)))


def _weights(workload: Workload, share: np.ndarray, weighting: str) -> Tensor:  # (arms,)
    """Weight of each arm, not normalised."""
    d, policy = _tensor(workload.scale_s), _tensor(workload.probabilities)
    if weighting == "none":
        return torch.ones_like(d)
    if weighting == "duration":
        return d
    if weighting == "inclusion":
        arriving = _tensor(share)
        return torch.where(arriving > 0, policy / arriving.clamp(min=1e-300), 0.0)
    if weighting == "task_mean":
        tasks = workload.tasks.tolist()
        return torch.stack([_tensor(workload.of_task(t)) @ d for t in tasks])
    raise unknown_name("weighting", weighting, WEIGHTINGS)


def _tensor(values) -> Tensor:
    return torch.as_tensor(np.asarray(values, dtype=float))
