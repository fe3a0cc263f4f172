"""The four-arm bandit: collection rules against weightings, where the optimum is known.

Four programs: one crashes, one is fast and poor, one is in between, one is slow and best. The
policy is a softmax over them, trained by plain policy gradient on what a collection rule lets
through. Whether it ends at the best arm depends on rule and weight together; nothing here can be
blamed on exploration, function approximation or noise in the reward.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import torch

from mle_rl.analysis.statistics import bootstrap_interval
from mle_rl.errors import MleRlError, unknown_name
from mle_rl.losses import (
    RewardRate,
    duration_weights,
    importance_ratio,
    policy_gradient_loss,
    reward_rate_advantages,
    weighted_mean_advantages,
)
from mle_rl.rollout.durations import Distribution, LogNormal
from mle_rl.rollout.inclusion import drop_stale_probability
from mle_rl.rollout.queue import QueueConfig
from mle_rl.rollout.simulation import Batch, Learner, simulate
from mle_rl.rollout.workload import Workload


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


_KEEP = {"staleness": "keep", "ordering": "completion"}
_STICKY = {**_KEEP, "worker_rule": "sticky", "sticky_window_s": 24.0}

ROWS: dict[str, dict] = {
    "synchronous, wait for all": {"max_staleness": 0, "ordering": "completion"},
    "asynchronous, keep all": _KEEP,
    "drop stale, 4 updates": {"staleness": "drop", "max_staleness": 4, "ordering": "completion"},
    "drop stale, 20 updates": {"staleness": "drop", "max_staleness": 20, "ordering": "completion"},
    "admission control, 4, oldest first": {"max_staleness": 4},
    "admission control, 4, strict order": {
        "max_staleness": 4,
        "ordering": "window",
        "order_window": 1,
    },
    "over-provision 1.5x, abort": {**_KEEP, "over_provision": 1.5},
    "over-provision 1.5x, recycle": {**_KEEP, "over_provision": 1.5, "unfinished": "recycle"},
    "restart window, 8 s": {**_KEEP, "restart_window_s": 8.0},
    "sticky, a window of 24 s is a batch": {**_STICKY, "restart_window_s": 24.0},
    "sticky, 24 s, 64 at a time": _STICKY,
}
"""Collection rules, the rows of the table, as settings of the queue."""

COLUMNS = ("none", "duration", "inclusion", "importance ratio", "reward rate")
"""Weightings, the columns of the table."""

FIXED_SCALE = "duration, fixed scale"
"""One more: durations over a constant instead of over the batch mean. Weights of mean 1 give every
batch the same say. Where batches are cut by count from a stream in which durations cluster (sticky
workers do that), batches of fast rollouts are then as heavy as rarer ones of slow rollouts, and the
bias that the weights took out of a batch comes back between batches."""

REFERENCE: dict[tuple[str, str], float] = {
    ("synchronous, wait for all", "none"): 0.995,
    ("synchronous, wait for all", "duration"): 0.926,
    ("synchronous, wait for all", "reward rate"): 0.499,
    ("asynchronous, keep all", "none"): 0.994,
    ("asynchronous, keep all", "duration"): 0.929,
    ("asynchronous, keep all", "importance ratio"): 0.994,
    ("drop stale, 4 updates", "none"): 0.700,
    ("drop stale, 4 updates", "duration"): 0.934,
    ("drop stale, 4 updates", "inclusion"): 0.842,
    ("drop stale, 20 updates", "none"): 0.994,
    ("admission control, 4, oldest first", "none"): 0.994,
    ("over-provision 1.5x, abort", "none"): 0.504,
    ("over-provision 1.5x, abort", "duration"): 0.505,
    ("restart window, 8 s", "none"): 0.698,
    ("restart window, 8 s", "duration"): 0.690,
    ("sticky, a window of 24 s is a batch", "none"): 0.507,
    ("sticky, a window of 24 s is a batch", "duration"): 0.995,
}
"""Final E[R] of an independent earlier implementation of the same experiment, 10 seeds. Its
admission row was not bounded in capacity: it took whatever was ready, sorted by dispatch."""


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
        past = self._interval_s
        new = batch.interval_s
        self._interval_s = new if past is None else 0.9 * past + 0.1 * new
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


def table(
    bandit: Bandit | None = None,
    *,
    rows: Iterable[str] = tuple(ROWS),
    columns: Sequence[str] = COLUMNS,
    seeds: Iterable[int] = range(10),
    progress: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """The experiment: every rule with every weighting that has a meaning under it.

    Args:
        bandit: The problem.
        rows: Names of rules, keys of :data:`ROWS`.
        columns: Names of weightings, of :data:`COLUMNS`.
        seeds: One run per seed.
        progress: Called with a line of text after each row.

    Returns:
        One row per run: rule, weighting, seed, final ``expected_reward``, ``p_best`` (probability
        of the best arm), ``reached_at`` and ``reached_s`` (update and virtual time at which E[R]
        first passed 0.9; NaN if never), ``elapsed_s``, ``dropped``, ``staleness``.
    """
    bandit = bandit or Bandit()
    records = []
    for row in rows:
        if row not in ROWS:
            raise unknown_name("collection rule of the bandit", row, ROWS)
        config = config_of(bandit, row)
        for column in columns:
            if column == "inclusion" and config.in_rounds and config.unfinished == "abort":
                continue
            for seed in seeds:
                outcome = run(bandit, config, column, seed)
                records.append(
                    {"rule": row, "weighting": column, "seed": seed, **_record(bandit, outcome)}
                )
        if progress:
            progress(row)
    return pd.DataFrame(records)


def summarise(
    results: pd.DataFrame, value: str = "expected_reward", *, rng: np.random.Generator
) -> pd.DataFrame:
    """Mean over seeds of every cell with its 95 % bootstrap interval.

    The mean, not the interquartile mean: some cells are lotteries between two outcomes, and which
    share of seeds wins is the point.

    Returns:
        One row per cell: ``rule``, ``weighting``, ``mean``, ``low``, ``high``, ``seeds``,
        ``reference`` (NaN where there is none).
    """
    rows = []
    for (rule, weighting), cell in results.groupby(["rule", "weighting"], sort=False):
        interval = bootstrap_interval(cell[value].to_numpy(), np.mean, rng=rng)
        rows.append(
            {
                "rule": rule,
                "weighting": weighting,
                "mean": interval.point,
                "low": interval.low,
                "high": interval.high,
                "seeds": len(cell),
                "reference": REFERENCE.get((rule, weighting), math.nan),
            }
        )
    return pd.DataFrame(rows)


def learning_curves(
    bandit: Bandit,
    pairs: Sequence[tuple[str, str]],
    *,
    seeds: Iterable[int],
    rng: np.random.Generator,
    every: int = 5,
) -> pd.DataFrame:
    """E[R] after every few updates, with the times at which they were made.

    Args:
        bandit: The problem.
        pairs: Rule and weighting of each curve.
        seeds: One run per seed.
        rng: Source of the bootstrap.
        every: Updates between two points.

    Returns:
        Columns ``run``, ``update``, ``hours`` and ``execution_hours`` (means over seeds), ``mean``,
        ``low``, ``high`` (95 % interval over seeds).
    """
    frames = []
    for row, weighting in pairs:
        runs = [run(bandit, config_of(bandit, row), weighting, seed) for seed in seeds]
        rewards = np.stack([r.expected_reward for r in runs])
        at = np.unique(np.r_[0 : bandit.updates : every, bandit.updates - 1])
        samples = [
            bootstrap_interval(rewards[:, update], np.mean, rng=rng, repeats=300) for update in at
        ]
        hours = np.mean([r.updated_at_s for r in runs], axis=0) / 3600
        executed = np.mean([r.executed_s for r in runs], axis=0) / 3600
        frames.append(
            pd.DataFrame(
                {
                    "run": f"{row}; {weighting}",
                    "update": at + 1,
                    "hours": hours[at],
                    "execution_hours": executed[at],
                    "mean": [s.point for s in samples],
                    "low": [s.low for s in samples],
                    "high": [s.high for s in samples],
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def config_of(bandit: Bandit, row: str) -> QueueConfig:
    """The queue of a row of the table."""
    return QueueConfig(workers=bandit.workers, batch_size=bandit.batch_size, **ROWS[row])


def _record(bandit: Bandit, outcome: Outcome) -> dict[str, float]:
    curve = outcome.expected_reward
    reached = np.flatnonzero(curve > 0.9)
    at = reached[0] if len(reached) else None
    return {
        "expected_reward": float(curve[-1]),
        "p_best": float(outcome.policy[int(np.argmax(bandit.rewards))]),
        "reached_at": math.nan if at is None else float(at + 1),
        "reached_s": math.nan if at is None else float(outcome.updated_at_s[at]),
        "elapsed_s": float(outcome.updated_at_s[-1]),
        "dropped": outcome.dropped,
        "staleness": outcome.staleness,
    }
