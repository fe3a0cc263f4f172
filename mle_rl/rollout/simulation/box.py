"""A box: GPUs that sample and train, workers that execute, and what each of them does all day.

The box turns sizes and rates into the stages of :mod:`mle_rl.rollout.simulation`, runs them on the
rollout queue, and reads off utilisation, throughput, staleness and time in queue. What it leaves
out, on purpose: prefill, a decoding speed that falls as a batch grows, stragglers among GPUs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from mle_rl.errors import MleRlError
from mle_rl.rollout.queue import QueueConfig
from mle_rl.rollout.simulation import Generation, Learner, Result, simulate
from mle_rl.rollout.simulation.durations import Distribution, LogNormal
from mle_rl.rollout.simulation.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Box:
    """A machine, in the quantities one knows of it.

    Attributes:
        gpus: GPUs in all.
        training_gpus: How many of them only train; 0 shares all of them, so that sampling stands
            still while the learner trains.
        tokens_per_s: Decoding speed of one sequence; generation takes tokens over this.
        generation_batch: Sequences that one sampling GPU decodes side by side.
        completion_tokens: Law of the length of a completion.
        train_gpu_s: One update on one GPU; k training GPUs take a k-th of it.
        weight_sync_s: From new weights to sampling with them; sampling stands still.
    """

    gpus: int = 8
    training_gpus: int = 4
    tokens_per_s: float = 40.0
    generation_batch: int = 16
    completion_tokens: Distribution = field(default_factory=lambda: LogNormal(400.0, 0.5))
    train_gpu_s: float = 80.0
    weight_sync_s: float = 2.0

    def __post_init__(self):
        if self.gpus < 1 or not 0 <= self.training_gpus < self.gpus:
            raise MleRlError(
                f"{self.training_gpus} of {self.gpus} GPUs train only; leave at least one to "
                "sample, or give 0 training GPUs to share all of them."
            )
        positive = (self.tokens_per_s, self.generation_batch, self.train_gpu_s)
        if not (all(0 < x < math.inf for x in positive) and 0 <= self.weight_sync_s < math.inf):
            raise MleRlError("Speeds, sizes and times of a box must be positive and finite.")

    @property
    def sampling_gpus(self) -> int:
        """GPUs that decode: those that do not only train."""
        return self.gpus - self.training_gpus

    @property
    def train_s(self) -> float:
        """Wall-clock time of an update."""
        return self.train_gpu_s / (self.training_gpus or self.gpus)

    def gpu_of(self, slots: np.ndarray) -> np.ndarray:
        """The sampling GPU of decoding slots: they are dealt in turn, so that GPUs fill evenly."""
        return slots % self.sampling_gpus

    def stages(self) -> tuple[Learner, Generation]:
        """The box in the simulation's terms."""
        generation = Generation(
            slots=self.sampling_gpus * self.generation_batch,
            seconds=_Scaled(self.completion_tokens, 1 / self.tokens_per_s),
            paused_by_training=self.training_gpus == 0,
        )
        return Learner(self.train_s, self.weight_sync_s), generation


@dataclass(frozen=True)
class _Scaled:
    """A law in other units."""

    law: Distribution
    factor: float

    @property
    def mean(self) -> float:
        return self.law.mean * self.factor

    @property
    def cv(self) -> float:
        return self.law.cv

    def sample(self, n, rng):
        return self.law.sample(n, rng) * self.factor

    def cdf(self, t):
        return self.law.cdf(np.asarray(t) / self.factor)


def run_box(
    box: Box, config: QueueConfig, workload: Workload, *, updates: int, rng: np.random.Generator
) -> Result:
    """Runs the box under a collection rule, keeping a row per rollout.

    Synchronous or asynchronous is the rule's matter: admission control with ``max_staleness=0``
    samples a batch, waits for all of it, trains, and begins again.

    Args:
        box: The machine; the execution workers are the queue's.
        config: The collection rule.
        workload: What is executed.
        updates: Learner updates to make.
        rng: Source of all randomness.
    """
    learner, generation = box.stages()
    return simulate(
        config,
        workload,
        updates=updates,
        rng=rng,
        learner=learner,
        generation=generation,
        trace=True,
    )


def by_device(box: Box, result: Result) -> pd.DataFrame:
    """Share of its time that every single device is busy.

    Returns:
        One row per device: ``kind`` (``sampling GPUs``: share of its decoding slots in use;
        ``training GPUs``: training or sending weights; ``workers``: executing), ``device`` (its
        number, from 0), ``busy``. GPUs that do both have a row of each kind.
    """
    trace, training_s = result.trace, result.training[:, [0, 2]].clip(max=result.elapsed_s)
    stopped_at = np.where(np.isnan(trace.finished_at), result.elapsed_s, trace.finished_at)
    executing = np.where(trace.worker >= 0, stopped_at - trace.started_at, 0.0)
    workers = result.config.workers
    busy_s = {
        "sampling GPUs": np.bincount(
            box.gpu_of(trace.slot), weights=_decoding_s(box, result), minlength=box.sampling_gpus
        )
        / box.generation_batch,
        "training GPUs": np.full(box.training_gpus or box.gpus, np.diff(training_s).sum()),
        "workers": np.bincount(trace.worker.clip(min=0), weights=executing, minlength=workers),
    }
    return pd.concat(
        [
            pd.DataFrame({"kind": kind, "device": range(len(s)), "busy": s / result.elapsed_s})
            for kind, s in busy_s.items()
        ],
        ignore_index=True,
    )


def utilisation(box: Box, result: Result) -> dict[str, float]:
    """Mean of :func:`by_device` over the devices of each kind."""
    return by_device(box, result).groupby("kind", sort=False).busy.mean().to_dict()


def summary(box: Box, result: Result) -> dict[str, float]:
    """The box in one row: utilisation, throughput, staleness, time in queue.

    Returns:
        The devices of :func:`utilisation`; ``rollouts per second`` (trained); ``update_s``, mean
        time between updates; ``staleness``, mean and maximum in updates; ``time_in_queue_s``, mean
        wait for a worker and for the learner together.
    """
    trace = result.trace
    return {
        **utilisation(box, result),
        "rollouts per second": result.throughput,
        "update_s": result.elapsed_s / result.updates,
        "staleness": float(trace.staleness.mean()),
        "max staleness": float(trace.staleness.max()),
        "time_in_queue_s": float(trace.time_in_queue_s.mean()),
    }


def _decoding_s(box: Box, result: Result) -> np.ndarray:
    """Seconds for which each rollout was being decoded, pauses left out, shape (rollouts,)."""
    begin, end = held(result)
    first = 0 if box.training_gpus == 0 else 1  # of a step: training, or sending weights alone
    seconds = end - begin
    for step in result.training:
        seconds -= np.clip(np.minimum(end, step[2]) - np.maximum(begin, step[first]), 0, None)
    return seconds


def held(result: Result) -> tuple[np.ndarray, np.ndarray]:
    """When each rollout held a decoding slot: until generated, aborted, or the end of the run."""
    trace = result.trace
    given_up = np.where(np.isnan(trace.finished_at), result.elapsed_s, trace.finished_at)
    return trace.dispatched_at, np.where(np.isnan(trace.generated_at), given_up, trace.generated_at)
