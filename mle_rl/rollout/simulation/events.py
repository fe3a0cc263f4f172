"""The general virtual driver: the rollout queue on an event heap and a virtual clock.

Everything a multi-GPU box does around the queue happens here in simulated seconds: generation on
slots that a weight synchronisation or a shared GPU can pause, execution on workers, an update that
takes a batch and makes the next model version. The queue is the one that trains language models;
this module only decides *when* things happen, never who gets into a batch.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

import numpy as np

from mle_rl.errors import MleRlError
from mle_rl.rollout.queue import QueueConfig, RolloutQueue
from mle_rl.rollout.simulation.decoding import Decoding
from mle_rl.rollout.simulation.source import Source
from mle_rl.rollout.simulation.stages import Batch, Generation, Learner, Result
from mle_rl.rollout.simulation.trace import Recorder, Unrecorded
from mle_rl.rollout.simulation.workload import Workload

_PATIENCE = 1000  # fillings of the whole box that may be dropped in a row before a run is hopeless


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
        self._decoding = Decoding(generation, rng) if generation else None
        self._source = Source(config, workload, rng)
        self._events: list[tuple] = []
        self._tie = count()
        self._live: dict[int, _Live] = {}
        self._waiting: deque[int] = deque()
        self._free_workers = list(range(config.workers))[::-1]
        self._training = False
        self._updated_at = 0.0
        self._windowed = config.restart_window_s is not None
        self._window_event_at: float | None = None
        self._updates = 0
        self._dropped_in_a_row = 0
        self._executed_s = 0.0
        self._number = 0
        self._recorder = Recorder() if trace else Unrecorded()

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
            training=np.array(self._recorder.steps).reshape(-1, 3),
            trace=self._recorder.trace(),
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
        if self._decoding:
            room = min(room, self._decoding.room(self.now))
        elif self.config.worker_rule != "renewal":
            room = min(room, len(self._free_workers))
        for _ in range(room):
            self._dispatch_one()
        if self.queue.window_closes_at != self._window_event_at:
            self._window_event_at = self.queue.window_closes_at
            if self._window_event_at is not None:
                self._at(self._window_event_at, self._window_ends, last=True)

    def _dispatch_one(self) -> None:
        number, self._number = self._number, self._number + 1
        if self._decoding:
            slot, seconds = self._decoding.begin()
            self._sampled(number, -1, slot)
            self._at(self.now + seconds, self._generated, number)
            return
        worker = self._free_workers.pop() if self._free_workers else -1
        self._sampled(number, worker, -1)
        if worker >= 0:
            self._start(number, worker)
        else:
            self._waiting.append(number)

    # ---- stages of a rollout ------------------------------------------------------------------

    def _sampled(self, number: int, worker: int, slot: int) -> None:
        """The policy draws an action; how long it will take is settled with it."""
        action, duration = self._source.next(worker, self.now)
        limit = self._workload.time_limit_s
        status, duration = ("timeout", limit) if duration > limit else ("ok", duration)
        self._live[number] = _Live(action, duration, self.version, status, slot=slot)
        self.queue.dispatch(number, self.version, self.now)
        self._recorder.dispatched(action, self.version, self.now, duration, slot)

    def _generated(self, number: int) -> None:
        live = self._live.get(number)
        if live is None:  # it was dropped before it was complete
            return
        late = self._decoding.still_to_come_s(live.slot)
        if late > 0:  # sampling stood still meanwhile
            self._at(self.now + late, self._generated, number)
            return
        self._release(live)
        self._recorder.generated(number, self.now)
        self._waiting.append(number)
        self._serve(None)

    def _start(self, number: int, worker: int) -> None:
        live = self._live[number]
        live.worker, live.started_at = worker, self.now
        self.queue.start(number, self.now)
        self._recorder.started(number, worker, self.now)
        self._at(self.now + live.duration_s, self._finish, number)

    def _finish(self, number: int) -> None:
        live = self._live.get(number)
        if live is None:  # it was aborted while it ran
            return
        self.queue.finish(number, self.now, live.status)
        self._release(live)
        self._recorder.finished(number, self.now)
        self._forget_dropped()
        self._serve(None)

    def _release(self, live: _Live) -> None:
        if live.worker >= 0 and not math.isnan(live.started_at):
            self._executed_s += self.now - live.started_at
            self._free_workers.append(live.worker)
            live.started_at = math.nan
        if live.slot >= 0:
            self._decoding.end(live.slot)
            live.slot = -1

    def _forget_dropped(self) -> None:
        for number, reason in self.queue.drain_dropped():
            self._dropped_in_a_row += 1
            live = self._live.pop(number)
            if live.worker < 0 and live.slot < 0:
                self._waiting.remove(number)
            self._release(live)
            self._recorder.dropped(number, reason, self.now)

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
        trained_at = self.now + self._learner.train_s
        synced_at = trained_at + self._learner.weight_sync_s
        self._recorder.taken(numbers, self.version, (self.now, trained_at, synced_at))
        self._training = True
        if synced_at == self.now:
            self._update(taken)
            return True
        if self._decoding:
            if self._decoding.generation.paused_by_training:
                self._pause(synced_at)
            else:
                self._at(trained_at, self._pause, synced_at)
        self._at(synced_at, self._updated, taken)
        return False

    def _pause(self, until: float) -> None:
        self._decoding.pause(self.now, until)

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
