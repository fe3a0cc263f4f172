"""Workers that always go on, as renewal processes: completions ahead of time, in blocks.

Cumulative sums of durations per worker, one sort over all of them. Why cutting blocks is exact: a
block ends at the first time some worker has used up its drawn durations, a stopping time of the
merged process, so rollouts that begin later may be drawn afresh.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mle_rl.rollout.simulation.workload import Workload


@dataclass(frozen=True)
class Block:
    """Completions in time order, each followed at once by the dispatch of its successor.

    The successor of the k-th completion gets the k-th next dispatch number.
    """

    times: np.ndarray  # (k,)
    finished: np.ndarray  # (k,) dispatch number of the rollout that ends
    actions: np.ndarray  # (k,) of the successor
    durations: np.ndarray  # (k,) of the successor
    workers: np.ndarray  # (k,)


class Workers:
    """All workers as renewal processes."""

    def __init__(self, workload: Workload, workers: int, rng: np.random.Generator):
        self._workload, self._rng = workload, rng
        self.actions, self.durations = (a[0] for a in self._draw(1, workers))
        self._ends = self.durations  # (workers,) when the present rollout of each ends
        self._numbers = np.arange(workers)  # (workers,) its dispatch number
        self._next = workers

    def _draw(self, rows: int, workers: int) -> tuple[np.ndarray, np.ndarray]:
        load, n = self._workload, rows * workers
        actions = load.draw(n, self._rng)
        durations = load.noise.sample(n, self._rng)
        if len(load.scale_s) > 1:
            durations = durations * load.scale_s[actions]
        elif load.scale_s[0] != 1:
            durations = durations * load.scale_s[0]
        if math.isfinite(load.time_limit_s):
            durations = np.minimum(durations, load.time_limit_s)
        return actions.reshape(rows, workers), durations.reshape(rows, workers)

    def block(self, rows: int) -> Block:
        """The next completions, as many as ``rows`` drawn successors per worker make certain."""
        workers = len(self._ends)
        actions, durations = self._draw(rows, workers)
        ends = np.empty((rows + 1, workers))
        ends[0] = self._ends
        np.cumsum(durations, axis=0, out=ends[1:])
        ends[1:] += self._ends
        chosen = np.flatnonzero(ends[:-1].ravel() <= ends[-1].min())
        chosen = chosen[np.argsort(ends.ravel()[chosen])]
        # Successor k of the block gets number next + k; a rollout in row r > 0 is the successor of
        # the one above it, so its number follows from the place of that one in the order.
        rank = np.empty(rows * workers, dtype=np.int64)
        rank[chosen] = np.arange(self._next, self._next + len(chosen))
        finished = np.where(
            chosen < workers, self._numbers[chosen % workers], rank[chosen - workers]
        )
        block = Block(
            times=ends.ravel()[chosen],
            finished=finished,
            actions=actions.ravel()[chosen],
            durations=durations.ravel()[chosen],
            workers=chosen % workers,
        )
        done = np.bincount(block.workers, minlength=workers)  # completions of each worker
        columns = np.arange(workers)
        self._ends = ends[done, columns]
        self._numbers = np.where(
            done > 0, rank[np.maximum(done - 1, 0) * workers + columns], self._numbers
        )
        self._next += len(chosen)
        return block
