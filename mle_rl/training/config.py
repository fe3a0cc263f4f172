"""Every setting of a training run, each with a line on what it does."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from mle_rl.errors import MleRlError
from mle_rl.records import Limits
from mle_rl.rewards import RewardWeights
from mle_rl.rollout.queue import QueueConfig
from mle_rl.training.weighting import DurationWeighting

Ratio = Literal["clip", "truncate", "none"]


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of one run. Two runs with equal settings and replayed executions are equal.

    Raises:
        MleRlError: A value is out of range, or two settings contradict each other.
    """

    run_dir: Path
    """Ledger, checkpoints, history and the trained policy are written here; one folder per run."""

    tasks: tuple[str, ...] = ("library-docstrings",)
    """Competitions to train on, one policy for all of them; rollouts go to them in turn."""

    policy: str = "tiny"
    """What training starts from: a shipped policy, a folder, or a hub id."""

    steps: int = 60
    """Batches to train on."""

    batch_size: int = 64
    """Rollouts per batch; all with the same task and prompt kind share a baseline."""

    seed: int = 0
    """Of prompts, of sampled tokens, and of trainer and adapters."""

    # ---- learner
    learning_rate: float = 5e-4
    """Of AdamW, constant after warm-up. The default suits `tiny`; LoRA on a 3B model wants 1e-5."""

    warmup_steps: int = 2
    """Batches over which the learning rate rises from 0."""

    max_grad_norm: float = 1.0
    """Gradients are scaled down to this norm; 0 leaves them alone."""

    epochs: int = 1
    """Optimiser steps on each batch. The first is on the policy that the batch was weighted for."""

    micro_batches: int = 1
    """Parts in which a batch goes through the model, for less memory; gradients are added up."""

    length_buckets: int = 4
    """Parts of similar length within one forward pass, for less padding."""

    ratio: Ratio = "clip"
    """Importance ratio against the policy that sampled: clipped (PPO), truncated, or left out."""

    clip: float = 0.2
    """With ratio="clip": how far from 1 the ratio still has a gradient."""

    ratio_cap: float = 5.0
    """With ratio="truncate": the largest ratio."""

    loss_type: str = "dapo"
    """Normalisation of the clipped loss over tokens, one of TRL's names."""

    scale_rewards: Literal["group", "batch", "none"] = "group"
    """What advantages are divided by: standard deviation of the group, of the batch, or nothing."""

    kl: float = 0.0
    """Weight of the Kullback-Leibler divergence from the starting policy."""

    entropy: float = 0.0
    """Weight of an entropy bonus per token."""

    weighting: DurationWeighting = field(default_factory=DurationWeighting)
    """Duration weights."""

    rewards: RewardWeights = field(default_factory=RewardWeights)
    """What earns and costs how much; can be changed while training, see `Controls`."""

    # ---- rollouts
    temperature: float = 1.0
    """Of sampling, and of the log-probabilities in the loss."""

    max_completion_length: int | None = None
    """Tokens after which a completion is cut off; None is the policy's own limit."""

    improve_share: float = 0.5
    """Share of prompts that show an earlier solution, once there is one (paper: half)."""

    max_staleness: int = 1
    """A rollout is trained on at most this many batches after it was sampled; 0 is synchronous."""

    queue: QueueConfig | None = None
    """Collection rule; None: admission control, strictly in dispatch order, nothing is dropped."""

    # ---- programs
    workers: int = 2
    """Programs that run at the same time."""

    tier: str = "isolated"
    """Isolation of the sandbox."""

    limits: Limits = field(default_factory=Limits)
    """What each program may use."""

    executions: Path | None = None
    """File in which executions are recorded; None records nothing beside the ledger."""

    replay: bool = False
    """Take executions from that file where it has them, instead of running the program again."""

    # ---- running
    learner_threads: int = 1
    """Threads of the learner. The workers use the other cores, and a small model gains nothing."""

    use_cpu: bool | None = None
    """Train on the CPU; None uses a GPU if there is one."""

    checkpoint_every: int = 10
    """Batches between checkpoints; a killed run goes on from the last one."""

    def __post_init__(self):
        for problem in _problems(self):
            raise MleRlError(problem)

    @property
    def queue_config(self) -> QueueConfig:
        """The collection rule of this run."""
        return self.queue or QueueConfig(
            workers=self.workers,
            batch_size=self.batch_size,
            staleness="admit",
            max_staleness=self.max_staleness,
            # Batches then hold the same rollouts whatever ends first, so a resumed run is exact.
            ordering="window",
            order_window=1,
            max_in_flight=(self.max_staleness + 1) * self.batch_size,
        )

    def to_json(self) -> str:
        """The settings as text, for comparing runs and for people; without the folder."""
        fields = asdict(self)
        del fields["run_dir"]
        return json.dumps(fields, indent=1, default=str) + "\n"


def _problems(c: TrainConfig):
    """One sentence for each setting that cannot be meant."""
    least = {
        "steps": 1,
        "batch_size": 2,
        "epochs": 1,
        "micro_batches": 1,
        "length_buckets": 1,
        "max_staleness": 0,
        "workers": 1,
        "learner_threads": 1,
        "checkpoint_every": 1,
        "warmup_steps": 0,
    }
    for name, bound in least.items():
        if not isinstance(getattr(c, name), int) or getattr(c, name) < bound:
            yield f"{name} is {getattr(c, name)!r}; give a whole number of at least {bound}."
    if not c.tasks or isinstance(c.tasks, str):
        yield f"tasks is {c.tasks!r}; give a tuple of one task id or more."
    if not 0 <= c.improve_share <= 1:
        yield f"improve_share is {c.improve_share!r}; give a share between 0 and 1."
    if not c.learning_rate > 0:
        yield f"learning_rate is {c.learning_rate!r}; give a positive number."
    if c.batch_size % c.micro_batches:
        yield f"batch_size {c.batch_size} is not a multiple of micro_batches {c.micro_batches}."
    if c.ratio not in ("clip", "truncate", "none"):
        yield f"ratio is {c.ratio!r}; choose clip, truncate or none."
    if c.ratio == "truncate" and not c.ratio_cap >= 1:
        yield f"ratio_cap is {c.ratio_cap!r}; a cap below 1 would cut an unchanged policy."
    if c.replay and c.executions is None:
        yield "replay needs executions, the file in which executions are recorded."
    if problem := charged_twice(c.rewards, c.weighting):
        yield problem
    if c.queue is not None:
        yield from _queue_problems(c, c.queue)


def _queue_problems(c: TrainConfig, queue: QueueConfig):
    if queue.batch_size != c.batch_size or queue.workers != c.workers:
        yield (
            f"The queue has {queue.workers} workers and batches of {queue.batch_size}, the run "
            f"{c.workers} and {c.batch_size}: give both the same."
        )
    if queue.restart_window_s is not None:
        yield "A restart window gives batches of any size, TRL needs one size: simulate that rule."


def charged_twice(rewards: RewardWeights, weighting: DurationWeighting) -> str | None:
    """Why time may not both cost and count, nor cost twice."""
    if rewards.time_cost_rate == 0 or (weighting.scheme == "none" and not weighting.charge_time):
        return None
    return (
        "time_cost_rate already makes time cost: set it to 0, or the weighting scheme to 'none' "
        "and charge_time to False."
    )
