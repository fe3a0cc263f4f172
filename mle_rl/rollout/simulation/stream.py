"""The fast virtual driver, for rules under which a free worker always goes on.

If nothing that the queue decides can hold up a worker (continuous dispatch, everything kept or only
stale rollouts dropped, a policy that does not change), every worker is a renewal process of its
own. Completions can then be computed ahead in blocks (:mod:`.renewal`). The queue still sees every
dispatch and every completion, in order and in its own code, but a segment at a time
(:meth:`RolloutQueue.turn_over`).
"""

from __future__ import annotations

import math

import numpy as np

from mle_rl.rollout.queue import QueueConfig, RolloutQueue
from mle_rl.rollout.simulation.renewal import Block, Workers
from mle_rl.rollout.simulation.stages import Generation, Learner, Result
from mle_rl.rollout.simulation.trace import FATES, NOT_YET, Trace
from mle_rl.rollout.simulation.workload import Workload

_ROWS = 128  # rollouts drawn ahead per worker, at most; more would leave the cache


def streams(
    config: QueueConfig, workload: Workload, learner: Learner, generation: Generation | None
) -> bool:
    """Whether the fast driver is exact for these settings."""
    masks = config.timeouts == "mask" and math.isfinite(workload.time_limit_s)
    return (
        config.worker_rule == "renewal"
        and config.staleness != "admit"
        and not config.in_rounds
        and config.max_in_flight in (None, config.workers)
        and generation is None
        and learner.learn is None
        and learner.weight_sync_s == 0
        and not masks
    )


def simulate_stream(
    config: QueueConfig,
    workload: Workload,
    *,
    updates: int,
    rng: np.random.Generator,
    train_s: float = 0.0,
    trace: bool = False,
) -> Result:
    """The renewal rules of :func:`mle_rl.rollout.simulation.simulate`, in blocks.

    Args:
        config: A rule for which :func:`streams` holds.
        workload: The policy over actions, and how long they take.
        updates: Learner updates to make.
        rng: Source of all randomness.
        train_s: From taking a batch to the next model version.
        trace: Keep a row per rollout.
    """
    queue = RolloutQueue(config)
    workers = Workers(workload, config.workers, rng)
    for number in range(config.workers):
        queue.dispatch(number, 0, 0.0)
    history = _History(workers) if trace else None
    learner = _Learner(queue, updates, train_s, history)
    rows = max(8, min(_ROWS, updates * config.batch_size // config.workers + 1))
    while not learner.finished:
        block = workers.block(rows)
        if history:
            history.blocks.append(block)
        learner.run(block)
    counts = queue.counts
    assert counts.conserved, counts
    return Result(
        config=config,
        counts=counts,
        elapsed_s=learner.now,
        updates=learner.version,
        executed_s=learner.now * config.workers,
        training=np.array(history.steps).reshape(-1, 3) if history else np.empty((0, 3)),
        trace=history.trace(queue) if history else None,
    )


class _Learner:
    """Feeds completions to the queue, segment by segment, and takes batches between them."""

    def __init__(self, queue: RolloutQueue, updates: int, train_s: float, history: _History | None):
        self.now = 0.0
        self.version = 0
        self._queue = queue
        self._updates = updates
        self._train_s = train_s
        self._history = history
        self._busy_until: float | None = None
        self._next = queue.config.workers

    @property
    def finished(self) -> bool:
        """Whether all updates are made."""
        return self.version >= self._updates

    def run(self, block: Block) -> None:
        """Goes through a block, or as far as the last update."""
        finished, queue, i = block.finished.tolist(), self._queue, 0
        while i < len(finished) and not self.finished:
            j = self._segment_end(block.times, i)
            if j > i:
                self.now = float(block.times[j - 1])
                new = range(self._next, self._next + j - i)
                queue.turn_over(finished[i:j], new, self.version, self.now)
                self._next += j - i
                i = j
            if self._busy_until is None:
                self._take()
            elif j < len(finished):
                self.now = self._busy_until
                self._update()
                self._take()

    def _segment_end(self, times: np.ndarray, i: int) -> int:
        """Index up to which nothing happens but completions: the batch fills, or training ends."""
        if self._busy_until is not None:
            return int(np.searchsorted(times, self._busy_until, side="right"))
        missing = self._queue.config.batch_size - self._queue.ready
        return min(len(times), i + max(1, missing))

    def _take(self) -> None:
        batch = self._queue.config.batch_size
        while self._busy_until is None and self._queue.ready >= batch and not self.finished:
            numbers = self._queue.take(batch, self.version, self.now)
            if numbers is None:  # the order window waits for a slow rollout
                break
            if self._history:
                self._history.taken(numbers, self.version, self.now, self.now + self._train_s)
            if self._train_s:
                self._busy_until = self.now + self._train_s
            else:
                self._update()
        dropped = self._queue.drain_dropped()
        if self._history:
            self._history.dropped.extend(dropped)

    def _update(self) -> None:
        self.version += 1
        self._busy_until = None
        self._queue.capacity(self.version)  # tell it, so that what is now too old goes at once
        if self._history:
            self._history.versions.append((self._next, self.version))


class _History:
    """What a trace is put together from when the run is over."""

    def __init__(self, workers: Workers):
        n = len(workers.durations)
        self._first = (workers.actions, workers.durations, np.arange(n))
        self.blocks: list[Block] = []
        self.versions: list[tuple[int, int]] = [(0, 0)]  # first dispatch number, model version
        self.batches: list[tuple[tuple[int, ...], int, float]] = []
        self.dropped: list[tuple[int, str]] = []
        self.steps: list[tuple[float, float, float]] = []

    def taken(self, numbers: tuple[int, ...], version: int, now: float, trained_at: float) -> None:
        """A batch was handed out."""
        self.batches.append((numbers, version, now))
        self.steps.append((now, trained_at, trained_at))

    def trace(self, queue: RolloutQueue) -> Trace:
        """One row per dispatched rollout."""
        n, workers = queue.counts.dispatched, len(self._first[0])
        times = np.concatenate([b.times for b in self.blocks])[: n - workers]
        finished = np.concatenate([b.finished for b in self.blocks])[: n - workers]
        names = ("actions", "durations", "workers")
        action, duration, worker = (
            np.concatenate([first, *(getattr(b, name) for b in self.blocks)])[:n]
            for first, name in zip(self._first, names, strict=True)
        )
        dispatched_at = np.concatenate([np.zeros(workers), times])
        finished_at = np.full(n, NOT_YET)
        finished_at[finished] = times
        firsts, versions = np.array(self.versions).T
        taken_at, taken_version = np.full(n, NOT_YET), np.full(n, -1)
        for numbers, version, now in self.batches:
            index = np.array(numbers)
            taken_at[index], taken_version[index] = now, version
        fate = np.full(n, FATES.index("in flight"))
        fate[finished] = FATES.index("ready")
        fate[taken_version >= 0] = FATES.index("trained")
        for number, reason in self.dropped:
            fate[number] = FATES.index(reason)
        return Trace(
            action=action,
            version=np.repeat(versions, np.diff(np.append(firsts, n))),
            dispatched_at=dispatched_at,
            generated_at=dispatched_at,
            started_at=dispatched_at,
            finished_at=finished_at,
            duration_s=duration,
            taken_at=taken_at,
            taken_version=taken_version,
            worker=worker,
            slot=np.full(n, -1),
            fate=fate,
        )
