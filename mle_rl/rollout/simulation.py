"""The virtual driver: the rollout queue on an event heap and a virtual clock.

Everything a multi-GPU box does around the queue happens here in simulated seconds: generation on
slots that a weight synchronisation or a shared GPU can pause, execution on workers, an update that
takes a batch and makes the next model version. The queue is the one that trains language models;
this module only decides *when* things happen, never who gets into a batch.

:func:`simulate` is the entry. Where no decision of the queue can influence the workers, it runs
the vectorised :mod:`mle_rl.rollout.stream` instead, an order of magnitude faster.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

import numpy as np

from mle_rl.errors import MleRlError
from mle_rl.rollout.durations import Distribution
from mle_rl.rollout.queue import Counts, QueueConfig, RolloutQueue
from mle_rl.rollout.trace import FATES, Recorder, Trace
from mle_rl.rollout.workload import Workload

_BLOCK = 512  # random numbers drawn at a time
_PATIENCE = 1000  # fillings of the whole box that may be dropped in a row before a run is hopeless


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


@dataclass(slots=True)
class _Live:
    """A rollout between dispatch and its batch."""

    action: int
    duration_s: float
    version: int
    status: str
    worker: int = -1
    slot: int = -1
    started_at: float = math.nan


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
    from mle_rl.rollout.stream import simulate_stream, streams  # imports this module's records

    learner = learner or Learner()
    if streams(config, workload, learner, generation):
        return simulate_stream(
            config, workload, updates=updates, rng=rng, train_s=learner.train_s, trace=trace
        )
    simulation = EventSimulation(config, workload, learner, generation, rng, trace)
    return simulation.run(updates)


class EventSimulation:
    """One box, event by event: the general driver, for every rule."""

    def __init__(
        self,
        config: QueueConfig,
        workload: Workload,
        learner: Learner,
        generation: Generation | None,
        rng: np.random.Generator,
        trace: bool = False,
    ):
        if generation and config.worker_rule != "renewal":
            raise MleRlError(
                f"worker_rule={config.worker_rule!r} binds a rollout to a worker before it is "
                "sampled; leave out the generation stage."
            )
        self.queue = RolloutQueue(config)
        self.config = config
        self.now = 0.0
        self.version = 0
        self._workload = workload
        self._learner = learner
        self._generation = generation
        self._source = _Source(config, workload, rng)
        self._rng = rng
        self._events: list[tuple] = []
        self._tie = count()
        self._live: dict[int, _Live] = {}
        self._waiting: deque[int] = deque()
        self._free_workers = list(range(config.workers))[::-1]
        self._free_slots = list(range(generation.slots))[::-1] if generation else []
        self._pause_ends_at = 0.0
        self._total_pause_s = 0.0
        self._training = False
        self._updated_at = 0.0
        self._windowed = config.restart_window_s is not None
        self._window_event_at: float | None = None
        self._updates = 0
        self._dropped_in_a_row = 0
        self._executed_s = 0.0
        self._number = 0
        self._recorder = Recorder() if trace else None
        self._steps: list[tuple[float, float, float]] = []

    def run(self, updates: int) -> Result:
        """Runs until the model version is ``updates``."""
        self._updates = updates
        self._serve(None)
        while self.version < updates:
            hopeless = _PATIENCE * (self.config.workers + self.config.batch_size)
            if not self._events or self._dropped_in_a_row > hopeless:
                raise MleRlError(
                    "No batch fills under this rule and workload: the last "
                    f"{self._dropped_in_a_row} rollouts were dropped and {self.queue.ready} are "
                    "ready. Allow more time, or choose another rule."
                )
            self.now, _, _, action, argument = heappop(self._events)
            action(argument)
        counts = self.queue.counts
        assert counts.conserved, counts
        return Result(
            config=self.config,
            counts=counts,
            elapsed_s=self.now,
            updates=self.version,
            executed_s=self._executed_s + self._executing_s(),
            training=np.array(self._steps).reshape(-1, 3),
            trace=self._recorder.trace() if self._recorder else None,
        )

    def _at(self, time: float, action: Callable, argument=None, *, last: bool = False) -> None:
        """Schedules an event; ``last`` puts it behind all others at the same time."""
        heappush(self._events, (time, last, next(self._tie), action, argument))

    def _executing_s(self) -> float:
        started = (r.started_at for r in self._live.values() if r.worker >= 0)
        return sum(self.now - s for s in started if not math.isnan(s))

    # ---- one pass over everything that may go on now ------------------------------------------

    def _serve(self, _) -> None:
        """Starts what waits, dispatches what is admitted, lets the learner take a batch."""
        while True:
            while self._waiting and self._free_workers:
                self._start(self._waiting.popleft(), self._free_workers.pop())
            self._dispatch()
            if not self._take():
                return

    def _dispatch(self) -> None:
        room = self.queue.capacity(self.version)
        if self._generation:
            if self.now < self._pause_ends_at:
                return
            room = min(room, len(self._free_slots))
        elif self.config.worker_rule != "renewal":
            room = min(room, len(self._free_workers))
        for _ in range(room):
            self._dispatch_one()
        if self.queue.window_closes_at != self._window_event_at:
            self._window_event_at = self.queue.window_closes_at
            if self._window_event_at is not None:
                self._at(self._window_event_at, self._window_ends, last=True)

    def _dispatch_one(self) -> None:
        worker = self._free_workers.pop() if self._free_workers and not self._generation else -1
        action, duration = self._source.next(worker, self.now)
        limit = self._workload.time_limit_s
        status, duration = ("timeout", limit) if duration > limit else ("ok", duration)
        number, self._number = self._number, self._number + 1
        self._live[number] = live = _Live(action, duration, self.version, status)
        self.queue.dispatch(number, self.version, self.now)
        if self._recorder:
            self._recorder.dispatched(action, self.version, self.now, duration)
        if self._generation:
            live.slot = self._free_slots.pop()
            seconds = float(self._generation.seconds.sample(1, self._rng)[0])
            if self._recorder:
                self._recorder.slot[number] = live.slot
            self._at(self.now + seconds, self._generated, (number, self._total_pause_s))
        else:
            if self._recorder:
                self._recorder.generated_at[number] = self.now
            if worker >= 0:
                self._start(number, worker)
            else:
                self._waiting.append(number)

    # ---- stages of a rollout ------------------------------------------------------------------

    def _generated(self, argument: tuple[int, float]) -> None:
        number, pause_before = argument
        late = self._total_pause_s - pause_before
        if late > 0:  # sampling stood still meanwhile: the rest of the sequence is still to come
            self._at(self.now + late, self._generated, (number, self._total_pause_s))
            return
        live = self._live.get(number)
        if live is None:
            return
        self._free_slots.append(live.slot)
        live.slot = -1
        if self._recorder:
            self._recorder.generated_at[number] = self.now
        self._waiting.append(number)
        self._serve(None)

    def _start(self, number: int, worker: int) -> None:
        live = self._live[number]
        live.worker, live.started_at = worker, self.now
        self.queue.start(number, self.now)
        if self._recorder:
            self._recorder.started_at[number] = self.now
            self._recorder.worker[number] = worker
        self._at(self.now + live.duration_s, self._finish, number)

    def _finish(self, number: int) -> None:
        live = self._live.get(number)
        if live is None:  # it was aborted while it ran
            return
        self.queue.finish(number, self.now, live.status)
        self._release(live)
        if self._recorder:
            self._recorder.finished_at[number] = self.now
            self._recorder.fate[number] = FATES.index("ready")
        self._forget_dropped()
        self._serve(None)

    def _release(self, live: _Live) -> None:
        if live.worker >= 0 and not math.isnan(live.started_at):
            self._executed_s += self.now - live.started_at
            self._free_workers.append(live.worker)
            live.started_at = math.nan
        if live.slot >= 0:
            self._free_slots.append(live.slot)
            live.slot = -1

    def _forget_dropped(self) -> None:
        for number, reason in self.queue.drain_dropped():
            self._dropped_in_a_row += 1
            live = self._live.pop(number)
            if live.worker < 0 and live.slot < 0:
                self._waiting.remove(number)
            self._release(live)
            if self._recorder:
                self._recorder.fate[number] = FATES.index(reason)
                if math.isnan(self._recorder.finished_at[number]):
                    self._recorder.finished_at[number] = self.now

    # ---- the learner --------------------------------------------------------------------------

    def _window_ends(self, _) -> None:
        """Everything that finishes at this very moment has been reported before."""
        self._take(window_ends=True)
        self._serve(None)

    def _take(self, *, window_ends: bool = False) -> bool:
        """Takes a batch if the learner is free and the rule gives one; True if a step is over."""
        n = 1 if window_ends else self.config.batch_size
        if self._training or self.version >= self._updates:
            return False
        if self._windowed and not window_ends:
            return False
        if self.queue.ready < n and not window_ends:
            return False
        numbers = self.queue.take(n, self.version, self.now)
        self._forget_dropped()
        if numbers is None:
            return False
        self._dropped_in_a_row = 0
        taken = [self._live.pop(number) for number in numbers]
        if self._recorder:
            for number in numbers:
                self._recorder.taken_at[number] = self.now
                self._recorder.taken_version[number] = self.version
                self._recorder.fate[number] = FATES.index("trained")
        trained_at = self.now + self._learner.train_s
        synced_at = trained_at + self._learner.weight_sync_s
        if self._recorder:
            self._steps.append((self.now, trained_at, synced_at))
        self._training = True
        if synced_at == self.now:
            self._update(taken)
            return True
        if self._generation and self._generation.paused_by_training:
            self._pause(synced_at)
        elif self._generation and self._learner.weight_sync_s:
            self._at(trained_at, self._pause, synced_at)
        self._at(synced_at, self._updated, taken)
        return False

    def _pause(self, until: float) -> None:
        self._total_pause_s += until - self.now
        self._pause_ends_at = until

    def _updated(self, taken: list[_Live]) -> None:
        self._update(taken)
        self._serve(None)

    def _update(self, taken: list[_Live]) -> None:
        if self._learner.learn:
            probabilities = self._learner.learn(
                Batch(
                    actions=np.array([r.action for r in taken]),
                    durations_s=np.array([r.duration_s for r in taken]),
                    versions=np.array([r.version for r in taken]),
                    version=self.version,
                    interval_s=self.now - self._updated_at,
                    executed_s=self._executed_s + self._executing_s(),
                )
            )
            if probabilities is not None:
                self._source.policy_changed(probabilities)
        self._training = False
        self._updated_at = self.now
        self.version += 1
        self.queue.capacity(self.version)  # tell it, so that what is now too old goes at once
        self._forget_dropped()


class _Source:
    """What a free worker does next, under each worker rule; random numbers come in blocks."""

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
