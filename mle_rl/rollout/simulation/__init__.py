"""The virtual driver: the rollout queue in simulated seconds.

:func:`simulate` is the entry. It runs a box event by event (:mod:`.events`), or, where no decision
of the queue can hold up a worker, in vectorised blocks (:mod:`.stream`), an order of magnitude
faster. Both drive the queue that trains language models.
"""

from __future__ import annotations

import numpy as np

from mle_rl.errors import MleRlError
from mle_rl.rollout.queue import QueueConfig
from mle_rl.rollout.simulation.events import EventSimulation
from mle_rl.rollout.simulation.stages import Batch, Generation, Learner, Result
from mle_rl.rollout.simulation.stream import simulate_stream, streams
from mle_rl.rollout.simulation.workload import Workload

__all__ = ["Batch", "EventSimulation", "Generation", "Learner", "Result", "Workload", "simulate"]


def simulate(
    config: QueueConfig,
    workload: Workload,
    *,
    updates: int,
    rng: np.random.Generator,
    learner: Learner | None = None,
    generation: Generation | None = None,
    trace: bool = False,
) -> Result:
    """Runs a box until the learner has made a number of updates.

    Args:
        config: The collection rule.
        workload: The policy over actions, and how long they take.
        updates: Learner updates to make.
        rng: Source of all randomness.
        learner: Duration and effect of an update; by default instantaneous and without effect.
        generation: The sampling stage; by default sampling takes no time.
        trace: Keep a row per rollout. Without it, memory does not grow with their number.

    Raises:
        MleRlError: Settings that do not fit together, or a rule that can make no further batch.
    """
    if not (isinstance(updates, int) and updates >= 1):
        raise MleRlError(f"updates is {updates!r}; give a whole number of at least 1.")
    learner = learner or Learner()
    if streams(config, workload, learner, generation):
        return simulate_stream(
            config, workload, updates=updates, rng=rng, train_s=learner.train_s, trace=trace
        )
    simulation = EventSimulation(config, workload, learner, generation, rng, trace)
    return simulation.run(updates)
