"""The four-arm bandit: collection rules against weightings, where the optimum is known.

Four programs: one crashes, one is fast and poor, one is in between, one is slow and best. The
policy is a softmax over them, trained by plain policy gradient on what a collection rule lets
through. Whether it ends at the best arm depends on rule and weight together; nothing here can be
blamed on exploration, function approximation or noise in the reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from mle_rl.errors import MleRlError, unknown_name
from mle_rl.losses import (
    RewardRate,
    duration_weights,
    importance_ratio,
    policy_gradient_loss,
    reward_rate_advantages,
    weighted_mean_advantages,
)
from mle_rl.rollout.inclusion import drop_stale_probability
from mle_rl.rollout.queue import QueueConfig
from mle_rl.rollout.simulation import Batch, Learner, simulate
from mle_rl.rollout.simulation.durations import Distribution, LogNormal
from mle_rl.rollout.simulation.workload import Workload


@dataclass(frozen=True)
class Bandit:
    """The problem, and how it is trained.

    Attributes:
        arms: Names.
        durations_s: Execution time of each arm before noise.
        rewards: Reward of each arm; no noise.
        logits: Where the policy starts.
        noise: Factor on every duration.
        step: Learning rate of plain gradient ascent.
        train_s: Wall-clock time of an update, during which asynchronous sampling goes on.
        updates: Learner updates.
        workers: Executions at the same time.
        batch_size: Rollouts per update.
        ratio_cap: Truncation of the importance ratio.
        inclusion_floor: Inclusion probabilities below are raised to it.
        interval_memory: Factor on the past in the running estimate of the time between updates,
            which inclusion probabilities rest on. It decides that column: slow rollouts arrive
            when the interval happens to be long, so a short memory takes them for likely ones
            just then, and gives them too little weight.
    """

    arms: tuple[str, ...] = ("crash", "fast", "medium", "slow and best")
    durations_s: tuple[float, ...] = (0.5, 1.0, 5.0, 20.0)
    rewards: tuple[float, ...] = (-1.0, 0.5, 0.7, 1.0)
    logits: tuple[float, ...] = (0.5, 1.0, 0.0, -1.0)
    noise: Distribution = field(default_factory=lambda: LogNormal.of_sigma(0.2))
    step: float = 0.5
    train_s: float = 1.0
    updates: int = 400
    workers: int = 64
    batch_size: int = 64
    ratio_cap: float = 5.0
    inclusion_floor: float = 0.05
    interval_memory: float = 0.95


COLUMNS = ("none", "duration", "inclusion", "importance ratio", "reward rate")
"""Weightings, the columns of the table."""

FIXED_SCALE = "duration, fixed scale"
"""One more: durations over a constant instead of over the batch mean. Weights of mean 1 give every
batch the same say. Where batches are cut by count from a stream in which durations cluster (sticky
workers do that), batches of fast rollouts are then as heavy as rarer ones of slow rollouts, and the
bias that the weights took out of a batch comes back between batches."""


@dataclass(frozen=True)
class Outcome:
    """One run.

    Attributes:
        expected_reward: E[R] of the policy after every update, shape (updates,).
        updated_at_s: Virtual time of every update, shape (updates,).
        executed_s: Worker-seconds of execution spent by then, shape (updates,).
        policy: Final probabilities of the arms.
        dropped: Share of the decided rollouts that were dropped.
        staleness: Mean age in updates of what was trained on.
    """

    expected_reward: np.ndarray
    updated_at_s: np.ndarray
    executed_s: np.ndarray
    policy: np.ndarray
    dropped: float
    staleness: float


def run(bandit: Bandit, config: QueueConfig, weighting: str, seed: int) -> Outcome:
    """Trains one policy under one collection rule with one weighting.

    Raises:
        MleRlError: Unknown weighting, or one that this rule gives no meaning to.
    """
    if weighting not in (*COLUMNS, FIXED_SCALE):
        raise unknown_name("weighting", weighting, (*COLUMNS, FIXED_SCALE))
    learner = _GradientAscent(bandit, config, weighting)
    result = simulate(
        config,
        Workload(
            scale_s=bandit.durations_s,
            probabilities=learner.probabilities(),
            noise=bandit.noise,
        ),
        updates=bandit.updates,
        rng=np.random.default_rng(seed),
        learner=Learner(train_s=bandit.train_s, learn=learner.learn),
    )
    dropped = sum(result.counts.dropped.values())
    return Outcome(
        expected_reward=np.array(learner.curve),
        updated_at_s=np.array(learner.updated_at_s),
        executed_s=np.array(learner.executed_s),
        policy=learner.probabilities(),
        dropped=dropped / (dropped + result.counts.trained),
        staleness=float(np.mean(learner.staleness)),
    )


class _GradientAscent:
    """Plain policy gradient on the batches that the queue hands out."""

    def __init__(self, bandit: Bandit, config: QueueConfig, weighting: str):
        self._bandit, self._config, self._weighting = bandit, config, weighting
        self._logits = _tensor(bandit.logits).requires_grad_()
        self._rewards = _tensor(bandit.rewards)
        self._past = [self._logits.detach().log_softmax(0)]  # by model version
        self._scale_s = float(self._logits.detach().softmax(0) @ _tensor(bandit.durations_s))
        self._interval_s: float | None = None
        self._rate = RewardRate()
        self.curve: list[float] = []
        self.updated_at_s: list[float] = []
        self.executed_s: list[float] = []
        self.staleness: list[float] = []

    def probabilities(self) -> np.ndarray:
        """The policy."""
        return self._logits.detach().softmax(0).numpy()

    def learn(self, batch: Batch) -> np.ndarray:
        """One update; the callback of the simulation's learner."""
        actions = torch.as_tensor(batch.actions)
        durations = torch.as_tensor(batch.durations_s)
        rewards = self._rewards[actions]
        weights, ratio = self._weights(batch, durations), None
        if self._weighting == "reward rate":
            rho = self._rate.update(rewards, durations)
            advantages = reward_rate_advantages(rewards, durations, rho)
        else:
            advantages = weighted_mean_advantages(rewards, weights)
        log_probs = self._logits.log_softmax(0)[actions][:, None]
        mask = torch.ones_like(log_probs)
        if self._weighting == "importance ratio":
            sampled = torch.stack(self._past)[torch.as_tensor(batch.versions), actions]
            ratio = importance_ratio(log_probs, sampled[:, None], mask, cap=self._bandit.ratio_cap)
        loss = policy_gradient_loss(log_probs, (weights * advantages)[:, None], mask, ratio)
        (slope,) = torch.autograd.grad(loss, self._logits)
        with torch.no_grad():
            self._logits -= self._bandit.step * slope
        self._past.append(self._logits.detach().log_softmax(0))
        self.curve.append(float(self._logits.detach().softmax(0) @ self._rewards))
        self.updated_at_s.append(sum(self.updated_at_s[-1:]) + batch.interval_s)
        self.executed_s.append(batch.executed_s)
        self.staleness.append(float((batch.version - batch.versions).mean()))
        return self.probabilities()

    def _weights(self, batch: Batch, durations: torch.Tensor) -> torch.Tensor:
        if self._weighting == "duration":
            return duration_weights(durations, "paper")
        if self._weighting == FIXED_SCALE:
            return durations / self._scale_s
        if self._weighting != "inclusion":
            return duration_weights(durations, "none")
        past, memory = self._interval_s, self._bandit.interval_memory
        new = batch.interval_s
        self._interval_s = new if past is None else memory * past + (1 - memory) * new
        return duration_weights(
            durations,
            "inclusion",
            inclusion=torch.as_tensor(
                inclusion_estimate(self._config, batch.durations_s, self._interval_s)
            ),
            inclusion_floor=self._bandit.inclusion_floor,
        )


def _tensor(values: Sequence[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def inclusion_estimate(config: QueueConfig, durations_s: np.ndarray, update_s: float) -> np.ndarray:
    """What a learner can know of the probability that such a rollout is trained on.

    Only dropping by staleness has a probability that follows from duration and update interval
    alone; rules that drop nothing have 1.

    Raises:
        MleRlError: The rule aborts or throws away by other means.
    """
    if config.in_rounds and config.unfinished == "abort":
        raise MleRlError(
            "The inclusion probability under this rule is not a function of the duration alone, "
            "and 0 for some rollouts: no weight corrects it. Change the queue instead."
        )
    if config.staleness == "drop":
        return drop_stale_probability(durations_s, config.max_staleness, update_s)
    return np.ones_like(durations_s)
