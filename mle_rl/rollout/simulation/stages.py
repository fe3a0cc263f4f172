"""What a simulated box consists of, and what a run of it returns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mle_rl.errors import MleRlError
from mle_rl.rollout.queue import Counts, QueueConfig
from mle_rl.rollout.simulation.durations import Distribution
from mle_rl.rollout.simulation.trace import Trace


@dataclass(frozen=True)
class Batch:
    """What an update is given: one entry per rollout, in the order in which they were taken.

    Attributes:
        actions: Index of the sampled action, (batch,) int.
        durations_s: Execution time, (batch,) float.
        versions: Model version that sampled it, (batch,) int.
        version: Model version that takes the batch.
        interval_s: Time since the update before, the wall-clock length of an update.
        executed_s: Worker-seconds spent on executions so far in the whole run.
    """

    actions: np.ndarray
    durations_s: np.ndarray
    versions: np.ndarray
    version: int
    interval_s: float
    executed_s: float


@dataclass(frozen=True)
class Learner:
    """How long an update takes, and what it does.

    Attributes:
        train_s: From taking a batch to the new weights.
        weight_sync_s: From the new weights to sampling with them; sampling pauses meanwhile.
        learn: Called with the batch when the update ends; returns the new policy's probabilities
            over actions, or None for a policy that stays as it is.
    """

    train_s: float = 0.0
    weight_sync_s: float = 0.0
    learn: Callable[[Batch], np.ndarray | None] | None = None

    def __post_init__(self):
        for name in ("train_s", "weight_sync_s"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise MleRlError(f"{name} is {value!r}; give a number of seconds, 0 for no time.")


@dataclass(frozen=True)
class Generation:
    """The stage before execution: sequences decoded side by side.

    Attributes:
        slots: Sequences at the same time, over all sampling GPUs.
        seconds: Law of the time that one sequence takes.
        paused_by_training: Whether sampling stands still while the learner trains, because both
            use the same GPUs.
    """

    slots: int
    seconds: Distribution
    paused_by_training: bool = False

    def __post_init__(self):
        if not (isinstance(self.slots, int) and self.slots >= 1):
            raise MleRlError(f"slots is {self.slots!r}; give a whole number of at least 1.")


@dataclass(frozen=True)
class Result:
    """A finished simulation.

    Attributes:
        counts: Where every rollout is; conservation is checked at the end of every run.
        elapsed_s: Virtual time.
        updates: Learner updates made.
        executed_s: Worker-seconds spent on executions, those aborted included.
        training: Start and end of every training step, and end of its weight synchronisation,
            shape (updates, 3); empty unless a trace was kept.
        trace: One row per rollout, if it was asked for.
    """

    config: QueueConfig
    counts: Counts
    elapsed_s: float
    updates: int
    executed_s: float
    training: np.ndarray = field(default_factory=lambda: np.empty((0, 3)))
    trace: Trace | None = None

    @property
    def worker_utilisation(self) -> float:
        """Share of worker time spent executing."""
        return self.executed_s / (self.elapsed_s * self.config.workers)

    @property
    def throughput(self) -> float:
        """Trained rollouts per second."""
        return self.counts.trained / self.elapsed_s
