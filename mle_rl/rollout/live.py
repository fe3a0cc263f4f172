"""The live driver: real programs on real workers, beside a learner that trains.

It drives the same :class:`~mle_rl.rollout.queue.RolloutQueue` as the simulation does, with the
clock of the machine. The learner's thread dispatches and takes; workers report from threads of
their own. Between the two there is one lock, for queue and ledger; programs are instrumented,
looked up and submitted without it.

* A rollout waits here, not in the pool, until a worker is free. So its start is known to the
  millisecond, time in the queue is kept apart from execution time, and work that the queue drops
  while it waits, or that is too old by then, is never run.
* A program that fails is an outcome. A failure of the grader or the ledger is not: it stops new
  starts and is raised in the learner's thread at its next call. A rollout whose sandbox was killed
  under it is dropped as ``crashed``, and its place is given back. A pool that somebody closes
  while the run goes on ends the run.
* A program that is already running when its rollout is dropped runs to its end, and all that is
  kept of it is how long it took.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from functools import partial

from mle_rl.errors import MleRlError
from mle_rl.records import Execution, Outcome, Rollout
from mle_rl.rollout.executions import machine_failed
from mle_rl.rollout.ledger import Ledger
from mle_rl.rollout.queue import Counts, RolloutQueue

Execute = Callable[[Rollout], "Future[tuple[Execution, Outcome]]"]


class LiveDriver:
    """Runs dispatched rollouts and hands finished ones to the learner as the queue decides.

    Args:
        queue: The rule; a fresh queue, or see :meth:`resume`.
        execute: Starts the program of a rollout; the future raises only if the machine failed.
        ledger: Told of every change.
        clock: Seconds, never going back.

    Raises:
        MleRlError: The rule lets workers repeat an action or binds them to a task; only the
            simulation has such workers.
    """

    def __init__(
        self,
        queue: RolloutQueue,
        execute: Execute,
        ledger: Ledger,
        clock: Callable[[], float] = time.monotonic,
    ):
        if queue.config.worker_rule != "renewal":
            raise MleRlError(
                f"worker_rule={queue.config.worker_rule!r} exists in the simulation only; a live "
                "run needs worker_rule='renewal'."
            )
        self.queue = queue
        self.ledger = ledger
        self._execute = execute
        self._clock = clock
        self._clock_zero = clock()
        self._changed = threading.Condition(threading.RLock())
        self._rollouts: dict[int, Rollout] = {}
        self._waiting: deque[int] = deque()
        self._running: set[int] = set()
        self._next_id = 0
        self._here = threading.local()
        self._closed = False
        self._failure: BaseException | None = None

    # ---- the learner's side ----------------------------------------------------------------------

    def now(self) -> float:
        """Seconds since the run began; goes on where it stopped when a run is resumed."""
        return self._clock() - self._clock_zero

    def next_batch(
        self, n: int, version: int, sample: Callable[[Sequence[int]], Iterable[Rollout]]
    ) -> list[Rollout]:
        """The next batch for the learner, sampling whatever the queue admits meanwhile.

        Args:
            n: Rollouts wanted.
            version: The learner's model version.
            sample: Makes one rollout for each of the ids given to it, with the present model.

        Returns:
            Finished rollouts in the order of the rule; ``n`` of them, unless the rule has a restart
            window.

        Raises:
            Exception: Whatever went wrong in a worker, the grader or the ledger.
        """
        while True:
            self.dispatch(version, sample)
            with self._changed:
                self._raise_failure()
                ids = self.queue.take(n, version, self.now())
                self._forget_dropped()
                if ids is not None:
                    return [self._rollouts.pop(id) for id in ids]
                if self.queue.capacity(version) == 0:
                    self._wait(n)

    def dispatch(self, version: int, sample: Callable[[Sequence[int]], Iterable[Rollout]]) -> None:
        """Sample and dispatch as many rollouts as the queue admits now; see :meth:`next_batch`."""
        with self._changed:
            self._raise_failure()
            self.queue.expire(self.now(), version)
            room = self.queue.capacity(version)
            self._forget_dropped()
            ids = range(self._next_id, self._next_id + room)
        if not ids:
            return
        sampled = list(sample(ids))  # takes seconds; workers go on meanwhile
        with self._changed:
            now = self.now()
            rollouts = [replace(rollout, dispatched_at=now) for rollout in sampled]
            for id in ids:
                self.queue.dispatch(id, version, now)
            self.ledger.dispatched(rollouts)
            self._next_id = ids.stop
            self._rollouts.update({rollout.id: rollout for rollout in rollouts})
            self._waiting.extend(ids)
        self._start_waiting()

    def counts(self) -> Counts:
        """Where every rollout is at this moment."""
        with self._changed:
            return self.queue.counts

    def close(self) -> None:
        """Start nothing more and hear of nothing more, for the ledger may be closed after this.

        The pool that runs the programs is closed by its owner.
        """
        with self._changed:
            self._closed = True

    # ---- saving ----------------------------------------------------------------------------------

    def state_dict(self) -> dict:
        """What a resumed run needs beside the ledger; plain JSON.

        The ledger is on disk for good when this returns: a state must not outlive its rollouts.
        """
        with self._changed:
            state = {
                "queue": self.queue.state_dict(),
                "next_id": self._next_id,
                "now": self.now(),
            }
        self.ledger.sync()
        return state

    def resume(self, state: Mapping) -> None:
        """Go on from a saved state: what was in flight is run again unless its result is known.

        Raises:
            MleRlError: The state is of another configuration, or of another ledger.
        """
        with self._changed:
            self.queue.load_state_dict(state["queue"])
            in_flight = self.queue.in_flight_ids()
            self._next_id = state["next_id"]
            self._clock_zero = self._clock() - state["now"]
            self._rollouts = self.ledger.rewind(
                in_flight=in_flight,
                ready=self.queue.ready_ids(),
                next_id=self._next_id,
                now=state["now"],
            )
            for id in in_flight:
                rollout = self._rollouts[id]
                if rollout.outcome is None:
                    self._waiting.append(id)
                else:
                    self.queue.finish(id, self.now(), rollout.execution.status)
            self.queue.expire(self.now())
            self._forget_dropped()
        self._start_waiting()

    # ---- internals, called without the lock ------------------------------------------------------

    def _start_waiting(self) -> None:
        """Give waiting rollouts to free workers, oldest first."""
        if getattr(self._here, "starting", False):
            return  # a result that is known at once reports from inside the loop below
        self._here.starting = True
        try:
            while (rollout := self._next_started()) is not None:
                self._execute(rollout).add_done_callback(partial(self._ended, rollout.id))
        finally:
            self._here.starting = False

    def _next_started(self) -> Rollout | None:
        with self._changed:
            if not (self._waiting and self._room()) or self._closed or self._failure:
                return None
            return self._start(self._waiting.popleft())

    def _ended(self, id: int, future: Future) -> None:
        """A worker reports, in a thread of its own."""
        try:
            with self._changed:
                self._running.discard(id)
                if not self._closed:
                    self._finish(id, *_result(future))
                self._changed.notify_all()
            self._start_waiting()
        except BaseException as error:  # a future would only log it; the learner must see it
            with self._changed:
                self._failure = self._failure or error
                self._changed.notify_all()

    # ---- internals, called with the lock held ----------------------------------------------------

    def _wait(self, n: int) -> None:
        """Sleep until something has finished, or the open window closes."""
        closes_at = self.queue.window_closes_at
        if closes_at is not None:
            self._changed.wait(max(0.0, closes_at - self.now()))
        elif self.queue.in_flight:
            self._changed.wait()
        else:
            raise MleRlError(
                f"The collection rule gives no batch of {n}: {self.queue.ready} rollouts are "
                "ready, none is under way and none is admitted. Lower the batch size or change "
                "the rule."
            )

    def _room(self) -> bool:
        return len(self._running) < self.queue.config.workers

    def _start(self, id: int) -> Rollout:
        now = self.now()
        self.queue.start(id, now)
        self.ledger.started(id, now)
        self._rollouts[id] = replace(self._rollouts[id], started_at=now)
        self._running.add(id)
        return self._rollouts[id]

    def _finish(self, id: int, execution: Execution, outcome: Outcome) -> None:
        now = self.now()
        if id not in self._rollouts:  # dropped while it ran
            if not machine_failed(execution):
                self.ledger.ran_on(id, execution.duration_s)
            return
        if machine_failed(execution):  # it says nothing about the program, so it pays nothing
            self.queue.crash(id, now)
            self._forget_dropped()
            return
        rollout = replace(self._rollouts[id], finished_at=now, execution=execution, outcome=outcome)
        self._rollouts[id] = rollout
        self.ledger.finished(rollout)
        self.queue.finish(id, now, execution.status)
        self._forget_dropped()

    def _forget_dropped(self) -> None:
        for id, reason in self.queue.drain_dropped():
            del self._rollouts[id]
            if id in self._waiting:
                self._waiting.remove(id)
            self.ledger.dropped(id, reason)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


def _result(future: Future[tuple[Execution, Outcome]]) -> tuple[Execution, Outcome]:
    try:
        return future.result()
    except CancelledError:
        raise MleRlError(
            "The pool that runs the programs was closed while the run goes on: keep it open until "
            "the run has ended, then call again to go on from the last checkpoint."
        ) from None
