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
from mle_rl.training.checks import problems
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
    """Different competitions to train on, one policy for all; rollouts go to them in turn."""

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
    """How far from 1 the ratio still has a gradient; without effect with ratio="truncate"."""

    ratio_cap: float = 5.0
    """With ratio="truncate": the largest ratio."""

    loss_type: str = "dapo"
    """Normalisation of the loss over tokens, TRL's name: grpo, bnpo, dr_grpo or dapo. With
    ratio="truncate" it is TRL's cispo, and this and ``clip`` stay as they are."""

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
        for problem in problems(self):
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
