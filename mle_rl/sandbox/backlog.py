"""Jobs that wait for a worker, and the thread that serves one worker."""

from __future__ import annotations

import threading
import warnings
from collections import deque
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Protocol

from mle_rl.errors import MleRlError, first_line
from mle_rl.records import Execution
from mle_rl.sandbox.failures import LOST
from mle_rl.sandbox.job import Job


class WorkerLost(Exception):
    """What ran the program was killed, or does not answer any more."""


class Worker(Protocol):
    """Runs one job at a time.

    Attributes:
        isolation, versions: What is in force there; known once it has been greeted.
    """

    isolation: str
    versions: dict[str, str]

    def start(self) -> None:
        """Begins to start it, without waiting."""

    def greet(self) -> None:
        """Waits until it can run jobs. Raises MleRlError when it cannot."""

    def run(self, job: Job) -> Execution:
        """Runs a job. Raises WorkerLost, or MleRlError when the sandbox failed."""

    def replace(self) -> None:
        """Starts another in its place. Raises WorkerLost when stopped, anything when it fails."""

    def stop(self) -> None:
        """Ends it, from any thread, also while it runs a job."""


@dataclass
class Waiting:
    """A job in the backlog, and whether a worker was lost under it before."""

    job: Job
    future: Future[Execution]
    tried: bool = False


class Backlog:
    """First come, first served; closing it wakes whoever waits.

    Futures are completed without the lock: whoever hears of one may wait for another thread's
    lock, and that thread for this one.

    Args:
        workers: How many threads take from it.
    """

    def __init__(self, workers: int) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Waiting] = deque()
        self._workers = workers
        self._failure: MleRlError | None = None
        self.closed = False

    def put(self, waiting: Waiting, first: bool = False) -> None:
        """Adds a job, at the front when first is set.

        Raises:
            MleRlError: It is closed, or no worker is left.
        """
        with self._changed:
            if self._failure is not None:
                raise self._failure
            if self.closed:
                raise MleRlError("This pool is closed; make a new one.")
            self._waiting.insert(0 if first else len(self._waiting), waiting)
            self._changed.notify()

    def take(self) -> Waiting | None:
        """Waits for a job; None when the backlog is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self.closed)
            return self._waiting.popleft() if self._waiting else None

    def close(self) -> None:
        """Cancels what waits; from now on nothing is added and `take` returns None."""
        with self._changed:
            self.closed = True
            cancelled = self._emptied()
            self._changed.notify_all()
        for waiting in cancelled:
            if not waiting.future.cancel():
                waiting.future.set_exception(CancelledError())

    def retire_worker(self, failure: MleRlError) -> None:
        """One thread takes no more; when it was the last, what waits fails with its failure.

        While others are left that is a warning, and nothing at all when the backlog is closed.
        """
        with self._changed:
            if self.closed:
                return
            self._workers -= 1
            left = self._workers
            if not left:
                self._failure = failure
                failed = self._emptied()
        if left:
            warnings.warn(
                f"{failure} Of the pool's workers {left} {'is' if left == 1 else 'are'} left.",
                RuntimeWarning,
                stacklevel=2,
            )
            return
        for waiting in failed:
            if waiting.tried or waiting.future.set_running_or_notify_cancel():
                waiting.future.set_exception(failure)

    def _emptied(self) -> list[Waiting]:
        """What waited; nothing waits any more."""
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting


def serve(worker: Worker, backlog: Backlog) -> None:
    """Runs jobs on one worker until the backlog is closed, or no other worker can be had."""
    while (waiting := backlog.take()) is not None:
        # A job that is tried again runs already, as far as its future knows.
        if not waiting.tried and not waiting.future.set_running_or_notify_cancel():
            continue
        try:
            waiting.future.set_result(worker.run(waiting.job))
        except WorkerLost:
            _try_again(waiting, worker, backlog)
            try:
                worker.replace()
            except WorkerLost:
                return  # stopped
            except Exception as error:  # of the system or of Ray: nobody else would hear of it
                backlog.retire_worker(_cannot_replace(error))
                return
        except BaseException as error:
            waiting.future.set_exception(error)


def _cannot_replace(error: Exception) -> MleRlError:
    if isinstance(error, MleRlError):
        return error
    return MleRlError(
        f"A sandbox worker was lost, and another cannot be started ({first_line(error)}): make a "
        "new pool, with fewer workers when the system allows no more processes or open files."
    )


def _try_again(waiting: Waiting, worker: Worker, backlog: Backlog) -> None:
    """Once more for a job under which a worker was lost, the second time it is the job's end."""
    if not waiting.tried:
        waiting.tried = True
        try:
            backlog.put(waiting, first=True)
        except MleRlError:  # closed
            waiting.future.set_exception(CancelledError())
    elif backlog.closed:
        waiting.future.set_exception(CancelledError())
    else:
        waiting.future.set_result(
            Execution(
                status=LOST.status,
                stdout="",
                stderr="",
                duration_s=0.0,
                cpu_s=0.0,
                peak_memory_mb=0.0,
                isolation=worker.isolation,
                versions=worker.versions,
                reason=LOST.reason(),
            )
        )
