"""Train a policy live: real programs on worker processes, TRL's loss, one call.

    result = train(TrainConfig(run_dir=Path("results/quick/run"), tasks=("library-docstrings",)))

The folder of the run holds ``settings.txt``, the ledger of rollouts ``rollouts.sqlite``, the last
two checkpoints, ``history.csv`` (see `mle_rl.training.history.GLOSSARY`) and at the end the trained
policy in ``policy/``, which `mle_rl.agent.load_policy` reads. Calling `train` again with the same
settings goes on from the last checkpoint, or returns at once if the run has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from mle_rl import tasks
from mle_rl.agent import Policy, load_policy
from mle_rl.errors import MleRlError
from mle_rl.rewards import RewardWeights
from mle_rl.rollout.collector import RolloutCollector, rollout_reward
from mle_rl.rollout.environment import Pool
from mle_rl.rollout.executions import ExecutionStore
from mle_rl.rollout.ledger import Ledger
from mle_rl.rollout.live import LiveDriver
from mle_rl.rollout.queue import Counts, RolloutQueue
from mle_rl.sandbox import LocalPool
from mle_rl.training import checkpoint
from mle_rl.training.assembly import assign, grpo_config, sampling_settings
from mle_rl.training.config import TrainConfig
from mle_rl.training.folder import claimed, has_ended, save_policy
from mle_rl.training.history import History, progress_line
from mle_rl.training.reference import readable
from mle_rl.training.surroundings import quiet_libraries, refuse_several_processes, threads


@dataclass
class Controls:
    """What may be changed while a run trains, from any thread; read before every batch."""

    rewards: RewardWeights
    """Reward weights from the next batch on."""

    stop: bool = False
    """End the run after this batch, with a checkpoint. It is asked of one run: when that has ended,
    for whatever reason, this is False again, and the same controls may go on with it."""


@dataclass(frozen=True)
class TrainResult:
    """A run that has ended.

    Attributes:
        policy: The trained policy; adapters are merged into it.
        history: One row per batch; columns are those of `history.GLOSSARY`.
        counts: What became of every rollout that was dispatched.
        run_dir: Where everything lies; the rollouts themselves are in ``rollouts.sqlite`` there.
    """

    policy: Policy
    history: pd.DataFrame
    counts: Counts
    run_dir: Path


def train(
    config: TrainConfig,
    *,
    controls: Controls | None = None,
    on_step: Callable[[Mapping], None] | None = None,
    policy: Policy | None = None,
    pool: Pool | None = None,
    peft_config: Any = None,
) -> TrainResult:
    """Train, or go on with, the run in ``config.run_dir``.

    Args:
        config: The settings.
        controls: What another thread, such as a slider, may change meanwhile.
        on_step: Called with every finished row of the history. By default about twenty of them are
            printed.
        policy: Start from a copy of this one instead of loading ``config.policy``.
        pool: Run programs there instead of in a pool of this run's own; it must have
            ``config.workers`` workers, and is left open.
        peft_config: A ``peft.PeftConfig``: train adapters instead of all weights.

    Raises:
        MleRlError: A task, policy or tier that does not exist, a folder that cannot be written or
            holds another run; it was started as one of several processes; or the run was
            interrupted (Ctrl-C) and can be gone on with.
    """
    refuse_several_processes()
    controls = controls or Controls(config.rewards)
    on_step = on_step or partial(_print_some, steps=config.steps)
    with (
        _stopping_once(controls),
        claimed(config, peft_config),
        threads(config.learner_threads),
        quiet_libraries(),
        closing(Ledger(config.run_dir / "rollouts.sqlite")) as ledger,
    ):
        if not has_ended(config):
            try:
                with ExitStack() as opened:
                    _train(config, policy, pool, ledger, controls, on_step, peft_config, opened)
            except KeyboardInterrupt:
                raise MleRlError(_interrupted(config.run_dir)) from None
        return TrainResult(
            policy=load_policy(config.run_dir / "policy"),
            history=pd.read_csv(config.run_dir / "history.csv"),
            counts=ledger.counts(),
            run_dir=config.run_dir,
        )


@contextmanager
def _stopping_once(controls: Controls) -> Iterator[None]:
    try:
        yield
    finally:
        controls.stop = False


def _train(config, policy, pool, ledger, controls, on_step, peft_config, opened: ExitStack) -> None:
    """To the last batch; whatever is opened on the way is closed by the caller."""
    if policy is None:
        policy = load_policy(config.policy)
    else:  # the caller's stays as it is: a run that starts again must find it untouched
        policy = replace(policy, model=deepcopy(policy.model))
    executions = None
    if config.executions is not None:
        executions = opened.enter_context(closing(ExecutionStore(config.executions)))
    if pool is None:
        pool = opened.enter_context(LocalPool(config.workers, config.tier))
    run = _Run(config, policy, pool, ledger, executions, controls, on_step, deepcopy(peft_config))
    opened.callback(run.driver.close)
    run.train()
    run.save()


class _Run:
    """The parts of one run, put together."""

    def __init__(self, config, policy, pool, ledger, executions, controls, on_step, peft_config):
        import torch

        self.config = config
        self.ledger = ledger
        self.controls = controls
        self.on_step = on_step
        self.policy = policy
        assignments = {
            name: assign(tasks.load(name), policy, pool, config, executions, number)
            for number, name in enumerate(config.tasks)
        }
        self.driver = LiveDriver(
            RolloutQueue(config.queue_config),
            lambda rollout: assignments[rollout.task].environment.submit(rollout.program),
            ledger,
        )
        self.collector = RolloutCollector(
            assignments=assignments,
            driver=self.driver,
            parse=policy.parse,
            sampling=sampling_settings(policy, config.temperature, config.max_completion_length),
            generator=torch.Generator().manual_seed(config.seed),
            reward_weights=controls.rewards,
            on_batch=self._begin,
        )
        first = assignments[config.tasks[0]].environment.task
        self._new_history = partial(
            History, config.run_dir / "history.csv", first.id, first.higher_is_better
        )
        self.trainer = self._make_trainer(peft_config)

    def train(self) -> None:
        """From the last checkpoint, or from the start, to the last batch."""
        found = checkpoint.last(self.config.run_dir)
        if found is None:
            self.ledger.rewind_to_start()
            self.history = self._new_history()
            self.trainer.train()
            return
        path, state = found
        self.history = self._new_history(steps_done=state["version"])
        self.collector.load_state_dict(state)
        self.trainer.reward_rate.load_state_dict(state["reward_rate"])
        self.trainer.train(resume_from_checkpoint=str(path))

    def state_dict(self) -> dict:
        """What a checkpoint holds beside TRL's files."""
        return {
            **self.collector.state_dict(),
            "reward_rate": self.trainer.reward_rate.state_dict(),
        }

    def save(self) -> None:
        """Write the trained policy, adapters merged into it."""
        model = self.trainer.accelerator.unwrap_model(self.trainer.model)
        if hasattr(model, "merge_and_unload"):
            model = model.merge_and_unload()
        save_policy(self.config, model, self.policy.tokenizer, self.collector.version)

    def _make_trainer(self, peft_config):
        from datasets import Dataset
        from transformers import PrinterCallback

        from mle_rl.training.callbacks import RunCallback
        from mle_rl.training.trainer import DurationAwareGRPOTrainer

        config, model = self.config, self.policy.model
        # TRL wants prompts to loop over; the collector takes its own from the prompt sources.
        prompts = Dataset.from_dict({"prompt": ["/".join(config.tasks)] * config.steps})
        # With adapters TRL measures from the model without them, which is where training starts.
        referred = config.kl > 0 and peft_config is None
        with readable(model, config.run_dir) if referred else nullcontext():
            trainer = DurationAwareGRPOTrainer(
                model=model,
                reward_funcs=rollout_reward,
                args=grpo_config(config, self.collector.sampling),
                train_dataset=prompts,
                processing_class=self.policy.tokenizer,
                rollout_func=self.collector,
                peft_config=peft_config,
                weighting=config.weighting,
                behaviour_ratio=config.ratio != "none",
                length_buckets=config.length_buckets,
                callbacks=[RunCallback(self)],
            )
        trainer.remove_callback(PrinterCallback)
        return trainer

    def _begin(self, batch) -> None:
        self.history.begin(batch, self.driver.counts(), self.ledger)


def _interrupted(folder: Path) -> str:
    found = checkpoint.last(folder)
    where = "the start" if found is None else f"step {found[1]['version']}"
    return f"Training was interrupted; call train with the same settings to go on from {where}."


def _print_some(row: Mapping, steps: int) -> None:
    every = max(1, steps // 20)
    if row["step"] in (1, steps) or row["step"] % every == 0:
        print(progress_line(row, steps), flush=True)
