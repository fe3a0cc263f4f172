"""Rollouts on their way to the learner: the queue, its rules, and the drivers that run it.

Importing this package imports no torch. The live driver is ``mle_rl.rollout.live``, the simulation
``mle_rl.rollout.simulation``.
"""

from mle_rl.rollout.queue import Counts, QueueConfig, RolloutQueue

__all__ = ["Counts", "QueueConfig", "RolloutQueue"]
