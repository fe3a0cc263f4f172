"""What a run does between TRL's steps: reward weights, history, checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from transformers import TrainerCallback

from mle_rl.errors import MleRlError
from mle_rl.training import checkpoint
from mle_rl.training.checks import charged_twice

if TYPE_CHECKING:
    from mle_rl.training.run import _Run


class RunCallback(TrainerCallback):
    """Joins one run with TRL's training loop."""

    def __init__(self, run: _Run):
        self._run = run

    def on_step_begin(self, args, state, control, **kwargs):
        """Reward weights that were changed meanwhile count from here on."""
        weights = self._run.controls.rewards
        if problem := charged_twice(weights, self._run.config.weighting):
            raise MleRlError(problem)
        self._run.collector.reward_weights = weights

    def on_log(self, args, state, control, logs=None, **kwargs):
        """TRL's metrics complete the row of the batch, once all updates on it are done.

        The summary after training has no row. Whoever is shown the row may ask the run to stop.
        """
        if "train_runtime" in logs:
            return
        self._run.on_step(self._run.history.end(logs, self._run.driver.now()))
        if self._run.controls.stop:
            control.should_save = control.should_training_stop = True

    def on_save(self, args, state, control, **kwargs):
        """A checkpoint is complete with the state of the rollouts."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        checkpoint.complete(folder, self._run.state_dict())
