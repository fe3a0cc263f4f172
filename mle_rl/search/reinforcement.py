"""Reinforcement learning as a method of search: it is charged for all of its training.

A fresh run of `mle_rl.training.run.train` under a budget. What counts is every program that the run
executed for training and that ended within the budget; no extra samples are drawn. The run ends
after the first update that ends beyond the budget; what happens after the budget counts for
nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from mle_rl.agent import Policy
from mle_rl.errors import MleRlError
from mle_rl.rewards import RewardWeights
from mle_rl.rollout.environment import Pool
from mle_rl.rollout.ledger import Ledger
from mle_rl.search.budget import Budget
from mle_rl.search.loop import Trial
from mle_rl.search.settings import Learning, Settings
from mle_rl.training.config import TrainConfig
from mle_rl.training.run import Controls, train
from mle_rl.training.weighting import DurationWeighting

ENDLESS = 10_000
"""Updates that no budget reaches."""


def configuration(run_dir: Path, settings: Settings, seed: int, learning: Learning) -> TrainConfig:
    """The settings of a training run that takes part in a comparison."""
    return TrainConfig(
        run_dir=run_dir,
        tasks=(settings.task,),
        steps=ENDLESS,
        batch_size=settings.batch_size,
        seed=seed,
        learning_rate=learning.learning_rate,
        entropy=learning.entropy,
        improve_share=learning.improve_share,
        rewards=RewardWeights(
            failure=learning.failure, stage=learning.stage, score_scale="percentile"
        ),
        weighting=DurationWeighting(learning.weighting),
        limits=settings.limits,
        workers=settings.workers,
        tier=settings.tier,
    )


def learn(
    config: TrainConfig,
    policy: Policy,
    pool: Pool,
    budget: Budget,
    on_step: Callable[[Mapping], None],
) -> list[Trial]:
    """Train from a copy of ``policy`` until the budget is used up.

    Args:
        config: Its folder is emptied first.
        policy: Where it starts.
        pool: Where programs run.
        budget: Runs already.
        on_step: Called with every row of the history, see `mle_rl.training.history.GLOSSARY`.

    Returns:
        The trials that ended within the budget, in the order in which they ended.

    Raises:
        KeyboardInterrupt: Training was interrupted.
    """
    shutil.rmtree(config.run_dir, ignore_errors=True)
    controls = Controls(config.rewards)
    ledger_file = config.run_dir / "rollouts.sqlite"
    offset_s = None

    def watch(row: Mapping) -> None:
        nonlocal offset_s
        if offset_s is None:
            # The run's clock begins once the trainer has been set up; that time is charged as well.
            offset_s = budget.elapsed_s - (row["wall_s"] + row["learning_s"])
        controls.stop = budget.over
        on_step(row)

    try:
        train(config, controls=controls, on_step=watch, policy=policy, pool=pool)
    except MleRlError as error:
        if isinstance(error.__context__, KeyboardInterrupt):  # it says how to go on with training
            raise KeyboardInterrupt from None
        raise
    return trace(ledger_file, offset_s, budget.seconds)


def trace(ledger_file: Path, offset_s: float, seconds: float) -> list[Trial]:
    """What a run executed within a budget, from its ledger.

    Args:
        ledger_file: ``rollouts.sqlite`` of the run.
        offset_s: Seconds from the start of the budget to the start of the run's clock.
        seconds: The budget.
    """
    with closing(Ledger(ledger_file)) as ledger:
        states = ("trained", "finished", "dropped")
        rollouts = [r for state in states for r in ledger.rollouts(state) if r.outcome is not None]
    return sorted(
        (
            Trial(r.id, r.program, r.execution, r.outcome, offset_s + r.finished_at)
            for r in rollouts
            if offset_s + r.finished_at <= seconds
        ),
        key=lambda trial: trial.ended_at_s,
    )
