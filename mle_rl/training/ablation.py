"""Ablations: the same training with one thing changed, several seeds, resumable.

    arms = {"on": {}, "off": {"rewards": RewardWeights(stage=0.0)}}
    curves = run_arms(base, arms, seeds=(0, 1, 2))

An ended run is not trained again, so an interrupted ablation goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from mle_rl import tasks
from mle_rl.agent import Policy
from mle_rl.errors import MleRlError
from mle_rl.reward_laboratory import Sample, rewards, scoring_of
from mle_rl.rewards import RewardWeights
from mle_rl.rollout.ledger import Ledger
from mle_rl.training.config import TrainConfig
from mle_rl.training.run import train


def run_arms(
    base: TrainConfig,
    arms: Mapping[str, Mapping[str, Any]],
    seeds: Sequence[int],
    *,
    judge: RewardWeights | None = None,
    policy: Policy | None = None,
    on_run: Callable[[str, int, pd.DataFrame], None] | None = None,
) -> pd.DataFrame:
    """Train every arm with every seed, one after the other.

    Args:
        base: Settings that all have; runs go to ``base.run_dir/<arm>/seed-<seed>``.
        arms: Name -> settings that differ from ``base``.
        seeds: Each gives one run of every arm; arms take turns, so that what slows the machine for
            a while slows all alike.
        judge: Reward weights that all arms are compared under; those of ``base`` by default.
        policy: What all start from, instead of ``base.policy``.
        on_run: Called with arm, seed and history after every run.

    Returns:
        The histories below one another, with columns ``arm``, ``seed``, ``date`` (when the run
        ended), ``objective`` (what the arm climbs, see `DurationWeighting.objective`) and
        ``judged_reward``: the mean reward of the batch under ``judge``, whatever the arm was paid
        by.

    Raises:
        MleRlError: No arm or no seed; an arm changes what must be equal; or what `train` raises.
    """
    if not arms or not seeds:
        raise MleRlError("An ablation needs at least one arm and one seed.")
    if taken := {"run_dir", "seed", "tasks"} & {name for arm in arms.values() for name in arm}:
        raise MleRlError(
            f"An arm may not set {', '.join(sorted(taken))}: that is the same for all."
        )
    curves = []
    for seed in seeds:
        for arm, changes in arms.items():
            folder = base.run_dir / arm / f"seed-{seed}"
            config = replace(base, **changes, run_dir=folder, seed=seed)
            history = train(config, policy=policy).history
            judged = judged_rewards(config, judge or base.rewards)
            ended = date.fromtimestamp((folder / "history.csv").stat().st_mtime)
            history = history.assign(
                arm=arm,
                seed=seed,
                date=str(ended),
                objective=config.weighting.objective,
                judged_reward=judged,
            )
            curves.append(history)
            if on_run is not None:
                on_run(arm, seed, history)
    return pd.concat(curves, ignore_index=True)


def judged_rewards(config: TrainConfig, judge: RewardWeights) -> np.ndarray:
    """Mean reward of every batch of a run under ``judge``, from its ledger, shape ``(steps,)``."""
    with closing(Ledger(config.run_dir / "rollouts.sqlite")) as ledger:
        rollouts = ledger.rollouts("trained")
        versions = ledger.table().query("state == 'trained'").trained_version.to_numpy()
    scorings = {name: scoring_of(tasks.load(name)) for name in config.tasks}
    earned = [
        rewards([Sample.of(r.execution, r.outcome)], judge, scorings[r.task])[0] for r in rollouts
    ]
    return pd.Series(earned).groupby(versions).mean().to_numpy()
