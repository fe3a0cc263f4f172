"""Simulated shares of actions under a collection rule, with their error, beside the closed form."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from mle_rl.rollout import inclusion
from mle_rl.rollout.laboratory.rules import RULES, rule
from mle_rl.rollout.queue import QueueConfig
from mle_rl.rollout.simulation import Learner, Result, simulate
from mle_rl.rollout.simulation.workload import Workload

BLOCKS = 50
"""Blocks of consecutive observations that a standard error is computed from."""


def closed_form(name: str, config: QueueConfig, workload: Workload, update_s: float) -> np.ndarray:
    """Share of each action under a rule of :data:`RULES`, shape (actions,).

    Args:
        name: Name of the rule.
        config: Its configuration, for windows, counts and ages.
        workload: The policy over actions, and how long they take.
        update_s: Time between two updates; rules that drop by age depend on it.
    """
    if name == "snapshot":
        return inclusion.snapshot(workload)
    if config.restart_window_s is not None:
        return inclusion.window(workload, config.restart_window_s)
    if config.over_provision > 1 and config.unfinished == "abort":
        return inclusion.over_provision(workload, config.round_size, config.batch_size)
    if config.staleness == "drop":
        return inclusion.drop_stale(workload, config.max_staleness, update_s)
    if config.worker_rule == "sticky":
        return inclusion.sticky(workload, config.sticky_window_s)
    if config.worker_rule == "per_task":
        return inclusion.per_task(workload, config.workers)
    if config.timeouts == "mask":
        return inclusion.timeouts_masked(workload)
    return inclusion.renewal(workload)


def observed_share(
    result: Result, actions: int, *, in_flight: bool = False, skip: float = 0.1
) -> tuple[np.ndarray, np.ndarray]:
    """Share of each action among the trained rollouts, and its standard error.

    Rollouts of one batch, worker or window are not independent, so the error comes from blocks of
    consecutive rollouts.

    Args:
        result: A simulation with its trace.
        actions: Number of actions.
        in_flight: Look at what is executing at random instants instead.
        skip: Part of the run left out at the start, where all workers begin together.

    Returns:
        Two arrays of shape (actions,).
    """
    trace, end = result.trace, result.elapsed_s
    if in_flight:
        times = np.sort(
            np.random.default_rng(0).uniform(skip * end, end, len(trace) // 64 + BLOCKS)
        )
        counts = np.zeros((len(times), actions))
        seen = trace.in_flight_at(times)
        counts[:, : seen.shape[1]] = seen
        blocks = np.stack([b.sum(0) for b in np.array_split(counts, BLOCKS)])
    else:
        trained = np.flatnonzero(trace.trained)
        order = trained[np.argsort(trace.taken_at[trained], kind="stable")]
        kept = np.array_split(order[int(skip * len(order)) :], BLOCKS)
        blocks = np.stack([np.bincount(trace.action[b], minlength=actions) for b in kept])
    total = blocks.sum()
    share = blocks.sum(0) / total
    residual = blocks - share * blocks.sum(1, keepdims=True)
    error = np.sqrt((residual**2).sum(0) * BLOCKS / (BLOCKS - 1)) / total
    return share, error


def compare(
    names: Iterable[str],
    workload: Workload,
    *,
    updates: int,
    rng: np.random.Generator,
    workers: int = 64,
    batch_size: int = 64,
    train_s: float = 0.0,
) -> pd.DataFrame:
    """Every named rule on one workload: simulated share of each action beside the closed form.

    Returns:
        One row per rule and action: ``rule``, ``action``, ``duration_s`` (mean of the action),
        ``policy`` (its probability), ``closed_form``, ``simulated``, ``standard_error``,
        ``deviation`` (of the simulation from the closed form, in standard errors),
        ``utilisation`` (of the workers).
    """
    rows = []
    for name in names:
        chosen = rule(name)
        config = chosen.config(workers, batch_size)
        result = simulate(
            config,
            workload,
            updates=updates,
            rng=rng,
            learner=Learner(train_s=train_s),
            trace=True,
        )
        actions = len(workload.scale_s)
        share, error = observed_share(result, actions, in_flight=chosen.observed == "in flight")
        expected = closed_form(name, config, workload, result.elapsed_s / result.updates)
        for action in range(actions):
            off = share[action] - expected[action]
            rows.append(
                {
                    "rule": name,
                    "action": action,
                    "duration_s": workload.scale_s[action] * workload.noise.mean,
                    "policy": workload.probabilities[action],
                    "closed_form": expected[action],
                    "simulated": share[action],
                    "standard_error": error[action],
                    "deviation": off / error[action] if error[action] > 0 else 0.0,
                    "utilisation": result.worker_utilisation,
                }
            )
    return pd.DataFrame(rows)


def rules_table() -> pd.DataFrame:
    """The rules in words: share, whether that is unbiased, the right weight."""
    return pd.DataFrame(
        [
            {
                "rule": name,
                "in words": r.title,
                "share of action a": r.share,
                "unbiased": "yes" if r.unbiased else "no",
                "right weight": r.right_weight,
            }
            for name, r in RULES.items()
        ]
    ).set_index("rule")
