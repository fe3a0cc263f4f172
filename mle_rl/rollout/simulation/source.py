"""What a free worker does next, under each worker rule; random numbers come in blocks."""

from __future__ import annotations

import math

import numpy as np

from mle_rl.rollout.queue import QueueConfig
from mle_rl.rollout.simulation.workload import Workload

_BLOCK = 512  # random numbers drawn at a time


class Source:
    """Actions and durations, drawn ahead for as long as the policy stays as it is."""

    def __init__(self, config: QueueConfig, workload: Workload, rng: np.random.Generator):
        self._workload = workload
        self._rng = rng
        self._probabilities = workload.probabilities
        self._scale = workload.scale_s.tolist()
        self._actions: dict[int, list[int]] = {}
        self._noise: list[float] = []
        self._rule = config.worker_rule
        self._window_s = config.sticky_window_s
        self._sticky: dict[int, tuple[int, float]] = {}
        self._tasks = sorted(set(workload.tasks.tolist()))

    def policy_changed(self, probabilities: np.ndarray) -> None:
        """Actions drawn ahead are forgotten; they were the old policy's."""
        self._probabilities = probabilities
        self._actions.clear()

    def next(self, worker: int, now: float) -> tuple[int, float]:
        """Action and duration of the next rollout."""
        if self._rule == "renewal":
            action = self._draw(None)
        elif self._rule == "per_task":
            action = self._draw(self._tasks[worker % len(self._tasks)])
        else:
            action, until = self._sticky.get(worker, (-1, -math.inf))
            if now >= until - 1e-9 * max(1.0, abs(now)):
                action = self._draw(None)
                self._sticky[worker] = (action, now + self._window_s)
        if not self._noise:
            self._noise = self._workload.noise.sample(_BLOCK, self._rng).tolist()
        return action, self._scale[action] * self._noise.pop()

    def _draw(self, task: int | None) -> int:
        block = self._actions.get(task)
        if not block:
            p = self._probabilities
            if task is not None:
                p = self._workload.of_task(task, p)
            block = self._workload.draw(_BLOCK, self._rng, p).tolist()
            self._actions[task] = block
        return block.pop()
